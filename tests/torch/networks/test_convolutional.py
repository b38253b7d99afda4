"""WRN-16-4 with its published size, and the 3-layer CNN."""

from __future__ import annotations

import pytest
import torch

from tamiz.torch.networks import CNN3, WRN16x4


def count_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def wide_resnet_size(n_channels, n_outputs, n_blocks=2, widen=4):
    """Parameters of a Wide ResNet, added up from the description in its paper."""
    total = 9 * n_channels * 16
    width = 16
    for base in (16, 32, 64):
        wide = base * widen
        for block in range(n_blocks):
            total += 2 * width + 9 * width * wide  # batch normalisation (scale, shift) and 3x3 convolution
            total += 2 * wide + 9 * wide * wide
            total += width * wide if block == 0 else 0  # 1x1 convolution of the shortcut where the width changes
            width = wide
    return total + 2 * width + width * n_outputs + n_outputs


def test_wrn16x4_has_the_published_number_of_parameters():
    n_parameters = count_parameters(WRN16x4((3, 32, 32), 10))
    assert n_parameters == wide_resnet_size(3, 10) == 2_748_890
    assert round(n_parameters / 1e6, 1) == 2.7  # the table of Zagoruyko and Komodakis
    assert count_parameters(WRN16x4((1, 28, 28), 10)) == wide_resnet_size(1, 10)
    assert count_parameters(WRN16x4((3, 32, 32), 100)) == wide_resnet_size(3, 100)


def test_other_published_sizes():
    # WRN-40-1: 0.6 M, WRN-16-8: 11.0 M
    assert round(count_parameters(WRN16x4((3, 32, 32), 10, depth=40, widen_factor=1)) / 1e6, 1) == 0.6
    assert round(count_parameters(WRN16x4((3, 32, 32), 10, depth=16, widen_factor=8)) / 1e6, 1) == 11.0


@pytest.mark.parametrize("network", [WRN16x4, CNN3])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (2, 8, 11)])
def test_forward_and_backward(network, shape):
    torch.manual_seed(0)
    net = network(shape, 10)
    outputs = net(torch.randn(2, *shape))
    assert outputs.shape == (2, 10)
    outputs.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())
    assert f"shape={shape}" in repr(net)


def test_cnn3_by_size():
    # 3x3 convolutions without bias, batch normalisation, and a classifier on 3 x 3 x 128 values
    expected = 9 * (1 * 32 + 32 * 64 + 64 * 128) + 2 * (32 + 64 + 128) + (3 * 3 * 128 + 1) * 10
    assert count_parameters(CNN3((1, 28, 28), 10)) == expected
    assert CNN3((1, 16, 16), 2, channels=(4, 4, 4)).channels == (4, 4, 4)


@pytest.mark.parametrize("network", [WRN16x4, CNN3])
def test_bad_shapes(network):
    with pytest.raises(ValueError, match=r"give \(channels, height, width\), got 784"):
        network(784, 10)
    with pytest.raises(ValueError, match="the channels come first"):
        network((28, 28, 1), 10)


def test_bad_depth():
    with pytest.raises(ValueError, match="6n \\+ 4"):
        WRN16x4((3, 32, 32), 10, depth=17)
