"""The training loop of the naive network, compiled: the same steps as :func:`~tamiz.networks.training.fit_network`.

A step on two rows of 2000 columns is little arithmetic and, through torch, mostly calls around it. Selectors
that train the naive network thousands of times over the splits of a protocol take this loop instead.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch

from tamiz.networks.dense import NaiveSVM
from tamiz.networks.one_to_one import OneToOne
from tamiz.networks.recipes import NAIVE, Recipe
from tamiz.networks.training import _tensors, batches, check_progress

LOSS_CODES = {"squared_hinge": 0, "logistic": 1, "softmax": 2, "squared_error": 3, "huber": 4}


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _loss_and_slope(code, outputs, targets, slope):
    """The loss of one row, and its derivative by each output into ``slope``."""
    n_outputs = outputs.size
    total = 0.0
    if code == 2:
        largest = outputs.max()
        normalizer = 0.0
        for k in range(n_outputs):
            normalizer += np.exp(outputs[k] - largest)
        for k in range(n_outputs):
            slope[k] = np.exp(outputs[k] - largest) / normalizer - targets[k]
            total += targets[k] * (np.log(normalizer) - (outputs[k] - largest))
        return total
    for k in range(n_outputs):
        y, s = targets[k], outputs[k]
        if code == 0:
            gap = 1.0 - y * s
            if gap < 0.0:  # not max(), which would turn a NaN of a diverged run into 0
                gap = 0.0
            total += gap * gap
            slope[k] = -2.0 * y * gap / n_outputs
        elif code == 1:
            margin = y * s
            tail = np.exp(-abs(margin))  # never overflows
            total += np.log1p(tail) + max(0.0, -margin)
            slope[k] = -y * (tail if margin > 0 else 1.0) / (1.0 + tail) / n_outputs
        elif code == 3:
            total += (y - s) ** 2
            slope[k] = 2.0 * (s - y) / n_outputs
        else:
            residual = s - y
            total += 0.5 * residual**2 if abs(residual) <= 1.0 else abs(residual) - 0.5
            slope[k] = max(-1.0, min(1.0, residual)) / n_outputs
    return total / n_outputs


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def _adam(parameter, gradient, first, second, step_size, correction):
    """One step of Adam in place; ``correction`` is 1 / sqrt(1 - beta2^t), ``step_size`` the rate / (1 - beta1^t)."""
    for j in range(parameter.size):
        g = gradient[j]
        m = np.float32(0.9) * first[j] + np.float32(0.1) * g
        v = np.float32(0.999) * second[j] + np.float32(0.001) * g * g
        first[j], second[j] = m, v
        parameter[j] -= step_size * m / (np.sqrt(v) * correction + np.float32(1e-8))


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def _row_outputs(row, effective, bias, outputs):
    for k in range(bias.size):
        total = np.float32(0.0)
        for j in range(row.size):
            total += row[j] * effective[k, j]
        outputs[k] = total + bias[k]


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def _add_row(row, slope, weight, gradient, bias_gradient):
    for k in range(slope.size):
        factor = np.float32(slope[k] * weight)
        bias_gradient[k] += factor
        if factor != 0:
            for j in range(row.size):
                gradient[k, j] += factor * row[j]


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def _layer_gradients(weight, layer, gradient, layer_gradient, l1, l2):
    """Turn the gradient by the effective weights w * v into those by v (in place) and by the layer w."""
    for j in range(layer.size):
        total = l1 * np.sign(layer[j]) + np.float32(2.0) * l2 * layer[j]
        for k in range(weight.shape[0]):
            total += weight[k, j] * gradient[k, j]
            gradient[k, j] *= layer[j]
        layer_gradient[j] = total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _epoch(code, X, targets, sample_weight, starts, order, parameters, moments, rate, l2, penalty, step):
    """One pass over the batches ``order[starts[b]:starts[b + 1]]``; the sum of their losses, each counted by its rows.

    ``parameters`` are weight (K, F), bias (K) and the one-to-one layer (F, or 0 where there is none); ``moments`` are
    those of Adam for each of them; ``penalty`` is (l1, l2) of the layer.
    """
    weight, bias, layer = parameters
    weight_m, weight_v, bias_m, bias_v, layer_m, layer_v = moments
    n_outputs, n_features = weight.shape
    has_layer = layer.size > 0
    effective = weight.copy() if has_layer else weight
    gradient, bias_gradient = np.empty_like(weight), np.empty_like(bias)
    layer_gradient = np.empty_like(layer)
    outputs, slope = np.empty(n_outputs, np.float32), np.empty(n_outputs, np.float64)
    total = 0.0
    for b in range(starts.size - 1):
        size = starts[b + 1] - starts[b]
        gradient[:] = 0
        bias_gradient[:] = 0
        batch_loss = 0.0
        if has_layer:
            for k in range(n_outputs):
                for j in range(n_features):
                    effective[k, j] = weight[k, j] * layer[j]
        for position in range(starts[b], starts[b + 1]):
            i = order[position]
            _row_outputs(X[i], effective, bias, outputs)
            row_loss = _loss_and_slope(code, outputs, targets[i], slope)
            batch_loss += sample_weight[i] * row_loss / size
            _add_row(X[i], slope, sample_weight[i] / size, gradient, bias_gradient)
        if has_layer:
            for j in range(n_features):
                batch_loss += penalty[0] * abs(layer[j]) + penalty[1] * layer[j] ** 2
            _layer_gradients(weight, layer, gradient, layer_gradient, penalty[0], penalty[1])
        for k in range(n_outputs):
            for j in range(n_features):
                gradient[k, j] += np.float32(2.0) * l2 * weight[k, j]
        step += 1
        step_size = np.float32(rate / (1.0 - 0.9**step))
        correction = np.float32(1.0 / np.sqrt(1.0 - 0.999**step))
        for k in range(n_outputs):
            _adam(weight[k], gradient[k], weight_m[k], weight_v[k], step_size, correction)
        _adam(bias, bias_gradient, bias_m, bias_v, step_size, correction)
        _adam(layer, layer_gradient, layer_m, layer_v, step_size, correction)
        total += batch_loss * size
    return total


def fit_naive(
    network: NaiveSVM,
    X: np.ndarray,
    y: Any,
    *,
    one_to_one: OneToOne | None = None,
    penalty: tuple[float, float] = (0.0, 0.0),
    recipe: Recipe = NAIVE,
    loss: str | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    l2: float | None = None,
    sample_weight: Any = None,
    seed: int = 0,
    progress: bool = False,
) -> np.ndarray:
    """Train a naive network, and the layer of DFS in front of it if there is one, in place.

    Does what ``fit_network(nn.Sequential(one_to_one, network), ...)`` does with the elastic net as penalty, batch for
    batch, up to rounding.

    Parameters
    ----------
    network : NaiveSVM
        On the CPU.
    X, y, loss, epochs, batch_size, learning_rate, l2, sample_weight, seed, progress
        As in :func:`~tamiz.networks.training.fit_network`.
    one_to_one : OneToOne or None
        The layer in front.
    penalty : tuple of float
        l1 and l2 of the layer.
    recipe : Recipe
        One that trains with Adam.

    Returns
    -------
    ndarray of shape (epochs,)
        The mean training loss (with the layer's penalty, without l2) of each epoch.

    Examples
    --------
    >>> X = np.array([[-1.0], [-2.0], [1.0], [2.0]]); y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> losses = fit_naive(NaiveSVM(1, 1), X, y, epochs=50, learning_rate=0.1, l2=0.0)
    >>> losses.shape, bool(losses[-1] < losses[0] / 10)
    ((50,), True)
    """
    if recipe.optimizer != "adam":
        raise ValueError(f"The compiled loop trains with 'adam' only, not {recipe.optimizer!r}; take fit_network.")
    loss = recipe.loss if loss is None else loss
    rows, targets, weights = _tensors(X, y, sample_weight, torch.device("cpu"))
    n_samples = rows.shape[0]
    recipe = recipe if epochs is None else recipe.with_epochs(epochs)
    batch_size = recipe.batch_size_for(n_samples) if batch_size is None else batch_size
    start_rate = recipe.learning_rate if learning_rate is None else learning_rate
    if loss == "softmax":
        targets = torch.nn.functional.one_hot(targets, network.linear.out_features).to(torch.float32)
    weight_array = np.ones(n_samples, dtype=np.float32) if weights is None else weights.numpy()
    sizes = [len(part) for part in batches(torch.arange(n_samples), batch_size)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # Views of the modules' own memory: the loop writes where torch reads.
    layer = np.zeros(0, dtype=np.float32) if one_to_one is None else one_to_one.weight.detach().numpy()
    parameters = (network.linear.weight.detach().numpy(), network.linear.bias.detach().numpy(), layer)
    moments = tuple(np.zeros_like(parameter) for parameter in parameters for _ in range(2))
    weight_l2 = np.float32(recipe.l2_for(n_samples) if l2 is None else l2)
    layer_penalty = (np.float32(penalty[0]), np.float32(penalty[1]))
    generator = torch.Generator().manual_seed(seed)
    history = np.empty(recipe.refinement_epochs)
    for epoch in range(history.size):
        rate = start_rate * recipe.learning_rate_at(epoch) / recipe.learning_rate
        order = torch.randperm(n_samples, generator=generator).numpy()
        total = _epoch(
            LOSS_CODES[loss],
            rows.numpy(),
            targets.numpy(),
            weight_array,
            starts,
            order,
            parameters,
            moments,
            rate,
            weight_l2,
            layer_penalty,
            epoch * len(sizes),
        )
        history[epoch] = total / n_samples
        check_progress(history, epoch, progress)
    network.eval()
    return history
