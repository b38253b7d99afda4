"""Gains by hand and by finite differences; the saliency of small networks worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn, tensor

from tamiz.networks import NaiveSVM, ThreeLayerNet, fit_network
from tamiz.networks.losses import encode_classes
from tamiz.networks.saliency import gain, input_saliency


def test_gains_by_hand():
    hinge = gain(tensor([[0.5], [0.5], [3.0], [-3.0]]), tensor([[1.0], [-1.0], [1.0], [1.0]]), "squared_hinge")
    assert hinge.tolist() == [2.25, 0.25, 4.0, 0.0]
    cross_entropy = gain(tensor([[0.0, math.log(3.0)]]), tensor([1]), "softmax")  # p = 3/4
    assert cross_entropy.item() == pytest.approx(math.log(4))
    assert gain(tensor([[math.log(3.0)]]), tensor([[1.0]]), "logistic").item() == pytest.approx(math.log(4))
    assert gain(tensor([[2.0]]), tensor([[0.0]]), "squared_error").item() == pytest.approx(0.2)
    with pytest.raises(ValueError, match="Unknown loss"):
        gain(tensor([[2.0]]), tensor([[0.0]]), "hinge-ish")


@pytest.mark.parametrize("loss", ["squared_hinge", "softmax", "logistic", "squared_error"])
def test_gradients_of_gains_against_finite_differences(loss):
    rng = np.random.default_rng(0)
    outputs = torch.tensor(rng.uniform(-0.9, 0.9, size=(6, 3)), requires_grad=True)  # inside the clip
    if loss == "squared_error":
        targets = torch.tensor(rng.normal(size=(6, 3)))
    else:
        targets = encode_classes(rng.integers(0, 3, 6), 3, loss)
    assert torch.autograd.gradcheck(lambda s: gain(s, targets, loss), outputs)


def test_the_gradient_passes_the_clip():
    outputs = tensor([[5.0], [-5.0], [5.0]], requires_grad=True)
    targets = tensor([[1.0], [1.0], [-1.0]])
    gain(outputs, targets, "squared_hinge").sum().backward()
    # 2 (1 + y s) y at s clipped to 1, -1, 1: a sure and right sample counts most, a sure and wrong one not at all
    assert outputs.grad.ravel().tolist() == [4.0, 0.0, 0.0]
    # p is above 1 - 1e-7 here: without the straight path the gradient would be zero.
    outputs = torch.tensor([[18.0]], dtype=torch.float64, requires_grad=True)
    gain(outputs, torch.ones(1, 1, dtype=torch.float64), "logistic").backward()
    probability = 1 / (1 + math.exp(-18))
    assert outputs.grad.item() == pytest.approx(probability * (1 - probability) / 1e-7, rel=1e-6)


def test_linear_network_has_the_saliency_of_its_weights():
    # |d gain / d x| = c |w| with one c for each sample, so shares are |w| / sum |w| for any data.
    net = NaiveSVM(4, 1)
    net.linear.weight.data = tensor([[1.0, -2.0, 0.0, 5.0]])
    X = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    codes = np.array([0, 1, 1, 0, 1, 1, 1, 1, 0])
    share = input_saliency(net, X, encode_classes(codes, 2, "squared_hinge"), "squared_hinge", codes)
    np.testing.assert_allclose(share, [1 / 8, 2 / 8, 0, 5 / 8], rtol=1e-6)


class TwoUnits(nn.Module):
    """s = 2 relu(x0) - relu(x1) / 2, whose gradient depends on the sample."""

    def __init__(self):
        super().__init__()
        self.output = nn.Parameter(tensor([[2.0], [-0.5]]))

    def forward(self, x):
        return torch.relu(x) @ self.output


def test_saliency_of_a_network_by_hand():
    rows = tensor([[0.25, -1.0], [2.0, 1.0], [-1.0, 1.0]])
    codes = np.array([1, 1, 0])  # targets +1, +1, -1
    # row 0: s = 0.5,         2 (1 + 0.5) = 3, ds/dx = (2, 0)     -> (6, 0)
    # row 1: s = 3.5, as 1:   2 (1 + 1) = 4,   ds/dx = (2, -0.5)  -> (8, 2)
    # row 2: s = -0.5, y -1:  2 (1 + 0.5) = 3, ds/dx = (0, -0.5)  -> (0, 1.5)
    # class 1: (14, 2) / 16 = (0.875, 0.125); class 0: (0, 1.5) / 1.5 = (0, 1); sum (0.875, 1.125), over 2
    share = input_saliency(TwoUnits(), rows, encode_classes(codes, 2, "squared_hinge"), "squared_hinge", codes)
    np.testing.assert_allclose(share, [0.4375, 0.5625], rtol=1e-6)


def test_regression_by_hand():
    net = nn.Linear(2, 1)
    net.weight.data, net.bias.data = tensor([[1.0, -3.0]]), tensor([0.0])
    # gain 1 / (r^2 + 1), gradient 2 r / (r^2 + 1)^2 * w: the share is that of |w|
    share = input_saliency(net, tensor([[1.0, 0.0], [0.0, 1.0]]), tensor([[0.0], [0.0]]), "squared_error")
    np.testing.assert_allclose(share, [0.25, 0.75], rtol=1e-6)


def test_repeating_the_rows_of_a_class_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5)).astype(np.float32)
    codes = np.repeat([0, 1], 10)
    torch.manual_seed(0)
    net = ThreeLayerNet(5, 1)
    fit_network(net, X, encode_classes(codes, 2, "squared_hinge"), epochs=5)

    def share(index, batch_size=512):
        targets = encode_classes(codes[index], 2, "squared_hinge")
        return input_saliency(net, X[index], targets, "squared_hinge", codes[index], batch_size)

    whole = share(np.arange(20))
    assert whole.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(share(np.r_[np.arange(20), np.arange(10)]), whole, rtol=1e-6)
    np.testing.assert_allclose(share(np.arange(20), batch_size=3), whole, rtol=1e-5)
    assert not np.allclose(share(np.r_[np.arange(20), 0]), whole)  # but within a class every sample counts


def test_a_network_blind_to_its_input_gives_zeros_and_keeps_its_mode():
    net = NaiveSVM(3, 1).train()
    share = input_saliency(net, torch.ones(2, 3), torch.ones(2, 1), "squared_hinge")
    assert share.tolist() == [0.0, 0.0, 0.0]
    assert net.training
