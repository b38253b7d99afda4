"""The models that judge a set of features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz import ErfScaler
from tamiz.paper.recipes import (
    FULL_GRID,
    GRIDS,
    SMALL_GRID,
    Picked,
    erf_pair,
    fit_svm,
    learner_settings,
    naive_network,
    score_learner,
    select_for_all,
)


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 30)).astype(np.float32)
    y = (X[:, 3] - X[:, 7] + 0.1 * generator.normal(size=300) > 0).astype(np.int64)
    return X[:200], y[:200], X[200:], y[200:]


def test_erf_pair_is_the_scaler_of_the_training_part(table):
    train, _, test, _ = table
    scaler = ErfScaler().fit(train)
    for mine, theirs in zip(erf_pair(train, test), (scaler.transform(train), scaler.transform(test))):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    for mine, theirs in zip(erf_pair(sp.csr_matrix(train), sp.csr_matrix(test)), erf_pair(train, test)):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_svm_picks_the_setting_that_a_grid_search_picks(table):
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import LinearSVC

    train, y, _, _ = table
    search = GridSearchCV(
        LinearSVC(dual="auto", random_state=0),
        {"C": list(SMALL_GRID.values)},
        cv=StratifiedKFold(5),
        scoring="accuracy",
    ).fit(train, y)
    machine = fit_svm(train, y, SMALL_GRID, seed=0)
    assert search.best_params_["C"] == machine.C
    np.testing.assert_array_equal(machine.coef_, search.best_estimator_.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_full_grid_tries_all_of_the_papers_solvers(table):
    train, y, test, y_test = table
    assert len(FULL_GRID.solvers) * len(FULL_GRID.values) == 44
    machine = fit_svm(train, y, FULL_GRID, seed=0)
    assert np.mean(machine.predict(test) == y_test) > 0.7


def test_classes_with_few_rows_have_fewer_folds():
    X = np.array([[0.0], [0.1], [1.0], [0.9], [1.1], [1.2]])
    assert fit_svm(X, np.array([0, 0, 1, 1, 1, 1]), SMALL_GRID, 0).predict([[0.05], [1.0]]).tolist() == [0, 1]
    assert fit_svm(X, np.array([0, 1, 1, 1, 1, 1]), SMALL_GRID, 0).C == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", ["naive", "svm"])
def test_judges_see_only_the_picked_columns(table, learner):
    train, y, test, y_test = table
    good, bad = Picked(np.array([3, 7]), 0.0), Picked(np.array([0, 1]), 0.0)
    scores = [score_learner(learner, picked, train, y, test, y_test, "small", 0) for picked in (good, bad)]
    assert scores[0] > 0.9 > scores[1] + 0.1
    changed = test.copy()
    changed[:, [0, 1]] = 99
    assert score_learner(learner, good, train, y, changed, y_test, "small", 0) == scores[0]


def test_naivef_is_the_model_that_selected(table):
    train, y, test, y_test = table
    found = select_for_all("e2efs-soft", train, y, [2, 4], ("toy", 0))
    assert [picked.columns.size for picked in found] == [2, 4]
    assert found[0].columns.tolist() == [3, 7]
    assert score_learner("naivef", found[0], train, y, test, y_test, "small", 0) > 0.9


def test_the_naive_network_of_the_paper_is_trained_for_150_epochs(table):
    train, y, _, _ = table
    model = naive_network(2, "paper", seed=0).fit(train[:, [3, 7]], y)
    assert model.n_iter_ == 150 * 50
    assert model.normalize == "erf2"
    paper, own = (learner_settings("naive", "small", recipe)["decided"] for recipe in ("paper", "tamiz"))
    assert (paper["learning_rate"], paper["refinement_l2"]) == (1e-3, 0.1)
    assert own["learning_rate"] == 3e-3


def test_settings_of_learners_tell_the_grids_apart():
    assert learner_settings("svm", "small", None) != learner_settings("svm", "full", None)
    assert set(GRIDS) == {"small", "full"}
