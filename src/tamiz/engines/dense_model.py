"""Predict with a trained dense network that reads the selected columns; NumPy only, PyTorch on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tamiz._extras import require
from tamiz.core.losses import Loss
from tamiz.engines.dense_loop import DenseMemory
from tamiz.engines.layers import EPSILON, Row, views

#: Rows that go through the network at once.
ROWS_AT_ONCE = 4096


class HiddenLayer(NamedTuple):
    """A linear layer without constants, batch normalisation and ReLU, in float32."""

    weights: np.ndarray
    """(n_inputs, units)."""
    scale: np.ndarray
    shift: np.ndarray
    mean: np.ndarray
    """Running mean of the batch normalisation."""
    variance: np.ndarray


@dataclass(frozen=True, eq=False)
class DenseModel:
    """A dense network over the selected columns.

    Parameters
    ----------
    hidden : tuple of HiddenLayer
        The hidden layers.
    output_weights : ndarray of float32, shape (n_outputs, units)
        Weights of the output layer.
    output_constants : ndarray of float32, shape (n_outputs,)
        Constants of the output layer.

    Examples
    --------
    >>> one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    >>> layer = HiddenLayer(np.float32([[2.0]]), scale=one, shift=zero, mean=zero, variance=one)
    >>> DenseModel((layer,), np.float32([[1.0]]), zero).scores(np.array([[1.0], [-1.0]])).round(3).tolist()
    [[2.0], [0.0]]
    """

    hidden: tuple[HiddenLayer, ...]
    output_weights: np.ndarray
    output_constants: np.ndarray

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Return the outputs for each row.

        Parameters
        ----------
        X : ndarray or sparse matrix, shape (n_samples, n_features_to_select)
            The selected columns, in the order of the table.
        offset : ndarray, shape (n_features_to_select,), or None, default=None
            Implicit value of each column of a sparse table.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_outputs)
        """
        out = np.empty((X.shape[0], self.output_constants.size), dtype=np.float64)
        for begin in range(0, X.shape[0], ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            units = X[rows].astype(np.float32)
            base = None if offset is None else offset.astype(np.float32) @ self.hidden[0].weights
            for layer in self.hidden:
                units = np.asarray(units @ layer.weights)
                if base is not None:
                    units, base = units + base, None
                slope = layer.scale / np.sqrt(layer.variance + np.float32(EPSILON))
                units = np.maximum((units - layer.mean) * slope + layer.shift, np.float32(0))
            out[rows] = units @ self.output_weights.T + self.output_constants
        return out

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> DenseModel:
        """Return the model whose outputs are ``scores * scale + mean``."""
        weights, constants = self.output_weights * scale[:, None], self.output_constants * scale + mean
        return DenseModel(self.hidden, weights.astype(np.float32), constants.astype(np.float32))

    def reordered(self, order: np.ndarray) -> DenseModel:
        """Return the model that reads the same columns in another order: first the one that was at ``order[0]``."""
        first = self.hidden[0]
        layers = (first._replace(weights=np.ascontiguousarray(first.weights[order])), *self.hidden[1:])
        return DenseModel(layers, self.output_weights, self.output_constants)

    def decided(self, loss: Loss) -> DenseModel:
        """Return the model after ``Loss.decision``: two competing outputs are reduced to their difference."""
        weights, constants = loss.decision(self.output_weights.T).T, loss.decision(self.output_constants[None])[0]
        return DenseModel(self.hidden, np.ascontiguousarray(weights), constants)

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return weights (n_outputs, n_inputs) and constants of each layer, batch normalisation folded in; ReLU between."""
        found = []
        for layer in self.hidden:
            slope = layer.scale / np.sqrt(layer.variance.astype(np.float64) + EPSILON)
            found.append((layer.weights.T * slope[:, None], layer.shift - layer.mean * slope))
        return [*found, (self.output_weights.astype(np.float64), self.output_constants.astype(np.float64))]

    def to_torch(self) -> Any:
        """Return the network as an ``nn.Sequential`` in evaluation mode, with the same predictions; needs PyTorch.

        Returns
        -------
        torch.nn.Sequential
            Linear, BatchNorm1d and ReLU for each hidden layer, then Linear.
        """
        require("torch", "torch", "to_torch()")
        import torch
        from torch import nn

        parts: list[nn.Module] = []
        with torch.no_grad():
            for layer in self.hidden:
                linear = nn.Linear(layer.weights.shape[0], layer.weights.shape[1], bias=False)
                linear.weight.copy_(torch.from_numpy(layer.weights.T))
                norm = nn.BatchNorm1d(layer.scale.size, eps=EPSILON)
                values = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
                for tensor, array in zip(values, (layer.scale, layer.shift, layer.mean, layer.variance)):
                    assert tensor is not None
                    tensor.copy_(torch.from_numpy(array))
                parts += [linear, norm, nn.ReLU()]
            output = nn.Linear(self.output_weights.shape[1], self.output_weights.shape[0])
            output.weight.copy_(torch.from_numpy(self.output_weights))
            output.bias.copy_(torch.from_numpy(self.output_constants))
        return nn.Sequential(*parts, output).eval()


def trained_model(memory: DenseMemory, hidden: tuple[int, ...], width: int, averaged: bool) -> DenseModel:
    """Return the network of a finished run, without the padding of its layers.

    Parameters
    ----------
    memory : DenseMemory
        The memory of the run; its first ``width`` columns are the kept ones.
    hidden : tuple of int
        Units of the hidden layers.
    width : int
        Number of columns that the network reads.
    averaged : bool
        Whether to take the averages over the last part of the refinement.

    Returns
    -------
    DenseModel
        With as many outputs as there are targets.
    """
    weights = (memory.weights_average if averaged else memory.weights[:width])[:, : hidden[0]].copy()
    row, which = (Row.AVERAGE, 1) if averaged else (Row.VALUE, 0)
    n_outputs = int(memory.layers.units[-1])
    layers = []
    for size, n_next, parts in zip(hidden, (*hidden[1:], n_outputs), views(memory.layers, row, which)):
        scale, shift, behind, mean, variance = parts
        layers.append(HiddenLayer(weights, *(part[:size].copy() for part in (scale, shift, mean, variance))))
        weights = behind[:size, :n_next].copy()
    constants = memory.layers.parameters[row, -n_outputs:].copy()
    return DenseModel(tuple(layers), np.ascontiguousarray(weights.T), constants)
