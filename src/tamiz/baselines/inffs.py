"""Select by infinite feature selection: paths of every length through the graph of all features."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numba import njit
from scipy.sparse.linalg import LinearOperator, cg, eigsh
from scipy.stats import rankdata
from sklearn.utils._param_validation import Interval

from tamiz.baselines._base import BaselineSelector
from tamiz.baselines.relieff import scale_to_unit_range
from tamiz.errors import DivergenceError

# Correlations are computed and kept in square blocks of so many columns.
_BLOCK = 2048
# Up to so many bytes of correlations are kept (the upper half, in float32: 29,000 columns); beyond that they are
# computed anew in every product, which costs time but no memory.
_MEMORY_FOR_CORRELATIONS = 1_700_000_000
# Small tables afford float64.
_FLOAT64_UP_TO = 1024


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _multiply_both_ways(block, left, right, into_rows, into_columns):
    """Add block @ right and left @ block, reading the block, which is what takes the time, once."""
    for i in range(block.shape[0]):
        row, factor = block[i], left[i]
        total = row[0] - row[0]
        for j in range(row.size):
            total += row[j] * right[j]
            into_columns[j] += factor * row[j]
        into_rows[i] += total


def unit_ranks(X: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the ranks of each column, centred, of length one: inner products of columns are Spearman's correlations.

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
        starts = range(0, self.n_features, _BLOCK)
        for top in starts:
            rows = slice(top, min(top + _BLOCK, self.n_features))
            for left in range(top, self.n_features, _BLOCK):
                columns = slice(left, min(left + _BLOCK, self.n_features))
                block = self.ranks[:, rows].T @ self.ranks[:, columns]
                yield rows, columns, np.abs(block, out=block)

    def _correlations_times(self, vector: np.ndarray) -> np.ndarray:
        narrow = vector.astype(self.ranks.dtype)
        result = np.zeros(self.n_features)
        for rows, columns, block in self._make_blocks() if self.blocks is None else self.blocks:
            if rows == columns:
                result[rows] += block @ narrow[columns]
            else:
                into_columns = np.zeros(block.shape[1], dtype=block.dtype)
                _multiply_both_ways(block, narrow[rows], narrow[columns], result[rows], into_columns)
                result[columns] += into_columns
        return result

    def _larger_spread_times(self, vector: np.ndarray) -> np.ndarray:
        """Return the sums over j of max(s_i, s_j) v_j: sorted by s, all j up to i count with s_i, the others with their own."""
        spread, sorted_vector = self.spread[self.order], vector[self.order]
        weighted = spread * sorted_vector
        result = np.empty(self.n_features)
        result[self.order] = spread * np.cumsum(sorted_vector) + weighted.sum() - np.cumsum(weighted)
        return result

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Return the product A v."""
        vector = np.asarray(vector, dtype=np.float64).ravel()
        result = (1.0 - self.alpha) * self._larger_spread_times(vector)
        if self.alpha > 0:
            result += self.alpha * (vector.sum() - self._correlations_times(vector))
        return result


def largest_eigenvalue(times: Any, size: int) -> float:
    """Return the largest eigenvalue of a symmetric matrix without negative entries.

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
    if size < 3:  # too small for Lanczos
        return float(np.linalg.eigvalsh(np.column_stack([times(column) for column in np.eye(size)]))[-1])
    operator = LinearOperator((size, size), matvec=times, dtype=np.float64)
    return float(eigsh(operator, k=1, which="LA", v0=vector, return_eigenvectors=False)[0])


def path_energy(times: Any, size: int, damping: float) -> np.ndarray:
    """Return the row sums of A r + (A r)^2 + ... = (I - r A)^-1 - I, with r = damping / largest eigenvalue of A."""
    largest = largest_eigenvalue(times, size)
    if largest <= 0:
        return np.zeros(size)
    r = damping / largest
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

    method_name = "inffs"
    title = "InfFS"
    uses_target = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "alpha": [Interval(Real, 0, 1, closed="both")],
        "scale": ["boolean"],
    }

    def __init__(
        self, n_features_to_select: int | float | None = None, *, alpha: float = 0.5, scale: bool = True
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.scale = scale

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        graph = FeatureGraph(scale_to_unit_range(X) if self.scale else X, float(self.alpha))
        return path_energy(graph.times, graph.n_features, damping=0.99)
