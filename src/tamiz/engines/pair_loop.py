"""Train a second-order model and its mask, compiled: products of functions are formed on the fly, never stored.

The coefficients of an output are one vector: those of the curve columns, then those of the products, row by row (function a
of one feature times each function b of every later feature). With the gate folded into them, ``v = gate * w``, where the gate
is gamma of the feature for a curve column and ``gamma_i * gamma_j`` for a product, the gradient of ``w`` is ``gate * g``, and
by the product rule that of ``gamma_i`` is the sum of ``w * g`` over its curve columns and of ``gamma_j * w * g`` over its
products, for the same gradient ``g`` with respect to ``v``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from tamiz.core.compiled import FAST, IN_PLACE, INLINED, NOT_FINITE, adam, adam_constants, advance_in_place
from tamiz.core.history import History, new_history, record_step
from tamiz.core.state import N_SLOTS, Phase, Slot
from tamiz.engines.loop import Status, shuffle
from tamiz.engines.memory import LoopSlot
from tamiz.engines.schedule import refinement_part

_refinement_part = register_jitable(**INLINED)(refinement_part)


class PairMemory(NamedTuple):
    """Everything that the loop changes, allocated once; the working set is at the front of every array."""

    weights: np.ndarray
    """(n_outputs, n_coefficients): w."""
    folded: np.ndarray
    """(n_outputs, n_coefficients): v = gate * w."""
    gradient: np.ndarray
    """(n_outputs, n_coefficients): g."""
    weights_first: np.ndarray
    weights_second: np.ndarray
    gate: np.ndarray
    """(n_coefficients,)."""
    curve_starts: np.ndarray
    """(n_features + 1,) int64: first curve column of each feature, and the end."""
    function_starts: np.ndarray
    """(n_features + 1,) int64: first function of each feature, and the end."""
    gamma: np.ndarray
    gamma_first: np.ndarray
    gamma_second: np.ndarray
    gamma_gradient: np.ndarray
    rank: np.ndarray
    order: np.ndarray
    """Scratch for sorting."""
    feature: np.ndarray
    """Original number of each feature of the working set; behind them those of the dropped ones, by rank."""
    intercept: np.ndarray
    """(3, n_outputs): value and moments."""
    rows: np.ndarray
    """Order of the samples in this epoch."""
    random: np.ndarray
    """State of the generator."""
    counters: np.ndarray
    """By :class:`~tamiz.core.state.Slot`."""
    loop_counters: np.ndarray
    """By :class:`~tamiz.engines.memory.LoopSlot`."""
    history: History
    scores: np.ndarray
    score_gradient: np.ndarray
    batch_targets: np.ndarray
    batch_weights: np.ndarray


def count_coefficients(curve_starts: np.ndarray, function_starts: np.ndarray) -> int:
    """Return how many coefficients an output has: one for each curve column and one for each product.

    Examples
    --------
    >>> count_coefficients(np.array([0, 7, 14]), np.array([0, 2, 4]))  # two columns: seven each, and four products
    18
    """
    later = function_starts[-1] - function_starts[1:]
    return int(curve_starts[-1] + np.sum(np.diff(function_starts) * later))


def new_pair_memory(
    n_samples: int,
    n_outputs: int,
    m: int,
    batch_size: int,
    seed: int,
    curve_starts: np.ndarray,
    function_starts: np.ndarray,
) -> PairMemory:
    """Return the memory of a run before its first step: all weights are 0, all gates open.

    Parameters
    ----------
    n_samples, n_outputs, m, batch_size, seed : int
        Sizes and seed of the run.
    curve_starts, function_starts : ndarray of int, shape (n_features + 1,)
        First curve column and first function of each feature, and the ends.

    Examples
    --------
    >>> new_pair_memory(10, 1, 1, 4, 0, np.array([0, 7, 14]), np.array([0, 2, 4])).weights.shape
    (1, 18)
    """
    n_features, n = curve_starts.size - 1, count_coefficients(curve_starts, function_starts)
    counters = np.zeros(N_SLOTS, dtype=np.int64)
    decided = m == n_features
    counters[Slot.OPEN] = 0 if decided else n_features
    counters[Slot.CLOSED] = 1 if decided else 0
    counters[Slot.KEPT] = m
    loop_counters = np.zeros(len(LoopSlot), dtype=np.int64)
    loop_counters[LoopSlot.WIDTH] = n
    loop_counters[LoopSlot.FEATURES] = n_features
    loop_counters[LoopSlot.POSITION] = n_samples  # the first batch begins an epoch
    feature = np.arange(n_features, dtype=np.int32)
    size = min(batch_size, n_samples)
    weights, folded, gradient, first, second = (np.zeros((n_outputs, n), np.float32) for _ in range(5))
    return PairMemory(
        weights=weights,
        folded=folded,
        gradient=gradient,
        weights_first=first,
        weights_second=second,
        gate=np.ones(n, dtype=np.float32),
        curve_starts=curve_starts.astype(np.int64),
        function_starts=function_starts.astype(np.int64),
        gamma=np.ones(n_features, dtype=np.float32),
        gamma_first=np.zeros(n_features, dtype=np.float32),
        gamma_second=np.zeros(n_features, dtype=np.float32),
        gamma_gradient=np.zeros(n_features, dtype=np.float32),
        rank=feature + 1 if decided else np.zeros(n_features, dtype=np.int32),
        order=np.zeros(n_features, dtype=np.int32),
        feature=feature,
        intercept=np.zeros((3, n_outputs), dtype=np.float32),
        rows=np.arange(n_samples, dtype=np.int64),
        random=np.array([seed], dtype=np.uint64),
        counters=counters,
        loop_counters=loop_counters,
        history=new_history(n_features),
        scores=np.zeros((size, n_outputs), dtype=np.float32),
        score_gradient=np.zeros((size, n_outputs), dtype=np.float32),
        batch_targets=np.zeros((size, n_outputs), dtype=np.float32),
        batch_weights=np.zeros(size, dtype=np.float32),
    )


@register_jitable(**INLINED)
def _next_batch(memory, batch_size, targets, weights):
    """Copy targets and weights of the next batch; return where its rows begin and end. The last of an epoch may be smaller."""
    position = memory.loop_counters[LoopSlot.POSITION]
    if position >= memory.rows.shape[0]:
        shuffle(memory.rows, memory.random)
        position = 0
    end = min(memory.rows.shape[0], position + batch_size)
    for i in range(position, end):
        for c in range(targets.shape[1]):
            memory.batch_targets[i - position, c] = targets[memory.rows[i], c]
        memory.batch_weights[i - position] = weights[memory.rows[i]]
    memory.loop_counters[LoopSlot.POSITION] = end
    return position, end


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _dot(a, b):
    total = np.float32(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _add_multiple(out, factor, row):
    for j in range(out.shape[0]):
        out[j] += factor * row[j]


@njit(**IN_PLACE)
def pair_scores(table, rows, folded, n_features, curve_starts, function_starts, intercept, scores):
    """Compute the scores of some rows: curve columns and products, times their folded coefficients."""
    n_curves, n_functions = curve_starts[n_features], function_starts[n_features]
    for i in range(rows.shape[0]):
        row = table[rows[i]]
        curves, functions = row[:n_curves], row[n_curves : n_curves + n_functions]
        for c in range(folded.shape[0]):
            v = folded[c]
            total = intercept[c] + _dot(v[:n_curves], curves)
            place = n_curves
            for feature in range(n_features):
                later = function_starts[feature + 1]
                for a in range(function_starts[feature], later):
                    end = place + n_functions - later
                    total += functions[a] * _dot(v[place:end], functions[later:])
                    place = end
            scores[i, c] = total


@njit(**IN_PLACE)
def pair_gradient(table, rows, score_gradient, width, n_features, curve_starts, function_starts, gradient):
    """Compute the gradient with respect to the folded coefficients."""
    n_curves, n_functions = curve_starts[n_features], function_starts[n_features]
    for c in range(gradient.shape[0]):
        g = gradient[c][:width]
        for j in range(width):
            g[j] = np.float32(0.0)
        for i in range(rows.shape[0]):
            d = score_gradient[i, c]
            if d == 0:
                continue
            row = table[rows[i]]
            functions = row[n_curves : n_curves + n_functions]
            _add_multiple(g[:n_curves], d, row[:n_curves])
            place = n_curves
            for feature in range(n_features):
                later = function_starts[feature + 1]
                for a in range(function_starts[feature], later):
                    end = place + n_functions - later
                    _add_multiple(g[place:end], d * functions[a], functions[later:])
                    place = end


@njit(**IN_PLACE)
def gamma_gradients(weights, gradient, width, n_features, curve_starts, function_starts, gamma, out):
    """Write the gradient with respect to gamma, by the product rule."""
    for i in range(n_features):
        out[i] = np.float32(0.0)
    for c in range(weights.shape[0]):
        w, g = weights[c][:width], gradient[c][:width]
        for i in range(n_features):
            for j in range(curve_starts[i], curve_starts[i + 1]):
                out[i] += w[j] * g[j]
        place = curve_starts[n_features]
        for i in range(n_features):
            for _a in range(function_starts[i], function_starts[i + 1]):
                for other in range(i + 1, n_features):
                    both = np.float32(0.0)
                    for _b in range(function_starts[other], function_starts[other + 1]):
                        both += w[place] * g[place]
                        place += 1
                    out[i] += gamma[other] * both
                    out[other] += gamma[i] * both


@njit(**IN_PLACE)
def open_gates(gamma, n_features, curve_starts, function_starts, gate):
    """Write the gate of every coefficient: gamma of its feature, or the product of those of its two features."""
    zero = np.float32(0.0)
    for i in range(n_features):
        for j in range(curve_starts[i], curve_starts[i + 1]):
            gate[j] = max(gamma[i], zero)
    place = curve_starts[n_features]
    for i in range(n_features):
        for _a in range(function_starts[i], function_starts[i + 1]):
            for other in range(i + 1, n_features):
                both = max(gamma[i], zero) * max(gamma[other], zero)
                for _b in range(function_starts[other], function_starts[other + 1]):
                    gate[place] = both
                    place += 1


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _update_row(w, g, first, second, gate, constants, decay):
    for j in range(w.shape[0]):
        first[j], second[j], step = adam(first[j], second[j], gate[j] * g[j] + decay * w[j], True, constants)
        w[j] = w[j] - step


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _fold_row(w, v, gate):
    for j in range(w.shape[0]):
        v[j] = gate[j] * w[j]


@register_jitable(**INLINED)
def _update_intercept(intercept, score_gradient, constants):
    for c in range(intercept.shape[1]):
        total = np.float32(0.0)
        for i in range(score_gradient.shape[0]):
            total += score_gradient[i, c]
        intercept[1, c], intercept[2, c], step = adam(intercept[1, c], intercept[2, c], total, True, constants)
        intercept[0, c] -= step


@njit(**IN_PLACE)
def run_pairs(loss, table, targets, sample_weights, memory, rule, training, refinement_rates, alphas, mask_targets):
    """Train for as many steps as ``alphas`` and ``mask_targets`` have entries; return a ``Status``."""
    counters, loop_counters = memory.counters, memory.loop_counters
    k, n, m = loop_counters[LoopSlot.WIDTH], loop_counters[LoopSlot.FEATURES], rule.n_features_to_select
    curve_starts, function_starts = memory.curve_starts, memory.function_starts
    gamma, rank, feature = memory.gamma[:n], memory.rank[:n], memory.feature[:n]
    gamma_first, gamma_second = memory.gamma_first[:n], memory.gamma_second[:n]
    gamma_gradient, order, gate = memory.gamma_gradient[:n], memory.order[:n], memory.gate[:k]
    for i in range(alphas.shape[0]):
        counters[Slot.STEP] += 1
        step = counters[Slot.STEP]
        begin, end = _next_batch(memory, training.batch_size, targets, sample_weights)
        rows, size = memory.rows[begin:end], end - begin
        scores, score_gradient = memory.scores[:size], memory.score_gradient[:size]
        pair_scores(table, rows, memory.folded, n, curve_starts, function_starts, memory.intercept[0], scores)
        loss_value = loss(scores, memory.batch_targets[:size], memory.batch_weights[:size], score_gradient)
        if not np.isfinite(loss_value):
            return Status.DIVERGED.value
        memory.history.loss_sum[0] += loss_value
        pair_gradient(table, rows, score_gradient, k, n, curve_starts, function_starts, memory.gradient)

        refining = counters[Slot.CLOSED] == 1 and step > training.warmup_steps
        moving = step > training.warmup_steps and not refining
        selecting = moving and counters[Slot.OPEN] > 0
        alpha = alphas[i] if counters[Slot.OPEN] > 0 else 1.0
        rate, l2 = training.learning_rate, training.l2
        if refining:
            refined = loop_counters[LoopSlot.REFINED]
            rate = refinement_rates[_refinement_part(refined, training.refinement_steps, refinement_rates.shape[0])]
            l2 = training.refinement_l2
            loop_counters[LoopSlot.REFINED] += 1
        loop_counters[LoopSlot.WEIGHT_AGE] += 1
        age = loop_counters[LoopSlot.WEIGHT_AGE]
        constants = adam_constants(rate, training.beta1, training.beta2, training.epsilon, age)
        if training.fit_intercept:
            _update_intercept(memory.intercept, score_gradient, constants)
        if moving:
            gamma_gradients(memory.weights, memory.gradient, k, n, curve_starts, function_starts, gamma, gamma_gradient)
        for c in range(memory.weights.shape[0]):
            _update_row(
                memory.weights[c][:k], memory.gradient[c][:k], memory.weights_first[c][:k],
                memory.weights_second[c][:k], gate, constants, np.float32(2.0 * l2),
            )  # fmt: skip
        if moving:
            n_eliminated = advance_in_place(
                gamma, gamma_first, gamma_second, rank, gamma_gradient, order, counters, alpha, mask_targets[i],
                step >= training.step_limit, rule,
            )  # fmt: skip
            if n_eliminated == NOT_FINITE:
                return Status.DIVERGED.value
            open_gates(gamma, n, curve_starts, function_starts, gate)
        for c in range(memory.weights.shape[0]):
            _fold_row(memory.weights[c][:k], memory.folded[c][:k], gate)
        phase = Phase.SELECTION.value if selecting else Phase.CLOSING.value
        if not moving:
            phase = Phase.REFINEMENT.value if refining else Phase.WARM_UP.value
        n_alive = counters[Slot.OPEN] if counters[Slot.OPEN] > 0 else counters[Slot.KEPT]
        record_step(memory.history, step, phase, n_alive, alpha, gamma, feature)
        if not moving:
            if refining and loop_counters[LoopSlot.REFINED] >= training.refinement_steps:
                return Status.DONE.value
            continue
        if counters[Slot.CLOSED] == 1:
            loop_counters[LoopSlot.CLOSED_AT] = step
            return Status.COMPACT.value if training.refinement_steps > 0 else Status.DONE.value
        if n_alive < n - n // 8 or (counters[Slot.OPEN] == 0 and m < n):
            return Status.COMPACT.value
    return Status.RUNNING.value


def drop_features(memory: PairMemory, m: int) -> np.ndarray:
    """Move what belongs to living features to the front of every array; the eliminated go behind, by rank.

    Returns
    -------
    ndarray of int
        Columns of the table (curve columns, then functions) that stay.
    """
    n, k = int(memory.loop_counters[LoopSlot.FEATURES]), int(memory.loop_counters[LoopSlot.WIDTH])
    alive = memory.rank[:n] <= m
    n_kept = int(alive.sum())
    curve_sizes, function_sizes = np.diff(memory.curve_starts[: n + 1]), np.diff(memory.function_starts[: n + 1])
    curves, functions = np.repeat(alive, curve_sizes), np.repeat(alive, function_sizes)
    later = memory.function_starts[1 : n + 1].repeat(function_sizes)
    products = [own & functions[first:] for own, first in zip(functions, later)]
    coefficients = np.concatenate([curves, *products])
    assert coefficients.size == k
    # The eliminated of a working set of n features hold the ranks from n down to one more than are left.
    eliminated, place = memory.feature[:n][~alive].copy(), memory.rank[:n][~alive] - 1
    for vector in (memory.feature, memory.rank, memory.gamma, memory.gamma_first, memory.gamma_second):
        vector[:n_kept] = vector[:n][alive]
    memory.feature[place] = eliminated
    memory.curve_starts[1 : n_kept + 1] = np.cumsum(curve_sizes[alive])
    memory.function_starts[1 : n_kept + 1] = np.cumsum(function_sizes[alive])
    width = int(coefficients.sum())
    memory.gate[:width] = memory.gate[:k][coefficients]
    for array in (memory.weights, memory.folded, memory.weights_first, memory.weights_second):
        array[:, :width] = array[:, :k][:, coefficients]
    memory.loop_counters[LoopSlot.WIDTH] = width
    memory.loop_counters[LoopSlot.FEATURES] = n_kept
    return np.flatnonzero(np.concatenate([curves, functions]))
