"""Scores of predictions, stability of selections, and the statistics that compare methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


def balanced_accuracy(y_true: Any, y_predicted: Any) -> float:
    """The mean, over the classes that occur in ``y_true``, of the share of their rows that was recognised.

    scikit-learn's function warns when a class is predicted that the (small) test fold does not hold; here
    that is an ordinary event.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 1, 1])
    0.8333333333333333
    """
    y_true, y_predicted = np.asarray(y_true), np.asarray(y_predicted)
    if y_true.size == 0:
        raise ValueError("There are no rows to score.")
    _, codes = np.unique(y_true, return_inverse=True)
    hits = np.bincount(codes, weights=y_true == y_predicted)
    return float(np.mean(hits / np.bincount(codes)))


def r_squared(y_true: Any, y_predicted: Any) -> float:
    """The share of the variance that is explained; NaN where the target does not vary.

    Examples
    --------
    >>> r_squared([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), r_squared([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    (1.0, 0.0)
    """
    y_true, y_predicted = np.asarray(y_true, dtype=np.float64), np.asarray(y_predicted, dtype=np.float64)
    total = float(np.sum((y_true - y_true.mean()) ** 2))
    return 1.0 - float(np.sum((y_true - y_predicted) ** 2)) / total if total > 0 else math.nan


def _as_supports(supports: Any) -> np.ndarray:
    array = np.asarray(supports, dtype=bool)
    if array.ndim != 2 or array.shape[0] < 2:
        raise ValueError(f"Stability needs at least two selections, one a row; got shape {array.shape}.")
    return array


def nogueira_stability(supports: Any) -> float:
    """How alike several selections are, after Nogueira, Sechidis and Brown (JMLR 18, 2018); 1: the same.

    0 is what random selections of the same sizes give on average. The sizes may differ. When every one keeps
    all features (or none) there is nothing to choose, and the answer is NaN.

    Parameters
    ----------
    supports : array-like of bool, shape (n_selections, n_features)
        One selection a row.

    Examples
    --------
    >>> nogueira_stability([[1, 1, 0, 0], [1, 1, 0, 0]])
    1.0
    """
    chosen = _as_supports(supports)
    n_selections, n_features = chosen.shape
    share = chosen.mean(axis=0)
    variance = n_selections / (n_selections - 1) * share * (1 - share)
    mean_size = float(chosen.sum(axis=1).mean())
    by_chance = mean_size / n_features * (1 - mean_size / n_features)
    if by_chance == 0:
        return math.nan
    return float(1 - variance.mean() / by_chance)


def kuncheva_index(supports: Any) -> float:
    """Kuncheva's consistency index (2007), the mean over all pairs of selections of one and the same size.

    For a pair that shares r of k features out of F it is (r F - k^2) / (k (F - k)).

    Examples
    --------
    >>> kuncheva_index([[1, 1, 0, 0], [1, 0, 1, 0]])
    0.0
    """
    chosen = _as_supports(supports)
    sizes = chosen.sum(axis=1)
    if np.any(sizes != sizes[0]):
        raise ValueError("Kuncheva's index needs selections of one size; use nogueira_stability for others.")
    n_selections, n_features = chosen.shape
    size = int(sizes[0])
    if size in (0, n_features):
        return math.nan
    # The number of selections that hold a feature tells how many pairs share it, without looping over pairs.
    holders = chosen.sum(axis=0)
    shared = float(np.sum(holders * (holders - 1) / 2)) / (n_selections * (n_selections - 1) / 2)
    return float((shared * n_features - size**2) / (size * (n_features - size)))


@dataclass(frozen=True)
class Interval:
    """A mean with a confidence interval (``low`` and ``high`` are NaN for a single value)."""

    mean: float
    low: float
    high: float


def corrected_interval(
    values: Any,
    test_share: float,
    confidence: float = 0.95,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """The interval of Nadeau and Bengio (2003) for the mean of scores (or their differences) over resamples.

    Folds share training rows, so their scores are correlated and the plain t interval is too narrow. The
    corrected one multiplies the variance by ``1/n + test_share / (1 - test_share)`` instead of ``1/n``.

    Parameters
    ----------
    values : array-like of float
        One number for each fold or resample.
    test_share : float
        The share of the rows that each fold tests on.
    confidence : float, default=0.95
        How sure the interval shall be.
    limits : tuple of float
        The lowest and highest value there can be; the interval is cut there.

    Examples
    --------
    >>> corrected_interval([0.8, 0.9, 1.0], test_share=1 / 3, limits=(0, 1))
    Interval(mean=0.9, low=0.50..., high=1)
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    array = array[np.isfinite(array)]
    if array.size == 0:
        return Interval(math.nan, math.nan, math.nan)
    mean = float(array.mean())
    if array.size == 1:
        return Interval(mean, math.nan, math.nan)
    variance = float(array.var(ddof=1)) * (1 / array.size + test_share / (1 - test_share))
    reach = float(stats.t.ppf(0.5 + confidence / 2, array.size - 1)) * math.sqrt(variance)
    return Interval(mean, max(limits[0], mean - reach), min(limits[1], mean + reach))


@dataclass(frozen=True)
class PairedTest:
    """A Wilcoxon signed-rank test of two methods; ``p_value`` is corrected after Holm over all pairs."""

    first: str
    second: str
    difference: float
    p_value: float
    significant: bool


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """p-values corrected for being many, after Holm (1979).

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
    if not np.any(differences):  # all alike: no evidence, and scipy would have nothing to rank
        return 1.0
    # Exact where there are neither zeros nor ties, else the normal approximation; scipy chooses.
    return float(stats.wilcoxon(differences, zero_method="wilcox", method="auto").pvalue)


def wilcoxon_pairs(scores: Mapping[str, Any], alpha: float = 0.05) -> list[PairedTest]:
    """Wilcoxon signed-rank tests of all pairs of methods over the same splits, corrected after Holm.

    Parameters
    ----------
    scores : mapping of str to array-like of float
        For each method one score a split, in the same order of splits. Splits where either has NaN are left
        out.
    alpha : float, default=0.05
        The level under which a difference is marked.

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
    """Mean ranks (1 is best), the p-value of Friedman's test, and the critical difference after Nemenyi."""

    mean_ranks: dict[str, float]
    p_value: float
    critical_difference: float


def friedman_ranks(scores: Mapping[str, Any], alpha: float = 0.05) -> FriedmanResult:
    """Rank the methods on each data set (or split) and compare the mean ranks, as Demsar (2006) does.

    Parameters
    ----------
    scores : mapping of str to array-like of float
        For each method one score a data set, larger is better; ties share a rank.
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
