"""Words and numbers for pages, JSON blocks and CSV files."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamiz.report import text

HARMFUL = ["=cmd", "+cmd", "-cmd", "@cmd", "\tcmd", "\rcmd", "-1.5+cmd", "--1", "-", "+", "=1", "-1.5 ", "-inf"]


@pytest.mark.parametrize("cell", HARMFUL)
def test_cells_that_a_spreadsheet_would_run_are_made_harmless(cell):
    assert text.csv_cell(cell).strip('"') == f"'{cell}"
    assert text.csv_cell(cell, spreadsheet_safe=False).strip('"') == cell


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"])), min_size=2, max_size=2), max_size=5
    )
)
def test_csv_reads_back_as_it_was(rows):
    written = text.csv_text(["a", "b"], rows, spreadsheet_safe=False)
    assert list(csv.reader(io.StringIO(written, newline=""))) == [["a", "b"], *rows]


@given(st.text())
def test_json_in_a_script_is_the_same_text_and_cannot_end_the_script(name):
    block = text.json_for_script({"name": name})
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block) == {"name": text.clean_text(name)}
    block.encode("utf-8")


CALLS = [  # function, what it is called with, what it gives for each
    (text.csv_cell, [-1.5, 3, "-1.5", "+2", "-.5e-3", "1e5", True], ["-1.5", "3", "-1.5", "+2", "-.5e-3", "1e5", "True"]),
    (text.json_for_script, [[math.nan, math.inf, 1.0]], ["[null,null,1.0]"]),
    (text.clean_text, ["a\x00b\ud83dc", "tab\tand 🧬"], ["a\ufffdb\ufffdc", "tab\tand 🧬"]),
    (lambda name: text.shorten(name, 5), ["  \n ", "x" * 500], [" ", "xx…xx"]),
    (text.format_number, [0, -0.0, 1e-9, 123456789.0, math.nan, 0.5], ["0", "0", "1.00e-9", "1.23e8", "–", "0.500"]),
    (text.format_score, [0.0, 0.00001, None, math.nan, -12.345], ["0.000", "0.000", "–", "–", "-12.35"]),
    (text.format_column, [[120.0, 0.5, math.nan], [None], [1e-9]], [["120", "0", "–"], ["–"], ["1.00e-9"]]),
    (text.format_seconds, [None, 0.0004, 7200], ["–", "0.4\u00a0ms", "2.0\u00a0h"]),
    (text.format_p_value, [None, 0.05, math.nan], ["–", "0.050", "–"]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "wanted"), CALLS)
def test_what_is_written(function, given, wanted):
    assert [function(one) for one in given] == wanted
