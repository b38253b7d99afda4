"""The three-layer network: cells, tables, figure."""

from __future__ import annotations

from itertools import product

import pytest

from tamiz.paper.runner import execute
from tamiz.paper.store import Cell
from tamiz.paper.three_layer import ThreeLayer, curve_sizes_of

three_layer = ThreeLayer()


def run_all(cells, data_home=None):
    results = {}
    for cell in cells:
        outcome = execute(cell, data_home)
        assert "failure" not in outcome, outcome
        results[cell.key] = outcome["result"]
    return results


@pytest.mark.data
def test_three_layer_cells(data_home):
    plan = three_layer.make_plan(["colon"], ["fisher"], n_repeats=1)
    cells = three_layer.make_cells(plan, data_home)
    assert len(cells) == 3 * 3
    cell = next(c for c in cells if c.settings["method"] == "fisher")
    short = Cell(cell.protocol, cell.name, {**cell.settings, "m_values": [10]})
    result = run_all([short], data_home)[short.key]
    assert result["joint"] is None
    assert 0.6 < result["network"][0] <= 1.0
    assert cell.settings["learner"]["decided"]["learning_rate"] == 0.05
    assert cell.settings["learner"]["starts"] == 1


def test_three_layer_summary_and_drawing(tmp_path):
    plan = three_layer.make_plan(["madelon", "gina_rebuilt"], ["fisher", "e2efs"], n_repeats=1, recipe="both")
    cells, results = [], {}
    for dataset in plan.datasets:
        for method, recipe in product(plan.methods, plan.recipes):
            settings = {"dataset": dataset, "method": method, "recipe": recipe, "split": 0}
            cell = Cell("three-layer", f"{dataset} {method} {recipe}", settings)
            cells.append(cell)
            values = [0.8 if recipe == "paper" else 0.9] * len(curve_sizes_of(dataset))
            results[cell.key] = {"joint": values if method == "e2efs" else None, "network": values, "seconds": [1.0]}
    outcome = three_layer.summarise(plan, cells, results, {})
    assert "E2E-FS (joint) [paper] | 0.800 | 0.800" in outcome.markdown
    assert "E2E-FS (anew) [paper] | 0.800 (0.889)" in outcome.markdown
    assert "E2E-FS (anew) [tamiz] | 0.900 (0.889)" in outcome.markdown
    assert "MADELON, E2E-FS [paper], 5 features: 0.800 here, 0.889 published (-0.089)" in outcome.markdown
    assert "MADELON, E2E-FS [paper], 15 features" not in outcome.markdown
    assert "### GINA (REBUILT)" in outcome.markdown
    assert three_layer.draw(outcome, cells, results, tmp_path) == {"figure": str(tmp_path / "figure.png")}
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
