"""The search for pairs as a selector."""

import numpy as np

from tamiz.baselines import PairSearchScore
from tamiz.paper import make_xor


def test_columns_of_an_exclusive_or_come_first():
    X, y, truth = make_xor(300, 40, random_state=0)
    selector = PairSearchScore(n_features_to_select=len(truth.informative)).fit(X, y)
    assert set(selector.get_support(indices=True)) == set(truth.informative)
    assert selector.search_.pairs[0].indices == tuple(sorted(truth.informative))


def test_columns_that_matter_alone_come_first_too():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 20))
    selector = PairSearchScore(n_features_to_select=1).fit(X, 2 * X[:, 5] + random.normal(size=200))
    assert selector.task_ == "regression"
    assert selector.get_support(indices=True).tolist() == [5]


def test_below_20_rows_all_scores_are_equal():
    X = np.random.default_rng(0).normal(size=(12, 4))
    selector = PairSearchScore(n_features_to_select=2).fit(X, np.arange(12) % 2)
    assert np.ptp(selector.scores_) == 0
    assert selector.get_support().sum() == 2
