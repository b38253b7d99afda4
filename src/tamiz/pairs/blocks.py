"""Search all pairs block by block: matrix products of the functions, weighted by the residuals.

For residuals r and functions b of two columns the evidence is ``sum_kl (sum_n r_n b_ik b_jl)^2``. A block of columns against
another is one matrix product, of which only the strongest pairs and the best partner of each column are kept. The evidence here
is approximate (products are taken to have variance 1, or, for columns with rare values, their own); what is found is
judged exactly afterwards.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from tamiz.pairs.basis import Basis
from tamiz.pairs.kernels import scan, transform_tables

# Functions of a block: the matrix products of so many work at full speed, and still fit into the caches.
BLOCK_FUNCTIONS = 768
# Products of a block with itself are halved down to so many functions.
_SMALLEST_PRODUCT = 192
# Above this mean fourth power the variance of a product differs much from 1; a uniform column has 1.8 to 2.2.
HEAVY = 4.0


@dataclass(frozen=True, eq=False)
class Block:
    """Hold the functions of some columns: all that a task needs.

    Parameters
    ----------
    columns : ndarray of int64
        Which columns.
    functions : ndarray of float32, shape (n_functions, n_samples), or csr_array
        Their functions; without the constant part if sparse.
    offsets : ndarray of int64
        Where the functions of each column begin, as in :class:`tamiz.pairs.basis.Basis`.
    shift : ndarray of float32 or None
        Constant part of sparse functions.
    is_heavy : bool
        Whether some columns have rare values.
    """

    columns: np.ndarray
    functions: Any
    offsets: np.ndarray
    shift: np.ndarray | None
    is_heavy: bool

    def squared(self) -> Block:
        """Return the squares of the functions."""
        if self.shift is None:
            return Block(self.columns, self.functions * self.functions, self.offsets, None, self.is_heavy)
        # (stored + shift)^2 = stored^2 + 2 stored shift + shift^2: as sparse as before
        squares = self.functions.copy()
        shift = np.repeat(self.shift, np.diff(squares.indptr))
        squares.data = squares.data * (squares.data + 2 * shift)
        return Block(self.columns, squares, self.offsets, self.shift**2, self.is_heavy)


def split(basis: Basis, size: int | None = None) -> list[Block]:
    """Cut a basis into blocks of columns; those with rare values come last, so that few blocks need variances.

    Parameters
    ----------
    basis : Basis
        The functions of all columns.
    size : int or None, default=None
        Columns of a block; None: as few blocks as there can be with about 768 functions each.
    """
    order = np.argsort(basis.kurtosis > HEAVY, kind="stable")
    order = order[basis.degrees[order] > 0]
    if size is None:
        n_blocks = max(1, -(-int(basis.offsets[-1]) // BLOCK_FUNCTIONS))
        size = max(1, -(-len(order) // n_blocks))
    blocks = []
    for start in range(0, len(order), size):
        columns = order[start : start + size].astype(np.int64)
        degrees = basis.degrees[columns]
        offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        first, last = basis.offsets[columns[0]], basis.offsets[columns[-1] + 1]
        if last - first == offsets[-1]:  # neighbours: a view will do
            rows: Any = slice(first, last)
        else:
            rows = np.concatenate([np.arange(basis.offsets[j], basis.offsets[j + 1]) for j in columns])
        shift = None if basis.shift is None else basis.shift[rows]
        heavy = bool((basis.kurtosis[columns] > HEAVY).any())
        blocks.append(Block(columns, basis.functions[rows], offsets, shift, heavy))
    return blocks


_scratch = threading.local()


def _borrow(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array that this thread uses again for its next block: new memory costs as much as a pass over the block."""
    kept: np.ndarray | None = getattr(_scratch, name, None)
    if kept is None or kept.shape != shape:
        kept = np.empty(shape, dtype=np.float32)
        setattr(_scratch, name, kept)
    return kept


def _weighted(block: Block, weight: np.ndarray) -> np.ndarray:
    """Return functions times weights; kept for the next block if there is one weight, as tasks come by their second block."""
    last = getattr(_scratch, "last", None)
    if last is not None and last[0] is block.functions and last[1] is weight.base and last[2] == weight.ctypes.data:
        return _borrow("weighted", block.functions.shape)
    weighted = np.multiply(block.functions, weight, out=_borrow("weighted", block.functions.shape))
    _scratch.last = (block.functions, weight.base, weight.ctypes.data)
    return weighted


