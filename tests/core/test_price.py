"""A price for each feature in place of the count penalty."""

import math

import numpy as np
import pytest

from tamiz.core.rule import Rule
from tamiz.core.step import advance, binary_penalty, decide_by_price, initial_state, is_closed, penalty_gradient

RAMP = 400


def run(strength, worth, rate=0.01):
    """Descend a loss with fixed weights, sum(worth * (1 - gamma) ** 2), with a price; return state and steps."""
    rule = Rule(worth.size, 0, strength=strength, ramp_steps=RAMP, warmup_steps=3, mask_learning_rate=rate)
    state, step = initial_state(rule), 0
    while not is_closed(state, rule):
        step += 1
        state = advance(state, -2 * worth * (1 - state.gamma), step, rule)
        assert step < 2 * RAMP + 200, "the mask never closed"
    return state, step


@pytest.mark.parametrize("strength", [0.02, 0.05, 0.2, 1.0])
def test_a_feature_stays_if_to_remove_it_costs_more_than_the_price(strength):
    # Without weights to make up for it, gamma = 1 - strength / (2 worth): above one half where the worth is above the price.
    worth = np.array([0.01, 0.03, 0.1, 0.5, 2.0, 0.0])
    state, _ = run(strength, worth)
    assert (state.gamma == 1).tolist() == (worth > strength).tolist()
    assert int(state.kept) == (worth > strength).sum()


def test_gamma_ends_binary_with_a_full_ranking():
    worth = np.random.default_rng(0).exponential(size=30)
    state, step = run(0.5, worth)
    assert set(state.gamma.tolist()) == {0.0, 1.0}
    assert float(binary_penalty(state.gamma)) == 0
    assert sorted(state.rank.tolist()) == list(range(1, 31))
    assert (state.rank[state.gamma == 1] <= state.kept).all()
    assert step >= RAMP + 3


def test_none_and_all_are_possible():
    worth = np.array([0.1, 0.2, 0.3])
    nothing, step = run(100.0, worth)
    assert nothing.gamma.sum() == 0
    assert int(nothing.kept) == 0
    assert step < RAMP  # all were eliminated, nothing is left to decide_by_price
    everything, _ = run(1e-6, worth)
    assert everything.gamma.tolist() == [1, 1, 1]


def test_without_a_count_the_penalty_is_that_of_not_being_binary():
    rule = Rule(3, 0, strength=0.1)
    gamma = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(penalty_gradient(gamma, 0.0, rule.numbers.mu), 1 - 2 * gamma)


def test_one_half_is_not_kept_and_what_was_eliminated_stays_so():
    rule = Rule(4, 0, strength=0.1)
    state = initial_state(rule)
    state = state._replace(gamma=np.array([0.5, 0.0, 0.51, 1.0]), rank=np.array([0, 4, 0, 0]))
    decided = decide_by_price(state, rule)
    assert decided.rank.tolist() == [3, 4, 2, 1]
    assert decided.gamma.tolist() == [0, 0, 0.51, 1]


@pytest.mark.parametrize("strength", [0, -1.0, math.inf, math.nan, True, "strong"])
def test_a_strength_that_is_none(strength):
    with pytest.raises(ValueError, match="strength must be a finite number above 0"):
        Rule(5, 0, strength=strength)


def test_the_selection_ends_with_the_ramp():
    assert Rule(5, 0, strength=0.1, warmup_steps=7, ramp_steps=50).step_limit == 57
