"""Train a dense network and its mask, compiled: forward, backward, update, and the step of gamma.

The mask is folded into the first layer, ``(x * gamma) @ W``, so no gradient with respect to the input is formed: with the
gradient G of W, that of gamma is ``sum(W * G) / gamma``. The loop runs in pieces, as that of the linear model, and columns
may share an entry of gamma in the same way.

Several networks share gamma if each trains on the rows outside of its own part: the gradient of gamma is then the sum of
their gradients on the rows of their own parts, with batches, and batch normalisation, of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from tamiz.core.compiled import FAST, IN_PLACE, INLINED, NOT_FINITE, adam, advance_in_place
from tamiz.core.history import History, new_history
from tamiz.core.rule import Slot
from tamiz.engines.layers import Layers, Row, backward, forward, network_of, new_layers, padded, update
from tamiz.engines.loop import (
    Status,
    copy_row,
    end_step,
    shuffle,
    spread_to_columns,
    sum_groups,
    weight_constants,
)
from tamiz.engines.memory import Batch, LoopSlot, new_batch, new_counters


class DenseMemory(NamedTuple):
    """Everything that the loop changes, allocated once."""

    weights: np.ndarray
    """(n_networks, n_columns, units) of the first layer."""
    gradient: np.ndarray
    """(n_columns, units)."""
    weights_first: np.ndarray
    weights_second: np.ndarray
    weights_average: np.ndarray
    """(n_selected_columns, units); without rows until their number is known."""
    layers: Layers
    """All other layers; a first axis of parameters and statistics counts the networks."""
    gamma: np.ndarray
    gamma_first: np.ndarray
    gamma_second: np.ndarray
    gamma_gradient: np.ndarray
    gate: np.ndarray
    """gamma of the group of each column: without groups gamma itself."""
    gate_gradient: np.ndarray
    """Gradient of the loss with respect to the gate of each column: without groups that of gamma."""
    starts: np.ndarray
    """(n_features + 1,) int64: the first column of each group, and the end; empty without groups. Columns behind that are
    always read."""
    rank: np.ndarray
    order: np.ndarray
    """Scratch for sorting."""
    feature: np.ndarray
    """Original number of each feature of the working set; behind them those of the dropped ones, by rank."""
    rows: np.ndarray
    """(n_networks, n_rows): the rows to train on, in the order of this epoch, and behind them those held out."""
    n_held_out: np.ndarray
    """(n_networks,): how many are held out."""
    positions: np.ndarray
    """(n_networks, 2): rows used in this epoch of those to train on, and of those held out."""
    random: np.ndarray
    """State of the generator."""
    counters: np.ndarray
    """By :class:`~tamiz.core.rule.Slot`."""
    loop_counters: np.ndarray
    """By :class:`~tamiz.engines.loop.LoopSlot`."""
    history: History
    batch: Batch


def most_rows(n_rows: int, batch_size: int) -> int:
    """Return how many rows a batch of an epoch over any part of the rows can have.

    An epoch is cut into equal parts, to one row, none smaller than ``batch_size``: batch normalisation cannot work on a last
    batch of one row.

    Examples
    --------
    >>> most_rows(5, 16), most_rows(1000, 64)
    (5, 128)
    """
    return min(n_rows, 2 * batch_size)


def new_dense_memory(
    rows: list[tuple[np.ndarray, np.ndarray]],
    hidden: Sequence[int],
    n_outputs: int,
    n_columns: int,
    m: int,
    n_rows: int,
    seed: Sequence[int],
    starts: np.ndarray | None = None,
) -> DenseMemory:
    """Return the memory of a run before its first step, with drawn weights.

    Parameters
    ----------
    rows : list of tuple of two ndarrays of int
        The rows that each network trains on, and those that are held out.
    hidden : sequence of int
        Units of the hidden layers.
    n_outputs, n_columns, m : int
        Outputs of the network, columns of the table, and M, which is 0 with a budget.
    n_rows : int
        Rows of the largest batch.
    seed : sequence of int
        Decides the weights and the order of the rows.
    starts : ndarray of int, shape (n_groups + 1,), or None, default=None
        First column of each group, and the end; None: every column is a feature of its own. Columns behind the end are
        always read.

    Examples
    --------
    >>> new_dense_memory([(np.arange(10), np.arange(0))], (50, 25, 10), 1, 5, 2, 4, [0, 0]).weights.shape
    (1, 5, 64)
    """
    n_features = n_columns if starts is None else starts.size - 1
    units, bound = padded(hidden[0]), n_columns**-0.5
    weights, first, second = (np.zeros((len(rows), n_columns, units), np.float32) for _ in range(3))
    networks = []
    for number in range(len(rows)):
        generator = np.random.default_rng([*seed[:-1], seed[-1] + number])
        weights[number, :, : hidden[0]] = generator.uniform(-bound, bound, (n_columns, hidden[0]))
        networks.append(new_layers(hidden, n_outputs, n_rows, generator))
    layers = networks[0]._replace(
        parameters=np.stack([network.parameters for network in networks]),
        statistics=np.stack([network.statistics for network in networks]),
    )
    counters, loop_counters, rank = new_counters(n_features, m, n_columns, 0)
    n_averaged = n_columns if m == n_features else m if starts is None else 0
    gamma, gamma_gradient = np.ones(n_features, dtype=np.float32), np.zeros(n_features, dtype=np.float32)
    return DenseMemory(
        weights=weights,
        gradient=np.zeros((n_columns, units), np.float32),
        weights_first=first,
        weights_second=second,
        weights_average=np.zeros((n_averaged, units), dtype=np.float32),
        layers=layers,
        gamma=gamma,
        gamma_first=np.zeros(n_features, dtype=np.float32),
        gamma_second=np.zeros(n_features, dtype=np.float32),
        gamma_gradient=gamma_gradient,
        gate=gamma if starts is None else np.ones(n_columns, dtype=np.float32),
        gate_gradient=gamma_gradient if starts is None else np.zeros(n_columns, dtype=np.float32),
        starts=np.zeros(0, dtype=np.int64) if starts is None else starts.astype(np.int64),
        rank=rank,
        order=np.zeros(n_columns, dtype=np.int32),
        feature=np.arange(n_features, dtype=np.int32),
        rows=np.stack([np.concatenate(both) for both in rows]).astype(np.int64),
        n_held_out=np.array([held_out.size for _, held_out in rows]),
        positions=np.array([[both[0].size, both[1].size] for both in rows]),  # the first batch begins an epoch
        random=generator.integers(2**64, size=1, dtype=np.uint64),
        counters=counters,
        loop_counters=loop_counters,
        history=new_history(n_features),
        batch=new_batch(n_rows, n_outputs),
    )


@register_jitable(**INLINED)
def _next_even_batch(rows, random, position, batch_size, targets, weights, batch):
    """Copy the next batch; return where its rows begin and end."""
    n = rows.shape[0]
    if position >= n:
        shuffle(rows, random, 1)
        position = 0
    n_batches = max(1, n // batch_size)
    size, n_larger = n // n_batches, n % n_batches
    end = position + (size + 1 if position < n_larger * (size + 1) else size)
    for i in range(position, end):
        copy_row(rows[i], i - position, targets, weights, batch)
    return position, end


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _gate_gradient(weights, gradient, gate, out, add):
    """Write the gradient with respect to the gates, or add it."""
    for j in range(gate.shape[0]):
        w, g = weights[j], gradient[j]
        total = np.float32(0.0)
        for u in range(w.shape[0]):
            total += w[u] * g[u]
        # A living feature at zero occurs in the closing only, where the gradient of the loss does not count.
        total = total / gate[j] if gate[j] > 0 else np.float32(0.0)
        out[j] = out[j] + total if add else total


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _update_first(weights, gradient, first, second, constants, decay):
    """Take a step of Adam on the weights of the first layer."""
    for j in range(weights.shape[0]):
        w, g, a, b = weights[j], gradient[j], first[j], second[j]
        for u in range(w.shape[0]):
            a[u], b[u], step = adam(a[u], b[u], g[u] + decay * w[u], True, constants)
            w[u] = w[u] - step


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
def _average(values, averages, share):
    for j in range(values.shape[0]):
        averages[j] += share * (values[j] - averages[j])


@register_jitable(**INLINED)
def _take_average(weights, weights_average, layers, share):
    """Add the present weights and running statistics to their averages with the weight ``share``."""
    for j in range(weights.shape[0]):
        _average(weights[j], weights_average[j], share)
    _average(layers.parameters[Row.VALUE], layers.parameters[Row.AVERAGE], share)
    _average(layers.statistics[0], layers.statistics[1], share)


@njit(**IN_PLACE)
def run_dense(
    forward_product, gradient_product, loss, matrix, panels, targets, sample_weights,
    memory, rule, training, refinement_rates, alphas, mask_targets,
):  # fmt: skip
    """Train for as many steps as ``alphas`` and ``mask_targets`` have entries; return a ``Status``."""
    values, data, indices, indptr, offset = matrix
    counters, loop_counters, units = memory.counters, memory.loop_counters, memory.layers.units[0]
    k, n_features, m = loop_counters[LoopSlot.WIDTH], loop_counters[LoopSlot.FEATURES], rule.n_features_to_select
    n_networks, n_outputs, held_out = memory.rows.shape[0], targets.shape[1], memory.rows.shape[0] > 1
    gamma, rank, feature = memory.gamma[:n_features], memory.rank[:n_features], memory.feature[:n_features]
    gamma_first, gamma_second = memory.gamma_first[:n_features], memory.gamma_second[:n_features]
    gamma_gradient, order = memory.gamma_gradient[:n_features], memory.order[:n_features]
    gate, gate_gradient, starts = memory.gate[:k], memory.gate_gradient[:k], memory.starts
    grouped, gradient = starts.shape[0] > 0, memory.gradient[:k]
    for i in range(alphas.shape[0]):
        counters[Slot.STEP] += 1
        step = counters[Slot.STEP]
        resting = counters[Slot.CLOSED] == 1 and step > training.warmup_steps
        refining = resting and step > training.refinement_from
        moving = step > training.warmup_steps and not resting
        selecting = moving and counters[Slot.OPEN] > 0
        alpha = alphas[i] if counters[Slot.OPEN] > 0 else 1.0
        constants, decay = weight_constants(loop_counters, refining, training, refinement_rates)
        for number in range(n_networks):
            layers, weights = network_of(memory.layers, number), memory.weights[number][:k]
            n_trained = memory.rows.shape[1] - memory.n_held_out[number]
            # The rows held out give gamma its gradient before the others move the weights.
            for which in range(1 if held_out and selecting else 0, -1, -1):
                own = memory.rows[number][n_trained:] if which == 1 else memory.rows[number][:n_trained]
                begin, end = _next_even_batch(
                    own, memory.random, memory.positions[number, which], training.batch_size, targets, sample_weights,
                    memory.batch,
                )  # fmt: skip
                memory.positions[number, which] = end
                rows, n = own[begin:end], end - begin
                first_units = layers.normalised[: n * units].reshape((n, units))
                forward_product(values, data, indices, indptr, offset, rows, gate, weights, panels, first_units)
                forward(layers, n)
                place = n * (layers.moments.shape[0] // 2)  # behind all hidden units
                scores = layers.normalised[place : place + n * n_outputs].reshape((n, n_outputs))
                score_gradient = layers.delta[place : place + n * n_outputs].reshape((n, n_outputs))
                loss_value = loss(scores, memory.batch.targets[:n], memory.batch.weights[:n], score_gradient)
                if not np.isfinite(loss_value):
                    return Status.DIVERGED.value
                backward(layers, n)
                first_delta = layers.delta[: n * units].reshape((n, units))
                gradient_product(values, data, indices, indptr, offset, rows, gate, first_delta, panels, gradient)
                if moving and (which == 1 or not held_out):
                    _gate_gradient(weights, gradient, gate, gate_gradient, number > 0)
                if which == 0:
                    memory.history.loss_sum[0] += loss_value / n_networks
                    update(layers, constants, decay)
                    _update_first(
                        weights, gradient, memory.weights_first[number][:k], memory.weights_second[number][:k],
                        constants, decay,
                    )  # fmt: skip
        if moving:
            if grouped:
                sum_groups(gate_gradient, starts, gamma_gradient, held_out, False)
            forced = step >= training.step_limit
            n_eliminated = advance_in_place(
                gamma, gamma_first, gamma_second, rank, gamma_gradient, order, counters, alpha, mask_targets[i], forced,
                rule,
            )  # fmt: skip
            if n_eliminated == NOT_FINITE:
                return Status.DIVERGED.value
            if grouped:
                spread_to_columns(gamma, starts, gate)
        nth = loop_counters[LoopSlot.REFINED] - training.average_from
        if refining and nth >= 1:
            _take_average(
                memory.weights[0][:k], memory.weights_average, network_of(memory.layers, 0), np.float32(1.0 / nth)
            )  # fmt: skip
        status = end_step(
            memory.history, counters, loop_counters, step, moving, selecting, resting, refining, alpha, gamma, feature, m,
            training,
        )  # fmt: skip
        if status != Status.RUNNING.value:
            return status
    return Status.RUNNING.value


def drop_eliminated(memory: DenseMemory, m: int) -> int:
    """Move the living columns to the front of every array; the numbers of the eliminated go behind them, by rank.

    Returns the new width; the front of ``order`` then holds the old position of each column that stays.
    """
    k, n = int(memory.loop_counters[LoopSlot.WIDTH]), int(memory.loop_counters[LoopSlot.FEATURES])
    alive = memory.rank[:n] <= m
    kept = np.flatnonzero(alive)
    # The eliminated of a working set of n features hold the ranks from n down to one more than are left.
    eliminated, position = memory.feature[:n][~alive], memory.rank[:n][~alive] - 1
    memory.feature[: kept.size] = memory.feature[kept]
    memory.feature[position] = eliminated
    for vector in (memory.rank, memory.gamma, memory.gamma_first, memory.gamma_second):
        vector[: kept.size] = vector[kept]
    columns = kept
    if memory.starts.size:
        sizes = np.diff(memory.starts[: n + 1])
        always = np.arange(memory.starts[n], k)
        columns = np.concatenate([np.flatnonzero(np.repeat(alive, sizes)), always])
        memory.gate[: columns.size] = memory.gate[columns]
        memory.starts[1 : kept.size + 1] = np.cumsum(sizes[alive])
    for table in (memory.weights, memory.weights_first, memory.weights_second):
        table[:, : columns.size] = table[:, columns]
    memory.order[: columns.size] = columns
    memory.loop_counters[LoopSlot.WIDTH] = columns.size
    memory.loop_counters[LoopSlot.FEATURES] = kept.size
    return columns.size
