"""Compiled loops over tables: weighted sums of columns and their normalisation, one pass each, without copies.

Each loop is called with one type of arrays only (float64 in, C order, writeable), so that it is compiled once; the callers
in ``scaling`` convert a tile at a time.
"""

from __future__ import annotations

import numpy as np

from tamiz._utils.compiling import njit
from tamiz.rows.exact import FARTHEST

#: Sums may be reordered for SIMD. Input is finite, so NaN needs no care; infinity (a difference that overflows) does.
FINITE_MATH = {"reassoc", "contract", "nsz", "arcp", "nnan"}

#: Beyond this, erf is 1 in float32.
SIGNIFICANT = np.float32(3.9)


@njit(nogil=True, inline="always")
def _erf(x):
    """Approximate erf by a quotient of polynomials, within 4e-7; free of branches, so that loops over it vectorise."""
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


@njit(nogil=True, fastmath=FINITE_MATH, error_model="numpy")
def normalize_rows(X, mean, scale, with_erf, out):
    """Write ``(x - mean) / scale``, or erf of it, of a C-ordered table into ``out`` (float32); 0 where the scale is 0."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            z = (X[i, j] - mean[j]) / scale[j] if scale[j] > 0.0 else 0.0
            out[i, j] = _erf(np.float32(z)) if with_erf else np.float32(min(max(z, -FARTHEST), FARTHEST))


@njit(nogil=True, fastmath=FINITE_MATH, error_model="numpy")
def add_moments(X, weights, middle, half, total, squares):
    """Add the weighted sums of ``u`` and ``u^2``, ``u = (x - middle) / half`` in [-1, 1]: no overflow, no cancellation."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            u = (X[i, j] - middle[j]) / half[j]
            total[j] += weights[i] * u
            squares[j] += weights[i] * u * u


@njit(nogil=True, error_model="numpy")
def normalize_entries(values, columns, mean, scale, with_erf, offset, out):
    """Write the entries of a sparse table, normalised, less the offset of their column, into ``out`` (float32)."""
    for p in range(values.shape[0]):
        j = columns[p]
        far = (values[p] - mean[j]) / scale[j] if scale[j] > 0.0 else 0.0
        z = np.float32(min(max(far, -FARTHEST), FARTHEST))
        out[p] = (_erf(z) if with_erf else z) - offset[j]


@njit(nogil=True, error_model="numpy")
def column_moments(X, out):
    """Write count, mean, variance, minimum and maximum of each row of ``X`` (a column of the table); NaN is missing."""
    for j in range(X.shape[0]):
        n, shift, total, squares = 0, 0.0, 0.0, 0.0
        low, high = np.inf, -np.inf
        for i in range(X.shape[1]):
            value = np.float64(X[j, i])
            if value == value:
                if n == 0:
                    shift = value
                n += 1
                deviation = value - shift
                total += deviation
                squares += deviation * deviation
                low = min(low, value)
                high = max(high, value)
        mean = total / n if n > 0 else 0.0
        out[0, j] = n
        out[1, j] = shift + mean
        out[2, j] = max(squares / n - mean * mean, 0.0) if n > 0 else 0.0
        out[3, j] = low if n > 0 else np.nan
        out[4, j] = high if n > 0 else np.nan
