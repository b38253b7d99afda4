"""Every loss against its formula and its derivative against finite differences."""

import numpy as np
import pytest
from numba import njit

from tamiz.core.losses import LOSSES, get_loss


@njit
def _call(kernel, scores, targets, weights, gradient):
    """Call a kernel as the training loops do: from compiled code."""
    return kernel(scores, targets, weights, gradient)


FORMULAS = {
    "squared_hinge": lambda s, y: (np.maximum(0, 1 - y * s) ** 2).mean(1),
    "logistic": lambda s, y: np.logaddexp(0, -y * s).mean(1),
    "softmax": lambda s, y: np.log(np.exp(s).sum(1)) - s[y > 0],
    "squared_error": lambda s, y: ((s - y) ** 2).mean(1),
    "huber": lambda s, y: np.where(abs(s - y) < 1, (s - y) ** 2 / 2, abs(s - y) - 0.5).mean(1),
}


def batch(name, n=9, outputs=3):
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=2, size=(n, outputs))
    if LOSSES[name].task == "regression":
        targets = rng.normal(size=(n, outputs))
    else:
        labels = rng.integers(outputs, size=n)
        targets = np.where(np.arange(outputs) == labels[:, None], 1.0, -1.0)
    return scores, targets, rng.uniform(0.2, 2, size=n)


def value_and_gradient(name, scores, targets, weights):
    gradient = np.zeros(scores.shape, np.float32)
    args = [part.astype(np.float32) for part in (scores, targets, weights)]
    return _call(LOSSES[name].compiled, *args, gradient), gradient


@pytest.mark.parametrize("name", LOSSES)
def test_value_is_the_weighted_mean_of_the_formula(name):
    scores, targets, weights = batch(name)
    value, _ = value_and_gradient(name, scores, targets, weights)
    assert value == pytest.approx((weights * FORMULAS[name](scores, targets)).mean(), rel=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_is_the_derivative(name):
    scores, targets, weights = batch(name)
    _, gradient = value_and_gradient(name, scores, targets, weights)
    numeric = np.empty_like(scores)
    for index in np.ndindex(scores.shape):
        moved = [scores.copy(), scores.copy()]
        for sign, table in zip((1, -1), moved):
            table[index] += sign * 1e-5
        ends = [(weights * FORMULAS[name](table, targets)).mean() for table in moved]
        numeric[index] = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_the_torch_function_is_the_same_loss(name):
    torch = pytest.importorskip("torch")
    scores, targets, weights = batch(name)
    _, gradient = value_and_gradient(name, scores, targets, weights)
    outputs = torch.tensor(scores, requires_grad=True)
    each = LOSSES[name].torch(outputs, torch.tensor(targets))
    np.testing.assert_allclose(each.detach().numpy(), FORMULAS[name](scores, targets), rtol=1e-6)
    (each * torch.tensor(weights)).mean().backward()
    np.testing.assert_allclose(gradient, outputs.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_a_gain_is_large_where_the_loss_is_small(name):
    torch = pytest.importorskip("torch")
    _, targets, _ = batch(name)
    good, bad = torch.tensor(0.9 * targets), torch.tensor(-0.9 * targets)
    both = torch.tensor(targets)
    assert (LOSSES[name].gain(good, both) >= LOSSES[name].gain(bad, both)).all()


def test_unknown_names_raise_and_suggest():
    with pytest.raises(ValueError, match=r"Unknown loss 'hubber'\. Did you mean 'huber'"):
        get_loss("hubber")


def test_classes_cannot_be_encoded_for_a_regression_loss():
    with pytest.raises(ValueError, match="'huber' is for regression"):
        get_loss("huber").encode(np.array([0, 1]), 2)


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_probabilities_sum_to_one(name):
    scores, _, _ = batch(name)
    probabilities = LOSSES[name].probabilities(scores)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), scores.argmax(axis=1))


@pytest.mark.parametrize("name", ["logistic", "softmax"])
@pytest.mark.parametrize("size", [90.0, -90.0, 1e30])
def test_probabilistic_losses_survive_extreme_scores(name, size):
    scores, targets, weights = batch(name)
    value, gradient = value_and_gradient(name, np.sign(scores) * size, targets, weights)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
