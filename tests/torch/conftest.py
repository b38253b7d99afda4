"""A small problem with known truth, the loop that everyone writes, and masks that are closed from the start."""

import pytest
import torch
from torch import nn

from tamiz.core.rule import Slot
from tamiz.torch import FeatureMask

TRUE_FEATURES = [2, 7, 11]


@pytest.fixture
def table():
    """256 rows of 16 numbers; the target is a sum of three of them."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 16, generator=generator)
    return x, x[:, TRUE_FEATURES] @ torch.tensor([1.0, -2.0, 1.5])


@pytest.fixture
def true_features():
    return list(TRUE_FEATURES)


@pytest.fixture
def build():
    """A function that makes a seeded model with a mask in front; its own Adam runs at five times the usual rate."""

    def make(m=3, variant="soft", mask_learning_rate=0.05, hidden=None, **options):
        torch.manual_seed(0)
        mask = FeatureMask(16, m, variant, mask_learning_rate=mask_learning_rate, **options)
        layers = [nn.Linear(16, 1)] if hidden is None else [nn.Linear(16, hidden), nn.ReLU(), nn.Linear(hidden, 1)]
        return mask, nn.Sequential(mask, *layers)

    return make


@pytest.fixture
def run_steps():
    """A function that trains on the whole table; returns gamma after each step."""

    def run(mask, model, optimizer, table, n_steps=None, loss=nn.functional.mse_loss):
        x, y = table
        path = []
        while len(path) < n_steps if n_steps is not None else not mask.closed:
            optimizer.zero_grad()
            loss(model(x).squeeze(-1), y).backward()
            optimizer.step()
            path.append(mask.gamma.detach().clone())
            assert len(path) < 3000, "the mask never closed"
        return torch.stack(path)

    return run


@pytest.fixture
def start(build, run_steps, table):
    """A function that attaches a mask to SGD and takes some steps, None for as many as it needs to close."""

    def make(n_steps=0, **options):
        mask, model = build(**options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        mask.attach(optimizer, warmup_steps=5, ramp_steps=60)
        if n_steps != 0:
            run_steps(mask, model, optimizer, table, n_steps=n_steps)
        return mask, model, optimizer

    return make


@pytest.fixture
def chosen():
    """A function that makes a mask that has closed with the given entries of its flattened shape."""

    def make(shape, kept, **options):
        mask = FeatureMask(shape, len(kept), **options)
        inside = torch.zeros(mask.n_features, dtype=torch.bool)
        inside[kept] = True
        order = torch.cat([inside.nonzero().flatten(), (~inside).nonzero().flatten()])
        with torch.no_grad():
            mask.gamma.copy_(inside.reshape(mask.shape))
            mask.rank[order] = torch.arange(1, mask.n_features + 1, dtype=torch.int32)
            mask.counters[Slot.OPEN], mask.counters[Slot.CLOSED] = 0, 1
        mask.load_state_dict(mask.state_dict())
        assert mask.closed
        return mask

    return make
