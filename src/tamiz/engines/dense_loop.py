"""The compiled loop of dense networks: layers forward and backward, their update, and the step of gamma.

The mask is folded into the first layer, ``(x * gamma) @ W``, so no gradient with respect to the input is formed: with the
gradient G of W, that of gamma is ``sum(W * G) / gamma``. The loop runs in pieces, as that of the linear model, and columns
may share an entry of gamma in the same way. Behind the first product come batch normalisation, ReLU and linear layers. Layers of
any number and width share one compiled code: their numbers lie one behind the other in flat arrays, and widths are padded
to a multiple of ``PADDING`` with units whose weights are zero. The gradients of these are zero too, so they stay.

Several networks share gamma if each trains on the rows outside of its own part: the gradient of gamma is then the sum of
their gradients on the rows of their own parts, with batches, and batch normalisation, of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from tamiz._utils.compiling import announce_compilation, compile_argument, njit
from tamiz.core.compiled import FAST, FAST_INLINED, IN_PLACE, INLINED, NOT_FINITE, adam, advance_in_place
from tamiz.core.rule import Phase, Rule, Slot
from tamiz.engines.design import MATRIX, TABLE, Design, open_gates, sum_groups
from tamiz.engines.loop import (
    LoopSlot,
    Memory,
    Status,
    begin_step,
    copy_row,
    end_step,
    new_memory,
    shuffle,
    working_set,
)

#: Widths are padded to a multiple of this, the float32 numbers in the largest vector register.
PADDING = 64 // np.dtype(np.float32).itemsize
#: Long rows are multiplied in panels of so many columns.
PANEL = 64

_ROWS, _WIDE = 8, 32


def _make_tile(rows: int, lanes: int) -> Any:
    """Make a function that writes ``rows`` times ``lanes`` entries of a product, the sum of ``n`` outer products."""

    @intrinsic
    def tile(typing_context, a, b, out, places, add):
        signature = types.void(a, b, out, types.UniTuple(types.intp, 7), types.boolean)

        def generate(context, builder, signature, arguments):
            a, b, out = (
                context.make_array(signature.args[place])(context, builder, arguments[place]).data for place in range(3)
            )
            start, row_stride, step, column, out_start, width, n = cgutils.unpack_tuple(builder, arguments[3])
            add = arguments[4]
            number, lane = ir.FloatType(), ir.IntType(32)
            vector = ir.VectorType(number, lanes) if lanes > 1 else number
            nothing, zero = ir.Constant(vector, ir.Undefined), ir.Constant(vector, None if lanes > 1 else 0.0)

            def along(place, stride, count):
                return builder.add(place, builder.mul(stride, ir.Constant(stride.type, count)))

            def vector_at(data, place):
                return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())

            targets = [vector_at(out, along(out_start, width, row)) for row in range(rows)]
            sums = [
                cgutils.alloca_once_value(builder, builder.select(add, builder.load(target, align=4), zero))
                for target in targets
            ]
            with cgutils.for_range(builder, n) as loop:
                values = builder.load(vector_at(b, builder.add(column, builder.mul(loop.index, width))), align=4)
                first = builder.add(start, builder.mul(loop.index, step))
                for row, total in enumerate(sums):
                    factor = builder.load(builder.gep(a, [along(first, row_stride, row)]))
                    if lanes > 1:
                        alone = builder.insert_element(nothing, factor, ir.Constant(lane, 0))
                        everywhere = ir.Constant(ir.VectorType(lane, lanes), None)
                        factor = builder.shuffle_vector(alone, nothing, everywhere)
                    # Fused into one operation where the processor has it.
                    product = builder.fmul(factor, values, flags=("contract",))
                    builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
            for target, total in zip(targets, sums):
                builder.store(builder.load(total), target, align=4)
            return context.get_dummy_value()

        return signature, generate

    return tile


_tile, _narrow_tile, _column_tile = (_make_tile(_ROWS, lanes) for lanes in (_WIDE, PADDING, 1))
_row, _narrow_row, _entry = (_make_tile(1, lanes) for lanes in (_WIDE, PADDING, 1))


@register_jitable(**INLINED)
def _multiply(a, row_stride, step, b, out, n, add):
    """Compute ``out[r] = sum_k a[r * row_stride + k * step] * b[k]`` over ``n`` rows of ``b``, or add it to ``out``."""
    n_rows, width = out.shape
    i = 0
    while i < n_rows:
        start, u = i * row_stride, 0
        if i + _ROWS <= n_rows:
            while u + _WIDE <= width:
                _tile(a, b, out, (start, row_stride, step, u, i * width + u, width, n), add)
                u += _WIDE
            while u + PADDING <= width:
                _narrow_tile(a, b, out, (start, row_stride, step, u, i * width + u, width, n), add)
                u += PADDING
            while u < width:
                _column_tile(a, b, out, (start, row_stride, step, u, i * width + u, width, n), add)
                u += 1
            i += _ROWS
        else:
            while u + _WIDE <= width:
                _row(a, b, out, (start, row_stride, step, u, i * width + u, width, n), add)
                u += _WIDE
            while u + PADDING <= width:
                _narrow_row(a, b, out, (start, row_stride, step, u, i * width + u, width, n), add)
                u += PADDING
            while u < width:
                _entry(a, b, out, (start, row_stride, step, u, i * width + u, width, n), add)
                u += 1
            i += 1


@njit(**IN_PLACE)
def multiply(a, b, out, add):
    """Compute ``out = a @ b``, or ``out += a @ b`` if ``add``.

    Examples
    --------
    >>> out = np.zeros((1, 2), np.float32)
    >>> multiply(np.float32([[1, 2]]), np.float32([[1, 0], [0, 1]]), out, False)
    >>> out.tolist()
    [[1.0, 2.0]]
    """
    _multiply(a, a.shape[1], 1, b, out, a.shape[1], add)


@njit(**IN_PLACE)
def multiply_transposed(a, b, out):
    """Compute ``out = a.T @ b``.

    Examples
    --------
    >>> out = np.zeros((2, 1), np.float32)
    >>> multiply_transposed(np.float32([[1, 2]]), np.float32([[3]]), out)
    >>> out.tolist()
    [[3.0], [6.0]]
    """
    _multiply(a, 1, a.shape[1], b, out, a.shape[0], False)


@njit(**IN_PLACE)
def transpose(a, out):
    """Copy ``a.T`` into ``out``.

    Examples
    --------
    >>> out = np.zeros((2, 1), np.float32)
    >>> transpose(np.float32([[1, 2]]), out)
    >>> out.tolist()
    [[1.0], [2.0]]
    """
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]


def _first_layer(matrix, rows, gamma, weights, batch, out):
    """Compute ``out = (X[rows] * gamma) @ weights``; the first factor stays in ``batch``, panel by panel, for the gradient."""
    n, width = rows.shape[0], gamma.shape[0]
    for begin in range(0, width, PANEL):
        end = min(begin + PANEL, width)
        panel, gate = batch[n * begin : n * end].reshape((n, end - begin)), gamma[begin:end]
        for i in range(n):
            source, target = matrix.values[rows[i]][begin:end], panel[i]
            for j in range(gate.shape[0]):
                target[j] = gate[j] * source[j]
        multiply(panel, weights[begin:end], out, begin > 0)


def _first_gradient(matrix, rows, gamma, delta, batch, gradient):
    """Compute ``gradient = (X[rows] * gamma).T @ delta`` from what the forward product left in ``batch``."""
    n, width = rows.shape[0], gamma.shape[0]
    for begin in range(0, width, PANEL):
        end = min(begin + PANEL, width)
        multiply_transposed(batch[n * begin : n * end].reshape((n, end - begin)), delta, gradient[begin:end])


@cache
def first_layer_products() -> tuple[Any, Any]:
    """Compile the products of a table with the first layer, forward and for the gradient of the weights."""
    vector, rows = types.Array(types.float32, 1, "C"), types.Array(types.int64, 1, "C")
    signature = types.void(MATRIX, rows, vector, TABLE, vector, TABLE)
    forward, gradient = (compile_argument(one, signature, fastmath=FAST) for one in (_first_layer, _first_gradient))
    return forward, gradient


#: Weight of a batch in the running statistics, and the number added to a variance, as in PyTorch's ``BatchNorm1d``.
MOMENTUM, EPSILON = 0.1, 1e-5


class ParameterRows(NamedTuple):
    """Row of the parameters of a network in ``Layers.parameters``."""

    VALUE: int = 0
    GRADIENT: int = 1
    #: First moment of Adam.
    FIRST: int = 2
    SECOND: int = 3
    #: Mean over the last part of the refinement.
    AVERAGE: int = 4


Row = ParameterRows()


class Layers(NamedTuple):
    """Numbers of all layers but the weights of the first one.

    ``parameters`` and ``statistics`` hold, for each network and hidden layer, scale and shift of its normalisation and the
    weights (units, next units) that read it, respectively mean and variance; the constants of the outputs end ``parameters``.
    """

    #: Padded units of each hidden layer, then the number of outputs.
    units: np.ndarray
    #: (n_networks, rows, ...), the rows by :class:`Row`.
    parameters: np.ndarray
    #: (n_networks, 2, ...): running statistics, and their means over the last part of the refinement.
    statistics: np.ndarray
    #: Mean and inverse deviation of each unit in the present batch.
    moments: np.ndarray
    #: Units after normalisation, (rows, units) for each hidden layer, then the scores, (rows, outputs).
    normalised: np.ndarray
    #: Units after ReLU.
    active: np.ndarray
    #: Gradient of the loss with respect to the units, then with respect to the scores.
    delta: np.ndarray
    #: Scratch for one layer of weights.
    transposed: np.ndarray
    #: Scratch for the product with the first layer: the gated rows of a batch.
    panels: np.ndarray
    #: (n_columns, units): mean of the first layer over the last part of the refinement.
    first_average: np.ndarray


def views(layers: Layers, number: int, averaged: bool = False) -> list[tuple[np.ndarray, ...]]:
    """Views of scale, shift, weights, mean and variance of each hidden layer of a network, or of their averages."""
    found: list[tuple[np.ndarray, ...]] = []
    begin = position = 0
    parameters = layers.parameters[number, Row.AVERAGE if averaged else Row.VALUE]
    statistics = layers.statistics[number, int(averaged)]
    for width, after in itertools.pairwise(layers.units.tolist()):
        scale, shift = parameters[begin : begin + width], parameters[begin + width : begin + 2 * width]
        weights = parameters[begin + 2 * width : begin + (2 + after) * width].reshape(width, after)
        mean, variance = statistics[position : position + width], statistics[position + width : position + 2 * width]
        found.append((scale, shift, weights, mean, variance))
        begin, position = begin + (2 + after) * width, position + 2 * width
    return found


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

    Weights are uniform within one over the root of the number of inputs, as in PyTorch's ``Linear``.

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
    >>> memory = new_dense_memory(design, Rule(5, 2), rows, (50, 25, 10), 1, 4, [0, 0])
    >>> memory.weights.shape, memory.rest.units.tolist()
    ((1, 5, 64), [64, 32, 16, 1])
    >>> [part.shape for part in views(memory.rest, 0)[0]]
    [(64,), (64,), (64, 32), (64,), (64,)]
    """
    n_columns, sizes = design.n_coefficients, (*hidden, n_outputs)
    units = [*(-(-size // PADDING) * PADDING for size in hidden), n_outputs]
    n_hidden, n_weights = sum(units[:-1]), [before * after for before, after in itertools.pairwise(units)]

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.float32)

    layers = Layers(
        units=np.array(units, dtype=np.int64),
        parameters=zeros(len(rows), len(Row), 2 * n_hidden + sum(n_weights) + n_outputs),
        statistics=zeros(len(rows), 2, 2 * n_hidden),
        moments=zeros(2 * n_hidden),
        normalised=zeros(n_rows * (n_hidden + n_outputs)),
        active=zeros(n_rows * n_hidden),
        delta=zeros(n_rows * (n_hidden + n_outputs)),
        transposed=zeros(max(n_weights)),
        panels=zeros(n_rows * n_columns),
        first_average=zeros(n_columns, units[0]),
    )
    weights = zeros(len(rows), n_columns, units[0])
    for number in range(len(rows)):
        generator = np.random.default_rng([*seed[:-1], seed[-1] + number])
        bound = n_columns**-0.5
        weights[number, :, : hidden[0]] = generator.uniform(-bound, bound, (n_columns, hidden[0]))
        for (size, n_next), (scale, _, behind, _, variance) in zip(itertools.pairwise(sizes), views(layers, number)):
            scale[:size] = 1.0
            variance[:] = 1.0
            bound = size**-0.5
            behind[:size, :n_next] = generator.uniform(-bound, bound, (size, n_next))
        layers.parameters[number, Row.VALUE, -n_outputs:] = generator.uniform(-bound, bound, n_outputs)
    n_trained = np.array([[trained.size, held_out.size, trained.size] for trained, held_out in rows])
    return new_memory(design, rule, np.zeros((n_rows, n_outputs)), n_rows, 0)._replace(
        weights=weights,
        weights_first=np.zeros_like(weights),
        weights_second=np.zeros_like(weights),
        gradient=zeros(n_columns, units[0]),
        rest=layers,
        rows=np.stack([np.concatenate(both) for both in rows]).astype(np.int64),
        positions=n_trained,  # the first batch begins an epoch
        random=generator.integers(2**64, size=1, dtype=np.uint64),
    )


@register_jitable(**FAST_INLINED)
def _normalise(units, scale, shift, mean, deviation, running_mean, running_variance, active):
    """Normalise ``units`` over the rows in place, write ReLU of scale and shift into ``active``, update the statistics."""
    n, width = units.shape
    share, one, zero = np.float32(1.0 / n), np.float32(1.0), np.float32(0.0)
    momentum, rest = np.float32(MOMENTUM), np.float32(1.0 - MOMENTUM)
    unbiased = np.float32(MOMENTUM * n / (n - 1.0))
    for u in range(width):
        mean[u] = zero
        deviation[u] = zero
    for i in range(n):
        z = units[i]
        for u in range(width):
            mean[u] += share * z[u]
    for i in range(n):
        z = units[i]
        for u in range(width):
            gap = z[u] - mean[u]
            z[u] = gap
            deviation[u] += share * gap * gap
    for u in range(width):
        running_mean[u] = rest * running_mean[u] + momentum * mean[u]
        running_variance[u] = rest * running_variance[u] + unbiased * deviation[u]
        deviation[u] = one / np.sqrt(deviation[u] + np.float32(EPSILON))
    for i in range(n):
        z, a = units[i], active[i]
        for u in range(width):
            z[u] = z[u] * deviation[u]
            value = z[u] * scale[u] + shift[u]
            a[u] = value if value > zero or value != value else zero  # a NaN stays one


@register_jitable(**FAST_INLINED)
def _normalise_gradient(delta, units, active, scale, deviation, scale_gradient, shift_gradient):
    """Turn the gradient with respect to ``active`` into that with respect to the units before normalisation, in place."""
    n, width = delta.shape
    zero = np.float32(0.0)
    for u in range(width):
        scale_gradient[u] = zero
        shift_gradient[u] = zero
    for i in range(n):
        d, z, a = delta[i], units[i], active[i]
        for u in range(width):
            d[u] = d[u] if a[u] > zero else zero
            shift_gradient[u] += d[u]
            scale_gradient[u] += d[u] * z[u]
    share = np.float32(1.0 / n)
    for i in range(n):
        d, z = delta[i], units[i]
        for u in range(width):
            centred = d[u] - share * (shift_gradient[u] + z[u] * scale_gradient[u])
            d[u] = scale[u] * deviation[u] * centred


@register_jitable(**INLINED)
def forward(layers, number, n):
    """Compute the scores of ``n`` rows in training a network; the first product stands at the front of ``normalised``."""
    units, values = layers.units, layers.parameters[number, Row.VALUE]
    moments, running = layers.moments, layers.statistics[number, 0]
    begin = position = unit = 0
    for i in range(units.shape[0] - 1):
        width, after = units[i], units[i + 1]
        end = position + n * width
        active = layers.active[position:end].reshape((n, width))
        _normalise(
            layers.normalised[position:end].reshape((n, width)), values[begin : begin + width],
            values[begin + width : begin + 2 * width], moments[unit : unit + width],
            moments[unit + width : unit + 2 * width], running[unit : unit + width],
            running[unit + width : unit + 2 * width], active,
        )  # fmt: skip
        weights = values[begin + 2 * width : begin + (2 + after) * width].reshape((width, after))
        multiply(active, weights, layers.normalised[end : end + n * after].reshape((n, after)), False)
        begin += (2 + after) * width
        unit += 2 * width
        position = end
    n_outputs = units[-1]
    for i in range(n):
        for c in range(n_outputs):
            layers.normalised[position + i * n_outputs + c] += values[begin + c]


@register_jitable(**INLINED)
def backward(layers, number, n):
    """Compute the gradients from that of the scores; that of the first product is left at the front of ``delta``."""
    units, parameters = layers.units, layers.parameters[number]
    values, gradient = parameters[Row.VALUE], parameters[Row.GRADIENT]
    n_outputs = units[-1]
    begin = values.shape[0] - n_outputs
    unit = layers.moments.shape[0]
    position = n * (unit // 2)
    for c in range(n_outputs):
        total = np.float32(0.0)
        for i in range(n):
            total += layers.delta[position + i * n_outputs + c]
        gradient[begin + c] = total
    for i in range(units.shape[0] - 2, -1, -1):
        width, after = units[i], units[i + 1]
        end, last = position, begin
        begin -= (2 + after) * width
        unit -= 2 * width
        position -= n * width
        active = layers.active[position:end].reshape((n, width))
        delta = layers.delta[position:end].reshape((n, width))
        behind = layers.delta[end : end + n * after].reshape((n, after))
        multiply_transposed(active, behind, gradient[begin + 2 * width : last].reshape((width, after)))
        turned = layers.transposed[: width * after].reshape((after, width))
        transpose(values[begin + 2 * width : last].reshape((width, after)), turned)
        multiply(behind, turned, delta, False)
        _normalise_gradient(
            delta, layers.normalised[position:end].reshape((n, width)), active, values[begin : begin + width],
            layers.moments[unit + width : unit + 2 * width], gradient[begin : begin + width],
            gradient[begin + width : begin + 2 * width],
        )  # fmt: skip


@register_jitable(**FAST_INLINED)
def _update_range(parameters, begin, end, constants, decay):
    value, gradient = parameters[Row.VALUE][begin:end], parameters[Row.GRADIENT][begin:end]
    first, second = parameters[Row.FIRST][begin:end], parameters[Row.SECOND][begin:end]
    for j in range(end - begin):
        first[j], second[j], step = adam(first[j], second[j], gradient[j] + decay * value[j], True, constants)
        value[j] = value[j] - step


@register_jitable(**INLINED)
def update(layers, number, constants, decay):
    """Take a step of Adam; the weight decay is for weights only, not for normalisations and constants."""
    units, parameters = layers.units, layers.parameters[number]
    begin = 0
    for i in range(units.shape[0] - 1):
        width, after = units[i], units[i + 1]
        _update_range(parameters, begin, begin + 2 * width, constants, np.float32(0.0))
        _update_range(parameters, begin + 2 * width, begin + (2 + after) * width, constants, decay)
        begin += (2 + after) * width
    _update_range(parameters, begin, parameters.shape[1], constants, np.float32(0.0))


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
    """Add the present weights and running statistics of the first network to their averages with the weight ``share``."""
    for j in range(weights.shape[0]):
        _average(weights[j], layers.first_average[j], share)
    _average(layers.parameters[0, Row.VALUE], layers.parameters[0, Row.AVERAGE], share)
    _average(layers.statistics[0, 0], layers.statistics[0, 1], share)


@njit(**IN_PLACE)
def run_dense(data, memory, rule, training, loss, forward_product, gradient_product):
    """Train for as many steps as ``data`` says; return a ``Status``."""
    matrix, layers, mask = data.matrix, memory.rest, working_set(memory)
    n_networks, n_outputs, units = memory.rows.shape[0], data.targets.shape[1], layers.units[0]
    k = memory.loop_counters[LoopSlot.WIDTH]
    held_out, grouped = n_networks > 1, matrix.starts.shape[0] > 0
    gate, gate_gradient, gradient = memory.gate[:k], memory.folded[0][:k], memory.gradient[:k]
    for i in range(data.alphas.shape[0]):
        phase, refining, constants, decay = begin_step(memory, training)
        selecting = phase == Phase.SELECTION.value
        moving = selecting or phase == Phase.CLOSING.value
        alpha = data.alphas[i] if mask.counters[Slot.OPEN] > 0 else 1.0
        for number in range(n_networks):
            weights = memory.weights[number][:k]
            # The rows held out give gamma its gradient before the others move the weights.
            for which in range(1 if held_out and selecting else 0, -1, -1):
                n = _next_even_batch(memory, data, number, which, training.batch_size)
                rows = memory.batch.rows[:n]
                forward_product(
                    matrix, rows, gate, weights, layers.panels, layers.normalised[: n * units].reshape((n, units))
                )
                forward(layers, number, n)
                place = n * (layers.moments.shape[0] // 2)  # behind all hidden units
                scores = layers.normalised[place : place + n * n_outputs].reshape((n, n_outputs))
                score_gradient = layers.delta[place : place + n * n_outputs].reshape((n, n_outputs))
                loss_value = loss(scores, memory.batch.targets[:n], memory.batch.weights[:n], score_gradient)
                if not np.isfinite(loss_value):
                    return Status.DIVERGED.value
                backward(layers, number, n)
                gradient_product(
                    matrix, rows, gate, layers.delta[: n * units].reshape((n, units)), layers.panels, gradient
                )
                if moving and (which == 1 or not held_out):
                    _gate_gradient(weights, gradient, gate, gate_gradient, number > 0)
                if which == 0:
                    memory.history.loss_sum[0] += loss_value / n_networks
                    update(layers, number, constants, decay)
                    first, second = memory.weights_first[number][:k], memory.weights_second[number][:k]
                    _update_first(weights, gradient, first, second, constants, decay)
        if moving:
            if grouped:
                sum_groups(gate_gradient, matrix, mask.gradient, held_out, False)
            forced = mask.counters[Slot.STEP] >= training.step_limit
            if advance_in_place(mask, alpha, data.mask_targets[i], forced, rule) == NOT_FINITE:
                return Status.DIVERGED.value
            if grouped:
                open_gates(matrix, mask.gamma, gate)
        nth = memory.loop_counters[LoopSlot.REFINED] - training.average_from
        if refining and nth >= 1:
            _take_average(memory.weights[0][:k], layers, np.float32(1.0 / nth))
        status = end_step(memory, mask, phase, refining, alpha, training, rule)
        if status != Status.RUNNING.value:
            return status
    return Status.RUNNING.value


announce_compilation(run_dense, 42)
