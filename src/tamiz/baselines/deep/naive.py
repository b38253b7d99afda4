"""Train the naive network by a compiled loop: the same steps as :func:`~tamiz.baselines.deep.training.fit_network`.

A step on two rows of 2000 columns is little arithmetic and, through torch, mostly calls around it. Selectors that train
the naive network thousands of times over the splits of a protocol use this loop instead. Losses and Adam are those of
``tamiz.core``.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from tamiz.baselines.deep.one_to_one import OneToOne
from tamiz.baselines.deep.recipes import Recipe
from tamiz.baselines.deep.training import LossCurve, checked_problem
from tamiz.core.compiled import FAST, adam, adam_constants
from tamiz.core.losses import Loss
from tamiz.engines.contract import Problem
from tamiz.torch.batches import full_sizes
from tamiz.torch.networks import NaiveSVM


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _step(parameter, gradient, first, second, constants):
    """Take one step of Adam in place."""
    for j in range(parameter.size):
        first[j], second[j], step = adam(first[j], second[j], gradient[j], True, constants)
        parameter[j] -= step


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _row_scores(row, effective, bias, scores):
    for k in range(bias.size):
        total = np.float32(0.0)
        for j in range(row.size):
            total += row[j] * effective[k, j]
        scores[k] = total + bias[k]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _add_row(row, slope, gradient, bias_gradient):
    for k in range(slope.size):
        factor = slope[k]
        bias_gradient[k] += factor
        if factor != 0:
            for j in range(row.size):
                gradient[k, j] += factor * row[j]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _layer_gradients(weight, layer, gradient, layer_gradient, l1, l2):
    """Turn the gradient with respect to ``layer * weight`` into those with respect to the weight (in place) and the layer."""
    for j in range(layer.size):
        total = l1 * np.sign(layer[j]) + np.float32(2.0) * l2 * layer[j]
        for k in range(weight.shape[0]):
            total += weight[k, j] * gradient[k, j]
            gradient[k, j] *= layer[j]
        layer_gradient[j] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _epoch(kernel, X, targets, sample_weight, starts, order, parameters, moments, rate, l2, penalty, age):
    """Go once over the batches ``order[starts[b]:starts[b + 1]]``; return the sum of their losses, each times its rows.

    Parameters
    ----------
    kernel : compiled function
        ``Loss.compiled``.
    X, targets, sample_weight : ndarray of float32
        The table.
    starts, order : ndarray of int64
        The batches.
    parameters : tuple of ndarray
        Weight (K, F), bias (K) and the one-to-one layer (F, or 0 where there is none); changed in place.
    moments : tuple of ndarray
        First and second moment of Adam for each of them.
    rate, l2 : float
        Learning rate, and factor of the squared norm of the weight.
    penalty : tuple of float32
        l1 and l2 of the layer.
    age : int
        Steps taken before.
    """
    weight, bias, layer = parameters
    weight_first, weight_second, bias_first, bias_second, layer_first, layer_second = moments
    n_outputs, n_features = weight.shape
    has_layer = layer.size > 0
    effective = weight.copy() if has_layer else weight
    gradient, bias_gradient, layer_gradient = np.empty_like(weight), np.empty_like(bias), np.empty_like(layer)
    largest = (starts[1:] - starts[:-1]).max()
    scores, slopes = np.empty((largest, n_outputs), np.float32), np.empty((largest, n_outputs), np.float32)
    wanted, factors = np.empty((largest, n_outputs), np.float32), np.empty(largest, np.float32)
    total = 0.0
    for b in range(starts.size - 1):
        begin, size = starts[b], starts[b + 1] - starts[b]
        if has_layer:
            for k in range(n_outputs):
                for j in range(n_features):
                    effective[k, j] = weight[k, j] * layer[j]
        for i in range(size):
            row = order[begin + i]
            _row_scores(X[row], effective, bias, scores[i])
            wanted[i] = targets[row]
            factors[i] = sample_weight[row]
        loss = kernel(scores[:size], wanted[:size], factors[:size], slopes[:size])
        gradient[:] = 0
        bias_gradient[:] = 0
        for i in range(size):
            _add_row(X[order[begin + i]], slopes[i], gradient, bias_gradient)
        if has_layer:
            for j in range(n_features):
                loss += penalty[0] * abs(layer[j]) + penalty[1] * layer[j] ** 2
            _layer_gradients(weight, layer, gradient, layer_gradient, penalty[0], penalty[1])
        for k in range(n_outputs):
            for j in range(n_features):
                gradient[k, j] += np.float32(2.0) * l2 * weight[k, j]
        age += 1
        constants = adam_constants(rate, 0.9, 0.999, 1e-8, age)
        for k in range(n_outputs):
            _step(weight[k], gradient[k], weight_first[k], weight_second[k], constants)
        _step(bias, bias_gradient, bias_first, bias_second, constants)
        _step(layer, layer_gradient, layer_first, layer_second, constants)
        total += loss * size
    return total


def fit_naive(
    network: NaiveSVM,
    problem: Problem,
    recipe: Recipe,
    loss: Loss,
    *,
    one_to_one: OneToOne | None = None,
    penalty: tuple[float, float] = (0.0, 0.0),
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
    problem : Problem
        Inputs, targets as the loss takes them, and sample weights.
    recipe : Recipe
        One that trains with Adam.
    loss : Loss
        The loss.
    one_to_one : OneToOne, default=None
        The layer in front.
    penalty : tuple of float, default=(0.0, 0.0)
        l1 and l2 of the layer.
    seed : int, default=0
        Decides the order of the rows.
    progress : bool, default=False
        Whether to report every tenth of the run on stderr.

    Returns
    -------
    ndarray of shape (epochs,)
        The mean training loss (with the penalty of the layer, without l2) of each epoch.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from tamiz.baselines.deep.recipes import NAIVE
    >>> from tamiz.core.losses import get_loss
    >>> problem = Problem(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> recipe = replace(NAIVE.with_epochs(50), learning_rate=0.1, l2=0.0)
    >>> losses = fit_naive(NaiveSVM(1, 1), problem, recipe, get_loss("squared_hinge"))
    >>> losses.shape, bool(losses[-1] < losses[0] / 10)
    ((50,), True)
    """
    if recipe.optimizer != "adam":
        raise ValueError(f"The compiled loop trains with 'adam' only, not {recipe.optimizer!r}; use fit_network.")
    n_samples = checked_problem(problem).n_samples
    rows = np.ascontiguousarray(problem.dense())
    targets = np.ascontiguousarray(problem.targets, dtype=np.float32)
    sizes = full_sizes(n_samples, recipe.batch_size_for(n_samples))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # Views of the modules' own memory: the loop writes where torch reads.
    layer = np.zeros(0, dtype=np.float32) if one_to_one is None else one_to_one.weight.detach().numpy()
    parameters = (network.linear.weight.detach().numpy(), network.linear.bias.detach().numpy(), layer)
    moments = tuple(np.zeros_like(parameter) for parameter in parameters for _ in range(2))
    weights, l2 = problem.unit_weights(), np.float32(recipe.l2_for(n_samples))
    layer_penalty = (np.float32(penalty[0]), np.float32(penalty[1]))
    generator = torch.Generator().manual_seed(seed)
    curve = LossCurve(recipe.epochs, progress)
    for epoch in range(recipe.epochs):
        order = torch.randperm(n_samples, generator=generator).numpy()
        total = _epoch(
            loss.compiled,
            rows,
            targets,
            weights,
            starts,
            order,
            parameters,
            moments,
            recipe.learning_rate_at(epoch),
            l2,
            layer_penalty,
            epoch * len(sizes),
        )
        curve.add(total / n_samples)
    network.eval()
    return curve.values
