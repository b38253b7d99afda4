"""Orthonormal polynomials of the mean ranks of columns, compiled.

For weights w (adding up to 1) the polynomials b_1, ..., b_K of a column have mean 0, variance 1 and no correlation on the values
that the column really takes, so that ties, counts and binary columns need no special case.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# A function that rests on fewer rows says more about those rows than about the column.
MIN_ROWS = 5
# Rows that are equal in float32 change places at most so often per row; columns that need more are sorted again in full.
_MOST_MOVES = 4


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def polynomials(values, order, weights, degree, out):  # pragma: no cover - compiled
    """Write the orthonormal polynomials of the mean ranks of one column into ``out``; return how many there are."""
    n_rows = values.shape[0]
    rank = np.empty(n_rows)
    below = 0.0
    distinct = 0
    start = 0
    while start < n_rows:
        stop = start
        inside = 0.0
        while stop < n_rows and values[order[stop]] == values[order[start]]:
            inside += weights[order[stop]]
            stop += 1
        if inside > 0.0:
            distinct += 1
        for position in range(start, stop):
            rank[order[position]] = 2.0 * (below + 0.5 * inside) - 1.0  # in (-1, 1)
        below += inside
        start = stop
    n_functions = 0
    current = np.ones(n_rows)
    functions = np.empty((degree, n_rows))
    for _ in range(min(degree, distinct - 1)):
        # rank times the previous polynomial spans the same space as the next power, and is better conditioned
        size_before = 0.0
        mean = 0.0
        for n in range(n_rows):
            current[n] *= rank[n]
            mean += weights[n] * current[n]
            size_before += weights[n] * current[n] * current[n]
        for n in range(n_rows):
            current[n] -= mean
        for _again in range(2):  # twice is enough for orthogonality
            for k in range(n_functions):
                dot = 0.0
                for n in range(n_rows):
                    dot += weights[n] * current[n] * functions[k, n]
                for n in range(n_rows):
                    current[n] -= dot * functions[k, n]
        size = 0.0
        for n in range(n_rows):
            size += weights[n] * current[n] * current[n]
        if size <= 1e-8 * size_before or size == 0.0:
            break
        scale = 1.0 / np.sqrt(size)
        fourth = 0.0
        for n in range(n_rows):
            current[n] *= scale
            fourth += current[n] ** 4
        if fourth / n_rows * MIN_ROWS > n_rows:
            break
        for n in range(n_rows):
            functions[n_functions, n] = current[n]
        n_functions += 1
    for k in range(n_functions):
        for n in range(n_rows):
            out[k, n] = functions[k, n]
    return n_functions


@njit(cache=True, nogil=True)
def _pack(bits, keys):  # pragma: no cover - compiled
    """Write integers in the order of float32 numbers, given by their bits, with the number of the row below them."""
    for column in range(bits.shape[0]):
        source, target = bits[column], keys[column]
        for n in range(source.shape[0]):
            # The bits of a negative number grow with its size: all but the sign are turned around.
            key = source[n] ^ ((source[n] >> np.int32(31)) & np.int32(0x7FFFFFFF))
            target[n] = (np.int64(key) << np.int64(32)) | np.int64(n)


@njit(cache=True, nogil=True)
def _unpack(keys, values, is_sorted):  # pragma: no cover - compiled
    """Turn sorted keys into orders, in place, and sort what is equal in float32 only; tell for which columns that is done."""
    for column in range(keys.shape[0]):
        order, own = keys[column], values[column]
        room = _MOST_MOVES * order.shape[0]
        for n in range(order.shape[0]):
            row = order[n] & np.int64(0xFFFFFFFF)
            place = n
            while place > 0 and own[order[place - 1]] > own[row] and room > 0:
                order[place] = order[place - 1]
                place -= 1
                room -= 1
            order[place] = row
        is_sorted[column] = room > 0


def row_orders(values: np.ndarray) -> np.ndarray:
    """Return the order of the entries of each row of a table, as ``argsort`` does, for finite numbers.

    Numbers are rounded to float32 and sorted as integers together with their places, which takes half of the time; those
    that rounding makes equal are put in order afterwards.

    Examples
    --------
    >>> row_orders(np.array([[3.0, -1.0, 2.0], [1.0 + 1e-12, 1.0, -0.5]])).tolist()
    [[1, 2, 0], [2, 1, 0]]
    """
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(values, dtype=np.float32)
    keys = np.empty(values.shape, dtype=np.int64)
    _pack(rounded.view(np.int32), keys)
    keys.sort(axis=1)
    is_sorted = np.zeros(len(values), dtype=bool)
    _unpack(keys, values, is_sorted)
    for column in np.flatnonzero(~is_sorted):
        keys[column] = np.argsort(values[column])
    return keys


@njit(cache=True, nogil=True)
def _block_polynomials(values, order, weights, degree, out, degrees):  # pragma: no cover - compiled
    """Write the polynomials of some columns one after the other into ``out``, and how many each has into ``degrees``."""
    n_rows = values.shape[1]
    # Without ties and with equal weights the ranks of all columns are the same numbers in another order.
    template = np.empty((degree, n_rows), dtype=np.float32)
    n_template = -1
    if (weights == weights[0]).all():
        places = np.arange(n_rows)
        n_template = polynomials(places.astype(values.dtype), places, weights, degree, template)
    place = 0
    for column in range(values.shape[0]):
        own, places = values[column], order[column]
        n_ties = 0
        if n_template >= 0:
            for n in range(1, n_rows):
                n_ties += own[places[n]] == own[places[n - 1]]
        if n_template < 0 or n_ties > 0:
            found = polynomials(own, places, weights, degree, out[place:])
        else:
            found = n_template
            for k in range(found):
                source, target = template[k], out[place + k]
                for n in range(n_rows):
                    target[places[n]] = source[n]
        degrees[column] = found
        place += found


def write_polynomials(values: np.ndarray, weights: np.ndarray, degree: int, out: np.ndarray) -> np.ndarray:
    """Write the polynomials of some columns one after the other into ``out``; return how many each has.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n_samples)
        The columns, in float32 or float64.
    weights : ndarray of shape (n_samples,)
        Weights of the rows, adding up to 1.
    degree : int
        Highest degree.
    out : ndarray of float32, shape (n_columns * degree, n_samples)
        Where to write.

    Examples
    --------
    >>> out = np.empty((2, 10), dtype=np.float32)
    >>> write_polynomials(np.array([np.arange(10.0) ** 2, np.ones(10)]), np.full(10, 0.1), 1, out).tolist()
    [1, 0]
    >>> [round(float(value), 2) for value in out[0, :2]]
    [-1.57, -1.22]
    """
    degrees = np.zeros(len(values), dtype=np.int64)
    _block_polynomials(values, row_orders(values), weights, degree, out, degrees)
    return degrees


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def extend_polynomials(own, weights, out):  # pragma: no cover - compiled
    """Write the polynomials of one column and those of higher degree into ``out``; return how many there are."""
    n_functions, n_rows = own.shape
    n_functions = min(n_functions, out.shape[0])
    functions = np.empty((out.shape[0], n_rows))
    for k in range(n_functions):
        for n in range(n_rows):
            functions[k, n] = own[k, n]
    current = np.empty(n_rows)
    while 0 < n_functions < out.shape[0]:
        mean = 0.0
        size_before = 0.0
        for n in range(n_rows):
            current[n] = functions[n_functions - 1, n] * functions[0, n]
            mean += weights[n] * current[n]
            size_before += weights[n] * current[n] * current[n]
        for n in range(n_rows):
            current[n] -= mean
        for _ in range(2):
            for k in range(n_functions):
                dot = 0.0
                for n in range(n_rows):
                    dot += weights[n] * current[n] * functions[k, n]
                for n in range(n_rows):
                    current[n] -= dot * functions[k, n]
        size = 0.0
        for n in range(n_rows):
            size += weights[n] * current[n] * current[n]
        if size <= 1e-5 * size_before:
            break
        scale = 1.0 / np.sqrt(size)
        for n in range(n_rows):
            functions[n_functions, n] = current[n] * scale
        n_functions += 1
    for k in range(n_functions):
        for n in range(n_rows):
            out[k, n] = functions[k, n]
    return n_functions