def inner_products(first: Block, second: Block, weight: np.ndarray, out: np.ndarray) -> None:
    """Write ``sum_n weight_n b_ik(n) b_jl(n)`` for all functions of two blocks into ``out``.

    Of a block with itself little more than what is above the diagonal is written.
    """
    if first.shift is None or second.shift is None:
        weighted = _weighted(second, weight)
        if first is second:
            _multiply_above_diagonal(first.functions, weighted, out)
        else:
            np.matmul(first.functions, weighted.T, out=out)
        return
    weighted = second.functions @ sp.diags_array(weight)
    out[...] = (first.functions @ weighted.T).toarray()
    out += first.shift[:, None] * np.asarray(weighted.sum(axis=1)).ravel()
    out += np.asarray(first.functions @ weight).ravel()[:, None] * second.shift
    out += np.outer(first.shift, second.shift) * weight.sum(dtype=np.float64)


def _multiply_above_diagonal(functions: np.ndarray, weighted: np.ndarray, out: np.ndarray) -> None:
    """Write ``functions @ weighted.T`` above the diagonal: the upper right quarter, then both halves in the same way."""
    n = len(functions)
    if n <= _SMALLEST_PRODUCT:
        np.matmul(functions, weighted.T, out=out)
        return
    half = n // 2
    np.matmul(functions[:half], weighted[half:].T, out=out[:half, half:])
    _multiply_above_diagonal(functions[:half], weighted[:half], out[:half, :half])
    _multiply_above_diagonal(functions[half:], weighted[half:], out[half:, half:])


