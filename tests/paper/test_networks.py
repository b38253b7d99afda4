"""Networks of the paper: the dense ones, and WRN-16-4 with its published size."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tamiz.paper.networks import NaiveSVM, ThreeLayerNet, WRN16x4, make_network


def count_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


#: Parameters of WRN-16-4 in CIFAR-10, added up from its paper: 3x3 convolutions, scale and shift of a batch normalisation before
#: each, 1x1 convolutions where the width changes, and the output.
CIFAR_10 = 9 * 3 * 16 + sum(
    2 * a + 9 * a * b + 3 * (2 * b + 9 * b * b) + a * b for a, b in ((16, 64), (64, 128), (128, 256))
)
CIFAR_10 += 2 * 256 + 256 * 10 + 10


@pytest.mark.parametrize(
    ("shape", "n_outputs", "size"),
    [
        ((3, 32, 32), 10, CIFAR_10),
        ((1, 28, 28), 10, CIFAR_10 - 9 * 2 * 16),
        ((2, 8, 11), 100, CIFAR_10 - 9 * 16 + 90 * 257),
    ],
)
def test_wrn16x4_has_the_published_number_of_parameters_and_all_are_trained(shape, n_outputs, size):
    assert round(CIFAR_10 / 1e6, 1) == 2.7, "the table of Zagoruyko and Komodakis"
    torch.manual_seed(0)
    net = WRN16x4(shape, n_outputs)
    assert count_parameters(net) == size
    outputs = net(torch.randn(2, *shape))
    assert outputs.shape == (2, n_outputs)
    outputs.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WRN16x4(784, 10), r"give \(channels, height, width\), got 784"),
        (lambda: WRN16x4((28, 28, 1), 10), "the channels come first"),
        (lambda: WRN16x4((3, 32, 32), 10, depth=17), r"6n \+ 4"),
        (lambda: NaiveSVM(0, 1), "at least one input"),
        (lambda: NaiveSVM((3, 0), 1), "at least one input"),
        (lambda: make_network("wrn16-4", (3, 32, 32), 10), "Did you mean 'wrn16x4'"),
    ],
)
def test_bad_shapes_and_names(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_dense_networks_are_the_papers():
    linear = NaiveSVM((1, 1, 3), 2)
    assert not linear(torch.randn(5, 1, 1, 3)).any(), "it starts at zero"
    linear[1].weight.data = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]])
    linear[1].bias.data = torch.tensor([0.5, 0.0])
    assert linear(torch.tensor([[1.0, 1.0, 2.0]])).tolist() == [[9.5, 2.0]]
    net = ThreeLayerNet((1, 20, 25), 1).eval()
    assert [type(layer) for layer in net] == [nn.Flatten] + [nn.Linear, nn.BatchNorm1d, nn.ReLU] * 3 + [nn.Linear]
    assert [layer.out_features for layer in net if isinstance(layer, nn.Linear)] == [50, 25, 10, 1]
    # matrices, then scale and shift of each batch normalisation, then the output with its bias
    assert count_parameters(net) == 500 * 50 + 50 * 25 + 25 * 10 + 2 * (50 + 25 + 10) + 10 + 1
    images = torch.randn(6, 1, 20, 25)
    assert torch.equal(net(images), net(images.flatten(1)))
