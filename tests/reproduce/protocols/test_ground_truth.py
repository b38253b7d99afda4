"""Ground truth: shares of true features on tables whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.errors import UnknownNameError
from tamiz.paper.ground_truth import GroundTruth
from tamiz.paper.runner import execute

ground_truth = GroundTruth()


def run_all(cells, data_home=None):
    results = {}
    for cell in cells:
        outcome = execute(cell, data_home)
        assert "failure" not in outcome, outcome
        results[cell.key] = outcome["result"]
    return results


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


def test_pairs_find_everything_and_keep_their_own_network():
    plan = ground_truth.make_plan(["ring+xor"], ["pairs"], [64], n_folds=3)
    cells = [cell for cell in ground_truth.make_cells(plan) if cell.settings["method"] == "pairs"]
    settings = cells[0].settings["parameters"]
    assert (settings["network"], settings["decided"]["ramp_steps"], settings["starts"]) == ("pairs", 8000, 1)
    assert [result["share"] for result in run_all(cells).values()] == [1.0, 1.0, 1.0]


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
