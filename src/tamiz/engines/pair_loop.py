"""Train a second-order model and its mask, compiled: products of functions are formed on the fly, never stored.

The coefficients of an output are one vector: those of the curve columns, then those of the products, row by row (function a
of one feature times each function b of every later feature). With the gate folded into them, ``v = gate * w``, where the gate
is gamma of the feature for a curve column and ``gamma_i * gamma_j`` for a product, the gradient of ``w`` is ``gate * g``, and
by the product rule that of ``gamma_i`` is the sum of ``w * g`` over its curve columns and of ``gamma_j * w * g`` over its
products, for the same gradient ``g`` with respect to ``v``.

Features that are always read stand behind those that gamma decides over. Their gamma stays 1; all else is the same for them.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

from tamiz.core.compiled import FAST, IN_PLACE, INLINED, NOT_FINITE, adam, advance_in_place
from tamiz.core.state import Slot
from tamiz.engines.loop import Status, end_step, next_batch, update_intercept, weight_constants
from tamiz.engines.memory import LoopSlot


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


@njit(**IN_PLACE)
def run_pair_loop(loss, table, targets, sample_weights, memory, rule, training, refinement_rates, alphas, mask_targets):
    """Train for as many steps as ``alphas`` and ``mask_targets`` have entries; return a ``Status``."""
    counters, loop_counters = memory.counters, memory.loop_counters
    k, n, m = loop_counters[LoopSlot.WIDTH], loop_counters[LoopSlot.FEATURES], rule.n_features_to_select
    n_all = n + memory.gamma.shape[0] - memory.feature.shape[0]
    curve_starts, function_starts = memory.curve_starts, memory.function_starts
    gamma, rank, feature, all_gamma = memory.gamma[:n], memory.rank[:n], memory.feature[:n], memory.gamma[:n_all]
    gamma_first, gamma_second = memory.gamma_first[:n], memory.gamma_second[:n]
    gamma_gradient, order, gate = memory.gamma_gradient[:n], memory.order[:n], memory.gate[:k]
    for i in range(alphas.shape[0]):
        counters[Slot.STEP] += 1
        step = counters[Slot.STEP]
        begin, end = next_batch(
            memory.rows, memory.random, loop_counters[LoopSlot.POSITION], training.batch_size, targets, sample_weights,
            memory.batch_targets, memory.batch_weights,
        )  # fmt: skip
        loop_counters[LoopSlot.POSITION] = end
        rows, size = memory.rows[begin:end], end - begin
        scores, score_gradient = memory.scores[:size], memory.score_gradient[:size]
        pair_scores(table, rows, memory.folded, n_all, curve_starts, function_starts, memory.intercept[0], scores)
        loss_value = loss(scores, memory.batch_targets[:size], memory.batch_weights[:size], score_gradient)
        if not np.isfinite(loss_value):
            return Status.DIVERGED.value
        memory.history.loss_sum[0] += loss_value
        pair_gradient(table, rows, score_gradient, k, n_all, curve_starts, function_starts, memory.gradient)

        refining = counters[Slot.CLOSED] == 1 and step > training.warmup_steps
        moving = step > training.warmup_steps and not refining
        selecting = moving and counters[Slot.OPEN] > 0
        alpha = alphas[i] if counters[Slot.OPEN] > 0 else 1.0
        constants, decay = weight_constants(loop_counters, refining, training, refinement_rates)
        if training.fit_intercept:
            update_intercept(memory.intercept, score_gradient, constants)
        if moving:
            gamma_gradients(
                memory.weights,
                memory.gradient,
                k,
                n_all,
                curve_starts,
                function_starts,
                all_gamma,
                memory.gamma_gradient,
            )
        for c in range(memory.weights.shape[0]):
            _update_row(
                memory.weights[c][:k], memory.gradient[c][:k], memory.weights_first[c][:k],
                memory.weights_second[c][:k], gate, constants, decay,
            )  # fmt: skip
        if moving:
            n_eliminated = advance_in_place(
                gamma, gamma_first, gamma_second, rank, gamma_gradient, order, counters, alpha, mask_targets[i],
                step >= training.step_limit, rule,
            )  # fmt: skip
            if n_eliminated == NOT_FINITE:
                return Status.DIVERGED.value
            open_gates(all_gamma, n_all, curve_starts, function_starts, gate)
        for c in range(memory.weights.shape[0]):
            _fold_row(memory.weights[c][:k], memory.folded[c][:k], gate)
        status = end_step(
            memory.history, counters, loop_counters, step, moving, selecting, refining, refining, alpha, gamma, feature, m,
            training,
        )  # fmt: skip
        if status != Status.RUNNING.value:
            return status
    return Status.RUNNING.value
