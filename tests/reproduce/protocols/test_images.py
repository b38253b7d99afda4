"""The tables of images: plans, cells, equal training for all methods, the table and the pictures of masks."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from tamiz.errors import UnknownNameError
from tamiz.reproduce.cells import Cell
from tamiz.reproduce.execution import execute
from tamiz.reproduce.paper_numbers import (
    IMAGE_SIZES,
    IMAGES,
    IMAGES_DEVIATIONS,
    IMAGES_ONE_NETWORK,
    IMAGES_SECONDS,
)
from tamiz.reproduce.protocols import images_table, images_training
from tamiz.reproduce.protocols.images import Images, load_pictures
from tamiz.reproduce.protocols.images_training import (
    CONFIGURATIONS,
    IMAGE_METHODS,
    ImageSeeds,
    Pictures,
    phase_steps,
    recipe_of,
    run_method,
)
from tamiz.reproduce.sources import load_checked

images = Images()

TINY = replace(
    CONFIGURATIONS["small"],
    channels=[2, 2, 2],
    n_train=120,
    n_test=60,
    keep_ratio=0.2,
    batch_size=8,
    pretraining_epochs=1,
    refinement_epochs=1,
    ramp_steps=40,
)
SEEDS = ImageSeeds(selection=1, judge=2)


@pytest.fixture
def stripes():
    """Two classes of 8 x 8 pictures that differ in one row of pixels, the third; the rest is noise."""
    generator = np.random.default_rng(0)
    y = np.arange(400) % 2
    rows = generator.normal(size=(400, 8, 8)).astype(np.float32)
    rows[:, 2] += 3.0 * y[:, None]
    flat = rows.reshape(400, 64)
    return Pictures(flat[:300], y[:300], flat[300:], y[300:], (1, 8, 8))


def test_images_refuse_what_is_not_in_the_tables():
    with pytest.raises(ValueError, match="fisher is not part of the tables of images"):
        images.make_plan(methods=["fisher"])
    with pytest.raises(ValueError, match="pairs is not part of the tables of images"):
        images.make_plan(methods=["pairs"])
    with pytest.raises(UnknownNameError, match="Did you mean 'small'"):
        images.make_plan(configuration="smal")
    with pytest.raises(ValueError, match="At least one run"):
        images.make_plan(n_runs=0)
    with pytest.raises(ValueError, match="such as 'cpu', 'cuda'"):
        images.make_plan(device="gpu")


@pytest.mark.parametrize("method", ["e2efs-soft", "dfs"])
def test_the_pixels_that_tell_the_classes_apart_are_found(stripes, method):
    pytest.importorskip("torch")
    longer = replace(TINY, channels=[4, 4, 4], batch_size=16, refinement_epochs=4, pretraining_epochs=4, ramp_steps=200)
    result = run_method(method, stripes, replace(longer, learning_rate=0.01), [8], SEEDS)
    # By chance one of eight would lie in the row; those above and below reach the same convolutions.
    assert sum(16 <= pixel < 24 for pixel in result["support"][0]) >= 5
    assert result["accuracy"][0] > 0.9


def test_equal_selections_are_judged_equal_whatever_chose_them(stripes):
    """With all pixels to be kept there is nothing to choose: every method must come out with the same accuracy."""
    pytest.importorskip("torch")
    found = {
        method: run_method(method, stripes, TINY, [64], SEEDS)
        for method in ("all", "random", "sfs", "sfs+dfs", "e2efs", "e2efs-soft")
    }
    assert len({result["accuracy"][0] for result in found.values()}) == 1
    has_own = {method for method, result in found.items() if result["own_accuracy"] is not None}
    assert has_own == {"e2efs", "e2efs-soft"}


def test_another_selection_seed_leaves_the_judge_as_it_is(stripes):
    pytest.importorskip("torch")
    one = run_method("all", stripes, TINY, [8], SEEDS)
    other = run_method("all", stripes, TINY, [8], ImageSeeds(selection=9, judge=2))
    assert other.pop("whole_seconds")[0] > 0 < one.pop("whole_seconds")[0]
    assert other == one
    assert (
        run_method("random", stripes, TINY, [8], ImageSeeds(9, 2))["support"]
        != (run_method("random", stripes, TINY, [8], SEEDS)["support"])
    )


def test_full_is_the_papers_recipe():
    full = CONFIGURATIONS["full"]
    recipe = recipe_of(full)
    assert (full.network, full.channels, full.n_train, full.n_test) == ("wrn16x4", None, 0, 0)
    assert (full.pretraining_epochs, full.refinement_epochs, full.keep_ratio) == (110, 110, 0.9)
    assert images_training.SELECTION_EPOCHS == {"hard": 70, "soft": 70}
    assert images_training.RAMP_EPOCHS == {"hard": 100, "soft": 250}
    assert (recipe.optimizer, recipe.learning_rate, recipe.decay_every, recipe.decay_factor) == ("sgd", 0.1, 30, 5.0)
    assert (recipe.l2, recipe.epochs) == (5e-4, 110)
    # 60,000 rows in batches of 128 are 469 steps.
    assert phase_steps(full, "hard", 60000) == (100 * 469, 70 * 469)


@pytest.mark.filterwarnings("ignore:The mask did not settle")
@pytest.mark.parametrize("method", ["e2efs", "sfs"])
def test_full_builds_and_takes_a_step(stripes, method, monkeypatch):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    few = replace(
        stripes, train=stripes.train[:4], y_train=stripes.y_train[:4], test=stripes.test[:4], y_test=stripes.y_test[:4]
    )
    one_step = replace(CONFIGURATIONS["full"], pretraining_epochs=1, refinement_epochs=1)
    monkeypatch.setattr(images_training, "phase_steps", lambda *_: (1, 1))  # not 70 epochs
    result = run_method(method, few, one_step, [63], SEEDS)
    assert len(set(result["support"][0])) == 63
    assert 0 <= result["accuracy"][0] <= 1


@pytest.mark.data
@pytest.mark.parametrize("method", ["e2efs", "isfs", "sfs+dfs", "random", "all"])
def test_image_cells_keep_exactly_as_many_pixels(data_home, method):
    pytest.importorskip("torch")
    plan = images.make_plan(["mnist"], ["e2efs", "isfs", "sfs+dfs"])
    cell = next(c for c in images.make_cells(plan, data_home) if c.settings["method"] == method)
    cell = Cell(cell.protocol, cell.name, {**cell.settings, "configuration": asdict(TINY), "m_values": [39, 392]})
    outcome = execute(cell, data_home)
    assert "failure" not in outcome, outcome
    result = outcome["result"]
    assert len(result["accuracy"]) == 2
    assert all(0 <= value <= 1 for value in result["accuracy"])
    if method == "all":
        assert result["support"] is None
    else:
        assert [len(set(columns)) for columns in result["support"]] == [39, 392]


@pytest.mark.data
def test_colours_come_first(data_home):
    entry, checksum = load_checked("cifar10_subset_lossless", data_home)
    pictures = load_pictures("cifar10_subset_lossless", data_home, checksum, 0, 0)
    raw = entry.data[entry.train].astype(float) / 255
    first = pictures.train[0].reshape(3, 32, 32)
    expected = (raw[0].reshape(32, 32, 3) - raw.mean()) / raw.std()
    np.testing.assert_allclose(first[2], expected[:, :, 2], atol=1e-4)
    assert pictures.shape == (3, 32, 32)


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


def test_the_papers_image_tables_are_whole():
    assert set(IMAGES) == set(IMAGE_SIZES)
    for rows in IMAGES.values():
        assert set(rows) == set(IMAGE_METHODS)
        assert {len(row) for row in rows.values()} == {4}
    for name, rows in IMAGES_DEVIATIONS.items():
        assert {method: len(row) for method, row in rows.items()} == {"e2efs": 4, "e2efs-soft": 4}
        assert set(IMAGES_SECONDS[name]) == set(IMAGE_METHODS)
    for orders in images_table.PUBLISHED_ORDERS.values():
        for rows in orders.values():
            assert set(rows) <= set(IMAGE_METHODS)
            assert {len(row) for row in rows.values()} == {4}
    # The two printed numbers of the baselines that are those of WRN-16-4.
    shared = {
        (name, method, m)
        for name, rows in IMAGES_ONE_NETWORK.items()
        for method, row in rows.items()
        for m, one, printed in zip(IMAGE_SIZES[name], row, IMAGES[name][method], strict=True)
        if one == printed
    }
    assert shared == {("mnist", "isfs", 78), ("fashion_mnist", "dfs", 392)}
