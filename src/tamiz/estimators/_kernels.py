"""Compiled loops over tables: the statistics of columns and their normalisation, one pass each, without copies."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Sums may be reordered for SIMD. Input is finite, so NaN needs no care; infinity (a difference that overflows) does.
FAST = {"reassoc", "contract", "nsz", "arcp", "nnan"}

SIGNIFICANT = np.float32(3.9)
"""Beyond this, erf is 1 in float32."""


@njit(cache=True, nogil=True, inline="always")
def _erf(x):
    """Rational approximation of erf, within 4e-7; free of branches, so that loops over it vectorise."""
    x = min(max(x, -SIGNIFICANT), SIGNIFICANT)
    t = x * x
    above = np.float32(2.05038557e-06)
    above = above * t + np.float32(0.000287457967)
    above = above * t + np.float32(0.00383689916)
    above = above * t + np.float32(0.0529669883)
    above = above * t + np.float32(0.191941519)
    above = above * t + np.float32(1.12837903)
    below = np.float32(3.82307622e-05)
    below = below * t + np.float32(0.00118174043)
    below = below * t + np.float32(0.0151092496)
    below = below * t + np.float32(0.114758415)
    below = below * t + np.float32(0.50343552)
    below = below * t + np.float32(1.0)
    return min(max(x * above / below, np.float32(-1.0)), np.float32(1.0))


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _normalize_line(x, mean, scale, with_erf, out):
    """One row: every entry has its own mean and scale."""
    if with_erf:
        for j in range(x.shape[0]):
            z = (x[j] - mean[j]) / scale[j] if scale[j] > 0.0 else 0.0
            out[j] = _erf(np.float32(z))
    else:
        for j in range(x.shape[0]):
            z = (x[j] - mean[j]) / scale[j] if scale[j] > 0.0 else 0.0
            out[j] = np.float32(z)


@njit(cache=True, nogil=True)
def normalize_rows(X, mean, scale, with_erf, out):
    """A C-ordered table."""
    for i in range(X.shape[0]):
        _normalize_line(X[i], mean, scale, with_erf, out[i])


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _normalize_column(x, mean, scale, with_erf, out):
    if scale <= 0.0:
        out[:] = np.float32(0.0)
    elif with_erf:
        for i in range(x.shape[0]):
            out[i] = _erf(np.float32((x[i] - mean) / scale))
    else:
        for i in range(x.shape[0]):
            out[i] = np.float32((x[i] - mean) / scale)


@njit(cache=True, nogil=True)
def normalize_columns(columns, mean, scale, with_erf, out):
    """The transpose of an F-ordered table into a C-ordered one, a tile at a time so that both sides stay in cache."""
    n_columns, n_rows = columns.shape
    wide, high = 16, 256
    tile = np.empty((wide, high), dtype=np.float32)
    for begin in range(0, n_rows, high):
        n = min(high, n_rows - begin)
        for left in range(0, n_columns, wide):
            width = min(wide, n_columns - left)
            for c in range(width):
                j = left + c
                _normalize_column(columns[j, begin : begin + n], mean[j], scale[j], with_erf, tile[c, :n])
            for i in range(n):
                for c in range(width):
                    out[begin + i, left + c] = tile[c, i]


@njit(cache=True, nogil=True, fastmath=FAST)
def _widen_line(x, low, high):
    for j in range(x.shape[0]):
        low[j] = min(low[j], x[j])
        high[j] = max(high[j], x[j])


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _add_line(x, weight, middle, half, total, squares):
    for j in range(x.shape[0]):
        u = (x[j] - middle[j]) / half[j]
        total[j] += weight * u
        squares[j] += weight * u * u


@njit(cache=True, nogil=True)
def extremes_by_row(X, low, high):
    """Smallest and largest entry of each column of a C-ordered table."""
    for i in range(X.shape[0]):
        _widen_line(X[i], low, high)


@njit(cache=True, nogil=True)
def moments_by_row(X, weights, middle, half, total, squares):
    """Weighted sums of ``u`` and ``u^2`` for ``u = (x - middle) / half``, which is in [-1, 1]: no overflow, no cancellation."""
    for i in range(X.shape[0]):
        _add_line(X[i], weights[i], middle, half, total, squares)


@njit(cache=True, nogil=True, fastmath=FAST)
def extremes_by_column(columns, low, high):
    """The same for the transpose of an F-ordered table."""
    for j in range(columns.shape[0]):
        least = most = np.float64(columns[j, 0])
        for i in range(columns.shape[1]):
            least = min(least, columns[j, i])
            most = max(most, columns[j, i])
        low[j], high[j] = least, most


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def moments_by_column(columns, weights, middle, half, total, squares):
    """The same for the transpose of an F-ordered table."""
    for j in range(columns.shape[0]):
        first = second = 0.0
        centre, unit = middle[j], half[j]
        for i in range(columns.shape[1]):
            u = (columns[j, i] - centre) / unit
            first += weights[i] * u
            second += weights[i] * u * u
        total[j], squares[j] = first, second


@njit(cache=True, nogil=True)
def extremes_sparse(data, indices, indptr, weights, low, high, stored, weight_stored):
    """The same for the stored entries of a CSR table, with their number and weight."""
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            low[j] = min(low[j], data[p])
            high[j] = max(high[j], data[p])
            stored[j] += 1
            weight_stored[j] += weights[i]


@njit(cache=True, nogil=True)
def frame_sparse(low, high, stored, n):
    """Middle and half width of the range of each column, written over its ends; ``n`` rows, the cells not stored are 0."""
    for j in range(low.shape[0]):
        if stored[j] < n:
            low[j], high[j] = min(low[j], 0.0), max(high[j], 0.0)
        half = high[j] / 2 - low[j] / 2  # halved first: the difference could overflow
        low[j] = low[j] / 2 + high[j] / 2 if half > 0.0 else low[j]
        high[j] = half


@njit(cache=True, nogil=True, error_model="numpy")
def moments_sparse(data, indices, indptr, weights, middle, half, stored, weight_stored, total, squares):
    """Weighted sums as in ``moments_by_row`` for a CSR table, with the cells that are not stored."""
    n = indptr.shape[0] - 1
    for i in range(n):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            u = (data[p] - middle[j]) / (half[j] if half[j] > 0.0 else 1.0)
            total[j] += weights[i] * u
            squares[j] += weights[i] * u * u
    for j in range(middle.shape[0]):
        if stored[j] < n:
            u = -middle[j] / (half[j] if half[j] > 0.0 else 1.0)
            rest = n - weight_stored[j]
            total[j] += rest * u
            squares[j] += rest * (u * u)


@njit(cache=True, nogil=True, error_model="numpy")
def finish_statistics(n, middle, half, total, squares):
    """Mean and deviation from the sums over ``n`` rows, written over middle and half width."""
    for j in range(middle.shape[0]):
        mean = total[j] / n
        variance = max(squares[j] - n * (mean * mean), 0.0) / max(1, n - 1)
        middle[j] += half[j] * mean
        half[j] *= np.sqrt(variance)


@njit(cache=True, nogil=True, error_model="numpy")
def normalize_sparse(data, indices, mean, scale, with_erf, offset, out):
    """Stored entries, normalised, less what stands in the empty cells of their column."""
    for p in range(data.shape[0]):
        j = indices[p]
        z = np.float32((data[p] - mean[j]) / scale[j]) if scale[j] > 0.0 else np.float32(0.0)
        out[p] = (_erf(z) if with_erf else z) - offset[j]
