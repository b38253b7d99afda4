"""Hold everything that the training loop changes, allocated once, and move what is alive to the front."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tamiz.core.compiled import IN_PLACE
from tamiz.core.history import History, new_history
from tamiz.core.rule import N_SLOTS, Slot

#: Entries of a vector that are moved at a time.
_CHUNK = 1 << 13


class LoopSlot(IntEnum):
    """Position of a number in ``Memory.loop_counters``."""

    WIDTH = 0
    """Columns of the working set."""
    POSITION = 1
    """Rows of this epoch that were used."""
    CLOSED_AT = 2
    REFINED = 3
    """Steps of refinement done."""
    WEIGHT_AGE = 4
    """Steps that the moments of the weights have seen."""
    FEATURES = 5
    """Features of the working set: its columns or, with groups, its groups."""
    PARTS = 7
    """Sets of weights that are trained, one for each part of the rows; 1: gamma is trained on the rows of the weights."""
    TARGET_MATTERS = 6
    """1 once a step of the selection has depended on its target, and with it on M (always with groups)."""


class Batch(NamedTuple):
    """A batch of rows, those of each part side by side."""

    rows: np.ndarray
    bounds: np.ndarray
    """(n_parts + 1,) int64: where the rows of each part begin, and the end."""
    targets: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    score_gradient: np.ndarray


def new_batch(size: int, n_outputs: int, n_parts: int = 1) -> Batch:
    """Return room for a batch of at most ``size`` rows."""
    targets, scores, gradient = (np.zeros((size, n_outputs), dtype=np.float32) for _ in range(3))
    rows, bounds = np.zeros(size, dtype=np.int64), np.zeros(n_parts + 1, dtype=np.int64)
    return Batch(rows, bounds, targets, np.zeros(size, dtype=np.float32), scores, gradient)


def rows_in_parts(targets: np.ndarray, n_parts: int, seed: int) -> np.ndarray:
    """Return the rows in an order in which every ``n_parts``-th one belongs to the same part.

    Each part has its share of every class, or of small and large targets.

    Examples
    --------
    >>> rows = rows_in_parts(np.float32([[1], [-1], [1], [-1]]), 2, seed=0)
    >>> sorted(rows[[0, 2]] % 2), sorted(rows[[1, 3]] % 2)  # odd rows are of class -1
    ([np.int64(0), np.int64(1)], [np.int64(0), np.int64(1)])
    """
    if n_parts == 1:
        return np.arange(targets.shape[0])
    order = np.random.default_rng(seed).permutation(targets.shape[0])
    return order[np.lexsort(targets[order].T)]


class Memory(NamedTuple):
    """Everything that the loop changes, allocated once.

    Ten vectors of the length of the table for one output: wide tables are bound by memory, so what is needed at different
    times shares its place.
    """

    weights: np.ndarray
    """(n_parts * n_outputs, n_columns): w."""
    folded: np.ndarray
    """(n_parts * n_outputs, n_columns): v = gamma * w. Without groups its first row holds, between the scores and the update of
    a step, the gradient of the loss with respect to gamma instead."""
    gradient: np.ndarray
    """(n_outputs, n_columns): g."""
    weights_first: np.ndarray
    weights_second: np.ndarray
    gamma: np.ndarray
    gamma_first: np.ndarray
    gamma_second: np.ndarray
    gamma_gradient: np.ndarray
    """Gradient of the loss with respect to gamma: without groups the first row of ``folded``."""
    gate: np.ndarray
    """gamma of the group of each column: without groups gamma itself."""
    starts: np.ndarray
    """(n_features + 1,) int64: the first column of each group, and the end; empty without groups. Columns behind that have no
    gamma: they are always read."""
    rank: np.ndarray
    order: np.ndarray
    """Scratch for sorting: the first row of the gradient seen as integers, free once the weights have moved."""
    feature: np.ndarray
    """Original number of each feature of the working set; behind them those of the dropped ones, by rank."""
    intercept: np.ndarray
    """(3, n_parts * n_outputs): value and moments."""
    rows: np.ndarray
    """Order of the samples in this epoch, see :func:`rows_in_parts`."""
    random: np.ndarray
    """State of the generator."""
    counters: np.ndarray
    """By :class:`~tamiz.core.rule.Slot`."""
    loop_counters: np.ndarray
    """By :class:`LoopSlot`."""
    history: History
    batch: Batch


def new_counters(
    n_features: int, m: int, width: int, n_rows: int, n_parts: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counters, loop counters and ranks before the first step; if all features are kept, the mask is closed.

    Parameters
    ----------
    n_features, m : int
        Features, and M, which is 0 with a budget.
    width : int
        Columns of the working set.
    n_rows : int
        Rows to train on.
    n_parts : int, default=1
        Sets of weights.

    Examples
    --------
    >>> new_counters(3, 3, 3, 10)[2].tolist(), new_counters(3, 1, 3, 10)[2].tolist()
    ([1, 2, 3], [0, 0, 0])
    """
    decided = m == n_features
    counters = np.zeros(N_SLOTS, dtype=np.int64)
    counters[Slot.OPEN] = 0 if decided else n_features
    counters[Slot.CLOSED] = 1 if decided else 0
    counters[Slot.KEPT] = m
    loop_counters = np.zeros(len(LoopSlot), dtype=np.int64)
    loop_counters[LoopSlot.WIDTH] = width
    loop_counters[LoopSlot.FEATURES] = n_features
    loop_counters[LoopSlot.PARTS] = n_parts
    loop_counters[LoopSlot.POSITION] = n_rows  # the first batch begins an epoch
    rank = np.arange(1, n_features + 1, dtype=np.int32) if decided else np.zeros(n_features, dtype=np.int32)
    return counters, loop_counters, rank


