"""Orthonormal functions of columns: polynomials of mean ranks, contrasts of categories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.compiling import njit
from tamiz.pairs.columns import ColumnTable

# A function that rests on fewer rows says more about those rows than about the column.
MIN_ROWS = 5


@njit(nogil=True, fastmath={"reassoc", "contract"})
def _append(current, functions, count, weights, smallest):  # pragma: no cover - compiled
    """Make ``current`` orthonormal to the first functions and store it behind them; False if nothing is left of it."""
    n_rows = current.shape[0]
    size_before = mean = 0.0
    for n in range(n_rows):
        mean += weights[n] * current[n]
        size_before += weights[n] * current[n] * current[n]
    current -= mean
    for _again in range(2):  # twice is enough for orthogonality
        for k in range(count):
            dot = 0.0
            for n in range(n_rows):
                dot += weights[n] * current[n] * functions[k, n]
            current -= dot * functions[k]
    size = 0.0
    for n in range(n_rows):
        size += weights[n] * current[n] * current[n]
    if size <= smallest * size_before or size == 0.0:
        return False
    current *= 1.0 / np.sqrt(size)
    functions[count] = current
    return True


@njit(nogil=True, fastmath={"reassoc", "contract"})
def polynomials(values, order, weights, degree, out):  # pragma: no cover - compiled
    """Write the orthonormal polynomials of the mean ranks of one column into ``out``; return their number."""
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
    current = np.ones(n_rows)
    functions = np.empty((degree, n_rows))
    count = 0
    while count < min(degree, distinct - 1):
        # rank times the previous polynomial spans the same space as the next power, and is better conditioned
        current *= rank
        if not _append(current, functions, count, weights, 1e-8):
            break
        fourth = 0.0
        for n in range(n_rows):
            fourth += current[n] ** 4
        if fourth / n_rows * MIN_ROWS > n_rows:
            break
        count += 1
    out[:count] = functions[:count]
    return count


@njit(nogil=True)
def _block_polynomials(values, order, weights, degree, out, degrees):  # pragma: no cover - compiled
    """Write the polynomials of some columns one after the other into ``out``, and their numbers into ``degrees``."""
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
                row = out[place + k]
                row[places] = template[k]
        degrees[column] = found
        place += found


def write_polynomials(values: np.ndarray, weights: np.ndarray, degree: int, out: np.ndarray) -> np.ndarray:
    """Write the polynomials of some columns one after the other into ``out``; return the number of each column.

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
    _block_polynomials(values, np.argsort(values, axis=1), weights, degree, out, degrees)
    return degrees


@njit(nogil=True, fastmath={"reassoc", "contract"})
def extend_polynomials(own, weights, out):  # pragma: no cover - compiled
    """Write the polynomials of one column and those of higher degree into ``out``; return their number."""
    n_rows = own.shape[1]
    count = min(own.shape[0], out.shape[0])
    functions = np.empty((out.shape[0], n_rows))
    functions[:count] = own[:count]
    current = np.empty(n_rows)
    while 0 < count < out.shape[0]:
        current[:] = functions[count - 1] * functions[0]
        if not _append(current, functions, count, weights, 1e-5):
            break
        count += 1
    out[:count] = functions[:count]
    return count


