"""The compiled loop against the torch loop, batch for batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tamiz.core.losses import LOSSES, get_loss
from tamiz.engines.contract import Problem
from tamiz.paper.deep_training import IMAGES, NAIVE, OneToOne, elastic_net, fit_naive, fit_network
from tamiz.torch.networks import NaiveSVM


def random_problem(loss, n_classes=3, sample_weight=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(23, 6)).astype(np.float32)
    if loss.task == "classification":
        targets = loss.encode(rng.integers(0, n_classes, 23), n_classes)
    else:
        targets = (3 * X[:, :2] + rng.normal(size=(23, 2))).astype(np.float32)
    return Problem(X, targets, sample_weight)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("with_layer", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_steps_as_through_torch(name, with_layer, n_classes):
    loss = get_loss(name)
    problem = random_problem(loss, n_classes, np.random.default_rng(1).uniform(0, 2, size=23))
    recipe = replace(NAIVE.with_epochs(9), batch_size=4, learning_rate=0.05, l2=0.02, l2_over_samples=False)
    shape = (6, problem.n_outputs)
    first, second, layer1, layer2 = NaiveSVM(*shape), NaiveSVM(*shape), OneToOne(6), OneToOne(6)
    if with_layer:
        penalty = lambda _: elastic_net(layer1.weight, 0.02, 0.03)  # noqa: E731
        expected = fit_network(nn.Sequential(layer1, first), problem, recipe, loss, penalty=penalty, seed=7)
        losses = fit_naive(second, problem, recipe, loss, one_to_one=layer2, penalty=(0.02, 0.03), seed=7)
        torch.testing.assert_close(layer2.weight, layer1.weight, atol=1e-4, rtol=1e-4)
        assert (layer2.weight != 1).all()
    else:
        expected = fit_network(first, problem, recipe, loss, seed=7)
        losses = fit_naive(second, problem, recipe, loss, seed=7)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    torch.testing.assert_close(second.linear.weight, first.linear.weight, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(second.linear.bias, first.linear.bias, atol=1e-4, rtol=1e-4)
    assert not second.training


def test_the_recipe_of_the_paper():
    loss = get_loss("squared_hinge")
    problem = random_problem(loss, 2)
    first, second = NaiveSVM(6, 1), NaiveSVM(6, 1)
    losses = fit_naive(second, problem, NAIVE, loss)
    np.testing.assert_allclose(losses, fit_network(first, problem, NAIVE, loss), rtol=1e-4)
    torch.testing.assert_close(second.linear.weight, first.linear.weight, atol=1e-5, rtol=1e-4)


def test_large_outputs_stay_finite():
    X = np.array([[300.0], [-300.0]], dtype=np.float32)
    for name in ("logistic", "softmax"):
        loss = get_loss(name)
        problem = Problem(X, loss.encode(np.array([0, 1]), 2))
        network = NaiveSVM(1, problem.n_outputs)
        network.linear.weight.data.fill_(5.0)
        network.linear.weight.data[0] = 5.0 if name == "logistic" else -5.0
        assert np.isfinite(fit_naive(network, problem, replace(NAIVE.with_epochs(2), l2=0.0), loss)).all()


def test_bad_input():
    loss = get_loss("squared_hinge")
    problem = random_problem(loss, 2)
    with pytest.raises(ValueError, match="trains with 'adam' only"):
        fit_naive(NaiveSVM(6, 1), problem, IMAGES, loss)
    wild = replace(NAIVE.with_epochs(3), learning_rate=1e30)
    with pytest.raises(ValueError, match="Training diverged in epoch"):
        fit_naive(NaiveSVM(6, 1), replace(problem, X=problem.X * np.float32(1e15)), wild, loss)
    with pytest.raises(ValueError, match="X has 23 rows, the targets have 22"):
        fit_naive(NaiveSVM(6, 1), replace(problem, targets=problem.targets[1:]), NAIVE, loss)


def test_progress(capsys):
    loss = get_loss("squared_hinge")
    fit_naive(NaiveSVM(6, 1), random_problem(loss, 2), NAIVE.with_epochs(3), loss, progress=True)
    assert capsys.readouterr().err.count("epoch") == 3
