"""Networks of the papers, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn import functional

from tamiz._utils.names import pick

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


def image_shape(shape: int | Sequence[int], smallest_side: int = 8) -> tuple[int, int, int]:
    """Return the shape (channels, height, width) of an image, checked.

    Examples
    --------
    >>> image_shape((1, 28, 28))
    (1, 28, 28)
    >>> image_shape(784)
    Traceback (most recent call last):
    ValueError: This network reads images: give (channels, height, width), got 784.
    """
    if isinstance(shape, (int, np.integer)) or len(shape) != 3:
        raise ValueError(f"This network reads images: give (channels, height, width), got {shape!r}.")
    channels, height, width = (int(size) for size in shape)
    if channels < 1 or min(height, width) < smallest_side:
        raise ValueError(
            f"Images need a channel and sides of at least {smallest_side}, got {tuple(shape)!r}; "
            "note that the channels come first."
        )
    return channels, height, width


def convolution(n_inputs: int, n_outputs: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    """Return a convolution that keeps the size of the image, without bias, initialised after He et al. (2015)."""
    layer = nn.Conv2d(n_inputs, n_outputs, size, stride=stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class WideBlock(nn.Module):
    """Two 3x3 convolutions, each after batch normalisation and ReLU, added to the (1x1 convolved) input."""

    def __init__(self, n_inputs: int, n_outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(n_inputs)
        self.conv1 = convolution(n_inputs, n_outputs, stride=stride)
        self.norm2 = nn.BatchNorm2d(n_outputs)
        self.conv2 = convolution(n_outputs, n_outputs)
        same = n_inputs == n_outputs and stride == 1
        self.shortcut = None if same else convolution(n_inputs, n_outputs, size=1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the block."""
        active = functional.relu(self.norm1(x))
        # Where the sizes change, the shortcut starts behind the first activation, as in the published
        # network.
        shortcut = x if self.shortcut is None else self.shortcut(active)
        return shortcut + self.conv2(functional.relu(self.norm2(self.conv1(active))))


def wide_resnet_layers(n_channels: int, n_outputs: int, depth: int, widen_factor: int) -> nn.Sequential:
    """Return a convolution, three groups of (depth - 4) / 6 blocks, pooling and a linear output."""
    n_blocks, rest = divmod(depth - 4, 6)
    if rest or n_blocks < 1:
        raise ValueError(f"The depth of a Wide ResNet is 6n + 4 (10, 16, 22, ...), got {depth}.")
    layers: list[nn.Module] = [convolution(n_channels, 16)]
    width = 16
    for group, base in enumerate((16, 32, 64)):
        for block in range(n_blocks):
            stride = 2 if group > 0 and block == 0 else 1
            layers.append(WideBlock(width, base * widen_factor, stride))
            width = base * widen_factor
    output = nn.Linear(width, n_outputs)
    nn.init.zeros_(output.bias)
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(1), output)


class WRN16x4(nn.Module):
    """Wide ResNet (Zagoruyko and Komodakis 2016) of depth 16 and widening factor 4, without dropout.

    It has 2.7 million parameters for CIFAR-10 (2,748,890, as the layers add up to).

    Parameters
    ----------
    shape : sequence of int
        (channels, height, width), such as (3, 32, 32) or (1, 28, 28).
    n_outputs : int
        The number of classes.
    depth : int, default=16
        Number of layers, 6n + 4.
    widen_factor : int, default=4
        How many times wider than a plain ResNet.

    Examples
    --------
    >>> sum(p.numel() for p in WRN16x4((3, 32, 32), 10).parameters())
    2748890
    """

    def __init__(self, shape: int | Sequence[int], n_outputs: int, depth: int = 16, widen_factor: int = 4) -> None:
        super().__init__()
        self.shape = image_shape(shape)
        self.depth, self.widen_factor = depth, widen_factor
        self.layers = wide_resnet_layers(self.shape[0], n_outputs, depth, widen_factor)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, one row per sample."""
        return self.layers(x)

    def extra_repr(self) -> str:
        """Return depth and width, for ``print(net)``."""
        return f"shape={self.shape}, depth={self.depth}, widen_factor={self.widen_factor}"


@dataclass(frozen=True)
class NetworkEntry:
    """Describe a network.

    Parameters
    ----------
    build : callable
        ``build(n_inputs, n_outputs)``, or ``build(shape, n_outputs)`` for images, returns the module.
    reads_images : bool, default=False
        Whether the inputs are images, of a shape (channels, height, width).
    """

    build: Callable[..., nn.Module]
    reads_images: bool = False


NETWORKS: dict[str, NetworkEntry] = {
    "linear": NetworkEntry(NaiveSVM),
    "mlp": NetworkEntry(ThreeLayerNet),
    "wrn16x4": NetworkEntry(WRN16x4, reads_images=True),
}


def get_network(name: str) -> NetworkEntry:
    """Return the entry of a network.

    Examples
    --------
    >>> get_network("wrn16x4").reads_images
    True
    >>> get_network("mpl")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown network 'mpl'. Did you mean 'mlp'? There are: linear, mlp, wrn16x4.
    """
    return pick(name, NETWORKS, "network")


def make_network(name: str, shape: int | Sequence[int], n_outputs: int, **parameters: Any) -> nn.Module:
    """Build a network by its name.

    Parameters
    ----------
    name : str
        A key of ``NETWORKS``.
    shape : int or sequence of int
        The number of inputs, or for images (channels, height, width).
    n_outputs : int
        The number of outputs.
    **parameters
        Handed to the network, such as ``hidden`` of the three-layer network.

    Examples
    --------
    >>> make_network("mlp", 20, 1, hidden=(8, 4)).hidden
    (8, 4)
    """
    return get_network(name).build(shape, n_outputs, **parameters)
