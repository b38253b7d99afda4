"""Nulls by permutation: what is shuffled, the p value, and stability of noise."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.evaluation.cross_validation import evaluate_selection
from tamiz.evaluation.folds import make_folds
from tamiz.evaluation.null import Null, permuted_orders
from tamiz.selection import Selection


class BestByCorrelation:
    """Keep the M columns that correlate most, classify by their signed sum; fast."""

    def __init__(self, m, seed=0):
        self.m = m

    def fit(self, X, y):
        self.classes = np.unique(y)
        target = (y == self.classes[1]) - np.mean(y == self.classes[1])
        self.mean = X.mean(axis=0)
        scores = (X - self.mean).T @ target
        ranking = np.empty(X.shape[1], dtype=int)
        ranking[np.argsort(-np.abs(scores), kind="stable")] = np.arange(1, X.shape[1] + 1)
        self.selection_ = Selection(ranking <= self.m, ranking)
        self.weights = np.where(ranking <= self.m, scores, 0.0)
        return self

    def predict(self, X):
        return self.classes[((X - self.mean) @ self.weights > 0).astype(int)]


def run(X, y, m=5, n_permutations=20, seed=0, **more):
    folds = make_folds(y, "classification", 5, seed=seed, groups=more.get("groups"), time=more.get("time"))
    return evaluate_selection(
        lambda train, test: (X[train], X[test]),
        y,
        BestByCorrelation,
        m,
        folds,
        task="classification",
        n_random=1,
        n_permutations=n_permutations,
        seed=seed,
        **more,
    )


def test_orders_respect_groups_and_time():
    generator = np.random.default_rng(0)
    y = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    rows, targets = permuted_orders(y, generator)
    assert targets is None
    assert sorted(rows) == list(range(8))
    groups = np.array([1, 1, 2, 2, 3, 3, 4, 4])
    rows, targets = permuted_orders(y, generator, groups=groups)
    assert rows is None
    assert np.all(y[targets][::2] == y[targets][1::2])  # a group still has one target
    mixed = np.array([1, 1, 1, 1, 2, 2, 2, 2])
    rows, targets = permuted_orders(y, generator, groups=mixed)
    assert sorted(targets[:4]) in ([0, 1, 2, 3], [4, 5, 6, 7])  # all targets of one group come from one group
    uneven = np.array([1, 1, 1, 2, 2, 2, 2, 3])
    rows, targets = permuted_orders(y, generator, groups=uneven)
    assert all(np.unique(uneven[targets[uneven == group]]).size == 1 for group in (1, 2, 3))
    time = np.arange(8)[::-1]
    rows, targets = permuted_orders(y, generator, time=time)
    assert set(np.diff(targets) % 8) == {1}  # a shift in a circle
    assert not np.array_equal(targets, np.arange(8))


def test_every_fold_keeps_its_classes_when_targets_are_shuffled():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(30, 20)), np.repeat([0, 1], [24, 6])
    seen = []

    class Watch(BestByCorrelation):
        def fit(self, X, y):
            seen.append(int(y.sum()))
            return super().fit(X, y)

    folds = make_folds(y, "classification", 3)
    evaluate_selection(
        lambda train, test: (X[train], X[test]), y, Watch, 2, folds, task="classification", n_permutations=3
    )
    assert set(seen) == {4}


def test_a_signal_is_told_from_noise_and_said_in_one_sentence():
    generator = np.random.default_rng(1)
    y = np.resize([0, 1], 60)
    X = generator.normal(size=(60, 50))
    noise = run(X, y)
    assert noise.null.p_value > 0.05
    assert noise.verdict.startswith("No sign of signal: shuffled targets do as well (p = ")
    X[:, :3] += 2.0 * y[:, None]
    signal = run(X, y, m=3)
    assert signal.null.p_value == pytest.approx(1 / 21)
    assert signal.verdict.startswith("3 of 50 columns predict ")
    assert "better than shuffled targets, p = 0.048" in signal.verdict
    assert signal.stability > signal.null.highest_stability
    without = run(X, y, m=3, n_permutations=0)
    assert without.null is None
    assert "not compared with shuffled targets" in without.verdict


def test_near_the_edge_more_permutations_are_drawn():
    numbers = set()
    for seed in range(12):
        generator = np.random.default_rng(seed)
        y = np.resize([0, 1], 40)
        X = generator.normal(size=(40, 10))
        X[:, 0] += 0.6 * y
        numbers.add(run(X, y, m=2, seed=seed).null.n_permutations)
    assert numbers <= {20, 99}
    assert 99 in numbers


def test_noise_is_stable_beyond_zero_and_the_null_says_so():
    """60 rows, 100 columns of noise: folds that share rows keep sets that are alike."""
    found, null, p_values = [], [], []
    for seed in range(12):
        X = np.random.default_rng(seed).normal(size=(60, 100))
        result = run(X, np.resize([0, 1], 60), m=10, seed=seed, n_permutations=10)
        found.append(result.stability)
        null.append(result.null.stability)
        p_values.append(result.null.p_value)
    assert np.mean(found) > 0.2
    assert np.mean(null) == pytest.approx(np.mean(found), abs=0.06)
    assert np.mean(np.array(p_values) <= 0.1) < 0.5
    assert np.mean(p_values) > 0.3


def test_groups_of_one_target_are_shuffled_as_groups():
    generator = np.random.default_rng(0)
    patients = np.repeat(np.arange(20), 4)
    y = np.resize([0, 1], 20)[patients]
    X = generator.normal(size=(20, 30))[patients] + 0.1 * generator.normal(size=(80, 30))
    grouped = run(X, y, groups=patients)
    assert grouped.interval("kept").value < 0.8
    assert grouped.null.p_value > 0.05
    alone = run(X, y)  # rows of one patient in training and test
    assert alone.interval("kept").value > grouped.interval("kept").value + 0.1


def test_one_group_of_two_targets_does_not_hide_a_signal():
    """Targets are the same within all groups but one: shuffling within groups would change next to nothing."""
    generator = np.random.default_rng(0)
    y = np.repeat([0, 1], [31, 29])
    X = generator.normal(size=(60, 10)) + 2.0 * y[:, None]
    assert run(X, y, m=3, groups=np.arange(60) // 3).null.p_value < 0.05


def test_the_record_has_all_figures():
    null = Null(np.array([0.5]), np.array([np.nan]), np.array([0]), 0.5)
    assert set(null.as_record()) == {
        "n_permutations",
        "p_value",
        "score",
        "stability",
        "highest_stability",
        "always_kept",
    }
    assert np.isnan(null.stability)
