"""Changed layers: the same numbers for the units that stay, wherever the layer is used."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tamiz.torch.pruning import keep_inputs, keep_outputs, replace_part

KEPT = torch.tensor([0, 2])


def test_a_layer_that_is_used_twice_is_replaced_in_both_places():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.ReLU(), shared).eval()
    shared.eval()
    new = nn.Linear(2, 2)
    assert replace_part(model, "0", new) is model
    assert model[0] is new
    assert model[2] is new
    assert not new.training


def test_the_model_itself_can_be_replaced():
    new = nn.Linear(2, 2)
    assert replace_part(nn.Linear(2, 2), "", new) is new


@pytest.mark.parametrize(
    ("layer", "x"), [(nn.Linear(4, 3), torch.randn(5, 4)), (nn.Conv1d(4, 3, 2), torch.randn(5, 4, 6))]
)
def test_kept_units_give_the_same_numbers(layer, x):
    torch.testing.assert_close(keep_outputs(layer, KEPT)(x), layer(x)[:, KEPT])


def test_a_normalisation_keeps_the_statistics_of_its_units():
    layer = nn.BatchNorm1d(3)
    layer(torch.randn(8, 3) * 2 + 1)
    layer.eval()
    x = torch.randn(4, 3)
    torch.testing.assert_close(keep_outputs(layer, KEPT)(x[:, KEPT]), layer(x)[:, KEPT])


def test_dropped_inputs_are_as_if_they_were_zero_and_frozen_weights_stay_frozen():
    layer = nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    small, x = keep_inputs(layer, KEPT), torch.randn(4, 3)
    x[:, 1] = 0
    torch.testing.assert_close(small(x[:, KEPT]), layer(x))
    assert not small.weight.requires_grad
