"""Bounded simulations: what equally good methods and noise may show; benchmarks/simulate_statistics.py has the long ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.folds import count_test_rows, make_folds, mean_test_share
from tamiz.evaluation.intervals import corrected_interval
from tamiz.evaluation.metrics import BALANCED_ACCURACY, balanced_accuracy

M_VALUES = (2, 4)


def score(X, y, train, test):
    mean = X[train].mean(axis=0)
    centred = X[train] - mean
    weights = np.linalg.solve(centred.T @ centred + np.eye(X.shape[1]), centred.T @ (y[train] - y[train].mean()))
    return balanced_accuracy(y[test], ((X[test] - mean) @ weights > 0).astype(int))


def compare_equal_sets(seed, n_repeats):
    """Two disjoint sets of equally informative columns."""
    generator = np.random.default_rng(seed)
    y = np.repeat([0, 1], 20)
    X = generator.normal(size=(40, 8)) + 0.4 * y[:, None]
    folds = make_folds(y, "classification", 5, n_repeats, seed)
    scores = np.array(
        [
            [[score(X[:, start : start + m], y, *fold) for fold in folds] for m in M_VALUES]
            for start in (0, 4)
        ]
    )  # fmt: skip
    return Comparison(BALANCED_ACCURACY, ("first", "second"), M_VALUES, scores, test_share=mean_test_share(folds))


@pytest.mark.parametrize("n_repeats", [1, 4])
def test_equally_good_methods_are_seldom_told_apart(n_repeats):
    found = [compare_equal_sets(seed, n_repeats) for seed in range(50)]
    marked = np.mean([one.tests[0].significant for one in found])
    assert marked <= 0.13  # 0.05 and twice its standard error over 50 runs
    as_if_independent = np.mean(
        [stats.wilcoxon(*one.scores.reshape(2, -1), zero_method="zsplit").pvalue < 0.05 for one in found]
    )
    assert as_if_independent > marked
    if n_repeats > 1:
        assert as_if_independent > 0.3


@pytest.mark.parametrize("shift", [0.0, 1.0, 6.0])
def test_intervals_cover(shift):
    intervals, truth = [], []
    for seed in range(50):
        generator = np.random.default_rng(seed)
        y, new_y = np.resize([0, 1], 40), np.resize([0, 1], 400)
        X, new_X = (generator.normal(size=(len(part), 3)) for part in (y, new_y))
        X[:, 0] += shift * y
        new_X[:, 0] += shift * new_y
        folds = make_folds(y, "classification", 5, seed=seed)
        values = [score(X, y, *fold) for fold in folds]
        both, target = np.vstack([X, new_X]), np.r_[y, new_y]
        truth.append(np.mean([score(both, target, train, np.arange(40, 440)) for train, _ in folds]))
        n_rows = count_test_rows(BALANCED_ACCURACY, y, folds)
        intervals.append(corrected_interval(values, 0.2, limits=(0.0, 1.0), n_rows=n_rows))
    target = np.mean(truth)
    assert all(interval.high > interval.low for interval in intervals)
    assert np.mean([interval.low <= target <= interval.high for interval in intervals]) > 0.85
