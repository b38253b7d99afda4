"""Lasso, SVM-RFE, forest, pair search, random and all features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_wine, make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE
from sklearn.linear_model import lars_path
from sklearn.svm import LinearSVC, LinearSVR

from tamiz.baselines import SVMRFE, AllFeatures, Lasso, PairSearchScore, RandomForestImportance, RandomSelection
from tamiz.paper import make_ground_truth


@pytest.mark.parametrize("wanted", range(1, 10))
def test_lasso_regression_keeps_the_first_of_the_lars_path(wanted):
    X, y = load_diabetes(return_X_y=True)
    selector = Lasso(wanted, task="regression").fit(X, y)
    penalties, _, coefficients = lars_path(X, y - y.mean(), method="lasso")
    assert selector.n_alive_ == wanted
    alive = [np.abs(np.array([np.interp(-selector.penalty_, -penalties, path) for path in coefficients])) > 1e-6]
    assert np.array_equal(selector.get_support(), alive[0])


def test_lasso_scores_say_where_each_feature_entered():
    X, y = load_diabetes(return_X_y=True)
    selector = Lasso(6, task="regression").fit(X, y)
    penalties, _, coefficients = lars_path(X, y - y.mean(), method="lasso")
    # The path of Efron et al. is exact: a feature enters at the penalty before the first at which it is not zero.
    entered = penalties[np.argmax(coefficients != 0, axis=1) - 1]
    kept = selector.get_support()
    np.testing.assert_allclose(selector.scores_[kept], entered[kept], rtol=0.2)  # ours is read off a grid
    first = np.argsort(-entered)[:4]
    assert np.argsort(selector.ranking_)[:4].tolist() == first.tolist()
    assert selector.scores_[selector.get_support()].min() >= selector.penalty_
    assert selector.scores_[~selector.get_support()].max() < selector.penalty_


@pytest.mark.parametrize("wanted", [1, 3, 8, 15])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_lasso_classes_keep_exactly_m_alive(wanted, n_classes):
    X, y = make_classification(90, 30, n_informative=6, n_redundant=2, n_classes=n_classes, random_state=0)
    selector = Lasso(wanted, random_state=0).fit(X, y)
    assert selector.n_alive_ == wanted == selector.get_support().sum()
    assert selector.selection_.converged


def test_lasso_more_than_the_rows_can_carry_is_said():
    X, y = make_regression(8, 30, n_informative=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="No penalty keeps exactly 20 features alive"):
        selector = Lasso(20).fit(X, y)
    assert selector.get_support().sum() == 20
    assert not selector.selection_.converged


def test_lasso_constant_columns_never_enter():
    X, y = make_classification(50, 6, random_state=1)
    for constant in (0.0, 1.0, 1e6):
        X[:, 2] = constant
        for table in (X, sp.csr_array(X)):
            assert Lasso(3, random_state=0).fit(table, y).scores_[2] == 0.0
    for target in ([0, 0, 0, 1, 1, 1], [0.5, 1.0, 2.0, 3.0, 4.0, 5.0]):
        selector = Lasso(2).fit(np.ones((6, 3)), target)
        assert selector.scores_.max() < 1e-12
        assert selector.get_support(indices=True).tolist() == [0, 1]


@pytest.mark.parametrize("step", [1, 4, 0.2])
@pytest.mark.parametrize("n_classes", [2, 3, None])
def test_svm_rfe_selects_what_rfe_selects(step, n_classes):
    shared = {"dual": "auto", "max_iter": 10_000, "random_state": 0}
    if n_classes is None:
        X, y = make_regression(60, 15, n_informative=4, noise=1.0, random_state=0)
        machine = LinearSVR(loss="squared_epsilon_insensitive", **shared)
    else:
        X, y = make_classification(70, 20, n_informative=5, n_classes=n_classes, random_state=0)
        machine = LinearSVC(class_weight="balanced", **shared)
    rfe = RFE(machine, n_features_to_select=6, step=step).fit(X, y)
    selector = SVMRFE(6, step=step, random_state=0).fit(X, y)
    assert np.array_equal(selector.get_support(), rfe.support_)
    # Rounds stay in order: whatever left later ranks before whatever left earlier.
    order = np.argsort(selector.ranking_)
    assert (np.diff(rfe.ranking_[order]) >= 0).all()
    np.testing.assert_allclose(selector.estimator_.coef_, rfe.estimator_.coef_)


def test_svm_rfe_features_of_one_round_are_ordered_by_their_weight():
    X, y = make_classification(80, 10, n_informative=5, random_state=1)
    selector = SVMRFE(3, step=7, random_state=0).fit(X, y)
    machine = LinearSVC(class_weight="balanced", dual="auto", max_iter=10_000, random_state=0).fit(X, y)
    left = np.flatnonzero(~selector.get_support())
    by_weight = left[np.argsort(-np.abs(machine.coef_[0, left]), kind="stable")]
    assert np.array_equal(np.argsort(selector.ranking_)[3:], by_weight)
    assert selector.n_rounds_ == 1 == selector.selection_.n_steps


def test_forest_is_scikit_learns_and_takes_missing_values():
    X, y = load_wine(return_X_y=True)
    for task, peer, target in (("auto", RandomForestClassifier, y), ("regression", RandomForestRegressor, X[:, 0] + y)):
        expected = peer(20, random_state=1).fit(X, target).feature_importances_
        selector = RandomForestImportance(n_estimators=20, task=task, random_state=1).fit(X, target)
        assert np.array_equal(selector.scores_, expected)
    X[::7, 3] = np.nan
    assert np.isfinite(RandomForestImportance(n_estimators=10, random_state=0).fit(X, y).scores_).all()


def test_pair_search_columns_of_an_exclusive_or_come_first():
    X, y, truth = make_ground_truth("xor", 300, 40, random_state=0)
    selector = PairSearchScore(n_features_to_select=len(truth.informative)).fit(X, y)
    assert set(selector.get_support(indices=True)) == set(truth.informative)
    assert selector.search_.pairs[0].indices == tuple(sorted(truth.informative))


def test_random_selection_draws_every_feature_alike():
    drawn = sum(RandomSelection(3, random_state=seed).fit(np.ones((1, 10))).get_support() for seed in range(400))
    assert drawn.sum() == 1200
    assert drawn.min() > 80  # 120 expected, 9 standard deviation
    assert drawn.max() < 160


def test_random_selection_depends_on_the_seed_alone():
    first = RandomSelection(3, random_state=5).fit(np.zeros((2, 50)))
    again = RandomSelection(3, random_state=5).fit(np.random.default_rng(0).normal(size=(9, 50)), np.arange(9))
    assert np.array_equal(first.ranking_, again.ranking_)
    assert not np.array_equal(first.ranking_, RandomSelection(3, random_state=6).fit(np.zeros((2, 50))).ranking_)
    assert first.selection_.seed == 5


def test_all_features_keeps_all_in_their_order():
    X = np.random.default_rng(0).normal(size=(4, 6))
    X[0, 0] = np.nan
    selector = AllFeatures(n_features_to_select=2).fit(X)
    assert selector.ranking_.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.array_equal(selector.transform(X), X, equal_nan=True)
