"""The pair network in the estimators: what no column tells alone, pairs, screening, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.paper import make_ring, make_ring_xor_sum, make_xor
from tamiz.persistence import SavedModel

CLASSIFIER = E2EFSClassifier(2, network="pairs", random_state=0)
REGRESSOR = E2EFSRegressor(2, network="pairs", random_state=0)


def saddle(n=300, f=50):
    X = np.random.default_rng(0).normal(size=(n, f))
    return X, X[:, 4] * X[:, 11]


@pytest.mark.parametrize(("make", "p"), [(make_ring, 256), (make_xor, 256), (make_ring_xor_sum, 64), (make_xor, 4)])
def test_the_truth_is_found(make, p):
    X, y, truth = make(834, p, random_state=0)
    model = clone(CLASSIFIER).set_params(n_features_to_select=truth.relevant.size).fit(X, y)
    assert truth.share_found(model.get_support(indices=True)) == 1.0
    assert model.selection_.engine == "pairs"
    assert model.score(X, y) > 0.8
    a, b = truth.informative[:2]
    assert {a, b} in [set(pair.indices) for pair in model.pairs_[:3]]
    assert not hasattr(model, "coef_")


def test_pairs_have_names_and_strengths():
    X, score = saddle()
    y = np.where(score > 0, "same", "other")
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(50)])
    model = clone(CLASSIFIER).set_params(n_features_to_select=3, loss="logistic").fit(frame, y)
    strongest = model.pairs_[0]
    assert (strongest.first, strongest.second, strongest.indices) == ("gene 4", "gene 11", (4, 11))
    assert strongest.strength > 2 * model.pairs_[1].strength
    assert clone(CLASSIFIER).fit(X, y).pairs_[0][:2] == ("x4", "x11")
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1.0)
    assert not hasattr(E2EFSClassifier(2, random_state=0).fit(X, y), "pairs_")


def test_pairs_of_groups_forced_columns_and_indicators():
    X, score = saddle()
    y = score > 0
    X[::9, 4] = np.nan
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(50)])
    gaps = clone(CLASSIFIER).set_params(missing="indicator")
    groups = {"pathway": ["gene 11", "gene 12"], "other": ["gene 0", "gene 1"]}
    grouped = clone(gaps).set_params(groups=groups).fit(frame, y)
    assert [effect[:3] for effect in grouped.pairs_] == [("gene 4", "pathway", (3, 10))]
    assert grouped.selection_.group_names[[3, 10]].tolist() == ["gene 4", "pathway"]
    # A kept column and its indicator have no entry of gamma; together they are still one column.
    kept = clone(gaps).set_params(keep=["gene 4"], network__n_screened=3).fit(frame, y)
    assert [effect[:3] for effect in kept.pairs_] == [("gene 4", "gene 11", (4, 11))]
    assert kept.get_support(indices=True).tolist() == [4, 11]
    both = clone(gaps).set_params(n_features_to_select=3, keep=["gene 11", "gene 30"], drop=["gene 0"]).fit(frame, y)
    assert both.get_support(indices=True).tolist() == [4, 11, 30]
    assert {effect.indices for effect in both.pairs_} == {(4, 11), (4, 30), (11, 30)}
    assert both.pairs_[0].indices == (4, 11)
    assert both.score(frame, y) > 0.8


def test_predictions_read_the_selected_columns_alone():
    X, y = saddle()
    model = clone(REGRESSOR).fit(X, 1e6 * y + 5e7)
    assert model.get_support(indices=True).tolist() == [4, 11]
    assert model.score(X, 1e6 * y + 5e7) > 0.8
    assert model.pairs_[0].strength > 3e5  # in the units of the target
    other = X.copy()
    other[:, ~model.get_support()] = 1e3
    np.testing.assert_array_equal(model.predict(other), model.predict(X))


def test_several_classes_labels_and_targets():
    X, score = saddle(600)
    classes = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    for loss in ("squared_hinge", "softmax"):
        model = clone(CLASSIFIER).set_params(loss=loss).fit(X, classes)
        assert model.get_support(indices=True).tolist() == [4, 11]
        assert model.score(X, classes) > 0.6
    labels = np.column_stack([score > 0, X[:, 4] * X[:, 20] > 0]).astype(int)
    several = clone(CLASSIFIER).set_params(n_features_to_select=3).fit(X, labels)
    assert several.get_support(indices=True).tolist() == [4, 11, 20]
    numbers = clone(REGRESSOR).fit(X, np.column_stack([score, X[:, 4] + X[:, 11]]))
    assert numbers.score(X, np.column_stack([score, X[:, 4] + X[:, 11]])) > 0.8


def test_rare_classes():
    X, score = saddle(600)
    y = score > np.quantile(score, 0.9)
    assert clone(CLASSIFIER).fit(X, y).get_support(indices=True).tolist() == [4, 11]


@pytest.mark.parametrize("normalize", ["erf", "standard", None])
def test_sparse_tables(normalize):
    X, _ = saddle(600, 80)
    X[np.abs(X) < 0.4] = 0.0
    y = X[:, 4] * X[:, 11] > 0
    model = clone(CLASSIFIER).set_params(normalize=normalize).fit(sp.csr_matrix(X), y)
    assert model.get_support(indices=True).tolist() == [4, 11]
    np.testing.assert_allclose(model.decision_function(sp.csr_matrix(X)), model.decision_function(X), atol=1e-4)


def test_a_small_sparse_table_gives_the_same_as_a_dense_one():
    X, _ = saddle(300, 40)
    X[np.abs(X) < 0.4] = 0.0
    y = (X[:, 4] ** 2 - X[:, 11] > 0.5).astype(int)
    dense, sparse = (clone(CLASSIFIER).fit(table, y) for table in (X, sp.csr_matrix(X)))
    np.testing.assert_array_equal(dense.ranking_, sparse.ranking_)
    np.testing.assert_array_equal(dense.decision_function(X), sparse.decision_function(X))


def test_how_many_are_screened_can_be_set():
    X, score = saddle()
    model = clone(CLASSIFIER).set_params(network__n_screened=6).fit(X, score > 0)
    assert model.selection_.history["n_alive"][0] == 6
    assert clone(CLASSIFIER).set_params(network__n_screened=50).fit(X, score > 0).selection_.history["n_alive"][0] == 50
    few = clone(CLASSIFIER).set_params(network__n_screened=1, n_features_to_select=30).fit(X, score > 0)
    assert few.get_support().sum() == 30


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_rows_constants_and_one_column():
    X = np.column_stack([np.zeros(2), [0.0, 1.0], np.full(2, 7.0), [3.0, 1.0]])
    assert clone(CLASSIFIER).fit(X, [0, 1]).get_support(indices=True).tolist() == [1, 3]
    constant = clone(CLASSIFIER).fit(np.ones((30, 60)), np.arange(30) % 2)
    assert constant.get_support().sum() == 2
    assert np.isfinite(constant.decision_function(np.ones((3, 60)))).all()
    one = clone(CLASSIFIER).set_params(n_features_to_select=1).fit(X[:, [1]], [0, 1])
    assert one.get_support().tolist() == [True]


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_saved_model_predicts_the_same(n_classes):
    X, score = saddle()
    if n_classes:
        y = np.array(["a", "b", "c"])[np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))]
        model = clone(CLASSIFIER).set_params(n_features_to_select=4).fit(X, y)
    else:
        y = 1e4 + 300 * score
        model = clone(REGRESSOR).set_params(n_features_to_select=4).fit(X, y)
    again = SavedModel.from_bytes(SavedModel.from_estimator(model).to_bytes())
    kept = X[:, model.get_support()]
    expected = model.predict(X) if not n_classes else model.decision_function(X)
    np.testing.assert_allclose(again.scores(kept).reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)
    if n_classes:
        np.testing.assert_array_equal(again.predict(kept), model.predict(X))
