"""Compute the Fisher score: variance between the classes over variance within them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.compiling import njit
from tamiz.baselines.base import BaselineSelector
from tamiz.core.step import writeable_view


@njit(nogil=True)
def _dense_moments(X, codes, means, scatter):
    """Fill class means and scatter in one pass, after Welford (1962): no cancellation, zero stays zero."""
    counts = np.zeros(means.shape[0])
    for i in range(codes.size):
        c = codes[i]
        counts[c] += 1.0
        share = 1.0 / counts[c]
        row, mean, spread = X[i], means[c], scatter[c]
        for f in range(row.size):
            deviation = row[f] - mean[f]
            moved = mean[f] + deviation * share
            spread[f] += deviation * (row[f] - moved)
            mean[f] = moved


def class_moments(X: Any, codes: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute class means (C, F) and sums of squared deviations from them (C, F), in float64.

    Examples
    --------
    >>> means, scatter = class_moments(np.array([[1.0], [3.0], [7.0]]), np.array([0, 0, 1]), 2)
    >>> means.ravel().tolist(), scatter.ravel().tolist()
    ([2.0, 7.0], [2.0, 0.0])
    """
    means, scatter = np.zeros((2, n_classes, X.shape[1]))
    if not sp.issparse(X):
        _dense_moments(writeable_view(X), codes, means, scatter)
        return means, scatter
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    for c in range(n_classes):  # at the cost of the non-zeros: what the zeros add has a closed form
        rows = X[codes == c].astype(np.float64)
        count = partial(np.bincount, rows.indices, minlength=X.shape[1])
        means[c] = count(weights=rows.data) / rows.shape[0]
        scatter[c] = count(weights=(rows.data - means[c, rows.indices]) ** 2)
        scatter[c] += (rows.shape[0] - count()) * means[c] ** 2
    return means, scatter


def between_over_within(means: np.ndarray, scatter: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Compute the Fisher score from class means, sums of squares within the classes and class sizes.

    Examples
    --------
    >>> means, scatter = np.array([[1.0, 5.0], [5.0, 6.0]]), np.array([[2.0, 0.0], [2.0, 0.0]])
    >>> between_over_within(means, scatter, np.array([2, 2])).tolist()
    [4.0, inf]
    """
    # Measured from the first class's mean, so that equal means give exactly zero and not a rounding error.
    shifts = means - means[0]
    between = counts @ (shifts - counts @ shifts / counts.sum()) ** 2
    within = scatter.sum(axis=0)
    return np.divide(between, within, out=np.where(between > 0, np.inf, 0.0), where=within > 0)


class FisherScore(BaselineSelector):
    r"""Fisher score: how far apart the class means lie, measured in the spread within the classes.

    In the form of He, Cai and Niyogi, for feature :math:`f` with class sizes :math:`n_c`, class means
    :math:`\mu_{cf}` and (population) class variances :math:`\sigma_{cf}^2`:

    .. math:: \mathrm{score}_f = \frac{\sum_c n_c (\mu_{cf} - \mu_f)^2}{\sum_c n_c \sigma_{cf}^2}

    It is the F statistic of ``sklearn.feature_selection.f_classif`` up to a factor that is the same for all
    features, :math:`F = \mathrm{score} \cdot (N - C) / (C - 1)`, hence the same order. A column that is constant
    within every class but not over all scores infinity, a constant column 0. The scale of a column does not matter.

    Cost: one pass over X, O(N F) time (for sparse X, the number of non-zeros), O(C F) memory. Classes only.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.

    References
    ----------
    X. He, D. Cai, P. Niyogi: Laplacian score for feature selection. NIPS 18, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = FisherScore(n_features_to_select=2).fit(X, y)
    >>> selector.ranking_.tolist(), selector.transform(X).shape
    ([3, 4, 1, 2], (150, 2))
    """

    accepts_sparse = ("csr",)
    tasks = ("classification",)

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        means, scatter = class_moments(X, y, self.classes_.size)
        return between_over_within(means, scatter, np.bincount(y))
