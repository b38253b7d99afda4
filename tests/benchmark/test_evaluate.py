"""Cross-validation with the selection inside each fold, and comparisons on the same folds."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from tamiz.baselines import FisherScore, registry
from tamiz.benchmark.compare import Method, compare_methods
from tamiz.benchmark.evaluate import TICKS_PER_FOLD, curve_sizes, evaluate_selection, make_folds
from tamiz.benchmark.side_by_side import run_side_by_side


class FisherThenLogistic:
    """A selector and a model in one, as the estimators of the package are."""

    def __init__(self, m):
        self.m = m

    def fit(self, X, y):
        self.selector = FisherScore(n_features_to_select=self.m).fit(X, y)
        self.selection_ = self.selector.selection_
        self.model = LogisticRegression().fit(self.selector.transform(X), y)
        return self

    def predict(self, X):
        return self.model.predict(self.selector.transform(X))


def slices(X):
    return lambda train, test: (X[train], X[test])


@pytest.fixture(scope="module")
def noise():
    """More columns than rows and nothing to find: whoever selects outside the folds finds much."""
    generator = np.random.default_rng(0)
    return generator.normal(size=(60, 1000)), np.repeat([0, 1], 30)


@pytest.fixture(scope="module")
def signal():
    generator = np.random.default_rng(1)
    y = np.repeat(["ill", "well"], 40)
    X = generator.normal(size=(80, 30))
    X[:, [3, 7]] += 2.0 * (y == "ill")[:, None]
    return X, y


def test_selecting_inside_the_folds_finds_nothing_in_noise(noise):
    X, y = noise
    folds = make_folds(y, "classification", 5)
    inside = evaluate_selection(
        slices(X), y, lambda m, seed: FisherThenLogistic(m), 10, folds, task="classification", n_random=2
    )
    assert inside.interval("kept").mean < 0.7
    best = FisherScore(n_features_to_select=10).fit(X, y).get_support()
    outside = evaluate_selection(
        slices(X[:, best]), y, lambda m, seed: FisherThenLogistic(m), 10, folds, task="classification", n_random=1
    )
    assert outside.interval("kept").mean > 0.8  # the leak that the first call does not have


def test_what_is_learnt_comes_from_the_training_rows(signal):
    X, y = signal
    seen = []

    def prepare(train, test):
        seen.append((set(train), set(test)))
        return X[train], X[test]

    folds = make_folds(y, "classification", 4)
    evaluate_selection(prepare, y, lambda m, seed: FisherThenLogistic(m), 2, folds, task="classification")
    assert len(seen) == 4
    assert all(not (train & test) for train, test in seen)


def test_a_signal_is_found_with_its_intervals_and_stability(signal):
    X, y = signal
    ticks = []
    folds = make_folds(y, "classification", 5, n_repeats=2, seed=3)
    found = evaluate_selection(
        slices(X),
        y,
        lambda m, seed: FisherThenLogistic(m),
        2,
        folds,
        task="classification",
        sizes=[1, 2, 30],
        n_jobs=2,
        tick=lambda: ticks.append(1),
    )
    assert len(ticks) == 10 * TICKS_PER_FOLD
    assert np.flatnonzero(found.fold_share == 1).tolist() == [3, 7]
    assert found.stability == found.kuncheva == 1.0
    assert found.metric == "balanced accuracy"
    assert found.test_share == pytest.approx(0.2)
    against_random = found.difference("random_features")
    assert against_random.low > 0
    assert against_random.mean == pytest.approx(found.interval("kept").mean - found.interval("random_features").mean)
    (one, _), (two, at_two), (everything, at_all) = found.curve()
    assert (one, two, everything) == (1, 2, 30)
    assert at_two == found.interval("kept")
    assert at_all.mean == pytest.approx(found.interval("all_features").mean)
    assert np.mean(found.predicted == y) > 0.85


def test_threads_change_nothing(signal):
    X, y = signal
    folds = make_folds(y, "classification", 3)
    runs = [
        evaluate_selection(
            slices(X), y, lambda m, seed: FisherThenLogistic(m), 3, folds, task="classification", n_jobs=n_jobs
        )
        for n_jobs in (1, 3)
    ]
    assert [fold.random_features for fold in runs[0].folds] == [fold.random_features for fold in runs[1].folds]
    assert np.array_equal(runs[0].predicted, runs[1].predicted)


def test_folds():
    y = np.array(["a"] * 7 + ["b"] * 3)
    folds = make_folds(y, "classification", 3, n_repeats=2)
    assert len(folds) == 6
    assert all(set(y[test]) == {"a", "b"} for _, test in folds)
    with pytest.raises(ValueError, match=r"Class 'b' has 3 row\(s\), fewer than the 4 folds"):
        make_folds(y, "classification", 4)
    with pytest.raises(ValueError, match="At least 2"):
        make_folds(y, "classification", 1)
    with pytest.raises(ValueError, match="fewer than the 5 folds"):
        make_folds(np.arange(4.0), "regression", 5)
    assert len(make_folds(np.arange(4.0), "regression", 4)) == 4


def test_curve_sizes_hold_the_chosen_one_and_fit_the_table():
    assert curve_sizes(3, 2) == [1, 2, 3]
    assert curve_sizes(1, 1) == [1]
    assert 10 in curve_sizes(20_000, 10)
    assert max(curve_sizes(20_000, 10)) == 80


def test_an_error_in_one_thread_reaches_the_caller_and_stops_the_others():
    started, steps = threading.Event(), []

    def fail(tick):
        started.wait()
        raise ZeroDivisionError("here")

    def go_on(tick):
        for _ in range(10_000):
            tick()
            steps.append(1)
            started.set()
            time.sleep(0.01)

    with pytest.raises(ZeroDivisionError, match="here"):
        run_side_by_side([fail, go_on, go_on], 2)
    assert 1 <= len(steps) < 10_000


def methods(*names):
    return {
        name: Method(
            lambda m, seed, name=name: registry.make_selector(name, n_features_to_select=m), keeps_all=name == "all"
        )
        for name in names
    }


def test_comparison_of_methods(signal):
    X, y = signal
    folds = make_folds(y, "classification", 4, n_repeats=3)
    chosen = methods("fisher", "all")
    chosen["random"] = Method(
        lambda m, seed: registry.make_selector("random", n_features_to_select=m, random_state=seed), side_by_side=False
    )
    found = compare_methods(slices(X), y, chosen, [2, 5], folds, task="classification", n_features=30, n_jobs=2)
    assert found.scores.shape == (3, 2, 12)
    assert not found.failures
    assert found.supports.sum(axis=3)[0].tolist() == [[2] * 12, [5] * 12]
    assert found.supports.sum(axis=3)[1].tolist() == [[30] * 12, [30] * 12]
    assert found.interval(0, 0).mean > found.interval(2, 0).mean
    assert found.stability(0, 0) == 1.0
    assert found.agreement(0)[0].tolist()[:2] == [1.0, 1.0]
    assert min(found.ranks().mean_ranks, key=found.ranks().mean_ranks.get) == "fisher"
    marks = {(test.first, test.second): test for test in found.tests()}
    assert marks["fisher", "random"].significant
    assert np.all(found.seconds >= 0)


def test_for_which_numbers_a_method_is_fitted(signal):
    X, y = signal
    asked = {"largest": [], "smallest": [], "each": []}

    def maker(kind):
        def make(m, seed):
            asked[kind].append(m)
            return FisherScore(n_features_to_select=m)

        return make

    chosen = {kind: Method(maker(kind), fit_at=kind) for kind in asked}
    folds = make_folds(y, "classification", 2)
    found = compare_methods(slices(X), y, chosen, [2, 5], folds, task="classification", n_features=30)
    assert asked == {"largest": [5, 5], "smallest": [2, 2], "each": [2, 5, 2, 5]}
    assert np.array_equal(found.supports[0], found.supports[1])
    assert np.array_equal(found.supports[0], found.supports[2])


def test_a_method_that_fails_does_not_stop_the_others(signal):
    X, y = signal

    class Broken:
        def fit(self, X, y):
            raise ValueError("no luck today")

    chosen = {**methods("fisher"), "broken": Method(lambda m, seed: Broken(), fit_at="each")}
    folds = make_folds(y, "classification", 3)
    found = compare_methods(slices(X), y, chosen, [2], folds, task="classification", n_features=30)
    assert found.failures == {"broken": "no luck today"}
    assert np.isnan(found.scores[1]).all()
    assert np.isfinite(found.scores[0]).all()
    assert math.isnan(found.seconds[1, 0])


def test_regression(signal):
    X, _ = signal
    y = X[:, 4] * 3 + np.random.default_rng(0).normal(size=80)

    class Best:
        def __init__(self, m):
            self.m = m

        def fit(self, X, y):
            self.selector = registry.make_selector("mim", n_features_to_select=self.m, task="regression").fit(X, y)
            self.selection_ = self.selector.selection_
            self.model = Ridge().fit(self.selector.transform(X), y)
            return self

        def predict(self, X):
            return self.model.predict(self.selector.transform(X))

    folds = make_folds(y, "regression", 4)
    found = evaluate_selection(slices(X), y, lambda m, seed: Best(m), 1, folds, task="regression", n_random=1)
    assert found.metric == "R²"
    assert found.interval("kept").mean > 0.7
    assert found.fold_share[4] == 1
