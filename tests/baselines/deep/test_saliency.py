"""The saliency of small networks worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn, tensor

from tamiz.core.losses import get_loss
from tamiz.engines.contract import Problem
from tamiz.paper.deep import input_saliency
from tamiz.paper.deep_training import NAIVE, fit_network
from tamiz.torch.networks import NaiveSVM, ThreeLayerNet

HINGE = get_loss("squared_hinge")


def test_linear_network_has_the_saliency_of_its_weights():
    # |d gain / d x| = c |w| with one c for each sample, so shares are |w| / sum |w| for any data.
    net = NaiveSVM(4, 1)
    net.linear.weight.data = tensor([[1.0, -2.0, 0.0, 5.0]])
    X = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    codes = np.array([0, 1, 1, 0, 1, 1, 1, 1, 0])
    share = input_saliency(net, X, HINGE.encode(codes, 2), HINGE, codes)
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
    share = input_saliency(TwoUnits(), rows, HINGE.encode(codes, 2), HINGE, codes)
    np.testing.assert_allclose(share, [0.4375, 0.5625], rtol=1e-6)


def test_regression_by_hand():
    net = nn.Linear(2, 1)
    net.weight.data, net.bias.data = tensor([[1.0, -3.0]]), tensor([0.0])
    # gain 1 / (r^2 + 1), gradient 2 r / (r^2 + 1)^2 * w: the share is that of |w|
    share = input_saliency(net, tensor([[1.0, 0.0], [0.0, 1.0]]), tensor([[0.0], [0.0]]), get_loss("squared_error"))
    np.testing.assert_allclose(share, [0.25, 0.75], rtol=1e-6)


def test_repeating_the_rows_of_a_class_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5)).astype(np.float32)
    codes = np.repeat([0, 1], 10)
    torch.manual_seed(0)
    net = ThreeLayerNet(5, 1)
    fit_network(net, Problem(X, HINGE.encode(codes, 2)), NAIVE.with_epochs(5), HINGE)

    def share(index, batch_size=512):
        targets = HINGE.encode(codes[index], 2)
        return input_saliency(net, X[index], targets, HINGE, codes[index], batch_size)

    whole = share(np.arange(20))
    assert whole.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(share(np.r_[np.arange(20), np.arange(10)]), whole, rtol=1e-6)
    np.testing.assert_allclose(share(np.arange(20), batch_size=3), whole, rtol=1e-5)
    assert not np.allclose(share(np.r_[np.arange(20), 0]), whole)  # but within a class every sample counts


def test_a_network_blind_to_its_input_gives_zeros_and_keeps_its_mode():
    net = NaiveSVM(3, 1).train()
    share = input_saliency(net, torch.ones(2, 3), torch.ones(2, 1), HINGE)
    assert share.tolist() == [0.0, 0.0, 0.0]
    assert net.training
