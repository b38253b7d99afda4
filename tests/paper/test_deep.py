"""DFS, SFS, iSFS and SFS+DFS: training by a recipe, saliency by hand, and what all four promise."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn, tensor

from tamiz.baselines import DFS, ISFS, SFS, SFSDFS
from tamiz.core.losses import get_loss
from tamiz.engines.contract import Problem
from tamiz.paper import networks
from tamiz.paper.deep import IMAGES, NAIVE, Recipe
from tamiz.paper.networks import NaiveSVM, OneToOne, ThreeLayerNet, fit_linear, fit_network, input_saliency

HINGE, ERROR = get_loss("squared_hinge"), get_loss("squared_error")
#: iSFS drops half of the columns in each round here, so that the rounds are few.
KINDS = [DFS, SFS, partial(ISFS, keep_ratio=0.5), SFSDFS]
EACH = pytest.mark.parametrize("kind", KINDS, ids=["DFS", "SFS", "ISFS", "SFSDFS"])
#: Four rows, the first column is the class, the second says nothing about it.
CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
CORNER_CLASSES = np.array([1, 1, 0, 0])


def informative_table(n_classes=2, n_samples=90):
    """Columns 2 and 7 decide the class; the other ten are noise."""
    X = np.random.default_rng(0).normal(size=(n_samples, 12))
    value = X[:, 2] + X[:, 7]
    return X, np.searchsorted(np.quantile(value, np.arange(1, n_classes) / n_classes), value)


def quick(epochs=5, **changes):
    return replace(NAIVE.with_epochs(epochs), **changes)


#: Weak decay and a fast rate, for tables that are easy.
EASY = quick(30, batch_size=15, learning_rate=0.02, l2=0.001, l2_over_samples=False)


# ---- training


@pytest.mark.parametrize("fit", [fit_network, lambda network, *rest, **more: fit_linear(network[1], *rest, **more)])
def test_the_weighted_squared_hinge_with_its_penalty_is_minimised(fit):
    """The compiled engine and torch end in the same minimum, which scipy finds too."""
    X, codes = informative_table(n_samples=40)
    weights, signs = np.where(codes == 1, 3.0, 1.0), codes * 2.0 - 1
    problem = Problem(X.astype(np.float32), HINGE.encode(codes, 2), weights)

    def objective(parameters):
        margins = np.maximum(0, 1 - signs * (problem.X @ parameters[:-1] + parameters[-1]))
        return weights @ margins**2 / weights.sum() + 0.1 * parameters[:-1] @ parameters[:-1]

    best = minimize(objective, np.zeros(13), tol=1e-10).x
    network = NaiveSVM(12, 1)
    fit(network, problem, quick(400, learning_rate=0.05, batch_size=40, l2=0.1, l2_over_samples=False), HINGE, seed=1)
    found = torch.cat([network[1].weight[0], network[1].bias]).detach().numpy()
    np.testing.assert_allclose(found, best, atol=3e-3)


def test_rates_and_penalty_by_hand():
    # With SGD, loss (0 - s)^2 and one row of x = 1, a step multiplies the weight by 1 - 2 * rate.
    net = nn.Linear(1, 1, bias=False)
    net.weight.data.fill_(1.0)
    recipe = Recipe("sgd", "squared_error", 0.1, 1, 0.0, False, 3)
    fit_network(net, Problem(np.ones((1, 1)), np.zeros((1, 1))), recipe, ERROR)
    assert net.weight.item() == pytest.approx((1 - 0.2) * (1 - 0.04) * (1 - 0.008))
    layer = OneToOne(1)
    nothing = Problem(np.zeros((2, 1)), np.zeros((2, 1)))
    fit_network(layer, nothing, replace(recipe, epochs=1), ERROR, penalty=partial(layer.penalty, 3.0, 0.5))
    assert layer.weight.item() == pytest.approx(1 - 0.1 * (3 + 2 * 0.5))


def test_recipes_and_their_optimizers():
    nesterov = networks.recipe_optimizer(replace(IMAGES, l2=0.25), ThreeLayerNet(4, 1).parameters(), 100)
    assert [group["weight_decay"] for group in nesterov.param_groups] == [0.5, 0.0]
    assert (nesterov.param_groups[0]["momentum"], nesterov.param_groups[0]["nesterov"]) == (0.9, True)
    plain = networks.recipe_optimizer(NAIVE, ThreeLayerNet(4, 1).parameters(), 50)
    assert isinstance(plain, torch.optim.Adam)
    assert plain.param_groups[0]["weight_decay"] == 4.0
    with pytest.raises(ValueError, match="optimizer must be 'adam' or 'sgd', got 'lbfgs'"):
        replace(NAIVE, optimizer="lbfgs")
    for changes in ({"epochs": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match="must be at least 1"):
            replace(NAIVE, **changes)
    five = Problem(np.eye(5, dtype=np.float32), HINGE.encode(np.array([0, 1, 0, 1, 1]), 2))
    fit_network(ThreeLayerNet(5, 1), five, quick(1, batch_size=2), HINGE)  # the last batch would be one row
    with pytest.raises(ValueError, match="batches of at least 2 rows; raise batch_size"):
        fit_network(ThreeLayerNet(5, 1), five, quick(1, batch_size=1), HINGE)


# ---- saliency


class TwoUnits(nn.Module):
    """s = 2 relu(x0) - relu(x1) / 2, whose gradient depends on the sample."""

    def __init__(self):
        super().__init__()
        self.output = nn.Parameter(tensor([[2.0], [-0.5]]))

    def forward(self, x):
        return torch.relu(x) @ self.output


def test_saliency_of_a_network_by_hand():
    rows = np.array([[0.25, -1.0], [2.0, 1.0], [-1.0, 1.0]])
    codes = np.array([1, 1, 0])  # targets +1, +1, -1
    # row 0: s = 0.5,         2 (1 + 0.5) = 3, ds/dx = (2, 0)     -> (6, 0)
    # row 1: s = 3.5, as 1:   2 (1 + 1) = 4,   ds/dx = (2, -0.5)  -> (8, 2)
    # row 2: s = -0.5, y -1:  2 (1 + 0.5) = 3, ds/dx = (0, -0.5)  -> (0, 1.5)
    # class 1: (14, 2) / 16 = (0.875, 0.125); class 0: (0, 1.5) / 1.5 = (0, 1); sum (0.875, 1.125), over 2
    share = input_saliency(TwoUnits(), Problem(rows, HINGE.encode(codes, 2)), HINGE, codes)
    np.testing.assert_allclose(share, [0.4375, 0.5625], rtol=1e-6)
    net = nn.Linear(2, 1)
    net.weight.data, net.bias.data = tensor([[1.0, -3.0]]), tensor([0.0])
    # gain 1 / (r^2 + 1), gradient 2 r / (r^2 + 1)^2 * w: the share is that of |w|
    share = input_saliency(net, Problem(np.eye(2), np.zeros((2, 1))), ERROR)
    np.testing.assert_allclose(share, [0.25, 0.75], rtol=1e-6)
    assert input_saliency(NaiveSVM(3, 1), Problem(np.ones((2, 3)), np.ones((2, 1))), HINGE).tolist() == [0.0] * 3


# ---- what all four promise


@parametrize_with_checks([kind(recipe=quick()) for kind in KINDS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("network", ["linear", "mlp"])
@EACH
def test_informative_columns_are_found(kind, network):
    for n_classes in (2, 3):
        X, y = informative_table(n_classes, n_samples=240)
        selector = kind(2, network=network, recipe=EASY, random_state=0).fit(X, y)
        assert selector.get_support(indices=True).tolist() == [2, 7]
    X, _ = informative_table()
    selector = kind(2, network=network, recipe=replace(EASY, epochs=60), random_state=0)
    selector.fit(X, 1000 * (X[:, 3] - 2 * X[:, 5]) + 0.5)
    assert selector.task_ == "regression"
    assert selector.get_support(indices=True).tolist() == [3, 5]


@EACH
def test_seeds_scales_constants_and_sparse_tables(kind):
    X, y = informative_table()
    X[:, 0], X[:, 4] = 0.1, 0.0
    before = X.copy()

    def fit(X, seed=1, network="mlp", **more):
        return kind(2, network=network, recipe=quick(3), random_state=seed, **more).fit(X, y)

    first = fit(X)
    assert np.array_equal(first.scores_, fit(X).scores_)
    assert not np.array_equal(first.scores_, fit(X, seed=2).scores_)
    assert set(first.ranking_[[0, 4]]) == {11, 12}, "constant columns come last"
    np.testing.assert_allclose(fit(X * 10.0 ** np.linspace(-200, 200, 12)).scores_, first.scores_, rtol=1e-3)
    order = np.random.default_rng(1).permutation(12)
    np.testing.assert_allclose(
        fit(X[:, order], network="linear").scores_, fit(X, network="linear").scores_[order], rtol=1e-2
    )
    for normalize in ("erf", None):
        rows = np.where(X > 0.5, X, 0.0)
        dense, sparse = (fit(table, network="linear", normalize=normalize) for table in (rows, sp.csc_array(rows)))
        np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=1e-3)
    narrow = X.astype(np.float32)
    narrow.flags.writeable = False
    fit(narrow, normalize=None)
    assert np.array_equal(X, before)
    weights = {"healthy": 1.0, "ill": 4.0}
    named = kind(2, recipe=quick(3), class_weight=weights, random_state=0).fit(X, np.array(list(weights))[y])
    coded = kind(2, recipe=quick(3), class_weight={0: 1.0, 1: 4.0}, random_state=0).fit(X, y)
    assert np.array_equal(named.scores_, coded.scores_)


@EACH
def test_networks_of_the_users_own_and_images(kind):
    X, y = informative_table()
    seen = []

    def build(shape, n_outputs):
        seen.append((shape, n_outputs))
        n_inputs = int(np.prod(shape))
        return nn.Sequential(nn.Flatten(1), nn.Linear(n_inputs, 8), nn.Tanh(), nn.Linear(8, n_outputs))

    selector = kind(4, network=build, recipe=EASY, random_state=0).fit(X, y)
    assert set(selector.get_support(indices=True)) >= {2, 7}
    assert seen[0] == (12, 1)
    assert clone(selector).network is build
    selector = kind(4, network=build, input_shape=(1, 3, 4), recipe=EASY, random_state=0).fit(X, y)
    assert set(selector.get_support(indices=True)) >= {2, 7}
    assert set(seen[len(seen) - 1 :]) == {((1, 3, 4), 1)}


BAD = [
    ({"recipe": "fast"}, "'recipe' parameter of .* must be an instance of"),
    ({"normalize": "minmax"}, "'normalize' parameter of .* must be a str among"),
    ({"network": "mpl"}, "Did you mean 'mlp'"),
    ({"network": 3}, "'network' parameter of .* must be .* a callable"),
    ({"network": "wrn16x4"}, r"reads images: set input_shape=\(channels, height, width\)"),
    ({"input_shape": (1, 8, 8)}, "has 64 entries, but X has 12 columns"),
    ({"recipe": replace(NAIVE, loss="squared_error")}, "is for regression, the target has classes"),
    ({"network": lambda n, k: nn.Flatten(0)}, r"must give 1 output\(s\) per row"),
    ({"network": lambda n, k: nn.Linear(n, 3)}, r"1 output\(s\) per row.*\(2, 1\).*\(2, 3\)"),
    ({"device": "gpu"}, "device must be"),
]


@EACH
def test_bad_parameters(kind):
    X, y = informative_table(n_samples=20)
    for parameters, message in BAD:
        with pytest.raises(ValueError, match=message):
            kind(2, **parameters).fit(X, y)
    with pytest.raises(TypeError, match="must return a torch module"):
        kind(2, network=lambda n, k: "net").fit(X, y)
    with pytest.raises(ValueError, match="n_features_to_select=13 is more than the 12"):
        kind(13).fit(X, y)
    wild = replace(quick(2), learning_rate=1e30)
    with pytest.raises(ValueError, match=r"not finite|infinite or NaN"):
        kind(2, recipe=wild, normalize=None, network="mlp" if kind is DFS else "linear").fit(X * 1e15, y)


# ---- each of them


def test_two_steps_of_dfs_by_hand():
    # Layer w = (1, 1), network v = (0, 0), bias 0, rate 0.1 then (epoch 2 of 2) 0.02; Adam moves by
    # rate * m / sqrt(v), both corrected for their start. Loss: mean of (1 - y s)^2, s = sum_j w_j v_j x_j.
    #
    # Step 1: s = 0, ds: -2 y / 4 each.  dL/dv = (-2, 0), dL/db = 0, dL/dw = v * (..) + l1 + 2 l2 w = 0.003 each.
    #         Adam's first step is the rate times the sign:  v = (0.1, 0),  w = (0.9, 0.9).
    # Step 2: y s = 0.9 * 0.1 = 0.09 for all.  dL/dw_0 = 0.1 * (-2 * 0.91) + 0.001 + 0.0018 = -0.1792,
    #         dL/dw_1 = 0 + 0.001 + 0.0018 = 0.0028.
    #   w_0: m = 0.9 * 0.0003 - 0.01792 = -0.01765, / 0.19      = -0.0928947
    #        v = 0.999 * 9e-9 + 0.001 * 0.0321126 = 3.21216e-5, / 0.001999 = 0.0160689, root 0.1267629
    #        w_0 = 0.9 + 0.02 * 0.0928947 / 0.1267629 = 0.914656
    #   w_1: m = 0.00027 + 0.00028 = 0.00055, / 0.19 = 0.00289474
    #        v = 8.991e-9 + 7.84e-9 = 1.6831e-8, / 0.001999 = 8.41971e-6, root 0.00290167
    #        w_1 = 0.9 - 0.02 * 0.00289474 / 0.00290167 = 0.880048
    recipe = Recipe(learning_rate=0.1, decay_every=1, l2=0.0, epochs=2, batch_size=4)
    selector = DFS(1, recipe=recipe, normalize=None).fit(CORNERS, CORNER_CLASSES)
    np.testing.assert_allclose(selector.scores_, [0.914656, 0.880048], atol=2e-6)
    assert selector.ranking_.tolist() == [1, 2]
    assert selector.n_steps_ == selector.selection_.n_steps == 2


def test_the_penalty_of_dfs():
    recipe = quick(20, batch_size=4, learning_rate=0.05, l2=0.0)
    selector = DFS(1, l1=0.0, l2=0.0, recipe=recipe, normalize=None).fit(CORNERS, CORNER_CLASSES)
    assert selector.scores_[0] > 1.01
    assert selector.scores_[1] == pytest.approx(1.0, abs=1e-4), "a useless column keeps its weight"
    X, y = informative_table()
    sums = [
        DFS(l1=l1, recipe=quick(20, batch_size=15), random_state=0).fit(X, y).scores_.sum() for l1 in (0.0, 0.001, 0.1)
    ]
    assert sums[0] > sums[1] > sums[2]
    for parameters in ({"l1": -1.0}, {"l2": np.nan}):
        with pytest.raises(ValueError, match=r"must be a float in the range \[0.0, inf\)"):
            DFS(2, **parameters).fit(X, y)


def test_sfs_of_a_linear_network_ranks_by_its_weights():
    X, y = informative_table()
    assert SFS(3, random_state=0).fit(X, y).n_steps_ == 150 * 45, "the recipe of the paper, batches of two rows"
    recipe = quick(60, batch_size=15, learning_rate=0.01)
    selector = SFS(3, recipe=recipe, random_state=0).fit(X, y)
    network = NaiveSVM(12, 1)
    rows = torch.erf(torch.tensor((X - X.mean(0)) / X.std(0, ddof=1) / np.sqrt(2), dtype=torch.float32)).numpy()
    weights = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    fit_network(network, Problem(rows, HINGE.encode(y, 2), weights), recipe, HINGE)
    share = np.abs(network[1].weight.detach().numpy()[0])
    np.testing.assert_allclose(selector.scores_ * selector.training_loss_, share / share.sum(), atol=0.01)


def test_rounds_of_isfs():
    X, y = informative_table()
    plain = SFS(6, recipe=quick(), random_state=0).fit(X, y)
    selector = ISFS(4, keep_ratio=0.5, recipe=quick(), random_state=0).fit(X, y)
    # 12 features, then 6, of which 4 are wanted: two networks. The cut six lie below 1, the others from 1 to 2.
    assert selector.n_rounds_ == 2
    assert set(np.flatnonzero(selector.scores_ >= 1)) == set(np.flatnonzero(plain.ranking_ <= 6)), "the first is SFS"
    assert selector.scores_[selector.scores_ >= 1].sum() == pytest.approx(6 + 1)
    assert selector.n_steps_ == 2 * plain.n_steps_
    once = ISFS(3, keep_ratio=0.0, recipe=quick(), random_state=0).fit(X, y)
    assert once.n_rounds_ == 1
    assert np.array_equal(once.ranking_, plain.ranking_)
    assert ISFS(12, recipe=quick(2)).fit(X, y).n_rounds_ == 1
    assert ISFS(1, recipe=quick(2)).fit(X[:, :1], y).get_support().tolist() == [True]
    with pytest.raises(ValueError, match=r"'keep_ratio' parameter of ISFS must be a float in the range \[0.0, 1.0\)"):
        ISFS(2, keep_ratio=1.0).fit(X, y)
