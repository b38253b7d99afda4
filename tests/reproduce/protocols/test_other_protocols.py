"""Ground truth, MADELON, the three-layer network, surfaces, and the page of all results."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tamiz.reproduce.protocols import ground_truth, madelon, surfaces, three_layer
from tamiz.reproduce.cells import Cell, execute
from tamiz.reproduce.results_page import PageError, all_pictures, build
from tamiz.reproduce.sources import UnknownNameError
from tamiz.reproduce.summary import Outcome, csv_lines, write_outcome


def run_all(cells, data_home=None):
    results = {}
    for cell in cells:
        outcome = execute(cell, data_home)
        assert "failure" not in outcome, outcome
        results[cell.key] = outcome["result"]
    return results


# ---- ground truth ------------------------------------------------------------------------------------------------------


def test_ground_truth_refuses_what_makes_no_sense():
    with pytest.raises(UnknownNameError, match=r"Did you mean 'ring\+xor'"):
        ground_truth.make_plan(["ring xor"])
    with pytest.raises(ValueError, match="finds every true one"):
        ground_truth.make_plan(methods=["all"])
    with pytest.raises(ValueError, match="at least 8"):
        ground_truth.make_plan(sizes=[4])
    with pytest.raises(ValueError, match="2 folds"):
        ground_truth.make_plan(n_folds=1)


def test_ground_truth_finds_what_a_method_is_known_to_find():
    """ReliefF sees a xor of two among eight columns, Fisher cannot: no column says anything alone."""
    plan = ground_truth.make_plan(["xor"], ["relieff", "fisher"], [8, 32], n_folds=3)
    cells = ground_truth.make_cells(plan)
    results = run_all(cells)
    outcome = ground_truth.summarise(plan, cells, results, {"x": "ValueError: y"})
    share = {(row["method"], row["p"]): row["share"] for row in outcome.records}
    assert share["relieff", 8] == 1.0
    assert share["fisher", 32] < 0.5
    assert "LassoNet (light budget) (published) | 0.78" in outcome.markdown
    assert "- x: ValueError: y" in outcome.markdown


def test_mrmr_sees_a_ring_because_the_protocol_lets_it_measure_mutual_information():
    plan = ground_truth.make_plan(["ring"], ["mrmr"], [16], n_folds=3)
    cells = [cell for cell in ground_truth.make_cells(plan) if cell.settings["method"] == "mrmr"]
    assert {cell.settings["parameters"]["relevance"] for cell in cells} == {"mutual_info"}
    assert np.mean([result["share"] for result in run_all(cells).values()]) > 0.8


def test_ground_truth_has_a_sentence_for_each_difference_to_the_publication():
    plan = ground_truth.make_plan(["xor", "ring"], ["relieff", "mrmr"])
    cells = ground_truth.make_cells(plan)
    results = {
        cell.key: {"share": 1.0 if cell.settings["problem"] == "ring" else 0.66, "seconds": 1.0} for cell in cells
    }
    text = ground_truth.summarise(plan, cells, results, {}).markdown
    assert "- xor, mRMR: 0.66 here, 0.03 published (+0.63); tables, folds" in text
    assert "- ring, ReliefF: 1.00 here, 0.27 published" in text
    assert "- xor, ReliefF" not in text
    assert "- ring, mRMR" not in text
    part = ground_truth.make_plan(["xor"], ["relieff"], [8])
    assert "Differences" not in ground_truth.summarise(part, cells, results, {}).markdown


def test_ground_truth_with_our_network():
    pytest.importorskip("torch")
    plan = ground_truth.make_plan(["xor"], ["e2efs-soft"], [8], n_folds=2)
    cell = next(c for c in ground_truth.make_cells(plan) if c.settings["method"] == "e2efs-soft")
    assert cell.settings["parameters"]["network"] == "mlp"
    assert cell.settings["parameters"]["refinement_epochs"] == "auto"
    assert execute(cell)["result"]["share"] == 1.0


# ---- MADELON, three-layer network --------------------------------------------------------------------------------------


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


@pytest.mark.data
def test_three_layer_cells(data_home):
    pytest.importorskip("torch")
    plan = three_layer.make_plan(["colon"], ["fisher"], n_repeats=1)
    cells = three_layer.make_cells(plan, data_home)
    assert len(cells) == 3 * 3
    cell = next(c for c in cells if c.settings["method"] == "fisher")
    short = Cell(cell.protocol, cell.name, {**cell.settings, "m_values": [10]})
    result = run_all([short], data_home)[short.key]
    assert result["joint"] is None
    assert 0.6 < result["network"][0] <= 1.0


def test_three_layer_summary_and_drawing(tmp_path):
    plan = three_layer.make_plan(["madelon", "gina_rebuilt"], ["fisher", "e2efs"], n_repeats=1)
    cells, results = [], {}
    for dataset in plan.datasets:
        for method in plan.methods:
            cell = Cell("three-layer", f"{dataset} {method}", {"dataset": dataset, "method": method, "split": 0})
            cells.append(cell)
            values = [0.8] * len(three_layer.sizes_of(dataset))
            results[cell.key] = {"joint": values if method == "e2efs" else None, "network": values, "seconds": [1.0]}
    outcome = three_layer.summarise(plan, cells, results, {})
    assert "E2E-FS (joint) | 0.800 | 0.800" in outcome.markdown
    assert "E2E-FS (anew) | 0.800 (0.889)" in outcome.markdown
    assert "MADELON, E2E-FS, 5 features: 0.800 here, 0.889 published (-0.089)" in outcome.markdown
    assert "MADELON, E2E-FS, 15 features" not in outcome.markdown
    assert "### GINA (REBUILT)" in outcome.markdown
    three_layer.draw(outcome.records, str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"


# ---- surfaces, tables, page --------------------------------------------------------------------------------------------


def test_surface_is_zero_only_where_one_feature_is_kept():
    _, binary, both = surfaces.surface(11)
    zeros = np.argwhere(np.isclose(both, 0))
    assert zeros.tolist() == [[0, 10], [10, 0]]
    assert np.argwhere(np.isclose(binary, 0)).tolist() == [[0, 0], [0, 10], [10, 0], [10, 10]]


def test_surfaces_are_drawn(tmp_path):
    outcome = surfaces.summarise(5)
    surfaces.draw(outcome.content, str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").stat().st_size > 5000
    assert len(outcome.records) == 25


TIMING = [
    {"dataset": "colon", "method": "mim", "seconds of it": 0.123456},
    {"dataset": "lung", "method": "mim", "seconds of it": 2.0},
    {"dataset": "lung", "method": "all", "seconds of it": 0.0},
]


def test_page_has_all_runs_in_the_papers_order(tmp_path):
    for name, timing in (("ground-truth", []), ("microarray", TIMING)):
        (tmp_path / name).mkdir()
        content = {"protocol": name}
        write_outcome(
            Outcome(f"Table of {name}", "0.5 ± 0.1 (0.6)\n\nText.", [{"a": 1}], content, timing), tmp_path / name
        )
    (tmp_path / "ground-truth" / "masks.png").write_bytes(b"picture")
    text = build([tmp_path / "ground-truth", tmp_path / "microarray"])
    assert "0.5\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.1 (0.6)" in text
    assert "Text.\n\n![masks of the run](images/ground-truth-masks.png)" in text
    assert all_pictures([tmp_path / "ground-truth"]) == {
        "images/ground-truth-masks.png": tmp_path / "ground-truth" / "masks.png"
    }
    assert text.index("## Table of microarray") < text.index("## Table of ground-truth")
    assert "Seconds of it.\n\n| method | colon | lung |" in text
    assert "| mim | 0.123 | 2 |\n| all | – | 0 |" in text
    (tmp_path / "microarray" / "results.json").write_text("{")
    with pytest.raises(PageError, match="not the folder of a finished run"):
        build([tmp_path / "microarray"])


def test_files_are_read_back(tmp_path):
    outcome = Outcome("T", "text", [{"a": 0.1, "b": None}, {"a": 2, "c": 'x,"y"'}], {"protocol": "p", "x": [1.5]})
    files = write_outcome(outcome, tmp_path)
    assert set(files) == {"md", "csv", "json"}
    assert json.loads((tmp_path / "results.json").read_text()) == outcome.content
    assert csv_lines(outcome.records) == 'a,b,c\n0.1,,\n2,,"x,""y"""\n'
