"""The table of the microarrays: what is planned, what a cell holds, what is bold, what is said about differences."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.errors import UnknownDatasetError, UnknownNameError
from tamiz.paper.microarray import Microarray
from tamiz.paper.microarray_table import MicroarrayPlan, collect, stabilities
from tamiz.paper.recipes import with_recipe
from tamiz.paper.runner import execute
from tamiz.paper.store import Cell

PROTOCOL = Microarray()


def fake_cells(plan, score):
    """Cells of a plan with results made by ``score(method, learner, split, m)``: for what follows the computing."""
    cells, results = [], {}
    for dataset in plan.datasets:
        for method, recipe in plan.selections:
            for split in range(plan.n_splits):
                settings = {"dataset": dataset, "method": method, "recipe": recipe, "split": split}
                cell = Cell("microarray", f"{dataset} {split} {with_recipe(method, recipe)}", settings)
                cells.append(cell)
                results[cell.key] = {
                    "scores": {
                        with_recipe(learner, its): [score(method, learner, split, m) for m in plan.m_values]
                        for learner, its in plan.scored_by(method, recipe)
                    },
                    "support": None if method == "all" else [list(range(m)) for m in plan.m_values],
                    "seconds": [0.5] * len(plan.m_values),
                    "n_features": 2000,
                }
    return cells, results


def test_plan_checks_names():
    with pytest.raises(UnknownDatasetError, match="Did you mean 'colon'"):
        PROTOCOL.make_plan(["colonn"])
    with pytest.raises(UnknownNameError, match="Did you mean 'svm'"):
        PROTOCOL.make_plan(["colon"], learners=["svn"])
    with pytest.raises(UnknownNameError, match="Did you mean 'small'"):
        PROTOCOL.make_plan(["colon"], grid="smal")
    with pytest.raises(ValueError, match="integers from 1"):
        PROTOCOL.make_plan(["colon"], m_values=[0])
    with pytest.raises(ValueError, match="one repeat"):
        PROTOCOL.make_plan(["colon"], n_repeats=0)


def test_summary_of_known_scores():
    plan = PROTOCOL.make_plan(["colon", "gina_rebuilt"], ["fisher", "e2efs"], m_values=[10, 50], n_repeats=3)
    cells, results = fake_cells(
        plan, lambda method, learner, split, m: (0.9 if method == "e2efs" else 0.6) + 0.01 * split
    )
    lost = next(cell for cell in cells if cell.settings["method"] == "fisher")
    del results[lost.key]
    outcome = PROTOCOL.summarise(plan, cells, results, {lost.name: "ValueError: no"})
    assert "**0.940 ± 0.03** (0.825)" in outcome.markdown
    assert "GINA (REBUILT)" in outcome.markdown
    assert "ValueError: no" in outcome.markdown
    assert "random features, SVM" in outcome.markdown
    assert "all features, SVM" in outcome.markdown
    fisher = next(r for r in outcome.records if r["method"] == "fisher" and r["n_features"] == "mean")
    assert (fisher["splits"], fisher["paper"], fisher["bold"]) == (8, 0.833, False)
    assert fisher["balanced_accuracy"] == pytest.approx(0.645)
    assert outcome.content["friedman_p_value"] is not None
    assert {row["median seconds of one selection"] for row in outcome.timing} == {0.5}
    (page, _) = PROTOCOL.comparisons(plan, cells, results)
    assert (page.name, page.title, page.n_rows, page.n_features) == ("colon", "COLON", 62, 2000)
    assert page.comparison.methods[:3] == ("fisher / naive [paper]", "fisher / svm", "e2efs / naivef [paper]")
    assert page.comparison.scores.shape == (9, 2, 9)
    assert np.isnan(page.comparison.scores[0]).sum() == 2
    assert page.comparison.seconds.tolist() == [[0.5, 0.5]] * 9
    # Everybody kept the same features in every split.
    assert stabilities(plan, cells, results)["colon", "fisher"] == [1.0, 1.0]
    assert np.isnan(collect(plan, cells, results)["colon"][0].scores).sum() == 2


def test_both_recipes_are_rows_of_their_own():
    plan = PROTOCOL.make_plan(["colon"], ["fisher", "e2efs"], m_values=[10], n_repeats=2, recipe="both")
    assert plan.selections[:3] == [("fisher", None), ("e2efs", "paper"), ("e2efs", "tamiz")]
    cells, results = fake_cells(plan, lambda method, learner, split, m: 0.9)
    for cell in cells:
        if cell.settings["recipe"] == "tamiz":
            results[cell.key]["scores"]["naive [tamiz]"] = [0.7]
            results[cell.key]["seconds"] = [2.0]
    outcome = PROTOCOL.summarise(plan, cells, results, {})
    means = {(row["method"], row["learner"], row["recipe"]): row["mean"] for row in outcome.content["rows"]}
    assert means["e2efs", "naive", "paper"] == pytest.approx(0.9)
    assert means["e2efs", "naive", "tamiz"] == pytest.approx(0.7)
    assert {place for place in means if place[0] == "fisher"} == {
        ("fisher", "naive", "paper"),
        ("fisher", "naive", "tamiz"),
        ("fisher", "svm", None),
    }
    for text in (
        "[paper]: trained by the paper's recipe",
        "[tamiz]: trained by the defaults",
        "E2E-FS, NaiveF [tamiz]",
    ):
        assert text in outcome.markdown
    seconds = {row["method"]: row["median seconds of one selection"] for row in outcome.timing}
    assert (seconds["e2efs [paper]"], seconds["e2efs [tamiz]"]) == (0.5, 2.0)
    (page,) = PROTOCOL.comparisons(plan, cells, results)
    place = page.comparison.methods.index("e2efs / naive [tamiz]")
    assert page.comparison.seconds[place].tolist() == [2.0]


def test_the_papers_recipe_is_the_default_and_not_for_every_method():
    assert PROTOCOL.make_plan(["colon"]).recipes == ("paper",)
    assert PROTOCOL.make_plan(["colon"], ["e2efs-ranking"], recipe="tamiz").recipes == ("tamiz",)
    with pytest.raises(
        ValueError, match="no recipe for the method 'e2efs-ranking': leave it out, or use --recipe tamiz"
    ):
        PROTOCOL.make_plan(["colon"], ["fisher", "e2efs-ranking"])
    with pytest.raises(UnknownNameError, match="Did you mean 'paper'"):
        PROTOCOL.make_plan(["colon"], recipe="papper")


@pytest.fixture(scope="module")
def colon_plan():
    return MicroarrayPlan(("colon",), ("e2efs-soft", "fisher", "random", "all"), m_values=(10, 50), n_repeats=1)


@pytest.mark.data
def test_cells_of_a_real_set(colon_plan, data_home):
    cells = PROTOCOL.make_cells(colon_plan, data_home)
    assert len({cell.key for cell in cells}) == len(cells) == 4 * 3
    results = {}
    for cell in cells:
        outcome = execute(cell, data_home)
        results[cell.key] = outcome["result"]
        if cell.settings["split"]:
            continue
        again = execute(cell, data_home)["result"]
        for part in ("scores", "support", "converged", "n_features"):
            assert again[part] == outcome["result"][part], "the same cell gives the same result"
    table = PROTOCOL.summarise(colon_plan, cells, results, {})
    means = {(row["method"], row["learner"]): row["mean"] for row in table.content["rows"]}
    assert means["e2efs-soft", "naivef"] > 0.78
    assert means["fisher", "svm"] > 0.75
    support = results[cells[0].key]["support"]
    assert [len(columns) for columns in support] == [10, 50]
    assert cells[0].settings["parameters"]["training"] == "Training(recipe='paper')"
    assert cells[0].settings["parameters"]["decided"]["learning_rate"] == 1e-3


@pytest.mark.data
def test_other_data_and_other_settings_are_other_cells(colon_plan, data_home):
    from dataclasses import replace

    keys = {cell.key for cell in PROTOCOL.make_cells(colon_plan, data_home)}
    changed = [
        replace(colon_plan, m_values=(10, 51)),
        replace(colon_plan, grid="full"),
        replace(colon_plan, seed=1),
        replace(colon_plan, datasets=("lymphoma",)),
        replace(colon_plan, learners=("svm",)),
        replace(colon_plan, methods=("e2efs-soft",), recipes=("tamiz",)),
    ]
    for plan in changed:
        assert keys.isdisjoint(cell.key for cell in PROTOCOL.make_cells(plan, data_home))
    # More repeats only add cells.
    assert keys < {cell.key for cell in PROTOCOL.make_cells(replace(colon_plan, n_repeats=2), data_home)}


@pytest.mark.data
def test_a_worker_with_other_data_refuses(colon_plan, data_home):
    cell = PROTOCOL.make_cells(colon_plan, data_home)[0]
    other = Cell(cell.protocol, cell.name, {**cell.settings, "data": "0" * 32})
    assert "not the one that the run was planned with" in execute(other, data_home)["failure"]


@pytest.mark.data
def test_too_many_features_fail_that_cell_only(colon_plan, data_home):
    from dataclasses import replace

    cell = PROTOCOL.make_cells(replace(colon_plan, m_values=(5000,)), data_home)[0]
    assert "more than the 2000 feature(s)" in execute(cell, data_home)["failure"]
