"""Training by a recipe: what it minimises, its seed, its schedule, its weights, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

from tamiz.core.losses import get_loss
from tamiz.engines.contract import Problem
from tamiz.paper.deep_training import IMAGES, NAIVE, Recipe, evaluate_loss, fit_network, recipe_optimizer
from tamiz.torch.batches import full_sizes
from tamiz.torch.networks import NaiveSVM, ThreeLayerNet

HINGE, ERROR = get_loss("squared_hinge"), get_loss("squared_error")


def two_classes(n_samples=40, n_features=5, seed=0, weighted=False):
    """Return a problem of two classes and the class of each row; weights of 3 and 1 if ``weighted``."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)).astype(np.float32)
    codes = (X[:, 0] + 0.5 * rng.normal(size=n_samples) > 0.3).astype(int)
    weights = np.where(codes == 1, 3.0, 1.0) if weighted else None
    return Problem(X, HINGE.encode(codes, 2), weights), codes


def adam(epochs, learning_rate=0.05, l2=0.1, batch_size=40):
    recipe = replace(NAIVE.with_epochs(epochs), learning_rate=learning_rate, batch_size=batch_size)
    return replace(recipe, l2=l2, l2_over_samples=False)


def sgd(learning_rate, decay_every=1, epochs=1, **more):
    return Recipe("sgd", "squared_error", learning_rate, decay_every, 5.0, 0.0, False, epochs, **more)


def test_it_minimises_the_weighted_squared_hinge_with_its_penalty():
    problem, codes = two_classes(weighted=True)
    weights, signs = problem.sample_weight, codes * 2.0 - 1

    def objective(parameters):
        margins = np.maximum(0, 1 - signs * (problem.X @ parameters[:-1] + parameters[-1]))
        return weights @ margins**2 / weights.sum() + 0.1 * parameters[:-1] @ parameters[:-1]

    best = minimize(objective, np.zeros(6), tol=1e-10).x
    net = NaiveSVM(5, 1)
    fit_network(net, problem, adam(400), HINGE, seed=1)
    np.testing.assert_allclose(net.linear.weight.detach().numpy()[0], best[:-1], atol=2e-3)
    np.testing.assert_allclose(net.linear.bias.item(), best[-1], atol=2e-3)


def test_small_batches_follow_the_same_objective():
    # With tiny steps the sum of an epoch's gradients shows: it must be the full gradient, once for every batch.
    problem, _ = two_classes(weighted=True)
    moves = []
    for batch_size in (2, 40):
        net = NaiveSVM(5, 1)
        fit_network(net, problem, sgd(1e-5, batch_size=batch_size), HINGE)
        moves.append(net.linear.weight.detach().numpy()[0] / len(full_sizes(40, batch_size)))
    np.testing.assert_allclose(*moves, rtol=2e-3, atol=1e-8)


def test_rows_of_weight_zero_do_not_count():
    problem, _ = two_classes()
    first, second = NaiveSVM(5, 1), NaiveSVM(5, 1)
    fit_network(first, replace(problem, sample_weight=np.r_[np.ones(30), np.zeros(10)]), adam(200), HINGE)
    fit_network(second, Problem(problem.X[:30], problem.targets[:30]), adam(200, batch_size=30), HINGE)
    torch.testing.assert_close(first.linear.weight, second.linear.weight, atol=1e-4, rtol=1e-4)


def test_same_seed_same_network_and_the_global_state_is_left_alone():
    problem, _ = two_classes()
    torch.manual_seed(5)
    start = ThreeLayerNet(5, 1).state_dict()
    ends = []
    for seed, disturb in ((0, 1), (0, 2), (1, 1)):
        net = nn.Sequential(nn.Dropout(0.2), ThreeLayerNet(5, 1))
        net[1].load_state_dict(start)
        torch.manual_seed(disturb)
        before = torch.random.get_rng_state()
        fit_network(net, problem, NAIVE.with_epochs(3), HINGE, seed=seed)
        assert torch.equal(before, torch.random.get_rng_state())
        assert not net.training
        ends.append(net[1].layers[0].weight.detach())
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


def test_three_layer_net_learns_exclusive_or():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    codes = (X[:, 0] * X[:, 1] > 0).astype(int)
    torch.manual_seed(0)
    net = ThreeLayerNet(2, 1)
    losses = fit_network(net, Problem(X, HINGE.encode(codes, 2)), adam(40, 0.01, 0.0, 20), HINGE)
    assert losses[-1] < 0.8 * losses[0]
    predicted = net(torch.tensor(X, dtype=torch.float32)).detach().numpy()[:, 0] > 0
    assert (predicted == codes).mean() > 0.9


