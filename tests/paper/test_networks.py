"""Networks of the paper: the dense ones, and WRN-16-4 with its published size."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tamiz.paper.networks import NaiveSVM, ThreeLayerNet, WRN16x4, make_network


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


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (2, 8, 11)])
def test_forward_and_backward(shape):
    torch.manual_seed(0)
    net = WRN16x4(shape, 10)
    outputs = net(torch.randn(2, *shape))
    assert outputs.shape == (2, 10)
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
        (lambda: make_network("q", 3, 1), r"Unknown network 'q'. There are: linear, mlp, wrn16x4"),
    ],
)
def test_bad_shapes_and_names(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_shapes_are_flattened(name):
    net = make_network(name, (1, 4, 5), 3).eval()
    images = torch.randn(6, 1, 4, 5)
    assert torch.equal(net(images), net(images.flatten(1)))
