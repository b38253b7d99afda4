"""The compiled loops and PyTorch run the same rule: same weights and batches in, same gamma and weights out, step by step."""

import numpy as np
import pytest

from tamiz.core.losses import get_loss
from tamiz.core.rule import VARIANTS, Rule, Slot, selection_schedule
from tamiz.engines.contract import Problem
from tamiz.engines.dense import DenseRun
from tamiz.engines.dense_loop import Row, views
from tamiz.engines.design import Design
from tamiz.engines.linear import Run
from tamiz.engines.loop import Piece, Status, new_memory
from tamiz.engines.schedule import Schedule

torch = pytest.importorskip("torch")
F, nn = torch.nn.functional, torch.nn

# Written with PyTorch's own functions, as an independent text of each loss: the mean over the outputs of one sample.
TORCH_LOSSES = {
    "squared_hinge": lambda s, y: torch.clamp(1 - y * s, min=0).square().mean(1),
    "logistic": lambda s, y: F.binary_cross_entropy_with_logits(s, (y + 1) / 2, reduction="none").mean(1),
    "softmax": lambda s, y: F.cross_entropy(s, y.argmax(1), reduction="none"),
    "squared_error": lambda s, y: F.mse_loss(s, y, reduction="none").mean(1),
    "huber": lambda s, y: F.huber_loss(s, y, reduction="none").mean(1),
}
HIDDEN = (9, 6, 4)
PLAN = {"learning_rate": 5e-3, "l2": 0.03, "warmup_steps": 10, "ramp_steps": 200, "refinement_l2": 0.004}
PLAN |= {"batch_size": 9, "refinement_steps": 60, "refinement_rates": (2e-3, 1e-3, 2e-4)}
PLANS = {
    (): Schedule(**PLAN),
    # An epsilon of 1e-8 would turn the rounding error of a gradient of zero into a whole step.
    HIDDEN: Schedule(**PLAN, average=0.5, epsilon=1e-4),
}


def problem(loss, outputs, n=60, f=26):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, f)).astype(np.float32)
    scores = X[:, :outputs] * 2 + X[:, 3 : 3 + outputs] + rng.normal(size=(n, outputs)) * 0.3
    if loss == "softmax":
        targets = np.where(np.arange(outputs) == scores.argmax(1)[:, None], 1.0, -1.0)
    else:
        targets = np.where(scores > 0, 1.0, -1.0) if loss in ("squared_hinge", "logistic") else scores
    weights = rng.uniform(0.5, 1.5, size=n)
    return Problem(X, targets.astype(np.float32), (weights / weights.mean()).astype(np.float32))


class Compiled:
    """The linear model, or a network, one step at a time."""

    def __init__(self, data, rule, loss, hidden, schedule):
        self.data, self.rule, self.hidden = data, rule, hidden
        design, functions = Design(data.X, None, owned=False), (data, rule, get_loss(loss), schedule)
        if hidden:
            self.run = DenseRun(hidden, *functions, design, (3, 0), [np.arange(0)])
        else:
            self.run = Run(*functions, design, new_memory(design, rule, data.targets, schedule.batch_size, 3))
        self.functions = (self.run.loss.compiled, *self.run._products())

    @property
    def counters(self):
        return self.run.memory.mask.counters

    def step(self):
        """Take one step; return the rows of its batch and the status."""
        run, memory = self.run, self.run.memory
        before = int(memory.positions[0, 0]) % self.data.n_samples
        steps = selection_schedule(self.rule, int(self.counters[Slot.STEP]) + 1, 1)
        piece = Piece(run.design.matrix, self.data.targets, self.data.unit_weights(), *steps)
        status = run.compiled_loop(piece, memory, run.numbers, run.training, *self.functions)
        rows = memory.rows.reshape(-1)[before : memory.positions[0, 0]].copy()
        if status == Status.COMPACT:
            run.drop()
        assert status != Status.DIVERGED
        return rows, status

    def spread(self, part):
        """Numbers of the working set over all columns, which come first."""
        full = np.zeros((self.data.n_columns, *part.shape[1:]), dtype=np.float32)
        full[self.run.memory.feature[: self.run.width]] = part[: self.run.width]
        return full

    def gamma(self):
        """Gamma and its moments, over all columns."""
        return [self.spread(part) for part in self.run.memory.mask[:3]]

    def arrays(self, row):
        """Weights or their moments in the order and the shapes of the torch network, without padding."""
        memory = self.run.memory
        rows = {Row.VALUE: memory.weights, Row.FIRST: memory.weights_first, Row.SECOND: memory.weights_second}
        if not self.hidden:
            return [self.spread(rows[row].T).T, memory.rest[{Row.VALUE: 0, Row.FIRST: 1, Row.SECOND: 2}[row]]]
        sizes, layers = (*self.hidden, self.data.n_outputs), memory.rest
        found, place = [self.spread(rows[row][0])[:, : self.hidden[0]].T], 0
        for size, n_next, parts in zip(sizes, sizes[1:], views(layers, 0)):
            for part in parts[:3]:  # the same places as in the row of the values
                values = layers.parameters[0, row, place : place + part.size].reshape(part.shape)
                found.append(values[:size] if part.ndim == 1 else values[:size, :n_next].T)
                place += part.size
        return [*found, layers.parameters[0, row, place:]]

    def statistics(self):
        parts = views(self.run.memory.rest, 0) if self.hidden else []
        return [part[:size] for size, (*_, mean, variance) in zip(self.hidden, parts) for part in (mean, variance)]


