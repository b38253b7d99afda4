"""Tests that compare methods: Wilcoxon over splits, Holm over pairs, Friedman and Nemenyi over ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class PairedTest:
    """Hold a Wilcoxon signed-rank test of two methods over the same splits.

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
    """

    first: str
    second: str
    difference: float
    p_value: float
    significant: bool = False
    n_features: int | None = None


@dataclass(frozen=True)
class MethodRank:
    """Hold the mean rank of a method (1 is best) and its test against the method with the best mean rank.

    ``p_value`` is None for the best method itself.
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
    names = list(scores)
    arrays = {name: np.asarray(scores[name], dtype=np.float64).ravel() for name in names}
    if len({array.size for array in arrays.values()}) > 1:
        raise ValueError("All methods must be scored on the same splits.")
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    differences = []
    for first, second in pairs:
        difference = arrays[first] - arrays[second]
        differences.append(difference[np.isfinite(difference)])
    raw = [_wilcoxon(difference) if difference.size else 1.0 for difference in differences]
    corrected = holm(raw) if raw else np.empty(0)
    return [
        PairedTest(first, second, float(d.mean()) if d.size else math.nan, float(p), bool(p < alpha))
        for (first, second), d, p in zip(pairs, differences, corrected, strict=True)
    ]


@dataclass(frozen=True)
class FriedmanResult:
    """Hold mean ranks (1 is best), the p-value of Friedman's test and Nemenyi's critical difference."""

    mean_ranks: dict[str, float]
    p_value: float
    critical_difference: float


def rank_against_best(ranks: Mapping[str, float], tests: Sequence[PairedTest]) -> tuple[MethodRank, ...]:
    """Attach to each mean rank the test of its method against the method with the best mean rank.

    Parameters
    ----------
    ranks : mapping of str to float
        Mean ranks.
    tests : sequence of PairedTest
        Tests of all pairs.

    Examples
    --------
    >>> rank_against_best({"a": 2.0, "b": 1.0}, [PairedTest("a", "b", -0.1, 0.01, True)])[0]
    MethodRank(method='a', mean_rank=2.0, p_value=0.01, significant=True)
    """
    best = min(ranks, key=lambda name: (math.isnan(ranks[name]), ranks[name]))
    against = {
        test.second if test.first == best else test.first: test for test in tests if best in (test.first, test.second)
    }
    return tuple(
        MethodRank(name, rank, against[name].p_value, against[name].significant)
        if name in against
        else MethodRank(name, rank)
        for name, rank in ranks.items()
    )


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
