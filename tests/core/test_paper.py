"""The paper's lemmas and theorems, one by one and by name, and its gradients against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tamiz.core.rule import Rule
from tamiz.core.step import advance, binary_penalty, count_penalty, initial_state, is_closed, penalty, penalty_gradient

unit_interval = st.floats(0.0, 1.0, allow_subnormal=False)
masks = hnp.arrays(np.float64, st.integers(1, 30), elements=unit_interval)
binary_masks = hnp.arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 1.0]))
positive = st.floats(0.01, 10.0)


@given(masks, positive, st.floats(0.01, 40.0))
def test_lemma_1_above_the_target_every_entry_of_the_gradient_is_at_least_mu(gamma, mu, target):
    if gamma.sum() > target:
        assert (penalty_gradient(gamma, target, mu) >= mu - 1e-12).all()


@given(masks, positive, st.floats(0.01, 40.0))
def test_lemma_2_below_the_target_every_entry_of_the_gradient_is_at_most_minus_mu(gamma, mu, target):
    if gamma.sum() < target:
        assert (penalty_gradient(gamma, target, mu) <= -mu + 1e-12).all()


@given(masks)
def test_lemma_3_the_binary_penalty_is_zero_exactly_for_binary_masks(gamma):
    # Below 1e-150 the product of an entry and its complement is still representable: no entry is lost to rounding.
    is_binary = bool(np.isin(gamma, [0.0, 1.0]).all())
    assert (binary_penalty(gamma) == 0) == is_binary


@given(masks, positive, st.integers(1, 30))
def test_lemma_4_the_count_penalty_is_zero_exactly_where_the_sum_is_m(gamma, mu, m):
    assert (count_penalty(gamma, m, mu) == 0) == (gamma.sum() == m)


@given(st.one_of(masks, binary_masks), positive, st.integers(1, 30))
def test_lemma_5_both_are_zero_exactly_for_a_binary_mask_with_m_ones(gamma, mu, m):
    is_solution = bool(np.isin(gamma, [0.0, 1.0]).all() and gamma.sum() == m)
    assert (penalty(gamma, m, mu) == 0) == is_solution


@given(masks, positive, st.integers(1, 30), st.floats(1e-4, 0.05))
def test_theorem_1_a_step_goes_towards_m_and_widens_the_gaps(gamma, mu, m, rate):
    """Above M all shrink, the smallest most; below M all grow, the largest most; every gap grows by the factor 1 + 2 rate."""
    step = -rate * penalty_gradient(gamma, m, mu)
    if gamma.sum() > m:
        assert (step < 0).all()
    elif gamma.sum() < m:
        assert (step > 0).all()
    order = np.argsort(gamma, kind="stable")
    gaps, moved = np.diff(gamma[order]), np.diff((gamma + step)[order])
    # Not only "no gap shrinks": without L12 in the gradient all entries would move alike and no gap would grow.
    np.testing.assert_allclose(moved, (1 + 2 * rate) * gaps, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(4, 30).flatmap(lambda f: st.tuples(st.just(f), st.integers(1, f - 1))), st.integers(0, 2**32 - 1))
def test_theorem_1_descent_on_the_penalty_alone_brings_the_sum_to_m_and_the_entries_to_zero_and_one(sizes, seed):
    n_features, m = sizes
    start = np.random.default_rng(seed).uniform(0.05, 0.95, size=n_features)
    gamma, rate = start.copy(), 1e-3
    for _ in range(8000):
        gamma = np.clip(gamma - rate * penalty_gradient(gamma, m), 0, 1)
    assert gamma.sum() == pytest.approx(m, abs=0.5)
    # All but the entry at the border are binary, and the order of the start decides which are kept.
    assert ((gamma > 0.02) & (gamma < 0.98)).sum() <= 1
    order = np.argsort(-start, kind="stable")
    assert (np.diff(gamma[order]) <= 1e-9).all()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 25).flatmap(lambda f: st.tuples(st.just(f), st.integers(1, f))),
    st.sampled_from(["hard", "soft", "ranking"]),
    st.integers(0, 2**32 - 1),
)
def test_theorem_2_trained_until_the_penalty_is_zero_exactly_m_features_are_selected(sizes, variant, seed):
    n_features, m = sizes
    rule = Rule(n_features, m, variant=variant, ramp_steps=60, mask_learning_rate=0.05)
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=n_features)
    state, step = initial_state(rule), 0
    while not is_closed(state, rule):
        step += 1
        state = advance(state, direction + rng.normal(size=n_features), step, rule)
        assert step < 1000, "the selection is bounded"
        assert ((state.gamma >= 0) & (state.gamma <= 1)).all()
        assert (state.rank == 0).sum() + ((state.rank > 0) & (state.rank <= m)).sum() >= m
    assert penalty(state.gamma, m) == 0
    assert state.gamma.sum() == m
    assert sorted(state.rank) == list(range(1, n_features + 1))
    assert ((state.gamma == 1) == (state.rank <= m)).all()


@pytest.mark.parametrize("variant", ["hard", "soft"])
@pytest.mark.parametrize("seed", range(4))
def test_theorem_2_the_penalty_selects_not_the_step_limit(variant, seed):
    """With a loss that wants to keep everything the penalty alone removes features, long before the limit."""
    rule = Rule(20, 5, variant=variant, ramp_steps=100, mask_learning_rate=0.05)
    rng = np.random.default_rng(seed)
    direction = -rng.uniform(0.1, 1.0, size=20)
    state, step = initial_state(rule), 0
    while not is_closed(state, rule) and step < rule.step_limit:
        step += 1
        state = advance(state, direction + 0.1 * rng.normal(size=20), step, rule)
    assert is_closed(state, rule)
    assert step < rule.step_limit / 2
    # What the loss wants most is what stays.
    assert set(np.flatnonzero(state.rank <= 5)) <= set(np.argsort(direction)[:8])


def test_mu_reaches_the_step():
    """With a large mu the penalty gradient is nearly constant, so that its direction, and with it the path, changes."""
    paths = []
    for mu in (0.01, 100.0):
        rule = Rule(6, 2, "hard", mu=mu, ramp_steps=10, mask_learning_rate=0.05)
        state = initial_state(rule)
        for step in range(1, 12):
            state = advance(state, np.linspace(-1, 1, 6), step, rule)
        paths.append(state.gamma)
    assert np.abs(paths[0] - paths[1]).max() > 1e-3


@given(masks, positive, st.floats(0.3, 40.0))
def test_gradients_match_finite_differences(gamma, mu, target):
    width = 1e-6
    if abs(gamma.sum() - target) < 2 * width:
        return  # on the kink there is no derivative
    numeric = np.empty_like(gamma)
    for i in range(gamma.size):
        up, down = gamma.copy(), gamma.copy()
        up[i] += width
        down[i] -= width
        numeric[i] = (penalty(up, target, mu) - penalty(down, target, mu)) / (2 * width)
    np.testing.assert_allclose(penalty_gradient(gamma, target, mu), numeric, atol=1e-6 * (1 + mu) * (1 + gamma.size))


def test_figure_1_the_corners_of_the_square():
    """L12 alone has its minima in all four corners; with LM only those with M = 1 ones are left."""
    corners = [np.array(c, dtype=float) for c in [(0, 0), (0, 1), (1, 0), (1, 1)]]
    assert [float(binary_penalty(c)) for c in corners] == [0, 0, 0, 0]
    assert [float(penalty(c, 1)) for c in corners] == [2, 0, 0, 2]


@pytest.mark.parametrize("target", [1.0, 13.0])
def test_with_costs_the_gradient_is_that_of_finite_differences(target):
    gamma, costs = np.random.default_rng(0).uniform(0.05, 0.95, 7), np.array([1.0, 2.0, 0.5, 3.0, 1.0, 1.0, 4.0])
    sides = [[penalty(gamma + sign * 1e-6 * unit, target, 1.0, costs) for sign in (1, -1)] for unit in np.eye(7)]
    np.testing.assert_allclose(
        penalty_gradient(gamma, target, 1.0, costs), -np.diff(sides, axis=1)[:, 0] / 2e-6, rtol=1e-5
    )
    np.testing.assert_array_equal(penalty_gradient(gamma, 3.0, 1.0, np.ones(7)), penalty_gradient(gamma, 3.0))


def test_tensors_have_the_same_penalty():
    torch = pytest.importorskip("torch")
    gamma = np.linspace(0.1, 0.9, 7)
    assert float(penalty(torch.tensor(gamma), 3.0)) == pytest.approx(float(penalty(gamma, 3.0)))
