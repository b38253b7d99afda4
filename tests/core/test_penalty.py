"""The penalties, beside their definitions and by finite differences."""

import numpy as np
import pytest

from tamiz.core.step import binary_penalty, count_penalty, penalty, penalty_gradient


@pytest.fixture
def gamma():
    return np.random.default_rng(0).uniform(0.05, 0.95, 7)


def test_the_binary_penalty_is_the_difference_of_the_norms(gamma):
    assert binary_penalty(gamma) == pytest.approx(np.abs(gamma).sum() - (gamma**2).sum())
    assert binary_penalty(np.array([0.0, 1.0, 1.0])) == 0.0


@pytest.mark.parametrize("mu", [0.0, 1.0, 2.5])
def test_the_count_penalty_is_zero_on_the_target_only(gamma, mu):
    total = gamma.sum()
    assert count_penalty(gamma, total, mu) == 0.0
    assert count_penalty(gamma, total - 2, mu) == pytest.approx(2 * (1 + mu))
    assert count_penalty(gamma, total + 2, mu) == pytest.approx(2 * (1 + mu))


@pytest.mark.parametrize("target", [1.0, 6.5])
@pytest.mark.parametrize("costs", [None, np.array([1.0, 2.0, 0.5, 3.0, 1.0, 1.0, 4.0])])
def test_the_gradient_is_that_of_finite_differences(gamma, target, costs):
    if costs is not None:
        target *= 2
    step = 1e-6
    numeric = [
        (penalty(gamma + step * unit, target, 1.0, costs) - penalty(gamma - step * unit, target, 1.0, costs))
        / (2 * step)
        for unit in np.eye(gamma.size)
    ]
    np.testing.assert_allclose(penalty_gradient(gamma, target, 1.0, costs), numeric, rtol=1e-5)


def test_costs_of_one_change_nothing(gamma):
    ones = np.ones_like(gamma)
    assert penalty(gamma, 3.0, 1.0, ones) == penalty(gamma, 3.0)
    np.testing.assert_array_equal(penalty_gradient(gamma, 3.0, 1.0, ones), penalty_gradient(gamma, 3.0))


def test_tensors_give_the_same(gamma):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(gamma)
    assert float(penalty(tensor, 3.0)) == pytest.approx(float(penalty(gamma, 3.0)))
    np.testing.assert_allclose(penalty_gradient(tensor, 3.0).numpy(), penalty_gradient(gamma, 3.0))
