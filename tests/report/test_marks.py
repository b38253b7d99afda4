"""Charts of single marks."""

import math

import numpy as np
import pytest

from tamiz.evaluation.intervals import Interval
from tamiz.report.data import Residuals
from tamiz.report.marks import (
    N_RESIDUALS,
    heat_map,
    legend_swatch,
    rank_chart,
    residual_chart,
    score_intervals,
    time_chart,
)


def test_scores_have_a_mark_where_they_are_known():
    drawn = score_intervals(
        [("kept", Interval(0.9, 0.8, 1.0)), ("all", Interval(0.7)), ("?", Interval(math.nan))], "accuracy"
    )
    assert drawn.count("data-tip=") == 2
    assert drawn.count("whisker") == 1
    assert "kept: 0.900 (0.800 to 1.000)" in drawn


def test_squares_have_their_numbers_and_tips():
    labels = [["3", "1"], ["0", "<4>"]]
    drawn = heat_map(["a", "b"], ["c", "d"], [[0.75, 0.25], [0.0, None]], labels, labels, "table", "truth", "said")
    assert "&lt;4&gt;" in drawn
    assert "<4>" not in drawn
    assert drawn.count("data-tip=") == 4


@pytest.mark.parametrize("n_rows", [5, 3 * N_RESIDUALS])
def test_residuals_of_many_rows_are_thinned(n_rows):
    values = np.linspace(0, 1, n_rows)
    drawn = residual_chart(Residuals(tuple(values.tolist()), tuple((values + 0.1).tolist())))
    assert 0 < drawn.count("<svg") <= 1
    assert len(drawn) < 400 * N_RESIDUALS


def test_times_without_a_number_are_named_too():
    drawn = time_chart([("fisher", 0.001), ("e2efs", 12.0), ("mim", None)], [0, 1, 2])
    for name in ("fisher", "e2efs", "mim"):
        assert name in drawn


def test_ranks_are_drawn_in_their_order(compare_data):
    assert compare_data.ranks
    drawn = rank_chart(compare_data.ranks, list(range(len(compare_data.ranks))))
    assert all(rank.method in drawn for rank in compare_data.ranks)


def test_swatches_differ():
    assert legend_swatch(0) != legend_swatch(1)
