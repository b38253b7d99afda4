"""Hold a table, dense or sparse, as the training loop sees it: two products on a few rows at a time, and dropping columns.

The products are handed to the compiled loop as functions of one fixed type, so that one compiled loop on disk serves dense
and sparse tables, and only the products that are used are compiled.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit, types

from tamiz.core import writeable_view
from tamiz.core.compiled import FAST, IN_PLACE, compile_argument


class Matrix(NamedTuple):
    """Arrays of a table; those of the other kind are empty."""

    values: np.ndarray
    """(n_samples, n_columns) float32, a dense table."""
    data: np.ndarray
    """Non-zeros of a sparse table (CSR), float32."""
    indices: np.ndarray
    """Their columns, int32."""
    indptr: np.ndarray
    """Where each row begins, int64."""
    offset: np.ndarray
    """Implicit value of each column of a sparse table, float32: centred data without densifying."""


def _dense_scores(values, data, indices, indptr, offset, rows, weights, width, intercept, scores):
    """Compute ``scores = X[rows] @ weights[:, :width].T + intercept``."""
    n = rows.shape[0]
    for c in range(weights.shape[0]):
        w = weights[c][:width]
        i = 0
        # Four rows share one reading of the weights.
        while i + 4 <= n:
            x0, x1, x2, x3 = values[rows[i]], values[rows[i + 1]], values[rows[i + 2]], values[rows[i + 3]]
            s0 = s1 = s2 = s3 = np.float32(0.0)
            for j in range(width):
                s0 += x0[j] * w[j]
                s1 += x1[j] * w[j]
                s2 += x2[j] * w[j]
                s3 += x3[j] * w[j]
            scores[i, c] = s0 + intercept[c]
            scores[i + 1, c] = s1 + intercept[c]
            scores[i + 2, c] = s2 + intercept[c]
            scores[i + 3, c] = s3 + intercept[c]
            i += 4
        while i < n:
            x = values[rows[i]]
            s = np.float32(0.0)
            for j in range(width):
                s += x[j] * w[j]
            scores[i, c] = s + intercept[c]
            i += 1


def _dense_gradient(values, data, indices, indptr, offset, rows, score_gradient, gradient, width):
    """Compute ``gradient[:, :width] = score_gradient.T @ X[rows]``."""
    n = rows.shape[0]
    for c in range(gradient.shape[0]):
        g = gradient[c][:width]
        for j in range(width):
            g[j] = np.float32(0.0)
        i = 0
        while i + 4 <= n:
            x0, x1, x2, x3 = values[rows[i]], values[rows[i + 1]], values[rows[i + 2]], values[rows[i + 3]]
            d0, d1 = score_gradient[i, c], score_gradient[i + 1, c]
            d2, d3 = score_gradient[i + 2, c], score_gradient[i + 3, c]
            if d0 != 0 or d1 != 0 or d2 != 0 or d3 != 0:
                for j in range(width):
                    g[j] += (d0 * x0[j] + d1 * x1[j]) + (d2 * x2[j] + d3 * x3[j])
            i += 4
        while i < n:
            x = values[rows[i]]
            d = score_gradient[i, c]
            if d != 0:
                for j in range(width):
                    g[j] += d * x[j]
            i += 1


def _sparse_scores(values, data, indices, indptr, offset, rows, weights, width, intercept, scores):
    """Compute ``scores = X[rows] @ weights[:, :width].T + intercept``."""
    for c in range(weights.shape[0]):
        w = weights[c][:width]
        base = np.float32(0.0)
        for j in range(width):
            base += offset[j] * w[j]
        for i in range(rows.shape[0]):
            s = np.float32(0.0)
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                s += data[p] * w[indices[p]]
            scores[i, c] = s + base + intercept[c]


def _sparse_gradient(values, data, indices, indptr, offset, rows, score_gradient, gradient, width):
    """Compute ``gradient[:, :width] = score_gradient.T @ X[rows]``."""
    for c in range(gradient.shape[0]):
        g = gradient[c][:width]
        total = np.float32(0.0)
        for i in range(rows.shape[0]):
            total += score_gradient[i, c]
        for j in range(width):
            g[j] = total * offset[j]
        for i in range(rows.shape[0]):
            d = score_gradient[i, c]
            if d != 0:
                for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                    g[indices[p]] += d * data[p]


@cache
def _compiled(product: Callable[..., None], n_vectors: int) -> Any:
    """Compile a product for the fixed types of the loop; ``n_vectors`` is 2 for scores, 1 for gradients."""
    table, vector = types.Array(types.float32, 2, "C"), types.Array(types.float32, 1, "C")
    rows = types.Array(types.int64, 1, "C")
    matrix = (table, vector, types.Array(types.int32, 1, "C"), rows, vector)
    rest = (table, types.int64, vector, table) if n_vectors == 2 else (table, table, types.int64)
    return compile_argument(product, types.void(*matrix, rows, *rest), fastmath=FAST)


@njit(**IN_PLACE)
def _copy_columns(values, keep, out):
    """Copy the columns ``keep`` of every row; ``out`` may be the front of the same memory, rows are read before written."""
    width = keep.shape[0]
    for i in range(values.shape[0]):
        for j in range(width):
            out[i * width + j] = values[i, keep[j]]


@njit(**IN_PLACE)
def _new_positions(keep, width):
    """Turn the ``width`` column numbers at the front, in rising order, into the new position of each column, or -1.

    In place, from behind: a column never moves up, so nothing is overwritten before it is read.
    """
    last = keep.shape[0]
    for new in range(width - 1, -1, -1):
        old = keep[new]
        for j in range(old + 1, last):
            keep[j] = -1
        keep[old] = new
        last = old
    for j in range(last):
        keep[j] = -1


@njit(**IN_PLACE)
def _drop_columns(data, indices, indptr, offset, position):
    """Drop columns with a position of -1 in place and renumber the others; return how many entries are left."""
    for j in range(position.shape[0]):
        if position[j] >= 0:
            offset[position[j]] = offset[j]
    free = 0
    begin = 0
    for i in range(indptr.shape[0] - 1):
        end = indptr[i + 1]
        for p in range(begin, end):
            j = position[indices[p]]
            if j >= 0:
                data[free] = data[p]
                indices[free] = j
                free += 1
        begin = end
        indptr[i + 1] = free
    return free


class Design:
    """Hold a table as the engine sees it, shrinking as columns are eliminated.

    Memory that is the caller's is never written to.

    Parameters
    ----------
    X : ndarray or sparse matrix
        The table.
    offset : ndarray or None
        Implicit value of each column of a sparse table.
    owned : bool
        Whether X and offset may be overwritten.

    Examples
    --------
    >>> design = Design(np.eye(3), None, owned=False)
    >>> design.keep(np.array([0, 2], dtype=np.int32), 2)
    >>> design.matrix.values.tolist()
    [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, X: Any, offset: np.ndarray | None, owned: bool) -> None:
        self.sparse = sp.issparse(X)
        vector, empty = np.zeros(0, np.float32), np.zeros(0, np.int32)
        if self.sparse:
            X = X.tocsr()
            fill = np.zeros(X.shape[1], np.float32) if offset is None else offset.astype(np.float32, copy=not owned)
            self.matrix = Matrix(
                np.zeros((X.shape[0], 0), np.float32),
                X.data.astype(np.float32, copy=not owned),
                X.indices.astype(np.int32, copy=not owned),
                X.indptr.astype(np.int64),
                fill,
            )
        else:
            values = np.ascontiguousarray(X, dtype=np.float32)
            owned = owned or not np.shares_memory(values, X)
            self.matrix = Matrix(writeable_view(values), vector, empty, np.zeros(0, np.int64), vector)
        self.owned = owned

    def copy(self) -> Design:
        """Return a copy; dropping columns of either leaves the other as it is.

        Examples
        --------
        >>> design = Design(np.eye(3), None, owned=True)
        >>> design.copy().keep(np.array([0, 2], dtype=np.int32), 2)
        >>> design.matrix.values.shape
        (3, 3)
        """
        copied = copy.copy(self)
        if self.sparse:
            copied.matrix = Matrix(*(array.copy() for array in self.matrix))
        else:  # both read the same table, and the next one that drops columns makes its own
            self.owned = copied.owned = False
        return copied

    @property
    def products(self) -> tuple[Any, Any]:
        """Return the compiled products for scores and gradients."""
        if self.sparse:
            return _compiled(_sparse_scores, 2), _compiled(_sparse_gradient, 1)
        return _compiled(_dense_scores, 2), _compiled(_dense_gradient, 1)

    def keep(self, order: np.ndarray, width: int) -> None:
        """Keep the columns ``order[:width]``; ``order`` is overwritten."""
        values, data, indices, indptr, offset = self.matrix
        if self.sparse:
            position = order[: offset.size]
            _new_positions(position, width)
            left = _drop_columns(data, indices, indptr, offset, position)
            self.matrix = Matrix(values, data[:left], indices[:left], indptr, offset[:width])
            return
        size = values.shape[0] * width
        out = values.reshape(-1)[:size] if self.owned else np.empty(size, dtype=np.float32)
        _copy_columns(values, order[:width], out)
        self.matrix = self.matrix._replace(values=out.reshape(values.shape[0], width))
        self.owned = True
