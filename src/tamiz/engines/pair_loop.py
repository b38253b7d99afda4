"""Train a second-order model and its mask, compiled: products of functions are formed on the fly, never stored.

The coefficients of an output are one vector: those of the curve columns, then those of the products, row by row (function a
of one feature times each function b of every later feature). With the gate folded into them, ``v = gate * w``, where the gate
is gamma of the feature for a curve column and ``gamma_i * gamma_j`` for a product, the gradient of ``w`` is ``gate * g``, and
by the product rule that of ``gamma_i`` is the sum of ``w * g`` over its curve columns and of ``gamma_j * w * g`` over its
products, for the same gradient ``g`` with respect to ``v``.

Features that are always read stand behind those that gamma decides over. Their gamma stays 1; all else is the same for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from tamiz.core.compiled import FAST, IN_PLACE, INLINED, NOT_FINITE, adam, advance_in_place
from tamiz.core.history import History, new_history
from tamiz.core.rule import Slot
from tamiz.engines.loop import (
    Status,
    end_step,
    leave_out,
    next_batch,
    size_factor,
    update_intercept,
    weight_constants,
)
from tamiz.engines.memory import Batch, LoopSlot, new_batch, new_counters


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


@register_jitable(**INLINED)
def factor_of(feature, n_functions, curve_starts, function_starts, held_out):
    """Return what the gradient of a feature's gamma is multiplied by."""
    if not held_out:
        return np.float32(1.0)
    own = function_starts[feature + 1] - function_starts[feature]
    curves = curve_starts[feature + 1] - curve_starts[feature]
    return np.float32(1.0) / size_factor(curves + own * (n_functions - own))


@njit(**IN_PLACE)
def gamma_gradients(weights, gradient, width, n_features, curve_starts, function_starts, gamma, held_out, out):
    """Add the gradient with respect to gamma, by the product rule; ``held_out``: divided by ``size_factor``."""
    n_functions = function_starts[n_features]
    for c in range(weights.shape[0]):
        w, g = weights[c][:width], gradient[c][:width]
        for i in range(n_features):
            factor = factor_of(i, n_functions, curve_starts, function_starts, held_out)
            for j in range(curve_starts[i], curve_starts[i + 1]):
                out[i] += factor * w[j] * g[j]
        place = curve_starts[n_features]
        for i in range(n_features):
            factor = factor_of(i, n_functions, curve_starts, function_starts, held_out)
            for _a in range(function_starts[i], function_starts[i + 1]):
                for other in range(i + 1, n_features):
                    both = np.float32(0.0)
                    for _b in range(function_starts[other], function_starts[other + 1]):
                        both += w[place] * g[place]
                        place += 1
                    out[i] += factor * gamma[other] * both
                    other_factor = factor_of(other, n_functions, curve_starts, function_starts, held_out)
                    out[other] += other_factor * gamma[i] * both


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
    n_parts, n_outputs, batch = loop_counters[LoopSlot.PARTS], targets.shape[1], memory.batch
    for i in range(alphas.shape[0]):
        counters[Slot.STEP] += 1
        step = counters[Slot.STEP]
        loop_counters[LoopSlot.POSITION] = next_batch(
            memory.rows, memory.random, loop_counters[LoopSlot.POSITION], training.batch_size, n_parts, targets,
            sample_weights, batch,
        )  # fmt: skip
        size = batch.bounds[n_parts]
        rows, scores, score_gradient = batch.rows[:size], batch.scores[:size], batch.score_gradient[:size]
        resting = counters[Slot.CLOSED] == 1 and step > training.warmup_steps
        refining = resting and step > training.refinement_from
        moving = step > training.warmup_steps and not resting
        selecting = moving and counters[Slot.OPEN] > 0
        alpha = alphas[i] if counters[Slot.OPEN] > 0 else 1.0
        constants, decay = weight_constants(loop_counters, refining, training, refinement_rates)
        for j in range(n_all):
            memory.gamma_gradient[j] = np.float32(0.0)
        for part in range(n_parts):
            first, last = part * n_outputs, (part + 1) * n_outputs
            begin, end = (batch.bounds[part], batch.bounds[part + 1]) if n_parts > 1 else (0, size)
            weights, folded = memory.weights[first:last], memory.folded[first:last]
            pair_scores(
                table, rows, folded, n_all, curve_starts, function_starts, memory.intercept[0][first:last], scores
            )
            loss_value = loss(scores, batch.targets[:size], batch.weights[:size], score_gradient)
            if not np.isfinite(loss_value):
                return Status.DIVERGED.value
            memory.history.loss_sum[0] += loss_value / n_parts
            if moving or n_parts == 1:
                pair_gradient(
                    table, rows[begin:end], score_gradient[begin:end], k, n_all, curve_starts, function_starts,
                    memory.gradient,
                )  # fmt: skip
            if moving:
                gamma_gradients(
                    weights, memory.gradient, k, n_all, curve_starts, function_starts, all_gamma, n_parts > 1,
                    memory.gamma_gradient,
                )  # fmt: skip
            if n_parts > 1:
                leave_out(score_gradient, begin, end)
                pair_gradient(
                    table, rows, score_gradient, k, n_all, curve_starts, function_starts, memory.gradient
                )  # fmt: skip
            if training.fit_intercept:
                update_intercept(memory.intercept, first, score_gradient, constants)
            for c in range(n_outputs):
                _update_row(
                    weights[c][:k], memory.gradient[c][:k], memory.weights_first[first + c][:k],
                    memory.weights_second[first + c][:k], gate, constants, decay,
                )  # fmt: skip
        if moving:
            n_eliminated = advance_in_place(
                gamma, gamma_first, gamma_second, rank, gamma_gradient, order, counters, alpha, mask_targets[i],
                step >= training.step_limit, rule,
            )  # fmt: skip
            if n_eliminated == NOT_FINITE:
                return Status.DIVERGED.value
            open_gates(all_gamma, n_all, curve_starts, function_starts, gate)
        for c in range(n_parts * n_outputs):
            _fold_row(memory.weights[c][:k], memory.folded[c][:k], gate)
        status = end_step(
            memory.history, counters, loop_counters, step, moving, selecting, resting, refining, alpha, gamma, feature, m,
            training,
        )  # fmt: skip
        if status != Status.RUNNING.value:
            return status
    return Status.RUNNING.value


