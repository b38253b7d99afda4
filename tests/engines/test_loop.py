"""The compiled engine and PyTorch run the same rule: same batches in, same gamma and weights out, step by step."""

import numpy as np
import pytest

from tamiz.core import VARIANTS, Rule, Slot, selection_schedule
from tamiz.core.losses import get_loss
from tamiz.engines import loop
from tamiz.engines.design import Design
from tamiz.engines.loop import Piece, Status
from tamiz.engines.memory import LoopSlot, drop_eliminated, new_memory
from tamiz.engines.schedule import Schedule
from tamiz.engines.training import training_numbers

torch = pytest.importorskip("torch")
F = torch.nn.functional

# Written with PyTorch's own functions, as an independent text of each loss: the mean over the outputs of one sample.
TORCH_LOSSES = {
    "squared_hinge": lambda s, y: torch.clamp(1 - y * s, min=0).square().mean(1),
    "logistic": lambda s, y: F.binary_cross_entropy_with_logits(s, (y + 1) / 2, reduction="none").mean(1),
    "softmax": lambda s, y: F.cross_entropy(s, y.argmax(1), reduction="none"),
    "squared_error": lambda s, y: F.mse_loss(s, y, reduction="none").mean(1),
    "huber": lambda s, y: F.huber_loss(s, y, reduction="none").mean(1),
}


def problem(loss, outputs, n=48, f=30):
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
    """The engine, one step at a time."""

    def __init__(self, X, targets, weights, rule, loss, schedule):
        self.design, self.targets, self.weights = Design(X, None, owned=False), targets, weights
        self.rule, self.schedule = rule, schedule
        self.functions = (get_loss(loss).compiled, *self.design.products)
        self.training = training_numbers(rule, schedule)
        rows, n_outputs = np.arange(X.shape[0]), targets.shape[1]
        self.memory = new_memory(self.design, rule, rows, n_outputs, schedule.batch_size, seed=3)
        self.n_features = X.shape[1]

    def step(self):
        """Take one step; return the rows of its batch."""
        steps = selection_schedule(self.rule, int(self.memory.mask.counters[Slot.STEP]) + 1, 1)
        data = Piece(self.design.matrix, self.targets, self.weights, *steps)
        status = loop.run(data, self.memory, self.rule.numbers, self.training, *self.functions)
        end = self.memory.positions[0, 0]
        size = end % self.schedule.batch_size or self.schedule.batch_size
        rows = self.memory.rows[end - size : end].copy()
        if status == Status.COMPACT:
            drop_eliminated(self.memory, self.design)
        assert status != Status.DIVERGED
        return rows, status

    def spread(self, part):
        """A vector of the working set over all columns."""
        width = self.memory.loop_counters[LoopSlot.WIDTH]
        full = np.zeros((*part.shape[:-1], self.n_features), dtype=np.float32)
        full[..., self.memory.feature[:width]] = part[..., :width]
        return full

    def hand_over(self, mask, linear, optimizer):
        """Give PyTorch our numbers, so that rounding errors of float32 do not add up over hundreds of steps."""
        memory = self.memory
        state, bias = optimizer.state[linear.weight], optimizer.state[linear.bias]
        pairs = [
            (mask.gamma, self.spread(memory.mask.gamma)),
            (mask.first, self.spread(memory.mask.first)),
            (mask.second, self.spread(memory.mask.second)),
            (linear.weight, self.spread(memory.weights)),
            (state["exp_avg"], self.spread(memory.weights_first)),
            (state["exp_avg_sq"], self.spread(memory.weights_second)),
            (linear.bias, memory.rest[0]),
            (bias["exp_avg"], memory.rest[1]),
            (bias["exp_avg_sq"], memory.rest[2]),
        ]
        with torch.no_grad():
            for tensor, array in pairs:
                tensor.copy_(torch.from_numpy(array))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("loss", "outputs"),
    [("squared_hinge", 1), ("squared_hinge", 3), ("logistic", 2), ("softmax", 3), ("squared_error", 1), ("huber", 2)],
)
def test_same_batches_same_path(loss, outputs, variant):
    from tamiz.torch import FeatureMask

    X, targets, weights = problem(loss, outputs)
    m, l2, warmup = 5, 0.05, 20
    rule = Rule(X.shape[1], m, variant=variant, warmup_steps=warmup, ramp_steps=400, mask_learning_rate=0.02)
    schedule = Schedule(
        learning_rate=5e-3, l2=l2, batch_size=7, warmup_steps=warmup, ramp_steps=400, refinement_l2=l2,
        refinement_steps=60, refinement_rates=(5e-3, 1e-3, 2e-4),
    )  # fmt: skip
    compiled = Compiled(X, targets, weights, rule, loss, schedule)

    mask = FeatureMask(X.shape[1], m, variant=variant, mask_learning_rate=0.02)
    linear = torch.nn.Linear(X.shape[1], outputs)
    torch.nn.init.zeros_(linear.weight)
    torch.nn.init.zeros_(linear.bias)
    model = torch.nn.Sequential(mask, linear)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, eps=1e-7)
    mask.attach(optimizer, warmup_steps=warmup, ramp_steps=400)
    x, y, w = map(torch.from_numpy, (X, targets, weights))

    refined = 0
    for _ in range(3000):
        rows, status = compiled.step()
        if mask.closed:
            optimizer.param_groups[0]["lr"] = 5e-3 / 5 ** min(2, 3 * refined // 60)
            refined += 1
        optimizer.zero_grad()
        size = linear.weight.square().sum()  # the constant is free
        value = (w[rows] * TORCH_LOSSES[loss](model(x[rows]), y[rows])).mean() + l2 * size
        value.backward()
        optimizer.step()
        counters = compiled.memory.mask.counters
        assert counters[Slot.STEP] == mask.step
        alive = (mask.rank <= m).numpy()
        np.testing.assert_allclose(compiled.spread(compiled.memory.mask.gamma), mask.gamma.detach().numpy(), atol=1e-5)
        torch_weights = np.where(alive, linear.weight.detach().numpy(), 0)
        ours = np.where(alive, compiled.spread(compiled.memory.weights), 0)
        np.testing.assert_allclose(ours, torch_weights, atol=1e-5)
        np.testing.assert_allclose(compiled.memory.rest[0], linear.bias.detach().numpy(), atol=1e-5)
        assert bool(counters[Slot.CLOSED]) == mask.closed
        if counters[Slot.STEP] % 25 == 0:
            compiled.hand_over(mask, linear, optimizer)
        if status == Status.DONE:
            break
    assert mask.closed
    assert refined == 60
