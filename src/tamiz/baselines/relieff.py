"""Select by ReliefF for classes, RReliefF for regression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numba import njit

from tamiz.baselines.base import BaselineSelector

# Distances are held for so many pairs of rows at a time (32 MB in float64).
_PAIRS_AT_A_TIME = 4_000_000
# Rows of a block are compared with every other row while that row is in the cache.
_ROWS_AT_A_TIME = 16
_REORDER = {"reassoc", "contract", "nsz"}  # lets the compiler sum in vector lanes; NaN keeps its meaning


def scale_to_unit_range(X: np.ndarray) -> np.ndarray:
    """Scale every column to [0, 1] by its range; constant columns become 0, NaN stays.

    Examples
    --------
    >>> scale_to_unit_range(np.array([[2.0, 5.0], [4.0, 5.0], [3.0, np.nan]])).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, nan]]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a single known value
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    # Halved before the difference, so that a range beyond the largest number does not overflow.
    half_range = high / 2 - low / 2
    half_range[~(half_range > 0)] = np.inf
    return (X / 2 - low / 2) / half_range


@njit(cache=True, nogil=True, fastmath=_REORDER)
def _manhattan(a, b):
    total = a[0] - a[0]
    for f in range(a.size):
        total += abs(a[f] - b[f])
    return total


@njit(cache=True, nogil=True)
def _difference(X, i, j, f, codes, known):
    """Compute |x_if - x_jf|, or its expectation under the class of the row whose value is missing."""
    a, b = X[i, f], X[j, f]
    places, one_missing, both_missing = known
    if np.isnan(a) and np.isnan(b):
        return both_missing[codes[i], codes[j], places[f]]
    if np.isnan(a):
        return one_missing[codes[i], j, places[f]]
    if np.isnan(b):
        return one_missing[codes[j], i, places[f]]
    return abs(a - b)


@njit(cache=True, nogil=True)
def _distance_block(X, first, last, codes, known, out):
    """Write the distances of rows first .. last-1 to all rows into ``out``."""
    for top in range(first, last, _ROWS_AT_A_TIME):
        bottom = min(top + _ROWS_AT_A_TIME, last)
        for j in range(X.shape[0]):
            for i in range(top, bottom):
                if known is None:
                    out[i - first, j] = _manhattan(X[i], X[j])
                else:
                    total = 0.0
                    for f in range(X.shape[1]):
                        total += _difference(X, i, j, f, codes, known)
                    out[i - first, j] = total


@njit(cache=True, nogil=True)
def _nearest_by_class(distances, anchor, codes, k, neighbours, nearness, counts):
    """Find the k nearest rows of every class to the anchor, itself left out; of equal distances the earlier row."""
    counts[:] = 0
    for j in range(distances.size):
        if j == anchor:
            continue
        c, distance = codes[j], distances[j]
        place = counts[c]
        if place == k:
            if distance >= nearness[c, k - 1]:
                continue
            place = k - 1
        else:
            counts[c] += 1
        while place > 0 and nearness[c, place - 1] > distance:
            nearness[c, place] = nearness[c, place - 1]
            neighbours[c, place] = neighbours[c, place - 1]
            place -= 1
        nearness[c, place] = distance
        neighbours[c, place] = j


@njit(cache=True, nogil=True)
def _add_differences(weights, X, i, j, factor, codes, known):
    if known is None:
        a, b = X[i], X[j]
        for f in range(a.size):
            weights[f] += factor * abs(a[f] - b[f])
    else:
        for f in range(X.shape[1]):
            weights[f] += factor * _difference(X, i, j, f, codes, known)


@njit(cache=True, nogil=True)
def _add_block(X, codes, y, k, first, distances, known, sums):
    """Add the anchors of a block to the sums of ReliefF (``y`` None) or RReliefF; return the sum of target differences.

    ReliefF: distant misses count for a feature, distant hits against it.
    """
    priors = np.bincount(codes) / codes.size
    neighbours = np.empty((priors.size, k), dtype=np.int64)
    nearness = np.empty((priors.size, k), dtype=distances.dtype)
    counts = np.empty(priors.size, dtype=np.int64)
    target_sum = 0.0
    for row in range(distances.shape[0]):
        i = first + row
        _nearest_by_class(distances[row], i, codes, k, neighbours, nearness, counts)
        own = codes[i]
        for c in range(priors.size):
            for n in range(counts[c]):
                j = neighbours[c, n]
                if y is None:
                    factor = -1.0 if c == own else priors[c] / (1.0 - priors[own])
                    _add_differences(sums[0], X, i, j, factor / counts[c], codes, known)
                else:
                    share, target = 1.0 / counts[c], abs(y[i] - y[j])
                    target_sum += share * target
                    _add_differences(sums[0], X, i, j, share, codes, known)
                    _add_differences(sums[1], X, i, j, share * target, codes, known)
    return target_sum