def new_memory(
    rows: np.ndarray,
    n_outputs: int,
    n_columns: int,
    m: int,
    batch_size: int,
    seed: int,
    starts: np.ndarray | None = None,
    n_parts: int = 1,
) -> Memory:
    """Return the memory of a run before its first step.

    Parameters
    ----------
    rows : ndarray of int, shape (n_samples,)
        The rows to train on (:func:`rows_in_parts`).
    n_outputs, n_columns, m, batch_size, seed : int
        Sizes and seed of the run; ``m`` is M, or 0 with a budget.
    starts : ndarray of int, shape (n_groups + 1,), or None, default=None
        First column of each group, and the end; None: every column is a feature of its own. Columns behind the end are
        always read.
    n_parts : int, default=1
        Sets of weights; several need ``starts``.

    Examples
    --------
    >>> new_memory(np.arange(10), 1, 5, 2, 4, seed=0).gamma.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> new_memory(np.arange(10), 1, 5, 1, 4, seed=0, starts=np.array([0, 2, 5])).gamma.tolist()
    [1.0, 1.0]
    """
    n_features = n_columns if starts is None else starts.size - 1
    counters, loop_counters, rank = new_counters(n_features, m, n_columns, rows.size, n_parts)
    weights, folded, first, second = (np.zeros((n_parts * n_outputs, n_columns), np.float32) for _ in range(4))
    gradient = np.zeros((n_outputs, n_columns), np.float32)
    gamma = np.ones(n_features, dtype=np.float32)
    return Memory(
        weights=weights,
        folded=folded,
        gradient=gradient,
        weights_first=first,
        weights_second=second,
        gamma=gamma,
        gamma_first=np.zeros(n_features, dtype=np.float32),
        gamma_second=np.zeros(n_features, dtype=np.float32),
        gamma_gradient=folded[0] if starts is None else np.zeros(n_features, dtype=np.float32),
        gate=gamma if starts is None else np.ones(n_columns, dtype=np.float32),
        starts=np.zeros(0, dtype=np.int64) if starts is None else starts.astype(np.int64),
        rank=rank,
        order=gradient[0].view(np.int32),
        feature=np.arange(n_features, dtype=np.int32),
        intercept=np.zeros((3, n_parts * n_outputs), dtype=np.float32),
        rows=rows.astype(np.int64),
        random=np.array([seed], dtype=np.uint64),
        counters=counters,
        loop_counters=loop_counters,
        history=new_history(n_features),
        batch=new_batch(min(batch_size, rows.size), n_outputs, n_parts),
    )


