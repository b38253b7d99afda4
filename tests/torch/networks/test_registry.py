"""The registry of networks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tamiz.errors import UnknownNameError
from tamiz.torch.networks import NETWORKS, NaiveSVM, NetworkEntry, get_network, make_network


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_builds_and_runs(name):
    shape = (1, 8, 8) if get_network(name).reads_images else 12
    inputs = torch.randn(4, *shape) if get_network(name).reads_images else torch.randn(4, shape)
    assert make_network(name, shape, 3)(inputs).shape == (4, 3)


def test_parameters_are_handed_on():
    assert isinstance(make_network("linear", 3, 1), NaiveSVM)
    assert make_network("mlp", 3, 1, hidden=(4,)).hidden == (4,)


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="Did you mean 'wrn16x4'"):
        make_network("wrn16-4", (3, 32, 32), 10)
    with pytest.raises(ValueError, match=r"Unknown network 'q'. There are: linear, mlp, wrn16x4, cnn3"):
        get_network("q")
    with pytest.raises(ValueError, match="Unknown network None"):
        get_network(None)


def test_a_new_network_is_one_line(monkeypatch):
    monkeypatch.setitem(NETWORKS, "toy", NetworkEntry(nn.Linear))
    assert make_network("toy", 3, 2).out_features == 2
