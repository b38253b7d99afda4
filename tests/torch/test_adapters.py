"""What the callbacks share: all masks are attached or none, and a copy is attached to nothing."""

from __future__ import annotations

import copy

import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from tamiz.torch import FeatureMask
from tamiz.torch.adapters import AttachedMasks, MaskSchedule, all_closed

SCHEDULE = MaskSchedule(0, 10, None, "steps").in_steps(1)


def two_masks():
    return nn.Sequential(FeatureMask(3, 1), nn.Linear(3, 3), FeatureMask(3, 2), nn.Linear(3, 1))


def test_an_optimizer_that_holds_one_of_two_masks_leaves_none_attached():
    model = two_masks()
    attached = AttachedMasks()
    with pytest.raises(ValueError, match="no optimizer holds gamma of the mask '2'"):
        attached.attach(model, [torch.optim.SGD(model[:2].parameters(), lr=0.1)], SCHEDULE)
    assert not attached
    attached.attach(model, [torch.optim.SGD(model.parameters(), lr=0.1)], SCHEDULE)  # the first one is free again
    assert attached


def test_a_copy_is_attached_to_nothing():
    model = two_masks()
    attached = AttachedMasks()
    attached.attach(model, [torch.optim.SGD(model.parameters(), lr=0.1)], SCHEDULE)
    assert not copy.deepcopy(attached)
    assert attached


def test_the_end_detaches_and_warns_of_open_masks():
    model = two_masks()
    attached = AttachedMasks()
    attached.attach(model, [torch.optim.SGD(model.parameters(), lr=0.1)], SCHEDULE)
    with pytest.warns(ConvergenceWarning, match="before the mask '[02]' was closed") as warned:
        attached.end(model)
    assert len(warned) == 2
    assert not attached
    assert not all_closed(model)


def test_an_epoch_that_ends_with_a_part_of_a_batch_counts_as_a_whole_step():
    assert MaskSchedule(2, 10, None, "epochs").in_steps(2.5)["ramp_steps"] == 30
