"""Saliency-based Feature Selection: a step by hand, against the weights of a linear network, and what it finds."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz.baselines import DFS, ISFS, SFS, SFSDFS
from tamiz.rows.scaling import prepare_table

CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
CORNER_CLASSES = np.array([1, 1, 0, 0])


def informative_table(n_classes=2, n_samples=90, n_features=12, seed=0):
    """Columns 2 and 7 decide the class; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    value = X[:, 2] + X[:, 7]
    return X, np.searchsorted(np.quantile(value, np.arange(1, n_classes) / n_classes), value)


@parametrize_with_checks([SFS(**SFS._fast_test_params), SFS(network="mlp", epochs=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_one_step_by_hand():
    # v = (0, 0): the gradient of the mean of (1 - y s)^2 is (-2 * 1, -2 * a), a = mean of y x_1 over the rows.
    # The second column is y times (3, 1, 1, 1) / 3: a > 0, and Adam's first step is the rate times the sign: (0.1, 0.1).
    X = np.array([[1.0, 1.0], [1.0, 1 / 3], [-1.0, -1 / 3], [-1.0, -1 / 3]])
    selector = SFS(1, epochs=1, batch_size=4, learning_rate=0.1, weight_l2=0.0, normalize=None)
    selector.fit(X, CORNER_CLASSES)
    # |v| = (0.1, 0.1): shares of one half. Margins y s: 0.2, 0.1 + 1/30 three times.
    loss = (0.8**2 + 3 * (1 - 0.1 - 1 / 30) ** 2) / 4
    assert selector.training_loss_ == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(selector.scores_, [0.5 / loss, 0.5 / loss], rtol=1e-4)
    assert selector.ranking_.tolist() == [1, 2]  # of equal scores the column further left comes first


def test_a_column_of_no_use_has_no_saliency():
    selector = SFS(1, epochs=1, batch_size=4, learning_rate=0.1, weight_l2=0.0, normalize=None)
    selector.fit(CORNERS, CORNER_CLASSES)
    # v = (0.1, 0), so the share is all the first column's, and the loss (1 - 0.1)^2
    np.testing.assert_allclose(selector.scores_, [1 / 0.81, 0.0], rtol=1e-5)


def test_naive_network_ranks_like_a_linear_svm():
    # The trained naive network is the SVM with C = 1 / (2 l2 N) per sample; SFS of a linear network is |weight|.
    X, y = informative_table()
    rows = prepare_table(X, "erf").dense().astype(np.float64)
    svm = LinearSVC(C=1 / (0.02 * 90), class_weight="balanced", tol=1e-8, intercept_scaling=100, max_iter=100_000)
    weights = np.abs(svm.fit(rows, y).coef_[0])
    selector = SFS(epochs=400, batch_size=90, learning_rate=0.05, weight_l2=0.01).fit(X, y)
    share = selector.scores_ * selector.training_loss_
    np.testing.assert_allclose(share, weights / weights.sum(), atol=0.005)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_informative_columns_are_found(n_classes, network):
    X, y = informative_table(n_classes, n_samples=300)
    parameters = {"epochs": 40, "batch_size": 30, "learning_rate": 0.02, "weight_l2": 0.001, "random_state": 0}
    selector = SFS(2, network=network, **parameters).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 7]
    assert (selector.scores_ >= 0).all()


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_cross_entropy(loss, n_classes):
    X, y = informative_table(n_classes)
    selector = SFS(2, loss=loss, epochs=40, learning_rate=0.01, weight_l2=0.001, random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 7]


def test_regression():
    X, _ = informative_table()
    y = X[:, 3] - 2 * X[:, 5] + 100
    selector = SFS(2, epochs=40, learning_rate=0.01, weight_l2=0.001, random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [3, 5]
    assert selector.ranking_[5] == 1


def test_exclusive_or_needs_a_hidden_layer():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 6))
    y = (X[:, 1] * X[:, 4] > 0).astype(int)
    parameters = {"epochs": 40, "learning_rate": 0.02, "weight_l2": 0.0, "batch_size": 40, "random_state": 0}
    assert SFS(2, network="mlp", **parameters).fit(X, y).get_support(indices=True).tolist() == [1, 4]


def test_permuting_columns_permutes_scores():
    X, y = informative_table()
    order = np.random.default_rng(1).permutation(12)
    first = SFS(epochs=10, random_state=3).fit(X, y).scores_
    second = SFS(epochs=10, random_state=3).fit(X[:, order], y).scores_
    np.testing.assert_allclose(second, first[order], rtol=1e-3)


def test_constant_columns_come_last():
    X, y = informative_table()
    X[:, 0] = 7.0
    scores = SFS(network="mlp", epochs=3, random_state=0).fit(X, y).scores_
    assert scores[0] == 0.0
    assert (scores[1:] > 0).all()


def test_verbose(capsys):
    X, y = informative_table(n_samples=20)
    SFS(2, epochs=3, verbose=True).fit(X, y)
    assert "epoch 3/3: loss" in capsys.readouterr().err


def test_a_device_that_is_not_there():
    X, y = informative_table(n_samples=20)
    with pytest.raises(ValueError, match="such as 'cpu', 'cuda' or 'cuda:1', got 'gpu'"):
        SFS(2, device="gpu").fit(X, y)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch finds no GPU here"):
            SFS(2, device="cuda").fit(X, y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("kind", [SFS, DFS, ISFS, SFSDFS])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_a_gpu_finds_what_the_cpu_finds(kind, network):
    X, y = informative_table()
    selector = kind(2, network=network, device="cuda", random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 7]


@pytest.mark.data
@pytest.mark.skipif("TAMIZ_DATA_HOME" not in os.environ, reason="TAMIZ_DATA_HOME is not set")
def test_colon():
    table = np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / "colon.npz")
    X, y = table["X"], table["y"]
    selector = SFS(50, random_state=0).fit(X, y)
    correlation = np.abs(np.corrcoef(X.T, y)[-1, :-1])
    chosen, rest = correlation[selector.get_support()], correlation[~selector.get_support()]
    assert chosen.mean() > 1.7 * rest.mean()
