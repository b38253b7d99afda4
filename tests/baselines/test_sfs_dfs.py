"""SFS+DFS: a step by hand, and what tells it from SFS and DFS."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tamiz.baselines import DFS, SFS, SFSDFS

CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
CORNER_CLASSES = np.array([1, 1, 0, 0])


def informative_table(n_classes=2, n_samples=90, n_features=12, seed=0):
    """Columns 2 and 7 decide the class; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    value = X[:, 2] + X[:, 7]
    return X, np.searchsorted(np.quantile(value, np.arange(1, n_classes) / n_classes), value)


@parametrize_with_checks([SFSDFS(**SFSDFS._fast_test_params)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_one_step_by_hand():
    # Adam's first step is the rate times the sign: v = (0.1, 0), w = 1 - 0.1 (the penalty alone pulls): s = 0.09 x_0.
    selector = SFSDFS(1, epochs=1, batch_size=4, learning_rate=0.1, weight_l2=0.0, normalize=None)
    selector.fit(CORNERS, CORNER_CLASSES)
    assert selector.training_loss_ == pytest.approx(0.91**2, rel=1e-5)  # without the penalty
    np.testing.assert_allclose(selector.scores_, [1 / 0.91**2, 0.0], rtol=1e-5)


def test_the_layer_is_a_factor_of_the_saliency():
    # For a linear network the saliency is |w v|; DFS with the same seed trains the same network and shows |w|.
    X, y = informative_table()
    parameters = {"l1": 0.05, "epochs": 10, "learning_rate": 0.01, "random_state": 0}
    joint = SFSDFS(2, **parameters).fit(X, y)
    layer = DFS(2, **parameters).fit(X, y).scores_
    plain = SFS(2, epochs=10, learning_rate=0.01, random_state=0).fit(X, y).scores_
    gone = layer < 0.05
    assert gone.any()
    assert (joint.scores_[gone] / joint.scores_.sum() < plain[gone] / plain.sum()).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_informative_columns_are_found(n_classes, network):
    X, y = informative_table(n_classes, n_samples=300)
    parameters = {"epochs": 40, "batch_size": 30, "learning_rate": 0.02, "weight_l2": 0.001, "random_state": 0}
    selector = SFSDFS(2, network=network, **parameters).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [2, 7]


def test_regression():
    X, _ = informative_table()
    y = X[:, 3] - 2 * X[:, 5] + 0.25
    selector = SFSDFS(2, epochs=40, learning_rate=0.01, weight_l2=0.001, random_state=0).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [3, 5]


def test_permuting_columns_permutes_scores():
    X, y = informative_table()
    order = np.random.default_rng(1).permutation(12)
    first = SFSDFS(epochs=10, random_state=3).fit(X, y).scores_
    second = SFSDFS(epochs=10, random_state=3).fit(X[:, order], y).scores_
    np.testing.assert_allclose(second, first[order], rtol=1e-3, atol=1e-6)


def test_bad_penalty():
    X, y = informative_table()
    with pytest.raises(ValueError, match="'l1' parameter of SFSDFS must be a float"):
        SFSDFS(2, l1=-0.5).fit(X, y)


@pytest.mark.data
@pytest.mark.skipif("TAMIZ_DATA_HOME" not in os.environ, reason="TAMIZ_DATA_HOME is not set")
def test_colon():
    table = np.load(Path(os.environ["TAMIZ_DATA_HOME"]) / "colon.npz")
    X, y = table["X"], table["y"]
    selector = SFSDFS(50, random_state=0).fit(X, y)
    correlation = np.abs(np.corrcoef(X.T, y)[-1, :-1])
    chosen, rest = correlation[selector.get_support()], correlation[~selector.get_support()]
    assert chosen.mean() > 2 * rest.mean()
