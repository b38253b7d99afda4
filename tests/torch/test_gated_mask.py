"""FeatureMask with groups, costs, budget, keep and drop, and as a regulariser, in a loop of one's own and in the trainer."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask, prune, train

torch.manual_seed(0)
X = torch.randn(200, 16)
Y = X[:, 3] - 2 * X[:, 7]
WEIGHED = X[:, :5] @ torch.tensor([2.0, 1.0, 0.7, 0.4, 0.2]) + 0.1 * torch.randn(200)  # five count, each less


def behind(mask):
    torch.manual_seed(1)
    return nn.Sequential(mask, nn.Flatten(), nn.Linear(mask.n_features, 1))


def fit(model, y, n_steps=None, warmup_steps=5, ramp_steps=120):
    """Train until the mask is closed or has taken its steps; return gamma after each step."""
    mask, optimizer = model[0], torch.optim.SGD(model.parameters(), lr=0.05)
    x, path = X[:, : mask.n_features].reshape(-1, *mask.shape), []
    mask.attach(optimizer, warmup_steps=warmup_steps, ramp_steps=ramp_steps)
    while not mask.closed if n_steps is None else len(path) < n_steps:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x).squeeze(1), y).backward()
        optimizer.step()
        path.append(mask.gamma.detach().clone())
        assert len(path) < 2000, "the mask never closed"
    mask.detach()
    return torch.stack(path)


def gated(shape=12, m=None, **options):
    """A closed mask and its model."""
    mask = FeatureMask(shape, m, mask_learning_rate=0.05, **options)
    model = behind(mask)
    return mask, model, fit(model, Y)


def test_groups_live_and_die_together():
    mask, model, _ = gated(m=2, groups=np.arange(12) // 3)
    assert mask.support().tolist() == [False] * 3 + [True] * 6 + [False] * 3
    assert sorted(mask.ranking().tolist()) == list(range(1, 13))
    assert mask.gamma.tolist() == mask.support().float().tolist()
    assert mask.n_features_to_select == mask.n_alive == 2
    assert float(mask.penalty()) == 0
    small = prune(model)
    assert small.n_values == 6
    torch.testing.assert_close(small(X[:, 3:9]), model(X[:, :12]))
    with torch.no_grad():
        mask.gamma.mul_(0.5)
    mask(X[:, :12])
    assert mask.gamma.tolist() == mask.support().float().tolist(), "changes from outside are undone"


def test_a_budget_is_kept_and_nothing_else_fits():
    costs = np.random.default_rng(0).integers(1, 6, size=12).astype(float)
    mask, _, _ = gated(costs=costs, budget=9, keep=[0])
    kept = mask.support().numpy()
    assert kept[0]
    assert costs[kept].sum() <= 9 < costs[kept].sum() + costs[~kept].min()
    assert mask.n_features_to_select == mask.gamma.sum() == kept.sum()


def test_kept_entries_stay_at_one_and_dropped_ones_at_zero():
    mask, _, path = gated((3, 4), 3, keep=torch.tensor([0]), drop=[3])
    assert (path[:, 0, 0] == 1).all()
    assert (path[:, 0, 3] == 0).all()
    assert mask.support()[0, 0]
    assert int(mask.support().sum()) == 3
    assert (mask.ranking()[0, 0], mask.ranking()[0, 3]) == (1, 12)


def test_finalize_within_a_budget_and_before_the_end():
    costs = np.array([3.0, 1.0] * 6)
    mask = FeatureMask(12, costs=costs, budget=7, mask_learning_rate=0.05)
    optimizer = torch.optim.SGD(mask.parameters(), lr=0.1)
    mask.attach(optimizer, ramp_steps=500)
    mask.gamma.grad = torch.linspace(-1, 1, 12)
    optimizer.step()
    mask.finalize()
    kept = mask.support().numpy()
    assert mask.closed
    assert costs[kept].sum() <= 7 < costs[kept].sum() + costs[~kept].min()


def test_state_goes_on_where_it_was():
    options = {"groups": np.arange(12) // 2, "costs": np.ones(12), "budget": 5, "mask_learning_rate": 0.05}
    mask = FeatureMask(12, **options)
    model = behind(mask)
    fit(model, Y)
    again = FeatureMask(12, **options)
    again.load_state_dict(mask.state_dict())
    assert torch.equal(again.support(), mask.support())
    assert torch.equal(again.gamma, mask.gamma)
    with pytest.raises(ValueError, match="other groups, costs, budget"):
        FeatureMask(12, 2, groups=np.arange(12) // 2).load_state_dict(mask.state_dict())
    torch.testing.assert_close(copy.deepcopy(model)(X[:, :12]), model(X[:, :12]))


def test_the_trainer_records_groups():
    torch.manual_seed(0)
    mask = FeatureMask(12, 2, groups=["a"] * 6 + ["b"] * 3 + ["c"] * 3, keep=[11], mask_learning_rate=0.05)
    model = nn.Sequential(mask, nn.Linear(12, 1), nn.Flatten(0))
    selection = train(model, (X[:, :12], Y), nn.functional.mse_loss, ramp_steps=100, refinement_steps=5)
    assert selection.group_names.tolist() == ["a", "b", "c"]
    assert selection.group_support.sum() == 2
    assert selection.group_support[2]
    assert selection.support.sum() in (6, 9)


# ---- a regulariser: the number of features is left to the loss and one strength --------------------------------------------


def regular(strength, n_steps=None):
    mask = FeatureMask(16, strength=strength, mask_learning_rate=0.02)
    model = behind(mask)
    return mask, model, fit(model, WEIGHED, n_steps, 60, 150)


def test_the_count_falls_with_the_strength():
    counts = []
    for strength in (1e-7, 0.01, 0.1, 0.5, 1e4):
        mask, _, _ = regular(strength)
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


def test_a_regulariser_moves_on_where_it_was_saved():
    whole, _, path = regular(0.1)
    for n_steps in (30, 120, 205, len(path) - 1):  # in the warm-up, the selection, around its end, and in the closing
        _, first, _ = regular(0.1, n_steps)
        second = behind(FeatureMask(16, strength=0.1, mask_learning_rate=0.02))
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        rest = fit(second, WEIGHED, None, 60, 150)
        assert len(rest) == len(path) - n_steps
        torch.testing.assert_close(rest[-1], path[-1])
        assert second[0].ranking().tolist() == whole.ranking().tolist()
    for other in (FeatureMask(16, strength=0.2), FeatureMask(16, 3)):
        with pytest.raises(ValueError, match=r"belongs to a mask with strength=0\.1"):
            other.load_state_dict(whole.state_dict())


def test_what_a_regulariser_says_and_keeps_before_the_end():
    fresh = FeatureMask(16, strength=0.1)
    assert fresh.summary().startswith("warm-up, step 0: 16 of 16 features alive, strength 0.1")
    assert fresh.extra_repr() == "16, strength=0.1, alive=16"
    assert float(fresh.penalty()) == 0  # gamma is all ones, which is binary
    optimizer = torch.optim.SGD(fresh.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="leave max_steps at None"):
        fresh.attach(optimizer, max_steps=100)
    fresh.attach(optimizer)  # the failed one has left nothing behind
    mask, _, _ = regular(0.1, 120)
    assert mask.summary().startswith("selection")
    assert mask.n_features_to_select == 0  # not known yet
    assert float(mask.penalty()) > 0
    above = mask.gamma.detach() > 0.5
    assert torch.equal(mask.support(), above)
    mask.finalize()
    assert mask.closed
    assert torch.equal(mask.support(), above)
    assert torch.equal(mask.gamma.detach(), above.float())
    kept = int(above.sum())
    assert mask.n_alive == mask.n_features_to_select == kept
    assert f"{kept} of 16 features alive, strength 0.1\nsum of gamma {kept}, penalty 0" in mask.summary()
    assert mask.extra_repr() == "16, strength=0.1, closed"


@pytest.mark.parametrize("strength", [0.1, 1e4])
def test_the_trainer_takes_a_strength(strength):
    mask = FeatureMask(16, strength=strength, mask_learning_rate=0.02)
    model, steps = behind(mask), {"warmup_steps": 60, "ramp_steps": 150, "refinement_steps": 20}
    rows = (X, WEIGHED[:, None])
    found = train(model, rows, nn.functional.mse_loss, learning_rate=0.02, batch_size=50, **steps)
    if strength < 1:
        small = prune(model)
        torch.testing.assert_close(small(small.select(X)), model(X))
    assert found.support.sum() == mask.n_features_to_select < 16
    assert found.converged
    assert (mask.n_features_to_select == 0) == (strength > 1)
