"""Losses by hand, against scikit-learn, and their gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss
from torch import tensor

from tamiz.networks.losses import (
    available_losses,
    encode_classes,
    get_loss,
    huber,
    logistic,
    n_outputs_for,
    softmax,
    squared_error,
    squared_hinge,
)


def random_case(loss, n_samples=7, seed=0):
    """Outputs for three classes (or a numeric target) and targets in the loss's form."""
    rng = np.random.default_rng(seed)
    if loss in ("squared_error", "huber"):
        return torch.tensor(rng.normal(size=(n_samples, 1)) * 2), torch.tensor(rng.normal(size=(n_samples, 1)))
    targets = encode_classes(rng.integers(0, 3, n_samples), 3, loss)
    return torch.tensor(rng.normal(size=(n_samples, 3)) * 2), targets


def test_squared_hinge_by_hand_for_three_classes():
    # Row 1, class 0: margins 1-2 -> 0, 1+0.5 -> 1.5^2, 1-1 -> 0: mean 0.75. Row 2, class 2: 1, 1, (1-0.5)^2: mean 0.75
    outputs = tensor([[2.0, 0.5, -1.0], [0.0, 0.0, 0.5]])
    targets = encode_classes(np.array([0, 2]), 3, "squared_hinge")
    assert squared_hinge(outputs, targets, reduction="none").tolist() == [0.75, 0.75]


def test_logistic_and_softmax_agree_with_scikit_learn():
    rng = np.random.default_rng(1)
    codes = np.array([0, 1, 2, 1, 0])
    outputs = rng.normal(size=(5, 3))
    weights = rng.uniform(0.1, 2, size=5)
    probabilities = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    ours = softmax(tensor(outputs), encode_classes(codes, 3, "softmax"), tensor(weights))
    assert ours.item() == pytest.approx(log_loss(codes, probabilities, sample_weight=weights))

    binary, scores = np.array([0, 1, 1, 0, 1]), outputs[:, :1]
    ours = logistic(tensor(scores), encode_classes(binary, 2, "logistic").double(), tensor(weights))
    expected = log_loss(binary, 1 / (1 + np.exp(-scores[:, 0])), sample_weight=weights)
    assert ours.item() == pytest.approx(expected)


def test_regression_losses_by_hand():
    outputs, targets = tensor([[1.0], [4.0]]), tensor([[1.5], [1.0]])
    assert squared_error(outputs, targets, reduction="none").tolist() == [0.25, 9.0]
    assert huber(outputs, targets, reduction="none").tolist() == [0.125, 2.5]


@pytest.mark.parametrize("loss", available_losses())
def test_weighted_mean(loss):
    outputs, targets = random_case(loss)
    each = get_loss(loss)(outputs, targets, reduction="none")
    weights = torch.arange(7, dtype=torch.float64)
    expected = (each * weights).sum() / weights.sum()
    torch.testing.assert_close(get_loss(loss)(outputs, targets, weights), expected)
    torch.testing.assert_close(get_loss(loss)(outputs, targets), each.mean())
    torch.testing.assert_close(get_loss(loss)(outputs, targets, weights, reduction="none"), each * weights)


@pytest.mark.parametrize("loss", available_losses())
def test_gradients_against_finite_differences(loss):
    outputs, targets = random_case(loss, seed=3)
    outputs.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: get_loss(loss)(s, targets), outputs)


def test_large_outputs_stay_finite():
    big = tensor([[1e4], [-1e4]])
    assert torch.isfinite(logistic(big, tensor([[-1.0], [1.0]])))
    assert torch.isfinite(softmax(tensor([[1e4, -1e4]]), tensor([1])))


def test_encoding():
    assert encode_classes(np.array([1, 0]), 2, "squared_hinge").tolist() == [[1.0], [-1.0]]
    assert encode_classes(np.array([1, 0]), 2, "softmax").tolist() == [1, 0]
    assert [n_outputs_for(loss, 2) for loss in ("squared_hinge", "logistic", "softmax")] == [1, 1, 2]
    with pytest.raises(ValueError, match="for regression; for classes take one of"):
        encode_classes(np.array([0, 1]), 2, "huber")


def test_bad_names():
    with pytest.raises(ValueError, match="did you mean 'squared_hinge'"):
        get_loss("square_hinge")
    with pytest.raises(ValueError, match="reduction must be"):
        huber(torch.zeros(1, 1), torch.zeros(1, 1), reduction="sum")
