"""Networks for plain vectors: the naive SVM and the three-layer network of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn

Shape = int | Sequence[int]


def n_inputs_of(shape: Shape) -> int:
    """Return the number of input values, for a number or a shape.

    Examples
    --------
    >>> n_inputs_of(20), n_inputs_of((1, 28, 28))
    (20, 784)
    """
    sizes = tuple(int(size) for size in ([shape] if isinstance(shape, (int, np.integer)) else shape))
    if not sizes or any(size < 1 for size in sizes):
        raise ValueError(f"A network needs at least one input, got the shape {shape!r}.")
    return math.prod(sizes)


def naive_svm(n_inputs: Shape, n_outputs: int) -> nn.Linear:
    """Return the only layer of the naive SVM: linear, and zero at the start.

    The problem is convex, so the start does not decide where training ends; zeros keep it free of chance, so
    that permuted columns give permuted weights.
    """
    layer = nn.Linear(n_inputs_of(n_inputs), n_outputs)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class NaiveSVM(nn.Module):
    """Network without hidden units; with the squared hinge loss and an l2 penalty it is a linear SVM.

    Parameters
    ----------
    n_inputs : int or sequence of int
        The number of inputs; the inputs of a shape are flattened.
    n_outputs : int
        One for two classes or a single regression target, else one for each class.

    Examples
    --------
    >>> import torch
    >>> NaiveSVM(4, 1)(torch.ones(3, 4)).shape
    torch.Size([3, 1])
    """

    def __init__(self, n_inputs: Shape, n_outputs: int) -> None:
        super().__init__()
        self.linear = naive_svm(n_inputs, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, one row per sample."""
        return self.linear(x if x.dim() == 2 else x.flatten(1))


def three_layer_net(n_inputs: Shape, n_outputs: int, hidden: Sequence[int] = (50, 25, 10)) -> nn.Sequential:
    """Return linear, batch normalisation and ReLU for each hidden layer, then a linear output.

    The hidden layers have no bias: the batch normalisation behind them would take it away again.
    """
    layers: list[nn.Module] = []
    width = n_inputs_of(n_inputs)
    for units in hidden:
        layers += [nn.Linear(width, units, bias=False), nn.BatchNorm1d(units), nn.ReLU()]
        width = units
    return nn.Sequential(*layers, nn.Linear(width, n_outputs))


class ThreeLayerNet(nn.Module):
    """Dense network of the paper: hidden layers of 50, 25 and 10 units, each with batch normalisation and ReLU.

    Parameters
    ----------
    n_inputs : int or sequence of int
        The number of inputs; the inputs of a shape are flattened.
    n_outputs : int
        The number of outputs.
    hidden : sequence of int, default=(50, 25, 10)
        Units of the hidden layers.

    Examples
    --------
    >>> import torch
    >>> net = ThreeLayerNet(500, 1)
    >>> net(torch.zeros(8, 500)).shape, net.hidden
    (torch.Size([8, 1]), (50, 25, 10))
    """

    def __init__(self, n_inputs: Shape, n_outputs: int, hidden: Sequence[int] = (50, 25, 10)) -> None:
        super().__init__()
        self.hidden = tuple(hidden)
        self.layers = three_layer_net(n_inputs, n_outputs, self.hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, one row per sample."""
        return self.layers(x if x.dim() == 2 else x.flatten(1))

    def extra_repr(self) -> str:
        """Return the hidden layers, for ``print(net)``."""
        return f"hidden={self.hidden}"
