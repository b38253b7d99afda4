"""Tables of the terminal."""

import io

import pytest
from rich.console import Console

from tamiz.cli.show import closing_lines, kept_table, scores_table


def printed(part):
    stream = io.StringIO()
    Console(file=stream, width=400).print(part)
    return stream.getvalue()


def interval(value, low=None, high=None):
    return {"value": value, "low": low, "high": high}


@pytest.fixture
def record():
    return {
        "k": 2,
        "n_features": 1500,
        "effect_name": "weight of the model",
        "scores": {
            "metric": "balanced accuracy",
            "n_folds": 5,
            "kept": interval(0.9, 0.85, 0.95),
            "all_features": interval(0.8),
            "random_features": interval(0.6, 0.5, 0.7),
            "difference": interval(0.1, 0.05, 0.15),
            "difference_random": interval(0.3, 0.2, 0.4),
        },
        "selected": [
            {"rank": 1, "column": "gene [red]", "weight": 0.5, "fold_share": 1.0, "levels": []},
            {"rank": 2, "column": "b", "weight": -0.25, "fold_share": 0.4, "levels": []},
        ],
        "stability": 0.7,
        "null": {"stability": 0.1, "highest_stability": 0.2, "always_kept": 0.5},
        "verdict": "It works.",
        "test": None,
    }


def test_scores_have_intervals_and_differences(record):
    said = printed(scores_table(record))
    assert "Balanced accuracy over 5 held-out folds" in said
    assert "all 1,500" in said
    assert "0.850 to 0.950" in said
    assert "+0.100" in said


def test_kept_features_come_with_their_folds(record):
    said = printed(kept_table(record))
    assert "gene [red]" in said  # no markup of the data is obeyed
    assert "5 of 5" in said
    assert "2 of 5" in said
    record["selected"] *= 15
    assert "and 10 more in selected.csv" in printed(kept_table(record))


def test_stability_is_compared_with_chance(record):
    assert "more alike than chance" in printed(closing_lines(record))
    record["stability"] = 0.15
    assert "no more alike than chance" in printed(closing_lines(record))
    record["null"] = None
    assert "was not computed" in printed(closing_lines(record))


def test_the_verdict_and_the_test_file(record):
    assert printed(closing_lines(record)).startswith("It works.")
    record["test"] = {"n_rows": 1200, "file": "test.csv", **interval(0.7, 0.6, 0.8)}
    assert "On the 1,200 rows of test.csv: 0.700 (0.600 to 0.800)." in printed(closing_lines(record))
