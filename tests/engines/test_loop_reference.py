"""Groups and pairs in the compiled loop against NumPy with all products written out: same batches in, same gamma and weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from tamiz.core.losses import LOSSES, get_loss
from tamiz.core.rule import VARIANTS, Rule, Slot, selection_schedule
from tamiz.core.step import MaskState, advance, initial_state, is_closed
from tamiz.engines import loop
from tamiz.engines.contract import Problem
from tamiz.engines.dense import mean_loss
from tamiz.engines.design import Design, open_gates
from tamiz.engines.linear import training_numbers
from tamiz.engines.loop import LoopSlot, Piece, Status
from tamiz.engines.pairs import PairDesign
from tamiz.engines.schedule import Schedule

PLAN = Schedule(5e-3, 0.02, 7, 20, 400, refinement_steps=0, refinement_l2=0.02, refinement_rates=(5e-3,))


class Layout:
    """Columns of each feature, its functions, and the two features of every coefficient."""

    def __init__(self, curves, functions):
        self.curves, self.functions = np.array(curves), np.array(functions)
        self.n_features, self.n_curves = len(curves) - 1, curves[-1]
        of_curve = np.repeat(np.arange(self.n_features), np.diff(curves))
        of_function = np.repeat(np.arange(self.n_features), np.diff(functions))
        self.left, self.right = np.nonzero(of_function[:, None] < of_function)
        self.first = np.concatenate([of_curve, of_function[self.left]])
        self.second = np.concatenate([of_curve, of_function[self.right]])
        own = np.diff(functions)
        self.n_weights = np.diff(curves) + own * (functions[-1] - own)

    def columns(self, table):
        functions = table[:, self.n_curves :]
        return np.hstack([table[:, : self.n_curves], functions[:, self.left] * functions[:, self.right]])

    def gates(self, gamma):
        return np.where(self.first == self.second, gamma[self.first], gamma[self.first] * gamma[self.second])

    def gamma_gradient(self, of_coefficients, gamma):
        is_product = self.first != self.second
        other = np.where(is_product, gamma[self.second], 1.0)
        found = np.bincount(self.first, of_coefficients * other, self.n_features)
        return found + np.bincount(self.second, of_coefficients * gamma[self.first] * is_product, self.n_features)


GROUPS = Layout([0, 1, 5, 7, 10, 11, 16, 18, 20, 23, 24, 26, 30], [0] * 13)
PAIRS = Layout([0, 2, 3, 6, 8], [0, 2, 2, 4, 7])  # the second feature has no functions


def make_table(layout, n=48, seed=3):
    width = layout.n_curves + layout.functions[-1]
    return np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)


def make_design(layout, table, sparse=False):
    if layout.functions[-1]:
        return PairDesign(table, layout.curves, layout.functions)
    return Design(sp.csr_matrix(table) if sparse else table, None, False, layout.curves)


@njit
def call_products(
    scores_product, gradient_product, gamma_gradient, matrix, rows, folded, scores, delta, gradient, of_gamma
):
    """Call the products as the loop does: from compiled code."""
    width, gamma = folded.shape[1], np.array([0.9, 0.5, 0.3, 0.7], np.float32)
    scores_product(matrix, rows, folded, width, np.float32([0.5, -1.0]), scores)
    gradient_product(matrix, rows, delta, gradient, width)
    gate = np.zeros(width, np.float32)
    open_gates(matrix, gamma, gate)
    gamma_gradient(matrix, folded, gradient, np.zeros(width, np.float32), gamma, False, False, of_gamma)
    return gate


@pytest.mark.parametrize("loss", LOSSES)
def test_products_and_gradients_of_pairs(loss):
    table, rng, layout = make_table(PAIRS, 30), np.random.default_rng(2), PAIRS
    positive = np.where(rng.random(30) > 0.5, np.float32(1), np.float32(-1))
    problem, rows = Problem(table, np.column_stack([positive, -positive]), rng.uniform(0.5, 2, 30)), np.arange(30)
    n, gamma = layout.first.size, np.array([0.9, 0.5, 0.3, 0.7])
    weights = (0.2 * rng.normal(size=(2, n))).astype(np.float32)

    def value(weights, gamma):
        scores = layout.columns(table).astype(np.float64) @ (layout.gates(gamma) * weights).T
        return mean_loss(get_loss(loss), problem, scores, rows)

    design, delta = make_design(layout, table), value(weights, gamma)[1]
    assert design.n_coefficients == n
    scores, gradient, of_gamma = np.zeros((30, 2), np.float32), np.ones((2, n), np.float32), np.ones(4, np.float32)
    gate = call_products(*design.products, design.matrix, rows, weights, scores, delta, gradient, of_gamma)
    np.testing.assert_allclose(scores, layout.columns(table) @ weights.T + [0.5, -1.0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradient, delta.T @ layout.columns(table), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gate, layout.gates(gamma), rtol=1e-6)
    small = 1e-2
    for i in range(4):
        shift = small * (np.arange(4) == i)
        expected = (value(weights, gamma + shift)[0] - value(weights, gamma - shift)[0]) / (2 * small)
        assert of_gamma[i] == pytest.approx(expected, abs=3e-3)
    for c, j in [(0, 0), (1, 5), (0, 8), (1, n - 1), (0, 15)]:
        shift = np.zeros((2, n))
        shift[c, j] = small
        expected = (value(weights + shift, gamma)[0] - value(weights - shift, gamma)[0]) / (2 * small)
        assert (gate * gradient)[c, j] == pytest.approx(expected, abs=3e-3)


class Reference:
    """A set of weights, its Adam and its mask in float64, written with NumPy alone."""

    def __init__(self, layout, n_outputs, rule, n_parts):
        self.layout, self.n_parts, self.age = layout, n_parts, 0
        shapes = [(n_outputs, layout.first.size), (n_outputs,)]
        self.weights, self.bias = (np.zeros(shape) for shape in shapes)
        self.moments = [np.zeros(shape) for shape in shapes for _ in range(2)]
        self.mask, self.always = initial_state(rule), np.ones(layout.n_features - rule.n_features)

    def adam(self, gradient, first, second):
        first[:] = PLAN.beta1 * first + (1 - PLAN.beta1) * gradient
        second[:] = PLAN.beta2 * second + (1 - PLAN.beta2) * gradient**2
        unbiased = second / (1 - PLAN.beta2**self.age)
        return PLAN.learning_rate * first / (1 - PLAN.beta1**self.age) / (np.sqrt(unbiased) + PLAN.epsilon)

    @property
    def gamma(self):
        return np.concatenate([self.mask.gamma, self.always])

    def step(self, X, targets, held_out):
        """Take one step of squared error on a batch; return the gradient of gamma, of the rows held out where there are parts."""
        gate = self.layout.gates(self.gamma)
        trained = ~held_out if held_out.any() else ~np.zeros_like(held_out)
        of_gamma = held_out if self.n_parts > 1 else trained
        error = X @ (gate * self.weights).T + self.bias - targets
        d = 2 * error / (trained.sum() * error.shape[1])
        of_coefficients = (self.weights * (d[of_gamma].T @ X[of_gamma])).sum(0)
        gradient = self.layout.gamma_gradient(of_coefficients, self.gamma)
        if self.n_parts > 1:
            gradient *= trained.sum() / len(trained) / self.layout.n_weights**0.25
        self.age += 1
        self.bias -= self.adam(d[trained].sum(0), *self.moments[2:])
        self.weights -= self.adam(gate * (d[trained].T @ X[trained]) + 2 * PLAN.l2 * self.weights, *self.moments[:2])
        return gradient

    def take(self, memory, coefficients, own):
        """Take over the numbers of the compiled loop, so that rounding errors of float32 do not add up."""
        n, k = memory.loop_counters[LoopSlot.FEATURES], coefficients.size
        theirs = (memory.weights, memory.weights_first, memory.weights_second)
        for ours, other in zip((self.weights, *self.moments[:2]), theirs):
            ours[:, coefficients] = other[own, :k]
        self.bias[:], self.moments[2][:], self.moments[3][:] = memory.rest[:, own]
        parts = [part.copy() for part in self.mask[:3]]
        for part, other in zip(parts, memory.mask):
            part[memory.feature[:n]] = other[:n]
        self.mask = MaskState(*parts, *self.mask[3:])


CASES = [  # layout, outputs, sparse, parts, features that are always read
    (GROUPS, 1, False, 1, 0),
    (GROUPS, 3, True, 1, 0),
    (GROUPS, 1, False, 3, 0),
    (GROUPS, 3, True, 4, 0),
    (PAIRS, 1, False, 1, 0),
    (PAIRS, 3, False, 1, 0),
    (PAIRS, 1, False, 1, 1),
    (PAIRS, 1, False, 4, 1),
]


@pytest.mark.parametrize(
    ("variant", "layout", "n_outputs", "sparse", "n_parts", "n_always"),
    [(list(VARIANTS)[place % 3], *case) for place, case in enumerate(CASES)],
)
def test_same_batches_same_path(variant, layout, n_outputs, sparse, n_parts, n_always):
    table, rng = make_table(layout), np.random.default_rng(7)
    X = layout.columns(table)
    targets = X[:, :n_outputs] - X[:, 12 : 12 + n_outputs] + 0.3 * rng.normal(size=(48, n_outputs))
    targets = targets.astype(np.float32)
    n_features = layout.n_features - n_always
    rule = Rule(n_features, n_features // 3, variant, warmup_steps=20, ramp_steps=400, mask_learning_rate=0.02)
    references = [Reference(layout, n_outputs, rule, n_parts) for _ in range(n_parts)]
    owns = [np.arange(part * n_outputs, (part + 1) * n_outputs) for part in range(n_parts)]
    all_rows, part_of = loop.rows_in_parts(targets, n_parts, seed=3), np.empty(48, dtype=int)
    part_of[all_rows] = np.arange(48) % n_parts
    design, loss = make_design(layout, table, sparse), get_loss("squared_error").compiled
    memory = loop.new_memory(design, rule, targets, PLAN.batch_size, 3, n_parts)
    status, numbers = Status.RUNNING, (rule.numbers, training_numbers(rule, PLAN))
    while status != Status.DONE:
        step = int(memory.mask.counters[Slot.STEP]) + 1
        data = Piece(design.matrix, targets, np.ones(48, np.float32), *selection_schedule(rule, step, 1))
        status = loop.run(data, memory, *numbers, loss, *design.products)
        assert status != Status.DIVERGED
        end = memory.positions[0, 0]
        rows = memory.rows[end - (end % 7 or 7) : end]
        assert (part_of[rows] == np.arange(end - rows.size, end) % n_parts).all()
        held_out = [(part_of[rows] == part) & (n_parts > 1) for part in range(n_parts)]
        steps = [one.step(X[rows].astype(np.float64), targets[rows], out) for one, out in zip(references, held_out)]
        mask = advance(references[0].mask, np.sum(steps, axis=0)[:n_features], step, rule)
        if status == Status.COMPACT:
            loop.drop_eliminated(memory, design)
        features = memory.feature[: memory.loop_counters[LoopSlot.FEATURES]]
        present = np.concatenate([features, np.arange(n_features, layout.n_features)])
        coefficients = np.flatnonzero(np.isin(layout.first, present) & np.isin(layout.second, present))
        assert coefficients.size == memory.loop_counters[LoopSlot.WIDTH] == design.n_coefficients
        np.testing.assert_allclose(memory.mask.gamma[: features.size], mask.gamma[features], atol=2e-5)
        np.testing.assert_array_equal(memory.mask.rank[: features.size], mask.rank[features])
        for one, own in zip(references, owns):
            one.mask = mask
            gate = layout.gates(one.gamma)[coefficients]
            ours, theirs = memory.weights[own, : gate.size], one.weights[:, coefficients]
            np.testing.assert_allclose(ours[:, gate > 0], theirs[:, gate > 0], atol=2e-5)
            np.testing.assert_allclose(memory.folded[own, : gate.size], gate * ours, atol=2e-5)
            if step % 25 == 0:
                one.take(memory, coefficients, own)
    assert is_closed(mask, rule)
    assert memory.mask.counters[Slot.CLOSED]
    expected = np.mean([one.weights[:, coefficients] for one in references], axis=0)
    loop.merge_parts(memory)
    np.testing.assert_allclose(memory.weights[:n_outputs, : coefficients.size], expected, atol=2e-5)


def test_what_is_alive_moves_to_the_front():
    table = np.arange(28, dtype=np.float32).reshape(4, 7)
    starts = np.array([0, 2, 3, 6])  # the last column is always read
    for design, alive, columns in (
        (Design(table, None, False), [0, 2, 5], [0, 2, 5]),
        (Design(table, None, False, starts), [0, 2], [0, 1, 3, 4, 5, 6]),
        (
            PairDesign(np.hstack([table[:, :6], table[:, :4]]), starts, np.array([0, 2, 3, 4])),
            [0, 2],
            [0, 1, 3, 4, 5, 7, 9],
        ),
    ):
        n = 7 if design.matrix.starts.size == 0 else 3
        memory = loop.new_memory(design, Rule(n, len(alive) - 1), np.zeros((4, 2)), 2, seed=0)
        memory.weights[:] = np.arange(memory.weights.size).reshape(2, -1)
        dead = np.setdiff1d(np.arange(n), alive)
        memory.mask.rank[dead] = n - np.arange(dead.size)
        memory.mask.counters[Slot.OPEN] = len(alive)
        width = memory.weights.shape[1]
        loop.drop_eliminated(memory, design)
        assert memory.feature.tolist() == [*alive, *dead[::-1]]
        assert memory.weights[:, : len(columns)].tolist() == [columns, [width + column for column in columns]]
        assert memory.loop_counters[[LoopSlot.FEATURES, LoopSlot.WIDTH]].tolist() == [len(alive), len(columns)]
        if type(design) is Design:
            np.testing.assert_array_equal(design.matrix.values, table[:, columns])


def test_a_copy_shares_within_itself_what_the_memory_does():
    memory = loop.new_memory(Design(np.eye(6), None, False), Rule(6, 2), np.zeros((6, 2)), 4, seed=0)
    copied = loop.copy_memory(memory)
    for one in (memory, copied):
        assert one.gate is one.mask.gamma
        assert np.shares_memory(one.mask.gradient, one.folded)
        assert np.shares_memory(one.mask.order, one.gradient)
    for a, b in ((memory, copied), (memory.mask, copied.mask), (memory.history, copied.history)):
        assert not any(np.shares_memory(x, y) for x, y in zip(a, b) if isinstance(x, np.ndarray) and x.size)
