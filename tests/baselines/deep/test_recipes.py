"""The recipes against the sentences of the paper."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from tamiz.paper import deep_training as recipes


def test_naive_recipe_is_the_papers():
    naive = recipes.NAIVE
    assert (naive.optimizer, naive.loss) == ("adam", "squared_hinge")
    assert naive.epochs == 150
    rates = [naive.learning_rate_at(epoch) for epoch in range(150)]
    assert rates[:50] == [1e-3] * 50
    assert rates[50:100] == pytest.approx([2e-4] * 50)
    assert rates[100:] == pytest.approx([4e-5] * 50)
    assert naive.l2_for(40) == 2.5


@pytest.mark.parametrize(("n_samples", "expected"), [(2, 2), (41, 2), (100, 2), (150, 3), (7000, 140)])
def test_batch_size_is_a_fiftieth_of_the_rows(n_samples, expected):
    assert recipes.NAIVE.batch_size_for(n_samples) == expected


def test_image_recipe_is_the_papers():
    wide = recipes.recipe_for("wrn16x4")
    assert (wide.optimizer, wide.loss, wide.epochs) == ("sgd", "softmax", 110)
    rates = [wide.learning_rate_at(epoch) for epoch in (0, 29, 30, 59, 60, 89, 90, 109)]
    assert rates == pytest.approx([0.1, 0.1, 0.02, 0.02, 0.004, 0.004, 0.0008, 0.0008])
    assert wide.l2_for(50_000) == 5e-4
    assert wide.batch_size_for(50_000) == 128


def test_every_other_network_is_trained_like_the_naive_one():
    for network in ("linear", "mlp", lambda n_inputs, n_outputs: None):
        assert recipes.recipe_for(network) is recipes.NAIVE


def test_a_recipe_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipes.NAIVE.l2 = 3.0


@pytest.mark.parametrize("name", ["epochs", "batch_size"])
def test_bad_lengths(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        dataclasses.replace(recipes.NAIVE, **{name: 0})


def test_shorter_runs_keep_the_shape_of_the_schedule():
    short = recipes.NAIVE.with_epochs(15)
    assert [short.learning_rate_at(epoch) for epoch in (4, 5, 10, 14)] == pytest.approx([1e-3, 2e-4, 4e-5, 4e-5])
    assert recipes.NAIVE.with_epochs(1).learning_rate_at(0) == 1e-3


def test_recipes_and_selectors_load_no_torch():
    code = (
        "import sys; from tamiz.paper.deep import recipes, selector; recipes.recipe_for('linear');"
        "from tamiz.paper.deep import DFS; DFS(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
