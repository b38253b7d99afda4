"""Networks of the images: the same recipe for all methods, and every phase of E2E-FS as long as the paper says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tamiz.torch
from tamiz.paper import images, networks
from tamiz.paper.images import NEW, OWN, Images, run_method
from tamiz.paper.recipes import Parts, load_checked

TINY = Images(depth=10, width=1, epochs=2, batch_size=8)
SEEDS = (1, 2)


@pytest.fixture
def stripes():
    """Two classes of 8 x 8 pictures that differ in one row of pixels, the third; the rest is noise."""
    generator = np.random.default_rng(0)
    y = np.arange(120) % 2
    rows = generator.normal(size=(120, 8, 8)).astype(np.float32)
    rows[:, 2] += 3.0 * y[:, None]
    flat = rows.reshape(120, 64)
    return Parts(flat[:80], y[:80], flat[80:], y[80:], (1, 8, 8))


@pytest.fixture
def trained(monkeypatch):
    """Every training: networks alone (epochs, rows that are seen) and with a mask (variant, lengths, start, record)."""
    alone, masked = [], []
    fit_network, train = networks.fit_network, tamiz.torch.train

    def record_alone(model, problem, recipe, loss, **more):
        alone.append((recipe.epochs, int((problem.X != 0).any(axis=0).sum())))
        return fit_network(model, problem, recipe, loss, **more)

    def record_masked(model, data, loss, **more):
        start = torch.cat([parameter.detach().reshape(-1) for parameter in model[1].parameters()])
        selection = train(model, data, loss, **more)
        masked.append({**more, "mask": model[0], "start": start.clone(), "selection": selection})
        return selection

    monkeypatch.setattr(networks, "fit_network", record_alone)
    monkeypatch.setattr("tamiz.torch.train", record_masked)
    return alone, masked


@pytest.mark.filterwarnings("ignore:The mask did not settle")
@pytest.mark.parametrize(("method", "variant"), [("e2efs", "hard"), ("e2efs-soft", "soft")])
def test_e2efs_is_trained_selected_and_refined_as_the_paper_says(stripes, trained, method, variant):
    result = run_method(TINY, method, stripes, [8, 16], SEEDS)
    alone, masked = trained
    assert alone == [(2, 64), (2, 8), (2, 16)], "on all pixels first, then a new network on each selection"
    phases = TINY.phases(variant, 80)
    for run, m in zip(masked, (8, 16), strict=True):
        assert (run["mask"].variant, run["mask"].n_features_to_select) == (variant, m)
        assert {name: run[name] for name in phases} == phases
        # The refinement waits for the epochs of the selection, even where the mask is closed sooner.
        waited = max(phases["selection_steps"], run["selection"].closed_at)
        assert run["selection"].n_steps == waited + run["refinement_steps"]
        assert run["refinement_steps"] == 2 * 10
        assert run["refinement_rates"] == TINY.training.rates()
    fresh = images.new_network(TINY, stripes, SEEDS[0])
    untrained = torch.cat([parameter.detach().reshape(-1) for parameter in fresh.parameters()])
    assert torch.equal(masked[0]["start"], masked[1]["start"]), "every M starts from the same network"
    assert (masked[0]["start"] - untrained).abs().max() > 0.01, "which was trained on all pixels"
    assert [detail for detail, _, _ in result["scores"]] == [NEW, OWN]
    assert [len(columns) for columns in result["support"]] == [8, 16]
    assert result["converged"] == [bool(run["selection"].converged) for run in masked]
    assert result["n_rows"] == [80, 40]


def test_lengths_are_the_papers():
    full = Images()
    assert (full.depth, full.width, full.epochs, full.images) == (16, 4, 110, 0)
    recipe = full.training
    assert (recipe.optimizer, recipe.learning_rate, recipe.decay_every, recipe.epochs) == ("sgd", 0.1, 30, 110)
    assert (recipe.l2, recipe.l2_over_samples, recipe.momentum, recipe.batch_size) == (5e-4, False, 0.9, 128)
    # 60,000 rows in batches of 128 are 469 steps.
    soft, hard = (full.phases(variant, 60000) for variant in ("soft", "hard"))
    assert soft == {"ramp_steps": 250 * 469, "selection_steps": 70 * 469, "max_steps": 70 * 469}
    assert hard == {"ramp_steps": 100 * 469, "selection_steps": 70 * 469, "max_steps": 110 * 469}
    assert full.mask_learning_rate("soft", 60000) == 0.01
    assert Images(epochs=11).phases("soft", 60000)["selection_steps"] == 7 * 469


@pytest.mark.parametrize("method", ["dfs", "sfs", "isfs", "sfs+dfs", "random", "all"])
def test_baselines_are_judged_by_new_networks_alone(stripes, trained, method):
    result = run_method(TINY, method, stripes, [32, 60], SEEDS)
    alone, masked = trained
    assert masked == []
    judged = [(2, 64)] if method == "all" else [(2, 32), (2, 60)]
    assert alone[-len(judged) :] == judged
    assert {epochs for epochs, _ in alone} == {2}, "they select by networks of the same recipe"
    n_selecting = {"dfs": 1, "sfs": 1, "sfs+dfs": 1, "random": 0, "all": 0}
    assert len(alone) - len(judged) == n_selecting.get(method, len(alone) - len(judged))
    assert [detail for detail, _, _ in result["scores"]] == [NEW]
    assert len(result["scores"][0][2]) == 2


def test_equal_selections_are_judged_equal_whatever_chose_them(stripes):
    """With all pixels to be kept there is nothing to choose: every method must come out with the same accuracy."""
    found = [
        run_method(TINY, method, stripes, [64], SEEDS)["scores"][0][2] for method in ("all", "random", "sfs", "e2efs")
    ]
    assert found == [found[0]] * 4


def test_parts_are_drawn_once_for_all_methods(data_home):
    _, checksum = load_checked("mnist", data_home)
    few = images.load_pictures("mnist", data_home, checksum, 50)
    assert (few.train.shape, few.test.shape, few.shape, few.n_classes) == ((50, 784), (50, 784), (1, 28, 28), 10)
    assert abs(few.train.mean()) < 1e-4
    images.load_pictures.cache_clear()
    np.testing.assert_array_equal(images.load_pictures("mnist", data_home, checksum, 50).train, few.train)
