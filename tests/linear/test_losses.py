"""Every loss against its formula and its derivative against finite differences."""

import numpy as np
import pytest

from tamiz.linear.losses import LOSSES, evaluate

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


def value_and_slope(name, scores, targets, weights):
    slope = np.zeros(scores.shape, np.float32)
    args = [part.astype(np.float32) for part in (scores, targets, weights)]
    return LOSSES[name].function(*args, slope), slope


@pytest.mark.parametrize("name", LOSSES)
def test_value_is_the_weighted_mean_of_the_formula(name):
    scores, targets, weights = batch(name)
    value, _ = value_and_slope(name, scores, targets, weights)
    assert value == pytest.approx((weights * FORMULAS[name](scores, targets)).mean(), rel=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_slope_is_the_derivative(name):
    scores, targets, weights = batch(name)
    _, slope = value_and_slope(name, scores, targets, weights)
    numeric = np.empty_like(scores)
    for index in np.ndindex(scores.shape):
        moved = [scores.copy(), scores.copy()]
        for sign, table in zip((1, -1), moved):
            table[index] += sign * 1e-5
        ends = [(weights * FORMULAS[name](table, targets)).mean() for table in moved]
        numeric[index] = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(slope, numeric, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_the_number_of_a_loss_leads_to_its_function(name):
    scores, targets, weights = batch(name)
    expected, slope = value_and_slope(name, scores, targets, weights)
    other = np.zeros_like(slope)
    args = [part.astype(np.float32) for part in (scores, targets, weights)]
    assert evaluate(LOSSES[name].kind, *args, other) == expected
    np.testing.assert_array_equal(slope, other)


@pytest.mark.parametrize("name", ["logistic", "softmax"])
@pytest.mark.parametrize("size", [90.0, -90.0, 1e30])
def test_probabilistic_losses_survive_extreme_scores(name, size):
    scores, targets, weights = batch(name)
    value, slope = value_and_slope(name, np.sign(scores) * size, targets, weights)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()
