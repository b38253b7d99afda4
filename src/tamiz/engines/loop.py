"""The compiled loop of linear models, groups of columns, curves and pairs, and the parts of a step that all loops share.

With the gates folded into the weights (``v = gate * w``) the gradient of ``w`` is ``gate * g`` and that of the gate is
``w * g`` for the same ``g = X^T d``, so no gradient with respect to the input is ever formed. The loop runs in pieces:
Python looks in between for an interrupt, for progress, and for eliminated columns to drop.

Without groups every column is a feature, its gate is gamma, and gamma moves in the same pass as the weights. Otherwise the
functions of the table say how gates and their gradients follow from gamma: columns of a group share one entry
(:mod:`tamiz.engines.design`), the gate of a product is the product of two entries (:mod:`tamiz.engines.pairs`).

With several parts each has a set of weights of its own, trained on the rows of all other parts, and the gradient of gamma,
which the sets share, is the sum of their gradients over the rows of their own parts.

All that a loop changes is allocated once; the working set is at the front of every array.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from tamiz._utils.compiling import announce_compilation, njit
from tamiz.core.compiled import (
    FAST_INLINED,
    IN_PLACE,
    INLINED,
    NOT_FINITE,
    MaskArrays,
    adam,
    adam_constants,
    cost_of,
    eliminate_in_place,
    mixing_coefficients,
    move_feature,
    move_in_place,
)
from tamiz.core.history import History, new_history, record_step
from tamiz.core.rule import N_SLOTS, Phase, Rule, Slot
from tamiz.engines.design import Design, Matrix, open_gates, weighted_gradient
from tamiz.engines.schedule import refinement_part


class LoopSlots(NamedTuple):
    """Position of a number in ``Memory.loop_counters``."""

    #: Coefficients of the working set: its columns; for pairs, its curve columns and products.
    WIDTH: int = 0
    #: Features of the working set: its columns or, with groups, its groups.
    FEATURES: int = 1
    #: Sets of weights that are trained, one for each part of the rows; 1: gamma is trained on the rows of the weights.
    PARTS: int = 2
    CLOSED_AT: int = 3
    #: Steps of refinement done.
    REFINED: int = 4
    #: Steps that the moments of the weights have seen.
    WEIGHT_AGE: int = 5
    #: 1 once a step of the selection has depended on its target, and with it on M (always with groups).
    TARGET_MATTERS: int = 6


LoopSlot = LoopSlots()


class Batch(NamedTuple):
    """A batch of rows, those of each part side by side."""

    rows: np.ndarray
    #: (n_parts + 1,) int64: where the rows of each part begin, and the end.
    bounds: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    score_gradient: np.ndarray


class Memory(NamedTuple):
    """Arrays of a run.

    Ten vectors of the length of the table for a linear model with one output: wide tables are bound by memory, so what is
    needed at different times shares its place.
    """

    #: (n_parts * n_outputs, n_coefficients): w; for a network (n_parts, n_columns, units) of its first layer.
    weights: np.ndarray
    #: (n_parts * n_outputs, n_coefficients): v = gate * w. Between the scores and the update of a step its first row holds the
    #: gradient with respect to the gates instead; a network has this row only.
    folded: np.ndarray
    #: (n_outputs, n_coefficients) or (n_columns, units): that of the weights of one part.
    gradient: np.ndarray
    weights_first: np.ndarray
    weights_second: np.ndarray
    #: (3, n_parts * n_outputs): constants of a linear model and their moments; the ``Layers`` of a network.
    rest: Any
    #: Without groups its gradient is the first row of ``folded``. Its scratch is the first row of ``gradient`` seen as
    #: integers, free once the weights have moved.
    mask: MaskArrays
    #: Factor of each coefficient: without groups gamma itself.
    gate: np.ndarray
    #: Original number of each feature of the working set; behind them those of the dropped ones, by rank.
    feature: np.ndarray
    #: Order of the samples in this epoch, see :func:`rows_in_parts`; for networks a row each, those held out at its end.
    rows: np.ndarray
    #: (n_parts, 3): rows used in this epoch of those to train on and of those held out, and how many there are to train on.
    positions: np.ndarray
    #: State of the generator.
    random: np.ndarray
    #: By :class:`LoopSlot`.
    loop_counters: np.ndarray
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


def new_memory(design: Design, rule: Rule, targets: np.ndarray, batch_size: int, seed: int, n_parts: int = 1) -> Memory:
    """Allocate the memory of a run before its first step; if all features are kept, the mask is closed.

    Parameters
    ----------
    design : Design
        The table; with ``starts`` if there are several parts.
    rule : Rule
        With the number of features, and M.
    targets : ndarray, shape (n_samples, n_outputs)
        Decide which row belongs to which part (:func:`rows_in_parts`).
    batch_size, seed, n_parts : int
        Rows of a batch, seed of the order of the rows, and sets of weights.

    Examples
    --------
    >>> new_memory(Design(np.eye(5), None, owned=False), Rule(5, 2), np.zeros((5, 1)), 4, seed=0).mask.gamma.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    rows, n_outputs = rows_in_parts(targets, n_parts, seed).astype(np.int64), targets.shape[1]
    n, width, grouped = rule.n_features, design.n_coefficients, design.matrix.starts.size > 0
    decided = rule.n_features_to_select == n
    counters, loop_counters = np.zeros(N_SLOTS, dtype=np.int64), np.zeros(len(LoopSlot), dtype=np.int64)
    counters[[Slot.OPEN, Slot.CLOSED, Slot.KEPT]] = 0 if decided else n, decided, rule.n_features_to_select
    loop_counters[[LoopSlot.WIDTH, LoopSlot.FEATURES, LoopSlot.PARTS]] = width, n, n_parts
    weights, folded, first, second = (np.zeros((n_parts * n_outputs, width), np.float32) for _ in range(4))
    gradient, gamma = np.zeros((n_outputs, width), np.float32), np.ones(n, dtype=np.float32)
    size = min(batch_size, rows.size)
    of_batch, scores, score_gradient = (np.zeros((size, n_outputs), dtype=np.float32) for _ in range(3))
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
        rows=rows,
        positions=np.array([[rows.size, 0, rows.size]]),  # the first batch begins an epoch
        random=np.array([seed], dtype=np.uint64),
        loop_counters=loop_counters,
        history=new_history(n),
        batch=Batch(
            rows=np.zeros(size, dtype=np.int64),
            bounds=np.zeros(n_parts + 1, dtype=np.int64),
            targets=of_batch,
            weights=np.zeros(size, dtype=np.float32),
            scores=scores,
            score_gradient=score_gradient,
        ),
    )


