"""FeatureMask with groups, costs, budget, keep and drop, in a loop of one's own and in the trainer."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask, prune, train

torch.manual_seed(0)
X = torch.randn(200, 12)
Y = X[:, 3] - 2 * X[:, 7]


def close(mask, ramp_steps=120, x=X):
    """Train a linear model behind the mask until it is closed; return the model."""
    torch.manual_seed(1)
    model = nn.Sequential(mask, nn.Flatten(), nn.Linear(12, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mask.attach(optimizer, warmup_steps=5, ramp_steps=ramp_steps)
    for _ in range(20 * ramp_steps):
        if mask.closed:
            break
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x).squeeze(1), Y).backward()
        optimizer.step()
    assert mask.closed
    return model


def test_groups_live_and_die_together():
    mask = FeatureMask(12, 2, groups=np.arange(12) // 3, mask_learning_rate=0.05)
    model = close(mask)
    assert mask.support().tolist() == [False] * 3 + [True] * 6 + [False] * 3
    assert sorted(mask.ranking().tolist()) == list(range(1, 13))
    assert mask.gamma.tolist() == mask.support().float().tolist()
    assert mask.n_features_to_select == mask.n_alive == 2
    assert float(mask.penalty()) == 0
    small = prune(model)
    assert small.n_values == 6
    torch.testing.assert_close(small(X[:, 3:9]), model(X))


def test_a_budget_is_kept_and_nothing_else_fits():
    costs = np.random.default_rng(0).integers(1, 6, size=12).astype(float)
    mask = FeatureMask(12, costs=costs, budget=9, keep=[0], mask_learning_rate=0.05)
    close(mask)
    kept = mask.support().numpy()
    spent = costs[kept].sum()
    assert kept[0]
    assert spent <= 9 < spent + costs[~kept].min()
    assert mask.n_features_to_select == kept.sum()
    assert mask.gamma.sum() == kept.sum()


def test_kept_entries_stay_at_one_and_dropped_ones_at_zero():
    mask = FeatureMask((3, 4), 3, keep=[0], drop=[3], mask_learning_rate=0.05)
    assert mask.gamma[0, 0] == 1
    assert mask.gamma[0, 3] == 0
    seen = []
    mask.register_forward_pre_hook(lambda module, args: seen.append(module.gamma.detach().clone()))
    close(mask, x=X.reshape(-1, 3, 4))
    path = torch.stack(seen)
    assert (path[:, 0, 0] == 1).all()
    assert (path[:, 0, 3] == 0).all()
    assert mask.support().reshape(-1).nonzero().flatten().tolist()[0] == 0
    assert int(mask.support().sum()) == 3
    assert mask.ranking()[0, 0] == 1
    assert mask.ranking()[0, 3] == 12


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
    model = close(mask)
    again = FeatureMask(12, **options)
    again.load_state_dict(mask.state_dict())
    assert torch.equal(again.support(), mask.support())
    assert torch.equal(again.gamma, mask.gamma)
    with pytest.raises(ValueError, match="other groups, costs, budget"):
        FeatureMask(12, 2, groups=np.arange(12) // 2).load_state_dict(mask.state_dict())
    copied = copy.deepcopy(model)
    torch.testing.assert_close(copied(X), model(X))


def test_changes_from_outside_are_undone():
    mask = FeatureMask(12, 2, groups=np.arange(12) // 3, mask_learning_rate=0.05)
    close(mask)
    with torch.no_grad():
        mask.gamma.mul_(0.5)
    mask(X)
    assert mask.gamma.tolist() == mask.support().float().tolist()


def test_the_trainer_records_groups():
    torch.manual_seed(0)
    mask = FeatureMask(12, 2, groups=["a"] * 6 + ["b"] * 3 + ["c"] * 3, keep=[11], mask_learning_rate=0.05)
    model = nn.Sequential(mask, nn.Linear(12, 1), nn.Flatten(0))
    selection = train(model, (X, Y), nn.functional.mse_loss, ramp_steps=100, refinement_steps=5)
    assert selection.group_names.tolist() == ["a", "b", "c"]
    assert selection.group_support.sum() == 2
    assert selection.group_support[2]
    assert selection.support.sum() in (6, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [[0, 1], [1, 2]]}, "in two groups"),
        ({"groups": [0, 1]}, "2 labels for 12 columns"),
        ({"keep": [0, 1, 2]}, "keep holds 3 features"),
        ({"keep": [99]}, "there is no column 99"),
        ({"keep": [1], "drop": [1]}, "at odds"),
        ({"budget": 3}, "takes the place of"),
        ({"n_features_to_select": None, "budget": 0.5, "costs": [1] * 12}, "below the cheapest"),
        ({"costs": [1] * 12}, "costs need a budget"),
    ],
)
def test_bad_options_are_reported(options, message):
    with pytest.raises(ValueError, match=message):
        FeatureMask(12, **{"n_features_to_select": 2, **options})
