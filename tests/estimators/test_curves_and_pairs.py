"""The additive and the pair network in the estimators: what no line sees, curves, joint effects, screening."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from tamiz import E2EFSClassifier, E2EFSRegressor
from tamiz.paper import make_ground_truth

CURVES, PAIRS = (E2EFSClassifier(2, network=network, random_state=0) for network in ("additive", "pairs"))


def regressor(network):
    return E2EFSRegressor(2, network=network, random_state=0)


def bowl(n=300, f=20):
    X = np.random.default_rng(0).normal(size=(n, f))
    return X, X[:, 4] ** 2 + 2 * np.abs(X[:, 11])


def saddle(n=300, f=50):
    X = np.random.default_rng(0).normal(size=(n, f))
    return X, X[:, 4] * X[:, 11]


SHAPES = {"additive": bowl, "pairs": saddle}


@pytest.mark.parametrize(
    ("model", "problem", "p", "least"),
    [
        (CURVES, "ring", 8, 0.65),
        (CURVES, "ring", 256, 0.65),
        (PAIRS, "ring", 256, 0.8),
        (PAIRS, "xor", 256, 0.8),
        (PAIRS, "ring+xor+sum", 64, 0.8),
        (PAIRS, "xor", 4, 0.8),
    ],
)
def test_the_truth_is_found(model, problem, p, least):
    X, y, truth = make_ground_truth(problem, 834, p, random_state=0)
    model = clone(model).set_params(n_features_to_select=truth.relevant.size).fit(X, y)
    assert truth.share_found(model.get_support(indices=True)) == 1.0
    assert model.selection_.engine == model.network
    assert model.score(X, y) > least
    assert not hasattr(model, "coef_")
    if model.network == "pairs":
        assert {*truth.informative[:2]} in [set(pair.indices) for pair in model.pairs_[:3]]


@pytest.mark.parametrize("network", SHAPES)
def test_numbers_in_their_own_units_from_the_selected_columns_alone(network):
    X, y = SHAPES[network]()
    model = regressor(network).fit(X, 1e6 * y + 5e7)
    assert model.get_support(indices=True).tolist() == [4, 11]
    assert model.score(X, 1e6 * y + 5e7) > 0.8
    if network == "additive":
        assert np.ptp(model.model_.effects(0)[1]) > 1e6
    else:
        assert model.pairs_[0].strength > 3e5
    other = X.copy()
    other[:, ~model.get_support()] = 1e3
    np.testing.assert_array_equal(model.predict(other), model.predict(X))


@pytest.mark.parametrize("network", SHAPES)
def test_several_classes_labels_and_targets(network):
    X, score = SHAPES[network](600)
    model, classes = clone(CURVES).set_params(network=network), np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    for loss in ("squared_hinge", "softmax"):
        found = clone(model).set_params(loss=loss).fit(X, classes)
        assert found.get_support(indices=True).tolist() == [4, 11]
        assert found.score(X, classes) > 0.6
    if network == "additive":
        assert found.model_.effects(0)[1].shape[0] == 3
        labels, true = np.abs(X[:, [4, 11]]) > 0.7, [4, 11]
    else:
        labels, true = np.column_stack([score > 0, X[:, 4] * X[:, 20] > 0]), [4, 11, 20]
    several = clone(model).set_params(n_features_to_select=len(true)).fit(X, labels.astype(int))
    assert several.get_support(indices=True).tolist() == true
    numbers = np.column_stack([score, np.abs(X[:, 4]) if network == "additive" else X[:, 4] + X[:, 11]])
    assert regressor(network).fit(X, numbers).score(X, numbers) > 0.8
    rare = clone(model).fit(X, score > np.quantile(score, 0.9))
    assert rare.get_support(indices=True).tolist() == [4, 11]


@pytest.mark.parametrize("normalize", ["erf", "standard", None])
@pytest.mark.parametrize("network", SHAPES)
def test_sparse_tables(network, normalize):
    X, _ = saddle(600, 80)
    X[np.abs(X) < 0.4] = 0.0
    y = X[:, 4] * X[:, 11] > 0 if network == "pairs" else np.abs(X[:, 4]) + np.abs(X[:, 11]) > 1.2
    model = clone(CURVES).set_params(network=network, normalize=normalize)
    dense, sparse = (clone(model).fit(table, y) for table in (X, sp.csr_matrix(X)))
    assert sparse.get_support(indices=True).tolist() == dense.get_support(indices=True).tolist() == [4, 11]
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), sparse.decision_function(X), atol=1e-4)
    if network == "pairs":  # a small table is made dense
        np.testing.assert_array_equal(dense.ranking_, sparse.ranking_)
        np.testing.assert_array_equal(dense.decision_function(X), sparse.decision_function(X))
    else:
        np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=0.02)


@pytest.mark.parametrize("network", ["linear", *SHAPES])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_rows_constants_and_one_column(network):
    model = clone(CURVES).set_params(network=network)
    X = np.column_stack([np.zeros(2), [0.0, 1.0], np.full(2, 7.0), [3.0, 1.0]])
    two = clone(model).fit(X, ["a", "b"])
    assert two.get_support(indices=True).tolist() == [1, 3]
    assert two.predict(X).tolist() == ["a", "b"]
    constant = clone(model).fit(np.ones((30, 60)), np.arange(30) % 2)
    assert constant.get_support().sum() == 2
    assert np.isfinite(constant.decision_function(np.ones((3, 60)))).all()
    one = clone(model).set_params(n_features_to_select=1).fit(X[:, [1]], [0, 1])
    assert one.get_support().tolist() == [True]


def test_curves_bend_and_probabilities_add_up():
    X, score = bowl()
    model = clone(CURVES).set_params(loss="logistic").fit(X, np.where(score > np.median(score), "high", "low"))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    for curve in (model.model_.effects(i)[1][0] for i in range(2)):
        assert curve[0] < curve[curve.size // 2] > curve[-1]  # "low", the second class, is the middle


def test_codes_of_categories():
    X = np.random.default_rng(1).integers(5, size=(300, 15)).astype(float)
    y = np.isin(X[:, 3], [0, 3]) ^ np.isin(X[:, 3], [4])
    model = clone(CURVES).set_params(n_features_to_select=1).fit(X, y)
    assert model.get_support(indices=True).tolist() == [3]
    assert model.score(X, y) == 1.0
    assert model.model_.effects(0)[0].size == 5


def test_outliers_do_not_reach_beyond_the_outer_knots():
    X, y = bowl()
    model = regressor("additive").set_params(normalize=None).fit(X, y)
    far = X.copy()
    far[:, [4, 11]] = 1e6
    at_the_end = np.tile(X.max(axis=0), (300, 1))
    np.testing.assert_allclose(model.predict(far), model.predict(at_the_end), rtol=1e-5)


def test_pairs_have_names_and_strengths():
    X, score = saddle()
    y = np.where(score > 0, "same", "other")
    frame = pd.DataFrame(X).add_prefix("gene ")
    model = clone(PAIRS).set_params(n_features_to_select=3, loss="logistic").fit(frame, y)
    strongest = model.pairs_[0]
    assert (strongest.first, strongest.second, strongest.indices) == ("gene 4", "gene 11", (4, 11))
    assert strongest.strength > 2 * model.pairs_[1].strength
    assert clone(PAIRS).fit(X, y).pairs_[0][:2] == ("x4", "x11")
    assert not hasattr(E2EFSClassifier(2, random_state=0).fit(X, y), "pairs_")


def test_pairs_of_groups_forced_columns_and_indicators():
    X, score = saddle()
    y = score > 0
    X[::9, 4] = np.nan
    frame = pd.DataFrame(X).add_prefix("gene ")
    gaps = clone(PAIRS).set_params(missing="indicator")
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


@pytest.mark.parametrize(("n_screened", "m", "n_trained"), [(6, 2, 6), (50, 2, 50), (1, 30, 30)])
def test_how_many_are_screened_can_be_set(n_screened, m, n_trained):
    X, score = saddle()
    model = clone(PAIRS).set_params(network__n_screened=n_screened, n_features_to_select=m).fit(X, score > 0)
    assert model.selection_.history["n_alive"][0] == n_trained
    assert model.get_support().sum() == m
