"""Confidence intervals of scores and tests between methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special, stats


@dataclass(frozen=True)
class Interval:
    """A mean score and its confidence interval; NaN stands for what is not known.

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


def wilson_interval(hits: Any, n_rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Compute Wilson's 95 % score interval of shares of rows.

    Examples
    --------
    >>> [round(float(end), 3) for end in wilson_interval(18, 20)]
    [0.699, 0.972]
    """
    hits, n_rows = np.asarray(hits, dtype=np.float64), np.asarray(n_rows, dtype=np.float64)
    z = float(special.ndtri(0.975))
    centre = (hits + z * z / 2) / (n_rows + z * z)
    half = z * np.sqrt(hits * (n_rows - hits) / np.maximum(n_rows, 1e-9) + z * z / 4) / (n_rows + z * z)
    return centre - half, centre + half


def mean_share_reach(hits: Any, n_rows: Any) -> tuple[float, float]:
    """Compute how far the 95 % interval of a mean of shares (of recalls) reaches below and above it.

    Wilson's intervals of the shares are combined by the method of variance estimates recovery (MOVER, Zou and Donner 2008).
    Shares of no rows are left out.

    Parameters
    ----------
    hits, n_rows : array-like, shape (n_shares,)
        Rows that are right, and all rows, of each share.

    Examples
    --------
    >>> [round(reach, 3) for reach in mean_share_reach([36, 4], [36, 4])]
    [0.25, 0.0]
    """
    hits, n_rows = np.asarray(hits, dtype=np.float64), np.asarray(n_rows, dtype=np.float64)
    known = n_rows > 0
    if not known.any():
        return math.nan, math.nan
    share = hits[known] / n_rows[known]
    low, high = wilson_interval(hits[known], n_rows[known])
    down, up = np.linalg.norm(share - low), np.linalg.norm(high - share)
    return float(down / share.size), float(up / share.size)


def corrected_interval(
    values: Any,
    test_share: float | None,
    limits: tuple[float, float] = (-math.inf, math.inf),
    n_folds: int | None = None,
    reach: tuple[float, float] = (0.0, 0.0),
    variance: float = 0.0,
) -> Interval:
    """Compute the 95 % interval of Nadeau and Bengio (2003) for the mean of scores over folds, or of their differences.

    Folds share training rows, so their scores are correlated and Student's t interval is too narrow. The corrected
    interval multiplies the variance by ``1/n + test_share / (1 - test_share)`` instead of ``1/n``. Repeats of the folds share
    all rows: what differs from table to table is common to them, so that the degrees of freedom are those of one repeat.

    Where the number of rows tells how far the mean can be off (``reach``) and how much scores of folds vary by it
    (``variance``), only what folds vary beyond that is taken from the folds: their number is too small to tell more.

    Parameters
    ----------
    values : array-like of float
        One score per fold; NaN is left out.
    test_share : float or None
        Share of the rows that each fold tests on. None gives Student's t interval, for independent scores.
    limits : tuple of float, default=(-inf, inf)
        Limits of the metric; the interval is cut there.
    n_folds : int or None, default=None
        Folds of one repeat; None: all values are of one.
    reach : (float, float), default=(0, 0)
        Reach below and above the mean that the number of rows alone gives, see :func:`mean_share_reach`.
    variance : float, default=0
        Variance of the score of a fold that its number of rows alone gives.

    Examples
    --------
    >>> corrected_interval([0.8, 0.9, 1.0], test_share=1 / 3, limits=(0.0, 1.0))
    Interval(value=0.9, low=0.50..., high=1.0)
    >>> corrected_interval([0.8, 0.9, 1.0], test_share=None)
    Interval(value=0.9, low=0.65..., high=1.14...)
    >>> corrected_interval([1.0, 1.0, 1.0], test_share=1 / 3, limits=(0.0, 1.0), reach=mean_share_reach([20], [20]))
    Interval(value=1.0, low=0.83..., high=1.0)
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    array = array[np.isfinite(array)]
    mean = float(array.mean()) if array.size else math.nan
    if array.size < 2 or (_do_not_vary(array) and not any(reach)):
        return Interval(mean)
    overlap = 0.0 if test_share is None else test_share / (1 - test_share)
    beyond = 0.0 if _do_not_vary(array) else max(0.0, float(array.var(ddof=1)) - variance)
    between = float(special.stdtrit(_degrees(array.size, n_folds), 0.975)) * math.sqrt(
        beyond * (1 / array.size + overlap)
    )
    down, up = (math.hypot(own, between) for own in reach)
    return Interval(mean, max(limits[0], mean - down), min(limits[1], mean + up))


def _degrees(n_values: int, n_folds: int | None) -> int:
    return max(1, min(n_values, n_folds or n_values) - 1)


def _do_not_vary(values: np.ndarray) -> bool:
    """Whether values differ by no more than rounding."""
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))