def test_the_learning_rate_falls_as_the_recipe_says():
    # With SGD, loss (0 - s)^2 and one row of x = 1, a step multiplies the weight by 1 - 2 * rate.
    net = nn.Linear(1, 1, bias=False)
    net.weight.data.fill_(1.0)
    fit_network(net, Problem(np.ones((1, 1)), np.zeros((1, 1))), sgd(0.1, epochs=3), ERROR)
    assert net.weight.item() == pytest.approx((1 - 0.2) * (1 - 0.04) * (1 - 0.008))


def test_optimizers_of_recipes():
    net = ThreeLayerNet(4, 1)
    nesterov = recipe_optimizer(net.parameters(), replace(IMAGES, l2=0.25), 100)
    assert [group["weight_decay"] for group in nesterov.param_groups] == [0.5, 0.0]
    assert (nesterov.param_groups[0]["momentum"], nesterov.param_groups[0]["nesterov"]) == (0.9, True)
    plain = recipe_optimizer(net.parameters(), NAIVE, 50)
    assert isinstance(plain, torch.optim.Adam)
    assert plain.param_groups[0]["weight_decay"] == 4.0
    with pytest.raises(ValueError, match=r"Unknown optimizer 'lbfgs'\. There are: adam, sgd"):
        recipe_optimizer(net.parameters(), replace(NAIVE, optimizer="lbfgs"), 50)


def test_penalty_is_added():
    net = nn.Linear(1, 1, bias=False)
    net.weight.data.fill_(1.0)
    problem = Problem(np.zeros((2, 1)), np.zeros((2, 1)))
    losses = fit_network(net, problem, sgd(0.1), ERROR, penalty=lambda m: 3.0 * m.weight.abs().sum())
    assert losses.tolist() == [3.0]
    assert net.weight.item() == pytest.approx(1 - 0.1 * 3)


def test_the_curve_is_the_mean_over_rows_not_over_batches():
    # Rate 1e-30: the weight stays 0, and five rows in batches of 2 and 3 lose y^2 each.
    net = NaiveSVM(1, 1)
    y = np.array([[0.0], [0.0], [0.0], [0.0], [5.0]])
    losses = fit_network(net, Problem(np.zeros((5, 1)), y), sgd(1e-30, epochs=2, batch_size=2), ERROR)
    assert losses == pytest.approx([5.0, 5.0])


def test_evaluate_loss_by_hand_and_in_pieces():
    net = NaiveSVM(1, 1)
    problem = Problem(np.zeros((3, 1)), np.array([[1.0], [2.0], [3.0]]))
    weighted = replace(problem, sample_weight=np.array([2.0, 1.0, 0.0]))
    assert evaluate_loss(net, problem, ERROR) == pytest.approx(14 / 3)
    assert evaluate_loss(net, weighted, ERROR) == pytest.approx((2 + 4) / 3)
    assert evaluate_loss(net, problem, ERROR, batch_size=1) == pytest.approx(14 / 3)


def test_single_rows_never_meet_batch_normalisation():
    problem, _ = two_classes(n_samples=5)
    fit_network(ThreeLayerNet(5, 1), problem, replace(NAIVE.with_epochs(1), batch_size=2), HINGE)
    with pytest.raises(ValueError, match="batches of at least 2 rows; raise batch_size"):
        fit_network(ThreeLayerNet(5, 1), problem, replace(NAIVE.with_epochs(1), batch_size=1), HINGE)


def test_progress_goes_to_the_standard_error(capsys):
    problem, _ = two_classes(n_samples=6)
    fit_network(NaiveSVM(5, 1), problem, NAIVE.with_epochs(20), HINGE, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 10
    assert "epoch 20/20: loss" in captured.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sample_weight": [1.0]}, "one weight for each row"),
        ({"sample_weight": [-1.0] * 6}, "none negative"),
        ({"sample_weight": [0.0] * 6}, "not all zero"),
        ({"targets": np.ones((5, 1))}, "X has 6 rows, the targets have 5"),
    ],
)
def test_bad_input(changes, message):
    problem = replace(two_classes(n_samples=6)[0], **changes)
    with pytest.raises(ValueError, match=message):
        fit_network(NaiveSVM(5, 1), problem, NAIVE, HINGE)
    with pytest.raises(ValueError, match=message):
        evaluate_loss(NaiveSVM(5, 1), problem, HINGE)


def test_a_diverging_run_and_nothing_to_train():
    problem = replace(two_classes(n_samples=6)[0], X=np.full((6, 5), 1e15))
    with pytest.raises(ValueError, match="Training diverged in epoch"):
        fit_network(NaiveSVM(5, 1), problem, replace(NAIVE.with_epochs(2), learning_rate=1e30), HINGE)
    with pytest.raises(ValueError, match="no trainable parameters"):
        fit_network(NaiveSVM(5, 1).requires_grad_(False), two_classes()[0], NAIVE, HINGE)
