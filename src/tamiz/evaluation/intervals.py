"""Confidence intervals of scores and tests between methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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


#: Digits beyond which two scores count as equal: sums in another order must not break a tie.
_DIGITS = 12


@dataclass(frozen=True)
class PairedTest:
    """Hold a test of two methods over the same splits.

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
    n_features : int or None, default=None
        Number of features the test is about; None for all numbers together.
    low, high : float, default=NaN
        Ends of the 95 % interval of the difference (of this pair alone, not corrected after Holm).
    """

    first: str
    second: str
    difference: float
    p_value: float
    significant: bool = False
    n_features: int | None = None
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class MethodRank:
    """Hold the mean rank of a method (1 is best) and its test against the method with the best mean rank.

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


def corrected_t_test(differences: Any, test_share: float | None) -> tuple[float, Interval]:
    """Test whether a mean difference over splits is zero: the corrected resampled t test of Nadeau and Bengio (2003).

    Splits share training rows, and repeats share all rows, so that more of them are not more evidence: the variance of the
    mean is that of one split times ``1/n + test_share / (1 - test_share)``.

    Parameters
    ----------
    differences : array-like of float
        One difference per split; NaN is left out.
    test_share : float or None
        Share of the rows that each split tests on; None for independent differences.

    Returns
    -------
    p_value : float
        Two-sided; 1 where there is nothing to test. Differences that are all the same have no variance to test with: then
        it is that of the sign test.
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
    interval = corrected_interval(array, test_share)
    if array.size < 2 or not array.any():
        return 1.0, interval
    if do_not_vary(array):
        return min(1.0, 2 * 0.5**array.size), interval
    overlap = 0.0 if test_share is None else test_share / (1 - test_share)
    error = math.sqrt(float(array.var(ddof=1)) * (1 / array.size + overlap))
    return float(2 * stats.t.sf(abs(interval.value) / error, array.size - 1)), interval


def corrected_t_tests(scores: Mapping[str, Any], test_share: float | None, alpha: float = 0.05) -> list[PairedTest]:
    """Test all pairs of methods over the same splits: :func:`corrected_t_test`, corrected after Holm.

    Parameters
    ----------
    scores : mapping of str to array-like of float
        For each method one score per split, in the same order of splits. Splits where either has NaN are left out.
    test_share : float or None
        Share of the rows that each split tests on; None for independent scores.
    alpha : float, default=0.05
        Level below which a difference is significant.

    Examples
    --------
    >>> strong, weak = [0.91, 0.92, 0.93, 0.94, 0.95], [0.51, 0.53, 0.55, 0.57, 0.59]
    >>> corrected_t_tests({"strong": strong, "weak": weak}, test_share=0.2)[0].significant
    True
    """
    pairs = _pair_differences(scores)
    found = [corrected_t_test(difference, test_share) for _, _, difference in pairs]
    corrected = holm([p for p, _ in found]) if found else np.empty(0)
    return [
        PairedTest(first, second, interval.value, float(p), bool(p < alpha), low=interval.low, high=interval.high)
        for (first, second, _), (_, interval), p in zip(pairs, found, corrected, strict=True)
    ]


def _pair_differences(scores: Mapping[str, Any]) -> list[tuple[str, str, np.ndarray]]:
    """Return the differences of all pairs of methods, split by split, without those where either is NaN."""
    names = list(scores)
    arrays = {name: np.asarray(scores[name], dtype=np.float64).ravel() for name in names}
    if len({array.size for array in arrays.values()}) > 1:
        raise ValueError("All methods must be scored on the same splits.")
    pairs = []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            difference = np.round(arrays[first] - arrays[second], _DIGITS)
            pairs.append((first, second, difference[np.isfinite(difference)]))
    return pairs


def _wilcoxon(differences: np.ndarray) -> float:
    if not np.any(differences):  # no difference anywhere: scipy would have nothing to rank
        return 1.0
    # Exact where there are neither zeros nor ties, else the normal approximation; scipy chooses.
    return float(stats.wilcoxon(differences, zero_method="wilcox", method="auto").pvalue)


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
    pairs = _pair_differences(scores)
    raw = [_wilcoxon(difference) if difference.size else 1.0 for _, _, difference in pairs]
    corrected = holm(raw) if raw else np.empty(0)
    return [
        PairedTest(first, second, float(d.mean()) if d.size else math.nan, float(p), bool(p < alpha))
        for (first, second, d), p in zip(pairs, corrected, strict=True)
    ]


@dataclass(frozen=True)
class FriedmanResult:
    """Hold mean ranks (1 is best), the p-value of Friedman's test and Nemenyi's critical difference."""

    mean_ranks: dict[str, float]
    p_value: float
    critical_difference: float

    @property
    def can_differ(self) -> bool:
        """Check whether two mean ranks can differ by as much as the critical difference."""
        return self.critical_difference <= len(self.mean_ranks) - 1


def rank_against_best(
    ranks: Mapping[str, float], tests: Sequence[PairedTest], greater_is_better: bool = True
) -> tuple[MethodRank, ...]:
    """Attach to each mean rank the test of its method against the method with the best mean rank.

    Parameters
    ----------
    ranks : mapping of str to float
        Mean ranks; those that are NaN are left out, and without any there is no best.
    tests : sequence of PairedTest
        Tests of all pairs.
    greater_is_better : bool, default=True
        Whether a larger score is better, for the sign of the differences.

    Examples
    --------
    >>> rank_against_best({"a": 2.0, "b": 1.0}, [PairedTest("a", "b", -0.1, 0.01, True)])[0]
    MethodRank(method='a', mean_rank=2.0, p_value=0.01, significant=True)
    """
    known = {name: rank for name, rank in ranks.items() if not math.isnan(rank)}
    if not known:
        return ()
    best = min(known, key=lambda name: known[name])
    sign = 1.0 if greater_is_better else -1.0
    found = {name: MethodRank(name, rank) for name, rank in known.items()}
    for test in tests:
        other = test.second if test.first == best else test.first
        if best not in (test.first, test.second) or other not in known:
            continue
        ahead = sign * (test.difference if test.first == best else -test.difference)
        found[other] = MethodRank(other, known[other], test.p_value, test.significant and ahead > 0)
    return tuple(found.values())


def friedman_ranks(scores: Mapping[str, Any], alpha: float = 0.05) -> FriedmanResult:
    """Rank the methods on each data set (or split) and compare their mean ranks after Demsar (2006).

    Parameters
    ----------
    scores : mapping of str to array-like of float
        For each method one score per data set, larger is better; ties share a rank.
    alpha : float, default=0.05
        Level of the critical difference.

    Examples
    --------
    >>> friedman_ranks({"a": [3, 3, 3], "b": [2, 2, 1], "c": [1, 1, 2]}).mean_ranks
    {'a': 1.0, 'b': 2.333..., 'c': 2.666...}
    """
    names = list(scores)
    table = np.column_stack([np.asarray(scores[name], dtype=np.float64).ravel() for name in names])
    table = np.round(table, _DIGITS)
    table = table[np.isfinite(table).all(axis=1)]
    n_sets, n_methods = table.shape
    if n_sets == 0:
        return FriedmanResult(dict.fromkeys(names, math.nan), math.nan, math.nan)
    ranks = stats.rankdata(-table, axis=1)
    p_value = math.nan
    if n_methods >= 3 and n_sets >= 2:
        # Where every method ties everywhere there is nothing to test, and scipy would divide by zero.
        tied = np.all(ranks == ranks[:, :1])
        p_value = 1.0 if tied else float(stats.friedmanchisquare(*table.T).pvalue)
    critical = math.nan
    if n_methods >= 2:
        quantile = float(stats.studentized_range.ppf(1 - alpha, n_methods, np.inf)) / math.sqrt(2)
        critical = quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))
    mean_ranks = {name: float(rank) for name, rank in zip(names, ranks.mean(axis=0), strict=True)}
    return FriedmanResult(mean_ranks, p_value, critical)
