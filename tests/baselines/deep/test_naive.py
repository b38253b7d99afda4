"""The compiled loop against the torch loop, batch for batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tamiz.networks import NaiveSVM, fit_network
from tamiz.networks.compiled import fit_naive
from tamiz.networks.losses import CLASSIFICATION_LOSSES, available_losses, encode_classes, n_outputs_for
from tamiz.networks.one_to_one import OneToOne, elastic_net
from tamiz.networks.recipes import WRN16X4


def random_problem(loss, n_classes=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(23, 6)).astype(np.float32)
    if loss in CLASSIFICATION_LOSSES:
        return X, encode_classes(rng.integers(0, n_classes, 23), n_classes, loss), n_outputs_for(loss, n_classes)
    return X, torch.tensor(3 * X[:, :2] + rng.normal(size=(23, 2)), dtype=torch.float32), 2


@pytest.mark.parametrize("loss", available_losses())
@pytest.mark.parametrize("with_layer", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_steps_as_through_torch(loss, with_layer, n_classes):
    X, y, n_outputs = random_problem(loss, n_classes)
    weights = np.random.default_rng(1).uniform(0, 2, size=23)
    settings = {"loss": loss, "epochs": 9, "batch_size": 4, "learning_rate": 0.05, "l2": 0.02, "seed": 7}
    settings["sample_weight"] = weights
    first, second, layer1, layer2 = NaiveSVM(6, n_outputs), NaiveSVM(6, n_outputs), OneToOne(6), OneToOne(6)
    if with_layer:
        penalty = lambda _: elastic_net(layer1.weight, 0.02, 0.03)  # noqa: E731
        expected = fit_network(nn.Sequential(layer1, first), X, y, penalty=penalty, **settings)
        losses = fit_naive(second, X, y, one_to_one=layer2, penalty=(0.02, 0.03), **settings)
        torch.testing.assert_close(layer2.weight, layer1.weight, atol=1e-4, rtol=1e-4)
        assert (layer2.weight != 1).all()
    else:
        expected = fit_network(first, X, y, **settings)
        losses = fit_naive(second, X, y, **settings)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    torch.testing.assert_close(second.linear.weight, first.linear.weight, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(second.linear.bias, first.linear.bias, atol=1e-4, rtol=1e-4)
    assert not second.training


def test_recipe_and_weights_by_default():
    X, y, _ = random_problem("squared_hinge", 2)
    first, second = NaiveSVM(6, 1), NaiveSVM(6, 1)
    np.testing.assert_allclose(fit_naive(second, X, y), fit_network(first, X, y), rtol=1e-4)
    torch.testing.assert_close(second.linear.weight, first.linear.weight, atol=1e-5, rtol=1e-4)


def test_large_outputs_stay_finite():
    X = np.array([[300.0], [-300.0]], dtype=np.float32)
    for loss, y in (("logistic", np.array([-1.0, 1.0])), ("softmax", np.array([0, 1]))):
        network = NaiveSVM(1, 1 if loss == "logistic" else 2)
        network.linear.weight.data.fill_(5.0)
        network.linear.weight.data[0] = 5.0 if loss == "logistic" else -5.0
        assert np.isfinite(fit_naive(network, X, y, loss=loss, epochs=2, l2=0.0)).all()


def test_refusals():
    X, y, _ = random_problem("squared_hinge", 2)
    with pytest.raises(ValueError, match="trains with 'adam' only"):
        fit_naive(NaiveSVM(6, 1), X, y, recipe=WRN16X4)
    with pytest.raises(ValueError, match="Training diverged in epoch"):
        fit_naive(NaiveSVM(6, 1), X * 1e15, y, learning_rate=1e30, epochs=3)
    with pytest.raises(ValueError, match="X has 23 rows, y has 22 entries"):
        fit_naive(NaiveSVM(6, 1), X, y[1:])


def test_progress(capsys):
    X, y, _ = random_problem("squared_hinge", 2)
    fit_naive(NaiveSVM(6, 1), X, y, epochs=3, progress=True)
    assert capsys.readouterr().err.count("epoch") == 3
