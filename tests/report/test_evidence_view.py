"""Sections of the page that show evidence: there where it was gathered, absent where not."""

from dataclasses import replace

import pytest

from tamiz.report.evidence_view import (
    confusion_view,
    fold_grid_view,
    heat_map_view,
    partners_view,
    prediction_view,
    together_view,
)
from tamiz.report.select_view import both_widths


def test_what_was_gathered_is_shown(select_data):
    assert heat_map_view(select_data, both_widths)
    assert together_view(select_data)
    assert fold_grid_view(select_data, both_widths)
    assert prediction_view(select_data)
    assert confusion_view(select_data)


@pytest.mark.parametrize(
    ("part", "view"),
    [
        ("heat_map", lambda data: heat_map_view(data, both_widths)),
        ("fold_grid", lambda data: fold_grid_view(data, both_widths)),
        ("confusion", confusion_view),
    ],
)
def test_what_was_not_is_left_out(select_data, part, view):
    assert view(replace(select_data, **{part: None})) is None


def test_predictions_have_more_charts_with_what_was_held_out(select_data):
    without = prediction_view(replace(select_data, held_out=None))
    assert len(without["charts"]) < len(prediction_view(select_data)["charts"])


def test_partners_need_a_search(select_data):
    assert partners_view(replace(select_data, pairs=None)) is None
