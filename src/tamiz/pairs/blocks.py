"""Search all pairs block by block: matrix products of the functions, weighted by the residuals.

For residuals r and functions b of two columns the evidence is ``sum_kl (sum_n r_n b_ik b_jl)^2``. A block of columns against
another is one matrix product, of which only the strongest pairs and the best partner of each column are kept. The evidence here
is approximate (products are taken to have variance 1, or, for columns with rare values, their own); what is found is
judged exactly afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import scipy.sparse as sp

from tamiz._utils.compiling import njit
from tamiz._utils.memory import one_blas_thread
from tamiz.pairs.basis import Basis, in_order

# Functions of a block: the matrix products of so many work at full speed, and still fit into the caches.
BLOCK_FUNCTIONS = 768
# Above this mean fourth power the variance of a product differs much from 1; a uniform column has 1.8 to 2.2.
HEAVY = 4.0


@cache
def transform_tables(largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute offset and slope by degrees of freedom d that make ``(T / d) ** (1 / 3)`` a standard normal (Wilson, Hilferty).

    Examples
    --------
    >>> offset, slope = transform_tables(4)
    >>> round(float(((13.28 / 4) ** (1 / 3) - offset[4]) * slope[4]), 2)  # the 99 % point of chi-square with 4
    2.32
    """
    freedom = np.maximum(np.arange(largest + 1), 1)
    spread = 2.0 / (9.0 * freedom)
    return (1.0 - spread).astype(np.float32), (1.0 / np.sqrt(spread)).astype(np.float32)


@njit(nogil=True)
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


@njit(nogil=True)
def _least_total(z, freedom, factor, offset, slope):  # pragma: no cover - compiled
    """Compute a total just below that of evidence z; -1 if any total is above it."""
    base = z / slope[freedom] + offset[freedom]
    if not base > np.float32(0.0):
        return np.float32(-1.0)
    # The inverse of what scan computes; the margin is larger than the rounding, so that ties are seen.
    return base * base * base * np.float32(freedom) / factor * np.float32(1.0 - 1e-5)


@njit(nogil=True)
def _totals_of_row(products, variances, span, offsets, degree, begin, squares, totals):  # pragma: no cover - compiled
    """Write the sums of squares of one column, functions of a span, with each other from ``begin`` into ``totals``.

    The loops run over neighbours in memory, in a form that compilers vectorise: from 0, over slices. ``degree`` is that of all
    other columns, or 0 if they differ; ``variances`` are empty where products have variance 1.
    """
    left_out = offsets[begin]
    squares, totals = squares[left_out:], totals[begin:]
    n_functions, n_columns = squares.shape[0], totals.shape[0]
    squares[:] = np.float32(0.0)
    for c in range(products.shape[0]):
        for k in range(span[0], span[1]):
            row = products[c, k, left_out:]
            if variances.size:
                spread = variances[k, left_out:]
                for m in range(n_functions):
                    squares[m] += row[m] * row[m] / max(spread[m], np.float32(1e-3))
            else:
                for m in range(n_functions):
                    squares[m] += row[m] * row[m]
    if degree == 1:
        totals[:] = squares
    elif degree == 2:
        for b in range(n_columns):
            totals[b] = squares[2 * b] + squares[2 * b + 1]
    else:
        for b in range(n_columns):
            total = np.float32(0.0)
            for m in range(offsets[begin + b] - left_out, offsets[begin + b + 1] - left_out):
                total += squares[m]
            totals[b] = total