def copy_memory(memory: Memory) -> Memory:
    """Copy the memory of a run without groups, which can be continued from the copy.

    Examples
    --------
    >>> memory = new_memory(Design(np.eye(5), None, owned=False), Rule(5, 2), np.zeros((5, 1)), 4, seed=0)
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


_part_of_refinement = register_jitable(**INLINED)(refinement_part)


class Piece(NamedTuple):
    """What a call of the loop reads: rows to train on, and the steps to take."""

    matrix: Matrix
    targets: np.ndarray
    weights: np.ndarray
    alphas: np.ndarray
    mask_targets: np.ndarray


class Status(IntEnum):
    """Why the loop came back."""

    #: The steps asked for are done.
    RUNNING = 0
    #: Many columns are eliminated: drop them.
    COMPACT = 1
    DONE = 2
    DIVERGED = 3


@register_jitable(**INLINED)
def shuffle(rows, state, n_parts):
    """Shuffle each part in place (Fisher and Yates) by SplitMix64: a seed means the same on every machine and thread.

    Every ``n_parts``-th entry belongs to the same part. The bias of the remainder is below 1e-9 for any number of rows that
    fits in memory.
    """
    for i in range(rows.shape[0] - 1, n_parts - 1, -1):
        state[0] += np.uint64(0x9E3779B97F4A7C15)
        z = state[0]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        j = i % n_parts + n_parts * np.int64(z % np.uint64(i // n_parts + 1))
        rows[i], rows[j] = rows[j], rows[i]


@register_jitable(**INLINED)
def copy_row(row, place, data, batch):
    """Copy number, targets and weight of a row into a batch."""
    batch.rows[place] = row
    # Entry by entry: the compiler takes four seconds longer over the assignment of a row.
    for c in range(data.targets.shape[1]):
        batch.targets[place, c] = data.targets[row, c]
    batch.weights[place] = data.weights[row]


@register_jitable(**INLINED)
def _next_batch(memory, data, batch_size, n_parts):
    """Copy the next batch, part by part. The last one of an epoch may be smaller."""
    rows, batch, position = memory.rows, memory.batch, memory.positions[0, 0]
    if position >= rows.shape[0]:
        shuffle(rows, memory.random, n_parts)
        position = 0
    end = min(rows.shape[0], position + batch_size)
    n = 0
    for part in range(n_parts):
        batch.bounds[part] = n
        for i in range(position + (part - position) % n_parts, end, n_parts):
            copy_row(rows[i], n, data, batch)
            n += 1
    batch.bounds[n_parts] = n
    memory.positions[0, 0] = end


@register_jitable(**INLINED)
def working_set(memory):
    """Cut the arrays of gamma to the features of the working set."""
    gamma, first, second, rank, gradient, order, counters = memory.mask
    n = memory.loop_counters[LoopSlot.FEATURES]
    return MaskArrays(gamma[:n], first[:n], second[:n], rank[:n], gradient[:n], order[:n], counters)


@register_jitable(**INLINED)
def begin_step(memory, training):
    """Count a step.

    Returns
    -------
    phase : Phase
    refining : bool
        Whether the weights are refined: they are not while a closed mask waits for ``refinement_from``.
    constants, decay
        Numbers of Adam for the weights, and the factor of the weights in their gradient.
    """
    counters, loop_counters = memory.mask.counters, memory.loop_counters
    counters[Slot.STEP] += 1
    step = counters[Slot.STEP]
    phase = Phase.SELECTION.value if counters[Slot.OPEN] > 0 else Phase.CLOSING.value
    if step <= training.warmup_steps:
        phase = Phase.WARM_UP.value
    elif counters[Slot.CLOSED] == 1:
        phase = Phase.REFINEMENT.value
    refining = phase == Phase.REFINEMENT.value and step > training.refinement_from
    rate, l2 = training.learning_rate, training.l2
    if refining:
        refined, rates = loop_counters[LoopSlot.REFINED], training.refinement_rates
        rate = rates[_part_of_refinement(refined, training.refinement_steps, rates.shape[0])]
        l2 = training.refinement_l2
        loop_counters[LoopSlot.REFINED] += 1
    loop_counters[LoopSlot.WEIGHT_AGE] += 1
    constants = adam_constants(rate, training, loop_counters[LoopSlot.WEIGHT_AGE])
    return phase, refining, constants, np.float32(2.0 * l2)


@register_jitable(**INLINED)
def end_step(memory, mask, phase, refining, alpha, training, rule):
    """Record a step; return the :class:`Status` with which the loop comes back, or that it goes on."""
    counters, loop_counters, step = mask.counters, memory.loop_counters, mask.counters[Slot.STEP]
    n, n_open = mask.gamma.shape[0], counters[Slot.OPEN]
    n_alive = n_open if n_open > 0 else counters[Slot.KEPT]
    record_step(memory.history, step, phase, n_alive, alpha, mask.gamma, memory.feature)
    if phase == Phase.WARM_UP.value or phase == Phase.REFINEMENT.value:
        is_done = refining and loop_counters[LoopSlot.REFINED] >= training.refinement_steps
        return Status.DONE.value if is_done else Status.RUNNING.value
    if counters[Slot.CLOSED] == 1:
        loop_counters[LoopSlot.CLOSED_AT] = step
        return Status.COMPACT.value if training.refinement_steps > 0 else Status.DONE.value
    if n_alive < n - n // 8 or (n_open == 0 and rule.n_features_to_select < n):
        return Status.COMPACT.value
    return Status.RUNNING.value


@register_jitable(**INLINED)
def _leave_out(score_gradient, begin, end):
    """Turn the gradient of the mean loss over all rows of a batch into that over the rows outside of ``begin`` to ``end``."""
    n, zero = score_gradient.shape[0], np.float32(0.0)
    n_left = n - (end - begin)
    factor = np.float32(n / n_left) if n_left > 0 else zero
    for i in range(n):
        for c in range(score_gradient.shape[1]):
            score_gradient[i, c] = zero if begin <= i < end else factor * score_gradient[i, c]


@register_jitable(**FAST_INLINED)
def _update_weights(memory, first_row, last_row, gate, constants, decay):
    """Take a step of Adam on some rows of weights, and fold the gates into them."""
    width = gate.shape[0]
    n_outputs = memory.gradient.shape[0]
    for c in range(first_row, last_row):
        w, v, g = memory.weights[c][:width], memory.folded[c][:width], memory.gradient[c % n_outputs][:width]
        first, second = memory.weights_first[c][:width], memory.weights_second[c][:width]
        for j in range(width):
            first[j], second[j], step = adam(first[j], second[j], gate[j] * g[j] + decay * w[j], True, constants)
            w[j] = w[j] - step
            v[j] = max(gate[j], np.float32(0.0)) * w[j]


@register_jitable(**FAST_INLINED)
def _fold(memory, first_row, last_row, gate):
    """Fold the gates into some rows of weights."""
    width = gate.shape[0]
    for c in range(first_row, last_row):
        w, v = memory.weights[c][:width], memory.folded[c][:width]
        for j in range(width):
            v[j] = max(gate[j], np.float32(0.0)) * w[j]


@register_jitable(**FAST_INLINED)
def _update_with_gamma(memory, mask, constants, decay, alpha, target, rule):
    """Update the first row of weights, gamma and all their moments in one pass.

    Returns how many gamma fell to zero, and whether their sum was at or below the target, on which the step then depends.

    This is the step of ``tamiz.core.compiled`` fused with that of the weights, for speed: one reading of memory. The gradient
    of the loss with respect to gamma is overwritten by gamma * w.
    """
    loss_factor, penalty_factor, shift, finite = mixing_coefficients(mask, alpha, target, rule)
    if not finite:
        return NOT_FINITE, False
    gamma, gamma_first, gamma_second, rank, v, _, counters = mask
    width = gamma.shape[0]
    w, g = memory.weights[0][:width], memory.gradient[0][:width]
    first, second = memory.weights_first[0][:width], memory.weights_second[0][:width]
    counters[Slot.AGE] += 1
    mask_constants = adam_constants(rule.mask_learning_rate, rule, counters[Slot.AGE])
    one, zero = np.float32(1.0), np.float32(0.0)
    m, costs = np.int32(rule.n_features_to_select), rule.costs
    n_low = 0
    for j in range(width):
        alive = rank[j] <= m
        first[j], second[j], step = adam(first[j], second[j], gamma[j] * g[j] + decay * w[j], alive, constants)
        w[j] = w[j] - step
        coefficients = (loss_factor, penalty_factor * cost_of(costs, j), shift)
        value, gamma_first[j], gamma_second[j] = move_feature(
            gamma[j], gamma_first[j], gamma_second[j], v[j], alive, coefficients, mask_constants
        )
        gamma[j] = min(value, one) if alive else zero
        v[j] = max(gamma[j], zero) * w[j]
        n_low += 1 if alive and value <= zero else 0
    return n_low, shift <= one


@register_jitable(**INLINED)
def _update_intercept(intercept, first, score_gradient, constants):
    """Take a step of Adam on the constant terms from ``first`` on."""
    for c in range(score_gradient.shape[1]):
        total, k = np.float32(0.0), first + c
        for i in range(score_gradient.shape[0]):
            total += score_gradient[i, c]
        intercept[1, k], intercept[2, k], step = adam(intercept[1, k], intercept[2, k], total, True, constants)
        intercept[0, k] -= step


@njit(**IN_PLACE)
def run(data, memory, rule, training, loss, scores_product, gradient_product, gamma_gradient):
    """Train for as many steps as ``data`` says; return a :class:`Status`.

    Parameters
    ----------
    data : Piece
    memory : Memory
    rule : RuleNumbers
        Of the working set.
    training : TrainingNumbers
    loss, scores_product, gradient_product, gamma_gradient : compiled functions
        ``Loss.compiled`` and :attr:`Design.products`: direct arguments, whose types numba looks up at once.
    """
    matrix, batch, mask, loop_counters = data.matrix, memory.batch, working_set(memory), memory.loop_counters
    k, n_parts, n_outputs = loop_counters[LoopSlot.WIDTH], loop_counters[LoopSlot.PARTS], data.targets.shape[1]
    grouped, gate, gradient = matrix.starts.shape[0] > 0, memory.gate[:k], memory.gradient
    for i in range(data.alphas.shape[0]):
        phase, refining, constants, decay = begin_step(memory, training)
        selecting = phase == Phase.SELECTION.value
        moving = selecting or phase == Phase.CLOSING.value
        alpha = data.alphas[i] if mask.counters[Slot.OPEN] > 0 else 1.0
        _next_batch(memory, data, training.batch_size, n_parts)
        size = batch.bounds[n_parts]
        rows, scores, score_gradient = batch.rows[:size], batch.scores[:size], batch.score_gradient[:size]
        for part in range(n_parts):
            first, last = part * n_outputs, (part + 1) * n_outputs
            weights, folded = memory.weights[first:last], memory.folded[first:last]
            scores_product(matrix, rows, folded, k, memory.rest[0][first:last], scores)
            loss_value = loss(scores, batch.targets[:size], batch.weights[:size], score_gradient)
            if not np.isfinite(loss_value):
                return Status.DIVERGED.value
            memory.history.loss_sum[0] += loss_value / n_parts
            # The first row of ``folded`` is free until it is folded anew.
            if n_parts > 1:
                begin, end = batch.bounds[part], batch.bounds[part + 1]
                if moving:
                    gradient_product(matrix, rows[begin:end], score_gradient[begin:end], gradient, k)
                    gamma_gradient(matrix, weights, gradient, folded[0][:k], mask.gamma, True, part > 0, mask.gradient)
                _leave_out(score_gradient, begin, end)
            gradient_product(matrix, rows, score_gradient, gradient, k)
            if training.fit_intercept:
                _update_intercept(memory.rest, first, score_gradient, constants)
            if moving and n_parts == 1:
                if grouped:
                    gamma_gradient(matrix, weights, gradient, folded[0][:k], mask.gamma, False, False, mask.gradient)
                else:
                    weighted_gradient(weights, gradient, mask.gradient)
            # Without groups the first row of weights moves together with gamma, below.
            _update_weights(memory, first + 1 if moving and not grouped else first, last, gate, constants, decay)
        if moving:
            target, below = data.mask_targets[i] if selecting else float(rule.n_features_to_select), True
            if grouped:
                n_low = move_in_place(mask, alpha, target, rule)
            else:
                n_low, below = _update_with_gamma(memory, mask, constants, decay, alpha, target, rule)
            if n_low == NOT_FINITE:
                return Status.DIVERGED.value
            if below and selecting:
                loop_counters[LoopSlot.TARGET_MATTERS] = 1
            eliminate_in_place(mask, rule, mask.counters[Slot.STEP] >= training.step_limit, n_low)
            if grouped:
                open_gates(matrix, mask.gamma, gate)
            # The step that ends the selection sorts with the first row as scratch, which is then folded anew.
            first = 0 if grouped or (selecting and mask.counters[Slot.OPEN] == 0) else 1
            _fold(memory, first, n_parts * n_outputs, gate)
        status = end_step(memory, mask, phase, refining, alpha, training, rule)
        if status != Status.RUNNING.value:
            return status
    return Status.RUNNING.value


announce_compilation(run, 29)
