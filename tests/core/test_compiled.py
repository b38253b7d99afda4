"""The compiled step of gamma against ``tamiz.core.step.advance``, step by step, and its sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamiz.core.compiled import NOT_FINITE, MaskArrays, advance_in_place, sort_worst_first
from tamiz.core.rule import N_SLOTS, VARIANTS, Rule, Slot, selection_schedule
from tamiz.core.step import advance, fill_budget, initial_state, is_closed


class Compiled:
    """The compiled state beside one of the core."""

    def __init__(self, rule):
        f = rule.n_features
        self.rule = rule
        self.gamma = np.ones(f, np.float32)
        self.first, self.second = np.zeros(f, np.float32), np.zeros(f, np.float32)
        self.rank, self.order = np.zeros(f, np.int32), np.empty(f, np.int32)
        self.counters = np.zeros(N_SLOTS, np.int64)
        self.counters[[Slot.OPEN, Slot.KEPT]] = f, rule.n_features_to_select

    def numbers(self):
        numbers, n_kept = self.rule.numbers, int(self.counters[Slot.KEPT])
        if numbers.costs is None or n_kept == 0:
            return numbers
        return numbers._replace(n_features_to_select=n_kept, costs=np.ones_like(numbers.costs))

    def advance(self, gradient, step):
        (alpha,), (target,) = selection_schedule(self.rule, step, 1)
        mask = MaskArrays(self.gamma, self.first, self.second, self.rank, gradient.copy(), self.order, self.counters)
        return advance_in_place(mask, alpha, target, step >= self.rule.step_limit, self.numbers())


@pytest.mark.parametrize(
    ("variant", "optimizer", "budget"),
    [(variant, "adam", None) for variant in VARIANTS]
    + [("hard", "rmsprop", None), ("soft", "sgd", None), ("soft", "adam", 20.0), ("ranking", "adam", 20.0)],
)
@pytest.mark.parametrize("seed", range(3))
def test_follows_the_core(variant, optimizer, budget, seed):
    rng = np.random.default_rng(seed)
    costs = None if budget is None else rng.integers(1, 9, size=25).astype(float)
    options = {"ramp_steps": 200, "mask_learning_rate": 0.02, "mask_optimizer": optimizer}
    rule = Rule(25, 4 if budget is None else 0, variant, costs=costs, budget=budget, **options)
    compiled, state = Compiled(rule), initial_state(rule)
    direction = rng.normal(size=25)
    for step in range(1, 800):
        gradient = (direction + rng.normal(size=25)).astype(np.float32)
        state = advance(state, gradient.astype(np.float64), step, rule)
        compiled.advance(gradient, step)
        np.testing.assert_allclose(compiled.gamma, state.gamma, atol=2e-4)
        assert bool(compiled.counters[Slot.CLOSED]) == bool(is_closed(state, rule))
    assert compiled.counters[Slot.CLOSED] == 1
    assert compiled.counters[Slot.KEPT] == state.kept == compiled.gamma.sum()
    np.testing.assert_array_equal(compiled.rank, state.rank)
    if budget is not None:
        assert costs[compiled.gamma == 1].sum() <= 20
        filled, n_kept = fill_budget(compiled.rank, int(state.kept), costs, rule.limit)
        spent = costs[filled <= n_kept].sum()
        assert spent <= 20 < spent + costs[filled > n_kept].min()


def test_the_step_limit_decides_within_a_budget():
    costs = np.array([1.0, 2.0, 3.0, 4.0])
    rule = Rule(4, 0, variant="hard", max_steps=3, costs=costs, budget=5.0)
    compiled, state = Compiled(rule), initial_state(rule)
    for step in range(1, 4):
        gradient = np.array([1.0, -1.0, -2.0, 2.0], np.float32)
        compiled.advance(gradient, step)
        state = advance(state, gradient.astype(float), step, rule)
    assert compiled.counters[[Slot.OPEN, Slot.FORCED, Slot.KEPT]].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(compiled.rank, state.rank)
    assert (compiled.rank <= 2).tolist() == [False, True, True, False]


def test_features_that_reach_zero_in_one_step_leave_exactly_m():
    rule = Rule(6, 2, "hard", ramp_steps=10_000, mask_learning_rate=0.1)
    compiled = Compiled(rule)
    for step in range(1, 15):
        compiled.advance(np.array([-1, 1, 1, 1, 1, 1], np.float32), step)
    assert compiled.counters[Slot.OPEN] == 0, "the selection has ended"
    assert compiled.rank.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1.0, 1e30])
def test_only_the_direction_of_the_gradient_counts(scale):
    """Denormal gradients once asked for a factor beyond float32, which froze gamma for good."""
    rule = Rule(4, 1, ramp_steps=50, mask_learning_rate=0.05)
    compiled = Compiled(rule)
    gradient = (np.array([-300.0, 100.0, -200.0, 400.0]) * scale).astype(np.float32)
    for step in range(1, 300):
        assert compiled.advance(gradient, step) != NOT_FINITE
    assert compiled.counters[Slot.CLOSED] == 1
    assert compiled.gamma.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_changes_nothing(bad):
    compiled = Compiled(Rule(3, 1, ramp_steps=50))
    compiled.advance(np.ones(3, np.float32), 1)
    before = [part.copy() for part in (compiled.gamma, compiled.first, compiled.second, compiled.rank)]
    assert compiled.advance(np.array([1, bad, 1], np.float32), 2) == NOT_FINITE
    for old, new in zip(before, (compiled.gamma, compiled.first, compiled.second, compiled.rank)):
        np.testing.assert_array_equal(old, new)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60))
def test_sorting_puts_the_worst_first_and_of_equals_the_later(values):
    key = np.array(values, np.float32)
    order = np.arange(key.size, dtype=np.int32)
    sort_worst_first(order, key.size, key)
    assert order.tolist() == sorted(range(key.size), key=lambda i: (key[i], -i))
