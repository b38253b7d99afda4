"""Hidden layers of a dense network behind the first product: batch normalisation, ReLU and linear layers, and their gradients.

Layers of any number and width share one compiled code: their numbers lie one behind the other in flat arrays, and widths are
padded to a multiple of ``PADDING`` with units whose weights are zero. The gradients of these are zero too, so they stay.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from tamiz.core.compiled import FAST, FAST_INLINED, IN_PLACE, INLINED, adam, compile_argument
from tamiz.engines.design import MATRIX, TABLE

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


class Row(IntEnum):
    """Row of ``Layers.parameters``."""

    VALUE = 0
    GRADIENT = 1
    FIRST = 2
    """First moment of Adam."""
    SECOND = 3
    AVERAGE = 4
    """Mean over the last part of the refinement."""


class Layers(NamedTuple):
    """Numbers of all layers but the weights of the first one.

    ``parameters`` and ``statistics`` hold, for each hidden layer, scale and shift of its normalisation and the weights
    (units, next units) that read it, respectively mean and variance; the constants of the outputs end ``parameters``.
    """

    units: np.ndarray
    """Padded units of each hidden layer, then the number of outputs."""
    parameters: np.ndarray
    """By :class:`Row`."""
    statistics: np.ndarray
    """(2, ...) running statistics, and their means over the last part of the refinement."""
    moments: np.ndarray
    """Mean and inverse deviation of each unit in the present batch."""
    normalised: np.ndarray
    """Units after normalisation, (rows, units) for each hidden layer, then the scores, (rows, outputs)."""
    active: np.ndarray
    """Units after ReLU."""
    delta: np.ndarray
    """Gradient of the loss with respect to the units, then with respect to the scores."""
    transposed: np.ndarray
    """Scratch for one layer of weights."""
    panels: np.ndarray
    """Scratch for the product with the first layer: the gated rows of a batch."""
    first_average: np.ndarray
    """(n_selected_columns, units): mean of the first layer; without rows until their number is known."""


@register_jitable(**INLINED)
def network_of(layers, number):
    """Cut out one of several networks, whose parameters and statistics lie one behind the other."""
    units, parameters, statistics, moments, normalised, active, delta, transposed, panels, first_average = layers
    return Layers(
        units,
        parameters[number],
        statistics[number],
        moments,
        normalised,
        active,
        delta,
        transposed,
        panels,
        first_average,
    )


def padded(units: int) -> int:
    """Round the number of units up to a multiple of ``PADDING``.

    Examples
    --------
    >>> padded(50), padded(8)
    (64, 16)
    """
    return -(-units // PADDING) * PADDING


def new_layers(
    hidden: Sequence[int], n_outputs: int, n_rows: int, random: np.random.Generator, n_panel: int = 0
) -> Layers:
    """Draw the weights: uniform within one over the root of the number of inputs, as in PyTorch's ``Linear``.

    Examples
    --------
    >>> new_layers((50, 25), 3, 64, np.random.default_rng(0)).units.tolist()
    [64, 32, 3]
    """
    units = [*(padded(size) for size in hidden), n_outputs]
    n_hidden = sum(units[:-1])
    n_weights = [before * after for before, after in itertools.pairwise(units)]
    layers = Layers(
        units=np.array(units, dtype=np.int64),
        parameters=np.zeros((len(Row), 2 * n_hidden + sum(n_weights) + n_outputs), dtype=np.float32),
        statistics=np.zeros((2, 2 * n_hidden), dtype=np.float32),
        moments=np.zeros(2 * n_hidden, dtype=np.float32),
        normalised=np.zeros(n_rows * (n_hidden + n_outputs), dtype=np.float32),
        active=np.zeros(n_rows * n_hidden, dtype=np.float32),
        delta=np.zeros(n_rows * (n_hidden + n_outputs), dtype=np.float32),
        transposed=np.zeros(max(n_weights), dtype=np.float32),
        panels=np.zeros(n_panel, dtype=np.float32),
        first_average=np.zeros((0, units[0]), dtype=np.float32),
    )
    sizes = (*hidden, n_outputs)
    for i, (scale, _, weights, _, variance) in enumerate(views(layers, Row.VALUE, 0)):
        scale[: sizes[i]] = 1.0
        variance[:] = 1.0
        bound = sizes[i] ** -0.5
        weights[: sizes[i], : sizes[i + 1]] = random.uniform(-bound, bound, (sizes[i], sizes[i + 1]))
    layers.parameters[Row.VALUE, -n_outputs:] = random.uniform(-bound, bound, n_outputs)
    return layers


def views(layers: Layers, row: int, which: int) -> list[tuple[np.ndarray, ...]]:
    """Views of scale, shift, weights, mean and variance of each hidden layer.

    Parameters
    ----------
    layers : Layers
    row : int
        Row of the parameters, by :class:`Row`.
    which : int
        Row of the statistics: 0 for the running ones, 1 for their averages.

    Examples
    --------
    >>> [part.shape for part in views(new_layers((4,), 1, 8, np.random.default_rng(0)), Row.VALUE, 0)[0]]
    [(16,), (16,), (16, 1), (16,), (16,)]
    """
    found: list[tuple[np.ndarray, ...]] = []
    begin = position = 0
    parameters, statistics = layers.parameters[row], layers.statistics[which]
    for width, after in itertools.pairwise(layers.units.tolist()):
        scale, shift = parameters[begin : begin + width], parameters[begin + width : begin + 2 * width]
        weights = parameters[begin + 2 * width : begin + (2 + after) * width].reshape(width, after)
        mean, variance = statistics[position : position + width], statistics[position + width : position + 2 * width]
        found.append((scale, shift, weights, mean, variance))
        begin, position = begin + (2 + after) * width, position + 2 * width
    return found


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
def forward(layers, n):
    """Compute the scores of ``n`` rows in training; the first product stands at the front of ``normalised``."""
    units, values = layers.units, layers.parameters[Row.VALUE]
    moments, running = layers.moments, layers.statistics[0]
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
def backward(layers, n):
    """Compute the gradients from that of the scores; that of the first product is left at the front of ``delta``."""
    units, values, gradient = layers.units, layers.parameters[Row.VALUE], layers.parameters[Row.GRADIENT]
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
def update(layers, constants, decay):
    """Take a step of Adam; the weight decay is for weights only, not for normalisations and constants."""
    units, parameters = layers.units, layers.parameters
    begin = 0
    for i in range(units.shape[0] - 1):
        width, after = units[i], units[i + 1]
        _update_range(parameters, begin, begin + 2 * width, constants, np.float32(0.0))
        _update_range(parameters, begin + 2 * width, begin + (2 + after) * width, constants, decay)
        begin += (2 + after) * width
    _update_range(parameters, begin, parameters.shape[1], constants, np.float32(0.0))