class Reference:
    """The same model in PyTorch, behind a ``FeatureMask``."""

    def __init__(self, compiled, rule, loss, plan):
        from tamiz.torch import FeatureMask

        data, layers = compiled.data, []
        width = data.n_columns
        for units in compiled.hidden:
            layers += [nn.Linear(width, units, bias=False), nn.BatchNorm1d(units), nn.ReLU()]
            width = units
        self.network = nn.Sequential(*layers, nn.Linear(width, data.n_outputs))
        self.mask = FeatureMask(data.n_columns, rule.n_features_to_select, rule.variant, mask_learning_rate=0.02)
        self.x, self.y, self.w = map(torch.from_numpy, (data.X, data.targets, data.unit_weights()))
        self.loss, self.plan, self.refined, self.averages = TORCH_LOSSES[loss], plan, 0, []
        parameters = [*self.mask.parameters(), *self.network.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=1.0, eps=plan.epsilon)
        self.mask.attach(self.optimizer, warmup_steps=plan.warmup_steps, ramp_steps=plan.ramp_steps)
        self.take_over(compiled)

    def state(self):
        buffers = [part for name, part in self.network.named_buffers() if "running" in name]
        return [*self.network.parameters(), *buffers]

    def step(self, rows):
        plan, closed = self.plan, self.mask.closed
        rate, l2 = plan.learning_rate, plan.l2
        if closed:
            rate, l2 = plan.refinement_rates[3 * self.refined // plan.refinement_steps], plan.refinement_l2
            self.refined += 1
        self.optimizer.param_groups[0]["lr"] = rate
        # The constants of the outputs and the normalisations are free.
        size = sum(part.weight.square().sum() for part in self.network if isinstance(part, nn.Linear))
        self.optimizer.zero_grad()
        losses = self.loss(self.network(self.mask(self.x[rows])), self.y[rows])
        ((self.w[rows] * losses).mean() + l2 * size).backward()
        self.optimizer.step()
        if self.refined > plan.refinement_steps // 2:
            self.averages.append([part.detach().numpy().copy() for part in self.state()])

    def compare(self, compiled, tolerance):
        alive = (self.mask.rank <= self.mask.n_features_to_select).numpy()
        assert compiled.counters[Slot.STEP] == self.mask.step
        assert bool(compiled.counters[Slot.CLOSED]) == self.mask.closed
        np.testing.assert_allclose(compiled.gamma()[0], self.mask.gamma.detach().numpy(), atol=tolerance)
        (ours, *our_others), (first, *others) = compiled.arrays(Row.VALUE) + compiled.statistics(), self.state()
        np.testing.assert_allclose(ours[:, alive], first.detach().numpy()[:, alive], atol=tolerance)
        for a, b in zip(our_others, others, strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), atol=tolerance, rtol=tolerance)

    def take_over(self, compiled):
        """Take the numbers of the compiled loop, so that rounding errors of float32 do not add up over hundreds of steps."""
        pairs = list(zip(self.state(), compiled.arrays(Row.VALUE) + compiled.statistics(), strict=True))
        pairs += zip((self.mask.gamma, self.mask.first, self.mask.second), compiled.gamma())
        for row, name in ((Row.FIRST, "exp_avg"), (Row.SECOND, "exp_avg_sq")):
            for parameter, array in zip(self.network.parameters(), compiled.arrays(row), strict=True):
                if name in self.optimizer.state[parameter]:
                    pairs.append((self.optimizer.state[parameter][name], array))
        with torch.no_grad():
            for tensor, array in pairs:
                tensor.copy_(torch.from_numpy(np.ascontiguousarray(array)))


