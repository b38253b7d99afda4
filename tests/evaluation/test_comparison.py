"""Comparisons of methods on the same folds."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamiz import E2EFSClassifier, compare
from tamiz.baselines.registry import available, canonical_name, get_method, make_selector
from tamiz.evaluation.comparison import (
    DEFAULT_METHODS,
    RANDOM_DRAWS,
    Candidate,
    Comparison,
    fit_size,
    pick_methods,
)
from tamiz.evaluation.folds import make_folds
from tamiz.evaluation.metrics import BALANCED_ACCURACY, R_SQUARED, Metric
from tamiz.evaluation.subjects import default_judge, rank_for_targets
from tamiz.rows.rows import Rows


@pytest.fixture(scope="module")
def signal():
    generator = np.random.default_rng(1)
    y = np.repeat(["ill", "well"], 40)
    X = generator.normal(size=(80, 30))
    X[:, [3, 7]] += 2.0 * (y == "ill")[:, None]
    return X, y


class Watched(SelectKBest):
    """Remembers for which numbers of columns it is fitted."""

    asked: ClassVar[list] = []

    def fit(self, X, y):
        self.asked.append(self.k)
        return super().fit(X, y)


def test_comparison_of_methods(signal):
    X, y = signal
    found = compare(["fisher"], X, y, k=[2, 5], cv=4, repeats=3, n_jobs=2)
    assert found.methods == ("fisher", "random", "all")
    assert found.scores.shape == (3, 2, 12)
    assert not found.failures
    assert found.supports.sum(axis=3)[0].tolist() == [[2] * 12, [5] * 12]
    assert found.supports.sum(axis=3)[2].tolist() == [[30] * 12, [30] * 12]
    assert found.intervals[0][0].value > found.intervals[1][0].value
    assert found.stability(0, 0) == 1.0
    assert found.agreement(0)[0].tolist()[::2] == [1.0, 1.0]
    assert np.all(found.seconds >= 0)
    again = compare({"fisher": "fisher", "random": "random", "mine": SelectKBest()}, X, y, k=[2, 5], cv=4, repeats=3)
    assert np.array_equal(again.scores[:2], found.scores[:2])
    assert again.ranks[0].method == "fisher"


def test_for_which_numbers_a_method_is_fitted(signal):
    X, y = signal
    assert [fit_size(nested, 3, [2, 3, 5]) for nested in ("any", "largest", "smallest", "each")] == [5, 5, 2, 3]
    Watched.asked.clear()
    found = compare({"mine": Watched(), "fisher": "fisher", "svm": "svm-rfe"}, X, y, k=[2, 5], cv=2)
    assert Watched.asked == [2, 5, 2, 5]  # own selectors for each M
    assert np.array_equal(found.supports[0], found.supports[1])  # F and Fisher order two classes alike; fitted once
    assert found.supports[2].sum(axis=2).tolist() == [[2, 2], [5, 5]]  # fitted for the smallest M


def compared(*means, metric=BALANCED_ACCURACY, noise=0.02, **more):
    """A comparison of methods a, b, ... with these mean scores over five folds; NaN: the method failed."""
    scores = np.array(means)[:, None, None] + noise * np.random.default_rng(0).normal(size=(len(means), 1, 5))
    return Comparison(metric, tuple("abcd"[: len(means)]), (2,), scores, test_share=0.2, **more)


def test_a_method_that_fails_everywhere_does_not_empty_the_ranks():
    found = compared(0.5, 0.97, np.nan)
    assert found.competitors == ("a", "b")
    best, other = sorted(found.ranks, key=lambda rank: rank.mean_rank)
    assert (best.method, best.mean_rank, other.significant) == ("b", 1.0, True)
    nothing = compared(np.nan, np.nan)
    assert nothing.ranks == nothing.tests == ()


def test_references_are_neither_ranked_nor_tested():
    found = compared(0.7, 0.71, 0.99, 0.5, references=("c", "d"))
    assert {rank.method for rank in found.ranks} == {"a", "b"}
    assert len(found.tests) == 1


def test_values_of_m_are_not_counted_as_further_folds():
    one = compared(0.8, 0.83, noise=0.03)
    eight = replace(one, m_values=tuple(range(8)), scores=np.repeat(one.scores, 8, axis=1))
    assert one.tests[0].p_value == pytest.approx(eight.tests[0].p_value)
    assert one.tests[0].low < one.tests[0].difference < one.tests[0].high
    assert one.smallest_visible_difference == pytest.approx((one.tests[0].high - one.tests[0].low) / 2)


def test_limits_cut_the_intervals_and_where_less_is_better_the_least_ranks_first():
    cut = compared(0.99, 0.01).intervals
    assert (cut[0][0].high, cut[1][0].low) == (1.0, 0.0)
    assert compared(0.99, 0.01, metric=R_SQUARED).intervals[1][0].low < 0
    error = Metric("error", low=0.0, greater_is_better=False)
    assert [rank.mean_rank for rank in compared(0.1, 0.5, metric=error).ranks] == [1.0, 2.0]


def test_random_features_are_averaged_over_draws(signal):
    X, y = signal
    found = compare(["fisher"], X[:, :3], y, k=[1], cv=3)
    one = Candidate("random", Rows(X[:, :3], y), "classification")
    assert (one.is_reference, one.n_draws) == (True, RANDOM_DRAWS)
    recalls = found.parts[1, 0, :, 0]  # a mean over draws of sets of one column lies between those of single sets
    single = compare(
        {f"x{j}": SelectKBest(lambda X, y, j=j: np.eye(3)[j], k=1) for j in range(3)}, X[:, :3], y, k=1, cv=3
    )
    scores = single.scores[:3, 0]
    assert np.all((scores.min(axis=0) <= recalls) & (recalls <= scores.max(axis=0)))
    assert not np.isin(recalls, scores).all()


def test_regression_scores_are_pooled_over_the_folds():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20, 3))
    y = X[:, 0] + generator.normal(size=20)
    folds = make_folds(y, "regression", 10)
    found = compare(["relieff"], X, y, k=1, cv=folds)
    error = around = 0.0
    for train, test in folds:
        judge = default_judge("regression").fit(X[train], y[train])
        error += np.sum((y[test] - judge.predict(X[test])) ** 2)
        around += np.sum((y[test] - y[train].mean()) ** 2)
    assert found.intervals[-1][0].value == pytest.approx(1 - error / around)


def test_candidates_follow_the_descriptions_of_the_methods(signal):
    rows = Rows(*signal)
    names = ("e2efs", "fisher", "svm-rfe", "dfs", "all")
    found = [Candidate(name, rows, "classification") for name in names]
    assert [one.nested for one in found] == ["each", "any", "smallest", "any", "any"]
    assert [one.keeps_all for one in found] == [False] * 4 + [True]
    assert [one.in_threads for one in found] == [True, True, True, False, True]
    assert Candidate("e2efs", rows, "classification", "mlp").in_threads  # compiled
    with pytest.raises(ValueError, match="'fisher' needs classes"):
        Candidate("fisher", rows, "regression")


@pytest.mark.parametrize("method", available())
def test_every_method_can_be_picked_made_and_has_a_title(method):
    assert canonical_name(method.upper()) == method
    assert make_selector(method, 3, random_state=0).n_features_to_select == 3
    assert get_method(method).name == method
    assert get_method(method).title != method or method == "random"


def test_defaults_and_parameters_of_methods_by_name():
    for task, names in DEFAULT_METHODS.items():
        assert pick_methods(names) == names
        assert all(task in get_method(name).tasks for name in names)
    assert make_selector("mim", 3, random_state=7, task="regression").task == "regression"
    assert make_selector("mim", 3, random_state=7).task == "auto"
    assert make_selector("dfs", 3, random_state=7, network="mlp").network == "mlp"
    assert make_selector("random", 3, random_state=7).random_state == 7
    assert make_selector("mrmr", 3, random_state=0, relevance="mutual_info").relevance == "mutual_info"
    assert type(make_selector("e2efs", 3, random_state=0, task="regression")).__name__ == "E2EFSRegressor"
    assert make_selector("e2efs", 3, random_state=0).variant == "hard"


def test_one_ranking_for_several_targets_puts_the_best_of_each_first():
    class Fixed:
        def fit(self, X, y):
            self.ranking_ = np.array([1, 2, 3, 4] if y[0] == 0 else [4, 3, 2, 1])
            return self

    ranking = rank_for_targets(Fixed, np.zeros((3, 4)), np.array([[0, 1]] * 3))
    # Columns 0 and 3 are first for one target each, 1 and 2 second for one and third for the other.
    assert set(ranking[[0, 3]]) == {1, 2}
    assert sorted(ranking.tolist()) == [1, 2, 3, 4]


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
    assert np.isnan(found.scores[3]).all()
    assert np.isnan(found.seconds[3]).all()
    assert np.isfinite(np.delete(found.scores, 3, axis=0)).all()
    for method in (0, 1, 4):
        assert found.supports[method].sum(axis=2).tolist() == [[1] * 6, [2] * 6]
    assert found.supports[5].all()
    assert (found.judge, found.n_folds, found.references) == ("LogisticRegression", 3, ("random", "all"))
    assert found.to_frame().shape == (12, 7)
    assert seen[-1] == ("comparing", 36, 36)
