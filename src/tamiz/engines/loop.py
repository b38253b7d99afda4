"""Train a linear model and its mask, compiled: one pass forward, one backward, one fused update per step.

With the mask folded into the weights (``v = gamma * w``) the gradient of ``w`` is ``gamma * g`` and that of gamma is
``w * g`` for the same ``g = X^T d``, so no gradient with respect to the input is ever formed. The loop runs in pieces:
Python looks in between for an interrupt, for progress, and for eliminated columns to drop.

Columns may share an entry of gamma: the columns of a group lie side by side, and the gradient of its gamma is the sum over
them. "Features" are then the groups, "columns" those of the table. Without groups every column is a feature, and gamma
moves in the same pass as the weights.

With several parts each has a set of weights of its own, trained on the rows of all other parts, and the gradient of gamma,
which the sets share, is the sum of their gradients over the rows of their own parts (:mod:`tamiz.engines.memory`).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numba import njit
from numba.extending import register_jitable

from tamiz.core.compiled import (
    FAST,
    IN_PLACE,
    INLINED,
    NOT_FINITE,
    adam,
    adam_constants,
    cost_of,
    eliminate_in_place,
    mask_adam_constants,
    mixing_coefficients,
    move_feature,
    move_in_place,
)
from tamiz.core.history import record_step
from tamiz.core.rule import Phase, Slot
from tamiz.engines.memory import LoopSlot
from tamiz.engines.schedule import refinement_part

_part_of_refinement = register_jitable(**INLINED)(refinement_part)


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
def next_batch(rows, random, position, batch_size, n_parts, targets, weights, batch):
    """Copy the next batch, part by part; return where its rows end. The last one of an epoch may be smaller."""
    if position >= rows.shape[0]:
        shuffle(rows, random, n_parts)
        position = 0
    end = min(rows.shape[0], position + batch_size)
    n = 0
    for part in range(n_parts):
        batch.bounds[part] = n
        for i in range(position + (part - position) % n_parts, end, n_parts):
            copy_row(rows[i], n, targets, weights, batch)
            n += 1
    batch.bounds[n_parts] = n
    return end


@register_jitable(**INLINED)
def copy_row(row, place, targets, weights, batch):
    """Copy number, targets and weight of a row into a batch."""
    batch.rows[place] = row
    # Entry by entry: the compiler takes four seconds longer over the assignment of a row.
    for c in range(targets.shape[1]):
        batch.targets[place, c] = targets[row, c]
    batch.weights[place] = weights[row]


@register_jitable(**INLINED)
def leave_out(score_gradient, begin, end):
    """Turn the gradient of the mean loss over all rows of a batch into that over the rows outside of ``begin`` to ``end``."""
    n, zero = score_gradient.shape[0], np.float32(0.0)
    n_left = n - (end - begin)
    factor = np.float32(n / n_left) if n_left > 0 else zero
    for i in range(n):
        for c in range(score_gradient.shape[1]):
            score_gradient[i, c] = zero if begin <= i < end else factor * score_gradient[i, c]


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _gamma_gradient(weights, gradient, out):
    """Write the gradient with respect to gamma, w * g summed over the outputs."""
    width = out.shape[0]
    for c in range(weights.shape[0]):
        # Rows are cut as ``weights[c][:width]``, not ``weights[:, :width][c]``: only of the former does the compiler know
        # that the entries lie side by side.
        w, g = weights[c][:width], gradient[c][:width]
        for j in range(width):
            out[j] = (out[j] if c > 0 else np.float32(0.0)) + w[j] * g[j]


@register_jitable(**INLINED)
def size_factor(n_weights):
    """Return what the gradient of gamma on held-out rows is divided by, for a feature with so many weights.

    Of noise that gradient is a sum of as many terms: its deviation, by which a feature may survive, grows with their root,
    its mean, which eliminates it, with their number. By the fourth root large and small features of noise are kept equally
    often (``benchmarks/honest_gamma.py``).
    """
    return np.float32(np.sqrt(np.sqrt(n_weights)))


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def sum_groups(of_columns, starts, out, held_out, add):
    """Write the sum over the columns of each group, or add it.

    ``held_out``: divide by :func:`size_factor`.
    """
    begin = 0
    for i in range(out.shape[0]):
        total = np.float32(0.0)
        end = starts[i + 1]
        for j in range(begin, end):
            total += of_columns[j]
        if held_out:
            total /= size_factor(end - begin)
        out[i] = total + (out[i] if add else np.float32(0.0))
        begin = end


@register_jitable(**INLINED)
def spread_to_columns(gamma, starts, gate):
    """Write gamma of each group to its columns."""
    begin = 0
    for i in range(gamma.shape[0]):
        end = starts[i + 1]
        for j in range(begin, end):
            gate[j] = gamma[i]
        begin = end


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _update_weights(first_row, weights, folded, gradient, weights_first, weights_second, gamma, constants, l2):
    """Take a step of Adam on the rows of weights from ``first_row`` on, and fold gamma into them."""
    width = gamma.shape[0]
    for c in range(first_row, weights.shape[0]):
        w, v, g = weights[c][:width], folded[c][:width], gradient[c][:width]
        first, second = weights_first[c][:width], weights_second[c][:width]
        for j in range(width):
            first[j], second[j], step = adam(first[j], second[j], gamma[j] * g[j] + l2 * w[j], True, constants)
            w[j] = w[j] - step
            v[j] = max(gamma[j], np.float32(0.0)) * w[j]


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _fold(first_row, weights, folded, gamma):
    """Fold gamma into the rows of weights from ``first_row`` on."""
    width = gamma.shape[0]
    for c in range(first_row, weights.shape[0]):
        w, v = weights[c][:width], folded[c][:width]
        for j in range(width):
            v[j] = max(gamma[j], np.float32(0.0)) * w[j]


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _update_with_gamma(
    w, v, g, first, second, gamma, gamma_first, gamma_second, rank, constants, l2, counters, alpha, target, rule
):
    """Update one row of weights, gamma and all their moments in one pass.

    Returns how many gamma fell to zero, and whether their sum was at or below the target, on which the step then depends.

    This is the step of ``tamiz.core.compiled`` fused with that of the weights, for speed: one reading of memory. ``v`` comes
    in as the gradient of the loss with respect to gamma and goes out as gamma * w.
    """
    loss_factor, penalty_factor, shift, finite = mixing_coefficients(gamma, rank, v, alpha, target, rule)
    if not finite:
        return NOT_FINITE, False
    counters[Slot.AGE] += 1
    mask_constants = mask_adam_constants(rule, counters)
    one, zero = np.float32(1.0), np.float32(0.0)
    m, costs = np.int32(rule.n_features_to_select), rule.costs
    n_low = 0
    for j in range(w.shape[0]):
        alive = rank[j] <= m
        first[j], second[j], step = adam(first[j], second[j], gamma[j] * g[j] + l2 * w[j], alive, constants)
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
def update_intercept(intercept, first, score_gradient, constants):
    """Take a step of Adam on the constant terms from ``first`` on."""
    for c in range(score_gradient.shape[1]):
        total, k = np.float32(0.0), first + c
        for i in range(score_gradient.shape[0]):
            total += score_gradient[i, c]
        intercept[1, k], intercept[2, k], step = adam(intercept[1, k], intercept[2, k], total, True, constants)
        intercept[0, k] -= step


@register_jitable(**INLINED)
def weight_constants(loop_counters, refining, training, refinement_rates):
    """Count a step of the weights, and of the refinement; return the numbers of its Adam and the factor of the weights."""
    rate, l2 = training.learning_rate, training.l2
    if refining:
        refined = loop_counters[LoopSlot.REFINED]
        rate = refinement_rates[_part_of_refinement(refined, training.refinement_steps, refinement_rates.shape[0])]
        l2 = training.refinement_l2
        loop_counters[LoopSlot.REFINED] += 1
    loop_counters[LoopSlot.WEIGHT_AGE] += 1
    age = loop_counters[LoopSlot.WEIGHT_AGE]
    return adam_constants(rate, training.beta1, training.beta2, training.epsilon, age), np.float32(2.0 * l2)


@register_jitable(**INLINED)
def end_step(
    history, counters, loop_counters, step, moving, selecting, resting, refining, alpha, gamma, feature, m, training
):  # fmt: skip
    """Record a step; return the :class:`Status` with which the loop comes back, or that it goes on.

    ``moving`` tells whether gamma moved in this step, ``selecting`` whether features could be eliminated, ``resting`` whether
    the mask was closed before it, ``refining`` whether the weights were refined. ``gamma`` is that of the working set.
    """
    phase = Phase.SELECTION.value if selecting else Phase.CLOSING.value
    if not moving:
        phase = Phase.REFINEMENT.value if resting else Phase.WARM_UP.value
    n, n_alive = gamma.shape[0], counters[Slot.OPEN] if counters[Slot.OPEN] > 0 else counters[Slot.KEPT]
    record_step(history, step, phase, n_alive, alpha, gamma, feature)
    if not moving:
        is_done = refining and loop_counters[LoopSlot.REFINED] >= training.refinement_steps
        return Status.DONE.value if is_done else Status.RUNNING.value
    if counters[Slot.CLOSED] == 1:
        loop_counters[LoopSlot.CLOSED_AT] = step
        return Status.COMPACT.value if training.refinement_steps > 0 else Status.DONE.value
    if n_alive < n - n // 8 or (counters[Slot.OPEN] == 0 and m < n):
        return Status.COMPACT.value
    return Status.RUNNING.value


@njit(**IN_PLACE)
def run(
    scores_product, gradient_product, loss, matrix, targets, sample_weights,
    memory, rule, training, refinement_rates, alphas, mask_targets,
):  # fmt: skip
    """Train for as many steps as ``alphas`` and ``mask_targets`` have entries; return a :class:`Status`.

    ``memory`` is a :class:`~tamiz.engines.memory.Memory`.
    """
    (
        all_weights, all_folded, gradient, all_first, all_second, gamma, gamma_first, gamma_second, gamma_gradient, gate,
        starts, rank, order, feature, intercept, all_rows, random, counters, loop_counters, history, batch,
    ) = memory  # fmt: skip
    values, data, indices, indptr, offset = matrix
    k, n, m = loop_counters[LoopSlot.WIDTH], loop_counters[LoopSlot.FEATURES], rule.n_features_to_select
    n_parts, n_outputs = loop_counters[LoopSlot.PARTS], targets.shape[1]
    gamma, gamma_first, gamma_second, rank, order = gamma[:n], gamma_first[:n], gamma_second[:n], rank[:n], order[:n]
    gamma_gradient, gate = gamma_gradient[:n], gate[:k]
    grouped = starts.shape[0] > 0
    for i in range(alphas.shape[0]):
        counters[Slot.STEP] += 1
        step = counters[Slot.STEP]
        loop_counters[LoopSlot.POSITION] = next_batch(
            all_rows,
            random,
            loop_counters[LoopSlot.POSITION],
            training.batch_size,
            n_parts,
            targets,
            sample_weights,
            batch,
        )
        size = batch.bounds[n_parts]
        rows, scores, score_gradient = batch.rows[:size], batch.scores[:size], batch.score_gradient[:size]
        resting = counters[Slot.CLOSED] == 1 and step > training.warmup_steps
        refining = resting and step > training.refinement_from
        constants, decay = weight_constants(loop_counters, refining, training, refinement_rates)
        moving = step > training.warmup_steps and not resting
        selecting = moving and counters[Slot.OPEN] > 0
        alpha = alphas[i] if counters[Slot.OPEN] > 0 else 1.0
        for part in range(n_parts):
            first, last = part * n_outputs, (part + 1) * n_outputs
            weights, folded = all_weights[first:last], all_folded[first:last]
            scores_product(
                values, data, indices, indptr, offset, rows, folded, k, intercept[0][first:last], scores
            )  # fmt: skip
            loss_value = loss(scores, batch.targets[:size], batch.weights[:size], score_gradient)
            if not np.isfinite(loss_value):
                return Status.DIVERGED.value
            history.loss_sum[0] += loss_value / n_parts
            # The first row of ``folded`` is free until it is folded anew.
            if n_parts > 1:
                begin, end = batch.bounds[part], batch.bounds[part + 1]
                if moving:
                    gradient_product(
                        values, data, indices, indptr, offset, rows[begin:end], score_gradient[begin:end], gradient, k
                    )  # fmt: skip
                    _gamma_gradient(weights, gradient, folded[0][:k])
                    sum_groups(folded[0], starts, gamma_gradient, True, part > 0)
                leave_out(score_gradient, begin, end)
            gradient_product(values, data, indices, indptr, offset, rows, score_gradient, gradient, k)
            if training.fit_intercept:
                update_intercept(intercept, first, score_gradient, constants)
            if moving and n_parts == 1:
                _gamma_gradient(weights, gradient, folded[0][:k])
                if grouped:
                    sum_groups(folded[0], starts, gamma_gradient, False, False)
            # Without groups the first row of weights moves together with gamma, below.
            _update_weights(
                1 if moving and not grouped else 0, weights, folded, gradient, all_first[first:last],
                all_second[first:last], gate, constants, decay,
            )  # fmt: skip
        if moving:
            mask_target = mask_targets[i] if selecting else float(m)
            below = True
            if grouped:
                n_low = move_in_place(
                    gamma, gamma_first, gamma_second, rank, gamma_gradient, counters, alpha, mask_target, rule
                )
            else:
                n_low, below = _update_with_gamma(
                    all_weights[0][:k], gamma_gradient, gradient[0][:k], all_first[0][:k], all_second[0][:k],
                    gamma, gamma_first, gamma_second, rank, constants, decay, counters, alpha, mask_target, rule,
                )  # fmt: skip
            if n_low == NOT_FINITE:
                return Status.DIVERGED.value
            if below and selecting:
                loop_counters[LoopSlot.TARGET_MATTERS] = 1
            forced = step >= training.step_limit
            eliminate_in_place(
                gamma, gamma_first, gamma_second, rank, gamma_gradient, order, counters, rule, forced, n_low
            )
            if grouped:
                spread_to_columns(gamma, starts, gate)
            # The step that ends the selection sorts with the first row as scratch, which is then folded anew.
            _fold(
                0 if grouped or (selecting and counters[Slot.OPEN] == 0) else 1, all_weights[: n_parts * n_outputs],
                all_folded, gate,
            )  # fmt: skip
        status = end_step(
            history, counters, loop_counters, step, moving, selecting, resting, refining, alpha, gamma, feature, m,
            training,
        )  # fmt: skip
        if status != Status.RUNNING.value:
            return status
    return Status.RUNNING.value
