"""Deep Feature Selection: two steps by hand, what it finds, and bad input."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from tamiz.baselines import DFS

#: Four rows, the first column is the class, the second says nothing about it.
CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
CORNER_CLASSES = np.array([1, 1, 0, 0])


def informative_table(n_classes=2, n_samples=90, n_features=12, seed=0):
    """Columns 2 and 7 decide the class; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    value = X[:, 2] + X[:, 7]
    return X, np.searchsorted(np.quantile(value, np.arange(1, n_classes) / n_classes), value)


@parametrize_with_checks([DFS(**DFS._fast_test_params)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_two_steps_by_hand():
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
    selector = DFS(1, epochs=2, batch_size=4, learning_rate=0.1, weight_l2=0.0, normalize=None)
    selector.fit(CORNERS, CORNER_CLASSES)
    np.testing.assert_allclose(selector.scores_, [0.914656, 0.880048], atol=2e-6)
    assert selector.ranking_.tolist() == [1, 2]
    # losses: 1 + 2 * 0.002 (w = 1), then 0.91^2 + 0.001 * 1.8 + 0.001 * 1.62
    # The compiled Adam computes 1 - beta2 in float32, which is 1.3e-5 off, and half of that in a step.
    np.testing.assert_allclose(selector.loss_curve_, [1.004, 0.8281 + 0.0018 + 0.00162], rtol=3e-6)
    assert selector.n_steps_ == selector.selection_.n_steps == 2


def test_without_penalty_a_useless_column_keeps_its_weight():
    selector = DFS(1, l1=0.0, l2=0.0, epochs=20, batch_size=4, learning_rate=0.05, weight_l2=0.0, normalize=None)
    selector.fit(CORNERS, CORNER_CLASSES)
    assert selector.scores_[0] > 1.01
    assert selector.scores_[1] == pytest.approx(1.0, abs=1e-4)


def test_a_larger_penalty_gives_smaller_weights():
    X, y = informative_table()
    sums = [DFS(l1=l1, epochs=30, random_state=0).fit(X, y).scores_.sum() for l1 in (0.0, 0.001, 0.1)]
    assert sums[0] > sums[1] > sums[2]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_informative_columns_are_found(n_classes, network):
    X, y = informative_table(n_classes, n_samples=300)
    parameters = {"epochs": 40, "batch_size": 30, "learning_rate": 0.02, "weight_l2": 0.001, "random_state": 0}
    selector = DFS(2, network=network, **parameters).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 7]
    assert selector.transform(X).shape == (300, 2)


@pytest.mark.parametrize("loss", ["auto", "huber"])
def test_regression(loss):
    X, _ = informative_table()
    y = 1000 * (X[:, 3] - 2 * X[:, 5]) + 0.5
    selector = DFS(2, loss=loss, epochs=40, learning_rate=0.01, weight_l2=0.001, random_state=0).fit(X, y)
    assert selector.task_ == "regression"
    assert selector.get_support(indices=True).tolist() == [3, 5]


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_other_losses(loss):
    X, y = informative_table(3)
    selector = DFS(2, loss=loss, epochs=40, learning_rate=0.01, weight_l2=0.001, random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 7]


def test_permuting_columns_permutes_scores():
    X, y = informative_table()
    order = np.random.default_rng(1).permutation(12)
    first = DFS(epochs=10, random_state=3).fit(X, y).scores_
    second = DFS(epochs=10, random_state=3).fit(X[:, order], y).scores_
    np.testing.assert_allclose(second, first[order], rtol=1e-3)


def test_same_seed_same_scores():
    X, y = informative_table()
    runs = [DFS(network="mlp", epochs=3, random_state=seed).fit(X, y).scores_ for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_constant_columns_come_last_and_scale_does_not_matter():
    X, y = informative_table()
    X[:, 0] = 0.1
    X[:, 4] = 0.0
    first = DFS(network="mlp", epochs=5, random_state=0).fit(X, y)
    assert set(first.ranking_[[0, 4]]) == {11, 12}
    scales = 10.0 ** np.linspace(-200, 200, 12)
    second = DFS(network="mlp", epochs=5, random_state=0).fit(X * scales, y)
    np.testing.assert_allclose(second.scores_, first.scores_, rtol=1e-3)


@pytest.mark.parametrize("normalize", ["erf", "standard", None])
def test_sparse_tables_and_their_dense_form_give_the_same(normalize):
    X, y = informative_table()
    X = np.where(X > 0.5, X, 0.0)
    before = X.copy()
    dense = DFS(2, epochs=5, normalize=normalize, random_state=0).fit(X, y)
    sparse = DFS(2, epochs=5, normalize=normalize, random_state=0).fit(sp.csc_array(X), y)
    np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=1e-4)
    assert np.array_equal(X, before)


def test_float32_tables_are_not_written_to():
    X, y = informative_table()
    X = X.astype(np.float32)
    before = X.copy()
    X.flags.writeable = False
    DFS(2, epochs=2, normalize=None, network="mlp", random_state=0).fit(X, y)
    assert np.array_equal(X, before)


def test_text_classes_and_class_weights():
    X, y = informative_table()
    names = np.array(["healthy", "ill"])[y]
    by_name = DFS(epochs=5, class_weight={"healthy": 1.0, "ill": 4.0}, random_state=0).fit(X, names)
    by_code = DFS(epochs=5, class_weight={0: 1.0, 1: 4.0}, random_state=0).fit(X, y)
    plain = DFS(epochs=5, class_weight=None, random_state=0).fit(X, y)
    assert np.array_equal(by_name.scores_, by_code.scores_)
    assert not np.array_equal(by_name.scores_, plain.scores_)


def test_a_network_of_the_users_own():
    X, y = informative_table()
    seen = []

    def build(n_inputs, n_outputs):
        seen.append((n_inputs, n_outputs))
        return nn.Sequential(nn.Linear(n_inputs, 8), nn.Tanh(), nn.Linear(8, n_outputs))

    selector = DFS(2, network=build, epochs=60, batch_size=10, learning_rate=0.02, weight_l2=0.001, random_state=0).fit(
        X, y
    )
    assert selector.get_support(indices=True).tolist() == [2, 7]
    assert seen == [(12, 1)]
    assert clone(selector).network is build


def test_images():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 64))
    y = (X[:, 27] > 0).astype(int)  # row 3, column 3 of an 8 x 8 image
    arguments = {"network": "cnn3", "input_shape": (1, 8, 8), "epochs": 8, "learning_rate": 0.02, "random_state": 0}
    selector = DFS(6, l1=0.01, batch_size=10, **arguments).fit(X, y)
    assert selector.ranking_[27] <= 6


