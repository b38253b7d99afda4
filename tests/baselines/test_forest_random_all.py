from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from tamiz.baselines import AllFeatures, RandomForestImportance, RandomSelection


def test_forest_is_scikit_learns():
    X, y = load_wine(return_X_y=True)
    expected = RandomForestClassifier(30, random_state=1).fit(X, y).feature_importances_
    assert np.array_equal(RandomForestImportance(n_estimators=30, random_state=1).fit(X, y).scores_, expected)
    X, y = load_diabetes(return_X_y=True)
    selector = RandomForestImportance(n_estimators=10, task="regression", random_state=1).fit(X, y)
    expected = RandomForestRegressor(10, random_state=1).fit(X, y).feature_importances_
    assert np.array_equal(selector.scores_, expected)


def test_forest_takes_missing_values():
    X, y = load_wine(return_X_y=True)
    X[::7, 3] = np.nan
    assert np.isfinite(RandomForestImportance(n_estimators=10, random_state=0).fit(X, y).scores_).all()


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
