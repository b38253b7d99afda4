"""Train a dense network and its mask, compiled: forward, backward, update, and the step of gamma.

The mask is folded into the first layer, ``(x * gamma) @ W``, so no gradient with respect to the input is formed: with the
gradient G of W, that of gamma is ``sum(W * G) / gamma``. The loop runs in pieces, as that of the linear model, and columns
may share an entry of gamma in the same way.

Several networks share gamma if each trains on the rows outside of its own part: the gradient of gamma is then the sum of
their gradients on the rows of their own parts, with batches, and batch normalisation, of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numba.extending import register_jitable

from tamiz.core.compiled import FAST_INLINED, IN_PLACE, INLINED, NOT_FINITE, adam, advance_in_place
from tamiz.core.rule import Phase, Rule, Slot
from tamiz.engines.design import Design, open_gates, sum_groups
from tamiz.engines.layers import Row, backward, forward, network_of, new_layers, padded, update
from tamiz.engines.loop import Status, begin_step, copy_row, end_step, shuffle, working_set
from tamiz.engines.memory import LoopSlot, Memory, new_memory


def most_rows(n_rows: int, batch_size: int) -> int:
    """Bound the rows of a batch of an epoch over any part of the rows.

    An epoch is cut into equal parts, to one row, none smaller than ``batch_size``: batch normalisation cannot work on a last
    batch of one row.

    Examples
    --------
    >>> most_rows(5, 16), most_rows(1000, 64)
    (5, 128)
    """
    return min(n_rows, 2 * batch_size)


def new_dense_memory(
    design: Design,
    rule: Rule,
    rows: list[tuple[np.ndarray, np.ndarray]],
    hidden: Sequence[int],
    n_outputs: int,
    n_rows: int,
    seed: Sequence[int],
) -> Memory:
    """Allocate the memory of a run before its first step, with drawn weights.

    Parameters
    ----------
    design : Design
        The table.
    rule : Rule
        With the number of features, and M.
    rows : list of tuple of two ndarrays of int
        The rows that each network trains on, and those that are held out.
    hidden : sequence of int
        Units of the hidden layers.
    n_outputs : int
        Outputs of the network.
    n_rows : int
        Rows of the largest batch.
    seed : sequence of int
        Decides the weights and the order of the rows.

    Examples
    --------
    >>> rows = [(np.arange(10), np.arange(0))]
    >>> design = Design(np.zeros((10, 5)), None, owned=False)
    >>> new_dense_memory(design, Rule(5, 2), rows, (50, 25, 10), 1, 4, [0, 0]).weights.shape
    (1, 5, 64)
    """
    n_columns, units = design.n_coefficients, padded(hidden[0])
    weights, first, second = (np.zeros((len(rows), n_columns, units), np.float32) for _ in range(3))
    bound, networks = n_columns**-0.5, []
    for number in range(len(rows)):
        generator = np.random.default_rng([*seed[:-1], seed[-1] + number])
        weights[number, :, : hidden[0]] = generator.uniform(-bound, bound, (n_columns, hidden[0]))
        networks.append(new_layers(hidden, n_outputs, n_rows, generator, n_rows * n_columns))
    layers = networks[0]._replace(
        parameters=np.stack([network.parameters for network in networks]),
        statistics=np.stack([network.statistics for network in networks]),
    )
    if rule.n_features_to_select == rule.n_features:
        layers = layers._replace(first_average=np.zeros((n_columns, units), dtype=np.float32))
    sizes = np.array([[trained.size, held_out.size] for trained, held_out in rows])
    return new_memory(design, rule, np.zeros(n_rows), n_outputs, n_rows, 0)._replace(
        weights=weights,
        weights_first=first,
        weights_second=second,
        gradient=np.zeros((n_columns, units), np.float32),
        rest=layers,
        rows=np.stack([np.concatenate(both) for both in rows]).astype(np.int64),
        positions=np.column_stack([sizes, sizes[:, 0]]),  # the first batch begins an epoch
        random=generator.integers(2**64, size=1, dtype=np.uint64),
    )


@register_jitable(**INLINED)
def _next_even_batch(memory, data, number, which, batch_size):
    """Copy the next batch of a network, of the rows to train on (0) or held out (1); return its size."""
    n_trained, position = memory.positions[number, 2], memory.positions[number, which]
    rows = memory.rows[number][n_trained:] if which == 1 else memory.rows[number][:n_trained]
    n = rows.shape[0]
    if position >= n:
        shuffle(rows, memory.random, 1)
        position = 0
    n_batches = max(1, n // batch_size)
    size, n_larger = n // n_batches, n % n_batches
    end = position + (size + 1 if position < n_larger * (size + 1) else size)
    for i in range(position, end):
        copy_row(rows[i], i - position, data, memory.batch)
    memory.positions[number, which] = end
    return end - position


@register_jitable(**FAST_INLINED)
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


@register_jitable(**FAST_INLINED)
def _update_first(weights, gradient, first, second, constants, decay):
    """Take a step of Adam on the weights of the first layer."""
    for j in range(weights.shape[0]):
        w, g, a, b = weights[j], gradient[j], first[j], second[j]
        for u in range(w.shape[0]):
            a[u], b[u], step = adam(a[u], b[u], g[u] + decay * w[u], True, constants)
            w[u] = w[u] - step


@register_jitable(**FAST_INLINED)
def _average(values, averages, share):
    for j in range(values.shape[0]):
        averages[j] += share * (values[j] - averages[j])


@register_jitable(**INLINED)
def _take_average(weights, layers, share):
    """Add the present weights and running statistics to their averages with the weight ``share``."""
    for j in range(weights.shape[0]):
        _average(weights[j], layers.first_average[j], share)
    _average(layers.parameters[Row.VALUE], layers.parameters[Row.AVERAGE], share)
    _average(layers.statistics[0], layers.statistics[1], share)


@njit(**IN_PLACE)
def run_dense(data, memory, rule, training, loss, forward_product, gradient_product):
    """Train for as many steps as ``data`` says; return a ``Status``."""
    matrix, mask, k = data.matrix, working_set(memory), memory.loop_counters[LoopSlot.WIDTH]
    n_networks, n_outputs, units = memory.rows.shape[0], data.targets.shape[1], memory.rest.units[0]
    held_out, grouped = n_networks > 1, matrix.starts.shape[0] > 0
    gate, gate_gradient, gradient = memory.gate[:k], memory.folded[0][:k], memory.gradient[:k]
    for i in range(data.alphas.shape[0]):
        phase, refining, constants, decay = begin_step(memory, training)
        selecting = phase == Phase.SELECTION.value
        moving = selecting or phase == Phase.CLOSING.value
        alpha = data.alphas[i] if mask.counters[Slot.OPEN] > 0 else 1.0
        for number in range(n_networks):
            layers, weights = network_of(memory.rest, number), memory.weights[number][:k]
            # The rows held out give gamma its gradient before the others move the weights.
            for which in range(1 if held_out and selecting else 0, -1, -1):
                n = _next_even_batch(memory, data, number, which, training.batch_size)
                rows = memory.batch.rows[:n]
                forward_product(
                    matrix, rows, gate, weights, layers.panels, layers.normalised[: n * units].reshape((n, units))
                )
                forward(layers, n)
                place = n * (layers.moments.shape[0] // 2)  # behind all hidden units
                scores = layers.normalised[place : place + n * n_outputs].reshape((n, n_outputs))
                score_gradient = layers.delta[place : place + n * n_outputs].reshape((n, n_outputs))
                loss_value = loss(scores, memory.batch.targets[:n], memory.batch.weights[:n], score_gradient)
                if not np.isfinite(loss_value):
                    return Status.DIVERGED.value
                backward(layers, n)
                gradient_product(
                    matrix, rows, gate, layers.delta[: n * units].reshape((n, units)), layers.panels, gradient
                )
                if moving and (which == 1 or not held_out):
                    _gate_gradient(weights, gradient, gate, gate_gradient, number > 0)
                if which == 0:
                    memory.history.loss_sum[0] += loss_value / n_networks
                    update(layers, constants, decay)
                    first, second = memory.weights_first[number][:k], memory.weights_second[number][:k]
                    _update_first(weights, gradient, first, second, constants, decay)
        if moving:
            if grouped:
                sum_groups(gate_gradient, matrix.starts, mask.gradient, held_out, False)
            forced = mask.counters[Slot.STEP] >= training.step_limit
            if advance_in_place(mask, alpha, data.mask_targets[i], forced, rule) == NOT_FINITE:
                return Status.DIVERGED.value
            if grouped:
                open_gates(matrix, mask.gamma, gate)
        nth = memory.loop_counters[LoopSlot.REFINED] - training.average_from
        if refining and nth >= 1:
            _take_average(memory.weights[0][:k], network_of(memory.rest, 0), np.float32(1.0 / nth))
        status = end_step(memory, mask, phase, refining, alpha, training, rule)
        if status != Status.RUNNING.value:
            return status
    return Status.RUNNING.value
