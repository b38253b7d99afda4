"""The additive network in the estimators: what a line cannot see, curves, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.paper import make_ring

CLASSIFIER = E2EFSClassifier(2, network="additive", random_state=0)
REGRESSOR = E2EFSRegressor(2, network="additive", random_state=0)


def bowl(n=300, f=20):
    X = np.random.default_rng(0).normal(size=(n, f))
    return X, X[:, 4] ** 2 + 2 * np.abs(X[:, 11])


@pytest.mark.parametrize("p", [8, 256])
def test_a_ring_is_found_that_a_line_does_not_see(p):
    X, y, truth = make_ring(834, p, random_state=0)
    model = clone(CLASSIFIER).fit(X, y)
    assert truth.share_found(model.get_support(indices=True)) == 1.0
    assert model.selection_.engine == "additive"
    assert model.score(X, y) > 0.65
    assert not hasattr(model, "coef_")


def test_predictions_read_the_selected_columns_alone_and_curves_add_up():
    X, score = bowl()
    y = np.where(score > np.median(score), "high", "low")
    model = clone(CLASSIFIER).set_params(loss="logistic").fit(X, y)
    assert model.get_support(indices=True).tolist() == [4, 11]
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    other = X.copy()
    other[:, ~model.get_support()] = 1e3
    np.testing.assert_array_equal(model.decision_function(other), model.decision_function(X))
    curves = [model.model_.effects(i)[1][0] for i in range(2)]
    assert all(
        curve[0] < curve[curve.size // 2] > curve[-1] for curve in curves
    )  # "low", the second class, is the middle


def test_numbers_in_their_own_units():
    X, y = bowl()
    model = clone(REGRESSOR).fit(X, 1e6 * y + 5e7)
    assert model.get_support(indices=True).tolist() == [4, 11]
    assert model.score(X, 1e6 * y + 5e7) > 0.9
    heights = model.model_.effects(0)[1]
    assert np.ptp(heights) > 1e6


def test_several_classes_labels_and_targets():
    X, score = bowl()
    classes = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    model = clone(CLASSIFIER).set_params(loss="softmax").fit(X, classes)
    assert model.get_support(indices=True).tolist() == [4, 11]
    assert model.model_.effects(0)[1].shape[0] == 3
    labels = np.column_stack([np.abs(X[:, 4]) > 0.7, np.abs(X[:, 11]) > 0.7]).astype(int)
    assert clone(CLASSIFIER).fit(X, labels).score(X, labels) > 0.8
    several = clone(REGRESSOR).fit(X, np.column_stack([X[:, 4] ** 2, np.abs(X[:, 11])]))
    assert several.score(X, np.column_stack([X[:, 4] ** 2, np.abs(X[:, 11])])) > 0.85


@pytest.mark.parametrize("normalize", ["erf", "standard", None])
def test_sparse_equals_dense(normalize):
    X, _ = bowl()
    X[np.abs(X) < 0.6] = 0.0
    y = np.abs(X[:, 4]) + np.abs(X[:, 11]) > 0.7
    dense = clone(CLASSIFIER).set_params(normalize=normalize).fit(X, y)
    sparse = clone(CLASSIFIER).set_params(normalize=normalize).fit(sp.csr_matrix(X), y)
    assert sparse.get_support(indices=True).tolist() == dense.get_support(indices=True).tolist() == [4, 11]
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), dense.decision_function(X), atol=0.02)


def test_two_rows_and_constant_columns():
    X = np.column_stack([np.zeros(2), [0.0, 1.0], np.full(2, 7.0), [3.0, 1.0]])
    model = clone(CLASSIFIER).fit(X, [0, 1])
    assert model.get_support(indices=True).tolist() == [1, 3]
    assert model.predict(X).tolist() == [0, 1]


def test_every_column_constant():
    model = clone(CLASSIFIER).fit(np.ones((10, 4)), np.arange(10) % 2)
    assert model.get_support().sum() == 2
    assert np.isfinite(model.decision_function(np.ones((3, 4)))).all()


def test_codes_of_categories():
    rng = np.random.default_rng(1)
    X = rng.integers(5, size=(300, 15)).astype(float)
    y = np.isin(X[:, 3], [0, 3]) ^ np.isin(X[:, 3], [4])
    model = clone(CLASSIFIER).set_params(n_features_to_select=1).fit(X, y)
    assert model.get_support(indices=True).tolist() == [3]
    assert model.score(X, y) == 1.0
    assert model.model_.effects(0)[0].size == 5


def test_outliers_do_not_reach_beyond_the_outer_knots():
    X, y = bowl()
    model = clone(REGRESSOR).set_params(normalize=None).fit(X, y)
    far = X.copy()
    far[:, [4, 11]] = 1e6
    at_the_end = np.tile(X.max(axis=0), (300, 1))
    np.testing.assert_allclose(model.predict(far), model.predict(at_the_end), rtol=1e-5)
