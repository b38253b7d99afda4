"""Select by paths through the graph of all features: InfFS and ILFS."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg, eigsh
from scipy.stats import rankdata
from sklearn.utils._param_validation import Interval

from tamiz.baselines.base import BaselineSelector
from tamiz.baselines.fisher import class_moments
from tamiz.baselines.relieff import scale_to_unit_range
from tamiz.errors import DivergenceError

# Columns are ranked and quantised so many at a time, and correlations kept in square blocks of so many.
_BLOCK = 2048
# Up to so many bytes of correlations are kept (the upper half, in float32: 29,000 columns); beyond that they are
# computed anew in every product, which costs time but no memory.
_MEMORY_FOR_CORRELATIONS = 1_700_000_000
_DAMPING = 0.99
# Small tables afford float64.
_FLOAT64_UP_TO = 1024


def unit_ranks(X: np.ndarray, dtype: Any) -> np.ndarray:
    """Rank each column, centred, of length one: inner products of columns are Spearman's correlations.

    A constant column becomes zeros, so that its correlations, which do not exist, count as 0.
    """
    ranks = np.empty(X.shape, dtype=dtype, order="F")
    for first in range(0, X.shape[1], _BLOCK):  # rankdata works in float64: not on the whole table at once
        block = rankdata(X[:, first : first + _BLOCK], axis=0)
        block -= (X.shape[0] + 1) / 2
        lengths = np.sqrt(np.einsum("ij,ij->j", block, block))
        block /= np.where(lengths > 0, lengths, 1.0)
        ranks[:, first : first + _BLOCK] = block
    return ranks


class FeatureGraph:
    """Multiply with the matrix A of InfFS without writing it out.

    A = alpha (1 - |Spearman|) + (1 - alpha) max(s_i, s_j), where s are the standard deviations moved and scaled to
    [0, 1]. The second part is a sum over sorted columns; the first needs the correlations, kept as the upper half of
    blocks.
    """

    def __init__(self, X: np.ndarray, alpha: float) -> None:
        self.alpha = alpha
        self.n_features = X.shape[1]
        dtype = np.float64 if self.n_features <= _FLOAT64_UP_TO else np.float32
        self.ranks = unit_ranks(X, dtype)
        spread = X.std(axis=0, ddof=1, dtype=np.float64)
        gap = np.ptp(spread)
        # Columns that vary alike up to rounding have no sigma at all.
        self.spread = (spread - spread.min()) / gap if gap > 1e-12 * spread.max() else np.zeros_like(spread)
        self.order = np.argsort(self.spread, kind="stable")
        kept = self.n_features * (self.n_features + _BLOCK) // 2 * np.dtype(dtype).itemsize
        self.blocks = list(self._make_blocks()) if kept <= _MEMORY_FOR_CORRELATIONS else None

    def _make_blocks(self) -> Iterator[tuple[slice, slice, np.ndarray]]:
        for top in range(0, self.n_features, _BLOCK):
            rows = slice(top, min(top + _BLOCK, self.n_features))
            for left in range(top, self.n_features, _BLOCK):
                columns = slice(left, min(left + _BLOCK, self.n_features))
                block = self.ranks[:, rows].T @ self.ranks[:, columns]
                yield rows, columns, np.abs(block, out=block)

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Multiply A with a vector."""
        vector = np.asarray(vector, dtype=np.float64).ravel()
        # The sums over j of max(s_i, s_j) v_j: sorted by s, all j up to i count with s_i, the others with their own.
        spread, ordered = self.spread[self.order], vector[self.order]
        weighted = spread * ordered
        result, correlated = np.zeros((2, self.n_features))
        result[self.order] = (1.0 - self.alpha) * (spread * np.cumsum(ordered) + weighted.sum() - np.cumsum(weighted))
        if self.alpha > 0:
            narrow = vector.astype(self.ranks.dtype)
            for rows, columns, block in self._make_blocks() if self.blocks is None else self.blocks:
                correlated[rows] += block @ narrow[columns]
                if rows != columns:  # the lower half is the upper one transposed
                    correlated[columns] += narrow[rows] @ block
            result += self.alpha * (vector.sum() - correlated)
        return result


