"""Pruning of several masks, hidden units, channels, several and keyword inputs."""

import pytest
import torch
from torch import nn

from tamiz.torch import FeatureMask, prune
from tamiz.torch.pruning import PrunedNetwork


def chosen(shape, kept):
    """A closed mask that keeps some entries of its flattened shape."""
    mask = FeatureMask(shape, len(kept))
    n = mask.n_features
    with torch.no_grad():
        mask.gamma.copy_(torch.isin(torch.arange(n), torch.tensor(kept)).float().reshape(mask.shape))
    rank, next_out = torch.empty(n, dtype=torch.int32), len(kept) + 1
    for entry in range(n):
        if entry in kept:
            rank[entry] = kept.index(entry) + 1
        else:
            rank[entry], next_out = next_out, next_out + 1
    mask.rank.copy_(rank)
    mask.counters[2:4] = torch.tensor([0, 1])
    mask._update()
    return mask


def settled(model):
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return model.eval()


def assert_prunes(model, args=(), kwargs=None):
    small = prune(model, example_args=args, example_kwargs=kwargs)
    assert isinstance(small, PrunedNetwork)
    small_args, small_kwargs = small.select(*args, **(kwargs or {}))
    torch.testing.assert_close(small(*small_args, **small_kwargs), model(*args, **(kwargs or {})))
    return small


def n_weights(model):
    return sum(p.numel() for p in model.parameters())


def test_masks_on_inputs_and_on_hidden_units_are_cut_together():
    torch.manual_seed(0)
    model = settled(
        nn.Sequential(
            chosen(8, [1, 5, 6]),
            nn.Linear(8, 10),
            nn.BatchNorm1d(10),
            nn.Sigmoid(),
            chosen(10, [0, 2, 7, 9]),
            nn.Dropout(),
            nn.Linear(10, 2),
        )
    )
    x = torch.randn(5, 8)
    small = assert_prunes(model, (x,))
    assert small.n_cut == 2
    assert small.network[1].weight.shape == (4, 3)
    assert small.network[2].num_features == 4
    assert small.network[6].weight.shape == (2, 4)
    torch.testing.assert_close(small(x[:, [1, 5, 6]]), model(x))
    assert n_weights(small) < n_weights(model) / 2


def test_channels_of_a_convolution():
    torch.manual_seed(0)
    model = settled(
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            chosen((8, 1, 1), [0, 3, 6]),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 6, 3, padding=1),
            nn.ReLU(),
            chosen((6, 1, 1), [1, 2]),
            nn.Flatten(),
            nn.Linear(6 * 16, 4),
        )
    )
    small = assert_prunes(model, (torch.randn(2, 3, 8, 8),))
    assert small.n_cut == 2
    assert small.network[0].weight.shape[:2] == (3, 3)
    assert small.network[5].weight.shape[:2] == (2, 3)
    assert small.network[9].weight.shape == (4, 32)


class TwoInputs(nn.Module):
    def __init__(self, bypass=False):
        super().__init__()
        self.left, self.right = chosen(6, [0, 4]), chosen((1, 4, 4), [3, 9, 10])
        self.dense, self.conv = nn.Linear(6, 3), nn.Conv2d(2, 3, 4)
        self.bypass = bypass

    def forward(self, table, *, image, scale=1.0):
        out = self.dense(self.left(table)) + scale * self.conv(self.right(image)).flatten(1)
        return {"out": out + (table.mean(1, keepdim=True) if self.bypass else 0)}


@pytest.mark.parametrize("bypass", [False, True])
def test_several_and_keyword_inputs(bypass):
    torch.manual_seed(0)
    model = TwoInputs(bypass).eval()
    args, kwargs = (torch.randn(3, 6),), {"image": torch.randn(3, 2, 4, 4), "scale": 2.0}
    small = prune(model, example_args=args, example_kwargs=kwargs)
    small_args, small_kwargs = small.select(*args, **kwargs)
    torch.testing.assert_close(small(*small_args, **small_kwargs)["out"], model(*args, **kwargs)["out"])
    assert small_kwargs["image"].shape == (3, 6)  # three pixels of two channels
    assert small_args[0].shape == ((3, 6) if bypass else (3, 2))  # what is read past the mask stays whole
    assert small.n_cut == (1 if bypass else 2)


def test_what_cannot_be_cut_stays_and_predicts_the_same():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), chosen(6, [1, 2]), nn.Sigmoid(), nn.Linear(6, 1)).eval()
    small = assert_prunes(model, (torch.randn(3, 4),))
    assert small.n_cut == 0
    assert n_weights(small) == n_weights(model) - 6  # gamma is gone


def test_open_masks_and_two_kinds_of_examples_raise():
    model = nn.Sequential(FeatureMask(4, 2), nn.Linear(4, 1))
    with pytest.raises(ValueError, match="mask '0' is not closed yet"):
        prune(model, example_args=(torch.zeros(1, 4),))
    with pytest.raises(ValueError, match="not both"):
        prune(model, torch.zeros(1, 4), example_args=(torch.zeros(1, 4),))
