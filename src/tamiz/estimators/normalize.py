"""Normalised tables for the engines: statistics in float64, one float32 copy, sparse tables centred without densifying."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.estimators import _kernels

#: What ``normalize`` may be.
NORMALIZATIONS = ("erf", "standard", None)

COLUMNS_AT_ONCE = 1 << 16
"""Scratch for the columns of a sparse table is no longer than this: a table may be wider than it has entries."""


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Weighted mean and standard deviation (with N - 1) of each column; the deviation of a constant column is 0."""

    mean: np.ndarray
    deviation: np.ndarray

    def of(self, columns: Any) -> ColumnStatistics:
        """Those of some of the columns."""
        return ColumnStatistics(self.mean[columns], self.deviation[columns])


@dataclass(frozen=True, eq=False)
class LaterStatistics:
    """The statistics of a sparse table, computed when the few columns that need them are known.

    Kept for all columns they would be four float32 vectors of memory during training, which can be more than the table.
    """

    X: Any
    weights: np.ndarray | None

    def of(self, columns: Any) -> ColumnStatistics:
        """Those of some of the columns, to the last bit as if computed for all."""
        return column_statistics(self.X[:, columns], self.weights)


@dataclass(frozen=True, eq=False)
class Table:
    """A table ready for an engine."""

    values: Any
    """Dense float32 in C order, or CSR."""
    offset: np.ndarray | None
    """What stands in the empty cells of a sparse table."""
    statistics: ColumnStatistics | LaterStatistics | None
    """None where nothing was normalised."""
    owned: bool
    """Whether the engine may overwrite the values and the offset."""

    def dense(self) -> np.ndarray:
        """The values with nothing left out, for engines that take no sparse tables."""
        if not sp.issparse(self.values):
            return self.values
        values = self.values.toarray()
        return values if self.offset is None else values + self.offset


def prepare_table(X: Any, kind: str | None, weights: np.ndarray | None = None) -> Table:
    """The table as the engines take it, normalised; constant columns are zero, so that they can tell nothing.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Finite numbers.
    kind : {"erf", "standard", None}
        The normalisation; None takes the numbers as they are.
    weights : ndarray, shape (n_samples,), optional
        Weights of the rows in mean and deviation. With balanced classes the zero of a column then lies between the
        classes, wherever the larger one is.

    Examples
    --------
    >>> prepare_table(np.array([[1.0, 5.0], [3.0, 5.0]]), None).values.tolist()
    [[1.0, 0.0], [3.0, 0.0]]
    """
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    statistics = column_statistics(X, weights)
    if kind is None:
        return _as_it_is(X, statistics.deviation == 0)
    table = apply_normalization(X, statistics, kind)
    return replace(table, statistics=LaterStatistics(X, weights)) if sp.issparse(X) else table


def apply_normalization(X: Any, statistics: ColumnStatistics | None, kind: str | None) -> Table:
    """A table normalised by known statistics (None: as it is).

    Examples
    --------
    >>> X = np.array([[1.0], [3.0]])
    >>> apply_normalization(X, column_statistics(X), "standard").values.astype(float).round(3).tolist()
    [[-0.707], [0.707]]
    """
    if statistics is None or kind is None:
        return Table(X, None, None, False)
    if sp.issparse(X):
        table, offset = normalized_sparse(X, statistics, kind)
        return Table(table, offset, statistics, True)
    return Table(normalized(X, statistics, kind), None, statistics, True)


def _as_it_is(X: Any, constant: np.ndarray) -> Table:
    """A table that is not normalised: copied only where its type, its order or a constant column asks for it."""
    numbers = X.data if sp.issparse(X) else X
    largest = np.finfo(np.float32).max
    if numbers.size and (numbers.max() > largest or numbers.min() < -largest):
        raise ValueError(
            "X holds numbers beyond the range of float32, in which the engine computes. "
            "Set normalize='erf' or 'standard', or scale the columns."
        )
    if sp.issparse(X):
        data = np.where(constant[X.indices], 0, X.data).astype(np.float32)
        return Table(sp.csr_matrix((data, X.indices.copy(), X.indptr.copy()), shape=X.shape), None, None, True)
    values = np.ascontiguousarray(X, dtype=np.float32)
    if constant.any():
        values = values.copy() if np.shares_memory(values, X) else values
        values[:, constant] = 0
    return Table(values, None, None, not np.shares_memory(values, X))


def _contiguous(X: np.ndarray) -> tuple[np.ndarray, bool]:
    """The table, or its transpose, in C order; True for the transpose."""
    if X.flags.f_contiguous and not X.flags.c_contiguous:
        return X.T, True
    return np.ascontiguousarray(X), False


