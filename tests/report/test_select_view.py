"""What the page of a selection says in words and numbers."""

from dataclasses import replace

import pytest

from tamiz.evaluation.intervals import Interval
from tamiz.report.select_view import (
    curve_rows,
    difference_rows,
    references,
    score_rows,
    select_view,
    slider_view,
    subline,
    tiles,
    verdict,
)


def test_the_top_answers_four_questions(select_data):
    labels = [tile["label"] for tile in tiles(select_data)]
    assert labels[0] == "Balanced accuracy"
    assert labels[1].startswith("Against all")
    assert "random" in labels[2]
    assert labels[3] == "Stability"
    assert tiles(replace(select_data, scores=None, stability=None)) == []


@pytest.mark.parametrize(
    ("gap", "word"),
    [
        (Interval(0.1, 0.05, 0.15), "better than with all"),
        (Interval(-0.1, -0.15, -0.05), "worse than with all"),
        (Interval(0.0, -0.1, 0.1), "no clear difference from all"),
    ],
)
def test_the_verdict_is_that_of_the_interval(select_data, gap, word):
    scores = replace(select_data.scores, difference=gap, difference_random=None)
    assert word in verdict(scores, select_data.selection)


def test_rows_have_what_was_measured(select_data):
    scores = select_data.scores
    assert [score for _, score in score_rows(scores, select_data.selection)] == [
        scores.kept,
        scores.all_features,
        scores.random_features,
    ]
    assert len(score_rows(replace(scores, all_features=None), select_data.selection)) == 2
    assert len(difference_rows(scores)) == 2
    assert score_rows(None, select_data.selection) == difference_rows(None) == []
    assert len(curve_rows(select_data)) == len(select_data.curve.points)


def test_the_slider_stands_at_the_chosen_number(select_data):
    slider = slider_view(select_data)
    assert slider["sizes"][slider["at"]] == slider["chosen"] == select_data.selection.n_features_to_select
    assert slider_view(replace(select_data, kept_sets=())) is None


def test_the_words_of_the_page(select_data):
    assert select_data.target in subline(select_data)
    assert {name for name, _ in references(select_data)} <= {"all", "random", "chance"}
    assert select_view(select_data)
