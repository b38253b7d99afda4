"""Tables of the images, their order of methods and the pictures of masks."""

from __future__ import annotations

from dataclasses import replace

from tamiz.paper import images_table
from tamiz.paper.images import Images
from tamiz.paper.numbers import (
    IMAGES,
)
from tamiz.paper.store import Cell

images = Images()


def test_images_summary_and_masks(tmp_path):
    plan = images.make_plan(["mnist", "cifar10_subset_jpeg"], ["dfs", "e2efs"], n_runs=2)
    cells, results = [], {}
    for dataset in plan.datasets:
        shape = [1, 28, 28] if dataset == "mnist" else [3, 32, 32]
        for method in plan.methods:
            for run in range(2):
                settings = {"dataset": dataset, "method": method, "run": run}
                cell = Cell("images", f"{dataset} {method} {run}", settings)
                cells.append(cell)
                support = None if method == "all" else [list(range(m)) for m in images_table.image_sizes_of(dataset)]
                results[cell.key] = {
                    "accuracy": [0.5 + 0.1 * run] * 4,
                    "own_accuracy": [0.7] * 4 if method == "e2efs" else None,
                    "support": support,
                    "seconds": [1.0] * 4,
                    "whole_seconds": [2.0 + 2 * run] * 4,
                    "shape": shape,
                }
    outcome = images.summarise(plan, cells, results, {})
    assert "DFS | **55.00 ± 5.00** (95.73)" in outcome.markdown, "the first of the best is bold"
    assert "E2E-FS | 55.00 ± 5.00 (91.87 ± 3.81)" in outcome.markdown
    assert "E2E-FS, own network | 70.00 ± 0.00 (91.87 ± 3.81)" in outcome.markdown
    assert "everything for 39 values: DFS 3,960 s, SFS 5,940 s" in outcome.markdown
    seconds = {(row["dataset"], row["method"]): row[list(row)[-1]] for row in outcome.timing}
    assert (seconds["mnist", "dfs"], seconds["mnist", "dfs, selection alone"]) == (3.0, 1.0)
    assert "DFS, own network" not in outcome.markdown
    assert "on 4,000 training images for 6 epochs" in outcome.markdown
    assert {row["judge"] for row in outcome.records if row["method"] == "dfs"} == {"new"}
    assert "CIFAR-10 (SUBSET, JPEG)" in outcome.markdown
    assert "Random pixels do best" not in outcome.markdown
    lucky = {
        cell.key: {**results[cell.key], "accuracy": [0.9, 0.5, 0.9, 0.5]}
        for cell in cells
        if cell.settings["method"] == "random"
    }
    assert "Random pixels do best with 39 and 196 values" in images.summarise(plan, cells, results | lucky, {}).markdown
    assert "Differences" not in outcome.markdown, "the small configuration is below the paper's throughout, and says so"
    full = images.summarise(replace(plan, configuration="full"), cells, results, {})
    assert "- MNIST, DFS, 39: 55.00 here, 95.73 published (-40.73)" in full.markdown
    files = images.draw(outcome, cells, results, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["masks-cifar10_subset_jpeg.png", "masks-mnist.png"]
    assert len(files) == 2


def test_the_order_of_the_methods_is_compared_with_each_published_one():
    """With the paper's own numbers as ours, its order agrees wholly, and that of the files as far as they agree."""
    plan = images.make_plan(["mnist"])
    cells = [Cell("images", method, {"dataset": "mnist", "method": method, "run": 0}) for method in plan.methods]
    rows = {method: IMAGES["mnist"].get(method, (50.0, 60.0, 70.0, 80.0)) for method in plan.methods}
    results = {
        cell.key: {
            "accuracy": [value / 100.0 for value in rows[cell.settings["method"]]],
            "own_accuracy": None,
            "support": None,
            "seconds": [1.0] * 4,
            "whole_seconds": [2.0] * 4,
            "shape": [1, 28, 28],
        }
        for cell in cells
    }
    text = images.summarise(plan, cells, results, {}).markdown
    assert "| MNIST, paper, as printed | 1.00 | 1.00 | 1.00 | 1.00 |" in text
    assert "| MNIST, *spread* | 7.3 | 3.0 | 0.2 | 0.3 |" in text
    # By hand, 39 values: ranks of DFS, SFS, iSFS, E2E-FS, Soft are 4 1 5 2 3 in the paper and 1 2 3 4 5 in the files,
    # so the squared differences sum to 9 + 1 + 4 + 4 + 4 = 22, and 1 - 6 * 22 / (5 * 24) = -0.1.
    assert "| MNIST, authors' files | -0.10 |" in text


def test_too_few_methods_have_no_order():
    assert images_table.rank_agreement({"dfs": 1.0, "sfs": 1.0, "isfs": 1.0}, {"dfs": 1, "sfs": 2, "isfs": 3}) is None
    assert images_table.rank_agreement({}, {}) is None
