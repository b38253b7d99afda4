"""Compiled loops over a block of products: evidence of each pair, the best partner of each column, the strongest pairs."""

from __future__ import annotations

import numpy as np
from numba import njit


def transform_tables(largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return offset and slope by degrees of freedom d that make ``(T / d) ** (1 / 3)`` a standard normal (Wilson, Hilferty).

    Examples
    --------
    >>> offset, slope = transform_tables(4)
    >>> round(float(((13.28 / 4) ** (1 / 3) - offset[4]) * slope[4]), 2)  # the 99 % point of chi-square with 4
    2.32
    """
    freedom = np.maximum(np.arange(largest + 1), 1)
    spread = 2.0 / (9.0 * freedom)
    return (1.0 - spread).astype(np.float32), (1.0 / np.sqrt(spread)).astype(np.float32)


@njit(cache=True, nogil=True)
def push(heap_z, heap_i, heap_j, z, i, j):  # pragma: no cover - compiled
    """Replace the smallest entry of a heap (at place 0) by a larger one."""
    size = heap_z.shape[0]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and heap_z[child + 1] < heap_z[child]:
            child += 1
        if heap_z[child] >= z:
            break
        heap_z[place], heap_i[place], heap_j[place] = heap_z[child], heap_i[child], heap_j[child]
        place = child
    heap_z[place], heap_i[place], heap_j[place] = z, i, j


@njit(cache=True, nogil=True)
def scan(
    products,
    variances,
    has_variances,
    factor,
    columns_i,
    offsets_i,
    columns_j,
    offsets_j,
    same,
    offset,
    slope,
    heap_z,
    heap_i,
    heap_j,
    best_i,
    partner_i,
    best_j,
    partner_j,
):  # pragma: no cover - compiled
    """Update the heap and the best partners with a block of inner products, shape (n_targets, n_functions, n_functions)."""
    n_targets = products.shape[0]
    totals = np.empty(columns_j.shape[0], dtype=np.float32)
    simple = n_targets == 1 and not has_variances
    uniform = 0
    if simple and offsets_j[columns_j.shape[0]] == 2 * columns_j.shape[0]:
        uniform = 2
        for b in range(columns_j.shape[0]):
            if offsets_j[b] != 2 * b:
                uniform = 0
    for a in range(columns_i.shape[0]):
        start_i, stop_i = offsets_i[a], offsets_i[a + 1]
        if stop_i == start_i:
            continue
        begin = a + 1 if same else 0
        if uniform == 2 and stop_i - start_i == 2:  # the usual case, in a form that compilers vectorise
            for b in range(begin, columns_j.shape[0]):
                v0, v1 = products[0, start_i, 2 * b], products[0, start_i, 2 * b + 1]
                v2, v3 = products[0, start_i + 1, 2 * b], products[0, start_i + 1, 2 * b + 1]
                totals[b] = v0 * v0 + v1 * v1 + v2 * v2 + v3 * v3
        else:
            for b in range(begin, columns_j.shape[0]):
                total = np.float32(0.0)
                for c in range(n_targets):
                    for k in range(start_i, stop_i):
                        for m in range(offsets_j[b], offsets_j[b + 1]):
                            value = products[c, k, m]
                            if has_variances:
                                total += value * value / max(variances[k, m], np.float32(1e-3))
                            else:
                                total += value * value
                totals[b] = total
        for b in range(begin, columns_j.shape[0]):
            freedom = (stop_i - start_i) * (offsets_j[b + 1] - offsets_j[b]) * n_targets
            if freedom == 0:
                continue
            share = totals[b] * factor / np.float32(freedom)
            # The cube of what z must exceed to change anything: cheaper than the cube root of each total.
            least = min(best_i[a], best_j[b], heap_z[0]) / slope[freedom] + offset[freedom]
            if share <= least * least * least and least > np.float32(0.0):
                continue
            z = (np.cbrt(share) - offset[freedom]) * slope[freedom]
            if z > best_i[a]:
                best_i[a], partner_i[a] = z, columns_j[b]
            if z > best_j[b]:
                best_j[b], partner_j[b] = z, columns_i[a]
            if z > heap_z[0]:
                push(heap_z, heap_i, heap_j, z, columns_i[a], columns_j[b])
