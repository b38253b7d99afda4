"""Scores of rows that took no part in anything."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.evaluation.cross_validation import holdout_interval
from tamiz.evaluation.metrics import BALANCED_ACCURACY, R_SQUARED, SCORINGS


def test_the_interval_holds_the_score_and_shrinks_with_the_rows():
    generator = np.random.default_rng(0)
    widths = []
    for n_rows in (40, 400):
        y = np.resize([0, 1], n_rows)
        predicted = np.where(generator.random(n_rows) < 0.8, y, 1 - y)
        found = holdout_interval(BALANCED_ACCURACY, y, predicted, y)
        assert found.value == pytest.approx(BALANCED_ACCURACY(y, predicted))
        assert found.low < found.value < found.high
        widths.append(found.high - found.low)
    assert widths[1] < 0.5 * widths[0]


def test_perfect_predictions_have_a_bound_and_numbers_work_too():
    y = np.resize([0, 1], 20)
    assert 0.8 < holdout_interval(BALANCED_ACCURACY, y, y, y).low < 0.9
    numbers = np.arange(20.0)
    found = holdout_interval(R_SQUARED, numbers, numbers + np.resize([-1.0, 1.0], 20), numbers)
    assert found.low < found.value < found.high < 1
    assert not holdout_interval(R_SQUARED, numbers, numbers, numbers).has_ends
    assert holdout_interval(SCORINGS["mae"], numbers, numbers + 1, numbers).value == 1.0
