"""Charts of held-out predictions."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tamiz.evaluation.results import HeldOut
from tamiz.report.predictions import (
    calibration_chart,
    error_sizes,
    rank_chart_of,
    rank_curves,
    residual_histogram,
    score_histogram,
)


@pytest.fixture(scope="module")
def held():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    output = y + rng.normal(size=80)
    share = 1 / (1 + np.exp(-output))
    outputs = {"kept": output, "all_features": -output, "random_features": rng.normal(size=80)}
    labels = np.where(y == 1, "yes", "no")
    return HeldOut(np.arange(80), y, labels, labels, outputs, np.column_stack([1 - share, share]))


def test_areas_are_those_of_scikit_learn(held):
    positive = held.truth == "yes"
    for kind, area in (("roc", roc_auc_score), ("precision-recall", average_precision_score)):
        curves = rank_curves(held, kind)
        assert [c.name for c in curves] == ["kept", "all_features", "random_features"]
        for curve in curves:
            assert curve.area == pytest.approx(area(positive, held.outputs[curve.name]))
        drawn = rank_chart_of(curves, kind, 0.5)
        ElementTree.fromstring(drawn)
        assert f"kept {curves[0].area:.3f}" in drawn


def test_charts_of_two_classes(held):
    for drawn in (calibration_chart(held), score_histogram(held)):
        ElementTree.fromstring(drawn)
    assert "were yes" in calibration_chart(held)


def test_what_cannot_be_drawn_is_left_out(held):
    three = HeldOut(held.rows, held.fold, np.arange(80) % 3, held.predicted, held.outputs, held.probabilities)
    assert rank_curves(three, "roc") == []
    assert calibration_chart(three) is None
    assert score_histogram(three) is None
    bare = HeldOut(held.rows, held.fold, held.truth, held.predicted)
    assert rank_curves(bare, "roc") == []
    assert calibration_chart(bare) is None
    constant = HeldOut(held.rows, held.fold, held.truth, held.predicted, {"kept": np.zeros(80)})
    assert score_histogram(constant) is None


def test_residuals():
    actual, predicted = np.array([1.0, 2.0, np.nan, 4.0]), np.array([1.5, 1.5, 3.0, np.inf])
    assert error_sizes(actual, predicted) == (0.5, 0.5)
    ElementTree.fromstring(residual_histogram(actual, predicted, "dose"))
    ElementTree.fromstring(residual_histogram(np.ones(3), np.ones(3), "dose"))
    assert np.isnan(error_sizes(np.array([np.nan]), np.array([1.0]))).all()
