"""Everything that a training loop changes, allocated once; the working set is at the front of every array."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tamiz.core.compiled import IN_PLACE, MaskArrays
from tamiz.core.history import History, new_history
from tamiz.core.rule import N_SLOTS, Rule, Slot
from tamiz.engines.design import Design


class LoopSlot(IntEnum):
    """Position of a number in ``Memory.loop_counters``."""

    WIDTH = 0
    """Coefficients of the working set: its columns; for pairs, its curve columns and products."""
    FEATURES = 1
    """Features of the working set: its columns or, with groups, its groups."""
    PARTS = 2
    """Sets of weights that are trained, one for each part of the rows; 1: gamma is trained on the rows of the weights."""
    CLOSED_AT = 3
    REFINED = 4
    """Steps of refinement done."""
    WEIGHT_AGE = 5
    """Steps that the moments of the weights have seen."""
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


class Memory(NamedTuple):
    """Arrays of a run.

    Ten vectors of the length of the table for a linear model with one output: wide tables are bound by memory, so what is
    needed at different times shares its place.
    """

    weights: np.ndarray
    """(n_parts * n_outputs, n_coefficients): w; for a network (n_parts, n_columns, units) of its first layer."""
    folded: np.ndarray
    """(n_parts * n_outputs, n_coefficients): v = gate * w. Between the scores and the update of a step its first row holds the
    gradient with respect to the gates instead; a network has this row only."""
    gradient: np.ndarray
    """(n_outputs, n_coefficients) or (n_columns, units): that of the weights of one part."""
    weights_first: np.ndarray
    weights_second: np.ndarray
    rest: Any
    """(3, n_parts * n_outputs): constants of a linear model and their moments; the ``Layers`` of a network."""
    mask: MaskArrays
    """Without groups its gradient is the first row of ``folded``. Its scratch is the first row of ``gradient`` seen as
    integers, free once the weights have moved."""
    gate: np.ndarray
    """Factor of each coefficient: without groups gamma itself."""
    feature: np.ndarray
    """Original number of each feature of the working set; behind them those of the dropped ones, by rank."""
    rows: np.ndarray
    """Order of the samples in this epoch, see :func:`rows_in_parts`; for networks a row each, those held out at its end."""
    positions: np.ndarray
    """(n_parts, 3): rows used in this epoch of those to train on and of those held out, and how many there are to train on."""
    random: np.ndarray
    """State of the generator."""
    loop_counters: np.ndarray
    """By :class:`LoopSlot`."""
    history: History
    batch: Batch


def rows_in_parts(targets: np.ndarray, n_parts: int, seed: int) -> np.ndarray:
    """Order the rows such that every ``n_parts``-th one belongs to the same part.

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


