"""Importance of a random forest."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from tamiz.baselines import RandomForestImportance


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