class PairMemory(NamedTuple):
    """Everything that the loop changes, allocated once; the working set is at the front of every array."""

    weights: np.ndarray
    """(n_parts * n_outputs, n_coefficients): w."""
    folded: np.ndarray
    """(n_parts * n_outputs, n_coefficients): v = gate * w."""
    gradient: np.ndarray
    """(n_outputs, n_coefficients): g."""
    weights_first: np.ndarray
    weights_second: np.ndarray
    gate: np.ndarray
    """(n_coefficients,)."""
    curve_starts: np.ndarray
    """(n_all_features + 1,) int64: first curve column of each feature, and the end; those that are always read come last."""
    function_starts: np.ndarray
    """(n_all_features + 1,) int64: first function of each feature, and the end."""
    gamma: np.ndarray
    """(n_all_features,): behind the features of the working set, ones for those that are always read."""
    gamma_first: np.ndarray
    gamma_second: np.ndarray
    gamma_gradient: np.ndarray
    """(n_all_features,)."""
    rank: np.ndarray
    order: np.ndarray
    """Scratch for sorting."""
    feature: np.ndarray
    """(n_features,): original number of each feature of the working set; behind them those of the dropped ones, by rank."""
    intercept: np.ndarray
    """(3, n_parts * n_outputs): value and moments."""
    rows: np.ndarray
    """Order of the samples in this epoch, see :func:`~tamiz.engines.memory.rows_in_parts`."""
    random: np.ndarray
    """State of the generator."""
    counters: np.ndarray
    """By :class:`~tamiz.core.rule.Slot`."""
    loop_counters: np.ndarray
    """By :class:`~tamiz.engines.memory.LoopSlot`."""
    history: History
    batch: Batch


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
    rows: np.ndarray,
    n_outputs: int,
    m: int,
    batch_size: int,
    seed: int,
    curve_starts: np.ndarray,
    function_starts: np.ndarray,
    n_always: int = 0,
    n_parts: int = 1,
) -> PairMemory:
    """Return the memory of a run before its first step: all weights are 0, all gates open.

    Parameters
    ----------
    rows : ndarray of int, shape (n_samples,)
        The rows to train on (:func:`~tamiz.engines.memory.rows_in_parts`).
    n_outputs, m, batch_size, seed : int
        Sizes and seed of the run; ``m`` is M, or 0 with a budget.
    curve_starts, function_starts : ndarray of int, shape (n_all_features + 1,)
        First curve column and first function of each feature, and the ends.
    n_always : int, default=0
        How many features, the last ones, are always read.
    n_parts : int, default=1
        Sets of weights.

    Examples
    --------
    >>> new_pair_memory(np.arange(10), 1, 1, 4, 0, np.array([0, 7, 14]), np.array([0, 2, 4])).weights.shape
    (1, 18)
    """
    n_all, n = curve_starts.size - 1, count_coefficients(curve_starts, function_starts)
    n_features = n_all - n_always
    counters, loop_counters, rank = new_counters(n_features, m, n, rows.size, n_parts)
    weights, folded, first, second = (np.zeros((n_parts * n_outputs, n), np.float32) for _ in range(4))
    return PairMemory(
        weights=weights,
        folded=folded,
        gradient=np.zeros((n_outputs, n), np.float32),
        weights_first=first,
        weights_second=second,
        gate=np.ones(n, dtype=np.float32),
        curve_starts=curve_starts.astype(np.int64),
        function_starts=function_starts.astype(np.int64),
        gamma=np.ones(n_all, dtype=np.float32),
        gamma_first=np.zeros(n_features, dtype=np.float32),
        gamma_second=np.zeros(n_features, dtype=np.float32),
        gamma_gradient=np.zeros(n_all, dtype=np.float32),
        rank=rank,
        order=np.zeros(n_features, dtype=np.int32),
        feature=np.arange(n_features, dtype=np.int32),
        intercept=np.zeros((3, n_parts * n_outputs), dtype=np.float32),
        rows=rows.astype(np.int64),
        random=np.array([seed], dtype=np.uint64),
        counters=counters,
        loop_counters=loop_counters,
        history=new_history(n_features),
        batch=new_batch(min(batch_size, rows.size), n_outputs, n_parts),
    )


