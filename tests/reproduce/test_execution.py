"""One cell, wherever it runs."""

from __future__ import annotations

from tamiz.paper.runner import execute
from tamiz.paper.store import Cell


def bad_cell(cell):
    return Cell(cell.protocol, "the bad one", {**cell.settings, "data": "another table"})


def test_execute_tells_what_failed(quick_cells):
    assert execute(bad_cell(quick_cells[0]))["failure"].startswith("ValueError: the table of xor, p = 16, is not")
    assert "share" in execute(quick_cells[0])["result"]
