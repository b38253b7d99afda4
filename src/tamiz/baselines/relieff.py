"""Select by ReliefF for classes, RReliefF for regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamiz._utils.compiling import njit
from tamiz.baselines.base import BaselineSelector

# Distances are held for so many pairs of rows at a time (32 MB in float64).
_PAIRS_AT_A_TIME = 4_000_000
# Rows of a block are compared with every other row while that row is in the cache.
_ROWS_AT_A_TIME = 16
_REORDER = {"reassoc", "contract", "nsz"}  # lets the compiler sum in vector lanes; NaN keeps its meaning


def scale_to_unit_range(X: np.ndarray) -> np.ndarray:
    """Scale every column to [0, 1] by its range; constant columns become 0.

    Examples
    --------
    >>> scale_to_unit_range(np.array([[2.0, 5.0], [4.0, 5.0], [3.0, 5.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    """
    low, high = X.min(axis=0), X.max(axis=0)
    # Halved before the difference, so that a range beyond the largest number does not overflow.
    half_range = high / 2 - low / 2
    half_range[half_range == 0] = np.inf
    return (X / 2 - low / 2) / half_range


@njit(nogil=True, fastmath=_REORDER)
def _manhattan(a, b):
    total = a[0] - a[0]
    for f in range(a.size):
        total += abs(a[f] - b[f])
    return total


@njit(nogil=True)
def _distance_block(X, first, last, out):
    """Write the distances of rows first .. last-1 to all rows into ``out``."""
    for top in range(first, last, _ROWS_AT_A_TIME):
        bottom = min(top + _ROWS_AT_A_TIME, last)
        for j in range(X.shape[0]):
            for i in range(top, bottom):
                out[i - first, j] = _manhattan(X[i], X[j])


@njit(nogil=True)
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


@njit(nogil=True)
def _add_differences(weights, a, b, factor):
    for f in range(a.size):
        weights[f] += factor * abs(a[f] - b[f])


@njit(nogil=True)
def _add_block(X, codes, y, k, first, distances, sums):
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
                    _add_differences(sums[0], X[i], X[j], factor / counts[c])
                else:
                    share, target = 1.0 / counts[c], abs(y[i] - y[j])
                    target_sum += share * target
                    _add_differences(sums[0], X[i], X[j], share)
                    _add_differences(sums[1], X[i], X[j], share * target)
    return target_sum


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

    Columns are numbers throughout; encode categories as 0/1 columns first.

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

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        X = np.ascontiguousarray(scale_to_unit_range(X))
        n_rows = X.shape[0]
        k = min(int(self.n_neighbors), n_rows - 1)
        regression = self.task_ == "regression"
        codes = np.zeros(n_rows, dtype=np.int64) if regression else y
        target = y / 2 / (y.max() / 2 - y.min() / 2) if regression else None
        sums, changes = np.zeros((2, X.shape[1])), 0.0
        height = max(1, min(n_rows, _PAIRS_AT_A_TIME // n_rows))
        distances = np.empty((height, n_rows), dtype=X.dtype)
        for first in range(0, n_rows, height):
            last = min(first + height, n_rows)
            _distance_block(X, first, last, distances)
            changes += _add_block(X, codes, target, k, first, distances[: last - first], sums)
        differ, joint = sums
        if not regression:
            return differ / n_rows
        # Where near rows never differ in the target (or always by its whole range) one of the two shares is empty.
        agree = n_rows - changes
        good = joint / changes if changes > 0 else np.zeros_like(joint)
        return good - ((differ - joint) / agree if agree > 0 else 0.0)
