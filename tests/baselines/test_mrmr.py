from __future__ import annotations

import numpy as np
from sklearn.datasets import load_wine
from sklearn.feature_selection import f_classif, f_regression

from tamiz.baselines import MRMR


def plain_mrmr(X, relevance, wanted):
    """The greedy rule, one candidate at a time."""
    picked = [int(np.argmax(relevance))]
    while len(picked) < wanted:
        value = {
            f: relevance[f] / np.mean([abs(np.corrcoef(X[:, f], X[:, s])[0, 1]) for s in picked])
            for f in range(X.shape[1])
            if f not in picked
        }
        picked.append(max(value, key=value.get))
    return picked


def test_greedy_rule_for_classes():
    X, y = load_wine(return_X_y=True)
    expected = plain_mrmr(X, f_classif(X, y)[0], 6)
    assert MRMR(6).fit(X, y).selection_.ordered.tolist() == expected


def test_greedy_rule_for_regression():
    X, _ = load_wine(return_X_y=True)
    X, y = X[:, 1:], X[:, 0]
    expected = plain_mrmr(X, f_regression(X, y)[0], 6)
    assert MRMR(6).fit(X, y).selection_.ordered.tolist() == expected


def test_the_target_itself_among_the_features():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    X = np.column_stack([rng.normal(size=30), y, rng.normal(size=30)])
    assert MRMR(1).fit(X, y).ranking_[1] == 1
    assert MRMR(1).fit(X, X[:, 0]).ranking_[0] == 1


def test_a_copy_is_left_for_last():
    rng = np.random.default_rng(1)
    y = np.arange(100) % 2
    strong, weak = y + 0.5 * rng.normal(size=100), 0.7 * y + rng.normal(size=100)
    X = np.column_stack([strong, strong, strong, weak, rng.normal(size=(100, 2))])
    redundant = MRMR(2).fit(X, y).selection_.ordered
    assert redundant[0] == 0