#: Digits beyond which two scores count as equal: sums in another order must not break a tie.
_DIGITS = 12


@dataclass(frozen=True)
class PairedTest:
    """A test of two methods over the same splits.

    Parameters
    ----------
    first, second : str
        Methods.
    difference : float
        Mean score of the first minus that of the second.
    p_value : float
        Corrected after Holm over all pairs.
    significant : bool, default=False
        Whether ``p_value`` is below the level of the test.
    low, high : float, default=NaN
        Ends of the 95 % interval of the difference (of this pair alone, not corrected after Holm).
    """

    first: str
    second: str
    difference: float
    p_value: float
    significant: bool = False
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class MethodRank:
    """Mean rank of a method (1 is best) and its test against the method with the best mean rank.

    ``p_value`` is None for the best method itself. ``significant`` says that the method is behind the best one, not only
    that the two differ.
    """

    method: str
    mean_rank: float
    p_value: float | None = None
    significant: bool = False


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Correct p-values for multiple testing after Holm (1979); scipy has no such function.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(raw.size, 0, -1))
    corrected = np.empty_like(raw)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def corrected_t_test(differences: Any, test_share: float | None, n_folds: int | None = None) -> tuple[float, Interval]:
    """Test whether a mean difference over folds is zero: the corrected resampled t test of Nadeau and Bengio (2003).

    Folds share training rows, and repeats share all rows: the variance of the mean is that of one fold times
    ``1/n + test_share / (1 - test_share)``, with the degrees of freedom of one repeat.

    Parameters
    ----------
    differences : array-like of float
        One difference per fold; NaN is left out.
    test_share : float or None
        Share of the rows that each fold tests on; None for independent differences.
    n_folds : int or None, default=None
        Folds of one repeat; None: all differences are of one.

    Returns
    -------
    p_value : float
        Two-sided; 1 where there is nothing to test. Differences that are all the same have no variance to test with: then
        it is that of the sign test over the folds of one repeat.
    interval : Interval
        Mean difference with its 95 % interval.

    Examples
    --------
    >>> p_value, interval = corrected_t_test([0.1, 0.2, 0.1, 0.2, 0.15], test_share=0.2)
    >>> round(p_value, 4), round(interval.low, 3), round(interval.high, 3)
    (0.0111, 0.057, 0.243)
    """
    array = np.round(np.asarray(differences, dtype=np.float64).ravel(), _DIGITS)
    array = array[np.isfinite(array)]
    interval = corrected_interval(array, test_share, n_folds=n_folds)
    if array.size < 2 or not array.any():
        return 1.0, interval
    degrees = _degrees(array.size, n_folds)
    if _do_not_vary(array):
        return min(1.0, 2 * 0.5 ** (degrees + 1)), interval
    error = (interval.high - interval.value) / special.stdtrit(degrees, 0.975)
    return float(2 * special.stdtr(degrees, -abs(interval.value) / error)), interval


def corrected_t_tests(
    scores: Mapping[str, Any], test_share: float | None, alpha: float = 0.05, n_folds: int | None = None
) -> list[PairedTest]:
    """Test all pairs of methods over the same folds: :func:`corrected_t_test`, corrected after Holm.

    Parameters
    ----------
    scores : mapping of str to array-like of float
        For each method one score per fold, in the same order of folds. Folds where either has NaN are left out.
    test_share : float or None
        Share of the rows that each fold tests on; None for independent scores.
    alpha : float, default=0.05
        Level below which a difference is significant.
    n_folds : int or None, default=None
        Folds of one repeat; None: all scores are of one.

    Examples
    --------
    >>> strong, weak = [0.91, 0.92, 0.93, 0.94, 0.95], [0.51, 0.53, 0.55, 0.57, 0.59]
    >>> corrected_t_tests({"strong": strong, "weak": weak}, test_share=0.2)[0].significant
    True
    """
    return _test_pairs(scores, lambda difference: corrected_t_test(difference, test_share, n_folds), alpha)


