"""Networks of the paper: the dense ones, and WRN-16-4 with its published size."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tamiz.errors import UnknownNameError
from tamiz.paper.networks import (
    NETWORKS,
    NaiveSVM,
    NetworkEntry,
    ThreeLayerNet,
    WRN16x4,
    get_network,
    make_network,
)


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


@pytest.mark.parametrize("network", [WRN16x4])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (2, 8, 11)])
def test_forward_and_backward(network, shape):
    torch.manual_seed(0)
    net = network(shape, 10)
    outputs = net(torch.randn(2, *shape))
    assert outputs.shape == (2, 10)
    outputs.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())
    assert f"shape={shape}" in repr(net)


@pytest.mark.parametrize("network", [WRN16x4])
def test_bad_shapes(network):
    with pytest.raises(ValueError, match=r"give \(channels, height, width\), got 784"):
        network(784, 10)
    with pytest.raises(ValueError, match="the channels come first"):
        network((28, 28, 1), 10)


def test_bad_depth():
    with pytest.raises(ValueError, match="6n \\+ 4"):
        WRN16x4((3, 32, 32), 10, depth=17)


def test_naive_svm_is_linear_and_starts_at_zero():
    net = NaiveSVM(3, 2)
    assert count_parameters(net) == 3 * 2 + 2
    assert not net(torch.randn(5, 3)).any()
    net.linear.weight.data = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]])
    net.linear.bias.data = torch.tensor([0.5, 0.0])
    assert net(torch.tensor([[1.0, 1.0, 2.0]])).tolist() == [[9.5, 2.0]]


def test_three_layer_net_is_the_papers():
    net = ThreeLayerNet(500, 1)
    kinds = [type(layer) for layer in net.layers]
    assert kinds == [nn.Linear, nn.BatchNorm1d, nn.ReLU] * 3 + [nn.Linear]
    widths = [layer.out_features for layer in net.layers if isinstance(layer, nn.Linear)]
    assert widths == [50, 25, 10, 1]
    # matrices, then scale and shift of each batch normalisation, then the output with its bias
    assert count_parameters(net) == 500 * 50 + 50 * 25 + 25 * 10 + 2 * (50 + 25 + 10) + 10 + 1
    assert "hidden=(50, 25, 10)" in repr(net)


@pytest.mark.parametrize("network", [NaiveSVM, ThreeLayerNet])
def test_shapes_are_flattened(network):
    net = network((1, 4, 5), 3).eval()
    images = torch.randn(6, 1, 4, 5)
    assert torch.equal(net(images), net(images.flatten(1)))
    assert network(np.int64(4), 1)(torch.zeros(2, 4)).shape == (2, 1)


@pytest.mark.parametrize("shape", [0, (), (3, 0)])
def test_no_inputs(shape):
    with pytest.raises(ValueError, match="at least one input"):
        NaiveSVM(shape, 1)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_builds_and_runs(name):
    shape = (1, 8, 8) if get_network(name).reads_images else 12
    inputs = torch.randn(4, *shape) if get_network(name).reads_images else torch.randn(4, shape)
    assert make_network(name, shape, 3)(inputs).shape == (4, 3)


def test_parameters_are_handed_on():
    assert isinstance(make_network("linear", 3, 1), NaiveSVM)
    assert make_network("mlp", 3, 1, hidden=(4,)).hidden == (4,)


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="Did you mean 'wrn16x4'"):
        make_network("wrn16-4", (3, 32, 32), 10)
    with pytest.raises(ValueError, match=r"Unknown network 'q'. There are: linear, mlp, wrn16x4"):
        get_network("q")
    with pytest.raises(ValueError, match="Unknown network None"):
        get_network(None)


def test_a_new_network_is_one_line(monkeypatch):
    monkeypatch.setitem(NETWORKS, "toy", NetworkEntry(nn.Linear))
    assert make_network("toy", 3, 2).out_features == 2
