"""Metrics against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, r2_score

from tamiz.evaluation import metrics


def test_balanced_accuracy_agrees_with_scikit_learn():
    generator = np.random.default_rng(0)
    truth, guess = generator.integers(0, 4, 200), generator.integers(0, 4, 200)
    assert metrics.balanced_accuracy(truth, guess) == pytest.approx(balanced_accuracy_score(truth, guess))
    names = np.array(["a", "b", "c", "d"])
    assert metrics.balanced_accuracy(names[truth], names[guess]) == pytest.approx(balanced_accuracy_score(truth, guess))


def test_balanced_accuracy_bears_a_predicted_class_that_the_fold_lacks():
    assert metrics.balanced_accuracy([0, 0, 1, 1], [0, 2, 1, 1]) == 0.75


def test_balanced_accuracy_needs_rows():
    with pytest.raises(ValueError, match="no rows"):
        metrics.balanced_accuracy([], [])


def test_r_squared_agrees_with_scikit_learn_and_is_nan_for_a_constant_target():
    generator = np.random.default_rng(1)
    truth = generator.normal(size=50)
    guess = truth + generator.normal(size=50)
    assert metrics.r_squared(truth, guess) == pytest.approx(r2_score(truth, guess))
    assert math.isnan(metrics.r_squared([2.0, 2.0], [1.0, 3.0]))


def test_limits_and_chance_travel_with_the_metric():
    assert metrics.METRICS["classification"].limits == (0.0, 1.0)
    assert metrics.METRICS["regression"].limits == (-math.inf, 1.0)
    y = np.repeat(["a", "b", "c"], [10, 20, 30])
    for constant in "abc":
        assert metrics.BALANCED_ACCURACY(y, np.repeat(constant, 60)) == metrics.BALANCED_ACCURACY.chance(y)
    numbers = np.arange(7.0)
    assert metrics.R_SQUARED(numbers, np.full(7, numbers.mean())) == metrics.R_SQUARED.chance(numbers)