def column_statistics(X: Any, weights: np.ndarray | None = None) -> ColumnStatistics:
    """Weighted mean and standard deviation of each column of a dense or sparse table, safe at any scale.

    Examples
    --------
    >>> statistics = column_statistics(np.array([[1e30, 5.0], [3e30, 5.0]]))
    >>> (statistics.mean / [1e30, 1]).round(4).tolist(), (statistics.deviation / 1e30).round(4).tolist()
    ([2.0, 5.0], [1.4142, 0.0])
    """
    weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    weights = weights / weights.mean()
    middle, half, total, squares = (_sparse_sums if sp.issparse(X) else _dense_sums)(X, weights)
    _kernels.finish_statistics(X.shape[0], middle, half, total, squares)
    return ColumnStatistics(middle, half)


def _dense_sums(X: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """Middle and half width of each column, and the weighted sums of ``u`` and ``u^2`` for ``u = (x - middle) / half``."""
    table, transposed = _contiguous(X)
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    (_kernels.extremes_by_column if transposed else _kernels.extremes_by_row)(table, low, high)
    half = high / 2 - low / 2  # halved first: the difference could overflow
    middle = np.where(half > 0, low / 2 + high / 2, low)
    total, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    moments = _kernels.moments_by_column if transposed else _kernels.moments_by_row
    moments(table, weights, middle, np.where(half > 0, half, 1.0), total, squares)
    return middle, half, total, squares


def _sparse_sums(X: Any, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same for a sparse table. In place: where columns outnumber entries, these vectors are most of a fit's memory."""
    X = X.tocsr()
    n, f = X.shape
    low, high = np.full(f, np.inf), np.full(f, -np.inf)
    stored, weight_stored = np.zeros(f, dtype=np.int32), np.zeros(f)
    _kernels.extremes_sparse(X.data, X.indices, X.indptr, weights, low, high, stored, weight_stored)
    _kernels.frame_sparse(low, high, stored, n)
    total, squares = np.zeros(f), np.zeros(f)
    _kernels.moments_sparse(X.data, X.indices, X.indptr, weights, low, high, stored, weight_stored, total, squares)
    return low, high, total, squares


def _scale(statistics: ColumnStatistics, with_erf: bool) -> np.ndarray:
    return statistics.deviation * (math.sqrt(2.0) if with_erf else 1.0)


def normalized(X: np.ndarray, statistics: ColumnStatistics, kind: str) -> np.ndarray:
    """A new float32 C-ordered table: ``erf(z / sqrt(2))`` for ``kind="erf"``, ``z`` for "standard"; constants are 0.

    Examples
    --------
    >>> X = np.array([[1.0, 0.1], [3.0, 0.1]])
    >>> normalized(X, column_statistics(X), "erf").astype(float).round(4).tolist()
    [[-0.5205, 0.0], [0.5205, 0.0]]
    """
    out = np.empty(X.shape, dtype=np.float32)
    table, transposed = _contiguous(X)
    loop = _kernels.normalize_columns if transposed else _kernels.normalize_rows
    loop(table, statistics.mean, _scale(statistics, kind == "erf"), kind == "erf", out)
    return out


def normalized_sparse(X: Any, statistics: ColumnStatistics, kind: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """A sparse table S and a row of offsets with ``S + offset`` the normalised table; nothing is shared with X.

    Examples
    --------
    >>> X = sp.csr_matrix([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    >>> table, offset = normalized_sparse(X, column_statistics(X), "erf")
    >>> dense = normalized(X.toarray(), column_statistics(X), "erf")
    >>> bool(np.allclose(table.toarray() + offset, dense, atol=1e-6)), table.nnz
    (True, 3)
    """
    rows = X.tocsr(copy=False)
    fresh = rows is not X
    with_erf, scale = kind == "erf", _scale(statistics, kind == "erf")
    offset = np.zeros(X.shape[1], dtype=np.float32)
    for begin in range(0, offset.size, COLUMNS_AT_ONCE):
        part = slice(begin, begin + COLUMNS_AT_ONCE)
        columns = np.arange(offset[part].size, dtype=rows.indices.dtype)
        zeros = np.zeros(columns.size, dtype=rows.data.dtype)
        nothing = np.zeros(columns.size, dtype=np.float32)
        _kernels.normalize_sparse(zeros, columns, statistics.mean[part], scale[part], with_erf, nothing, offset[part])
    data = np.empty(rows.data.size, dtype=np.float32)
    _kernels.normalize_sparse(rows.data, rows.indices, statistics.mean, scale, with_erf, offset, data)
    indices = rows.indices if fresh else rows.indices.copy()
    indptr = rows.indptr if fresh else rows.indptr.copy()
    return sp.csr_matrix((data, indices, indptr), shape=X.shape), offset
