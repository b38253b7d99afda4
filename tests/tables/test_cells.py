"""Numbers and missing values in cells."""

from __future__ import annotations

import pytest

from tamiz.tables.cells import MISSING, is_number


@pytest.mark.parametrize(
    ("cell", "expected"), [("1", True), (" -1e-3 ", True), ("inf", True), ("1_0", False), ("1,5", False)]
)
def test_cells_that_are_numbers(cell, expected):
    assert is_number(cell) is expected


def test_missing_values_are_no_names_of_categories():
    assert {"", "NA", "?", "None"} <= set(MISSING)
    assert "no" not in MISSING