# Levels beyond these are pooled: each costs a degree of freedom in every pair.
MAX_LEVELS = 12
MAX_GROUP_FUNCTIONS = 11
# Degree of the curves that take the own effect of a column out: the product of two columns that are nearly equal, each of
# degree 2, is a polynomial of degree 4.
FINER_DEGREE = 4
# Columns whose functions are computed at a time, in one thread.
COLUMNS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions of some columns.

    Parameters
    ----------
    functions : ndarray of float32, shape (n_functions, n_samples), or csr_array
        The functions, those of one column one after the other. If sparse, the stored part: ``b = stored + shift``.
    offsets : ndarray of int64, shape (n_columns + 1,)
        ``functions[offsets[j]:offsets[j + 1]]`` belong to column j.
    is_polynomial : ndarray of bool, shape (n_columns,)
        False where the functions are contrasts.
    kurtosis : ndarray of float32, shape (n_columns,)
        Largest mean fourth power of a function of the column; 1 for a balanced binary column.
    shift : ndarray of float32, shape (n_functions,), or None
        Constant part of sparse functions.
    """

    functions: Any
    offsets: np.ndarray
    is_polynomial: np.ndarray
    kurtosis: np.ndarray
    shift: np.ndarray | None = None

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.offsets) - 1

    @property
    def degrees(self) -> np.ndarray:
        """Number of functions of each column; 0 for one that is constant or too rare."""
        return np.diff(self.offsets)

    def dense(self) -> np.ndarray:
        """All functions, float32 of shape (n_functions, n_samples)."""
        return self.functions if self.shift is None else self.functions.toarray() + self.shift[:, None]

    def of_column(self, index: int) -> np.ndarray:
        """Functions of one column, float64 of shape (degree, n_samples)."""
        return self.take(np.array([index])).dense().astype(np.float64)

    def take(self, columns: np.ndarray) -> Basis:
        """Select some columns."""
        offsets = np.concatenate([[0], np.cumsum(self.degrees[columns])]).astype(np.int64)
        first, last = self.offsets[columns[0]], self.offsets[columns[-1] + 1]
        rows: Any = slice(first, last)
        if last - first != offsets[-1]:  # of neighbours a view will do
            rows = np.concatenate([np.arange(self.offsets[j], self.offsets[j + 1]) for j in columns])
        shift = None if self.shift is None else self.shift[rows]
        return Basis(self.functions[rows], offsets, self.is_polynomial[columns], self.kurtosis[columns], shift)


def finer_functions(basis: Basis, column: int, weights: np.ndarray) -> np.ndarray:
    """Compute the functions that take the own effect of a column out: its polynomials, continued up to degree 4."""
    own = basis.of_column(column).astype(np.float32)
    if not basis.is_polynomial[column] or len(own) == 0:
        return own
    out = np.empty((FINER_DEGREE, own.shape[1]), dtype=np.float32)
    return out[: extend_polynomials(own, weights, out)]


def _orthonormal(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Orthonormal functions, shape (n_functions, n_samples), of the span of centred columns, strongest first."""
    centred = columns - weights @ columns
    scale = np.sqrt(weights @ centred**2)
    centred = centred[:, scale > 1e-9] / scale[scale > 1e-9]
    if centred.shape[1] == 0:
        return np.empty((0, len(columns)))
    root = np.sqrt(np.maximum(weights, 0.0))[:, None]
    _, singular, right = np.linalg.svd(root * centred, full_matrices=False)
    kept = np.flatnonzero(singular > 1e-4 * singular[0])[:MAX_GROUP_FUNCTIONS]
    functions = (centred @ (right[kept].T / singular[kept])).T
    rests_on = len(columns) / np.mean(functions**4, axis=1)
    return functions[rests_on >= MIN_ROWS]


