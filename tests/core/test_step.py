"""The step of gamma: warm-up, limits, elimination, ranks of the rest, solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tamiz.core.rule import MASK_OPTIMIZERS, Rule
from tamiz.core.step import (
    SMALLEST_NORM,
    advance,
    current_ranking,
    eliminate,
    fill_budget,
    initial_state,
    is_closed,
    mixed_gradient,
    penalty_gradient,
    rank_survivors,
    unit,
)


def test_warm_up_leaves_everything_alone():
    rule = Rule(3, 1, warmup_steps=5)
    state = initial_state(rule)
    for step in range(1, 6):
        assert advance(state, np.ones(3), step, rule) is state
    assert advance(state, np.ones(3), 6, rule) is not state


def test_all_features_wanted_is_closed_from_the_start():
    rule = Rule(4, 4)
    state = initial_state(rule)
    assert is_closed(state, rule)
    after = advance(state, np.ones(4), 1, rule)
    assert after.gamma.tolist() == [1, 1, 1, 1]
    assert after.rank.tolist() == [1, 2, 3, 4]


def test_the_limit_decides_for_the_best_extrapolated_value():
    rule = Rule(5, 2, variant="hard", ramp_steps=10_000, max_steps=3)
    state = initial_state(rule)
    gradient = np.array([-1.0, 5.0, -1.0, 5.0, 1.0])
    for step in range(1, 4):
        state = advance(state, gradient, step, rule)
    assert sorted(np.flatnonzero(state.rank <= 2)) == [0, 2]
    assert sorted(state.rank) == [1, 2, 3, 4, 5]


def test_a_dead_feature_stays_dead_whatever_its_gradient():
    rule = Rule(6, 1, ramp_steps=40, mask_learning_rate=0.05)
    state, seen = initial_state(rule), np.zeros(6, bool)
    rng = np.random.default_rng(0)
    for step in range(1, 200):
        state = advance(state, rng.normal(size=6) - 5 * seen, step, rule)
        assert (state.gamma[seen] == 0).all()
        seen |= state.rank > 1
    assert seen.sum() == 5


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_the_ranking_is_a_full_order_at_any_moment(seed):
    rule = Rule(8, 2, ramp_steps=50, mask_learning_rate=0.05)
    rng = np.random.default_rng(seed)
    state = initial_state(rule)
    for step in range(1, 1 + seed % 90):
        state = advance(state, rng.normal(size=8), step, rule)
    assert sorted(current_ranking(state, rule)) == list(range(1, 9))


@pytest.mark.parametrize("optimizer", MASK_OPTIMIZERS)
def test_solvers_of_gamma_by_hand(optimizer):
    """The first two steps of each solver from its own formula; what leaves [0, 1] is clipped."""
    rule = Rule(4, 2, "hard", ramp_steps=100, mask_learning_rate=0.02, mask_optimizer=optimizer)
    state, gamma = initial_state(rule), np.ones(4)
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
    state, step = initial_state(rule), 0
    while not is_closed(state, rule) and step < rule.step_limit + 200:
        step += 1
        state = advance(state, direction + 0.1 * rng.normal(size=20), step, rule)
    assert is_closed(state, rule)
    assert sorted(state.rank) == list(range(1, 21))


@given(hnp.arrays(np.float64, st.integers(1, 15), elements=st.floats(-2, 2)), st.integers(1, 15), st.booleans())
def test_no_more_die_than_may_and_the_largest_survive(value, m, forced):
    m = min(m, value.size)
    rank = eliminate(value, np.zeros(value.size, dtype=int), m, forced)
    died, low = rank > 0, np.ones(value.size, bool) if forced else value <= 0
    assert died.sum() == min(low.sum(), value.size - m)
    assert not (died & ~low).any()
    # The ranks of the dead are the worst ones, in the order of their values; of equal ones the later index is worse.
    gone = sorted(np.flatnonzero(died), key=lambda i: (value[i], -i))
    assert [rank[i] for i in gone] == list(range(value.size, value.size - len(gone), -1))
    for i in np.flatnonzero(low & ~died):
        assert all((value[i], -i) > (value[j], -j) for j in gone)


def test_survivors_take_the_best_ranks_by_value_ties_by_index():
    rank = rank_survivors(np.array([0.5, 0.9, 0.5, -1.0]), np.array([0, 0, 0, 4]))
    assert rank.tolist() == [2, 1, 3, 4]


def test_a_budget_eliminates_from_the_worst_until_the_rest_fits():
    value, costs = np.array([-0.1, -0.4, 0.5, -0.2]), np.array([2.0, 1.0, 3.0, 4.0])
    assert eliminate(value, np.zeros(4, int), 0, costs=costs, limit=5.0).tolist() == [0, 4, 0, 3]
    assert eliminate(value, np.zeros(4, int), 0, costs=costs, limit=9.5).tolist() == [0, 4, 0, 0]
    assert eliminate(np.ones(4), np.zeros(4, int), 0, costs=costs, limit=1.0).tolist() == [0, 0, 0, 0]


def test_filling_takes_whatever_fits_in_the_order_of_the_ranks():
    rank, costs = np.array([2, 1, 3, 4, 5]), np.array([9.0, 5.0, 3.0, 4.0, 1.0])
    filled, n_kept = fill_budget(rank, 1, costs, limit=10.0)
    assert (filled.tolist(), n_kept) == ([4, 1, 2, 5, 3], 3)
    assert fill_budget(rank, 1, costs, limit=5.5)[1] == 1


vectors = hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e100, 1e100, allow_subnormal=False))


@given(vectors)
def test_unit_has_length_one_or_is_zero(x):
    z = unit(x)
    assert np.isfinite(z).all()
    largest = np.abs(x).max()
    if largest >= SMALLEST_NORM:
        assert np.linalg.norm(z) == pytest.approx(1.0)
    elif largest * x.size < SMALLEST_NORM:
        assert not z.any()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_unit_does_not_lose_tiny_or_huge_float32_gradients(scale):
    x = np.array([3.0, -4.0], dtype=np.float32) * np.float32(scale)
    np.testing.assert_allclose(unit(x), [0.6, -0.8], rtol=1e-6)


def test_nan_does_not_become_zero():
    assert np.isnan(unit(np.array([1.0, np.nan]))).any()


@pytest.mark.parametrize("zero", ["loss", "penalty", "both"])
def test_mixing_with_a_zero_gradient_has_no_nan(zero):
    loss = np.zeros(3) if zero in ("loss", "both") else np.ones(3)
    push = np.zeros(3) if zero in ("penalty", "both") else np.ones(3)
    mixed = mixed_gradient(loss, push, 0.5)
    assert np.isfinite(mixed).all()
    assert np.linalg.norm(mixed) == pytest.approx({"loss": 0.5, "penalty": 0.5, "both": 0.0}[zero])