def test_as_many_features_as_there_are():
    X, y = informative_table()
    assert DFS(12, epochs=1).fit(X, y).get_support().all()
    with pytest.raises(ValueError, match="n_features_to_select=13 is more than the 12"):
        DFS(13, epochs=1).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l1": -1.0}, r"'l1' parameter of DFS must be a float in the range \[0.0, inf\)"),
        ({"l2": None}, r"'l2' parameter of DFS must be a float in the range \[0.0, inf\). Got None"),
        ({"l2": np.nan}, r"'l2' parameter of DFS must be a float in the range \[0.0, inf\)"),
        ({"epochs": 0}, r"'epochs' parameter of DFS must be an int in the range \[1, inf\)"),
        ({"epochs": 2.5}, r"'epochs' parameter of DFS must be an int in the range \[1, inf\)"),
        ({"batch_size": 0}, r"'batch_size' parameter of DFS must be an int in the range \[1, inf\)"),
        ({"learning_rate": 0.0}, r"'learning_rate' parameter of DFS must be a float in the range \(0.0, inf\)"),
        ({"weight_l2": "a"}, r"'weight_l2' parameter of DFS must be a float in the range \[0.0, inf\)"),
        ({"normalize": "minmax"}, "'normalize' parameter of DFS must be a str among"),
        ({"network": "mpl"}, "Did you mean 'mlp'"),
        ({"network": 3}, "'network' parameter of DFS must be .* a callable"),
        ({"network": "cnn3"}, r"reads images: set input_shape=\(channels, height, width\)"),
        ({"network": "cnn3", "input_shape": (1, 8, 8)}, "has 64 entries, but X has 12 columns"),
        ({"loss": "hinge"}, "'loss' parameter of DFS must be a str among"),
        ({"loss": "squared_error"}, "for regression; for classification use one of"),
        ({"loss": "softmax", "task": "regression"}, "for classification; for regression use one of"),
        ({"network": lambda n, k: nn.Flatten(0)}, r"must give 1 output\(s\) per row"),
        ({"network": lambda n, k: nn.Linear(n, 3)}, r"for 2 rows \(2, 1\), got \(2, 3\)"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = informative_table()
    with pytest.raises(ValueError, match=message):
        DFS(2, **parameters).fit(X, y)


def test_bad_data():
    X, y = informative_table(n_samples=20)
    with pytest.raises(TypeError, match="must return a torch module"):
        DFS(2, network=lambda n, k: "net").fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        DFS(2).fit(X, np.zeros(20, dtype=int))
    with pytest.raises(ValueError, match="contains NaN in column 3"):
        DFS(2).fit(np.where(np.arange(12) == 3, np.nan, X), y)
    with pytest.raises(ValueError, match="beyond the range of float32"):
        DFS(2, normalize=None).fit(X * 1e60, y)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        DFS(2).fit(X[:1], y[:1])


@pytest.mark.data
@pytest.mark.skipif("TAMIZ_DATA_HOME" not in os.environ, reason="TAMIZ_DATA_HOME is not set")
def test_colon():
    table = np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / "colon.npz")
    X, y = table["X"], table["y"]
    selector = DFS(50, epochs=30, random_state=0).fit(X, y)
    correlation = np.abs(np.corrcoef(X.T, y)[-1, :-1])
    chosen, rest = correlation[selector.get_support()], correlation[~selector.get_support()]
    assert chosen.mean() > 2 * rest.mean()
