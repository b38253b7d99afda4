"""Minimum redundancy, maximum relevance."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_selection import f_regression

from tamiz.baselines._base import BaselineSelector, scores_from_order
from tamiz.baselines.fisher import class_moments

# A redundancy below this counts as this much: else one accident of a zero correlation would outweigh all relevance.
_SMALLEST_REDUNDANCY = 1e-3


class MRMR(BaselineSelector):
    r"""Minimum redundancy, maximum relevance: greedy, F statistic over mean correlation (the FCQ scheme).

    The first feature is the one of the largest F statistic with the target; then, one at a time, the feature with
    the largest

    .. math:: \frac{F(f, y)}{\frac{1}{|S|} \sum_{s \in S} |\mathrm{corr}(f, s)|}

    where S holds the features picked so far and corr is Pearson's correlation. Classes use the F statistic of
    ``f_classif``, regression that of ``f_regression``. The score is the place in the order, F for the first; features
    that were not picked follow in the order of the criterion as it stood at the end. The scale of a column does not
    matter.

    Cost: O(M N F) time, O(N F) memory.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many to keep: a number, a fraction in (0, 1), or None for half.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" takes numbers with a fractional part for regression.

    References
    ----------
    C. Ding, H. Peng: Minimum redundancy feature selection from microarray gene expression data. Journal of
    Bioinformatics and Computational Biology 3(2), 2005.

    Examples
    --------
    >>> import numpy as np
    >>> a, b, noise = np.random.default_rng(0).normal(size=(3, 200))
    >>> X = np.column_stack([a, a + noise, b])
    >>> MRMR(n_features_to_select=2).fit(X, a + 0.8 * b).get_support(indices=True).tolist()
    [0, 2]
    """

    method_name = "mrmr"
    _min_samples = 3

    def __init__(self, n_features_to_select: int | float | None = None, *, task: str = "auto") -> None:
        self.n_features_to_select = n_features_to_select
        self.task = task

    def _relevance(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.task_ == "regression":
            # A column that is a multiple of y divides by zero: an infinite F is right.
            with np.errstate(divide="ignore", invalid="ignore"):
                relevance = f_regression(X, y)[0]
        else:
            means, scatter = class_moments(X, y, self.classes_.size)
            counts = np.bincount(y)
            shifts = means - means[0]
            between = counts @ (shifts - counts @ shifts / counts.sum()) ** 2
            within = scatter.sum(axis=0)
            relevance = np.divide(between, within, out=np.where(between > 0, np.inf, 0.0), where=within > 0)
            relevance *= (y.size - counts.size) / (counts.size - 1)
        relevance = np.nan_to_num(relevance, nan=0.0, posinf=np.inf)
        # Infinite ones stay comparable after the division by the redundancy.
        finite = relevance[np.isfinite(relevance)]
        return np.minimum(relevance, 1e6 * max(1.0, finite.max(initial=0.0)))

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        relevance = self._relevance(X, y)
        centred = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        norms = np.sqrt(np.einsum("ij,ij->j", centred, centred, dtype=np.float64))
        unit = np.divide(centred, norms.astype(X.dtype), out=np.zeros_like(centred), where=norms > 0)
        picked = [int(np.argmax(relevance))]
        redundancy = np.zeros(X.shape[1])
        open_ = np.ones(X.shape[1], dtype=bool)
        open_[picked[0]] = False
        while True:
            redundancy += np.abs(unit[:, picked[-1]] @ unit)
            criterion = relevance / np.maximum(redundancy / len(picked), _SMALLEST_REDUNDANCY)
            criterion[~open_] = -np.inf
            if len(picked) == self.n_features_to_select_:
                break
            picked.append(int(np.argmax(criterion)))
            open_[picked[-1]] = False
        rest = np.argsort(-criterion, kind="stable")[: X.shape[1] - len(picked)]
        return scores_from_order(np.concatenate([picked, rest]).astype(np.int64))
