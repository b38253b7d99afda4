"""Words and numbers for pages, JSON blocks and CSV files."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamiz.report.text import (
    clean_text,
    csv_cell,
    csv_text,
    format_column,
    format_number,
    format_p_value,
    format_score,
    format_seconds,
    json_for_script,
    shorten,
)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_cells_that_a_spreadsheet_would_run_are_made_harmless(start):
    assert csv_cell(f"{start}cmd").lstrip('"').startswith(f"'{start}")
    assert csv_cell(f"{start}cmd", spreadsheet_safe=False).lstrip('"').startswith(start)


@pytest.mark.parametrize("number", [-1.5, 3, "-1.5", "+2", "-.5e-3", -1e-20, "1e5", True])
def test_plain_numbers_stay_as_they_are(number):
    assert csv_cell(number) == str(number)


@pytest.mark.parametrize("text", ["-1.5+cmd", "--1", "-", "+", "=1", "-1.5 ", "-inf"])
def test_what_only_begins_like_a_number_is_made_harmless(text):
    assert csv_cell(text) == f"'{text}"


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"])), min_size=2, max_size=2), max_size=5
    )
)
def test_csv_reads_back_as_it_was(rows):
    text = csv_text(["a", "b"], rows, spreadsheet_safe=False)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "b"], *rows]


@given(st.text())
def test_json_in_a_script_is_the_same_text_and_cannot_end_the_script(name):
    block = json_for_script({"name": name})
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block) == {"name": clean_text(name)}
    block.encode("utf-8")


def test_json_has_no_nan():
    assert json_for_script([math.nan, math.inf, 1.0]) == "[null,null,1.0]"


def test_text_that_cannot_be_written_is_replaced():
    assert clean_text("a\x00b\ud83dc") == "a\ufffdb\ufffdc"
    assert clean_text("tab\tand 🧬") == "tab\tand 🧬"
    assert len(shorten("x" * 500, 40)) == 40
    assert shorten("  \n ", 5) == " "


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1e-9, "1.00e-9"),
        (123456789.0, "1.23e8"),
        (math.nan, "–"),
        (math.inf, "–"),
        (0.5, "0.500"),
    ],
)
def test_numbers(value, shown):
    assert format_number(value) == shown


def test_scores_columns_times_and_p_values():
    assert [format_score(v) for v in (0.0, 0.00001, None, math.nan, -12.345)] == [
        "0.000",
        "0.000",
        "–",
        "–",
        "-12.35",
    ]
    assert format_column([120.0, 0.5, math.nan]) == ["120", "0", "–"]
    assert format_column([None, None]) == ["–", "–"]
    assert format_column([1e-9]) == ["1.00e-9"]
    assert [format_seconds(v) for v in (None, 0.0004, 7200)] == ["–", "0.4\u00a0ms", "2.0\u00a0h"]
    assert [format_p_value(v) for v in (None, 0.05, math.nan)] == ["–", "0.050", "–"]
