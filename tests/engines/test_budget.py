"""Fits within a budget."""

import numpy as np
import pytest

from tamiz.core.losses import get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Problem, fit_with_rule
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import linear_schedule

COSTS = [1, 2, 3, 4, 5, 6]


@pytest.fixture(scope="module")
def problem():
    X = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
    return Problem(X, np.where(X[:, 3] - X[:, 5] > 0, 1.0, -1.0)[:, None])


def fit(problem, **rule):
    schedule = linear_schedule(60, 2, "classification", ramp_steps=300, refinement_epochs=2)
    return fit_with_rule(LinearEngine(), problem, Rule(6, **rule, ramp_steps=300), get_loss("squared_hinge"), schedule)


@pytest.mark.parametrize("budget", [6, 7, 10, 20])
def test_no_other_feature_would_still_fit(problem, budget):
    before = problem.X.copy()
    selection = fit(problem, n_features_to_select=0, costs=COSTS, budget=budget).selection
    spent = np.asarray(COSTS)[selection.support].sum()
    left_out = np.asarray(COSTS)[~selection.support]
    assert spent <= budget
    assert (left_out + spent > budget).all()
    np.testing.assert_array_equal(problem.X, before)


def test_without_costs_it_is_the_engine_alone(problem):
    schedule = linear_schedule(60, 2, "classification", ramp_steps=300, refinement_epochs=2)
    rule, loss = Rule(6, 2, ramp_steps=300), get_loss("squared_hinge")
    one = fit_with_rule(LinearEngine(), problem, rule, loss, schedule)
    other = LinearEngine().fit(problem, rule, loss, schedule)
    np.testing.assert_array_equal(one.selection.ranking, other.selection.ranking)
