"""Tables and pages from cells whose scores are known, and the numbers that stand beside them."""

from __future__ import annotations

import gzip
import hashlib
import json
from importlib.resources import files
from itertools import product

import pytest
from matplotlib.figure import Figure

from tamiz.baselines.registry import get_method
from tamiz.paper.figures import ThreeLayer
from tamiz.paper.images import NEW, OWN, Images
from tamiz.paper.microarray import Microarray
from tamiz.paper.protocol import Cell, load_protocol
from tamiz.paper.recipes import recipes_of
from tamiz.paper.runner import CellStore, execute, run_protocol
from tamiz.paper.tables import behind_rows, bold_rows, collect


def made_up(plan, score, is_dead=lambda method, unit: False):
    """Cells of a plan with results made by ``score(method, learner, recipe, split, m)``."""
    cells, results = [], {}
    for dataset, method in product(plan.datasets, plan.methods):
        sizes = list(plan.sizes_of(dataset))
        for recipe in recipes_of(plan) if get_method(method).trains_model else (None,):
            for unit in range(3 * plan.repeats):
                about = {"dataset": dataset, "method": method, "recipe": recipe, "unit": unit, "sizes": sizes}
                cell = Cell(plan.name, f"{about}", about)
                cells.append(cell)
                learners = plan.scored_by(method, recipe)
                results[cell.key] = {
                    "scores": [
                        [name, its, [score(method, name, its, unit, m) for m in sizes]] for name, its in learners
                    ],
                    "dead": [[name, its, [is_dead(method, unit)] * len(sizes)] for name, its in learners],
                    "support": None if method == "all" else [list(range(m)) for m in sizes],
                    "seconds": [0.5 if recipe != "tamiz" else 2.0] * len(sizes),
                    "converged": [unit != 0] * len(sizes),
                    "n_features": 2000,
                }
    return cells, results


def line(markdown, label, number=0):
    """Return the cells of a line of a table."""
    found = [text for text in markdown.splitlines() if text.startswith(f"| {label} |")]
    return [cell.strip() for cell in found[number].strip("|").split("|")][1:]


def test_microarray_with_known_scores():
    plan = Microarray(datasets=["colon", "gina_rebuilt"], methods=["fisher", "e2efs"], repeats=3)
    level = {"e2efs": 0.9, "fisher": 0.6, "all": 0.99, "random": 0.5}
    cells, results = made_up(
        plan,
        lambda method, learner, recipe, split, m: level[method] + 0.001 * ((split * len(method) + len(learner)) % 5),
    )
    lost = next(cell for cell in cells if cell.settings["method"] == "fisher")
    del results[lost.key]
    summary = plan.summarise(cells, results, {lost.name: "ValueError: no"})
    text = summary.markdown
    assert line(text, "E2E-FS, SVM [paper]")[0] == "**0.903 ± 0.00** (0.825)"
    assert line(text, "Fisher, SVM")[0].endswith("↓ (0.828)")
    assert "**" not in line(text, "all features, SVM")[0] + line(text, "Fisher, SVM")[0]
    assert "by the paper's rule" in text
    assert "corrected resampled t test" in text
    assert "GINA (REBUILT)" in text
    assert "ValueError: no" in text
    assert "COLON, Fisher, SVM: 0.602 here, 0.828 published (-0.226); 8 splits here, 60 there; more than" in text
    assert "the authors' result files have 0.820; the SVM chose from the small grid" in text
    assert "not the paper's rows (REBUILT)" in text
    assert line(text, "E2E-FS [paper]")[0] == "40 of 45", "one split of nine ended at the step limit"
    assert line(text, "Fisher", number=-1)[0] == "1.00", "everybody kept the same features"
    assert plan.summarise(cells[::-1], results, {lost.name: "ValueError: no"}).markdown == text, (
        "in the order of the plan"
    )
    # Every M has a column of its own beside the means.
    assert line(text, "Fisher, SVM", number=1) == ["0.602"] * 5


def test_few_splits_make_nothing_bold_and_both_recipes_are_rows():
    plan = Microarray(datasets=["colon"], methods=["fisher", "e2efs"], k=[10], repeats=1, recipe="both")
    cells, results = made_up(
        plan, lambda method, learner, recipe, split, m: 0.7 if recipe == "tamiz" else 0.9 + 0.01 * split
    )
    summary = plan.summarise(cells, results, {})
    assert "**" not in summary.markdown
    assert "No row is bold: 3 splits cannot tell any two rows apart" in summary.markdown
    rows = collect(plan, cells, results)
    assert bold_rows(rows) == behind_rows(rows, 1 / 3) == set()
    assert [row.label for row in rows if row.method == "fisher"] == [
        "Fisher, Naive [paper]",
        "Fisher, Naive [tamiz]",
        "Fisher, SVM",
    ]
    assert [row.mean for row in rows if row.label == "E2E-FS, NaiveF [tamiz]"] == [pytest.approx(0.7)]
    seconds = summary.seconds["COLON"]
    assert (seconds["E2E-FS [paper]"], seconds["E2E-FS [tamiz]"]) == (0.5, 2.0)
    assert "published" not in summary.markdown, "the paper's means are over five numbers of features"


