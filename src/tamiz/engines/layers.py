"""Hidden layers of a dense network behind the first product: batch normalisation, ReLU and linear layers, and their gradients.

Layers of any number and width share one compiled code: their numbers lie one behind the other in flat arrays, and widths are
padded to a multiple of ``PADDING`` with units whose weights are zero. The gradients of these are zero too, so they stay.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from tamiz.core.compiled import FAST, INLINED, adam
from tamiz.engines.products import PADDING, multiply, multiply_transposed, transpose

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


def padded(units: int) -> int:
    """Return the number of units with padding.

    Examples
    --------
    >>> padded(50), padded(8)
    (64, 16)
    """
    return -(-units // PADDING) * PADDING


def new_layers(hidden: Sequence[int], n_outputs: int, n_rows: int, random: np.random.Generator) -> Layers:
    """Return layers with drawn weights: uniform within one over the root of the number of inputs, as in PyTorch's ``Linear``.

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
    """Return scale, shift, weights, mean and variance of each hidden layer as views.

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


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
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


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
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


@register_jitable(**INLINED, fastmath=FAST, error_model="numpy")
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
