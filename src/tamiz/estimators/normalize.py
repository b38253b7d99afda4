"""Normalised tables for the engines: statistics in float64, one float32 copy, sparse tables centred without densifying."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.estimators import _kernels

#: What ``normalize`` may be.
NORMALIZATIONS = ("erf", "standard", None)


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Weighted mean and standard deviation (with N - 1) of each column; the deviation of a constant column is 0."""

    mean: np.ndarray
    deviation: np.ndarray

    def of(self, columns: Any) -> ColumnStatistics:
        """Those of some of the columns."""
        return ColumnStatistics(self.mean[columns], self.deviation[columns])


@dataclass(frozen=True, eq=False)
class Table:
    """A table ready for an engine."""

    values: Any
    """Dense float32 in C order, or CSR."""
    offset: np.ndarray | None
    """What stands in the empty cells of a sparse table."""
    statistics: ColumnStatistics | None
    """None where nothing was normalised."""
    owned: bool
    """Whether the engine may overwrite the values."""

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
    return apply_normalization(X, statistics, kind)


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
    n, f = X.shape
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    weights = weights / weights.mean()
    low, high = np.full(f, np.inf), np.full(f, -np.inf)
    total, squares = np.zeros(f), np.zeros(f)
    if sp.issparse(X):
        X = X.tocsr()
        stored, weight_stored = np.zeros(f, dtype=np.int64), np.zeros(f)
        _kernels.extremes_sparse(X.data, X.indices, X.indptr, weights, low, high, stored, weight_stored)
        empty = n - stored
        low, high = np.where(empty > 0, np.minimum(low, 0), low), np.where(empty > 0, np.maximum(high, 0), high)
        middle, half, unit = _frame(low, high)
        _kernels.moments_sparse(X.data, X.indices, X.indptr, weights, middle, unit, total, squares)
        at_zero, rest = -middle / unit, np.where(empty > 0, n - weight_stored, 0.0)
        total += rest * at_zero
        squares += rest * at_zero**2
    else:
        table, transposed = _contiguous(X)
        (_kernels.extremes_by_column if transposed else _kernels.extremes_by_row)(table, low, high)
        middle, half, unit = _frame(low, high)
        moments = _kernels.moments_by_column if transposed else _kernels.moments_by_row
        moments(table, weights, middle, unit, total, squares)
    mean = total / n
    variance = np.maximum(squares - n * mean**2, 0) / max(1, n - 1)
    return ColumnStatistics(middle + half * mean, half * np.sqrt(variance))


def _frame(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middle and half width of the range of each column, and the half width with 1 in place of 0."""
    half = high / 2 - low / 2  # halved first: the difference could overflow
    middle = np.where(half > 0, low / 2 + high / 2, low)
    return middle, half, np.where(half > 0, half, 1.0)


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
    zeros, columns = np.zeros(X.shape[1], dtype=rows.data.dtype), np.arange(X.shape[1])
    _kernels.normalize_sparse(zeros, columns, statistics.mean, scale, with_erf, np.zeros_like(offset), offset)
    data = np.empty(rows.data.size, dtype=np.float32)
    _kernels.normalize_sparse(rows.data, rows.indices, statistics.mean, scale, with_erf, offset, data)
    indices = rows.indices if fresh else rows.indices.copy()
    indptr = rows.indptr if fresh else rows.indptr.copy()
    return sp.csr_matrix((data, indices, indptr), shape=X.shape), offset