def drop_features(memory: PairMemory, m: int) -> np.ndarray:
    """Move what belongs to living features to the front of every array; the eliminated go behind, by rank.

    Returns
    -------
    ndarray of int
        Columns of the table (curve columns, then functions) that stay.
    """
    n, k = int(memory.loop_counters[LoopSlot.FEATURES]), int(memory.loop_counters[LoopSlot.WIDTH])
    n_always = memory.gamma.size - memory.feature.size
    alive = memory.rank[:n] <= m
    n_kept = int(alive.sum())
    stays = np.concatenate([alive, np.ones(n_always, dtype=bool)])
    n_all, n_staying = n + n_always, n_kept + n_always
    curve_sizes, function_sizes = (
        np.diff(memory.curve_starts[: n_all + 1]),
        np.diff(memory.function_starts[: n_all + 1]),
    )
    curves, functions = np.repeat(stays, curve_sizes), np.repeat(stays, function_sizes)
    later = memory.function_starts[1 : n_all + 1].repeat(function_sizes)
    products = [own & functions[first:] for own, first in zip(functions, later)]
    coefficients = np.concatenate([curves, *products])
    assert coefficients.size == k
    # The eliminated of a working set of n features hold the ranks from n down to one more than are left.
    eliminated, place = memory.feature[:n][~alive].copy(), memory.rank[:n][~alive] - 1
    for vector in (memory.feature, memory.rank, memory.gamma_first, memory.gamma_second):
        vector[:n_kept] = vector[:n][alive]
    memory.gamma[:n_staying] = memory.gamma[:n_all][stays]
    memory.feature[place] = eliminated
    memory.curve_starts[1 : n_staying + 1] = np.cumsum(curve_sizes[stays])
    memory.function_starts[1 : n_staying + 1] = np.cumsum(function_sizes[stays])
    width = int(coefficients.sum())
    memory.gate[:width] = memory.gate[:k][coefficients]
    for array in (memory.weights, memory.folded, memory.weights_first, memory.weights_second):
        array[:, :width] = array[:, :k][:, coefficients]
    memory.loop_counters[LoopSlot.WIDTH] = width
    memory.loop_counters[LoopSlot.FEATURES] = n_kept
    return np.flatnonzero(np.concatenate([curves, functions]))