def new_memory(
    design: Design, rule: Rule, rows: np.ndarray, n_outputs: int, batch_size: int, seed: int, n_parts: int = 1
) -> Memory:
    """Allocate the memory of a run before its first step; if all features are kept, the mask is closed.

    Parameters
    ----------
    design : Design
        The table; with ``starts`` if there are several parts.
    rule : Rule
        With the number of features, and M.
    rows : ndarray of int, shape (n_samples,)
        The rows to train on (:func:`rows_in_parts`).
    n_outputs, batch_size, seed, n_parts : int
        Sizes and seed of the run.

    Examples
    --------
    >>> new_memory(Design(np.eye(5), None, owned=False), Rule(5, 2), np.arange(5), 1, 4, seed=0).mask.gamma.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    n, width, grouped = rule.n_features, design.n_coefficients, design.matrix.starts.size > 0
    decided = rule.n_features_to_select == n
    counters, loop_counters = np.zeros(N_SLOTS, dtype=np.int64), np.zeros(len(LoopSlot), dtype=np.int64)
    counters[[Slot.OPEN, Slot.CLOSED, Slot.KEPT]] = 0 if decided else n, decided, rule.n_features_to_select
    loop_counters[[LoopSlot.WIDTH, LoopSlot.FEATURES, LoopSlot.PARTS]] = width, n, n_parts
    weights, folded, first, second = (np.zeros((n_parts * n_outputs, width), np.float32) for _ in range(4))
    gradient, gamma = np.zeros((n_outputs, width), np.float32), np.ones(n, dtype=np.float32)
    size = min(batch_size, rows.size)
    targets, scores, score_gradient = (np.zeros((size, n_outputs), dtype=np.float32) for _ in range(3))
    return Memory(
        weights=weights,
        folded=folded,
        gradient=gradient,
        weights_first=first,
        weights_second=second,
        rest=np.zeros((3, n_parts * n_outputs), dtype=np.float32),
        mask=MaskArrays(
            gamma=gamma,
            first=np.zeros(n, dtype=np.float32),
            second=np.zeros(n, dtype=np.float32),
            rank=np.arange(1, n + 1, dtype=np.int32) if decided else np.zeros(n, dtype=np.int32),
            gradient=np.zeros(n, dtype=np.float32) if grouped else folded[0],
            order=gradient[0].view(np.int32),
            counters=counters,
        ),
        gate=np.ones(width, dtype=np.float32) if grouped else gamma,
        feature=np.arange(n, dtype=np.int32) if design.features is None else design.features.astype(np.int32),
        rows=rows.astype(np.int64),
        positions=np.array([[rows.size, 0, rows.size]]),  # the first batch begins an epoch
        random=np.array([seed], dtype=np.uint64),
        loop_counters=loop_counters,
        history=new_history(n),
        batch=Batch(
            rows=np.zeros(size, dtype=np.int64),
            bounds=np.zeros(n_parts + 1, dtype=np.int64),
            targets=targets,
            weights=np.zeros(size, dtype=np.float32),
            scores=scores,
            score_gradient=score_gradient,
        ),
    )


def copy_memory(memory: Memory) -> Memory:
    """Copy the memory of a run without groups, which can be continued from the copy.

    Examples
    --------
    >>> memory = new_memory(Design(np.eye(5), None, owned=False), Rule(5, 2), np.arange(5), 1, 4, seed=0)
    >>> copied = copy_memory(memory)
    >>> copied.mask.gamma[0] = 0
    >>> memory.gate[0], copied.gate[0]
    (np.float32(1.0), np.float32(0.0))
    """

    def copied(part: Any) -> Any:
        return part.copy() if isinstance(part, np.ndarray) else type(part)(*map(copied, part))

    fresh = copied(memory)
    mask = fresh.mask._replace(gradient=fresh.folded[0], order=fresh.gradient[0].view(np.int32))
    return fresh._replace(mask=mask, gate=mask.gamma)


def merge_parts(memory: Memory) -> None:
    """Average the sets of weights of a linear model into one, which goes on with all rows."""
    n_parts = int(memory.loop_counters[LoopSlot.PARTS])
    if n_parts == 1:
        return
    for table in (memory.weights, memory.folded, memory.weights_first, memory.weights_second, memory.rest.T):
        table[: table.shape[0] // n_parts] = table.reshape(n_parts, -1, table.shape[1]).mean(axis=0)
    memory.loop_counters[LoopSlot.PARTS] = 1


@njit(**IN_PLACE)
def _move_columns(tables, order, width):
    """Move the columns ``order[:width]``, in rising order, to the front of some tables."""
    for table in tables:
        for c in range(table.shape[0]):
            for i in range(width):
                j = order[i]
                for u in range(table.shape[2]):
                    table[c, i, u] = table[c, j, u]


@njit(**IN_PLACE)
def _drop_features(mask, feature, n, m):
    """Move the living features to the front; the numbers of the eliminated go behind them, by rank. Count the living."""
    gamma, first, second, rank, _, order, _ = mask
    kept = 0
    for j in range(n):
        if rank[j] > m:
            # The eliminated of a working set of n features hold the ranks from n down to one more than are left.
            order[rank[j] - 1] = feature[j]
        else:
            feature[kept], rank[kept], gamma[kept] = feature[j], rank[j], gamma[j]
            first[kept], second[kept] = first[j], second[j]
            kept += 1
    for j in range(kept, n):
        feature[j] = order[j]
    return kept


def drop_eliminated(memory: Memory, design: Design) -> None:
    """Drop the eliminated features from the memory and from the table.

    Compiled code does it, which releases Python's lock: the loop comes back a few dozen times in a run, and threads that each
    train a model would wait for each other there.
    """
    mask, loop_counters = memory.mask, memory.loop_counters
    n, m = int(loop_counters[LoopSlot.FEATURES]), int(mask.counters[Slot.KEPT])
    if n == (mask.counters[Slot.OPEN] or m):
        return
    width = design.find_living(mask.rank[:n], m, mask.order)
    tables = (memory.weights, memory.weights_first, memory.weights_second, memory.folded)
    _move_columns(tuple(table.reshape(*table.shape[:2], -1) for table in tables), mask.order, width)
    if memory.gate is not mask.gamma:
        _move_columns((memory.gate[None, :, None],), mask.order, width)
    design.keep(mask.order, width)
    loop_counters[LoopSlot.FEATURES] = _drop_features(mask, memory.feature, n, m)
    loop_counters[LoopSlot.WIDTH] = width
