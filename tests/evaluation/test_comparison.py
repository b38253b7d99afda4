"""Comparisons of methods on the same folds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tamiz.baselines import FisherScore, registry
from tamiz.evaluation.comparison import Candidate, Comparison, compare_methods, make_candidates
from tamiz.evaluation.folds import make_folds
from tamiz.evaluation.metrics import BALANCED_ACCURACY, R_SQUARED, Metric


def slices(X):
    return lambda train, test: (X[train], X[test])


@pytest.fixture(scope="module")
def signal():
    generator = np.random.default_rng(1)
    y = np.repeat(["ill", "well"], 40)
    X = generator.normal(size=(80, 30))
    X[:, [3, 7]] += 2.0 * (y == "ill")[:, None]
    return X, y


def candidates(*names):
    return {
        name: Candidate(
            lambda m, seed, name=name: registry.make_selector(name, n_features_to_select=m), keeps_all=name == "all"
        )
        for name in names
    }


def test_comparison_of_methods(signal):
    X, y = signal
    folds = make_folds(y, "classification", 4, n_repeats=3)
    chosen = candidates("fisher", "all")
    chosen["random"] = Candidate(
        lambda m, seed: registry.make_selector("random", n_features_to_select=m, random_state=seed), in_threads=False
    )
    found = compare_methods(slices(X), y, chosen, [2, 5], folds, task="classification", n_features=30, n_jobs=2)
    assert found.scores.shape == (3, 2, 12)
    assert not found.failures
    assert found.supports.sum(axis=3)[0].tolist() == [[2] * 12, [5] * 12]
    assert found.supports.sum(axis=3)[1].tolist() == [[30] * 12, [30] * 12]
    assert found.intervals[0][0].value > found.intervals[2][0].value
    assert found.stability(0, 0) == 1.0
    assert found.agreement(0)[0].tolist()[:2] == [1.0, 1.0]
    assert min(found.ranks, key=lambda rank: rank.mean_rank).method == "fisher"
    marks = {(test.first, test.second): test for test in found.tests}
    assert marks["fisher", "random"].significant
    assert np.all(found.seconds >= 0)


def test_for_which_numbers_a_method_is_fitted(signal):
    X, y = signal
    asked = {"any": [], "largest": [], "smallest": [], "each": []}

    def maker(nested):
        def make(m, seed):
            asked[nested].append(m)
            return FisherScore(n_features_to_select=m)

        return make

    chosen = {nested: Candidate(maker(nested), nested=nested) for nested in asked}
    folds = make_folds(y, "classification", 2)
    found = compare_methods(slices(X), y, chosen, [2, 5], folds, task="classification", n_features=30)
    assert asked == {"any": [5, 5], "largest": [5, 5], "smallest": [2, 2], "each": [2, 5, 2, 5]}
    assert np.array_equal(found.supports[0], found.supports[1])
    assert np.array_equal(found.supports[0], found.supports[2])
    assert np.array_equal(found.supports[0], found.supports[3])


def test_a_method_that_fails_does_not_stop_the_others(signal):
    X, y = signal

    class Broken:
        def fit(self, X, y):
            raise ValueError("no luck today")

    chosen = {**candidates("fisher"), "broken": Candidate(lambda m, seed: Broken(), nested="each")}
    folds = make_folds(y, "classification", 3)
    found = compare_methods(slices(X), y, chosen, [2], folds, task="classification", n_features=30)
    assert found.failures == {"broken": "no luck today"}
    assert np.isnan(found.scores[1]).all()
    assert np.isfinite(found.scores[0]).all()
    assert math.isnan(found.seconds[1, 0])


def test_limits_of_the_metric_cut_the_intervals():
    scores = np.array([[[1.0, 1.0, 0.9]], [[0.1, 0.0, 0.0]]])
    cut = Comparison(BALANCED_ACCURACY, ("a", "b"), (3,), scores, test_share=0.2).intervals
    assert (cut[0][0].high, cut[1][0].low) == (1.0, 0.0)
    assert Comparison(R_SQUARED, ("a", "b"), (3,), scores, test_share=0.2).intervals[1][0].low < 0


def test_where_less_is_better_the_least_ranks_first():
    error = Metric("error", lambda y_true, y_predicted: 0.0, low=0.0, greater_is_better=False)
    scores = np.array([[[0.1, 0.2, 0.1]], [[0.5, 0.6, 0.5]]])
    assert [rank.mean_rank for rank in Comparison(error, ("a", "b"), (3,), scores).ranks] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("scores", np.zeros((1, 1, 1))), ("scores", np.zeros((2, 3, 1))), ("seconds", np.zeros((2, 2)))],
)
def test_tables_of_the_wrong_shape_are_an_error(name, value):
    parts = {"scores": np.zeros((2, 1, 4)), name: value}
    with pytest.raises(ValueError, match=f"{name} must have 2 methods by 1 values of M"):
        Comparison(BALANCED_ACCURACY, ("a", "b"), (1,), **parts)
    with pytest.raises(ValueError, match="test_share"):
        Comparison(BALANCED_ACCURACY, ("a", "b"), (1,), np.zeros((2, 1, 4)), test_share=1.0)


def test_candidates_follow_the_descriptions_of_the_methods():
    found = make_candidates(["e2efs", "fisher", "svm-rfe", "dfs", "all"], "classification")
    assert {name: one.nested for name, one in found.items()} == {
        "e2efs": "each",
        "fisher": "any",
        "svm-rfe": "smallest",
        "dfs": "any",
        "all": "any",
    }
    assert [name for name, one in found.items() if one.keeps_all] == ["all"]
    assert [name for name, one in found.items() if not one.in_threads] == ["dfs"]
    assert make_candidates(["e2efs"], "classification", "mlp")["e2efs"].in_threads  # compiled
    with pytest.raises(ValueError, match="'fisher' needs classes"):
        make_candidates(["fisher"], "regression")
