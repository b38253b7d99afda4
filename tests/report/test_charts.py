"""Charts: well-formed whatever the numbers are, and showing what they must."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamiz._utils.pictures import Grid, Lines, Series
from tamiz.report.charts import (
    class_strip,
    distribution_chart,
    effect_bar,
    fold_chart,
    image_chart,
    legend,
    line_chart,
    raster_chart,
    square_chart,
)
from tamiz.report.columns import Distribution, Group
from tamiz.report.select_view import residual_lines
from tamiz.report.svg import (
    Scale,
    diverging_palette,
    element,
    grid_payload,
    marker,
    png_address,
    polyline,
    quantise,
    text,
)

NAN = math.nan
ONE = np.array([3.0])
UNIT = (0.0, 1.0), (0.0, 1.0)  # edges of one bin, and the ends of the axis


def curve(**changes):
    """The score at M = 3 and 40, the first without an interval."""
    series = Series(
        "", np.array([3.0, 40.0]), np.array([0.5, 0.7]), np.array([NAN, 0.6]), np.array([NAN, 0.8]), tips=["a", "b"]
    )
    return Lines("score", "M", "accuracy", [series], log_x=True, chosen=("M = 3", 3.0), band=True, **changes)


def bins(counts, quantiles=(0.5,) * 5, n_missing=0, label="a"):
    return Group(label, sum(counts), quantiles, counts, n_missing)


# Drawing, what it must contain.
CHARTS = [
    (lambda: line_chart(curve(levels=[("chance 0.500", 0.5), ("all 0.600", 0.6)])),
     ["chance 0.500", "M = 3", 'data-m="40"', "ring"]),
    (lambda: line_chart(Lines("one", "x", "y", [Series("", ONE, np.array([NAN]), tips=["t"])])), ["one"]),
    (lambda: line_chart(Lines("s", "x", "y", [Series("k", ONE, ONE)], unit_square=True, diagonal=True)), ["chosen"]),
    (lambda: line_chart(Lines("s", "step", "y", [Series("<k>", np.arange(3.0), np.arange(3.0), style="grey", tips=["t"])],
                              phases=[("warm-up", 0.0, 2.0)])), ["warm-up", "path dropped", "&lt;k&gt;"]),
    (lambda: line_chart(residual_lines(np.array([1.0, NAN, 2.0]), np.array([1.5, 1.0, math.inf]))), ["residual +0.500"]),
    (lambda: square_chart(Grid("empty", ["a"], ["a"], np.array([[NAN]]), 0, 1, texts=[["–"]], tips=[["nothing"]])),
     ["hnone", "nothing"]),
    (lambda: square_chart(Grid("m", ["x" * 30] * 9, ["x" * 30] * 9, np.ones((9, 9)), 0, 1, "", "predicted", "actual",
                               [["100%"] * 9] * 9, [["t"] * 9] * 9)), ["rotate(-38", "predicted", "actual", "h10"]),
    (lambda: square_chart(Grid("pair", ["hi", "", "lo"], ["1", "", "9"], np.full((3, 3), 7.0), 7, 7, tips=[["t"] * 3] * 3,
                               codes=np.ones((3, 3), int))), ["by-class s1", "hi"]),
    (lambda: raster_chart(Grid("heat", ["<a>"], [], np.array([[NAN, 99.0]]), -3, 3), 400, key="heat",
                          above=class_strip(np.array([0, 1]), np.array([True, False]), 400)), ["&lt;a&gt;", "wrong", "strip s1"]),
    (lambda: raster_chart(Grid("r", ["a", "b"], ["a", "b"], np.array([[1, 0.95], [0.95, 1]]), -1, 1), 400, key="r", square=True),
     ["outline", 'data-grid="r"']),
    (lambda: raster_chart(Grid("r", ["a", "b"], ["a", "b"], np.eye(2), -1, 1), 400, key="r", square=True), ["natural"]),
    (lambda: fold_chart(Grid("folds", ["<a>", "b"], [str(i) for i in range(40)], np.array([[1] * 40, [0] * 40]), 0, 1), 1, 400),
     ["40/40", "0 of 40 folds; not in the final fit", "left-out"]),
    (lambda: distribution_chart(Distribution((bins((0,), (NAN,) * 5),), *UNIT), "x"), ["distribution of x"]),
    (lambda: distribution_chart(Distribution((bins((1,), n_missing=2),), *UNIT), "x"), ["2 of 3 rows are missing"]),
    (lambda: distribution_chart(Distribution(tuple(bins((1,), label=f"c{i}") for i in range(5)), *UNIT), "x"), ["box s4"]),
    (lambda: distribution_chart(Distribution((bins((2, 1)), bins((0, 3))), levels=("<f>", "m")), "sex"),
     ["&lt;f&gt;", "67%", "m: 100% of a (3 rows)"]),
    (lambda: effect_bar(-2.0, (-2.0, 9.0), faint=True), ["faint-bar", "column s0"]),
    (lambda: legend(["<a>"])[0]["swatch"], ["swatch"]),
    (lambda: image_chart(np.eye(3, dtype=bool), np.full((3, 3), NAN)), ["3 kept pixels over the mean image of 3 by 3"]),
]  # fmt: skip


@pytest.mark.parametrize(("draw", "wanted"), CHARTS)
def test_charts(draw, wanted):
    drawn = draw()
    ElementTree.fromstring(drawn)
    assert "nan" not in drawn
    assert "inf" not in drawn
    for words in wanted:
        assert words in drawn


@pytest.mark.parametrize(("value", "span"), [(None, (0.0, 1.0)), (NAN, (0.0, 1.0)), (0.0, (0.0, 0.0))])
def test_bars_of_nothing_are_nothing(value, span):
    assert effect_bar(value, span) == ""


def test_the_zero_line_stands_in_one_place_for_all_bars():
    drawn = [ElementTree.fromstring(effect_bar(value, (-2.0, 2.0))) for value in (-2.0, 0.1, 1.7)]
    assert {part.find("line").get("x1") for part in drawn} == {"90"}
    left, _, right = ((float(p.find("rect").get("x")), float(p.find("rect").get("width"))) for p in drawn)
    assert (left, right) == ((2.0, 88.0), pytest.approx((90.0, 74.8)))


def test_large_scatters_are_thinned():
    many = np.arange(2000.0)
    assert line_chart(residual_lines(many, many)).count("<circle") == 500


def test_marks_of_several_methods_are_set_apart():
    both = [Series(name, ONE, ONE, colour=i, tips=[name]) for i, name in enumerate("ab")]
    drawn = ElementTree.fromstring(line_chart(Lines("t", "x", "y", [*both])))
    groups = [g for g in drawn.iter("g") if g.get("data-series")]
    assert [g.get("data-series") for g in groups] == ["a", "b"]


@given(st.lists(st.floats(allow_nan=True, width=32), max_size=6), st.booleans())
def test_scales_stay_inside_their_pixels(values, log):
    scale = Scale.over(values, 10.0, 90.0, log=log, pad=0.05)
    assert all(10.0 <= scale(value) <= 90.0 for value in values if math.isfinite(value))
    ticks = scale.ticks()
    assert len(ticks) <= 12
    assert len(scale.labels(ticks)) == len(ticks)


def test_ticks_are_round_and_labelled_alike():
    scale = Scale(0.42, 0.97, 0, 100)
    assert scale.labels(scale.ticks(4)) == ["0.6", "0.8"]
    assert Scale(-3.0, 5.0, 0, 1).labels([-2.5, 0.0, 2.5]) == ["-2.5", "0.0", "2.5"]
    assert Scale.over([5.0, 5.0], 0, 100)(5.0) == pytest.approx(50)


def test_elements_escape_and_lines_break_at_gaps():
    parsed = ElementTree.fromstring(element("g", text("<b>&", 1, 2), data_tip='"><script>'))
    assert (parsed.get("data-tip"), parsed[0].text) == ('"><script>', "<b>&")
    assert polyline([(0, 0), (1, 0), (2, 0), (NAN, 1), (3, 3), (4, 9)]) == '<path d="M0 0L2 0M3 3L4 9" fill="none"/>'
    assert polyline([(NAN, NAN)]) == ""
    assert len({marker(kind, 5.0, 5.0) for kind in range(5)}) == 5


def test_rasters_keep_values_to_a_hundredth_and_are_read_by_an_image_library():
    pillow = pytest.importorskip("PIL.Image")
    import base64
    import io

    codes = quantise(np.array([[-3.0, 0.0], [3.0, NAN]]), 3.0)
    drawn = png_address(np.array([[-3.0, 0.0], [3.0, NAN]]), 3.0)
    picture = pillow.open(io.BytesIO(base64.b64decode(drawn.partition(",")[2])))
    assert np.array_equal(np.asarray(picture.convert("RGB")), diverging_palette()[codes])
    block = grid_payload(Grid("", ["a"], [], np.array([[1.234, NAN]]), -3, 3, "z"), ["row 1", "row 2"])
    stored = np.frombuffer(base64.b64decode(block["codes"]), dtype=np.uint8)
    assert (stored[0] - 127) / 127 * 3 == pytest.approx(1.234, abs=0.012)
    assert stored[1] == 255
