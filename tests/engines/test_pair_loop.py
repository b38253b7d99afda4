"""The compiled loop of the second-order model: gradients against finite differences, steps against the rule in NumPy."""

import numpy as np
import pytest

from tamiz.core import VARIANTS, MaskState, Rule, Slot, advance, initial_state, is_closed, selection_schedule
from tamiz.core.losses import LOSSES, get_loss
from tamiz.engines import Schedule
from tamiz.engines.contract import Problem
from tamiz.engines.dense import mean_loss
from tamiz.engines.loop import Status
from tamiz.engines.memory import LoopSlot
from tamiz.engines.pair_loop import (
    count_coefficients,
    drop_features,
    gamma_gradients,
    new_pair_memory,
    open_gates,
    pair_gradient,
    pair_scores,
    run_pair_loop,
)
from tamiz.engines.record import training_numbers

CURVES = np.array([0, 2, 3, 6, 8])
FUNCTIONS = np.array([0, 2, 2, 4, 7])  # the second feature has no functions
N_FEATURES = 4
# Features of each coefficient: of a curve column twice its own, of a product both.
OF_FUNCTION = np.repeat(np.arange(N_FEATURES), np.diff(FUNCTIONS))
LEFT, RIGHT = np.nonzero(OF_FUNCTION[:, None] < OF_FUNCTION)
OF_CURVE = np.repeat(np.arange(N_FEATURES), np.diff(CURVES))


def columns_of(table):
    """Return the table with all products written out."""
    curves, functions = table[:, : CURVES[-1]], table[:, CURVES[-1] :]
    return np.hstack([curves, functions[:, LEFT] * functions[:, RIGHT]])


def gates_of(gamma):
    return np.concatenate([gamma[OF_CURVE], gamma[OF_FUNCTION[LEFT]] * gamma[OF_FUNCTION[RIGHT]]])


def make_table(n=30, seed=0):
    return np.random.default_rng(seed).normal(size=(n, CURVES[-1] + FUNCTIONS[-1])).astype(np.float32)


def test_products_are_those_written_out():
    table = make_table()
    rng = np.random.default_rng(1)
    n = count_coefficients(CURVES, FUNCTIONS)
    assert n == CURVES[-1] + LEFT.size
    folded, intercept = rng.normal(size=(2, n)).astype(np.float32), np.float32([0.5, -1.0])
    rows, scores = np.array([3, 8, 1]), np.zeros((3, 2), np.float32)
    pair_scores(table, rows, folded, N_FEATURES, CURVES, FUNCTIONS, intercept, scores)
    np.testing.assert_allclose(scores, columns_of(table)[rows] @ folded.T + intercept, rtol=1e-5, atol=1e-5)
    gradient, delta = np.ones((2, n), np.float32), rng.normal(size=(3, 2)).astype(np.float32)
    pair_gradient(table, rows, delta, n, N_FEATURES, CURVES, FUNCTIONS, gradient)
    np.testing.assert_allclose(gradient, delta.T @ columns_of(table)[rows], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", list(LOSSES))
def test_gradients_are_those_of_finite_differences(loss):
    table, rng = make_table(), np.random.default_rng(2)
    positive = np.where(rng.random(30) > 0.5, np.float32(1), np.float32(-1))
    targets = np.column_stack([positive, -positive])
    problem, rows = Problem(table, targets, rng.uniform(0.5, 2, 30)), np.arange(30)
    n = count_coefficients(CURVES, FUNCTIONS)
    weights = (0.2 * rng.normal(size=(2, n))).astype(np.float32)
    gamma = np.array([0.9, 0.5, 0.3, 0.7], np.float32)

    def value(weights, gamma):
        scores = columns_of(table).astype(np.float64) @ (gates_of(gamma) * weights).T
        return mean_loss(get_loss(loss), problem, scores, rows)

    gate = np.zeros(n, np.float32)
    open_gates(gamma, N_FEATURES, CURVES, FUNCTIONS, gate)
    np.testing.assert_allclose(gate, gates_of(gamma), rtol=1e-6)
    gradient, of_gamma = np.zeros((2, n), np.float32), np.zeros(N_FEATURES, np.float32)
    pair_gradient(table, rows, value(weights, gamma)[1], n, N_FEATURES, CURVES, FUNCTIONS, gradient)
    gamma_gradients(weights, gradient, n, N_FEATURES, CURVES, FUNCTIONS, gamma, False, of_gamma)

    small = 1e-2
    for i in range(N_FEATURES):
        shift = small * (np.arange(N_FEATURES) == i)
        expected = (value(weights, gamma + shift)[0] - value(weights, gamma - shift)[0]) / (2 * small)
        assert of_gamma[i] == pytest.approx(expected, abs=3e-3)
    for c, j in [(0, 0), (1, 5), (0, 8), (1, n - 1), (0, 15)]:
        shift = np.zeros((2, n))
        shift[c, j] = small
        expected = (value(weights + shift, gamma)[0] - value(weights - shift, gamma)[0]) / (2 * small)
        assert (gate * gradient)[c, j] == pytest.approx(expected, abs=3e-3)


class Reference:
    """The model with all products written out, its Adam and its mask in float64, written with NumPy alone."""

    def __init__(self, n_outputs, rule, schedule):
        self.rule, self.schedule, n = rule, schedule, CURVES[-1] + LEFT.size
        self.always = np.ones(N_FEATURES - rule.n_features)  # gamma of features that are always read
        self.weights, self.bias = np.zeros((n_outputs, n)), np.zeros(n_outputs)
        self.moments = [np.zeros((n_outputs, n)), np.zeros((n_outputs, n)), np.zeros(n_outputs), np.zeros(n_outputs)]
        self.mask, self.age = initial_state(rule, np.zeros(0)), 0

    @property
    def gamma(self):
        return np.concatenate([self.mask.gamma, self.always])

    def adam(self, gradient, first, second):
        plan = self.schedule
        first[:] = plan.beta1 * first + (1 - plan.beta1) * gradient
        second[:] = plan.beta2 * second + (1 - plan.beta2) * gradient**2
        unbiased = second / (1 - plan.beta2**self.age)
        return plan.learning_rate * first / (1 - plan.beta1**self.age) / (np.sqrt(unbiased) + plan.epsilon)

    def step(self, X, targets):
        """Take one step of squared error on a batch."""
        gamma = self.gamma
        gate = gates_of(gamma)
        error = X @ (gate * self.weights).T + self.bias - targets
        d = 2 * error / error.size
        g = d.T @ X
        both = (self.weights * g).sum(0)
        products = both[CURVES[-1] :]
        left, right = OF_FUNCTION[LEFT], OF_FUNCTION[RIGHT]
        of_gamma = np.bincount(OF_CURVE, both[: CURVES[-1]], N_FEATURES)
        of_gamma += np.bincount(left, products * gamma[right], N_FEATURES)
        of_gamma += np.bincount(right, products * gamma[left], N_FEATURES)
        self.age += 1
        self.bias -= self.adam(d.sum(0), *self.moments[2:])
        self.weights -= self.adam(gate * g + 2 * self.schedule.l2 * self.weights, *self.moments[:2])
        self.mask = advance(self.mask, of_gamma[: self.rule.n_features], self.age, self.rule)

    def take(self, memory, coefficients):
        """Take over the numbers of the compiled loop, so that rounding errors of float32 do not add up."""
        n, k = memory.loop_counters[LoopSlot.FEATURES], coefficients.size
        theirs = (memory.weights, memory.weights_first, memory.weights_second)
        for ours, other in zip((self.weights, *self.moments[:2]), theirs):
            ours[:, coefficients] = other[:, :k]
        self.bias[:], self.moments[2][:], self.moments[3][:] = memory.intercept
        parts = [self.mask.gamma.copy(), self.mask.first.copy(), self.mask.second.copy()]
        for part, other in zip(parts, (memory.gamma, memory.gamma_first, memory.gamma_second)):
            part[memory.feature[:n]] = other[:n]
        self.mask = MaskState(*parts, self.mask.rank, self.mask.age, self.mask.kept)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("n_outputs", "n_always"), [(1, 0), (3, 0), (1, 1)])