@njit(nogil=True)
def scan(products, variances, factor, first, second, tables, heap, best):  # pragma: no cover - compiled
    """Update the heap and the best partners with a block of inner products, shape (n_targets, n_functions, n_functions).

    ``first`` and ``second`` are columns and offsets of the blocks, ``heap`` (z, i, j) of the strongest pairs, ``best`` (z,
    partner) of the columns of the first, then of the second block. Of a block with itself only what is above the diagonal is
    read. Of equally good partners the one with the lower index stays, so that the order of the blocks does not matter.
    """
    columns_i, offsets_i = first
    columns_j, offsets_j = second
    offset, slope = tables
    heap_z, heap_i, heap_j = heap
    best_i, partner_i, best_j, partner_j = best
    n_i, n_j = columns_i.shape[0], columns_j.shape[0]
    same = columns_i[0] == columns_j[0]
    totals = np.empty(n_j, dtype=np.float32)
    squares = np.empty(products.shape[2], dtype=np.float32)
    degree_i, degree_j = offsets_i[1] - offsets_i[0], offsets_j[1] - offsets_j[0]
    uniform = True
    for a in range(n_i):
        uniform = uniform and offsets_i[a + 1] - offsets_i[a] == degree_i
    for b in range(n_j):
        uniform = uniform and offsets_j[b + 1] - offsets_j[b] == degree_j
    freedom = degree_i * degree_j * products.shape[0]
    # With equal degrees evidence grows with the total: whole rows are compared with what would change anything.
    least_j = np.full(n_j, np.float32(-1.0))
    if uniform:
        for b in range(n_j):
            least_j[b] = _least_total(best_j[b], freedom, factor, offset, slope)
    for a in range(n_i):
        begin = a + 1 if same else 0
        span = (offsets_i[a], offsets_i[a + 1])
        _totals_of_row(products, variances, span, offsets_j, degree_j if uniform else 0, begin, squares, totals)
        if uniform:
            least = _least_total(min(best_i[a], heap_z[0]), freedom, factor, offset, slope)
        for b in range(begin, n_j):
            if uniform:
                if totals[b] <= min(least, least_j[b]):
                    continue
            else:
                freedom = (span[1] - span[0]) * (offsets_j[b + 1] - offsets_j[b]) * products.shape[0]
            z = (np.cbrt(totals[b] * factor / np.float32(freedom)) - offset[freedom]) * slope[freedom]
            i, j = columns_i[a], columns_j[b]
            if z > best_i[a] or (z == best_i[a] and j < partner_i[a]):
                best_i[a], partner_i[a] = z, j
            if z > best_j[b] or (z == best_j[b] and i < partner_j[b]):
                best_j[b], partner_j[b] = z, i
                if uniform:
                    least_j[b] = _least_total(z, freedom, factor, offset, slope)
            if z > heap_z[0]:
                push(heap_z, heap_i, heap_j, z, i, j)
            if uniform:
                least = _least_total(min(best_i[a], heap_z[0]), freedom, factor, offset, slope)


#: Columns of a block, and their functions.
Block = tuple[np.ndarray, Basis]