def test_dead_networks_are_counted_and_the_median_is_shown(tmp_path):
    plan = ThreeLayer(datasets=["madelon", "gina_rebuilt"], methods=["fisher", "e2efs"], repeats=2)

    def is_dead(method, unit):
        return method == "e2efs" and unit < 2

    cells, results = made_up(plan, lambda method, name, its, unit, m: 0.5 if is_dead(method, unit) else 0.8, is_dead)
    summary = plan.summarise(cells, results, {})
    text = summary.markdown
    assert line(text, "E2E-FS, anew [paper]", number=1)[0] == "0.700 (0.889)"
    assert line(text, "*E2E-FS, anew [paper]: median*")[0] == "0.800"
    assert line(text, "*E2E-FS, joint [paper]: dead networks of 6 splits*") == ["2"] * 4
    assert "*Fisher" not in text
    assert "MADELON, E2E-FS, anew [paper]: 0.700 here, 0.827 published (-0.127); 6 splits here, 60 there" in text
    assert "8 of 24 networks died; the rate of 0.05" in text
    assert "gamma's own Adam" not in text
    assert "### GINA (REBUILT)" in text
    assert plan.draw(summary, cells, results, tmp_path) == {"figure": str(tmp_path / "figure.png")}


def image_results(plan, accuracy):
    cells, results = [], {}
    for dataset, method, unit in product(plan.datasets, plan.methods, range(plan.runs)):
        sizes = [39, 78, 196, 392]
        about = {"dataset": dataset, "method": method, "recipe": None, "unit": unit, "sizes": sizes}
        cell = Cell("images", f"{about}", about)
        cells.append(cell)
        own = [[OWN, None, [0.9] * 4]] if method.startswith("e2efs") else []
        results[cell.key] = {
            "scores": [[NEW, None, [accuracy[method]] * 4], *own],
            "converged": [method != "e2efs", True, True, True],
            "support": None if method == "all" else [list(range(m)) for m in sizes],
            "seconds": [1.0] * 4,
            "n_features": 784,
            "shape": [1, 28, 28],
            "n_rows": [2000, 660],
        }
    return cells, results


@pytest.mark.parametrize(("runs", "counted", "closed"), [(1, "1 run", "3 of 4"), (3, "3 runs", "9 of 12")])
def test_images_say_rows_and_convergence(tmp_path, monkeypatch, runs, counted, closed):
    plan = Images(datasets=["mnist"], methods=["dfs", "sfs", "e2efs", "e2efs-soft"], epochs=11, runs=runs)
    accuracy = {"dfs": 0.8, "sfs": 0.7, "e2efs": 0.85, "e2efs-soft": 0.9, "random": 0.95, "all": 0.99}
    cells, results = image_results(plan, accuracy)
    summary = plan.summarise(cells, results, {})
    text = summary.markdown
    assert "Training and test images: MNIST: 2,000 and 660." in text
    for words in (f"mean of {counted};", f"No row is bold: {counted} cannot", f"{counted} here, 5 there"):
        assert words in text
    assert f"392 values and {counted}; " in summary.content["scores"][0]["basis"]
    assert (line(text, "E2E-FS")[0], line(text, "E2E-FS-Soft")[0]) == (closed, f"{4 * runs} of {4 * runs}")
    # The paper's rows of E2E-FS are own networks, so its number stands beside those.
    assert line(text, f"E2E-FS, {NEW}")[0] == "0.8500 ± 0.00"
    assert line(text, f"E2E-FS, {OWN}")[0] == "0.9000 ± 0.00 (0.9705)"
    assert "with WRN-16-4 alone the source of the paper has 0.970; the authors' result files have 0.917" in text
    assert "CIFAR-100" in text
    assert "selects for 7 epochs" in text
    assert "- MNIST: DFS 3,960 s" in text
    drawn, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **more: drawn.append(figure) or save(figure, *a, **more))
    files_ = plan.draw(summary, cells, results, tmp_path)
    assert list(files_) == ["masks of mnist"]
    assert (tmp_path / "masks-mnist.png").read_bytes()[:4] == b"\x89PNG"
    assert [axes.get_title() for axes in drawn[0].axes[:5]] == ["39", "78", "196", "392", ""]


# ---- pages


def test_pages_of_several_runs(tmp_path, script):
    """A later call adds its runs to the summary of those that have a page."""
    target = tmp_path / "docs" / "results.md"
    plans = {"surfaces": load_protocol("surfaces")(points=3)}
    for problem in ("xor", "ring"):
        plans[problem] = load_protocol("ground-truth")(problems=[problem], methods=["relieff"], sizes=[8], folds=2)
    for name, plan in plans.items():
        store = CellStore(tmp_path / name / "cells")
        for cell in plan.make_cells():
            store.write(cell, execute(cell)["result"])
        assert run_protocol(plan, tmp_path / name).n_computed == 0
        script("results_page").write_page([tmp_path / name], target)
    text = target.read_text()
    assert "- ground-truth (xor" not in text, "both runs are means over the same"
    assert text.index("[ground-truth](results/ring.md) | ring |") < text.index("results/xor.md")
    assert "[Figure 1: the penalties](results/surfaces.md). Made by `tamiz reproduce surfaces --points 3` on " in text
    assert (tmp_path / "docs" / "images" / "surfaces-figure.png").exists()
    page = (tmp_path / "docs" / "results" / "xor.md").read_text()
    command = "tamiz reproduce ground-truth --problems xor --methods relieff,random --sizes 8 --folds 2"
    assert f"Made by `{command}` on " in page
    assert "## Seconds" in page
    raw = json.loads(gzip.decompress((tmp_path / "docs" / "results" / "xor.json.gz").read_bytes()))
    assert raw["run"]["options"]["sizes"] == [8]
    assert raw["rows"][0]["scores"] == [[1.0], [1.0]]


# ---- published numbers


def test_no_published_number_has_changed():
    """Every number was compared with the paper and the authors' files; a change has to be meant."""
    text = files("tamiz.paper").joinpath("numbers.json").read_bytes()
    assert hashlib.sha256(json.dumps(json.loads(text), sort_keys=True).encode()).hexdigest() == (
        "948a8fe28a0e51729374b3c5b9b5840759f4ee7b01cdb4e1bca075125483a3e8"
    )