def _mean_distance(points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Compute the mean of |p - v| over the sorted values v, for each point p."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    below = np.searchsorted(values, points, side="right")
    lower, upper = points * below - sums[below], sums[-1] - sums[below] - points * (values.size - below)
    return (lower + upper) / values.size


def _expected_differences(X: np.ndarray, codes: np.ndarray, n_classes: int) -> tuple[np.ndarray, ...] | None:
    """Expected differences where one value of a column is missing (class, known row) or both are (class, class).

    Columns with missing values have a place in both tables. A class without a known value borrows those of all rows; a
    column without any tells nothing, its difference is 0. None if nothing is missing.
    """
    incomplete = np.flatnonzero(np.isnan(X).any(axis=0))
    if not incomplete.size:
        return None
    places = np.zeros(X.shape[1], dtype=np.int64)
    places[incomplete] = np.arange(incomplete.size)
    one_missing = np.zeros((n_classes, X.shape[0], incomplete.size))
    both_missing = np.zeros((n_classes, n_classes, incomplete.size))
    for place, f in enumerate(incomplete):
        column, is_known = X[:, f], ~np.isnan(X[:, f])
        if not is_known.any():
            continue
        by_class = [np.sort(column[is_known & (codes == c)]) for c in range(n_classes)]
        by_class = [values if values.size else np.sort(column[is_known]) for values in by_class]
        for c, values in enumerate(by_class):
            one_missing[c, is_known, place] = _mean_distance(column[is_known], values)
            for d, others in enumerate(by_class[: c + 1]):
                both_missing[c, d, place] = both_missing[d, c, place] = _mean_distance(values, others).mean()
    return places, one_missing, both_missing


class ReliefF(BaselineSelector):
    r"""ReliefF: a good feature differs between near rows of different classes and agrees between near rows of one.

    Every row i is an anchor. Among the others the k nearest of each class are found (Manhattan distance over columns
    scaled by their range), and

    .. math:: W_f = \frac{1}{N} \sum_i \Bigl[ \sum_{c \ne y_i} \frac{P(c)}{1 - P(y_i)}
              \frac{1}{k} \sum_{j \in M_c(i)} d_f(i, j) - \frac{1}{k} \sum_{j \in H(i)} d_f(i, j) \Bigr],
              \quad d_f(i, j) = \frac{|x_{if} - x_{jf}|}{\mathrm{range}_f}

    with hits H and misses M. A class with fewer than k other rows gives those it has. Regression is RReliefF with
    k equally weighted neighbours: :math:`W_f = P(\text{differ in } f | \text{differ in } y) - P(\text{differ in } f |
    \text{agree in } y)`, in the probabilistic reading of its paper.

    Missing values (NaN) follow Kononenko's rule, for numbers: where one of two values is missing, :math:`d_f` is its
    expectation over the known values of that row's class; where both are, over both classes. For 0/1 columns that is
    his :math:`1 - P(v | c)`. Columns are numbers throughout; encode categories as 0/1 columns first.

    On continuous data of two classes the scores are those of ``skrebate.ReliefF``. skrebate takes columns of up to
    10 different values for categories, counts ties its own way and weighs the misses of several classes by P(c)
    alone, so it differs a little there.

    Cost: O(N^2 F) time, compiled, O(N F) memory plus one fixed block of distances.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    n_neighbors : int, default=10
        Neighbours k, of each class.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.rows.targets.decide_task` does.

    References
    ----------
    I. Kononenko, E. Šimec, M. Robnik-Šikonja: Overcoming the myopia of inductive learning algorithms with RELIEFF.
    Applied Intelligence 7, 1997.
    M. Robnik-Šikonja, I. Kononenko: Theoretical and empirical analysis of ReliefF and RReliefF. Machine Learning 53,
    2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ReliefF(n_features_to_select=2).fit(X, y).get_support(indices=True).tolist()
    [2, 3]
    """

    n_neighbors: int = 10
    task: str = "auto"

    allows_nan = True

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        X = np.ascontiguousarray(scale_to_unit_range(X))
        n_rows = X.shape[0]
        k = min(int(self.n_neighbors), n_rows - 1)
        regression = self.task_ == "regression"
        codes = np.zeros(n_rows, dtype=np.int64) if regression else y
        target = y / 2 / (y.max() / 2 - y.min() / 2) if regression else None
        known = _expected_differences(X, codes, int(codes.max()) + 1)
        sums, changes = np.zeros((2, X.shape[1])), 0.0
        height = max(1, min(n_rows, _PAIRS_AT_A_TIME // n_rows))
        distances = np.empty((height, n_rows), dtype=X.dtype)
        for first in range(0, n_rows, height):
            last = min(first + height, n_rows)
            _distance_block(X, first, last, codes, known, distances)
            changes += _add_block(X, codes, target, k, first, distances[: last - first], known, sums)
        differ, joint = sums
        if not regression:
            return differ / n_rows
        # Where near rows never differ in the target (or always by its whole range) one of the two shares is empty.
        agree = n_rows - changes
        good = joint / changes if changes > 0 else np.zeros_like(joint)
        return good - ((differ - joint) / agree if agree > 0 else 0.0)
