"""groups, keep, drop, costs, budget and missing on the estimators."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from tamiz import E2EFSClassifier, E2EFSPath, E2EFSRegressor, Training
from tamiz.persistence import SavedModel
from tamiz.selection import Selection

SHORT = {"training": Training(ramp_steps=600, refinement_epochs=10), "random_state": 0}


@pytest.fixture
def data():
    X = np.random.default_rng(0).normal(size=(100, 20))
    return X, (X[:, 4] - X[:, 11] > 0).astype(int)


def test_m_counts_groups_and_all_their_columns_are_read(data):
    X, y = data
    clf = E2EFSClassifier(2, groups=np.arange(20) // 4, **SHORT).fit(X, y)
    assert clf.n_features_to_select_ == 2
    assert clf.get_support(indices=True).tolist() == [4, 5, 6, 7, 8, 9, 10, 11]
    assert np.flatnonzero(clf.coef_[0]).tolist() == [4, 5, 6, 7, 8, 9, 10, 11]
    assert clf.transform(X).shape == (100, 8)
    assert sorted(clf.ranking_.tolist()) == list(range(1, 21))
    assert set(clf.ranking_[4:12]) == set(range(1, 9))
    selection = clf.selection_
    assert selection.group_support.tolist() == [False, True, True, False, False]
    assert sorted(selection.group_ranking[1:3].tolist()) == [1, 2]
    assert selection.group_names.tolist() == ["0", "1", "2", "3", "4"]
    other = X.copy()
    other[:, ~clf.get_support()] = 99.0
    np.testing.assert_array_equal(clf.predict(X), clf.predict(other))
    again = Selection.from_json(selection.to_json())
    assert again.groups.tolist() == selection.groups.tolist()
    assert again.group_names.tolist() == selection.group_names.tolist()
    assert again.history["gamma_path_features"].max() < 20


def test_names_of_a_data_frame(data):
    X, y = data
    frame = pandas.DataFrame(X).add_prefix("c")
    groups = {"first": ["c0", "c1"], "signal": ["c4", "c11"]}
    clf = E2EFSClassifier(3, groups=groups, keep=["c19"], drop=["c7"], **SHORT).fit(frame, y)
    assert {"c4", "c11", "c19"} <= set(clf.get_feature_names_out())
    assert clf.selection_.elimination[19] == 1
    assert clf.ranking_[19] <= 4
    assert clf.ranking_[7] == 20
    assert clf.predict(frame).shape == (100,)
    assert clf.selection_.group_names[:2].tolist() == ["first", "c2"]


@pytest.mark.parametrize("seed", range(3))
def test_kept_columns_count_and_dropped_ones_never_come(data, seed):
    reg = E2EFSRegressor(3, keep=[0], drop=[4], **{**SHORT, "random_state": seed}).fit(*data)
    assert reg.get_support()[[0, 4, 11]].tolist() == [True, False, True]
    assert reg.get_support().sum() == 3
    assert E2EFSClassifier(2, keep=[1, 2], **SHORT).fit(*data).get_support(indices=True).tolist() == [1, 2]


@pytest.mark.parametrize("network", ["linear", "additive", "pairs"])
@pytest.mark.filterwarnings("ignore:The network removes")
def test_a_budget_is_kept_and_nothing_else_fits(data, network):
    X, y = data
    costs = np.random.default_rng(1).uniform(1, 4, size=20)
    clf = E2EFSClassifier(costs=costs, budget=9.0, keep=[2], network=network, **SHORT).fit(X, y)
    kept = clf.get_support()
    spent = costs[kept].sum()
    assert kept[2]
    assert spent <= 9.0 < spent + costs[~kept].min()
    assert clf.n_features_to_select_ == kept.sum()
    assert clf.decision_function(X).shape == (100,)
    assert clone(clf).fit(X, y).get_support().tolist() == kept.tolist()


@pytest.mark.parametrize("sparse", [False, True])
def test_missing_values_are_filled_with_training_means_and_indicated(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = np.where(rng.random(200) < 0.5, "ill", "well")
    X[(y == "ill") & (rng.random(200) < 0.9), 6] = np.nan  # that it is missing tells all
    X[rng.random((200, 10)) < 0.05] = np.nan
    table = sp.csr_matrix(X) if sparse else X
    clf = E2EFSClassifier(1, missing="indicator", **SHORT).fit(table, y)
    assert clf.get_support(indices=True).tolist() == [6]
    assert clf.score(table, y) >= 0.9
    assert clf.model_.coef.shape == (1, 2)
    assert np.flatnonzero(clf.coef_[0]).tolist() == [6]
    np.testing.assert_allclose(clf.missing_.fill, clf.statistics_.mean[:1])
    assert clf.transform(table).shape == (200, 1)
    with pytest.raises(ValueError, match="infinity"):
        clf.predict(np.full((1, 10), np.inf))


def test_a_gap_that_training_did_not_have_is_filled(data):
    X, y = data
    clf = E2EFSClassifier(2, missing="indicator", **SHORT).fit(X, y)
    plain = E2EFSClassifier(2, **SHORT).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
    gap, mean = X[:1].copy(), X[:1].copy()
    gap[0, 4], mean[0, 4] = np.nan, clf.missing_.fill[0]
    np.testing.assert_allclose(clf.decision_function(gap), clf.decision_function(mean))


@pytest.mark.parametrize("network", ["linear", "additive", "pairs", "mlp"])
@pytest.mark.parametrize("keep", [None, ["c11"]])
def test_a_model_file_knows_groups_and_indicators(data, network, keep):
    X, y = data
    X = X.astype(np.float32)
    X[::7, 11] = np.nan
    frame = pandas.DataFrame(X).add_prefix("c")
    options = {"groups": [["c4", "c5"]], "missing": "indicator", "keep": keep, **SHORT}
    clf = E2EFSClassifier(2, network=network, **options).fit(frame, y)
    assert clf.get_support(indices=True).tolist() == [4, 5, 11]
    saved = SavedModel.from_bytes(SavedModel.from_estimator(clf).to_bytes())
    np.testing.assert_allclose(saved.scores(frame)[:, 0], clf.decision_function(frame), atol=1e-4)
    np.testing.assert_array_equal(saved.predict(frame), clf.predict(frame).astype(str))
    assert [feature.name for feature in saved.features if feature.missing] == ["c11 is missing"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_network_can_be_chosen_with_groups_forced_columns_and_indicators():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 6))
    y = X[:, 1] * X[:, 4] > 0
    X[rng.random(120) < 0.1, 4] = np.nan
    options = {"groups": [[0, 1]], "keep": [4], "drop": [5], "missing": "indicator", "cv": 4}
    clf = E2EFSClassifier(2, network="auto", **options, **SHORT).fit(X, y)
    choice = clf.selection_.choices["network"]
    assert clf.network_ in ("pairs", "mlp")
    assert choice["reasons"]["mlp"] == "not tried: fewer than 500 rows"
    assert clf.get_support(indices=True).tolist() == [0, 1, 4]
    assert clf.score(X, y) > 0.75
    paid = E2EFSRegressor(network="auto", costs=[1, 1, 1, 1, 3, 1], budget=4, **{**options, "drop": None}, **SHORT)
    paid.fit(X, y)
    assert paid.get_support()[4]
    assert paid.get_support().sum() == 2


def test_a_path_counts_groups(data):
    X, y = data
    base = E2EFSClassifier(groups=np.arange(20) // 2, keep=[0], **SHORT)
    path = E2EFSPath([2, 0.5], estimator=base).fit(X, y)
    assert path.n_features_to_select_ == [2, 5]
    assert [path.support_at(m).sum() for m in (2, 5)] == [4, 10]
    assert path.support_at(2)[:2].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [[0, 1], [1, 2]]}, "in two groups"),
        ({"keep": ["age"]}, "the columns have no names"),
        ({"keep": [0, 1, 2]}, "keep holds 3 features, more than n_features_to_select=2"),
        ({"keep": [0], "drop": [0]}, "at odds"),
        ({"budget": 5.0}, "takes the place of n_features_to_select"),
        ({"n_features_to_select": None, "budget": 5.0}, "a budget needs costs"),
        ({"n_features_to_select": None, "budget": 0.5, "costs": np.ones(20)}, "below the cheapest"),
        ({"n_features_to_select": None, "budget": 5.0, "costs": -np.ones(20)}, "from 0 on"),
        (
            {"n_features_to_select": None, "budget": 2.0, "costs": np.ones(20), "keep": [0, 1, 2]},
            "more than the budget",
        ),
        ({"missing": "drop"}, "missing"),
        ({"groups": np.arange(20) // 10, "n_features_to_select": 3}, "more than the 2 feature"),
    ],
)
def test_bad_options_are_reported_before_training(data, options, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        E2EFSClassifier(**{"n_features_to_select": 2, **SHORT, **options}).fit(X, y)
