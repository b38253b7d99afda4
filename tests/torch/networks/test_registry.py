"""The registry of networks."""

from __future__ import annotations

import builtins

import pytest
import torch

import tamiz.networks
from tamiz.networks import NaiveSVM, available, build, recipe
from tamiz.networks.registry import entry


@pytest.mark.parametrize("name", available())
def test_every_network_builds_trains_and_has_a_recipe(name):
    shape = (1, 8, 8) if entry(name).reads_images else 12
    net = build(name, shape, 3)
    inputs = torch.randn(4, *shape) if entry(name).reads_images else torch.randn(4, shape)
    assert net(inputs).shape == (4, 3)
    assert recipe(name).refinement_epochs > 0


def test_parameters_are_handed_on():
    assert isinstance(build("naive", 3, 1), NaiveSVM)
    assert build("three_layer", 3, 1, hidden=(4,)).hidden == (4,)


def test_unknown_names():
    with pytest.raises(ValueError, match="did you mean 'wrn16x4'"):
        build("wrn16-4", (3, 32, 32), 10)
    with pytest.raises(ValueError, match=r"Unknown network 'q'; Known: naive, three_layer"):
        recipe("q")
    with pytest.raises(AttributeError, match="no attribute 'Transformer'"):
        tamiz.networks.Transformer  # noqa: B018
    assert "build" in dir(tamiz.networks)


def test_missing_torch_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def without_torch(name, *rest, **more):
        if name == "torch":
            raise ImportError("No module named 'torch'")
        return real_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    with pytest.raises(ImportError, match=r'network \'naive\' needs PyTorch.*pip install "tamiz\[torch\]"'):
        build("naive", 3, 1)
    with pytest.raises(ImportError, match=r'CNN3 needs PyTorch.*pip install "tamiz\[torch\]"'):
        tamiz.networks.CNN3  # noqa: B018