def largest_eigenvalue(times: Any, size: int) -> float:
    """Compute the largest eigenvalue of a symmetric matrix without negative entries.

    By power iteration, or by Lanczos' method if that is slow. The largest eigenvalue of these graphs stands far above the
    others, so a few products do; the Rayleigh quotient is exact to the square of the vector's error.
    """
    vector = np.ones(size) / np.sqrt(size)
    for _ in range(30):
        image = times(vector)
        estimate = float(vector @ image)
        # Where the vector swings between two directions the quotient stands still, but this residual does not fall.
        if np.linalg.norm(image - estimate * vector) <= 1e-5 * abs(estimate):
            return estimate
        vector = image / np.linalg.norm(image)
    operator = LinearOperator((size, size), matvec=times, dtype=np.float64)
    return float(eigsh(operator, k=1, which="LA", v0=vector, return_eigenvectors=False)[0])


def path_energy(times: Any, size: int) -> np.ndarray:
    """Compute the row sums of A r + (A r)^2 + ... = (I - r A)^-1 - I, with r = 0.99 / largest eigenvalue of A."""
    largest = largest_eigenvalue(times, size)
    if largest <= 0:
        return np.zeros(size)
    r = _DAMPING / largest
    operator = LinearOperator((size, size), matvec=lambda v: v - r * times(v), dtype=np.float64)
    solution, failed = cg(operator, np.ones(size), rtol=1e-9, maxiter=1000)
    if failed:
        raise DivergenceError("The power series of InfFS did not settle; scale the columns of X first.")
    return solution - 1.0


class InfFS(BaselineSelector):
    r"""Infinite feature selection: a feature is good if it varies and repeats little of the others. Unsupervised.

    Features are the nodes of a graph with edges

    .. math:: A_{ij} = \alpha\, (1 - |\rho_{ij}|) + (1 - \alpha)\, \sigma_{ij}

    :math:`\rho` being Spearman's correlation (0 where it does not exist) and :math:`\sigma_{ij} = \max(s_i, s_j)` the
    larger standard deviation, moved and scaled to [0, 1] over the whole matrix. The score adds up paths of every
    length, :math:`\sum_{l \ge 1} (rA)^l \mathbf{1} = ((I - rA)^{-1} - I)\mathbf{1}` with :math:`r = 0.99 /
    \lambda_{\max}(A)`. Only these row sums are wanted, so one system is solved by conjugate gradients and the
    eigenvalue found by Lanczos' method; no inverse is formed.

    Columns are first scaled to [0, 1] (``scale=True``), as in the runs of the paper that compares E2E-FS with it:
    :math:`\sigma` depends on the units of the columns, and without scaling the largest unit wins.

    Cost: O(N F^2) time; half an F x F matrix in float32 (0.9 GB for 20,000 columns), or none beyond 29,000 columns,
    where blocks are computed anew in each of the twenty or so products.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    alpha : float in [0, 1], default=0.5
        Weight of the correlations against that of the standard deviations.
    scale : bool, default=True
        Whether columns are scaled to [0, 1] first.

    References
    ----------
    G. Roffo, S. Melzi, M. Cristani: Infinite feature selection. ICCV 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> selector = InfFS(n_features_to_select=4).fit(load_wine().data)
    >>> selector.get_support(indices=True).size
    4
    """

    alpha: float = 0.5
    scale: bool = True

    uses_target = False
    _parameter_constraints: ClassVar = {"alpha": [Interval(Real, 0, 1, closed="both")], "scale": ["boolean"]}

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        graph = FeatureGraph(scale_to_unit_range(X) if self.scale else X, float(self.alpha))
        return path_energy(graph.times, graph.n_features)


# Slope of the tokens' starting probabilities: from this weight down to 1.
_STEEPEST = 5000.0
# Shares that differ by less are equal but for rounding, as where the classes have the same mean.
_ROUNDING = 1e-9


def own_class_share(X: np.ndarray, codes: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Compute the squared distance of each entry to its own class's mean, as a share of those to all classes' means.

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
    """Count every column's histogram over its own range, one row per column.

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

    n_tokens: int = 6
    n_rounds: int = 35

    tasks = ("classification",)
    _parameter_constraints: ClassVar = {"n_tokens": [Interval(Integral, 2, None, closed="left")]}

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        means, _ = class_moments(X, y, self.classes_.size)
        counts = np.empty((X.shape[1], self.n_tokens))
        for first in range(0, X.shape[1], _BLOCK):
            block = slice(first, first + _BLOCK)
            counts[block] = count_tokens(own_class_share(X[:, block], y, means[:, block]), self.n_tokens)
        p = self.relevance_ = relevance_by_em(counts, self.n_rounds)
        # The row sums of the power series of p p^T, by the formula of Sherman and Morrison.
        return _DAMPING / (p @ p or 1.0) * p.sum() / (1.0 - _DAMPING) * p

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": int(self.n_rounds)}
