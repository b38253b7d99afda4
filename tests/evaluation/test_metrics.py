"""Metrics against scikit-learn."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score

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
    assert metrics.R_SQUARED(truth, guess) == pytest.approx(r2_score(truth, guess))
    assert math.isnan(metrics.R_SQUARED([2.0, 2.0], [1.0, 3.0]))


def test_limits_and_chance_travel_with_the_metric():
    assert metrics.METRICS["classification"].limits == (0.0, 1.0)
    assert metrics.METRICS["regression"].limits == (-math.inf, 1.0)
    y = np.repeat(["a", "b", "c"], [10, 20, 30])
    for constant in "abc":
        assert metrics.BALANCED_ACCURACY(y, np.repeat(constant, 60)) == metrics.BALANCED_ACCURACY.chance(y)
    numbers = np.arange(7.0)
    assert metrics.R_SQUARED(numbers, np.full(7, numbers.mean())) == metrics.R_SQUARED.chance(numbers)


def test_area_under_the_curve_agrees_with_scikit_learn():
    generator = np.random.default_rng(0)
    y, scores = generator.integers(0, 2, 40), generator.normal(size=40).round(1)
    weight = generator.random(40)
    assert metrics.area_under_curve(y, scores) == pytest.approx(roc_auc_score(y, scores))
    assert metrics.area_under_curve(y, scores, weight) == pytest.approx(roc_auc_score(y, scores, sample_weight=weight))
    many, table = generator.integers(0, 3, 60), generator.random((60, 3))
    table /= table.sum(axis=1, keepdims=True)
    expected = roc_auc_score(many, table, multi_class="ovr")
    assert metrics.area_under_curve(many, table) == pytest.approx(expected)
    assert math.isnan(metrics.area_under_curve([1, 1], [0.1, 0.2]))


def test_every_metric_takes_weights_and_pickles():
    generator = np.random.default_rng(0)
    weight = generator.random(30)
    for name, metric in metrics.SCORINGS.items():
        pickle.loads(pickle.dumps(metric))
        if "regression" in metric.tasks:
            y, response = generator.normal(size=30), generator.normal(size=30)
        else:
            y, response = generator.integers(0, 2, 30), generator.integers(0, 2, 30)
        assert metric(y, response, np.ones(30)) == pytest.approx(metric(y, response)), name
        assert metric(y, response, weight) != pytest.approx(metric(y, response)), name
    ones = np.ones(3)
    assert metrics.SCORINGS["mae"](np.zeros(3), ones) == metrics.SCORINGS["mse"](np.zeros(3), ones) == 1.0
    assert not metrics.get_metric("neg_mean_absolute_error", "regression").greater_is_better


def test_pooled_r2_is_one_number_for_all_folds():
    generator = np.random.default_rng(0)
    y, guess = generator.normal(size=12), generator.normal(size=12)
    parts = [metrics.R_SQUARED.measure(y[i : i + 3], guess[i : i + 3], [0.0, 1.0]) for i in range(0, 12, 3)]
    values = metrics.R_SQUARED.combine(parts)
    assert values.mean() == pytest.approx(1 - np.sum((y - guess) ** 2) / np.sum((y - 0.5) ** 2))
    assert np.isnan(metrics.R_SQUARED.combine([(0.0, 0.0)])).all()
    # A fold in which the target does not vary has a value too.
    assert np.isfinite(metrics.R_SQUARED.combine([metrics.R_SQUARED.measure([2.0, 2.0], [1.0, 2.0], [0.0, 1.0])])).all()


def test_parts_hold_the_hits_and_rows_of_each_class():
    y, guess = np.repeat([0, 1], [6, 2]), np.array([0, 0, 0, 1, 1, 1, 1, 1])
    assert metrics.BALANCED_ACCURACY.measure(y, guess, y, None, np.array([0, 1, 2])) == (0.75, 3, 6, 2, 2, 0, 0)
    assert metrics.SCORINGS["accuracy"].measure(y, guess, y, None, np.array([0, 1])) == (0.625, 5, 8)
    weighted = metrics.BALANCED_ACCURACY.measure(y, guess, y, np.array([2.0] * 6 + [1.0, 3.0]), np.array([0, 1]))
    assert weighted[3:] == pytest.approx((1.6, 1.6))  # 4² / (1 + 9) rows
    assert metrics.SCORINGS["roc_auc"].measure(y, guess, y, None, np.array([0, 1]))[1:] == (4.5, 6, 1.5, 2)
