"""Rows of the table of the microarrays: means, and which are bold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tamiz.paper.microarray_table import TableRow, bold_rows


def series(values, method="fisher", learner="svm", dataset="colon", recipe=None):
    return TableRow(dataset, method, learner, np.asarray(values, dtype=float), recipe)


def test_bold_are_the_best_and_those_not_told_from_it():
    generator = np.random.default_rng(0)
    base = 0.8 + 0.05 * generator.normal(size=(60, 5))
    rows = [
        series(base, "fisher"),
        series(base + 0.01 * generator.normal(size=(60, 5)), "mim"),
        series(base - 0.05, "relieff"),
        series(base + 0.2, "all"),
        series(np.full((60, 5), np.nan), "ilfs"),
    ]
    assert bold_rows(rows) == {("fisher", "svm", None), ("mim", "svm", None)}
    assert bold_rows(rows[4:]) == set()


def test_mean_and_deviation_are_over_splits_and_sizes():
    row = series([[0.5, 1.0], [0.7, 0.8]])
    assert row.mean == pytest.approx(0.75)
    assert row.deviation == pytest.approx(np.std([0.5, 1.0, 0.7, 0.8]))
    assert row.by_split.tolist() == [0.75, 0.75]
    assert row.paper == (0.828, 0.07)
    assert math.isnan(series([[np.nan]]).mean)