def _test_pairs(
    scores: Mapping[str, Any], test: Callable[[np.ndarray], tuple[float, Interval]], alpha: float
) -> list[PairedTest]:
    """Test the differences of all pairs of methods, split by split, without those where either is NaN."""
    arrays = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in scores.items()}
    if len({array.size for array in arrays.values()}) > 1:
        raise ValueError("All methods must be scored on the same splits.")
    pairs = list(combinations(arrays, 2))
    differences = [np.round(arrays[first] - arrays[second], _DIGITS) for first, second in pairs]
    found = [test(difference[np.isfinite(difference)]) for difference in differences]
    return [
        PairedTest(first, second, interval.value, float(p), bool(p < alpha), low=interval.low, high=interval.high)
        for (first, second), (_, interval), p in zip(pairs, found, holm([p for p, _ in found]), strict=True)
    ]


def wilcoxon_pairs(scores: Mapping[str, Any], alpha: float = 0.05) -> list[PairedTest]:
    """Test all pairs of methods over the same splits: Wilcoxon signed-rank, corrected after Holm.

    Parameters
    ----------
    scores : mapping of str to array-like of float
        For each method one score per split, larger is better, in the same order of splits. Splits where either has NaN
        are left out.
    alpha : float, default=0.05
        Level below which a difference is significant.

    Examples
    --------
    >>> strong, weak = [0.91, 0.92, 0.93, 0.94, 0.95, 0.96], [0.51, 0.53, 0.55, 0.57, 0.59, 0.61]
    >>> wilcoxon_pairs({"strong": strong, "weak": weak})[0].p_value
    0.03125
    """

    def test(difference: np.ndarray) -> tuple[float, Interval]:
        if not difference.any():  # no difference anywhere: scipy would have nothing to rank
            return 1.0, Interval(0.0 if difference.size else math.nan)
        # Exact where there are neither zeros nor ties, else the normal approximation; scipy chooses.
        p_value = stats.wilcoxon(difference, zero_method="wilcox", method="auto").pvalue
        return float(p_value), Interval(float(difference.mean()))

    return _test_pairs(scores, test, alpha)


def friedman_ranks(scores: Mapping[str, Any], alpha: float = 0.05) -> tuple[dict[str, float], float, float]:
    """Rank the methods on each data set (or split) and compare their mean ranks after Demsar (2006).

    Parameters
    ----------
    scores : mapping of str to array-like of float
        For each method one score per data set, larger is better; ties share a rank.
    alpha : float, default=0.05
        Level of the critical difference.

    Returns
    -------
    mean_ranks : dict of str to float
        1 is best.
    p_value : float
        Of Friedman's test; NaN for fewer than three methods or two data sets.
    critical_difference : float
        Nemenyi's: mean ranks that differ by less are not told apart.

    Examples
    --------
    >>> friedman_ranks({"a": [3, 3, 3], "b": [2, 2, 1], "c": [1, 1, 2]})[0]
    {'a': 1.0, 'b': 2.333..., 'c': 2.666...}
    """
    table = np.column_stack([np.asarray(values, dtype=np.float64).ravel() for values in scores.values()])
    table = np.round(table, _DIGITS)
    table = table[np.isfinite(table).all(axis=1)]
    n_sets, n_methods = table.shape
    if n_sets == 0:
        return dict.fromkeys(scores, math.nan), math.nan, math.nan
    ranks = stats.rankdata(-table, axis=1)
    p_value = critical = math.nan
    if n_methods >= 3 and n_sets >= 2:
        # Where every method ties everywhere there is nothing to test, and scipy would divide by zero.
        tied = np.all(ranks == ranks[:, :1])
        p_value = 1.0 if tied else float(stats.friedmanchisquare(*table.T).pvalue)
    if n_methods >= 2:
        quantile = float(stats.studentized_range.ppf(1 - alpha, n_methods, np.inf)) / math.sqrt(2)
        critical = quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))
    return dict(zip(scores, ranks.mean(axis=0).tolist(), strict=True)), p_value, critical