def test_same_batches_same_path(variant, n_outputs, n_always):
    table, rng = make_table(48, 3), np.random.default_rng(7)
    X = columns_of(table)
    targets = (X[:, :n_outputs] - X[:, 12 : 12 + n_outputs] + 0.3 * rng.normal(size=(48, n_outputs))).astype(np.float32)
    m, warmup = 2 - n_always, 20
    rule = Rule(N_FEATURES - n_always, m, variant=variant, warmup_steps=warmup, ramp_steps=400, mask_learning_rate=0.02)
    plan = Schedule(5e-3, 0.02, 7, warmup, 400, refinement_steps=0, refinement_l2=0.02, refinement_rates=(5e-3,))
    reference = Reference(n_outputs, rule, plan)
    memory = new_pair_memory(np.arange(48), n_outputs, m, plan.batch_size, 3, CURVES, FUNCTIONS, n_always)
    first = np.concatenate([OF_CURVE, OF_FUNCTION[LEFT]])
    second = np.concatenate([OF_CURVE, OF_FUNCTION[RIGHT]])
    for _ in range(3000):
        step = int(memory.counters[Slot.STEP]) + 1
        status = run_pair_loop(
            get_loss("squared_error").compiled, table, targets, np.ones(48, np.float32), memory, rule.numbers,
            training_numbers(rule, plan), np.array([5e-3]), *selection_schedule(rule, step, 1),
        )  # fmt: skip
        assert status != Status.DIVERGED
        end = memory.loop_counters[LoopSlot.POSITION]
        rows = memory.rows[end - (end % 7 or 7) : end]
        reference.step(X[rows].astype(np.float64), targets[rows])
        if status == Status.COMPACT:
            table = np.ascontiguousarray(table[:, drop_features(memory, m)])
        n = memory.loop_counters[LoopSlot.FEATURES]
        features = memory.feature[:n]
        present = np.concatenate([features, np.arange(rule.n_features, N_FEATURES)])
        coefficients = np.flatnonzero(np.isin(first, present) & np.isin(second, present))
        assert coefficients.size == memory.loop_counters[LoopSlot.WIDTH]
        np.testing.assert_allclose(memory.gamma[:n], reference.mask.gamma[features], atol=2e-5)
        np.testing.assert_array_equal(memory.rank[:n], reference.mask.rank[features])
        gate = gates_of(reference.gamma)[coefficients]
        ours, theirs = memory.weights[:, : coefficients.size], reference.weights[:, coefficients]
        np.testing.assert_allclose(ours[:, gate > 0], theirs[:, gate > 0], atol=2e-5)
        np.testing.assert_allclose(memory.folded[:, : coefficients.size], gate * ours, atol=2e-5)
        if step % 25 == 0:
            reference.take(memory, coefficients)
        if status == Status.DONE:
            break
    assert is_closed(reference.mask, rule)
    assert memory.counters[Slot.CLOSED]
    assert (memory.gamma[n:][:n_always] == 1).all()
