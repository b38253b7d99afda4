"""Scales, elements and charts: always well-formed, whatever the numbers are."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamiz.evaluation.intervals import Interval, MethodRank
from tamiz.report.columns import class_cells, correlation_chart, effect_bar, fold_grid_chart, heat_map_chart, share_dot
from tamiz.report.data import Curve, CurvePoint, Distribution, Group, Residuals
from tamiz.report.evidence import Correlations, FoldGrid, HeatMap
from tamiz.report.lines import score_curve
from tamiz.report.marks import (
    distribution_chart,
    heat_map,
    rank_chart,
    residual_chart,
    score_intervals,
    time_chart,
)
from tamiz.report.svg import Scale, element, marker, polyline, text

NAN = math.nan


@given(st.lists(st.floats(allow_nan=True, width=32), max_size=6), st.booleans())
def test_scales_stay_inside_their_pixels(values, log):
    scale = Scale.over(values, 10.0, 90.0, log=log, pad=0.05)
    for value in values:
        if math.isfinite(value):
            assert 10.0 <= scale(value) <= 90.0
    ticks = scale.ticks()
    assert len(ticks) <= 12
    assert len(scale.labels(ticks)) == len(ticks)


def test_ticks_are_round_and_labelled_alike():
    scale = Scale(0.42, 0.97, 0, 100)
    assert scale.labels(scale.ticks(4)) == ["0.6", "0.8"]
    assert Scale(-3.0, 5.0, 0, 1).labels([-2.5, 0.0, 2.5]) == ["−2.5", "0.0", "2.5"]
    assert Scale.over([5.0, 5.0], 0, 100)(5.0) == pytest.approx(50)


def test_attributes_and_text_are_escaped():
    drawn = element("g", text("<b>&", 1, 2), data_tip='"><script>')
    parsed = ElementTree.fromstring(drawn)
    assert parsed.get("data-tip") == '"><script>'
    assert parsed[0].text == "<b>&"


def test_lines_break_at_gaps_and_skip_points_on_a_straight_run():
    assert polyline([(0, 0), (1, 0), (2, 0), (NAN, 1), (3, 3), (4, 9)]) == '<path d="M0 0L2 0M3 3L4 9" fill="none"/>'
    assert polyline([(NAN, NAN)]) == ""


def test_each_marker_has_a_shape_of_its_own():
    assert len({marker(kind, 5.0, 5.0) for kind in range(5)}) == 5


@pytest.mark.parametrize(
    "drawn",
    [
        score_curve(Curve("accuracy", (CurvePoint(3, Interval(0.5)),), chosen=3), [("chance", 0.5), ("all", NAN)], 400),
        score_curve(
            Curve("accuracy", (CurvePoint(3, Interval(math.nan)), CurvePoint(5, Interval(0.4, 0.3, 0.5)))), [], 400
        ),
        score_intervals([("kept", Interval(math.nan)), ("all", Interval(1.0, 1.0, 1.0))], "r2"),
        heat_map(["a"], ["a"], [[None]], [["–"]], [["nothing"]], "empty"),
        residual_chart(Residuals((1.0, NAN, 2.0), (1.5, 1.0, math.inf))),
        residual_chart(Residuals(tuple(range(2000)), tuple(range(2000)))),
        distribution_chart(Distribution((0.0, 1.0), (Group("a", 0, (NAN,) * 5, (0,)),)), "x"),
        time_chart([("fast", 0.0), ("failed", None), ("<slow>", 3.0)], [0, 1, 2]),
        rank_chart([MethodRank("only", 1.0)], [0]),
        distribution_chart(Distribution((0.0, 0.5, 1.0), (Group("a", 3, (0.0,) * 5, (2, 1), 1),), 1, True), "is a"),
        distribution_chart(Distribution((0.0, 1.0), (Group("a", 1, (0.5,) * 5, (1,), 2),), 2), "x"),
        effect_bar(-2.0, (-2.0, 9.0), "s0", [NAN, -1.0, 9.0]),
        class_cells([0.5, -2.0, 0.0], 2.0, ["<a>", "b", "c"]),
        share_dot(1.5),
        fold_grid_chart(FoldGrid(("<a>", "b"), (True, False), np.array([[True] * 40, [False] * 40])), 400),
        heat_map_chart(HeatMap(("a",), np.arange(2), np.array([[NAN, 99.0]]), np.array([0, 1]), ("u", "v")), 400),
        correlation_chart(Correlations(("a", "<b>"), np.array([[1.0, 0.9], [0.9, 1.0]])), 400),
    ],
)
def test_charts_of_odd_numbers_are_well_formed(drawn):
    ElementTree.fromstring(drawn)
    assert "nan" not in drawn
    assert "inf" not in drawn


def test_bars_of_nothing_are_nothing():
    for value, span in ((None, (0.0, 1.0)), (NAN, (0.0, 1.0)), (0.0, (0.0, 0.0))):
        assert effect_bar(value, span, "s0") == ""
    assert share_dot(None) == ""


def test_the_zero_line_stands_in_one_place_for_all_bars():
    drawn = [ElementTree.fromstring(effect_bar(value, (-2.0, 2.0), "s0")) for value in (-2.0, 0.1, 1.7)]
    assert {part.find("line").get("x1") for part in drawn} == {"90"}
    left, _, right = ((float(p.find("rect").get("x")), float(p.find("rect").get("width"))) for p in drawn)
    assert left == (2.0, 88.0)
    assert right == pytest.approx((90.0, 74.8))
    alone = ElementTree.fromstring(effect_bar(1.0, (0.0, 1.0), "s0"))  # no room is kept for a side that has no bar
    assert alone.find("line").get("x1") == "2"


def test_large_residual_plots_are_thinned():
    assert residual_chart(Residuals(tuple(range(2000)), tuple(range(2000)))).count("<circle") == 500
