"""Losses against their formulas, compiled and for torch, gradients against differences, probabilities, gains, names."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from tamiz.core.losses import LOSSES, get_loss, names_of

torch = pytest.importorskip("torch")
tensor = torch.tensor

FORMULAS = {
    "squared_hinge": lambda s, y: (np.maximum(0, 1 - y * s) ** 2).mean(1),
    "logistic": lambda s, y: np.logaddexp(0, -y * s).mean(1),
    "softmax": lambda s, y: np.log(np.exp(s).sum(1)) - s[y > 0],
    "squared_error": lambda s, y: ((s - y) ** 2).mean(1),
    "huber": lambda s, y: np.where(abs(s - y) < 1, (s - y) ** 2 / 2, abs(s - y) - 0.5).mean(1),
}


@njit
def call(kernel, scores, targets, weights, gradient):
    """Call a kernel as compiled code does."""
    return kernel(scores, targets, weights, gradient)


def batch(name, n=9, outputs=3):
    rng = np.random.default_rng(0)
    scores, targets = rng.normal(scale=2, size=(n, outputs)), rng.normal(size=(n, outputs))
    if LOSSES[name].task == "classification":
        targets = np.where(np.arange(outputs) == rng.integers(outputs, size=n)[:, None], 1.0, -1.0)
    return scores, targets, rng.uniform(0.2, 2, size=n)


def value_and_gradient(name, *parts):
    gradient = np.zeros(parts[0].shape, np.float32)
    return call(LOSSES[name].compiled, *(part.astype(np.float32) for part in parts), gradient), gradient


@pytest.mark.parametrize("name", LOSSES)
def test_values_are_the_weighted_mean_of_the_formula_and_gradients_its_derivative(name):
    scores, targets, weights = batch(name)
    value, gradient = value_and_gradient(name, scores, targets, weights)
    assert value == pytest.approx((weights * FORMULAS[name](scores, targets)).mean(), rel=1e-5)
    numeric = np.empty_like(scores)
    for index in np.ndindex(scores.shape):
        shift = np.zeros_like(scores)
        shift[index] = 1e-5
        ends = [(weights * FORMULAS[name](scores + sign * shift, targets)).mean() for sign in (1, -1)]
        numeric[index] = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    outputs = tensor(scores, requires_grad=True)
    losses = LOSSES[name].torch(outputs, tensor(targets))
    np.testing.assert_allclose(losses.detach().numpy(), FORMULAS[name](scores, targets))
    (losses * tensor(weights)).mean().backward()
    np.testing.assert_allclose(outputs.grad.numpy(), numeric, atol=1e-6)
    inside = (0.2 * outputs.detach()).clamp(-0.9, 0.9).requires_grad_()  # of the clip of the gains
    assert torch.autograd.gradcheck(lambda s: LOSSES[name].gain(s, tensor(targets)), inside)


def test_probabilities_of_two_classes_are_logistic_and_others_raise():
    scores = np.array([[-800.0], [0.0], [math.log(3)]])
    expected = [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]
    for name in ("logistic", "softmax"):
        np.testing.assert_allclose(get_loss(name).class_probabilities(scores), expected)
    np.testing.assert_allclose(get_loss("squared_hinge").class_probabilities(scores / 2), expected)
    with pytest.raises(ValueError, match="gives no probabilities; these do: squared_hinge, logistic, softmax"):
        get_loss("squared_error").class_probabilities(scores)


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_probabilities_sum_to_one_and_extreme_scores_stay_finite(name):
    scores, targets, weights = batch(name)
    probabilities = LOSSES[name].probabilities(scores)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), scores.argmax(axis=1))
    for size in (90.0, -90.0, 1e4, 1e30):
        value, gradient = value_and_gradient(name, np.sign(scores) * size, targets, weights)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
        assert torch.isfinite(LOSSES[name].torch(tensor(np.sign(scores) * size), tensor(targets))).all()


def test_gains_by_hand():
    hinge = LOSSES["squared_hinge"].gain(tensor([[0.5], [0.5], [3.0], [-3.0]]), tensor([[1.0], [-1.0], [1.0], [1.0]]))
    assert hinge.tolist() == [2.25, 0.25, 4.0, 0.0]
    cross_entropy = LOSSES["softmax"].gain(tensor([[0.0, math.log(3.0)]]), tensor([[-1.0, 1.0]]))  # p = 3/4
    assert cross_entropy.item() == pytest.approx(math.log(4))
    assert LOSSES["logistic"].gain(tensor([[math.log(3.0)]]), tensor([[1.0]])).item() == pytest.approx(math.log(4))
    assert LOSSES["squared_error"].gain(tensor([[2.0]]), tensor([[0.0]])).item() == pytest.approx(0.2)


def test_the_gradient_of_a_gain_passes_the_clip():
    outputs = tensor([[5.0], [-5.0], [5.0]], requires_grad=True)
    targets = tensor([[1.0], [1.0], [-1.0]])
    LOSSES["squared_hinge"].gain(outputs, targets).sum().backward()
    # 2 (1 + y s) y at s clipped to 1, -1, 1: a sure and right sample counts most, a sure and wrong one not at all
    assert outputs.grad.ravel().tolist() == [4.0, 0.0, 0.0]
    # p is above 1 - 1e-7 here: without the straight path the gradient would be zero.
    outputs = torch.tensor([[18.0]], dtype=torch.float64, requires_grad=True)
    LOSSES["logistic"].gain(outputs, torch.ones(1, 1, dtype=torch.float64)).backward()
    probability = 1 / (1 + math.exp(-18))
    assert outputs.grad.item() == pytest.approx(probability * (1 - probability) / 1e-7, rel=1e-6)


def test_encoding():
    assert get_loss("squared_hinge").encode(np.array([1, 0]), 2).tolist() == [[1.0], [-1.0]]
    assert get_loss("softmax").encode(np.array([1, 0]), 2).tolist() == [[-1.0, 1.0], [1.0, -1.0]]
    assert [get_loss(loss).encode([0, 1], 2).shape[1] for loss in names_of("classification")] == [1, 1, 2]
    with pytest.raises(ValueError, match="for regression; for classes use one of"):
        get_loss("huber").encode(np.array([0, 1]), 2)


def test_bad_names():
    with pytest.raises(ValueError, match="Did you mean 'squared_hinge'"):
        get_loss("square_hinge")
