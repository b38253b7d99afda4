"""What the selectors that train a network share: a new loss or network is one line, recipes with the user's settings."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from tamiz.baselines import DFS, SFS
from tamiz.core.losses import LOSSES, Loss
from tamiz.paper.deep import standardize_target
from tamiz.paper.deep_training import NAIVE
from tamiz.torch.networks import NETWORKS, NetworkEntry

X = np.random.default_rng(0).normal(size=(90, 8))
Y = (X[:, 2] + X[:, 5] > 0).astype(int)
QUICK = {"epochs": 30, "learning_rate": 0.02, "weight_l2": 0.001, "random_state": 0}


def distance(scores, targets, weights, gradient):
    """Compute (s - y)^2 / 4, for classes."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / np.float32(4 * n * outputs)
        for c in range(outputs):
            error = scores[i, c] - targets[i, c]
            total += share * error * error
            gradient[i, c] = np.float32(2.0) * share * error
    return total


@pytest.mark.parametrize("network", ["linear", "mlp"])
@pytest.mark.parametrize("kind", [DFS, SFS])
def test_a_new_loss_is_one_entry(monkeypatch, kind, network):
    toy = Loss(
        "distance",
        "classification",
        distance,
        torch=lambda outputs, targets: (outputs - targets).square().mean(1) / 4,
        gain=lambda outputs, targets: -(outputs - targets).square().mean(1),
    )
    monkeypatch.setitem(LOSSES, "distance", toy)
    selector = kind(2, loss="distance", network=network, batch_size=10, **QUICK).fit(X, Y)
    assert selector.get_support(indices=True).tolist() == [2, 5]


def test_a_new_network_is_one_entry(monkeypatch):
    monkeypatch.setitem(NETWORKS, "toy", NetworkEntry(nn.Linear))
    for kind in (DFS, SFS):
        assert kind(2, network="toy", **QUICK).fit(X, Y).get_support(indices=True).tolist() == [2, 5]


def test_the_recipe_takes_what_the_user_set():
    assert DFS()._recipe() == NAIVE
    recipe = DFS(epochs=np.int64(30), batch_size=np.int64(7), learning_rate=0.1, weight_l2=0.5)._recipe()
    assert (recipe.epochs, recipe.decay_every, recipe.batch_size_for(1000)) == (30, 10, 7)
    assert recipe.learning_rate_at(10) == pytest.approx(0.02)
    assert recipe.l2_for(1000) == 0.5
    assert DFS(network="cnn3")._recipe().optimizer == "sgd"


def test_targets_of_any_size_are_standardised():
    y = np.array([1.0, 2.0, 6.0])
    for scale in (1e-300, 1.0, 1e300):
        standard = standardize_target(scale * y)
        assert standard.mean() == pytest.approx(0.0, abs=1e-6)
        assert standard.std() == pytest.approx(1.0)
    assert standardize_target(np.full(3, 4.0)).tolist() == [[0.0]] * 3
