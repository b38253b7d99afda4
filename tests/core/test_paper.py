"""The paper's lemmas and theorems, one by one and by name, and its gradients against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tamiz.core import (
    Rule,
    advance,
    binary_penalty,
    count_penalty,
    initial_state,
    is_closed,
    penalty,
    penalty_gradient,
)

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


@given(binary_masks)
def test_lemma_3_for_masks_that_are_binary(gamma):
    assert binary_penalty(gamma) == 0


@given(masks, positive, st.integers(1, 30))
def test_lemma_4_the_count_penalty_is_zero_exactly_where_the_sum_is_m(gamma, mu, m):
    assert (count_penalty(gamma, m, mu) == 0) == (gamma.sum() == m)


@given(st.one_of(masks, binary_masks), positive, st.integers(1, 30))
def test_lemma_5_both_are_zero_exactly_for_a_binary_mask_with_m_ones(gamma, mu, m):
    is_solution = bool(np.isin(gamma, [0.0, 1.0]).all() and gamma.sum() == m)
    assert (penalty(gamma, m, mu) == 0) == is_solution


@given(masks, positive, st.integers(1, 30), st.floats(1e-4, 0.05))
def test_theorem_1_a_step_goes_towards_m_and_widens_the_gaps(gamma, mu, m, rate):
    """Above M all shrink, the smallest most; below M all grow, the largest most."""
    gradient = penalty_gradient(gamma, m, mu)
    step = -rate * gradient
    order = np.argsort(gamma, kind="stable")
    if gamma.sum() > m:
        assert (step < 0).all()
    elif gamma.sum() < m:
        assert (step > 0).all()
    # The larger of two entries always gains on the smaller one.
    assert (np.diff(step[order]) >= -1e-12).all()
    moved = gamma + step
    assert (np.diff(moved[order]) >= np.diff(gamma[order]) - 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 25).flatmap(lambda f: st.tuples(st.just(f), st.integers(1, f))),
    st.sampled_from(["hard", "soft", "ranking"]),
    st.integers(0, 2**32 - 1),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_theorem_2_trained_until_the_penalty_is_zero_exactly_m_features_are_selected(sizes, variant, seed):
    n_features, m = sizes
    rule = Rule(n_features, m, variant=variant, ramp_steps=60, learning_rate=0.05)
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=n_features)
    state, step = initial_state(rule, np.zeros(0)), 0
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
