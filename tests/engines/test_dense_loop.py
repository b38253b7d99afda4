"""The compiled dense network and PyTorch: same weights and batches in, same gamma, weights and statistics out, step by step."""

import numpy as np
import pytest

from tamiz.core import VARIANTS, MaskState, Rule, Slot, advance, initial_state, is_closed, selection_schedule
from tamiz.core.losses import get_loss
from tamiz.engines.contract import Problem
from tamiz.engines.dense import DenseRun
from tamiz.engines.dense_loop import most_rows, run_dense
from tamiz.engines.design import Design
from tamiz.engines.layers import Row, first_layer_products, network_of, views
from tamiz.engines.loop import LoopSlot, Piece, Status
from tamiz.engines.schedule import Schedule

HIDDEN = (9, 6, 4)
LOSSES = [
    ("squared_hinge", 1), ("squared_hinge", 3), ("logistic", 2), ("softmax", 3), ("squared_error", 1), ("huber", 2),
]  # fmt: skip
# An epsilon of 1e-8 would turn the rounding error of a gradient of zero into a whole step.
EPSILON = 1e-4
SCHEDULE = Schedule(
    learning_rate=5e-3, l2=0.02, batch_size=9, warmup_steps=10, ramp_steps=200, refinement_l2=0.004, refinement_steps=40,
    refinement_rates=(2e-3, 1e-3), average=0.5, epsilon=EPSILON,
)  # fmt: skip


def problem(loss, outputs, n=60, f=26):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, f)).astype(np.float32)
    scores = X[:, :outputs] * 2 + X[:, 3 : 3 + outputs] + rng.normal(size=(n, outputs)) * 0.3
    if loss == "softmax":
        targets = np.where(np.arange(outputs) == scores.argmax(1)[:, None], 1.0, -1.0)
    elif loss in ("squared_hinge", "logistic"):
        targets = np.where(scores > 0, 1.0, -1.0)
    else:
        targets = scores
    weights = rng.uniform(0.5, 1.5, size=n)
    return X, targets.astype(np.float32), (weights / weights.mean()).astype(np.float32)


class Compiled:
    """The compiled network, one step at a time."""

    def __init__(self, X, targets, weights, rule, loss, schedule=SCHEDULE):
        self.rule, self.targets, self.n_features = rule, targets, X.shape[1]
        self.functions = (get_loss(loss).compiled, *first_layer_products())
        problem, design = Problem(X, targets, weights), Design(X, None, owned=False)
        self.run = DenseRun(HIDDEN, problem, rule, get_loss(loss), schedule, design, (3, 0), [np.arange(0)])
        self.weights = weights

    @property
    def memory(self):
        return self.run.memory

    def step(self):
        """Take one step; return the rows of its batch and the status."""
        run, memory = self.run, self.run.memory
        before = int(memory.positions[0, 0]) % memory.rows.size
        steps = selection_schedule(self.rule, int(memory.mask.counters[Slot.STEP]) + 1, 1)
        data = Piece(run.design.matrix, self.targets, self.weights, *steps)
        status = run_dense(data, memory, run.numbers, run.training, *self.functions)
        rows = memory.rows[0, before : memory.positions[0, 0]].copy()
        if status == Status.COMPACT:
            run.drop()
        assert status != Status.DIVERGED
        return rows, status

    def spread(self, part):
        """Rows of the working set over all columns."""
        width = self.memory.loop_counters[LoopSlot.WIDTH]
        full = np.zeros((self.n_features, *part.shape[1:]), dtype=np.float32)
        full[self.memory.feature[:width]] = part[:width]
        return full

    def arrays(self, row):
        """Row of the parameters in the order and the shapes of the torch network, without padding."""
        memory = self.memory
        first = {Row.VALUE: memory.weights, Row.FIRST: memory.weights_first, Row.SECOND: memory.weights_second}[row]
        sizes = (*HIDDEN, self.targets.shape[1])
        found = [self.spread(first[0])[:, : HIDDEN[0]].T]
        for i, (scale, shift, weights, _, _) in enumerate(views(network_of(memory.rest, 0), row, 0)):
            found += [scale[: sizes[i]], shift[: sizes[i]], weights[: sizes[i], : sizes[i + 1]].T]
        return [*found, memory.rest.parameters[0, row][-sizes[-1] :]]

    def statistics(self):
        found = []
        for size, (_, _, _, mean, variance) in zip(HIDDEN, views(network_of(self.memory.rest, 0), Row.VALUE, 0)):
            found += [mean[:size], variance[:size]]
        return found

    def mask_state(self):
        memory = self.memory
        width = int(memory.loop_counters[LoopSlot.WIDTH])
        rank = np.zeros(self.n_features, dtype=np.int64)
        rank[memory.feature] = np.arange(1, self.n_features + 1)
        rank[memory.feature[:width]] = memory.mask.rank[:width]
        state = [self.spread(part) for part in memory.mask[:3]]
        return MaskState(*state, rank, *(np.asarray(memory.mask.counters[slot]) for slot in (Slot.AGE, Slot.KEPT)))


