"""Turn the weights of an estimator into dense layers of numpy arrays, so that a model file needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.core.losses import get_loss
from tamiz.persistence.container import ModelFileError

#: Layers of torch that do nothing when a network predicts.
_IDLE = ("Identity", "Dropout", "Flatten")


@dataclass(frozen=True)
class DenseLayer:
    """Compute ``activation(x @ weights.T + offset)``.

    Parameters
    ----------
    weights : ndarray, shape (n_outputs, n_inputs)
        The weights.
    offset : ndarray, shape (n_outputs,)
        The intercepts.
    activation : {"none", "relu", "square"}, default="none"
        Applied to the result.
    """

    weights: np.ndarray
    offset: np.ndarray
    activation: str = "none"


def extract_layers(estimator: Any) -> list[DenseLayer]:
    """Return the layers that give what ``decision_function`` (or ``predict``, for numbers) gives."""
    model = estimator.model_
    if hasattr(model, "affine_layers"):
        *hidden, output = model.affine_layers()
        activations = getattr(model, "activations", ("relu",) * len(hidden))
        layers = [
            DenseLayer(weights, offset, kind) for (weights, offset), kind in zip(hidden, activations, strict=True)
        ]
        return [*layers, DenseLayer(output[0], output[1])]
    if not hasattr(estimator, "module_"):
        return [DenseLayer(np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_))]
    module = estimator.module_.cpu().eval()
    layers = []
    missing = getattr(estimator, "missing_", None)
    weights = np.eye(estimator.selection_.n_features_to_select + (0 if missing is None else missing.indicated.size))
    offset = np.zeros(weights.shape[0])
    for part in (part for part in module.modules() if not list(part.children())):
        kind = type(part).__name__
        if kind == "Linear":
            own = part.weight.detach().numpy().astype(np.float64)
            bias = 0.0 if part.bias is None else part.bias.detach().numpy().astype(np.float64)
            weights, offset = own @ weights, own @ offset + bias
        elif kind == "BatchNorm1d":
            scale, shift = _batch_norm(part)
            weights, offset = weights * scale[:, None], offset * scale + shift
        elif kind == "ReLU":
            layers.append(DenseLayer(weights, offset, "relu"))
            weights, offset = np.eye(weights.shape[0]), np.zeros(weights.shape[0])
        elif kind not in _IDLE:
            raise ModelFileError(f"The network holds a {kind}, which is not supported by the model format.")
    loss = get_loss(estimator.loss_)
    weights, offset = loss.decision(weights.T).T, loss.decision(offset[None])[0]
    scale, mean = estimator.model_.scale, estimator.model_.mean
    if scale is not None:  # numbers in the unit of the target
        weights, offset = weights * scale[:, None], offset * scale + mean
    return [*layers, DenseLayer(weights, offset)]


def _batch_norm(part: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what batch normalisation multiplies with and adds when a network predicts."""
    mean = part.running_mean.numpy().astype(np.float64)
    scale = 1.0 / np.sqrt(part.running_var.numpy().astype(np.float64) + part.eps)
    if part.affine:
        scale = scale * part.weight.detach().numpy()
        return scale, part.bias.detach().numpy() - mean * scale
    return scale, -mean * scale