def category_functions(codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute orthonormal contrasts of a categorical column; rare levels are pooled.

    Examples
    --------
    >>> b = category_functions(np.repeat([0.0, 1.0, 2.0], 10), np.full(30, 1 / 30))
    >>> b.shape, np.abs(b @ b.T / 30).round(6).tolist()
    ((2, 30), [[1.0, 0.0], [0.0, 1.0]])
    """
    levels, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    place = np.empty(len(levels), dtype=np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(levels))
    n_own = min(MAX_LEVELS - 1, int((counts >= MIN_ROWS).sum()))
    if n_own < 1:
        return np.empty((0, len(codes)))
    pooled = np.minimum(place[inverse], n_own)
    return _orthonormal((pooled[:, None] == np.arange(n_own + 1)).astype(np.float64), weights)


def _joint_functions(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute contrasts of a categorical column, or functions of the span of the ranks of a group."""
    if values.shape[1] == 1:
        return category_functions(values[:, 0], weights)
    out = np.empty(values.T.shape, dtype=np.float32)
    ranked = out[: write_polynomials(np.ascontiguousarray(values.T), weights, 1, out).sum()]
    return _orthonormal(ranked.T.astype(np.float64), weights)


def make_basis(
    table: ColumnTable, weights: np.ndarray, *, degree: int = 2, columns: np.ndarray | None = None, n_threads: int = 1
) -> Basis:
    """Compute the functions of a table.

    Parameters
    ----------
    table : ColumnTable
        The columns.
    weights : ndarray of shape (n_samples,)
        Weights of the rows, adding up to 1.
    degree : int, default=2
        Highest degree of the polynomials. Sparse tables always have degree 1.
    columns : ndarray of int or None, default=None
        The columns that are wanted; None is all.
    n_threads : int, default=1
        Threads.

    Examples
    --------
    >>> from tamiz.pairs.columns import read_columns
    >>> table = read_columns(np.array([[0.0, 7], [1, 7], [0, 7], [1, 7], [0, 7], [1, 7], [0, 7], [1, 7], [0, 7], [1, 7]]))
    >>> basis = make_basis(table, np.full(10, 0.1))
    >>> basis.degrees.tolist(), np.unique(basis.functions).tolist()
    ([1, 0], [-1.0, 1.0])
    """
    wanted = np.arange(table.n_columns) if columns is None else np.asarray(columns)
    if sp.issparse(table.values):
        degree = 1
        if all(len(table.members[j]) == 1 for j in wanted):
            return _sparse_basis(table, weights, wanted)
    single = table.is_single[wanted]
    room = np.concatenate([[0], np.cumsum(np.where(single, degree, MAX_GROUP_FUNCTIONS))])
    functions = np.empty((room[-1], table.n_samples), dtype=np.float32)
    degrees = np.zeros(len(wanted), dtype=np.int64)
    kurtosis = np.zeros(len(wanted), dtype=np.float32)

    def fill(start: int) -> tuple[int, int]:
        part = slice(start, min(start + COLUMNS_AT_ONCE, len(wanted)))
        out, counts = functions[room[start] : room[part.stop]], degrees[part]
        alone = single[part]
        values = table.values[:, table.first_inputs[wanted[part][alone]]]
        values = np.ascontiguousarray((values.toarray() if sp.issparse(values) else values).T)
        counts[alone] = write_polynomials(values, weights, degree, out)
        if not alone.all():
            own = iter(np.split(out[: counts.sum()].copy(), np.cumsum(counts[alone])[:-1]))
            found = [
                next(own) if is_alone else _joint_functions(table.column(column), weights)
                for column, is_alone in zip(wanted[part], alone)
            ]
            counts[:] = [len(functions) for functions in found]
            out[: counts.sum()] = np.concatenate(found)
        if counts.any():
            fourth = np.square(np.square(out[: counts.sum()])).mean(axis=1)
            kurtosis[part][counts > 0] = np.maximum.reduceat(fourth, (np.cumsum(counts) - counts)[counts > 0])
        return start, int(counts.sum())

    place = 0
    # Each block writes where its functions stand if every column has as many as it can have; blocks come back in order, and
    # those behind a column that has fewer move up.
    for start, n_functions in in_order(fill, range(0, len(wanted), COLUMNS_AT_ONCE), n_threads):
        if place < room[start]:
            functions[place : place + n_functions] = functions[room[start] : room[start] + n_functions]
        place += n_functions
    return Basis(functions[:place], np.concatenate([[0], np.cumsum(degrees)]), single, kurtosis)


def in_order(function: Callable[[Any], Any], parts: Sequence[Any], n_threads: int) -> Iterable[Any]:
    """Apply a function to parts in threads, a few parts ahead, and yield the results in order.

    Examples
    --------
    >>> list(in_order(abs, [-1, 2, -3], 2))
    [1, 2, 3]
    """
    if n_threads <= 1 or len(parts) <= 1:
        yield from map(function, parts)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        ahead: list[Any] = []
        for part in parts:
            ahead.append(pool.submit(function, part))
            if len(ahead) > 2 * n_threads:
                yield ahead.pop(0).result()
        for future in ahead:
            yield future.result()


def _sparse_basis(table: ColumnTable, weights: np.ndarray, wanted: np.ndarray) -> Basis:
    """Compute functions of degree 1 whose stored entries are those of the table; zeros share one mean rank."""
    values = sp.csc_array(table.values[:, table.first_inputs[wanted]])
    data = np.zeros(values.nnz, dtype=np.float32)
    shift, kurtosis = np.zeros(len(wanted), dtype=np.float32), np.zeros(len(wanted), dtype=np.float32)
    degrees = np.zeros(len(wanted), dtype=np.int64)
    out = np.empty((1, table.n_samples), dtype=np.float32)
    for column in range(len(wanted)):
        entries = slice(values.indptr[column], values.indptr[column + 1])
        rows = values.indices[entries]
        dense = np.zeros(table.n_samples)
        dense[rows] = values.data[entries]
        degrees[column] = polynomials(dense, np.argsort(dense), weights, 1, out)
        if degrees[column]:
            zero = dense == 0.0
            shift[column] = out[0, zero.argmax()] if zero.any() else 0.0
            data[entries] = out[0, rows] - shift[column]
            kurtosis[column] = np.square(np.square(out)).mean()
    functions = sp.csc_array((data, values.indices, values.indptr), shape=values.shape).T.tocsr()
    kept = np.flatnonzero(degrees)
    offsets = np.concatenate([[0], np.cumsum(degrees)])
    return Basis(sp.csr_array(functions[kept]), offsets, np.ones(len(wanted), dtype=bool), kurtosis, shift[kept])
