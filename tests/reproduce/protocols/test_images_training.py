"""Training of the networks of the images: the same for all methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tamiz.paper import images_training
from tamiz.paper.images_training import (
    CONFIGURATIONS,
    ImageSeeds,
    Pictures,
    phase_steps,
    recipe_of,
    run_method,
)

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
