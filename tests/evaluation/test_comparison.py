"""Comparisons of methods on the same folds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, compare
from tamiz.baselines import FisherScore, registry
from tamiz.evaluation.comparison import Candidate, Comparison, compare_methods, make_candidates, warm_up
from tamiz.evaluation.folds import make_folds
from tamiz.evaluation.metrics import BALANCED_ACCURACY, METRICS, R_SQUARED, Metric
from tamiz.evaluation.subjects import default_judge
from tamiz.rows.rows import Rows


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
    found = compare_methods(Rows(X, y), chosen, [2, 5], folds, METRICS["classification"], n_jobs=2)
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
    found = compare_methods(Rows(X, y), chosen, [2, 5], folds, METRICS["classification"])
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
    found = compare_methods(Rows(X, y), chosen, [2], folds, METRICS["classification"])
    assert found.failures == {"broken": "no luck today"}
    assert [rank.method for rank in found.ranks] == ["fisher"]
    assert np.isnan(found.scores[1]).all()
    assert np.isfinite(found.scores[0]).all()
    assert math.isnan(found.seconds[1, 0])


def test_a_method_that_fails_everywhere_does_not_empty_the_ranks():
    generator = np.random.default_rng(0)
    scores = np.stack([0.5 + 0.02 * generator.normal(size=(2, 5)), 0.97 + 0.01 * generator.normal(size=(2, 5))])
    scores = np.concatenate([scores, np.full((1, 2, 5), np.nan)])
    found = Comparison(BALANCED_ACCURACY, ("poor", "good", "broken"), (2, 4), scores, test_share=0.2)
    assert found.competitors == ("poor", "good")
    best, other = sorted(found.ranks, key=lambda rank: rank.mean_rank)
    assert (best.method, best.mean_rank, other.significant) == ("good", 1.0, True)
    nothing = Comparison(BALANCED_ACCURACY, ("a", "b"), (2,), np.full((2, 1, 3), np.nan), test_share=0.2)
    assert nothing.ranks == nothing.tests == ()


def test_references_are_neither_ranked_nor_tested():
    generator = np.random.default_rng(0)
    scores = np.array([0.7, 0.71, 0.99, 0.5])[:, None, None] + 0.02 * generator.normal(size=(4, 1, 5))
    names = ("a", "b", "all", "random")
    found = Comparison(BALANCED_ACCURACY, names, (2,), scores, test_share=0.2, references=("all", "random"))
    assert {rank.method for rank in found.ranks} == {"a", "b"}
    assert len(found.tests) == 1


def test_values_of_m_are_not_counted_as_further_folds():
    generator = np.random.default_rng(0)
    by_fold = 0.03 * generator.normal(size=(2, 1, 5)) + np.array([0.8, 0.83])[:, None, None]
    one = Comparison(BALANCED_ACCURACY, ("a", "b"), (2,), by_fold, test_share=0.2)
    eight = Comparison(BALANCED_ACCURACY, ("a", "b"), tuple(range(8)), np.repeat(by_fold, 8, axis=1), test_share=0.2)
    assert one.tests[0].p_value == pytest.approx(eight.tests[0].p_value)
    assert one.tests[0].low < one.tests[0].difference < one.tests[0].high
    assert one.smallest_visible_difference == pytest.approx((one.tests[0].high - one.tests[0].low) / 2)


def test_random_features_are_averaged_over_draws(signal):
    X, y = signal
    folds = make_folds(y, "classification", 3)
    asked = []
    chosen = make_candidates(["random"], "classification")
    assert chosen["random"].is_reference

    def make(m, seed, inner=chosen["random"].make):
        asked.append(seed)
        return inner(m, seed)

    chosen = {"random": replace(chosen["random"], make=make)}
    found = compare_methods(Rows(X, y), chosen, [2], folds, METRICS["classification"])
    assert len(asked) == len(set(asked)) == 3 * chosen["random"].n_draws > 3
    assert found.references == ("random",)


@pytest.mark.parametrize("sparse", [False, True])
def test_nothing_is_compiled_while_the_clock_runs(sparse):
    events = []

    class Slow:
        def fit(self, X, y):
            events.append((X.shape[1], hasattr(X, "tocsr")))
            raise ValueError("a failure here is no failure of the method")

    warm_up({"slow": Candidate(lambda m, seed: Slow())}, "classification", 3, sparse)
    assert events == [(12, sparse)]


def test_regression_scores_are_pooled_over_the_folds():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20, 3))
    y = X[:, 0] + generator.normal(size=20)
    folds = make_folds(y, "regression", 10)
    chosen = make_candidates(["all"], "regression")
    found = compare_methods(Rows(X, y), chosen, [1], folds, METRICS["regression"])
    error = around = 0.0
    for train, test in folds:
        judge = default_judge("regression").fit(X[train], y[train])
        error += np.sum((y[test] - judge.predict(X[test])) ** 2)
        around += np.sum((y[test] - y[train].mean()) ** 2)
    assert found.intervals[0][0].value == pytest.approx(1 - error / around)


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


def test_own_selectors_and_pipelines_are_compared_in_columns_of_a_frame(signal):
    X, y = signal
    frame = pandas.DataFrame(X[:, :10], columns=list("abcdefghij"))
    frame["colour"] = np.random.default_rng(0).choice(["red", "green", "blue"], 80)
    mine = make_pipeline(StandardScaler(), SelectKBest(k=2), LogisticRegression())
    seen = []
    found = compare(
        {"fisher": "fisher", "e2efs": E2EFSClassifier(), "mine": mine, "broken": SelectKBest(k=3, score_func=len)},
        frame,
        y,
        k=[1, 2],
        cv=3,
        repeats=2,
        progress=lambda *step: seen.append(step),
    )
    assert found.methods == ("fisher", "e2efs", "mine", "broken", "random", "all")
    assert found.names[-1] == "colour"
    assert list(found.failures) == ["broken"]
    for method in (0, 1, 4):
        assert found.supports[method].sum(axis=2).tolist() == [[1] * 6, [2] * 6]
    assert found.supports[5].all()
    assert (found.judge, found.n_folds, found.references) == ("LogisticRegression", 3, ("random", "all"))
    assert found.to_frame().shape == (12, 7)
    assert seen[-1] == ("comparing", 72, 72)
    for call, message in (
        (lambda: compare({}, X, y), "nothing to compare"),
        (lambda: compare(["fisher"], X, y, k=[0]), "k must hold numbers from 1 to the 30 columns"),
        (lambda: compare({"x": LogisticRegression()}, X, y, k=2), "selects no features"),
        (lambda: compare(["fischer"], X, y, k=2), "Did you mean 'fisher'"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
