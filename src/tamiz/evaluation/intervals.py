"""Confidence intervals of mean scores over folds that share training rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

#: A share of rows is near a limit while fewer rows than these, and less than a quarter of all, are on the wrong side.
ROWS_NEAR_A_LIMIT, SHARE_NEAR_A_LIMIT = 10, 0.25


@dataclass(frozen=True)
class Interval:
    """Hold a mean score and its confidence interval; NaN stands for what is not known.

    Parameters
    ----------
    value : float
        Mean of the scores, or of the paired differences of two scores.
    low, high : float, default=NaN
        Ends of the interval; NaN for a single score.

    Examples
    --------
    >>> Interval(0.9, 0.85, 0.95).has_ends, Interval(0.9).has_ends
    (True, False)
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def is_known(self) -> bool:
        """Check whether there is a mean."""
        return math.isfinite(self.value)

    @property
    def has_ends(self) -> bool:
        """Check whether both ends are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)


def exact_interval(value: float, n_rows: float, confidence: float = 0.95) -> Interval:
    """Return the exact interval of a share of rows, after Clopper and Pearson.

    Parameters
    ----------
    value : float
        Share, in [0, 1].
    n_rows : float
        Number of rows; may be a fraction, see :attr:`~tamiz.evaluation.metrics.Metric.count_rows`.
    confidence : float, default=0.95
        Confidence level.

    Examples
    --------
    >>> exact_interval(1.0, 20)
    Interval(value=1.0, low=0.83..., high=1.0)
    """
    tail = (1 - confidence) / 2
    hits = value * n_rows
    low = float(special.betaincinv(hits, n_rows - hits + 1, tail)) if hits > 0 else 0.0
    high = float(special.betaincinv(hits + 1, n_rows - hits, 1 - tail)) if hits < n_rows else 1.0
    return Interval(value, low, high)


def mid_p_interval(value: float, n_rows: float, confidence: float = 0.95) -> Interval:
    """Return the mid-p interval of a share of rows: as the exact one, but the observed number counts half in each tail.

    The exact interval covers more often than it says, since the number of rows is whole; this one covers about as often
    (Agresti and Gottard 2005).

    Parameters
    ----------
    value : float
        Share, in [0, 1].
    n_rows : float
        Number of rows; may be a fraction.
    confidence : float, default=0.95
        Confidence level.

    Examples
    --------
    >>> mid_p_interval(0.9, 20)
    Interval(value=0.9, low=0.70..., high=0.98...)
    """
    from scipy.optimize import brentq

    tail, hits = (1 - confidence) / 2, value * n_rows

    def at_least(share: float) -> float:
        """Return the probability of more than the observed rows, plus half of that of the observed number."""
        as_many = float(special.betainc(hits, n_rows - hits + 1, share)) if hits > 0 else 1.0
        more = float(special.betainc(hits + 1, n_rows - hits, share)) if hits < n_rows else 0.0
        return (as_many + more) / 2

    low = brentq(lambda share: at_least(share) - tail, 0.0, 1.0) if hits > 0 else 0.0
    high = brentq(lambda share: at_least(share) - (1 - tail), 0.0, 1.0) if hits < n_rows else 1.0
    return Interval(value, low, high)


def corrected_interval(
    values: Any,
    test_share: float | None,
    confidence: float = 0.95,
    limits: tuple[float, float] = (-math.inf, math.inf),
    n_rows: float | None = None,
) -> Interval:
    """Return the interval of Nadeau and Bengio (2003) for the mean of scores over splits, or of their differences.

    Folds share training rows, so their scores are correlated and Student's t interval is too narrow. The corrected
    interval multiplies the variance by ``1/n + test_share / (1 - test_share)`` instead of ``1/n``.

    Scores that do not vary (every row of every fold right) say nothing through their variance. Then the rows of all folds
    together give an exact bound, if ``n_rows`` is known; else the interval has no ends.

    A share of rows near a limit (few rows wrong) varies from fold to fold by whole rows, and to one side only: an interval of
    the same reach to both sides is too wide there, or too narrow. Then the end towards the limit is that of
    :func:`mid_p_interval`, and the other the farther one of :func:`exact_interval` and of the corrected interval.

    Parameters
    ----------
    values : array-like of float
        One score per split; NaN is left out.
    test_share : float or None
        Share of the rows that each split tests on. None gives Student's t interval, for independent scores.
    confidence : float, default=0.95
        Confidence level.
    limits : tuple of float, default=(-inf, inf)
        Limits of the metric; the interval is cut there.
    n_rows : float or None, default=None
        Rows of all test folds together, each counted once, for metrics that are shares of rows. With limits of (-1, 1) the
        values are differences of two shares.

    Returns
    -------
    Interval

    Examples
    --------
    >>> corrected_interval([0.8, 0.9, 1.0], test_share=1 / 3, limits=(0, 1))
    Interval(value=0.9, low=0.50..., high=1)
    >>> corrected_interval([0.8, 0.9, 1.0], test_share=None)
    Interval(value=0.9, low=0.65..., high=1.14...)
    >>> corrected_interval([1.0, 1.0, 1.0], test_share=1 / 3, limits=(0, 1), n_rows=20)
    Interval(value=1.0, low=0.83..., high=1.0)
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    array = array[np.isfinite(array)]
    if array.size == 0:
        return Interval(math.nan)
    mean = float(array.mean())
    if array.size == 1:
        return Interval(mean)
    if do_not_vary(array):
        return _bound_on_rows(float(array[0]), limits, n_rows, confidence)
    overlap = 0.0 if test_share is None else test_share / (1 - test_share)
    variance = float(array.var(ddof=1)) * (1 / array.size + overlap)
    reach = float(stats.t.ppf(0.5 + confidence / 2, array.size - 1)) * math.sqrt(variance)
    found = Interval(mean, max(limits[0], mean - reach), min(limits[1], mean + reach))
    return found if n_rows is None or limits != (0, 1) else _near_a_limit(found, n_rows, confidence)


def do_not_vary(values: np.ndarray) -> bool:
    """Check whether values differ by no more than rounding.

    Examples
    --------
    >>> do_not_vary(np.array([0.1 + 0.2, 0.3])), do_not_vary(np.array([0.3, 0.31]))
    (True, False)
    """
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))


def _near_a_limit(corrected: Interval, n_rows: float, confidence: float) -> Interval:
    """Return the interval of a share of rows whose folds vary, with the ends of a binomial share where few rows are wrong."""
    value = corrected.value
    if min(value, 1 - value) * n_rows >= min(ROWS_NEAR_A_LIMIT, SHARE_NEAR_A_LIMIT * n_rows):
        return corrected
    exact, middle = exact_interval(value, n_rows, confidence), mid_p_interval(value, n_rows, confidence)
    if value > 0.5:
        return Interval(value, min(corrected.low, exact.low), middle.high)
    return Interval(value, middle.low, max(corrected.high, exact.high))


def _bound_on_rows(value: float, limits: tuple[float, float], n_rows: float | None, confidence: float) -> Interval:
    if n_rows is None or limits not in ((0, 1), (-1, 1)):
        return Interval(value)
    if limits == (0, 1):
        return exact_interval(value, n_rows, confidence)
    # No row told the two apart (or each as much as the others): so large a share could still differ unseen.
    reach = 1 - ((1 - confidence) / 2) ** (1 / n_rows)
    return Interval(value, max(-1.0, value - reach), min(1.0, value + reach))
