"""The table of the microarrays: what is planned, what a cell holds, what is bold, what is said about differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tamiz.datasets import UnknownDatasetError
from tamiz.errors import UnknownNameError
from tamiz.reproduce.cells import Cell
from tamiz.reproduce.execution import execute
from tamiz.reproduce.paper_numbers import MICROARRAY, MICROARRAY_FILES
from tamiz.reproduce.protocols.microarray import Microarray
from tamiz.reproduce.protocols.microarray_rows import MicroarrayPlan, TableRow, bold_rows, collect, stabilities
from tamiz.reproduce.protocols.microarray_table import difference_sentence
from tamiz.reproduce.recipes import with_recipe

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


def series(values, method="fisher", learner="svm", dataset="colon", recipe=None):
    return TableRow(dataset, method, learner, np.asarray(values, dtype=float), recipe)


def test_bold_are_the_best_and_those_not_told_from_it():
    generator = np.random.default_rng(0)
    base = 0.8 + 0.05 * generator.normal(size=(60, 5))
    rows = [
        series(base, "fisher"),
        series(base + 0.01 * generator.normal(size=(60, 5)), "mim"),
        series(base - 0.05, "relieff"),
        series(base + 0.2, "all"),
        series(np.full((60, 5), np.nan), "ilfs"),
    ]
    assert bold_rows(rows) == {("fisher", "svm", None), ("mim", "svm", None)}
    assert bold_rows(rows[4:]) == set()


def test_mean_and_deviation_are_over_splits_and_sizes():
    row = series([[0.5, 1.0], [0.7, 0.8]])
    assert row.mean == pytest.approx(0.75)
    assert row.deviation == pytest.approx(np.std([0.5, 1.0, 0.7, 0.8]))
    assert row.by_split.tolist() == [0.75, 0.75]
    assert row.paper == (0.828, 0.07)
    assert math.isnan(series([[np.nan]]).mean)


def test_a_sentence_for_each_difference_above_two_hundredths():
    assert difference_sentence(series(np.full((6, 5), 0.845)), "full") is None
    text = difference_sentence(series(np.full((6, 5), 0.9)), "small")
    assert "COLON, Fisher, SVM: 0.900 here, 0.828 in the paper (+0.072)" in text
    assert "small grid" in text
    assert "the authors' result files have 0.820" in text
    lung = difference_sentence(series(np.full((6, 5), 0.9), dataset="lung"), "small")
    assert "result files" not in lung, "there are none for it"
    rebuilt = difference_sentence(series(np.full((6, 5), 0.7), dataset="gina_rebuilt"), "full")
    assert "the data are rebuilt, not the paper's rows" in rebuilt
    assert "small grid" not in rebuilt
    assert difference_sentence(series([[0.1]], "random"), "full") is None
    defaults = difference_sentence(series([[0.1]], "e2efs", "naive", recipe="tamiz"), "full")
    assert "COLON, E2E-FS, Naive [tamiz]: 0.100 here" in defaults
    assert "not by the paper's recipe" in defaults


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


def test_the_papers_rule_and_the_corrected_one_stand_side_by_side():
    plan = PROTOCOL.make_plan(["colon"], ["fisher", "e2efs"], m_values=[10, 50], n_repeats=3)
    level = {"e2efs": 0.9, "fisher": 0.6, "all": 0.99, "random": 0.5}
    cells, results = fake_cells(
        plan, lambda method, learner, split, m: level[method] + 0.002 * ((split * len(method) + len(learner)) % 5)
    )
    (page,) = PROTOCOL.comparisons(plan, cells, results)
    found = page.comparison
    assert set(found.references) == {
        "random / naive [paper]",
        "random / svm",
        "all / naive [paper]",
        "all / svm",
    }
    behind = {rank.method for rank in found.ranks if rank.significant}
    assert behind >= {"fisher / naive [paper]", "fisher / svm"}
    assert not set(found.references) & {rank.method for rank in found.ranks}
    best = min(found.ranks, key=lambda rank: rank.mean_rank).method
    starred = {test.first for test in found.tests if test.significant and test.second == best} | {
        test.second for test in found.tests if test.significant and test.first == best
    }
    assert behind == starred
    outcome = PROTOCOL.summarise(plan, cells, results, {})
    assert "by the paper's rule" in outcome.markdown
    assert "corrected resampled t test" in outcome.markdown
    assert "Kuncheva" not in outcome.markdown
    records = {(r["method"], r["learner"]): r for r in outcome.records if r["n_features"] == "mean"}
    assert records["fisher", "svm"]["behind_corrected"]
    assert not records["random", "svm"]["behind_corrected"]
    assert next(line for line in outcome.markdown.splitlines() if line.startswith("| Fisher, SVM")).count("↓") == 1


def test_nemenyi_is_not_printed_where_no_ranks_can_differ_so_much():
    plan = PROTOCOL.make_plan(["colon", "lung"], ["fisher", "e2efs"], m_values=[10], n_repeats=1)
    cells, results = fake_cells(plan, lambda method, learner, split, m: 0.5 + 0.1 * len(method + learner))
    words = PROTOCOL.summarise(plan, cells, results, {}).markdown
    assert "tell no two rows apart" in words
    assert "differ by less than" not in words


def test_paper_numbers_have_every_row_and_column():
    assert len(MICROARRAY) == 16
    assert {len(row) for row in MICROARRAY.values()} == {7}
    assert MICROARRAY["e2efs-soft", "naive"]["gisette"] == (0.963, 0.02)
    assert MICROARRAY["inffs", "svm"]["lung"] == (0.892, 0.02)
    assert MICROARRAY_FILES.keys() == MICROARRAY.keys()
    for place, row in MICROARRAY_FILES.items():
        known = {name: mean for name, mean in row.items() if mean is not None}
        assert len(known) == (7 if place[0].startswith("e2efs") else 6)
        # ReliefF on DEXTER is the one row that the files and the paper do not share.
        off = {name for name, mean in known.items() if abs(mean - MICROARRAY[place][name][0]) > 0.016}
        assert off == ({"dexter"} if place[0] == "relieff" else set())


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
    assert cells[0].settings["parameters"]["schedule"] == "paper"
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
