"""MADELON: the order of the methods, and options that make no sense."""

from __future__ import annotations

import pytest

from tamiz.paper.madelon import Madelon
from tamiz.paper.runner import execute
from tamiz.paper.store import Cell

madelon = Madelon()


def run_all(cells, data_home=None):
    results = {}
    for cell in cells:
        outcome = execute(cell, data_home)
        assert "failure" not in outcome, outcome
        results[cell.key] = outcome["result"]
    return results


@pytest.mark.data
def test_madelon_orders_methods_as_published(data_home):
    plan = madelon.make_plan(["fisher"], n_runs=1)
    cells = [cell for cell in madelon.make_cells(plan, data_home) if cell.settings["method"] != "all"]
    cells = [Cell(c.protocol, c.name, {**c.settings, "trees": 50}) for c in cells]
    outcome = madelon.summarise(plan, cells, run_all(cells, data_home), {})
    found = {row["method"]: row["auroc"] for row in outcome.records}
    assert found["fisher"] > found["random"] + 0.1
    assert found["all"] is None
    assert "ReliefF (published) | 0.941" in outcome.markdown


def test_madelon_refuses_nothing_to_keep():
    with pytest.raises(ValueError, match="at least 1"):
        madelon.make_plan(k=0)