def merge_parts(memory: Any) -> None:
    """Average the sets of weights into one, which goes on with all rows; ``memory`` is that of curves, pairs or lines."""
    n_parts = int(memory.loop_counters[LoopSlot.PARTS])
    for table in (memory.weights, memory.folded, memory.weights_first, memory.weights_second, memory.intercept.T):
        table[: table.shape[0] // n_parts] = table.reshape(n_parts, -1, table.shape[1]).mean(axis=0)
    memory.loop_counters[LoopSlot.PARTS] = 1


def copy_memory(memory: Memory) -> Memory:
    """Return a copy of the memory of a run without groups, from which the run can be continued.

    Examples
    --------
    >>> memory = new_memory(np.arange(10), 1, 5, 2, 4, seed=0)
    >>> copied = copy_memory(memory)
    >>> copied.gamma[0] = 0
    >>> memory.gamma[0], copied.gate[0]
    (np.float32(1.0), np.float32(0.0))
    """
    copied = {name: vector.copy() for name, vector in memory._asdict().items() if name not in ("history", "batch")}
    shared = {  # what lies in the place of something else, see new_memory
        "gamma_gradient": copied["folded"][0],
        "gate": copied["gamma"],
        "order": copied["gradient"][0].view(np.int32),
        "history": History(*(array.copy() for array in memory.history)),
        "batch": Batch(*(array.copy() for array in memory.batch)),
    }
    return Memory(**{**copied, **shared})


def _chunks(size: int) -> Iterator[slice]:
    """Yield slices of a vector: on a wide table every vector of temporary memory counts."""
    return (slice(begin, min(size, begin + _CHUNK)) for begin in range(0, size, _CHUNK))


class _Kept:
    """Positions of the entries of a vector that are kept, a chunk at a time; those of a short vector are found once."""

    def __init__(self, mask: np.ndarray) -> None:
        self._mask = mask
        self._all = np.flatnonzero(mask) if mask.size <= _CHUNK else None

    def __iter__(self) -> Iterator[np.ndarray]:
        if self._all is not None:
            yield self._all
            return
        for chunk in _chunks(self._mask.size):
            yield np.flatnonzero(self._mask[chunk]) + chunk.start


def _compress(vector: np.ndarray, kept: _Kept) -> None:
    """Move the entries of a vector that are kept to its front."""
    free = 0
    for positions in kept:
        vector[free : free + positions.size] = vector[positions]
        free += positions.size


@njit(**IN_PLACE)
def _compact_columns(memory, m):
    """Do the work of :func:`compact_vectors` for columns that are features of their own."""
    n = memory.loop_counters[LoopSlot.FEATURES]
    feature, rank, order = memory.feature, memory.rank, memory.order
    for j in range(n):
        if rank[j] > m:
            order[rank[j] - 1] = feature[j]  # behind all that stay
    width = 0
    for j in range(n):
        if rank[j] <= m:
            order[width] = j
            feature[width] = feature[j]
            rank[width] = rank[j]
            width += 1
    for j in range(width, n):
        feature[j] = order[j]
    for i in range(width):
        j = order[i]
        memory.gamma[i] = memory.gamma[j]
        memory.gamma_first[i] = memory.gamma_first[j]
        memory.gamma_second[i] = memory.gamma_second[j]
        for c in range(memory.weights.shape[0]):
            memory.weights[c, i] = memory.weights[c, j]
            memory.folded[c, i] = memory.folded[c, j]
            memory.weights_first[c, i] = memory.weights_first[c, j]
            memory.weights_second[c, i] = memory.weights_second[c, j]
    memory.loop_counters[LoopSlot.WIDTH] = width
    memory.loop_counters[LoopSlot.FEATURES] = width
    return width


def compact_vectors(memory: Memory, m: int) -> int:
    """Move the living columns to the front of every vector; the numbers of the eliminated features go behind, by rank.

    Returns the new width; the front of ``order`` then holds the old position of each column that stays. Without groups compiled
    code does it, which lets go of Python's lock: the loop comes back a few dozen times in a run, and threads that each train a
    model would wait for each other there.
    """
    if not memory.starts.size:
        return _compact_columns(memory, m)
    n = int(memory.loop_counters[LoopSlot.FEATURES])
    alive = memory.rank[:n] <= m
    n_kept = int(alive.sum())
    for chunk in _chunks(n):
        gone = ~alive[chunk]
        # The eliminated of a working set of n features hold the ranks from n down to one more than are left.
        memory.order[memory.rank[chunk][gone] - 1] = memory.feature[chunk][gone]
    kept = _Kept(alive)
    for vector in (memory.feature, memory.rank, memory.gamma, memory.gamma_first, memory.gamma_second):
        _compress(vector, kept)
    memory.feature[n_kept:n] = memory.order[n_kept:n]
    sizes = np.diff(memory.starts[: n + 1])
    n_ungated = int(memory.loop_counters[LoopSlot.WIDTH]) - int(memory.starts[n])
    kept = _Kept(np.concatenate([np.repeat(alive, sizes), np.ones(n_ungated, dtype=bool)]))
    _compress(memory.gate, kept)
    memory.starts[1 : n_kept + 1] = np.cumsum(sizes[alive])
    for table in (memory.weights, memory.folded, memory.weights_first, memory.weights_second):
        for row in table:
            _compress(row, kept)
    width = 0
    for positions in kept:
        memory.order[width : width + positions.size] = positions
        width += positions.size
    memory.loop_counters[LoopSlot.WIDTH] = width
    memory.loop_counters[LoopSlot.FEATURES] = n_kept
    return width
