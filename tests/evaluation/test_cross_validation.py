"""Cross-validation with the selection inside each fold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from tamiz import E2EFSClassifier, Training
from tamiz.baselines import FisherScore, registry
from tamiz.evaluation.cross_validation import TICKS_PER_FOLD, curve_sizes, evaluate_selection
from tamiz.evaluation.folds import make_folds
from tamiz.evaluation.metrics import balanced_accuracy


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
    assert inside.interval("kept").value < 0.7
    best = FisherScore(n_features_to_select=10).fit(X, y).get_support()
    outside = evaluate_selection(
        slices(X[:, best]), y, lambda m, seed: FisherThenLogistic(m), 10, folds, task="classification", n_random=1
    )
    assert outside.interval("kept").value > 0.8  # the leak that the first call does not have


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
    assert found.stability == 1.0
    assert found.metric.name == "balanced accuracy"
    assert found.test_share == pytest.approx(0.2)
    against_random = found.difference("random_features")
    assert against_random.low > 0
    assert against_random.value == pytest.approx(found.interval("kept").value - found.interval("random_features").value)
    (one, _), (two, at_two), (everything, at_all) = found.curve()
    assert (one, two, everything) == (1, 2, 30)
    assert at_two == found.interval("kept")
    assert at_all.value == pytest.approx(found.interval("all_features").value)
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


def test_curve_sizes_hold_the_chosen_one_and_fit_the_table():
    assert curve_sizes(3, 2) == [1, 2, 3]
    assert curve_sizes(1, 1) == [1]
    assert 10 in curve_sizes(20_000, 10)
    assert max(curve_sizes(20_000, 10)) == 80


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
    assert found.metric.name == "R²"
    assert found.interval("kept").value > 0.7
    assert found.fold_share[4] == 1


def test_the_curve_is_that_of_fits_of_their_own(signal):
    X, y = signal
    folds = make_folds(y, "classification", 3)

    def make(m, seed):
        return E2EFSClassifier(m, training=Training(ramp_steps=500, refinement_epochs=10), random_state=seed)

    found = evaluate_selection(slices(X), y, make, 5, folds, task="classification", sizes=[1, 2, 5, 8], n_random=1)
    for number, ((train, test), fold) in enumerate(zip(folds, found.folds, strict=True)):
        for size in (1, 2, 8):
            alone = make(size, number).fit(X[train], y[train])
            assert fold.curve[size][0] == balanced_accuracy(y[test], alone.predict(X[test]))


def test_an_automatic_m_is_scored_on_rows_that_did_not_choose_it(signal):
    X, y = signal
    asked, seen = [], []

    class Watched(E2EFSClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(X.shape[0])
            return super().fit(X, y, sample_weight)

    def make(m, seed):
        asked.append(m)
        return Watched(m, cv=2, training=Training(ramp_steps=300, refinement_epochs=5), random_state=seed)

    folds = make_folds(y, "classification", 4)
    found = evaluate_selection(
        slices(X), y, make, 3, folds, task="classification", sizes=[1, 2, 3], n_random=1, automatic=True
    )
    assert asked.count("auto") == 4
    assert max(seen) == 60  # of 80 rows: the choice inside a fold has its training rows only
    assert [fold.support.sum() for fold in found.folds] == [2, 2, 2, 2]
    assert found.interval("kept").value == found.curve()[1][1].value  # M = 2 is on the curve
