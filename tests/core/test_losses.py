"""Losses by hand, against scikit-learn, compiled against torch, and their gradients against finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit
from sklearn.metrics import log_loss

from tamiz.core.losses import LOSSES, get_loss, names_of

torch = pytest.importorskip("torch")
tensor = torch.tensor


@njit
def call(kernel, scores, targets, weights, gradient):
    """Call a kernel as compiled code does."""
    return kernel(scores, targets, weights, gradient)


def targets_of(loss, codes, n_classes):
    return torch.as_tensor(get_loss(loss).encode(np.asarray(codes), n_classes))


def random_case(loss, n_samples=7, seed=0):
    """Return outputs for three classes (or a numeric target) and targets as the loss takes them, float64."""
    rng = np.random.default_rng(seed)
    if get_loss(loss).task == "regression":
        return tensor(rng.normal(size=(n_samples, 1)) * 2), tensor(rng.normal(size=(n_samples, 1)))
    targets = targets_of(loss, rng.integers(0, 3, n_samples), 3).double()
    return tensor(rng.normal(size=(n_samples, 3)) * 2), targets


def test_squared_hinge_by_hand_for_three_classes():
    # Row 1, class 0: margins 1-2 -> 0, 1+0.5 -> 1.5^2, 1-1 -> 0: mean 0.75. Row 2, class 2: 1, 1, (1-0.5)^2: mean 0.75
    outputs = tensor([[2.0, 0.5, -1.0], [0.0, 0.0, 0.5]])
    targets = targets_of("squared_hinge", [0, 2], 3)
    assert LOSSES["squared_hinge"].torch(outputs, targets).tolist() == [0.75, 0.75]


def test_logistic_and_softmax_agree_with_scikit_learn():
    rng = np.random.default_rng(1)
    codes = np.array([0, 1, 2, 1, 0])
    outputs = rng.normal(size=(5, 3))
    probabilities = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    ours = LOSSES["softmax"].torch(tensor(outputs), targets_of("softmax", codes, 3)).mean()
    assert ours.item() == pytest.approx(log_loss(codes, probabilities))

    binary, scores = np.array([0, 1, 1, 0, 1]), outputs[:, :1]
    ours = LOSSES["logistic"].torch(tensor(scores), targets_of("logistic", binary, 2).double()).mean()
    assert ours.item() == pytest.approx(log_loss(binary, 1 / (1 + np.exp(-scores[:, 0]))))


def test_probabilities_of_two_classes_are_logistic_and_others_raise():
    scores = np.array([[-800.0], [0.0], [math.log(3)]])
    expected = [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]
    for name in ("logistic", "softmax"):
        np.testing.assert_allclose(get_loss(name).class_probabilities(scores), expected)
    np.testing.assert_allclose(get_loss("squared_hinge").class_probabilities(scores / 2), expected)
    with pytest.raises(ValueError, match="gives no probabilities; these do: squared_hinge, logistic, softmax"):
        get_loss("squared_error").class_probabilities(scores)


def test_regression_losses_by_hand():
    outputs, targets = tensor([[1.0], [4.0]]), tensor([[1.5], [1.0]])
    assert LOSSES["squared_error"].torch(outputs, targets).tolist() == [0.25, 9.0]
    assert LOSSES["huber"].torch(outputs, targets).tolist() == [0.125, 2.5]


@pytest.mark.parametrize("loss", LOSSES)
def test_compiled_and_torch_agree_in_value_and_gradient(loss):
    outputs, targets = (part.float() for part in random_case(loss, seed=2))
    weights = torch.linspace(0, 2, 7)
    outputs.requires_grad_()
    expected = (LOSSES[loss].torch(outputs, targets) * weights).mean()
    expected.backward()
    gradient = np.empty(outputs.shape, dtype=np.float32)
    kernel = LOSSES[loss].compiled
    scores = np.ascontiguousarray(outputs.detach().numpy())
    value = call(kernel, scores, targets.numpy(), weights.numpy(), gradient)
    assert value == pytest.approx(expected.item(), rel=1e-5)
    np.testing.assert_allclose(gradient, outputs.grad.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("face", ["torch", "gain"])
def test_gradients_against_finite_differences(loss, face):
    outputs, targets = random_case(loss, seed=3)
    outputs = (0.2 * outputs).clamp(-0.9, 0.9).requires_grad_()  # inside the clip of the gains
    assert torch.autograd.gradcheck(lambda s: getattr(LOSSES[loss], face)(s, targets), outputs)


def test_large_outputs_stay_finite():
    big = tensor([[1e4], [-1e4]])
    assert torch.isfinite(LOSSES["logistic"].torch(big, tensor([[-1.0], [1.0]]))).all()
    assert torch.isfinite(LOSSES["softmax"].torch(tensor([[1e4, -1e4]]), tensor([[-1.0, 1.0]]))).all()


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
    assert [get_loss(loss).n_outputs(2) for loss in names_of("classification")] == [1, 1, 2]
    with pytest.raises(ValueError, match="for regression; for classes use one of"):
        get_loss("huber").encode(np.array([0, 1]), 2)


def test_bad_names():
    with pytest.raises(ValueError, match="Did you mean 'squared_hinge'"):
        get_loss("square_hinge")


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
    return call(LOSSES[name].compiled, *args, gradient), gradient


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
