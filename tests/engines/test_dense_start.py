"""Mean losses of scores, and the best constant ones."""

import numpy as np
import pytest

from tamiz.core.losses import get_loss
from tamiz.engines.contract import Problem
from tamiz.engines.dense import constant_loss, mean_loss


def test_the_mean_loss_and_its_gradient_are_weighted():
    problem = Problem(np.zeros((3, 1)), np.array([[1.0], [2.0], [5.0]]), np.array([1.0, 1.0, 2.0]))
    scores = np.array([[0.0], [2.0]], dtype=np.float32)
    value, gradient = mean_loss(get_loss("squared_error"), problem, scores, np.array([0, 1]))
    step = np.float32(1e-2)
    for i in range(2):
        moved = scores.copy()
        moved[i] += step
        above = mean_loss(get_loss("squared_error"), problem, moved, np.array([0, 1]))[0]
        moved[i] -= 2 * step
        below = mean_loss(get_loss("squared_error"), problem, moved, np.array([0, 1]))[0]
        assert gradient[i, 0] == pytest.approx((above - below) / (2 * step), abs=1e-2)
    assert value > 0


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_no_constant_is_better_than_the_best(loss):
    problem = Problem(np.zeros((5, 1)), np.array([[1.0], [2.0], [2.5], [3.0], [9.0]]))
    rows = np.arange(5)
    best = constant_loss(get_loss(loss), problem, rows)
    tried = [
        mean_loss(get_loss(loss), problem, np.full((5, 1), level, dtype=np.float32), rows)[0]
        for level in np.linspace(0, 9, 50)
    ]
    assert best <= min(tried) + 1e-4
    assert best == pytest.approx(min(tried), abs=0.05)
