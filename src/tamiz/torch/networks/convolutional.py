"""Networks for images: the Wide ResNet 16-4 of the paper and the 3-layer CNN of the SFS paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn
from torch.nn import functional


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


def cnn3_layers(shape: Sequence[int], n_outputs: int, channels: Sequence[int] = (32, 64, 128)) -> nn.Sequential:
    """Return 3x3 convolutions, each with batch normalisation, ReLU and 2x2 pooling; then a linear output."""
    width, height, breadth = image_shape(shape, smallest_side=2 ** len(channels))
    layers: list[nn.Module] = []
    for n_channels in channels:
        layers += [convolution(width, n_channels), nn.BatchNorm2d(n_channels), nn.ReLU(), nn.MaxPool2d(2)]
        width, height, breadth = n_channels, height // 2, breadth // 2
    return nn.Sequential(*layers, nn.Flatten(1), nn.Linear(width * height * breadth, n_outputs))


class CNN3(nn.Module):
    """Convolutional network of three layers, after the "3-layer CNN" that the SFS paper compares on.

    The paper gives no more than that name. Here it is three 3x3 convolutions of 32, 64 and 128 channels, each
    with batch normalisation, ReLU and 2x2 max pooling, and a linear classifier on what is left (3 x 3 x 128
    for 28 x 28 images): not on its average over the image, since where a selected pixel lies is what tells
    the classes apart.

    Parameters
    ----------
    shape : sequence of int
        (channels, height, width).
    n_outputs : int
        The number of classes.
    channels : sequence of int, default=(32, 64, 128)
        Channels of the convolutions.

    Examples
    --------
    >>> import torch
    >>> CNN3((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(self, shape: int | Sequence[int], n_outputs: int, channels: Sequence[int] = (32, 64, 128)) -> None:
        super().__init__()
        self.shape = image_shape(shape)
        self.channels = tuple(channels)
        self.layers = cnn3_layers(self.shape, n_outputs, self.channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, one row per sample."""
        return self.layers(x)

    def extra_repr(self) -> str:
        """Return shape and channels, for ``print(net)``."""
        return f"shape={self.shape}, channels={self.channels}"