class Reference:
    """The same network in PyTorch, with ``tamiz.core.advance`` for gamma."""

    def __init__(self, compiled, X, targets, weights, rule, loss):
        self.torch = torch = pytest.importorskip("torch")
        nn, layers, width = torch.nn, [], X.shape[1]
        for units in HIDDEN:
            layers += [nn.Linear(width, units, bias=False), nn.BatchNorm1d(units), nn.ReLU()]
            width = units
        self.network = nn.Sequential(*layers, nn.Linear(width, targets.shape[1]))
        self.x, self.y, self.w = map(torch.from_numpy, (X, targets, weights))
        self.loss, self.rule = get_loss(loss).torch, rule
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1.0, eps=EPSILON)
        self.state, self.refined, self.averages = initial_state(rule), 0, []
        self.take_over(compiled)

    def buffers(self):
        return [part for name, part in self.network.named_buffers() if "running" in name]

    def step(self, rows, number):
        torch, closed = self.torch, bool(is_closed(self.state, self.rule))
        part = 2 * self.refined // SCHEDULE.refinement_steps
        self.optimizer.param_groups[0]["lr"] = SCHEDULE.refinement_rates[part] if closed else SCHEDULE.learning_rate
        gamma = torch.from_numpy(np.asarray(self.state.gamma, dtype=np.float32)).clone().requires_grad_()
        l2 = SCHEDULE.refinement_l2 if closed else SCHEDULE.l2
        size = sum(part.weight.square().sum() for part in self.network if isinstance(part, torch.nn.Linear))
        self.optimizer.zero_grad()
        losses = self.loss(self.network(self.x[rows] * gamma), self.y[rows])
        ((self.w[rows] * losses).mean() + l2 * size).backward()
        self.optimizer.step()
        if not closed:
            self.state = advance(self.state, gamma.grad.numpy(), number, self.rule)
            return
        self.refined += 1
        if self.refined > SCHEDULE.refinement_steps // 2:
            self.averages.append(
                [part.detach().numpy().copy() for part in (*self.network.parameters(), *self.buffers())]
            )

    def compare(self, compiled, tolerance=1e-4):
        state = compiled.mask_state()
        np.testing.assert_allclose(state.gamma, self.state.gamma, atol=tolerance)
        np.testing.assert_array_equal(state.rank, self.state.rank)
        alive = self.state.rank <= self.rule.n_features_to_select
        first, *others = self.network.parameters()
        ours, *our_others = compiled.arrays(Row.VALUE)
        np.testing.assert_allclose(ours[:, alive], first.detach().numpy()[:, alive], atol=tolerance)
        for a, b in zip([*our_others, *compiled.statistics()], [*others, *self.buffers()], strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), atol=tolerance, rtol=tolerance)

    def take_over(self, compiled):
        """Take the numbers of the compiled network, so that rounding errors do not add up over hundreds of steps."""
        torch = self.torch
        pairs = list(zip(self.network.parameters(), compiled.arrays(Row.VALUE), strict=True))
        pairs += zip(self.buffers(), compiled.statistics(), strict=True)
        for row, name in ((Row.FIRST, "exp_avg"), (Row.SECOND, "exp_avg_sq")):
            for parameter, array in zip(self.network.parameters(), compiled.arrays(row), strict=True):
                if name in self.optimizer.state[parameter]:
                    pairs.append((self.optimizer.state[parameter][name], array))
        with torch.no_grad():
            for tensor, array in pairs:
                tensor.copy_(torch.from_numpy(np.ascontiguousarray(array)))
        if compiled.memory.mask.counters[Slot.STEP] > 0:
            self.state = compiled.mask_state()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("loss", "outputs"), LOSSES)
def test_same_weights_and_batches_same_path(loss, outputs, variant):
    X, targets, weights = problem(loss, outputs)
    rule = Rule(X.shape[1], 5, variant=variant, warmup_steps=10, ramp_steps=200, mask_learning_rate=0.02)
    compiled = Compiled(X, targets, weights, rule, loss)
    reference = Reference(compiled, X, targets, weights, rule, loss)
    status, number = Status.RUNNING, 0
    while status != Status.DONE:
        rows, status = compiled.step()
        number += 1
        reference.step(rows, number)
        reference.compare(compiled)
        if number % 5 == 0:
            reference.take_over(compiled)
    assert reference.refined == SCHEDULE.refinement_steps
    model = compiled.run.network()
    averages = [np.mean(parts, axis=0) for parts in zip(*reference.averages)]
    kept = np.sort(compiled.memory.feature[:5])
    np.testing.assert_allclose(model.hidden[0].weights, averages[0].T[kept], atol=1e-4)
    np.testing.assert_allclose(model.output_constants, averages[3 * len(HIDDEN) + 1], atol=1e-4)
    np.testing.assert_allclose(model.hidden[-1].variance, averages[-1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("n_rows", "batch_size"), [(60, 9), (5, 2), (7, 16), (64, 64), (127, 64)])
def test_an_epoch_is_cut_into_equal_batches_none_smaller_than_asked(n_rows, batch_size):
    X, targets, weights = problem("logistic", 1, n=n_rows)
    rule = Rule(X.shape[1], 5, ramp_steps=10**6)
    plan = Schedule(
        learning_rate=1e-3, l2=0.0, batch_size=batch_size, warmup_steps=0, ramp_steps=1, refinement_l2=0.0,
        refinement_steps=0, refinement_rates=(1e-3,),
    )  # fmt: skip
    compiled = Compiled(X, targets, weights, rule, "logistic", schedule=plan)
    for _ in range(2):
        batches = [compiled.step()[0] for _ in range(max(1, n_rows // batch_size))]
        sizes = [rows.size for rows in batches]
        assert min(sizes) >= min(batch_size, n_rows)
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= most_rows(n_rows, batch_size)
        assert sorted(np.concatenate(batches)) == list(range(n_rows))
