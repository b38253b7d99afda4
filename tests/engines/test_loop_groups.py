"""Groups in the compiled loop against the rule of ``tamiz.core`` in NumPy: same batches in, same gamma and weights out."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.core import VARIANTS, MaskState, Rule, Slot, advance, initial_state, is_closed, selection_schedule
from tamiz.core.losses import get_loss
from tamiz.engines import Schedule, loop
from tamiz.engines.design import Design
from tamiz.engines.loop import Status
from tamiz.engines.memory import LoopSlot, compact_vectors, new_memory
from tamiz.engines.record import training_numbers

SIZES = np.array([1, 4, 2, 3, 1, 5, 2, 2, 3, 1, 2, 4])
GROUPS = np.repeat(np.arange(SIZES.size), SIZES)


class Reference:
    """The model, its Adam and its mask in float64, written with NumPy alone."""

    def __init__(self, n_outputs, rule, schedule):
        self.rule, self.schedule = rule, schedule
        self.weights, self.bias = np.zeros((n_outputs, GROUPS.size)), np.zeros(n_outputs)
        self.moments = [
            np.zeros_like(self.weights),
            np.zeros_like(self.weights),
            np.zeros(n_outputs),
            np.zeros(n_outputs),
        ]
        self.mask, self.age = initial_state(rule, np.zeros(0)), 0

    def adam(self, gradient, first, second):
        plan = self.schedule
        first[:] = plan.beta1 * first + (1 - plan.beta1) * gradient
        second[:] = plan.beta2 * second + (1 - plan.beta2) * gradient**2
        unbiased = second / (1 - plan.beta2**self.age)
        return plan.learning_rate * first / (1 - plan.beta1**self.age) / (np.sqrt(unbiased) + plan.epsilon)

    def step(self, X, targets):
        """Take one step of squared error on a batch; return nothing, change everything."""
        gate = self.mask.gamma[GROUPS]
        error = X @ (gate * self.weights).T + self.bias - targets
        d = 2 * error / error.size
        g = d.T @ X
        gamma_gradient = np.bincount(GROUPS, weights=(self.weights * g).sum(0))
        self.age += 1
        self.bias -= self.adam(d.sum(0), *self.moments[2:])
        self.weights -= self.adam(gate * g + 2 * self.schedule.l2 * self.weights, *self.moments[:2])
        self.mask = advance(self.mask, gamma_gradient, self.age, self.rule)

    def take(self, memory, columns):
        """Take over the numbers of the compiled loop, so that rounding errors of float32 do not add up."""
        n, k = memory.loop_counters[LoopSlot.FEATURES], columns.size
        for ours, theirs in zip(
            (self.weights, *self.moments[:2]), (memory.weights, memory.weights_first, memory.weights_second)
        ):
            ours[:, columns] = theirs[:, :k]
        self.bias[:], self.moments[2][:], self.moments[3][:] = memory.intercept
        parts = [self.mask.gamma.copy(), self.mask.first.copy(), self.mask.second.copy()]
        for part, theirs in zip(parts, (memory.gamma, memory.gamma_first, memory.gamma_second)):
            part[memory.feature[:n]] = theirs[:n]
        self.mask = MaskState(*parts, self.mask.rank, self.mask.age, self.mask.kept)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_same_batches_same_path(variant, n_outputs, sparse):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(48, GROUPS.size)).astype(np.float32)
    targets = X[:, :n_outputs] - X[:, 12 : 12 + n_outputs] + 0.3 * rng.normal(size=(48, n_outputs)).astype(np.float32)
    m, warmup = 4, 20
    rule = Rule(SIZES.size, m, variant=variant, warmup_steps=warmup, ramp_steps=400, mask_learning_rate=0.02)
    plan = Schedule(5e-3, 0.02, 7, warmup, 400, refinement_steps=0, refinement_l2=0.02, refinement_rates=(5e-3,))
    reference = Reference(n_outputs, rule, plan)

    design = Design(sp.csr_matrix(X) if sparse else X, None, owned=False)
    functions = (*design.products, get_loss("squared_error").compiled)
    starts = np.concatenate([[0], np.cumsum(SIZES)])
    memory = new_memory(48, n_outputs, GROUPS.size, m, plan.batch_size, seed=3, starts=starts)
    columns = np.arange(GROUPS.size)
    for _ in range(3000):
        step = int(memory.counters[Slot.STEP]) + 1
        status = loop.run(
            *functions, design.matrix, targets, np.ones(48, np.float32), memory, rule.numbers,
            training_numbers(rule, plan), np.array([5e-3]), *selection_schedule(rule, step, 1),
        )  # fmt: skip
        assert status != Status.DIVERGED
        end = memory.loop_counters[LoopSlot.POSITION]
        rows = memory.rows[end - (end % 7 or 7) : end]
        reference.step(X[rows].astype(np.float64), targets[rows])
        if status == Status.COMPACT:
            width = compact_vectors(memory, m)
            columns = columns[memory.order[:width]]
            design.keep(memory.order, width)
        n = memory.loop_counters[LoopSlot.FEATURES]
        assert columns.tolist() == np.flatnonzero(np.isin(GROUPS, memory.feature[:n])).tolist()
        np.testing.assert_allclose(memory.gamma[:n], reference.mask.gamma[memory.feature[:n]], atol=2e-5)
        np.testing.assert_array_equal(memory.rank[:n], reference.mask.rank[memory.feature[:n]])
        alive = reference.mask.gamma[GROUPS[columns]] > 0
        ours, theirs = memory.weights[:, : columns.size], reference.weights[:, columns]
        np.testing.assert_allclose(ours[:, alive], theirs[:, alive], atol=2e-5)
        gate = memory.gamma[:n].repeat(np.bincount(GROUPS)[memory.feature[:n]])
        np.testing.assert_allclose(memory.folded[:, : columns.size], gate * ours, atol=1e-7)
        if step % 25 == 0:
            reference.take(memory, columns)
        if status == Status.DONE:
            break
    assert is_closed(reference.mask, rule)
    assert memory.counters[Slot.CLOSED]
