"""What was tried on inner folds, as tables of the page."""

import numpy as np
import pytest

from tamiz.estimators.chooser import Choice
from tamiz.report.choices_view import choice_tables
from tamiz.report.pages import render
from tamiz.report.write import select_report
from tamiz.selection import Selection


@pytest.fixture
def selection():
    network = Choice(
        ["linear", "additive", "pairs"],
        np.array([[0.5, 0.6, 0.55], [0.9, 0.8, 0.85], [np.nan] * 3]),
        1,
        "one_se",
        "balanced accuracy",
        {"pairs": "too few rows"},
    )
    number = Choice([1, 2], np.array([[0.8, 0.8], [0.9, 0.8]]), 0, 0.1, "accuracy")
    choices = {"network": network.to_dict(), "n_features_to_select": number.to_dict()}
    return Selection(support=np.array([True, False]), ranking=np.array([1, 2]), choices=choices)


def test_every_candidate_has_its_score_or_the_reason_why_not(selection):
    network, number = choice_tables(selection)
    assert network["title"] == "Network"
    assert [(row["candidate"], row["mean"], row["taken"]) for row in network["rows"]] == [
        ("linear", "0.550", False),
        ("additive", "0.850", True),
        ("pairs", "–", False),
    ]
    assert [row["reason"] for row in network["rows"]] == ["", "", "too few rows"]
    assert "3 inner folds" in network["note"]
    assert "one standard error" in network["note"]
    assert [row["candidate"] for row in number["rows"]] == ["1", "2"]
    assert "within 0.100" in number["note"]


def test_the_page_shows_what_was_tried(selection):
    html = render(select_report(selection))
    assert 'id="tried"' in html
    for text in ("additive", "0.850", "too few rows"):
        assert text in html.partition('id="tried"')[2]
    alone = Selection(support=np.array([True, False]), ranking=np.array([1, 2]))
    assert 'id="tried"' not in render(select_report(alone))
