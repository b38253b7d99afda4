"""The tables of images: plans, cells, equal training for all methods, the table and the pictures of masks."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from tamiz.errors import UnknownNameError
from tamiz.paper.images import Images, load_pictures
from tamiz.paper.images_training import (
    CONFIGURATIONS,
)
from tamiz.paper.recipes import load_checked
from tamiz.paper.runner import execute
from tamiz.paper.store import Cell

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
