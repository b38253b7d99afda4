"""Table of the microarrays: what it says of differences to the paper, of ranks and of recipes."""

from __future__ import annotations

import numpy as np

from tamiz.paper.microarray import Microarray
from tamiz.paper.microarray_table import TableRow, difference_sentence
from tamiz.paper.recipes import with_recipe
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


def series(values, method="fisher", learner="svm", dataset="colon", recipe=None):
    return TableRow(dataset, method, learner, np.asarray(values, dtype=float), recipe)


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
