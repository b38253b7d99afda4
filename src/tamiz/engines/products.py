"""Multiply small matrices in place, compiled: what the layers of a network cost.

Written out instead of called from BLAS: a library call may allocate and start threads of its own, and several starts of a
network run side by side. Both products work in tiles of four by four rows that share every number read; a width that is a
multiple of eight, the lanes of a vector register, runs at the speed of BLAS (see ``PADDING``).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

from tamiz.core.compiled import FAST, IN_PLACE, INLINED

#: Widths are padded to a multiple of this.
PADDING = 8


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _add_tile(o0, o1, o2, o3, w0, w1, w2, w3, p0, p1, p2, p3, q0, q1, q2, q3, r0, r1, r2, r3, s0, s1, s2, s3):
    """Add four combinations of the rows ``w0`` to ``w3`` to the rows ``o0`` to ``o3``."""
    for u in range(o0.shape[0]):
        a, b, c, d = w0[u], w1[u], w2[u], w3[u]
        o0[u] += (p0 * a + p1 * b) + (p2 * c + p3 * d)
        o1[u] += (q0 * a + q1 * b) + (q2 * c + q3 * d)
        o2[u] += (r0 * a + r1 * b) + (r2 * c + r3 * d)
        o3[u] += (s0 * a + s1 * b) + (s2 * c + s3 * d)


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _add_row(out, factor, row):
    """Add a multiple of one row to another."""
    for u in range(out.shape[0]):
        out[u] += factor * row[u]


@register_jitable(**INLINED)
def _clear(out):
    for i in range(out.shape[0]):
        row = out[i]
        for u in range(row.shape[0]):
            row[u] = np.float32(0.0)


@njit(**IN_PLACE, fastmath=FAST, error_model="numpy")
def multiply(a, b, out):
    """Compute ``out = a @ b``.

    Examples
    --------
    >>> out = np.zeros((1, 2), np.float32)
    >>> multiply(np.float32([[1, 2]]), np.float32([[1, 0], [0, 1]]), out)
    >>> out.tolist()
    [[1.0, 2.0]]
    """
    n, k = a.shape
    _clear(out)
    i = 0
    while i + 4 <= n:
        x, y, z, v = a[i], a[i + 1], a[i + 2], a[i + 3]
        o0, o1, o2, o3 = out[i], out[i + 1], out[i + 2], out[i + 3]
        j = 0
        while j + 4 <= k:
            _add_tile(
                o0, o1, o2, o3, b[j], b[j + 1], b[j + 2], b[j + 3],
                x[j], x[j + 1], x[j + 2], x[j + 3], y[j], y[j + 1], y[j + 2], y[j + 3],
                z[j], z[j + 1], z[j + 2], z[j + 3], v[j], v[j + 1], v[j + 2], v[j + 3],
            )  # fmt: skip
            j += 4
        while j < k:
            for r in range(i, i + 4):
                _add_row(out[r], a[r, j], b[j])
            j += 1
        i += 4
    while i < n:
        for j in range(k):
            _add_row(out[i], a[i, j], b[j])
        i += 1


@njit(**IN_PLACE, fastmath=FAST, error_model="numpy")
def multiply_transposed(a, b, out):
    """Compute ``out = a.T @ b``.

    Examples
    --------
    >>> out = np.zeros((2, 1), np.float32)
    >>> multiply_transposed(np.float32([[1, 2]]), np.float32([[3]]), out)
    >>> out.tolist()
    [[3.0], [6.0]]
    """
    n, k = a.shape
    _clear(out)
    j = 0
    while j + 4 <= k:
        o0, o1, o2, o3 = out[j], out[j + 1], out[j + 2], out[j + 3]
        i = 0
        while i + 4 <= n:
            x, y, z, v = a[i], a[i + 1], a[i + 2], a[i + 3]
            _add_tile(
                o0, o1, o2, o3, b[i], b[i + 1], b[i + 2], b[i + 3],
                x[j], y[j], z[j], v[j], x[j + 1], y[j + 1], z[j + 1], v[j + 1],
                x[j + 2], y[j + 2], z[j + 2], v[j + 2], x[j + 3], y[j + 3], z[j + 3], v[j + 3],
            )  # fmt: skip
            i += 4
        while i < n:
            for c in range(j, j + 4):
                _add_row(out[c], a[i, c], b[i])
            i += 1
        j += 4
    while j < k:
        for i in range(n):
            _add_row(out[j], a[i, j], b[i])
        j += 1


@njit(**IN_PLACE)
def transpose(a, out):
    """Copy ``a.T`` into ``out``.

    Examples
    --------
    >>> out = np.zeros((2, 1), np.float32)
    >>> transpose(np.float32([[1, 2]]), out)
    >>> out.tolist()
    [[1.0], [2.0]]
    """
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]
