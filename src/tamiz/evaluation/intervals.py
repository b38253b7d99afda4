"""Confidence intervals of mean scores over folds that share training rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


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
        """Whether there is a mean."""
        return math.isfinite(self.value)

    @property
    def has_ends(self) -> bool:
        """Whether both ends are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)


def corrected_interval(
    values: Any,
    test_share: float | None,
    confidence: float = 0.95,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Return the interval of Nadeau and Bengio (2003) for the mean of scores over splits, or of their differences.

    Folds share training rows, so their scores are correlated and Student's t interval is too narrow. The corrected
    interval multiplies the variance by ``1/n + test_share / (1 - test_share)`` instead of ``1/n``.

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

    Returns
    -------
    Interval

    Examples
    --------
    >>> corrected_interval([0.8, 0.9, 1.0], test_share=1 / 3, limits=(0, 1))
    Interval(value=0.9, low=0.50..., high=1)
    >>> corrected_interval([0.8, 0.9, 1.0], test_share=None)
    Interval(value=0.9, low=0.65..., high=1.14...)
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    array = array[np.isfinite(array)]
    if array.size == 0:
        return Interval(math.nan)
    mean = float(array.mean())
    if array.size == 1:
        return Interval(mean)
    overlap = 0.0 if test_share is None else test_share / (1 - test_share)
    variance = float(array.var(ddof=1)) * (1 / array.size + overlap)
    reach = float(stats.t.ppf(0.5 + confidence / 2, array.size - 1)) * math.sqrt(variance)
    return Interval(mean, max(limits[0], mean - reach), min(limits[1], mean + reach))
