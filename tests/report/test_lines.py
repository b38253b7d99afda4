"""Line charts."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tamiz.evaluation.intervals import Interval
from tamiz.report.data import Curve, CurvePoint
from tamiz.report.lines import (
    N_PATHS,
    describe_score,
    gamma_chart,
    gamma_paths,
    has_gamma,
    has_history,
    history_chart,
    interval_numbers,
    method_curves,
    robust_top,
    score_curve,
    shown_steps,
)


def test_scores_without_ends_have_no_brackets():
    assert describe_score(Interval(0.5)) == "0.500"
    assert describe_score(Interval(0.5, 0.4, 0.6)) == "0.500 (0.400 to 0.600)"
    assert interval_numbers([Interval(math.nan)]) == []


def test_the_curve_marks_every_point_and_the_chosen_one():
    points = tuple(CurvePoint(m, Interval(0.5 + m / 100, 0.4, 0.9)) for m in (1, 5, 40))
    drawn = score_curve(Curve("accuracy", points, chosen=5), [("all", 0.7), ("chance", math.nan)], 600)
    assert drawn.count("data-tip=") == 3
    assert drawn.count(" ring") == 1
    assert "M = 5" in drawn
    assert "all 0.700" in drawn
    assert "chance" not in drawn
    assert drawn.count('class="band') == 1


def test_a_spike_does_not_flatten_the_rest():
    assert robust_top(np.array([1.0, np.nan, 2.0])) == 2.0
    assert robust_top(np.r_[np.ones(99), 1e6]) < 2.0


def test_a_run_is_drawn_as_far_as_it_selects(selection):
    assert has_history(selection, "loss")
    assert not has_history(selection, "no such column")
    early = replace(selection, closed_at=400)
    assert shown_steps(early, "n_alive") < shown_steps(early, "loss") == len(selection.history["step"])
    assert "features alive" in history_chart(selection, "n_alive", 600)
    assert "phase" in history_chart(selection, "loss", 320)


def test_paths_of_kept_columns_lie_on_top(selection):
    assert has_gamma(selection)
    paths = gamma_paths(selection)
    kept = [is_kept for _, is_kept, _ in paths]
    assert kept == sorted(kept)
    assert sum(kept) <= N_PATHS
    assert gamma_chart(selection, 600).count("data-series=") == len(paths)
    assert not has_gamma(replace(selection, history={}))


@pytest.mark.parametrize("width", [320, 900])
def test_every_method_has_a_line(compare_data, width):
    drawn = method_curves(compare_data, list(range(len(compare_data.methods))), width)
    assert drawn.count("data-series=") == len(compare_data.methods)
