"""The step of gamma: warm-up, limits, elimination, both kinds of arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamiz.core import MaskState, Rule, advance, current_ranking, initial_state, is_closed, penalty_gradient
from tamiz.core.rule import MASK_OPTIMIZERS
from tamiz.core.step import mixed_gradient


def test_warm_up_leaves_everything_alone():
    rule = Rule(3, 1, warmup_steps=5)
    state = initial_state(rule, np.zeros(0))
    for step in range(1, 6):
        assert advance(state, np.ones(3), step, rule) is state
    assert advance(state, np.ones(3), 6, rule) is not state


def test_all_features_wanted_is_closed_from_the_start():
    rule = Rule(4, 4)
    state = initial_state(rule, np.zeros(0))
    assert is_closed(state, rule)
    after = advance(state, np.ones(4), 1, rule)
    assert after.gamma.tolist() == [1, 1, 1, 1]
    assert after.rank.tolist() == [1, 2, 3, 4]


def test_the_limit_decides_for_the_best_extrapolated_value():
    rule = Rule(5, 2, variant="hard", ramp_steps=10_000, max_steps=3)
    state = initial_state(rule, np.zeros(0))
    gradient = np.array([-1.0, 5.0, -1.0, 5.0, 1.0])
    for step in range(1, 4):
        state = advance(state, gradient, step, rule)
    assert sorted(np.flatnonzero(state.rank <= 2)) == [0, 2]
    assert sorted(state.rank) == [1, 2, 3, 4, 5]


def test_a_dead_feature_stays_dead_whatever_its_gradient():
    rule = Rule(6, 1, ramp_steps=40, mask_learning_rate=0.05)
    state, seen = initial_state(rule, np.zeros(0)), np.zeros(6, bool)
    rng = np.random.default_rng(0)
    for step in range(1, 200):
        state = advance(state, rng.normal(size=6) - 5 * seen, step, rule)
        assert (state.gamma[seen] == 0).all()
        seen |= state.rank > 1
    assert seen.sum() == 5


@pytest.mark.parametrize("variant", ["hard", "soft", "ranking"])
def test_tensors_and_arrays_follow_the_same_path(variant):
    torch = pytest.importorskip("torch")
    rule = Rule(12, 3, variant=variant, ramp_steps=80, warmup_steps=2, mask_learning_rate=0.03)
    rng = np.random.default_rng(1)
    a = initial_state(rule, np.zeros(0))
    b = initial_state(rule, torch.zeros(0, dtype=torch.float64))
    for step in range(1, 300):
        gradient = rng.normal(size=12) - np.linspace(0, 1, 12)
        a = advance(a, gradient, step, rule)
        b = advance(b, torch.from_numpy(gradient), step, rule)
        np.testing.assert_allclose(a.gamma, b.gamma.numpy(), atol=1e-12)
        assert a.rank.tolist() == b.rank.tolist()
    assert is_closed(a, rule)
    assert bool(is_closed(b, rule))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_the_ranking_is_a_full_order_at_any_moment(seed):
    rule = Rule(8, 2, ramp_steps=50, mask_learning_rate=0.05)
    rng = np.random.default_rng(seed)
    state = initial_state(rule, np.zeros(0))
    for step in range(1, 1 + seed % 90):
        state = advance(state, rng.normal(size=8), step, rule)
    assert sorted(current_ranking(state, rule)) == list(range(1, 9))


def test_float32_stays_float32():
    rule = Rule(4, 2, ramp_steps=10)
    state = initial_state(rule, np.zeros(0, np.float32))
    state = advance(state, np.ones(4, np.float32), 1, rule)
    assert {part.dtype for part in (state.gamma, state.first, state.second)} == {np.dtype(np.float32)}
    assert isinstance(state, MaskState)


@pytest.mark.parametrize("optimizer", MASK_OPTIMIZERS)
def test_solvers_of_gamma_by_hand(optimizer):
    """The first two steps of each solver from its own formula; what leaves [0, 1] is clipped."""
    rule = Rule(4, 2, "hard", ramp_steps=100, mask_learning_rate=0.02, mask_optimizer=optimizer)
    state, gamma = initial_state(rule, np.zeros(0)), np.ones(4)
    first, second = np.zeros(4), np.zeros(4)
    for step, direction in enumerate(([1.0, 2.0, -1.0, 0.5], [-1.0, 1.0, 3.0, 0.5]), start=1):
        mixed = mixed_gradient(np.array(direction), penalty_gradient(gamma, 2), step / 100)
        first, second = 0.5 * first + 0.5 * mixed, 0.999 * second + 0.001 * mixed**2
        root = np.sqrt(second / (1 - 0.999**step))
        move = {
            "adam": first / (1 - 0.5**step) / root,
            "rmsprop": mixed / root,
            "sign": np.sign(mixed),
            "sgd": np.sqrt(2) * mixed,
        }[optimizer]
        gamma = np.clip(gamma - 0.02 * move, 0, 1)
        state = advance(state, np.array(direction), step, rule)
        np.testing.assert_allclose(state.gamma, gamma, rtol=1e-5)


@pytest.mark.parametrize("optimizer", MASK_OPTIMIZERS)
@pytest.mark.parametrize("variant", ["hard", "soft"])
def test_every_solver_ends_with_exactly_m(optimizer, variant):
    rule = Rule(20, 5, variant, ramp_steps=100, mask_learning_rate=0.05, mask_optimizer=optimizer)
    rng = np.random.default_rng(0)
    direction = -rng.uniform(0.1, 1.0, size=20)
    state, step = initial_state(rule, np.zeros(0)), 0
    while not is_closed(state, rule) and step < rule.step_limit + 200:
        step += 1
        state = advance(state, direction + 0.1 * rng.normal(size=20), step, rule)
    assert is_closed(state, rule)
    assert sorted(state.rank) == list(range(1, 21))
