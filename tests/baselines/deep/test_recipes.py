"""The recipes against the sentences of the paper."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from tamiz.networks import recipes


def test_naive_recipe_is_the_papers():
    naive = recipes.NAIVE
    assert (naive.optimizer, naive.loss, naive.class_weight) == ("adam", "squared_hinge", "balanced")
    assert naive.refinement_epochs == 150
    rates = [naive.learning_rate_at(epoch) for epoch in range(150)]
    assert rates[:50] == [1e-3] * 50
    assert rates[50:100] == pytest.approx([2e-4] * 50)
    assert rates[100:] == pytest.approx([4e-5] * 50)
    assert naive.warmup_epochs == 5
    assert dict(naive.selection_epochs) == {"hard": 300, "soft": 200}
    assert dict(naive.ramp_epochs) == {"hard": 300, "soft": 250}
    assert naive.selection_learning_rate == 1e-3
    assert naive.l2_for(40) == 2.5


@pytest.mark.parametrize(("n_samples", "expected"), [(2, 2), (41, 2), (100, 2), (150, 3), (7000, 140)])
def test_batch_size_is_a_fiftieth_of_the_rows(n_samples, expected):
    assert recipes.NAIVE.batch_size_for(n_samples) == expected


def test_three_layer_recipe_differs_in_the_rate_of_the_selection_only():
    assert recipes.THREE_LAYER.selection_learning_rate == 0.05
    changed = dataclasses.replace(recipes.THREE_LAYER, selection_learning_rate=1e-3)
    assert changed == recipes.NAIVE


def test_image_recipe_is_the_papers():
    wide = recipes.WRN16X4
    assert (wide.optimizer, wide.loss) == ("sgd", "softmax")
    assert (wide.pretraining_epochs, wide.selection_epochs["soft"], wide.refinement_epochs) == (110, 70, 110)
    assert dict(wide.ramp_epochs) == {"hard": 100, "soft": 250}
    rates = [wide.learning_rate_at(epoch) for epoch in (0, 29, 30, 59, 60, 89, 90, 109)]
    assert rates == pytest.approx([0.1, 0.1, 0.02, 0.02, 0.004, 0.004, 0.0008, 0.0008])
    assert wide.l2_for(50_000) == 5e-4
    assert wide.batch_size_for(50_000) == 128


def test_a_recipe_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipes.NAIVE.l2 = 3.0
    with pytest.raises(TypeError):
        recipes.NAIVE.ramp_epochs["hard"] = 3


def test_shorter_runs_keep_the_shape_of_the_schedule():
    short = recipes.NAIVE.with_epochs(15)
    assert [short.learning_rate_at(epoch) for epoch in (4, 5, 10, 14)] == pytest.approx([1e-3, 2e-4, 4e-5, 4e-5])
    assert recipes.NAIVE.with_epochs(1).learning_rate_at(0) == 1e-3


def test_names_and_recipes_load_no_torch():
    code = (
        "import sys, tamiz.networks as n; n.available(); n.recipe('naive'); import tamiz.baselines._network;"
        "from tamiz.baselines.dfs import DFS; DFS(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
