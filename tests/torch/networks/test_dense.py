"""The naive SVM and the three-layer network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tamiz.torch.networks import NaiveSVM, ThreeLayerNet


def count_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


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
