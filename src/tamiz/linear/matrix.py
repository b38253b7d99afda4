"""The two products that the engine needs of a table, dense or sparse, on a few rows at a time.

Both kinds are seen through one tuple: ``(values,)`` for a dense C-ordered float32 table, ``(data, indices, indptr, offset)``
for a sparse one, where ``offset`` is what stands in a column's empty cells (centred data without densifying:
``X = sparse + 1 offset^T``). The compiler picks the code by the kind.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import overload

#: Sums may be reordered (SIMD), but NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=FAST)
def _dense_scores(values, rows, weights, intercept, scores):
    outputs, width = weights.shape
    n = rows.shape[0]
    for c in range(outputs):
        w = weights[c]
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


@njit(cache=True, nogil=True, fastmath=FAST)
def _dense_slopes(values, rows, slope, gradient):
    outputs, width = gradient.shape
    n = rows.shape[0]
    for c in range(outputs):
        g = gradient[c]
        for j in range(width):
            g[j] = np.float32(0.0)
        i = 0
        while i + 4 <= n:
            x0, x1, x2, x3 = values[rows[i]], values[rows[i + 1]], values[rows[i + 2]], values[rows[i + 3]]
            d0, d1, d2, d3 = slope[i, c], slope[i + 1, c], slope[i + 2, c], slope[i + 3, c]
            if d0 != 0 or d1 != 0 or d2 != 0 or d3 != 0:
                for j in range(width):
                    g[j] += (d0 * x0[j] + d1 * x1[j]) + (d2 * x2[j] + d3 * x3[j])
            i += 4
        while i < n:
            x = values[rows[i]]
            d = slope[i, c]
            if d != 0:
                for j in range(width):
                    g[j] += d * x[j]
            i += 1


@njit(cache=True, nogil=True, fastmath=FAST)
def _sparse_scores(data, indices, indptr, offset, rows, weights, intercept, scores):
    outputs, width = weights.shape
    for c in range(outputs):
        w = weights[c]
        base = np.float32(0.0)
        for j in range(width):
            base += offset[j] * w[j]
        for i in range(rows.shape[0]):
            s = np.float32(0.0)
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                s += data[p] * w[indices[p]]
            scores[i, c] = s + base + intercept[c]


@njit(cache=True, nogil=True, fastmath=FAST)
def _sparse_slopes(data, indices, indptr, offset, rows, slope, gradient):
    outputs, width = gradient.shape
    for c in range(outputs):
        g = gradient[c]
        total = np.float32(0.0)
        for i in range(rows.shape[0]):
            total += slope[i, c]
        for j in range(width):
            g[j] = total * offset[j]
        for i in range(rows.shape[0]):
            d = slope[i, c]
            if d != 0:
                for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                    g[indices[p]] += d * data[p]


def scores_of(matrix, rows, weights, intercept, scores):
    """``scores = X[rows] @ weights.T + intercept`` (compiled code only; the kind of ``matrix`` picks the implementation)."""
    raise TypeError("scores_of is for compiled code")


def slopes_of(matrix, rows, slope, gradient):
    """``gradient = slope.T @ X[rows]`` (compiled code only)."""
    raise TypeError("slopes_of is for compiled code")


def _is_dense(matrix) -> bool:
    return isinstance(matrix, types.BaseTuple) and len(matrix) == 1


@overload(scores_of)
def _scores_of(matrix, rows, weights, intercept, scores):
    if _is_dense(matrix):
        return lambda matrix, rows, weights, intercept, scores: _dense_scores(
            matrix[0], rows, weights, intercept, scores
        )
    return lambda matrix, rows, weights, intercept, scores: _sparse_scores(
        matrix[0], matrix[1], matrix[2], matrix[3], rows, weights, intercept, scores
    )


@overload(slopes_of)
def _slopes_of(matrix, rows, slope, gradient):
    if _is_dense(matrix):
        return lambda matrix, rows, slope, gradient: _dense_slopes(matrix[0], rows, slope, gradient)
    return lambda matrix, rows, slope, gradient: _sparse_slopes(
        matrix[0], matrix[1], matrix[2], matrix[3], rows, slope, gradient
    )


@njit(cache=True, nogil=True)
def compact_dense(values, keep, out):
    """Copy the columns ``keep`` of every row; ``out`` may be the front of the same memory, rows are read before written."""
    width = keep.shape[0]
    for i in range(values.shape[0]):
        for j in range(width):
            out[i * width + j] = values[i, keep[j]]


@njit(cache=True, nogil=True)
def places_of(keep, width):
    """Turn the numbers of the ``width`` columns that stay, in rising order at the front, into the place of each column, or -1.

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


@njit(cache=True, nogil=True)
def compact_sparse(data, indices, indptr, offset, place):
    """Drop the dead columns in place; ``place`` is a column's new number, or -1. Returns how many entries are left."""
    for j in range(place.shape[0]):
        if place[j] >= 0:
            offset[place[j]] = offset[j]
    free = 0
    begin = 0
    for i in range(indptr.shape[0] - 1):
        end = indptr[i + 1]
        for p in range(begin, end):
            j = place[indices[p]]
            if j >= 0:
                data[free] = data[p]
                indices[free] = j
                free += 1
        begin = end
        indptr[i + 1] = free
    return free
