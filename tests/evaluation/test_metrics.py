"""Metrics against scikit-learn."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score

from tamiz.evaluation import metrics

RNG = np.random.default_rng(0)
FOUR, OTHER = RNG.integers(0, 4, 200), RNG.integers(0, 4, 200)
TWO, SCORES, WEIGHT = RNG.integers(0, 2, 40), RNG.normal(size=40).round(1), RNG.random(40)
THREE, TABLE = RNG.integers(0, 3, 60), RNG.dirichlet(np.ones(3), 60)
NUMBERS = RNG.normal(size=50)
AGREE = [  # what we compute, what scikit-learn does
    (metrics.balanced_accuracy(FOUR, OTHER), balanced_accuracy_score(FOUR, OTHER)),
    (metrics.balanced_accuracy(FOUR.astype(str), OTHER.astype(str)), balanced_accuracy_score(FOUR, OTHER)),
    (metrics.balanced_accuracy([0, 0, 1, 1], [0, 2, 1, 1]), 0.75),  # a class is predicted that the fold lacks
    (metrics.R_SQUARED(NUMBERS, NUMBERS**2), r2_score(NUMBERS, NUMBERS**2)),
    (metrics.R_SQUARED([2.0, 2.0], [1.0, 3.0]), math.nan),
    (metrics.area_under_curve(TWO, SCORES), roc_auc_score(TWO, SCORES)),
    (metrics.area_under_curve(TWO, SCORES, WEIGHT), roc_auc_score(TWO, SCORES, sample_weight=WEIGHT)),
    (metrics.area_under_curve(THREE, TABLE), roc_auc_score(THREE, TABLE, multi_class="ovr")),
    (metrics.area_under_curve([1, 1], [0.1, 0.2]), math.nan),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs"), AGREE)
def test_metrics_agree_with_scikit_learn(ours, theirs):
    assert ours == pytest.approx(theirs, nan_ok=True)


def test_limits_and_chance_travel_with_the_metric():
    assert metrics.METRICS["classification"].limits == (0.0, 1.0)
    assert metrics.METRICS["regression"].limits == (-math.inf, 1.0)
    y = np.repeat(["a", "b", "c"], [10, 20, 30])
    for constant in "abc":
        assert metrics.BALANCED_ACCURACY(y, np.repeat(constant, 60)) == metrics.BALANCED_ACCURACY.chance(y)
    assert metrics.R_SQUARED(NUMBERS, np.full(50, NUMBERS.mean())) == metrics.R_SQUARED.chance(NUMBERS)
    with pytest.raises(ValueError, match="no rows"):
        metrics.balanced_accuracy([], [])


@pytest.mark.parametrize("name", metrics.SCORINGS)
def test_every_metric_takes_weights_and_pickles(name):
    metric = pickle.loads(pickle.dumps(metrics.SCORINGS[name]))
    y, response = (SCORES, SCORES[::-1]) if "regression" in metric.tasks else (TWO, TWO[::-1])
    assert metric(y, response, np.ones(40)) == pytest.approx(metric(y, response))
    assert metric(y, response, WEIGHT) != pytest.approx(metric(y, response))
    if name in ("mae", "mse"):
        assert metric(np.zeros(3), np.ones(3)) == 1.0
        assert not metrics.get_metric("neg_mean_absolute_error", "regression").greater_is_better


def test_pooled_r2_is_one_number_for_all_folds():
    y, guess = NUMBERS[:12], NUMBERS[12:24]
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
