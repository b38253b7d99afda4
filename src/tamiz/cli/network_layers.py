"""A trained network as plain layers of numbers, so that its model file needs no torch and runs no code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamiz.cli.errors import UserError
from tamiz.cli.model_file import Layer

#: What does nothing when a network predicts.
_IDLE = ("Identity", "Dropout", "Flatten")


def layers_of(estimator: Any) -> list[Layer]:
    """The layers of an estimator that trained a network: linear maps with ReLU between, batch normalisation folded in.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Fitted, with ``module_``.

    Returns
    -------
    list of Layer
        Which give what ``decision_function`` (or ``predict``, for numbers) gives.
    """
    module = estimator.module_.cpu().eval()
    n_inputs = estimator.selection_.n_features_to_select
    layers: list[Layer] = []
    weights, offset = np.eye(n_inputs), np.zeros(n_inputs)
    for part in _leaves(module):
        kind = type(part).__name__
        if kind == "Linear":
            own = part.weight.detach().numpy().astype(np.float64)
            bias = 0.0 if part.bias is None else part.bias.detach().numpy().astype(np.float64)
            weights, offset = own @ weights, own @ offset + bias
        elif kind == "BatchNorm1d":
            scale, shift = _batch_norm(part)
            weights, offset = weights * scale[:, None], offset * scale + shift
        elif kind == "ReLU":
            layers.append(Layer(weights, offset, "relu"))
            weights, offset = np.eye(weights.shape[0]), np.zeros(weights.shape[0])
        elif kind not in _IDLE:
            raise UserError(f"The network holds a {kind}, which the model file has no words for.")
    layers.append(_output(estimator, weights, offset))
    return layers


def _leaves(module: Any) -> list[Any]:
    return [part for part in module.modules() if not list(part.children())]


def _batch_norm(part: Any) -> tuple[np.ndarray, np.ndarray]:
    """What batch normalisation multiplies with and adds when a network predicts."""
    mean = part.running_mean.numpy().astype(np.float64)
    scale = 1.0 / np.sqrt(part.running_var.numpy().astype(np.float64) + part.eps)
    if part.affine:
        scale = scale * part.weight.detach().numpy()
        return scale, part.bias.detach().numpy() - mean * scale
    return scale, -mean * scale


def _output(estimator: Any, weights: np.ndarray, offset: np.ndarray) -> Layer:
    """The last layer: numbers in their own unit; of two softmax scores the difference."""
    if estimator.output_scale_ is not None:
        return Layer(
            weights * estimator.output_scale_[:, None], offset * estimator.output_scale_ + estimator.output_mean_
        )
    if estimator.loss_ == "softmax" and weights.shape[0] == 2:
        return Layer(weights[1:] - weights[:1], offset[1:] - offset[:1])
    return Layer(weights, offset)
