from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.feature_selection import f_classif, f_regression, mutual_info_classif

from tamiz.baselines import MRMR
from tamiz.paper import make_ring


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


def test_greedy_rule_with_mutual_information():
    X, y = load_wine(return_X_y=True)
    relevance = mutual_info_classif(X, y, discrete_features=False, n_neighbors=10, random_state=3)
    shared = -0.5 * np.log(1 - np.corrcoef(X, rowvar=False) ** 2 + np.eye(X.shape[1]))
    picked = [int(np.argmax(relevance))]
    while len(picked) < 6:
        value = relevance - shared[:, picked].mean(axis=1)
        value[picked] = -np.inf
        picked.append(int(np.argmax(value)))
    assert MRMR(6, relevance="mutual_info", random_state=3).fit(X, y).selection_.ordered.tolist() == picked


def test_mutual_information_sees_a_ring():
    X, y, truth = make_ring(n_features=100, random_state=0)
    assert truth.share_found(MRMR(2).fit(X, y).get_support(indices=True)) < 1
    found = MRMR(2, relevance="mutual_info", random_state=0).fit(X, y).get_support(indices=True)
    assert truth.share_found(found) == 1


def test_copies_and_constants_with_mutual_information():
    rng = np.random.default_rng(0)
    strong, weak = rng.normal(size=(2, 80))
    y = (strong + 0.5 * weak > 0).astype(int)
    X = np.column_stack([strong, strong, weak, np.full(80, 3.0)])
    selector = MRMR(2, relevance="mutual_info", random_state=0).fit(X, y)
    assert selector.selection_.ordered[0] in (0, 1)
    assert selector.selection_.ordered[1] == 2


def test_refuses_an_unknown_relevance():
    with pytest.raises(ValueError, match=r"The 'relevance' parameter of MRMR must be a str among .* Got 'mi' instead"):
        MRMR(relevance="mi").fit(*load_wine(return_X_y=True))
