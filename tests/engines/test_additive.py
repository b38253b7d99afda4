"""The additive engine: exactly M columns, curves that are what was planted, the linear model where no curve is possible."""

import numpy as np
import pytest

from tamiz.core.losses import LOSSES, get_loss
from tamiz.core.rule import Rule
from tamiz.engines.additive import AdditiveEngine
from tamiz.engines.contract import Problem
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import additive_schedule


def fit_additive(X, targets, m, loss="squared_hinge", engine=None, groups=None):
    plan, problem = additive_schedule(X.shape[0], m, LOSSES[loss].task), Problem(X, targets, groups=groups)
    rule = Rule(problem.n_features, m, warmup_steps=plan.warmup_steps, ramp_steps=plan.ramp_steps)
    return (engine or AdditiveEngine()).fit(problem, rule, get_loss(loss), plan)


def u_shaped(n=300, f=40, seed=0):
    """A table in which the squares of two columns decide: a linear model sees neither."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, f)).astype(np.float32)
    return X, (X[:, 5] ** 2 + X[:, 21] ** 2)[:, None]


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "softmax", "squared_error", "huber"])
def test_u_shapes_are_found_by_every_loss(loss):
    X, score = u_shaped()
    high = score > np.median(score)
    targets = {"classification": np.where(high, 1.0, -1.0), "regression": (score - score.mean()) / score.std()}
    target = np.where(np.column_stack([~high, high]), 1.0, -1.0) if loss == "softmax" else targets[LOSSES[loss].task]
    fit = fit_additive(X, target, 2, loss)
    assert fit.selection.indices.tolist() == [5, 21]
    for column in range(2):
        grid, curve = fit.model.effects(column)
        assert (np.diff(grid) > 0).all()
        assert curve.shape == (1, grid.size)
        assert min(curve[0, 0], curve[0, -1]) > curve[0, grid.size // 2]
    scores = fit.model.scores(X[:, [5, 21]])[:, 0]
    assert np.corrcoef(scores, score[:, 0])[0, 1] > 0.85


def test_several_outputs_have_curves_of_their_own():
    X, _ = u_shaped()
    targets = np.column_stack([np.abs(X[:, 3]), X[:, 3], np.zeros(300)])
    fit = fit_additive(X, (targets - targets.mean(0)) / (targets.std(0) + 1e-9), 1, "squared_error")
    _, (valley, line, nothing) = fit.model.effects(0)
    assert fit.selection.indices.tolist() == [3]
    assert valley[0] > valley[4] < valley[-1]
    assert (np.diff(line) > 0).all()
    assert np.abs(nothing).max() < 0.05


def test_columns_of_two_values_give_the_linear_model():
    rng = np.random.default_rng(5)
    X = np.where(rng.random((150, 20)) > 0.5, 1.0, -0.5).astype(np.float32)
    target = np.where(X[:, 2] + X[:, 8] + X[:, 11] > 0.2, 1.0, -1.0)[:, None]
    additive = fit_additive(X, target, 3)
    linear = fit_additive(X, target, 3, engine=LinearEngine())
    assert additive.selection.ranking.tolist() == linear.selection.ranking.tolist()
    kept = X[:, linear.selection.indices]
    np.testing.assert_allclose(additive.model.scores(kept), linear.model.scores(kept), atol=1e-4)


def test_codes_of_categories_need_no_order():
    rng = np.random.default_rng(6)
    X = rng.integers(6, size=(400, 12)).astype(np.float32)
    height = np.array([0.0, 3.0, -2.0, 1.0, -3.0, 2.0])
    target = height[X[:, 7].astype(int)]
    fit = fit_additive(X, ((target - target.mean()) / target.std())[:, None], 1, "squared_error")
    assert fit.selection.indices.tolist() == [7]
    grid, curve = fit.model.effects(0)
    assert grid.tolist() == [0, 1, 2, 3, 4, 5]
    assert np.argsort(curve[0]).tolist() == np.argsort(height).tolist()


def test_groups_of_columns_are_kept_together():
    X, score = u_shaped()
    target = np.where(score > np.median(score), 1.0, -1.0)
    groups = np.arange(40) % 10  # columns 5 and 21 are in the groups 5 and 1
    fit = fit_additive(X, target, 2, groups=groups)
    assert fit.selection.indices.tolist() == [1, 5]
    kept = np.flatnonzero(np.isin(groups, [1, 5]))
    assert fit.model.starts.size - 1 == kept.size == 8
    scores = fit.model.scores(X[:, kept])[:, 0]
    assert (np.sign(scores) == target[:, 0]).mean() > 0.8
