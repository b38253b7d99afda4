"""Parameter groups with weight decay, and optimizers made by functions of the user."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tamiz.torch.networks import NaiveSVM, ThreeLayerNet
from tamiz.torch.run import decay_groups, make_optimizer


def test_l2_acts_on_matrices_only_and_is_the_gradient_of_the_squared_norm():
    groups = decay_groups(ThreeLayerNet(4, 1).parameters(), l2=0.25)
    assert [group["weight_decay"] for group in groups] == [0.5, 0.0]
    assert [group["decays"] for group in groups] == [True, False]
    assert {parameter.dim() for parameter in groups[0]["params"]} == {2}
    assert {parameter.dim() for parameter in groups[1]["params"]} == {1}


def test_empty_groups_are_left_out():
    assert len(decay_groups(nn.Linear(2, 1, bias=False).parameters(), 0.1)) == 1
    with pytest.raises(ValueError, match="no trainable parameters"):
        decay_groups(NaiveSVM(1, 1).requires_grad_(False).parameters(), 0.0)


def test_optimizers():
    model = nn.Linear(2, 1)
    assert make_optimizer(model, None, 0.03).param_groups[0]["lr"] == 0.03
    assert isinstance(make_optimizer(model, torch.optim.AdamW, 0.03), torch.optim.AdamW)
    for wrong in (torch.optim.Adam(model.parameters()), 0.1, "adam"):
        with pytest.raises(TypeError, match="optimizer must be a function of the model's parameters"):
            make_optimizer(model, wrong, 0.1)
    with pytest.raises(TypeError, match="it returned list"):
        make_optimizer(model, list, 0.1)
