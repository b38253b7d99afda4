"""Compiled loops over a block of products: evidence of each pair, the best partner of each column, the strongest pairs."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit


@cache
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
def _least_total(z, freedom, factor, offset, slope):  # pragma: no cover - compiled
    """Return a total just below that of evidence z; -1 if any total is above it."""
    base = z / slope[freedom] + offset[freedom]
    if not base > np.float32(0.0):
        return np.float32(-1.0)
    # The inverse of what scan computes; the margin is larger than the rounding, so that ties are seen.
    return base * base * base * np.float32(freedom) / factor * np.float32(1.0 - 1e-5)


@njit(cache=True, nogil=True)
def _totals_of_row(
    products, variances, has_variances, start, stop, offsets, degree, begin, squares, totals
):  # pragma: no cover
    """Write the sums of squares of one column, functions ``start`` to ``stop``, with each other from ``begin`` into ``totals``.

    The loops run over neighbours in memory, in a form that compilers vectorise: from 0, over slices. ``degree`` is that of all
    other columns, or 0 if they differ.
    """
    left_out = offsets[begin]
    squares, totals = squares[left_out:], totals[begin:]
    n_functions, n_columns = squares.shape[0], totals.shape[0]
    if degree == 2 and stop - start == 2 and products.shape[0] == 1 and not has_variances:
        # The common case in one pass, with the sums in the same order as below.
        p, q = products[0, start, left_out:], products[0, start + 1, left_out:]
        for b in range(n_columns):
            even = p[2 * b] * p[2 * b] + q[2 * b] * q[2 * b]
            odd = p[2 * b + 1] * p[2 * b + 1] + q[2 * b + 1] * q[2 * b + 1]
            totals[b] = even + odd
        return
    for m in range(n_functions):
        squares[m] = np.float32(0.0)
    for c in range(products.shape[0]):
        for k in range(start, stop):
            row = products[c, k, left_out:]
            if has_variances:
                spread = variances[k, left_out:]
                for m in range(n_functions):
                    squares[m] += row[m] * row[m] / max(spread[m], np.float32(1e-3))
            else:
                for m in range(n_functions):
                    squares[m] += row[m] * row[m]
    if degree == 1:
        for b in range(n_columns):
            totals[b] = squares[b]
    elif degree == 2:
        for b in range(n_columns):
            totals[b] = squares[2 * b] + squares[2 * b + 1]
    else:
        for b in range(n_columns):
            total = np.float32(0.0)
            for m in range(offsets[begin + b] - left_out, offsets[begin + b + 1] - left_out):
                total += squares[m]
            totals[b] = total


@njit(cache=True, nogil=True)
def _any_above(totals, least, least_of_column):  # pragma: no cover - compiled
    """Check whether any total is above what would change anything."""
    hits = 0
    for b in range(totals.shape[0]):
        hits += totals[b] > min(least, least_of_column[b])
    return hits > 0


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
    floor,
    heap_z,
    heap_i,
    heap_j,
    best_i,
    partner_i,
    best_j,
    partner_j,
):  # pragma: no cover - compiled
    """Update the heap and the best partners with a block of inner products, shape (n_targets, n_functions, n_functions).

    Of a block with itself (``same``) only what is above the diagonal is read.
    Pairs below ``floor`` do not enter the heap. Of equally good partners the one with the lower index stays, so that the order
    of the blocks does not matter.
    """
    n_i, n_j = columns_i.shape[0], columns_j.shape[0]
    totals = np.empty(n_j, dtype=np.float32)
    degree_i, degree_j = offsets_i[1] - offsets_i[0], offsets_j[1] - offsets_j[0]
    uniform = True
    for a in range(n_i):
        uniform = uniform and offsets_i[a + 1] - offsets_i[a] == degree_i
    for b in range(n_j):
        uniform = uniform and offsets_j[b + 1] - offsets_j[b] == degree_j
    squares = np.empty(products.shape[2], dtype=np.float32)
    freedom = degree_i * degree_j * products.shape[0]
    # With equal degrees evidence grows with the total: whole rows are compared with what would change anything.
    least_j = np.full(n_j, np.float32(-1.0))
    if uniform:
        for b in range(n_j):
            least_j[b] = _least_total(best_j[b], freedom, factor, offset, slope)
    for a in range(n_i):
        begin = a + 1 if same else 0
        start, stop = offsets_i[a], offsets_i[a + 1]
        fold = degree_j if uniform else 0
        _totals_of_row(products, variances, has_variances, start, stop, offsets_j, fold, begin, squares, totals)
        if uniform:
            least = min(
                _least_total(best_i[a], freedom, factor, offset, slope),
                _least_total(max(floor, heap_z[0]), freedom, factor, offset, slope),
            )
            if not _any_above(totals[begin:], least, least_j[begin:]):
                continue
        for b in range(begin, n_j):
            if uniform:
                if totals[b] <= min(least, least_j[b]):
                    continue
            else:
                freedom = (stop - start) * (offsets_j[b + 1] - offsets_j[b]) * products.shape[0]
            z = (np.cbrt(totals[b] * factor / np.float32(freedom)) - offset[freedom]) * slope[freedom]
            i, j = columns_i[a], columns_j[b]
            if z > best_i[a] or (z == best_i[a] and j < partner_i[a]):
                best_i[a], partner_i[a] = z, j
            if z > best_j[b] or (z == best_j[b] and i < partner_j[b]):
                best_j[b], partner_j[b] = z, i
                if uniform:
                    least_j[b] = _least_total(z, freedom, factor, offset, slope)
            if z >= floor and z > heap_z[0]:
                push(heap_z, heap_i, heap_j, z, i, j)
            if uniform:
                least = min(
                    _least_total(best_i[a], freedom, factor, offset, slope),
                    _least_total(max(floor, heap_z[0]), freedom, factor, offset, slope),
                )


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def column_grams(functions, offsets, scale, constant, means, grams):  # pragma: no cover - compiled
    """Write means and Gram matrices of the functions of each column, in the scale of the rows and off the constant.

    ``means[j, k] = sum_n b_k scale constant`` and ``grams[j, k, l] = sum_n b_k b_l scale^2 - means[j, k] means[j, l]``, for a
    constant of length 1. Places beyond the degree of a column are left as they are.
    """
    n_rows = scale.shape[0]
    for j in range(offsets.shape[0] - 1):
        degree = offsets[j + 1] - offsets[j]
        for k in range(degree):
            first = functions[offsets[j] + k]
            mean = 0.0
            for n in range(n_rows):
                mean += first[n] * scale[n] * constant[n]
            means[j, k] = mean
            for m in range(k + 1):
                second = functions[offsets[j] + m]
                total = 0.0
                for n in range(n_rows):
                    total += first[n] * second[n] * scale[n] * scale[n]
                grams[j, k, m] = total - means[j, k] * means[j, m]
                grams[j, m, k] = grams[j, k, m]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def column_leverages(functions, offsets, scale, constant, means, whiten, weights, out):  # pragma: no cover - compiled
    """Write the weighted sum of the squared leverages of each column into ``out``; ``whiten`` makes its functions orthonormal."""
    n_rows = scale.shape[0]
    diagonal = np.empty(n_rows)
    for j in range(offsets.shape[0] - 1):
        degree = offsets[j + 1] - offsets[j]
        diagonal[:] = 0.0
        for k in range(degree):
            mean = 0.0
            for m in range(degree):
                mean += whiten[j, k, m] * means[j, m]
            if degree == 2:
                first, second = functions[offsets[j]], functions[offsets[j] + 1]
                w0, w1 = whiten[j, k, 0], whiten[j, k, 1]
                for n in range(n_rows):
                    value = (w0 * first[n] + w1 * second[n]) * scale[n] - mean * constant[n]
                    diagonal[n] += value * value
            else:
                for n in range(n_rows):
                    value = 0.0
                    for m in range(degree):
                        value += whiten[j, k, m] * functions[offsets[j] + m, n]
                    value = value * scale[n] - mean * constant[n]
                    diagonal[n] += value * value
        total = 0.0
        for n in range(n_rows):
            total += diagonal[n] * diagonal[n] * weights[n]
        out[j] = total


@njit(cache=True, nogil=True)
def fill_pair_features(own, finer, pairs, shape, scale, main_scale, out):  # pragma: no cover - compiled
    """Write for each pair the products of its functions, the constant and the finer functions of both columns into ``out``.

    ``shape`` holds the number of functions and of finer functions of the first, then of the second columns. Products are in
    the scale of the evidence, the rest in that of the additive model.
    """
    n_rows = scale.shape[0]
    for pair in range(pairs.shape[0]):
        i, j = pairs[pair, 0], pairs[pair, 1]
        place = 0
        for k in range(shape[0]):
            first = own[i, k]
            for m in range(shape[2]):
                second, row = own[j, m], out[pair, place]
                for n in range(n_rows):
                    row[n] = first[n] * second[n] * scale[n]
                place += 1
        row = out[pair, place]
        for n in range(n_rows):
            row[n] = main_scale[n]
        place += 1
        for column, count in ((i, shape[1]), (j, shape[3])):
            for k in range(count):
                function, row = finer[column, k], out[pair, place]
                for n in range(n_rows):
                    row[n] = function[n] * main_scale[n]
                place += 1


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def weighted_leverages(white, weights, out):  # pragma: no cover - compiled
    """Write the weighted sum of squared leverages of each test into ``out``; features are orthonormal (tests, features, rows)."""
    diagonal = np.empty(white.shape[2], dtype=np.float32)
    for test in range(white.shape[0]):
        diagonal[:] = np.float32(0.0)
        for k in range(white.shape[1]):
            row = white[test, k]
            for n in range(row.shape[0]):
                diagonal[n] += row[n] * row[n]
        total = 0.0
        for n in range(diagonal.shape[0]):
            total += diagonal[n] * diagonal[n] * weights[n]
        out[test] = total