@dataclass(eq=False)
class Best:
    """Keep the strongest pairs and the best partner of each column.

    Parameters
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

    z: np.ndarray
    i: np.ndarray
    j: np.ndarray
    column_z: np.ndarray
    partner: np.ndarray

    @classmethod
    def empty(cls, n_kept: int, n_columns: int) -> Best:
        """Return a record without pairs."""
        return cls(
            np.full(n_kept, -np.inf, dtype=np.float32),
            np.full(n_kept, -1, dtype=np.int64),
            np.full(n_kept, -1, dtype=np.int64),
            np.full(n_columns, -np.inf, dtype=np.float32),
            np.full(n_columns, -1, dtype=np.int64),
        )

    def merge_pairs(self, z: np.ndarray, i: np.ndarray, j: np.ndarray) -> None:
        """Take in other pairs, in no order; that of the calls does not change the result."""
        stronger = z >= self.z.min(initial=np.inf)
        z, i, j = z[stronger], i[stronger], j[stronger]
        if len(z) == 0:
            return
        n_kept = len(self.z)
        self.i, self.j = np.concatenate([self.i, i]), np.concatenate([self.j, j])
        z = np.concatenate([self.z, z])
        strongest = np.argpartition(-z, n_kept - 1)[:n_kept]
        weakest = z[strongest].min()
        if (z == weakest).sum() > (
            z[strongest] == weakest
        ).sum():  # of pairs that are equally strong the first ones stay
            strongest = np.lexsort((self.j, self.i, -z))[:n_kept]
        self.z, self.i, self.j = z[strongest], self.i[strongest], self.j[strongest]

    def sort_pairs(self) -> None:
        """Put the strongest pairs first."""
        order = np.lexsort((self.j, self.i, -self.z))
        self.z, self.i, self.j = self.z[order], self.i[order], self.j[order]

    def merge_columns(self, columns: np.ndarray, z: np.ndarray, partner: np.ndarray) -> None:
        """Take in best partners of some columns; -1 is none."""
        old_z, old_partner = self.column_z[columns], self.partner[columns]
        better = (partner >= 0) & ((z > old_z) | ((z == old_z) & (partner < old_partner)))
        self.column_z[columns] = np.where(better, z, old_z)
        self.partner[columns] = np.where(better, partner, old_partner)

    def pairs(self) -> np.ndarray:
        """Return the strongest pairs, strongest first, as an array of shape (n_pairs, 2) with the lower index first."""
        found = np.stack([self.i, self.j], axis=1)[np.isfinite(self.z)]
        return np.sort(found, axis=1)


# What a task gives back: for each replicate the pairs (z, i, j) and the best partners of both blocks.
Found = list[tuple[np.ndarray, ...]]


def search_block(
    first: Block,
    second: Block,
    weights: np.ndarray,
    variance: np.ndarray,
    n_kept: int,
    known: Sequence[Best] | None = None,
) -> Found:
    """Search the pairs of two blocks (or of one with itself).

    Parameters
    ----------
    first, second : Block
        The columns.
    weights : ndarray of float32, shape (n_replicates, n_targets, n_samples)
        Residuals times the scale of the rows, for the data or for permutations.
    variance : ndarray of float32, shape (n_samples,)
        Squared scale of the rows.
    n_kept : int
        How many pairs to keep for each replicate.
    known : sequence of Best or None, default=None
        What other blocks have found so far: weaker pairs are left out, which saves time and does not change the result.

    Returns
    -------
    list of tuple
        For each replicate: z, i, j of its strongest pairs, then z and partner for the columns of both blocks; a partner of -1
        is none that is better than what is known.
    """
    n_targets = weights.shape[1]
    n_first, n_second = first.functions.shape[0], second.functions.shape[0]
    products = _borrow("products", (n_targets, n_first, n_second))
    uses_variances = first.is_heavy and second.is_heavy
    variances = np.empty((n_first, n_second) if uses_variances else (1, 1), dtype=np.float32)
    factor = np.float32(1.0 / variance.sum(dtype=np.float64))
    if uses_variances:
        inner_products(first.squared(), second.squared(), variance, variances)
        factor = np.float32(1.0)
    largest = int(np.diff(first.offsets).max() * np.diff(second.offsets).max()) * n_targets
    offset, slope = transform_tables(largest)
    same = bool(first.columns[0] == second.columns[0])
    possible = len(first.columns) * len(second.columns)
    found: Found = []
    none = np.iinfo(np.int64).max
    for number, replicate in enumerate(weights):
        for target, weight in enumerate(replicate):
            inner_products(first, second, weight, products[target])
        best = Best.empty(min(n_kept, possible), 0)
        so_far = None if known is None else known[number]
        floor = np.float32(-np.inf) if so_far is None else so_far.z.min(initial=np.inf)
        columns = []
        for block in (first, second):
            start = np.full(len(block.columns), -np.inf, dtype=np.float32)
            if so_far is not None:
                start = so_far.column_z[block.columns]
            columns.append((start, np.full(len(block.columns), none)))
        scan(
            products,
            variances,
            uses_variances,
            factor,
            first.columns,
            first.offsets,
            second.columns,
            second.offsets,
            same,
            offset,
            slope,
            floor,
            best.z,
            best.i,
            best.j,
            *columns[0],
            *columns[1],
        )
        for _, partner in columns:
            partner[partner == none] = -1
        filled = np.isfinite(best.z)
        found.append((best.z[filled], best.i[filled], best.j[filled], *columns[0], *columns[1]))
    return found


Task = tuple[int, int]
Runner = Callable[[list[Task], Callable[[Task], Any]], Iterator[tuple[Task, Found]]]


def run_blocks(n_threads: int) -> Runner:
    """Return a runner that works on tasks in threads; an interrupt ends it after the blocks at work."""

    def run(tasks: list[Task], work: Callable[[Task], Any]) -> Iterator[tuple[Task, Found]]:
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
            waiting: dict[Future[Any], Task] = {}
            todo: Iterable[Task] = iter(tasks)
            try:
                for task in todo:
                    waiting[pool.submit(work, task)] = task
                    if len(waiting) >= 2 * n_threads:
                        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                        for future in done:
                            yield waiting.pop(future), future.result()
                for future in list(waiting):
                    yield waiting.pop(future), future.result()
            finally:
                for future in waiting:
                    future.cancel()

    return run


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means; None is all processors this process may use.

    Examples
    --------
    >>> count_threads(3), count_threads(-1) == count_threads(None)
    (3, True)
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None or n_jobs == -1:
        return available
    return max(1, n_jobs if n_jobs > 0 else available + 1 + n_jobs)


def search_all(
    blocks: list[Block],
    weights: np.ndarray,
    variance: np.ndarray,
    n_columns: int,
    n_kept: int,
    run: Runner,
    progress: Callable[[int, int], None] | None = None,
    work: Callable[[Task], Found] | None = None,
) -> list[Best]:
    """Search all pairs of all blocks.

    Parameters
    ----------
    blocks : list of Block
        The columns.
    weights, variance, n_kept
        As in :func:`search_block`.
    n_columns : int
        Number of columns, also those in no block.
    run : Runner
        Works on the tasks: in threads or on a cluster.
    progress : callable or None, default=None
        Called with the blocks done and their number.
    work : callable or None, default=None
        Does one task; None searches in memory.

    Returns
    -------
    list of Best
        One for each replicate.
    """
    weights = np.ascontiguousarray(weights, dtype=np.float32)
    variance = np.ascontiguousarray(variance, dtype=np.float32)
    records = [Best.empty(n_kept, n_columns) for _ in weights]
    tasks = [(a, b) for b in range(len(blocks)) for a in range(b + 1)]

    def in_memory(task: Task) -> Found:
        return search_block(blocks[task[0]], blocks[task[1]], weights, variance, n_kept, records)

    for done, (task, found) in enumerate(run(tasks, work or in_memory), 1):
        first, second = blocks[task[0]], blocks[task[1]]
        for record, (z, i, j, z_first, partner_first, z_second, partner_second) in zip(records, found):
            record.merge_pairs(z, i, j)
            record.merge_columns(first.columns, z_first, partner_first)
            record.merge_columns(second.columns, z_second, partner_second)
        if progress is not None:
            progress(done, len(tasks))
    for record in records:
        record.sort_pairs()
    return records
