"""The compiled loop of linear models, groups of columns, curves and pairs, and the parts of a step that all loops share.

With the gates folded into the weights (``v = gate * w``) the gradient of ``w`` is ``gate * g`` and that of the gate is
``w * g`` for the same ``g = X^T d``, so no gradient with respect to the input is ever formed. The loop runs in pieces:
Python looks in between for an interrupt, for progress, and for eliminated columns to drop.

Without groups every column is a feature, its gate is gamma, and gamma moves in the same pass as the weights. Otherwise the
functions of the table say how gates and their gradients follow from gamma: columns of a group share one entry
(:mod:`tamiz.engines.design`), the gate of a product is the product of two entries (:mod:`tamiz.engines.pair_products`).

With several parts each has a set of weights of its own, trained on the rows of all other parts, and the gradient of gamma,
which the sets share, is the sum of their gradients over the rows of their own parts (:mod:`tamiz.engines.memory`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

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
from tamiz.core.history import record_step
from tamiz.core.rule import Phase, Slot
from tamiz.engines.design import Matrix, open_gates, weighted_gradient
from tamiz.engines.memory import LoopSlot
from tamiz.engines.schedule import refinement_part

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

    RUNNING = 0
    """The steps asked for are done."""
    COMPACT = 1
    """Many columns are eliminated: drop them."""
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
