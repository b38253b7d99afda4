"""The training loop: what it minimises, its seed, its schedule, its weights, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

from tamiz.networks import NaiveSVM, Recipe, ThreeLayerNet, evaluate_loss, fit_network
from tamiz.networks.losses import encode_classes
from tamiz.networks.recipes import NAIVE, WRN16X4
from tamiz.networks.training import batches, count_batches, make_optimizer


def two_classes(n_samples=40, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)).astype(np.float32)
    codes = (X[:, 0] + 0.5 * rng.normal(size=n_samples) > 0.3).astype(int)
    return X, codes, encode_classes(codes, 2, "squared_hinge")


def test_it_minimises_the_weighted_squared_hinge_with_its_penalty():
    X, codes, targets = two_classes()
    weights = np.where(codes == 1, 3.0, 1.0)
    signs = codes * 2.0 - 1

    def objective(parameters):
        margins = np.maximum(0, 1 - signs * (X @ parameters[:-1] + parameters[-1]))
        return weights @ margins**2 / weights.sum() + 0.1 * parameters[:-1] @ parameters[:-1]

    best = minimize(objective, np.zeros(6), tol=1e-10).x
    net = NaiveSVM(5, 1)
    fit_network(net, X, targets, epochs=400, learning_rate=0.05, batch_size=40, l2=0.1, sample_weight=weights, seed=1)
    np.testing.assert_allclose(net.linear.weight.detach().numpy()[0], best[:-1], atol=2e-3)
    np.testing.assert_allclose(net.linear.bias.item(), best[-1], atol=2e-3)


def test_small_batches_follow_the_same_objective():
    # With tiny steps the sum of an epoch's gradients shows: it must be the full gradient, once for every batch.
    X, codes, targets = two_classes()
    weights = np.where(codes == 1, 3.0, 1.0)
    recipe = Recipe("sgd", "squared_hinge", 1e-5, 1, 5.0, 0.1, 0.0, False, refinement_epochs=1)
    moves = []
    for batch_size in (2, 40):
        net = NaiveSVM(5, 1)
        fit_network(net, X, targets, recipe=recipe, batch_size=batch_size, sample_weight=weights)
        moves.append(net.linear.weight.detach().numpy()[0] / count_batches(40, batch_size))
    np.testing.assert_allclose(*moves, rtol=2e-3, atol=1e-8)


def test_rows_of_weight_zero_do_not_count():
    X, _, targets = two_classes()
    kept, weights = slice(0, 30), np.r_[np.ones(30), np.zeros(10)]
    first, second = NaiveSVM(5, 1), NaiveSVM(5, 1)
    arguments = {"epochs": 200, "learning_rate": 0.05, "l2": 0.1}
    fit_network(first, X, targets, batch_size=40, sample_weight=weights, **arguments)
    fit_network(second, X[kept], targets[kept], batch_size=30, **arguments)
    torch.testing.assert_close(first.linear.weight, second.linear.weight, atol=1e-4, rtol=1e-4)


def test_same_seed_same_network_and_the_global_state_is_left_alone():
    X, _, targets = two_classes()
    torch.manual_seed(5)
    start = ThreeLayerNet(5, 1).state_dict()
    ends = []
    for seed, disturb in ((0, 1), (0, 2), (1, 1)):
        net = nn.Sequential(nn.Dropout(0.2), ThreeLayerNet(5, 1))
        net[1].load_state_dict(start)
        torch.manual_seed(disturb)
        before = torch.random.get_rng_state()
        fit_network(net, X, targets, epochs=3, seed=seed)
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
    losses = fit_network(
        net, X, encode_classes(codes, 2, "squared_hinge"), epochs=40, batch_size=20, learning_rate=0.01, l2=0.0
    )
    assert losses[-1] < 0.8 * losses[0]
    predicted = net(torch.tensor(X, dtype=torch.float32)).detach().numpy()[:, 0] > 0
    assert (predicted == codes).mean() > 0.9


def test_the_learning_rate_falls_as_the_recipe_says():
    # With SGD, loss (0 - s)^2 and one row of x = 1, a step multiplies the weight by 1 - 2 * rate.
    recipe = Recipe("sgd", "squared_error", 0.1, 1, 5.0, 0.1, 0.0, False, refinement_epochs=3)
    net = nn.Linear(1, 1, bias=False)
    net.weight.data.fill_(1.0)
    fit_network(net, np.ones((1, 1)), np.zeros(1), recipe=recipe)
    assert net.weight.item() == pytest.approx((1 - 0.2) * (1 - 0.04) * (1 - 0.008))


def test_l2_acts_on_matrices_only_and_is_the_gradient_of_the_squared_norm():
    net = ThreeLayerNet(4, 1)
    groups = make_optimizer(net, WRN16X4, 0.1, l2=0.25).param_groups
    assert [group["weight_decay"] for group in groups] == [0.5, 0.0]
    assert {parameter.dim() for parameter in groups[0]["params"]} == {2}
    assert {parameter.dim() for parameter in groups[1]["params"]} == {1}


def test_penalty_is_added():
    net = nn.Linear(1, 1, bias=False)
    net.weight.data.fill_(1.0)
    recipe = Recipe("sgd", "squared_error", 0.1, 10, 5.0, 0.1, 0.0, False, refinement_epochs=1)
    X, y = np.zeros((2, 1)), np.zeros(2)
    losses = fit_network(net, X, y, recipe=recipe, penalty=lambda m: 3.0 * m.weight.abs().sum())
    assert losses.tolist() == [3.0]
    assert net.weight.item() == pytest.approx(1 - 0.1 * 3)


def test_evaluate_loss_by_hand_and_in_pieces():
    net = NaiveSVM(1, 1)
    X, y = np.array([[0.0], [0.0], [0.0]]), np.array([1.0, 2.0, 3.0])
    assert evaluate_loss(net, X, y, "squared_error") == pytest.approx(14 / 3)
    assert evaluate_loss(net, X, y, "squared_error", np.array([2.0, 1.0, 0.0])) == pytest.approx((2 + 4) / 3)
    assert evaluate_loss(net, X, y, "squared_error", batch_size=1) == pytest.approx(14 / 3)


def test_single_rows_never_meet_batch_normalisation():
    assert [len(part) for part in batches(torch.arange(7), 3)] == [3, 4]
    assert [len(part) for part in batches(torch.arange(3), 1)] == [1, 1, 1]
    assert count_batches(1, 5) == 1
    X, _, targets = two_classes(n_samples=5)
    fit_network(ThreeLayerNet(5, 1), X, targets, epochs=1, batch_size=2)
    with pytest.raises(ValueError, match="batches of at least 2 rows; raise batch_size"):
        fit_network(ThreeLayerNet(5, 1), X, targets, epochs=1, batch_size=1)


def test_progress_goes_to_the_standard_error(capsys):
    X, _, targets = two_classes(n_samples=6)
    fit_network(NaiveSVM(5, 1), X, targets, epochs=20, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 10
    assert "epoch 20/20: loss" in captured.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"loss": "hing"}, "Unknown loss 'hing'"),
        ({"sample_weight": [1.0]}, "one weight for each row"),
        ({"sample_weight": [-1.0] * 6}, "none negative"),
        ({"sample_weight": [0.0] * 6}, "not all zero"),
        ({"y": np.ones(5)}, "X has 6 rows, y has 5 entries"),
        ({"learning_rate": 1e30, "X": np.full((6, 5), 1e15)}, "Training diverged in epoch"),
    ],
)
def test_bad_input(changes, message):
    X, _, targets = two_classes(n_samples=6)
    arguments = {"X": X, "y": targets, "epochs": 2, **changes}
    with pytest.raises(ValueError, match=message):
        fit_network(NaiveSVM(5, 1), **arguments)


def test_unknown_optimizer_and_nothing_to_train():
    recipe = Recipe("lbfgs", "squared_error", 0.1, 1, 5.0, 0.1, 0.0, False, refinement_epochs=1)
    with pytest.raises(ValueError, match="Unknown optimizer 'lbfgs'"):
        make_optimizer(NaiveSVM(1, 1), recipe, 0.1, 0.0)
    frozen = NaiveSVM(1, 1).requires_grad_(False)
    with pytest.raises(ValueError, match="no trainable parameters"):
        make_optimizer(frozen, NAIVE, 0.1, 0.0)
