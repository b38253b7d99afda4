"""The records go to JSON and back without loss."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tamiz.report.data import CompareReport, Confusion, Residuals, Score, SelectReport
from tamiz.report.records import to_plain


@pytest.mark.parametrize("which", ["select_data", "regression_data", "image_data"])
def test_select_report_survives_json(request, which):
    data = request.getfixturevalue(which)
    again = SelectReport.from_json(data.to_json())
    assert again.to_dict() == data.to_dict()
    assert again.kept == data.kept
    assert (again.scores, again.curve, again.confusion, again.residuals) == (
        data.scores,
        data.curve,
        data.confusion,
        data.residuals,
    )
    assert again.selection.names == data.selection.names
    assert again.selection.shape == data.selection.shape


def test_compare_report_survives_json(compare_data):
    assert CompareReport.from_json(compare_data.to_json()) == compare_data


def test_numpy_numbers_and_nan_become_plain():
    plain = to_plain({"a": np.float32(0.5), "b": np.array([1, 2]), 3: float("inf"), "c": np.str_("x"), "d": {1}})
    assert plain == {"a": 0.5, "b": [1, 2], "3": None, "c": "x", "d": "{1}"}
    json.dumps(plain, allow_nan=False)


def test_scores_over_folds():
    assert Score.of([]) == Score(None)
    assert Score.of([0.5, float("nan")]) == Score(0.5)
    score = Score.of([0.7, 0.8, 0.9, 0.8])
    # Student t with three degrees of freedom: 3.182 standard errors of 0.0408.
    assert (score.value, score.high - score.value) == (
        pytest.approx(0.8),
        pytest.approx(3.1824 * 0.0816497 / 2, rel=1e-4),
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scores", (((0.5,),),)),
        ("scores", (((0.5,),), ())),
        ("seconds", ((1.0,),)),
        ("agreement", ((1.0, 0.5), (1.0,))),
    ],
)
def test_tables_of_the_wrong_shape_are_refused(name, value):
    parts = {"scores": (((0.5,),), ((0.5,),)), name: value}
    with pytest.raises(ValueError, match=f"{name} must be nested as 2 methods by"):
        CompareReport("t", "classification", 3, 2, "accuracy", ("a", "b"), (1,), **parts)


def test_parts_that_do_not_fit_together_are_refused(select_data):
    with pytest.raises(ValueError, match="one record for each of the 12 kept features"):
        replace(select_data, kept=select_data.kept[1:])
    with pytest.raises(ValueError, match="square table over the 2 labels"):
        Confusion(("a", "b"), ((1, 2), (3,)))
    with pytest.raises(ValueError, match="2 actual values and 1 predicted"):
        Residuals((1.0, 2.0), (1.0,))