def split(basis: Basis, size: int | None = None) -> list[Block]:
    """Cut a basis into blocks of columns; those with rare values come last, so that few blocks need variances.

    Parameters
    ----------
    basis : Basis
        The functions of all columns.
    size : int or None, default=None
        Columns of a block; None: as few blocks as there can be with about 768 functions each.
    """
    order = np.argsort(basis.kurtosis > HEAVY, kind="stable").astype(np.int64)
    order = order[basis.degrees[order] > 0]
    if size is None:
        n_blocks = max(1, -(-int(basis.offsets[-1]) // BLOCK_FUNCTIONS))
        size = max(1, -(-len(order) // n_blocks))
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    return [(columns, basis.take(columns)) for columns in parts]


def _squared(basis: Basis) -> Basis:
    """Square the functions; (stored + shift)^2 = stored^2 + 2 stored shift + shift^2 is as sparse as before."""
    if basis.shift is None:
        return replace(basis, functions=basis.functions * basis.functions)
    squares = basis.functions.copy()
    squares.data *= squares.data + 2 * np.repeat(basis.shift, np.diff(squares.indptr))
    return replace(basis, functions=squares, shift=basis.shift**2)


def inner_products(first: Basis, second: Basis, weight: np.ndarray, out: np.ndarray) -> None:
    """Write ``sum_n weight_n b_ik(n) b_jl(n)`` for all functions of two blocks into ``out``."""
    if first.shift is None or second.shift is None:
        np.matmul(first.functions, (second.functions * weight).T, out=out)
        return
    weighted = second.functions @ sp.diags_array(weight)
    out[...] = (first.functions @ weighted.T).toarray()
    out += first.shift[:, None] * np.asarray(weighted.sum(axis=1)).ravel()
    out += np.asarray(first.functions @ weight).ravel()[:, None] * second.shift
    out += np.outer(first.shift, second.shift) * weight.sum(dtype=np.float64)


class Best:
    """The strongest pairs so far, and the best partner of each column.

    Parameters
    ----------
    n_kept, n_columns : int
        Number of pairs to keep, and of columns.

    Attributes
    ----------
    z : ndarray of float32
        Evidence of the strongest pairs, as a standard normal; -inf where there is none.
    i, j : ndarray of int64
        The columns of these pairs.
    column_z : ndarray of float32
        Evidence of the best pair of each column.
    partner : ndarray of int64
        The other column of that pair; -1 if there is none.
    """

    def __init__(self, n_kept: int, n_columns: int) -> None:
        self.z, self.column_z = (np.full(size, -np.inf, dtype=np.float32) for size in (n_kept, n_columns))
        self.i, self.j, self.partner = (np.full(size, -1, dtype=np.int64) for size in (n_kept, n_kept, n_columns))

    def merge_pairs(self, z: np.ndarray, i: np.ndarray, j: np.ndarray) -> None:
        """Take in other pairs; the order of the calls does not change the result."""
        stronger = z >= self.z.min(initial=np.inf)
        if stronger.any():
            z, i, j = (np.r_[old, new[stronger]] for old, new in ((self.z, z), (self.i, i), (self.j, j)))
            order = np.lexsort((j, i, -z))[: len(self.z)]  # of pairs that are equally strong the first ones stay
            self.z, self.i, self.j = z[order], i[order], j[order]

    def merge_columns(self, columns: np.ndarray, z: np.ndarray, partner: np.ndarray) -> None:
        """Take in best partners of some columns."""
        old_z, old_partner = self.column_z[columns], self.partner[columns]
        better = (z > old_z) | ((z == old_z) & (partner < old_partner))
        self.column_z[columns] = np.where(better, z, old_z)
        self.partner[columns] = np.where(better, partner, old_partner)

    def pairs(self) -> np.ndarray:
        """Strongest pairs first, as an array of shape (n_pairs, 2) with the lower index first."""
        return np.sort(np.stack([self.i, self.j], axis=1)[np.isfinite(self.z)], axis=1)


# What a task gives back: for each replicate the pairs (z, i, j) and the best partners of both blocks.
Found = list[tuple[np.ndarray, ...]]


def search_block(
    first: Block, second: Block, weights: np.ndarray, variance: np.ndarray, known: Sequence[Best]
) -> Found:
    """Search the pairs of two blocks (or of one with itself).

    Parameters
    ----------
    first, second : tuple of (ndarray, Basis)
        The columns.
    weights : ndarray of float32, shape (n_replicates, n_targets, n_samples)
        Residuals times the scale of the rows, for the data or for permutations.
    variance : ndarray of float32, shape (n_samples,)
        Squared scale of the rows.
    known : sequence of Best
        What other blocks have found so far, for each replicate: weaker pairs are left out, which saves time and does not
        change the result.

    Returns
    -------
    list of tuple
        For each replicate: z, i, j of its strongest pairs, then z and partner for the columns of both blocks; the largest
        integer is no partner that is better than what is known.
    """
    (columns_i, basis_i), (columns_j, basis_j) = first, second
    n_targets, shape = weights.shape[1], (basis_i.functions.shape[0], basis_j.functions.shape[0])
    products = np.empty((n_targets, *shape), dtype=np.float32)
    variances, factor = np.empty((0, 0), dtype=np.float32), np.float32(1.0 / variance.sum(dtype=np.float64))
    if (basis_i.kurtosis > HEAVY).any() and (basis_j.kurtosis > HEAVY).any():
        variances, factor = np.empty(shape, dtype=np.float32), np.float32(1.0)
        inner_products(_squared(basis_i), _squared(basis_j), variance, variances)
    tables = transform_tables(int(basis_i.degrees.max() * basis_j.degrees.max()) * n_targets)
    layout = ((columns_i, basis_i.offsets), (columns_j, basis_j.offsets), tables)
    none = np.iinfo(np.int64).max
    found: Found = []
    for replicate, so_far in zip(weights, known):
        for target, weight in enumerate(replicate):
            inner_products(basis_i, basis_j, weight, products[target])
        n_kept = min(len(so_far.z), len(columns_i) * len(columns_j))
        # Pairs as strong as the weakest that is known are of interest, weaker ones are not.
        floor = np.nextafter(so_far.z.min(initial=np.inf), np.float32(-np.inf))
        z, i, j = np.full(n_kept, floor), np.full(n_kept, -1), np.full(n_kept, -1)
        best = [part for at in (columns_i, columns_j) for part in (so_far.column_z[at], np.full(len(at), none))]
        scan(products, variances, factor, *layout, (z, i, j), tuple(best))
        found.append((z[i >= 0], i[i >= 0], j[i >= 0], *best))
    return found


def search_all(
    blocks: list[Block],
    weights: np.ndarray,
    variance: np.ndarray,
    n_columns: int,
    n_kept: int,
    n_threads: int = 1,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Best]:
    """Search all pairs of all blocks, of which ``n_kept`` are kept for each replicate.

    Parameters
    ----------
    blocks : list of (ndarray, Basis)
        The columns.
    weights, variance
        As in :func:`search_block`.
    n_columns : int
        Number of columns, also those in no block.
    n_kept : int
        Number of pairs to keep for each replicate.
    n_threads : int, default=1
        Threads.
    progress : callable
        Called with the share of the blocks that is done.

    Returns
    -------
    list of Best
        One for each replicate.
    """
    weights = np.ascontiguousarray(weights, dtype=np.float32)
    variance = np.ascontiguousarray(variance, dtype=np.float32)
    records = [Best(n_kept, n_columns) for _ in weights]
    tasks = [(blocks[a], blocks[b]) for b in range(len(blocks)) for a in range(b + 1)]

    results = in_order(lambda task: search_block(task[0], task[1], weights, variance, records), tasks, n_threads)
    with one_blas_thread():
        for done, ((first, second), found) in enumerate(zip(tasks, results), 1):
            for record, (z, i, j, *best) in zip(records, found):
                record.merge_pairs(z, i, j)
                record.merge_columns(first[0], *best[:2])
                record.merge_columns(second[0], *best[2:])
            progress(done / len(tasks))
    return records
