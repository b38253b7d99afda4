"""Small pictures of single columns."""

import numpy as np
import pytest

from tamiz.report.columns import (
    class_cells,
    correlation_chart,
    effect_bar,
    effect_range,
    fold_grid_chart,
    near_copies,
    share_dot,
)
from tamiz.report.evidence import Correlations, FoldGrid


def test_the_range_holds_zero():
    assert effect_range([]) == (0.0, 0.0)
    assert effect_range([2.0, float("nan"), None, -3.0]) == (-3.0, 2.0)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_not_known_has_no_bar(value):
    assert effect_bar(value, (-1.0, 1.0), "s0") == ""
    assert share_dot(value) == ""


def test_bars_of_opposite_effects_lie_on_opposite_sides():
    up, down = (effect_bar(value, (-1.0, 1.0), "s0") for value in (0.5, -0.5))
    assert up != down
    assert effect_bar(0.5, (0.0, 0.0), "s0") == ""


def test_dots_below_one_half_are_faint():
    assert "faint-bar" in share_dot(0.4)
    assert "faint-bar" not in share_dot(0.5)


def test_cells_tell_the_class_and_the_side():
    drawn = class_cells([0.5, -1.0, 0.0], 1.0, ["a", "b", "c"])
    assert "down5" in drawn
    assert "up" in drawn
    assert "b: −1" in drawn or "b: -1" in drawn


def test_the_grid_says_how_many_folds_kept_a_column():
    grid = FoldGrid(("kept", "other"), (True, False), np.array([[True, True, False], [False, True, True]]))
    drawn = fold_grid_chart(grid, 600)
    assert "kept: 2 of 3 folds" in drawn
    assert "other: 2 of 3 folds; not in the final fit" in drawn


def test_copies_are_listed_the_nearest_first():
    values = np.array([[1.0, 0.99, 0.1], [0.99, 1.0, -0.995], [0.1, -0.995, 1.0]])
    correlations = Correlations(("a", "b", "c"), values)
    found = near_copies(correlations)
    assert [set(pair[:2]) for pair in found] == [{"b", "c"}, {"a", "b"}]
    assert all(name in correlation_chart(correlations, 600) for name in "abc")
