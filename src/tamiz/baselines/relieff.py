"""Select by ReliefF for classes, RReliefF for regression."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from tamiz.baselines import relief_kernels as kernels
from tamiz.baselines.base import POSITIVE_INTEGER, TASK, BaselineSelector

# Distances are held for so many pairs of rows at a time (32 MB in float64).
_PAIRS_AT_A_TIME = 4_000_000


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


def _known_values(X: np.ndarray, codes: np.ndarray, n_classes: int) -> tuple[np.ndarray, ...]:
    """Return sorted known values of each class and feature, with running sums; the last segment is that of all rows.

    ``starts[c, f]`` and ``ends[c, f]`` bound class c in column f; a class without a known value borrows all rows'.
    """
    n_features = X.shape[1]
    segments = [X[codes == c] for c in range(n_classes)] + [X]
    ordered = np.concatenate([np.sort(segment, axis=0) for segment in segments])  # NaN goes last
    sizes = np.array([segment.shape[0] for segment in segments])
    starts = np.repeat((np.cumsum(sizes) - sizes)[:, None], n_features, axis=1)
    ends = starts + np.stack([np.count_nonzero(~np.isnan(segment), axis=0) for segment in segments])
    empty = ends[:-1] == starts[:-1]
    starts[:-1][empty] = np.broadcast_to(starts[-1], empty.shape)[empty]
    ends[:-1][empty] = np.broadcast_to(ends[-1], empty.shape)[empty]
    sums = np.zeros((ordered.shape[0] + 1, n_features))
    np.cumsum(np.nan_to_num(ordered), axis=0, out=sums[1:])
    # A column without any known value tells nothing: its difference is always 0.
    nothing = ends[-1] == starts[-1]
    ordered[:, nothing], ends[:, nothing] = 0.0, starts[:, nothing] + 1
    return starts, ends, ordered, sums


def _mean_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the mean of |v - w| over all v of a and w of b, both sorted."""
    sums = np.concatenate([[0.0], np.cumsum(b)])
    below = np.searchsorted(b, a, side="right")
    return float(np.mean(a * below - sums[below] + (sums[-1] - sums[below]) - a * (b.size - below)) / b.size)


def missing_value_tables(X: np.ndarray, codes: np.ndarray, n_classes: int) -> tuple[np.ndarray, ...]:
    """Return the tables from which the kernels compute the expected difference to a missing value."""
    starts, ends, ordered, sums = _known_values(X, codes, n_classes)
    both_missing = np.zeros((n_classes, n_classes, X.shape[1]))
    for f in np.flatnonzero(np.isnan(X).any(axis=0)):
        values = [ordered[starts[c, f] : ends[c, f], f] for c in range(n_classes)]
        for c in range(n_classes):
            for d in range(c + 1):
                both_missing[c, d, f] = both_missing[d, c, f] = _mean_difference(values[c], values[d])
    return starts, ends, ordered, sums, both_missing


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

    method_name = "relieff"
    title = "ReliefF"
    allows_nan = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "n_neighbors": POSITIVE_INTEGER,
        "task": TASK,
    }

    def __init__(
        self, n_features_to_select: int | float | None = None, *, n_neighbors: int = 10, task: str = "auto"
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors
        self.task = task

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        k = min(int(self.n_neighbors), X.shape[0] - 1)
        X = np.ascontiguousarray(scale_to_unit_range(X))
        missing = bool(np.isnan(X).any())
        if self.task_ == "classification":
            return self._classification(X, y, k, missing)
        return self._regression(X, y / 2 / (y.max() / 2 - y.min() / 2), k, missing)

    def _blocks(self, X: np.ndarray, codes: np.ndarray, n_classes: int, missing: bool) -> Any:
        """Yield first row and distances, block after block, and the tables for missing values."""
        if missing:
            known = missing_value_tables(X, codes, n_classes)
        else:
            nothing = np.zeros((0, 0), dtype=np.int64)
            known = (nothing, nothing, X[:0], np.zeros((0, 0)), np.zeros((0, 0, 0)))
        height = max(1, min(X.shape[0], _PAIRS_AT_A_TIME // X.shape[0]))
        distances = np.empty((height, X.shape[0]), dtype=X.dtype)
        for first in range(0, X.shape[0], height):
            last = min(first + height, X.shape[0])
            if missing:
                kernels.distance_block_missing(X, first, last, distances, codes, known)
            else:
                kernels.distance_block(X, first, last, distances)
            yield first, distances[: last - first], known

    def _classification(self, X: np.ndarray, codes: np.ndarray, k: int, missing: bool) -> np.ndarray:
        priors = np.bincount(codes) / codes.size
        weights = np.zeros(X.shape[1])
        for first, distances, known in self._blocks(X, codes, priors.size, missing):
            kernels.classification_block(X, codes, priors, k, first, distances, known, missing, weights)
        return weights / X.shape[0]

    def _regression(self, X: np.ndarray, y: np.ndarray, k: int, missing: bool) -> np.ndarray:
        differ, joint, target = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0
        for first, distances, known in self._blocks(X, np.zeros(y.size, dtype=np.int64), 1, missing):
            target += kernels.regression_block(X, y, k, first, distances, known, missing, differ, joint)
        # Where near rows never differ in the target (or always by its whole range) one of the two shares is empty.
        agree = X.shape[0] - target
        good = joint / target if target > 0 else np.zeros_like(joint)
        return good - ((differ - joint) / agree if agree > 0 else 0.0)