@pytest.mark.parametrize("hidden", [(), HIDDEN], ids=["linear", "network"])
@pytest.mark.parametrize(
    ("loss", "outputs", "variant"),
    [("squared_hinge", 1, variant) for variant in VARIANTS]
    + [("squared_hinge", 3, "soft"), ("logistic", 2, "soft"), ("softmax", 3, "hard"), ("squared_error", 1, "soft")]
    + [("huber", 2, "ranking")],
)
def test_same_batches_same_path(loss, outputs, variant, hidden):
    data, plan = problem(loss, outputs), PLANS[hidden]
    rule = Rule(data.n_columns, 5, variant=variant, warmup_steps=10, ramp_steps=200, mask_learning_rate=0.02)
    compiled = Compiled(data, rule, loss, hidden, plan)
    reference = Reference(compiled, rule, loss, plan)
    status, number = Status.RUNNING, 0
    while status != Status.DONE:
        rows, status = compiled.step()
        number += 1
        reference.step(rows)
        reference.compare(compiled, 1e-4 if hidden else 1e-5)
        if number % (5 if hidden else 25) == 0:
            reference.take_over(compiled)
    assert reference.refined == plan.refinement_steps
    if hidden:
        model = compiled.run.network()
        averages = [np.mean(parts, axis=0) for parts in zip(*reference.averages)]
        with torch.no_grad():
            for tensor, array in zip(reference.state(), averages):
                tensor.copy_(torch.from_numpy(array))
            expected = reference.network.eval()(reference.mask(reference.x)).numpy()
        kept = np.sort(compiled.run.memory.feature[:5])
        np.testing.assert_allclose(model.scores(data.X[:, kept]), expected, atol=2e-3)


@pytest.mark.parametrize(("n_rows", "batch_size"), [(60, 9), (5, 2), (7, 16), (64, 64), (127, 64)])
def test_an_epoch_is_cut_into_equal_batches_none_smaller_than_asked(n_rows, batch_size):
    data, rule = problem("logistic", 1, n=n_rows), Rule(26, 5, ramp_steps=10**6)
    plan = Schedule(**{**PLAN, "batch_size": batch_size, "warmup_steps": 0})
    compiled = Compiled(data, rule, "logistic", HIDDEN, plan)
    for _ in range(2):
        batches = [compiled.step()[0] for _ in range(max(1, n_rows // batch_size))]
        sizes = [rows.size for rows in batches]
        assert min(sizes) >= min(batch_size, n_rows)
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= compiled.run.n_rows
        assert sorted(np.concatenate(batches)) == list(range(n_rows))


def test_padded_units_do_nothing():
    data = problem("logistic", 2)
    layers = Compiled(data, Rule(26, 5), "logistic", (5,), PLANS[HIDDEN]).run.memory.rest
    ((scale, _, weights, _, variance),) = views(layers, 0)
    assert (scale[:5] == 1).all()
    assert (scale[5:] == 0).all()
    assert (weights[5:] == 0).all()
    assert np.abs(weights[:5]).max() <= 5**-0.5
    assert (variance == 1).all()
