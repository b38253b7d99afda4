"""Tables as the training loops see them: products with a few rows at a time, layout of the columns, and dropping columns.

The products are handed to the compiled loop as functions of fixed types, so that one compiled loop on disk serves dense and
sparse tables, columns with gates of their own, groups and pairs, and only the functions that are used are compiled.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import types
from numba.extending import register_jitable

from tamiz._utils.compiling import compile_argument, njit
from tamiz.core.compiled import FAST, FAST_INLINED, IN_PLACE, INLINED
from tamiz.core.step import writeable_view

if TYPE_CHECKING:
    from tamiz.engines.contract import Problem


class Matrix(NamedTuple):
    """Arrays of a table; those of the other kind are empty."""

    #: (n_samples, n_columns) float32, a dense table.
    values: np.ndarray
    #: Non-zeros of a sparse table (CSR), float32.
    data: np.ndarray = np.zeros(0, np.float32)
    #: Their columns, int32.
    indices: np.ndarray = np.zeros(0, np.int32)
    #: Where each row begins, int64.
    indptr: np.ndarray = np.zeros(0, np.int64)
    #: Implicit value of each column of a sparse table, float32: centred data without densifying.
    offset: np.ndarray = np.zeros(0, np.float32)
    #: (n_features + 1,) int64: the first column of each feature, and the end; empty if every column is a feature of its own.
    #: Columns behind the end are always read.
    starts: np.ndarray = np.zeros(0, np.int64)
    #: (n_all_features + 1,) int64: for pairs, the first of the functions of each feature, which follow the columns; else empty.
    #: Features that are always read come last.
    functions: np.ndarray = np.zeros(0, np.int64)
    #: (n_features,) float32: factor of gamma in the gates of each group, see :meth:`Design.scale_groups`; empty: 1.
    scales: np.ndarray = np.zeros(0, np.float32)
    #: (n_features,) float32: divisor of gamma's gradient on held-out rows for each group.
    divisors: np.ndarray = np.zeros(0, np.float32)


def _dense_scores(matrix, rows, weights, width, intercept, scores):
    """Compute ``scores = X[rows] @ weights[:, :width].T + intercept``."""
    n, values = rows.shape[0], matrix.values
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


def _dense_gradient(matrix, rows, score_gradient, gradient, width):
    """Compute ``gradient[:, :width] = score_gradient.T @ X[rows]``."""
    n, values = rows.shape[0], matrix.values
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


def _sparse_scores(matrix, rows, weights, width, intercept, scores):
    """Compute ``scores = X[rows] @ weights[:, :width].T + intercept``."""
    data, indices, indptr, offset = matrix.data, matrix.indices, matrix.indptr, matrix.offset
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


def _sparse_gradient(matrix, rows, score_gradient, gradient, width):
    """Compute ``gradient[:, :width] = score_gradient.T @ X[rows]``."""
    data, indices, indptr, offset = matrix.data, matrix.indices, matrix.indptr, matrix.offset
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


@register_jitable(**FAST_INLINED)
def sum_groups(of_columns, matrix, out, held_out, add):
    """Write the sum over the columns of each group, or add it; ``held_out``: divided by ``matrix.divisors``."""
    starts, begin = matrix.starts, 0
    for i in range(out.shape[0]):
        total = np.float32(0.0)
        end = starts[i + 1]
        for j in range(begin, end):
            total += of_columns[j]
        if held_out:
            total /= matrix.divisors[i]
        out[i] = total + (out[i] if add else np.float32(0.0))
        begin = end


@register_jitable(**FAST_INLINED)
def weighted_gradient(weights, gradient, out):
    """Write ``w * g`` summed over the outputs: the gradient with respect to the gate of each column."""
    width = out.shape[0]
    for c in range(weights.shape[0]):
        # Rows are cut as ``weights[c][:width]``, not ``weights[:, :width][c]``: only of the former does the compiler know
        # that the entries lie side by side.
        w, g = weights[c][:width], gradient[c][:width]
        for j in range(width):
            out[j] = (out[j] if c > 0 else np.float32(0.0)) + w[j] * g[j]


def group_gradient(matrix, weights, gradient, scratch, gamma, held_out, add, out):
    """Compute the gradient with respect to gamma of groups of columns, or add it to ``out``."""
    weighted_gradient(weights, gradient, scratch)
    sum_groups(scratch, matrix, out, held_out, add)


def no_gradient(matrix, weights, gradient, scratch, gamma, held_out, add, out):
    """Do nothing, where every column is a feature: the loop itself then computes the gradient of gamma."""


@register_jitable(**INLINED)
def gamma_of(gamma, feature):
    """Factor of a feature; those behind gamma are always read."""
    return max(gamma[feature], np.float32(0.0)) if feature < gamma.shape[0] else np.float32(1.0)


@register_jitable(**INLINED)
def open_gates(matrix, gamma, gate):
    """Write the gate of every coefficient: gamma of its feature or, for a product, that of both features multiplied."""
    starts, functions, scales = matrix.starts, matrix.functions, matrix.scales
    place = 0
    for i in range(starts.shape[0] - 1):
        scale = scales[i] if i < scales.shape[0] else np.float32(1.0)
        for j in range(place, starts[i + 1]):
            gate[j] = scale * gamma_of(gamma, i)
        place = starts[i + 1]
    for i in range(functions.shape[0] - 1):
        for _a in range(functions[i], functions[i + 1]):
            for other in range(i + 1, functions.shape[0] - 1):
                both = gamma_of(gamma, i) * gamma_of(gamma, other)
                for _b in range(functions[other], functions[other + 1]):
                    gate[place] = both
                    place += 1


_VECTOR, TABLE = types.Array(types.float32, 1, "C"), types.Array(types.float32, 2, "C")
_WHOLE = types.Array(types.int64, 1, "C")
MATRIX = types.NamedTuple(
    (TABLE, _VECTOR, types.Array(types.int32, 1, "C"), _WHOLE, _VECTOR, _WHOLE, _WHOLE, _VECTOR, _VECTOR), Matrix
)
_SIGNATURES = (
    types.void(MATRIX, _WHOLE, TABLE, types.int64, _VECTOR, TABLE),
    types.void(MATRIX, _WHOLE, TABLE, TABLE, types.int64),
    types.void(MATRIX, TABLE, TABLE, _VECTOR, _VECTOR, types.boolean, types.boolean, _VECTOR),
)


@cache
def compile_products(*functions: Callable[..., None], fastmath: frozenset[str] = frozenset(FAST)) -> tuple[Any, ...]:
    """Compile scores, gradient of the weights and gradient of gamma of a table for the loop."""
    return tuple(compile_argument(one, types_, fastmath=set(fastmath)) for one, types_ in zip(functions, _SIGNATURES))


@njit(**IN_PLACE)
def _copy_columns(values, keep, out):
    """Copy the columns ``keep`` of every row; ``out`` may be the front of the same memory, rows are read before written."""
    width = keep.shape[0]
    for i in range(values.shape[0]):
        for j in range(width):
            out[i * width + j] = values[i, keep[j]]


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


@njit(nogil=True)
def _hash_dense(bits, first, second):
    """Hash each column of a table of float32 numbers, seen as integers."""
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            first[j] = (first[j] ^ bits[i, j]) * np.uint32(0x85EBCA6B) + np.uint32(0x9E3779B9)
            second[j] = (second[j] + bits[i, j]) * np.uint32(0xC2B2AE35)


@njit(nogil=True)
def _hash_sparse(bits, indices, indptr, found):
    """Add a hash of the entries of each column and of their rows; the order of the entries does not matter."""
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            z = (np.uint64(bits[p]) << np.uint64(32)) ^ np.uint64(i + 1)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            found[indices[p]] += (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)


def in_canonical_order(problem: Problem) -> tuple[Problem, np.ndarray, np.ndarray | None, np.ndarray]:
    """Sort features, and the columns of each, by a hash of their contents; columns that are always read go to the end.

    A fit on the result does not depend on the order of the columns of the table: sums are taken, and first weights drawn, in
    the same order. Columns with the same contents stay in the order of the table.

    Returns
    -------
    problem : Problem
        With the columns of each group side by side.
    order : ndarray of int, shape (n_columns,)
        Old numbers of the columns.
    starts : ndarray of int, shape (n_features + 1,), or None
        First column of each group and the end; None without groups.
    features : ndarray of int, shape (n_features,)
        Old numbers of the features.

    Examples
    --------
    >>> from tamiz.engines.contract import Problem
    >>> table = np.array([[3.0, 1.0, 2.0]], dtype=np.float32)
    >>> one, other = (in_canonical_order(Problem(X, np.zeros((1, 1))))[0].X for X in (table, table[:, [2, 0, 1]]))
    >>> bool((one == other).all())
    True
    """
    X, offset, owned, n = problem.X, problem.offset, problem.owned, problem.n_features
    hashes = np.zeros(problem.n_columns, dtype=np.uint64)
    if sp.issparse(X):
        X = X.tocsr() if owned else X.tocsr().copy()
        _hash_sparse(np.asarray(X.data, np.float32).view(np.uint32), X.indices, X.indptr, hashes)
        if offset is not None:
            hashes += np.asarray(offset, np.float32).view(np.uint32) * np.uint64(0x9E3779B97F4A7C15)
    else:
        values = np.ascontiguousarray(X, dtype=np.float32)
        X, owned = writeable_view(values), owned or not np.shares_memory(values, X)
        halves = hashes.view(np.uint32).reshape(-1, 2)
        first, second = halves.T.copy()
        _hash_dense(X.view(np.uint32), first, second)
        halves[:, 0], halves[:, 1] = first, second
    groups, starts = problem.groups, None
    if groups is None:
        order = features = np.argsort(hashes, kind="stable").astype(np.int32)
    else:
        gated, of_features = groups >= 0, np.zeros(n, dtype=np.uint64)
        np.add.at(of_features, groups[gated], hashes[gated])
        features = np.argsort(of_features, kind="stable").astype(np.int32)
        number = np.append(np.argsort(features, kind="stable"), n)  # groups of -1 come last
        order = np.lexsort((hashes, number[groups])).astype(np.int32)
        groups = np.where(gated[order], number[groups[order]], -1)
        starts = np.concatenate([[0], np.cumsum(np.bincount(groups[groups >= 0], minlength=n))])
    del hashes
    if sp.issparse(X):
        position = np.empty(order.size, dtype=X.indices.dtype)
        position[order] = np.arange(order.size, dtype=position.dtype)
        X.indices = position[X.indices]
        X.has_sorted_indices = False
        X.sort_indices()
    else:
        old, X = X, X if owned else np.empty_like(X)
        n_rows = max(1, 2**16 // max(1, order.size))  # a few at a time: an owned table is sorted in place
        for begin in range(0, X.shape[0], n_rows):
            X[begin : begin + n_rows] = old[begin : begin + n_rows].take(order, axis=1)
    if offset is not None:
        offset = offset if problem.owned else offset.copy()
        offset[:] = offset[order]
    return replace(problem, X=X, offset=offset, owned=True, groups=groups), order, starts, features


class Design:
    """A table that shrinks as its columns are eliminated.

    Memory that is the caller's is never written to.

    Parameters
    ----------
    X : ndarray or sparse matrix
        The table.
    offset : ndarray or None
        Implicit value of each column of a sparse table.
    owned : bool
        Whether X and offset may be overwritten.
    starts : ndarray of int, shape (n_features + 1,), or None, default=None
        First column of each group, and the end; None: every column is a feature.
    features : ndarray of int, shape (n_features,), or None, default=None
        Numbers by which the features are reported; None: 0, 1, ...

    Examples
    --------
    >>> design = Design(np.eye(3), None, owned=False)
    >>> design.keep(np.array([0, 2], dtype=np.int32), 2)
    >>> design.matrix.values.tolist()
    [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self,
        X: Any,
        offset: np.ndarray | None,
        owned: bool,
        starts: np.ndarray | None = None,
        features: np.ndarray | None = None,
    ) -> None:
        self.sparse = sp.issparse(X)
        self.n_coefficients = X.shape[1]
        self.features = features
        starts = np.zeros(0, np.int64) if starts is None else starts.astype(np.int64)
        if self.sparse:
            X = X.tocsr()
            self.matrix = Matrix(
                values=np.zeros((X.shape[0], 0), np.float32),
                data=X.data.astype(np.float32, copy=not owned),
                indices=X.indices.astype(np.int32, copy=not owned),
                indptr=X.indptr.astype(np.int64),
                offset=(np.zeros(X.shape[1]) if offset is None else offset).astype(np.float32, copy=not owned),
                starts=starts,
            )
        else:
            values = np.ascontiguousarray(X, dtype=np.float32)
            owned = owned or not np.shares_memory(values, X)
            self.matrix = Matrix(writeable_view(values), starts=starts)
        self.owned = owned
        # Of noise the gradient is a sum of as many terms as there are weights: its deviation, by which a feature may survive,
        # grows with their root, its mean, which eliminates it, with their number. Divided by the fourth root, large and
        # small features of noise are kept about equally often by linear models (``benchmarks/honest_gamma.py``).
        self.matrix = self.matrix._replace(divisors=(np.diff(starts) ** 0.25).astype(np.float32))

    def scale_groups(self, gate: np.ndarray) -> None:
        """Let groups of k columns enter a network with ``k**-1.5`` of the variance of a single column, until gamma is closed.

        Noise changes the loss on held-out rows by a mean, the error that its weights add, and by chance. With the scale the
        mean falls as its square, chance as the scale itself: small enough, a group of noise is judged by chance, as a column of
        noise is. In return the gradient is multiplied by ``k**0.75``. k counts from the smallest group. Opens the gates.
        """
        starts, sizes = self.matrix.starts, np.diff(self.matrix.starts)
        if sizes.size == 0 or sizes.min() == sizes.max():
            return
        variance = np.add.reduceat(self.matrix.values[:, : starts[-1]].var(axis=0, dtype=np.float64), starts[:-1])
        variance = np.maximum(variance, 1e-30)  # of constant columns
        k = sizes / sizes.min()
        wanted = np.median(variance[k == 1]) * k**-1.5
        scales = np.where(k > 1, np.minimum(np.sqrt(wanted / variance), 1.0), 1.0).astype(np.float32)
        self.matrix = self.matrix._replace(scales=scales, divisors=(k**-0.75 / scales).astype(np.float32))
        gate[: starts[-1]] = np.repeat(scales, sizes)

    def copy(self) -> Design:
        """Copy the table; dropping columns of either leaves the other as it is.

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
    def products(self) -> tuple[Any, ...]:
        """Compiled functions of the linear loop."""
        products = (_sparse_scores, _sparse_gradient) if self.sparse else (_dense_scores, _dense_gradient)
        return compile_products(*products, group_gradient if self.matrix.starts.size else no_gradient)

    def find_living(self, rank: np.ndarray, m: int, order: np.ndarray) -> int:
        """Write the positions of the coefficients of features with a rank up to ``m`` to ``order`` and count them."""
        starts = self.matrix.starts
        alive = rank <= m
        if starts.size:
            sizes, always = np.diff(starts), np.ones(self.n_coefficients - starts[-1], dtype=bool)
            starts = np.concatenate([[0], np.cumsum(sizes[alive])])
            scales, divisors = (of_groups[alive] if of_groups.size else of_groups for of_groups in self.matrix[-2:])
            self.matrix = self.matrix._replace(starts=starts, scales=scales, divisors=divisors)
            alive = np.concatenate([np.repeat(alive, sizes), always])
        columns = np.flatnonzero(alive)
        order[: columns.size] = columns
        return columns.size

    def keep(self, order: np.ndarray, width: int) -> None:
        """Keep the columns ``order[:width]``."""
        values, data, indices, indptr, offset = self.matrix[:5]
        self.n_coefficients = width
        if self.sparse:
            position = np.full(offset.size, -1, dtype=np.int32)
            position[order[:width]] = np.arange(width, dtype=np.int32)
            left = _drop_columns(data, indices, indptr, offset, position)
            self.matrix = self.matrix._replace(data=data[:left], indices=indices[:left], offset=offset[:width])
            return
        size = values.shape[0] * width
        out = values.reshape(-1)[:size] if self.owned else np.empty(size, dtype=np.float32)
        _copy_columns(values, order[:width], out)
        self.matrix = self.matrix._replace(values=out.reshape(values.shape[0], width))
        self.owned = True
