"""The pieces that the paper leaves open: degenerate gradients, deaths, ranks, limits, both kinds of arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tamiz.core import (
    Rule,
    State,
    advance,
    alpha,
    current_ranking,
    deaths,
    initial_state,
    is_closed,
    mixed_gradient,
    project,
    ranking_target,
    relaxation,
    soft_target,
    survivors_ranked,
    unit,
)

vectors = hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e100, 1e100, allow_subnormal=False))


@given(vectors)
def test_unit_has_length_one_or_is_zero(x):
    z = unit(x)
    assert np.isfinite(z).all()
    length = np.linalg.norm(z)
    assert length == pytest.approx(1.0) if np.abs(x).max() > 0 else length == 0


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_unit_does_not_lose_tiny_or_huge_float32_gradients(scale):
    x = np.array([3.0, -4.0], dtype=np.float32) * np.float32(scale)
    np.testing.assert_allclose(unit(x), [0.6, -0.8], rtol=1e-6)


@pytest.mark.parametrize("zero", ["loss", "penalty", "both"])
def test_mixing_with_a_zero_gradient_has_no_nan(zero):
    loss = np.zeros(3) if zero in ("loss", "both") else np.ones(3)
    push = np.zeros(3) if zero in ("penalty", "both") else np.ones(3)
    mixed = mixed_gradient(loss, push, 0.5)
    assert np.isfinite(mixed).all()
    assert np.linalg.norm(mixed) == pytest.approx({"loss": 0.5, "penalty": 0.5, "both": 0.0}[zero])


def test_beta_scales_the_mixture():
    a, b = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    np.testing.assert_allclose(mixed_gradient(a, b, 0.25, beta=3.0), 3.0 * mixed_gradient(a, b, 0.25))


def test_alpha_rises_to_one_and_stays():
    assert [alpha(t, 4) for t in range(7)] == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_targets_of_the_variants():
    assert soft_target(11, 10, 0.75) == 2.5
    assert soft_target(10, 10, 0.75) == 10
    assert [relaxation(t, 10, 0.5) for t in (0, 10, 15, 20, 99)] == [0.5, 0.5, 0.75, 1.0, 1.0]
    falling = [ranking_target(t, 100, 1000) for t in range(30)]
    assert falling[0] == 1000
    assert falling[25:] == [1.0] * 5
    assert np.allclose(np.diff(np.log(falling[:26])), np.log(falling[1] / falling[0]))


@given(hnp.arrays(np.float64, st.integers(1, 15), elements=st.floats(-2, 2)), st.integers(1, 15), st.booleans())
def test_no_more_die_than_may_and_the_largest_survive(value, m, forced):
    m = min(m, value.size)
    rank = deaths(value, np.zeros(value.size, dtype=int), m, forced)
    died, low = rank > 0, np.ones(value.size, bool) if forced else value <= 0
    assert died.sum() == min(low.sum(), value.size - m)
    assert not (died & ~low).any()
    # The ranks of the dead are the worst ones, in the order of their values; of equal ones the later index is worse.
    gone = sorted(np.flatnonzero(died), key=lambda i: (value[i], -i))
    assert [rank[i] for i in gone] == list(range(value.size, value.size - len(gone), -1))
    for i in np.flatnonzero(low & ~died):
        assert all((value[i], -i) > (value[j], -j) for j in gone)


def test_survivors_take_the_best_ranks_by_value_ties_by_index():
    rank = survivors_ranked(np.array([0.5, 0.9, 0.5, -1.0]), np.array([0, 0, 0, 4]))
    assert rank.tolist() == [2, 1, 3, 4]


def test_projection():
    assert project(np.array([-1.0, 0.25, 2.0])).tolist() == [0.0, 0.25, 1.0]


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


def test_the_limit_decides_for_the_best_heading():
    rule = Rule(5, 2, variant="hard", ramp_steps=10_000, max_steps=3)
    state = initial_state(rule, np.zeros(0))
    pull = np.array([-1.0, 5.0, -1.0, 5.0, 1.0])
    for step in range(1, 4):
        state = advance(state, pull, step, rule)
    assert sorted(np.flatnonzero(state.rank <= 2)) == [0, 2]
    assert sorted(state.rank) == [1, 2, 3, 4, 5]


def test_a_dead_feature_stays_dead_whatever_its_gradient():
    rule = Rule(6, 1, ramp_steps=40, learning_rate=0.05)
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
    rule = Rule(12, 3, variant=variant, ramp_steps=80, warmup_steps=2, learning_rate=0.03)
    rng = np.random.default_rng(1)
    a = initial_state(rule, np.zeros(0))
    b = initial_state(rule, torch.zeros(0, dtype=torch.float64))
    for step in range(1, 300):
        pull = rng.normal(size=12) - np.linspace(0, 1, 12)
        a = advance(a, pull, step, rule)
        b = advance(b, torch.from_numpy(pull), step, rule)
        np.testing.assert_allclose(a.gamma, b.gamma.numpy(), atol=1e-12)
        assert a.rank.tolist() == b.rank.tolist()
    assert is_closed(a, rule)
    assert bool(is_closed(b, rule))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_the_ranking_is_a_full_order_at_any_moment(seed):
    rule = Rule(8, 2, ramp_steps=50, learning_rate=0.05)
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
    assert isinstance(state, State)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variant": "medium"}, "variant must be one of 'hard', 'soft', 'ranking', got 'medium'"),
        ({"n_features_to_select": 0}, "from 1 to the 5 features there are, got 0"),
        ({"n_features_to_select": 6}, "from 1 to the 5 features there are, got 6"),
        ({"mu": 0.0}, "mu is out of range"),
        ({"rho": 1.5}, "rho is out of range"),
        ({"beta": -1.0}, "beta is out of range"),
        ({"ramp_steps": 0}, "ramp_steps is out of range"),
        ({"warmup_steps": -1}, "warmup_steps is out of range"),
        ({"max_steps": 0}, "max_steps is out of range"),
        ({"learning_rate": 0.0}, "learning_rate is out of range"),
        ({"beta1": 1.0}, "beta1 is out of range"),
        ({"beta2": 1.0}, "beta2 is out of range"),
        ({"epsilon": 0.0}, "epsilon is out of range"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Rule(**{"n_features": 5, "n_features_to_select": 2, **change})
