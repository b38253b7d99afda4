"""FeatureMask as a regulariser: the number of features is left to the loss and one strength."""

import copy
import math

import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask, prune, train

WEIGHTS = torch.tensor([2.0, 1.0, 0.7, 0.4, 0.2])


@pytest.fixture(scope="module")
def data():
    """200 rows of 16 numbers; five count, each less than the one before."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 16, generator=generator)
    return x, x[:, :5] @ WEIGHTS + 0.1 * torch.randn(200, generator=generator)


def build(strength):
    torch.manual_seed(1)
    mask = FeatureMask(16, strength=strength, mask_learning_rate=0.02)
    return mask, nn.Sequential(mask, nn.Linear(16, 1))


def fit(mask, model, data, n_steps=None, ramp_steps=150):
    x, y = data
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=60, ramp_steps=ramp_steps)
    path = []
    while not mask.closed if n_steps is None else len(path) < n_steps:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        optimizer.step()
        path.append(mask.gamma.detach().clone())
        assert len(path) < 1000, "the mask never closed"
    return torch.stack(path)


def test_the_count_falls_with_the_strength(data):
    counts = []
    for strength in (1e-7, 0.01, 0.1, 0.5, 1e4):
        mask, model = build(strength)
        fit(mask, model, data)
        kept = mask.support()
        counts.append(int(kept.sum()))
        assert mask.gamma.tolist() == kept.float().tolist()
        assert mask.n_features_to_select == mask.n_alive == counts[-1]
        assert float(mask.penalty()) == 0
        assert sorted(mask.ranking().tolist()) == list(range(1, 17))
        if 0 < counts[-1] <= 5:  # those that count most
            assert kept.nonzero().flatten().tolist() == list(range(counts[-1]))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 5
    assert counts[-1] == 0
    assert len(set(counts)) >= 4


def test_the_state_moves_on_where_it_was_saved(data):
    whole, model = build(0.1)
    path = fit(whole, model, data)
    for n_steps in (30, 120, 205, len(path) - 1):  # in the warm-up, the selection, around its end, and in the closing
        first, model = build(0.1)
        fit(first, model, data, n_steps)
        second, other = build(0.1)
        other.load_state_dict(copy.deepcopy(model.state_dict()))
        rest = fit(second, other, data)
        assert len(rest) == len(path) - n_steps
        torch.testing.assert_close(rest[-1], path[-1])
        assert second.ranking().tolist() == whole.ranking().tolist()


def test_a_state_of_another_strength_is_not_loaded():
    state = FeatureMask(16, strength=0.1).state_dict()
    with pytest.raises(ValueError, match=r"belongs to a mask with strength=0\.1"):
        FeatureMask(16, strength=0.2).load_state_dict(state)
    with pytest.raises(ValueError, match=r"belongs to a mask with strength=0\.1"):
        FeatureMask(16, 3).load_state_dict(state)


def test_what_a_summary_says(data):
    mask, model = build(0.1)
    assert mask.summary().startswith("warm-up, step 0: 16 of 16 features alive, strength 0.1")
    assert mask.extra_repr() == "16, strength=0.1, alive=16"
    assert float(mask.penalty()) == 0  # gamma is all ones, which is binary
    fit(mask, model, data, 120)
    assert mask.summary().startswith("selection")
    assert mask.n_features_to_select == 0  # not known yet
    assert float(mask.penalty()) > 0
    would_keep = int((mask.gamma > 0.5).sum())
    assert int(mask.support().sum()) == would_keep
    mask.detach()
    fit(mask, model, data)
    n_kept = mask.n_features_to_select
    assert mask.n_alive == int(mask.support().sum()) == n_kept
    assert f"{n_kept} of 16 features alive, strength 0.1\nsum of gamma {n_kept}, penalty 0" in mask.summary()
    assert mask.extra_repr() == "16, strength=0.1, closed"


def test_finalize_keeps_what_is_above_one_half(data):
    mask, model = build(0.1)
    fit(mask, model, data, 90)
    above = mask.gamma.detach() > 0.5
    mask.finalize()
    assert mask.closed
    assert torch.equal(mask.support(), above)
    assert torch.equal(mask.gamma.detach(), above.float())


@pytest.mark.parametrize("strength", [0.1, 1e4])
def test_the_trainer_takes_a_strength(data, strength):
    mask, model = build(strength)
    x, y = data
    steps = {"warmup_steps": 60, "ramp_steps": 150, "refinement_steps": 20}
    found = train(model, (x, y[:, None]), nn.functional.mse_loss, learning_rate=0.02, batch_size=50, **steps)
    if strength < 1:
        small = prune(model)
        torch.testing.assert_close(small(small.select(x)), model(x))
    assert found.support.sum() == mask.n_features_to_select < 16
    assert found.converged
    assert (mask.n_features_to_select == 0) == (strength > 1)


@pytest.mark.parametrize("strength", [0, 0.0, -0.1, math.inf, -math.inf, math.nan, True, "0.1"])
def test_a_strength_that_is_none(strength):
    with pytest.raises(ValueError, match="strength must be a finite number above 0"):
        FeatureMask(16, strength=strength)


def test_a_strength_goes_with_no_count_groups_or_budget():
    with pytest.raises(ValueError, match="to the loss: leave out n_features_to_select"):
        FeatureMask(16, 3, strength=0.1)
    with pytest.raises(ValueError, match="leave out costs, budget"):
        FeatureMask(16, strength=0.1, costs=[1] * 16, budget=3)
    with pytest.raises(ValueError, match="leave out keep"):
        FeatureMask(16, strength=0.1, keep=[1])
    mask = FeatureMask(16, strength=0.1)
    optimizer = torch.optim.SGD(mask.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="leave max_steps at None"):
        mask.attach(optimizer, max_steps=100)
    mask.attach(optimizer)  # the failed one has left nothing behind
