"""Groups in the compiled loop against the rule of ``tamiz.core`` in NumPy: same batches in, same gamma and weights out."""

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.core import VARIANTS, MaskState, Rule, Slot, advance, initial_state, is_closed, selection_schedule
from tamiz.core.losses import get_loss
from tamiz.engines import Schedule, loop
from tamiz.engines.design import Design
from tamiz.engines.loop import Status
from tamiz.engines.memory import LoopSlot, compact_vectors, merge_parts, new_memory, rows_in_parts
from tamiz.engines.record import training_numbers

SIZES = np.array([1, 4, 2, 3, 1, 5, 2, 2, 3, 1, 2, 4])
GROUPS = np.repeat(np.arange(SIZES.size), SIZES)


class Reference:
    """A set of weights, its Adam and its mask in float64, written with NumPy alone."""

    def __init__(self, n_outputs, rule, schedule, n_parts):
        self.rule, self.schedule, self.n_parts = rule, schedule, n_parts
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

    def step(self, X, targets, held_out):
        """Take one step of squared error on a batch; gamma moves by the rows held out or, without any, by all of them."""
        gate = self.mask.gamma[GROUPS]
        trained = ~held_out if held_out.any() else ~np.zeros_like(held_out)
        of_gamma = held_out if self.n_parts > 1 else trained
        error = X @ (gate * self.weights).T + self.bias - targets
        d = 2 * error / (trained.sum() * error.shape[1])
        g = d[trained].T @ X[trained]
        loss_gradient = np.bincount(GROUPS, weights=(self.weights * (d[of_gamma].T @ X[of_gamma])).sum(0))
        if self.n_parts > 1:
            loss_gradient *= trained.sum() / len(trained) / SIZES**0.25
        self.age += 1
        self.bias -= self.adam(d[trained].sum(0), *self.moments[2:])
        self.weights -= self.adam(gate * g + 2 * self.schedule.l2 * self.weights, *self.moments[:2])
        return loss_gradient

    def take(self, memory, columns, own):
        """Take over the numbers of the compiled loop, so that rounding errors of float32 do not add up."""
        n, k = memory.loop_counters[LoopSlot.FEATURES], columns.size
        for ours, theirs in zip(
            (self.weights, *self.moments[:2]), (memory.weights, memory.weights_first, memory.weights_second)
        ):
            ours[:, columns] = theirs[own, :k]
        self.bias[:], self.moments[2][:], self.moments[3][:] = memory.intercept[:, own]
        parts = [self.mask.gamma.copy(), self.mask.first.copy(), self.mask.second.copy()]
        for part, theirs in zip(parts, (memory.gamma, memory.gamma_first, memory.gamma_second)):
            part[memory.feature[:n]] = theirs[:n]
        self.mask = MaskState(*parts, self.mask.rank, self.mask.age, self.mask.kept)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("n_outputs", "sparse", "n_parts"), [(1, False, 1), (3, True, 1), (1, False, 3), (3, True, 4)])
def test_same_batches_same_path(variant, n_outputs, sparse, n_parts):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(48, GROUPS.size)).astype(np.float32)
    targets = X[:, :n_outputs] - X[:, 12 : 12 + n_outputs] + 0.3 * rng.normal(size=(48, n_outputs)).astype(np.float32)
    m, warmup = 4, 20
    rule = Rule(SIZES.size, m, variant=variant, warmup_steps=warmup, ramp_steps=400, mask_learning_rate=0.02)
    plan = Schedule(5e-3, 0.02, 7, warmup, 400, refinement_steps=0, refinement_l2=0.02, refinement_rates=(5e-3,))
    references = [Reference(n_outputs, rule, plan, n_parts) for _ in range(n_parts)]
    owns = [np.arange(part * n_outputs, (part + 1) * n_outputs) for part in range(n_parts)]
    part_of = np.empty(48, dtype=int)
    all_rows = rows_in_parts(targets, n_parts, seed=3)
    part_of[all_rows] = np.arange(48) % n_parts

    design = Design(sp.csr_matrix(X) if sparse else X, None, owned=False)
    functions = (*design.products, get_loss("squared_error").compiled)
    starts = np.concatenate([[0], np.cumsum(SIZES)])
    memory = new_memory(all_rows, n_outputs, GROUPS.size, m, plan.batch_size, 3, starts, n_parts)
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
        assert (part_of[rows] == np.arange(end - rows.size, end) % n_parts).all()
        gradient = sum(
            one.step(X[rows].astype(np.float64), targets[rows], (part_of[rows] == part) & (n_parts > 1))
            for part, one in enumerate(references)
        )
        mask = advance(references[0].mask, gradient, step, rule)
        if status == Status.COMPACT:
            width = compact_vectors(memory, m)
            columns = columns[memory.order[:width]]
            design.keep(memory.order, width)
        n = memory.loop_counters[LoopSlot.FEATURES]
        assert columns.tolist() == np.flatnonzero(np.isin(GROUPS, memory.feature[:n])).tolist()
        np.testing.assert_allclose(memory.gamma[:n], mask.gamma[memory.feature[:n]], atol=2e-5)
        np.testing.assert_array_equal(memory.rank[:n], mask.rank[memory.feature[:n]])
        alive = mask.gamma[GROUPS[columns]] > 0
        gate = memory.gamma[:n].repeat(np.bincount(GROUPS)[memory.feature[:n]])
        for one, own in zip(references, owns):
            one.mask = mask
            ours, theirs = memory.weights[own, : columns.size], one.weights[:, columns]
            np.testing.assert_allclose(ours[:, alive], theirs[:, alive], atol=2e-5)
            np.testing.assert_allclose(memory.folded[own, : columns.size], gate * ours, atol=1e-7)
            if step % 25 == 0:
                one.take(memory, columns, own)
        if status == Status.DONE:
            break
    assert is_closed(mask, rule)
    assert memory.counters[Slot.CLOSED]
    expected = np.mean([one.weights[:, columns] for one in references], axis=0)
    merge_parts(memory)
    np.testing.assert_allclose(memory.weights[:n_outputs, : columns.size], expected, atol=2e-5)
