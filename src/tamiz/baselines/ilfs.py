"""Select by infinite latent feature selection."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from tamiz.baselines._base import POSITIVE_INTEGER, BaselineSelector
from tamiz.baselines.fisher import class_moments

# Columns are quantised so many at a time, to bound the memory.
_COLUMNS_AT_A_TIME = 2048
# Slope of the tokens' starting probabilities: from this weight down to 1.
_STEEPEST = 5000.0
_DAMPING = 0.99
# Shares that differ by less are equal but for rounding, as where the classes have the same mean.
_ROUNDING = 1e-9


def own_class_share(X: np.ndarray, codes: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the squared distance of each entry to its own class's mean, as a share of those to all classes' means.

    Near 0 where the entry is typical of its own class; 1/C for an entry that equals every mean.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [4.0]])
    >>> own_class_share(X, np.array([0, 0, 1]), np.array([[0.0], [4.0]])).ravel().round(3).tolist()
    [0.0, 0.1, 0.0]
    """
    total = np.zeros(X.shape)
    own = np.empty(X.shape)
    for c in range(means.shape[0]):
        squares = (X - means[c]) ** 2
        total += squares
        own[codes == c] = squares[codes == c]
    return np.divide(own, total, out=np.full(X.shape, 1.0 / means.shape[0]), where=total > 0)


def count_tokens(shares: np.ndarray, n_tokens: int) -> np.ndarray:
    """Return the histogram of every column over its own range, one row per column.

    Equal shares have no range: all 0 is a perfect column, lowest token; all 1/C an uninformative one, highest token.

    Examples
    --------
    >>> count_tokens(np.array([[0.0, 0.5], [0.2, 0.5], [0.8, 0.5]]), 4).tolist()
    [[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 3.0]]
    """
    low, high = shares.min(axis=0), shares.max(axis=0)
    flat = high - low < _ROUNDING
    low, width = np.where(flat, 0.0, low), np.where(flat, 1.0, high - low)
    tokens = np.minimum(((shares - low) / width * n_tokens).astype(np.int64), n_tokens - 1)
    tokens[:, flat] = np.where(high[flat] < _ROUNDING, 0, n_tokens - 1)
    counts = np.bincount((tokens + n_tokens * np.arange(shares.shape[1])).ravel(), minlength=n_tokens * shares.shape[1])
    return counts.reshape(shares.shape[1], n_tokens).astype(np.float64)


def relevance_by_em(counts: np.ndarray, n_rounds: int) -> np.ndarray:
    """Estimate p(relevant | feature) from token counts: probabilistic latent semantic analysis with two factors.

    The factor "relevant" starts on the low tokens (entries near their own class), the other one on the high ones.
    """
    n_tokens = counts.shape[1]
    n_samples = counts.sum(axis=1)
    weights = np.linspace(_STEEPEST, 1.0, n_tokens)
    relevant = weights / weights.sum()  # p(token | relevant)
    other = relevant[::-1].copy()  # p(token | not relevant)
    share = counts[:, -(round(0.35 * n_tokens) + 1) :].sum(axis=1) / n_samples  # p(relevant | feature)
    # Off 0 and 1, from where EM would never move: a perfect feature has all its samples in the lowest bin.
    share = np.clip(share, 0.5 / n_samples, 1.0 - 0.5 / n_samples)
    for _ in range(n_rounds):
        joint = share[:, None] * relevant
        evidence = joint + (1.0 - share)[:, None] * other
        for_relevant = counts * np.divide(joint, evidence, out=np.zeros_like(joint), where=evidence > 0)
        for_other = np.where(evidence > 0, counts - for_relevant, 0.0)
        share = np.minimum(for_relevant.sum(axis=1) / n_samples, 1.0)
        # A factor that no token is left for keeps its distribution.
        if for_relevant.any():
            relevant = for_relevant.sum(axis=0) / for_relevant.sum()
        if for_other.any():
            other = for_other.sum(axis=0) / for_other.sum()
    return share


def rank_one_path_energy(p: np.ndarray) -> np.ndarray:
    r"""Return :math:`((I - rA)^{-1} - I)\mathbf{1}`, the row sums of the power series of A = p p^T, r = 0.99 / p.p.

    By the formula of Sherman and Morrison the sum is r p (sum p) / (1 - r p.p), so only a factor away from p.

    Examples
    --------
    >>> p = np.array([1.0, 0.5])
    >>> A = np.outer(p, p)
    >>> series = np.linalg.inv(np.eye(2) - 0.99 / (p @ p) * A) - np.eye(2)
    >>> np.allclose(series.sum(axis=1), rank_one_path_energy(p))
    True
    """
    length = p @ p
    if length == 0:
        return np.zeros_like(p)
    return _DAMPING / length * p.sum() / (1.0 - _DAMPING) * p


class ILFS(BaselineSelector):
    r"""Select by infinite latent feature selection: paths through a graph whose edges are learnt from the classes.

    1. *Discriminative quantisation*: for each entry, its squared distance to the mean of its own class as a share of
       those to all classes' means; a histogram of T equal bins (tokens) over the range of each feature's shares.
    2. *Latent variable*: p(relevant | feature) by EM of a model with two factors over the tokens; "relevant" starts
       on the low tokens.
    3. *Power series* over the graph :math:`A = p p^\top`, as in InfFS with :math:`r = 0.99 / \lambda_{\max}`. That
       graph has rank one, so the sum is :math:`99\, p\, (\sum p) / (p^\top p)`: no F x F matrix is needed, and the
       order is that of p.

    p reaches 1 for many features, which then tie at the top; as everywhere, the column further left comes first. The
    scale of a column does not matter.

    Cost: O(C N F) time, O(T F) memory besides X. Classes only.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    n_tokens : int, default=6
        Bins T of the histograms.
    n_rounds : int, default=35
        Rounds of EM. Together with the range of the histograms they decide the result; see the page on baselines.

    Attributes
    ----------
    relevance_ : ndarray of shape (n_features_in_,)
        p(relevant | feature); the scores are a multiple of it.

    References
    ----------
    G. Roffo, S. Melzi, U. Castellani, A. Vinciarelli: Infinite latent feature selection: a probabilistic latent
    graph-based ranking approach. ICCV 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ILFS(n_features_to_select=2).fit(X, y).get_support(indices=True).tolist()
    [2, 3]
    """

    method_name = "ilfs"
    title = "ILFS"
    tasks = ("classification",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "n_tokens": [Interval(Integral, 2, None, closed="left")],
        "n_rounds": POSITIVE_INTEGER,
    }

    def __init__(
        self, n_features_to_select: int | float | None = None, *, n_tokens: int = 6, n_rounds: int = 35
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_tokens = n_tokens
        self.n_rounds = n_rounds

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        means, _ = class_moments(X, y, self.classes_.size)
        counts = np.empty((X.shape[1], self.n_tokens))
        for first in range(0, X.shape[1], _COLUMNS_AT_A_TIME):
            block = slice(first, first + _COLUMNS_AT_A_TIME)
            counts[block] = count_tokens(own_class_share(X[:, block], y, means[:, block]), self.n_tokens)
        self.relevance_ = relevance_by_em(counts, self.n_rounds)
        return rank_one_path_energy(self.relevance_)

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": int(self.n_rounds)}
