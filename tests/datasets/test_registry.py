"""The registry is consistent in itself, and agrees with the real files where they are there."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.errors import DatasetError
from tamiz.paper import REGISTRY, load_dataset
from tamiz.paper.download import file_checksum

THE_TWELVE = (
    *("lymphoma", "colon", "leukemia", "leukemia_3571", "lung", "dexter", "madelon", "gina", "gisette"),
    *("mnist", "fashion_mnist", "cifar10", "cifar100"),
)
FILES = [name for name in REGISTRY if name not in ("gina", "gisette", "cifar10", "cifar100")]


@pytest.mark.parametrize("name", REGISTRY)
def test_entry_is_consistent(name):
    entry = REGISTRY[name]
    assert entry.name == name
    assert entry.class_counts is None or sum(entry.class_counts) == entry.shape[0]
    assert entry.target_total is None or entry.task == "regression"
    assert entry.n_train is None or 0 < entry.n_train < entry.shape[0]
    assert len(entry.totals) in (0, 1 if entry.n_train is None else 2)
    assert entry.target_names is None or len(entry.target_names) == entry.n_classes
    assert entry.image_shape is None or np.prod(entry.image_shape) == entry.shape[1]
    assert bool(entry.label) == bool(entry.stands_in_for) == (not entry.sources)
    for file in (file for source in entry.sources for file in source.files):
        assert file.checksum is None or re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", file.checksum)
        for url in file.urls:
            # an address without encryption only where a checksum guards the file
            assert urlsplit(url).scheme == "https" or file.checksum
        assert file.checksum or entry.totals or entry.name == "gisette"


def test_all_sets_of_the_paper_have_a_public_source():
    assert [name for name in REGISTRY if not REGISTRY[name].label] == list(THE_TWELVE)
    assert all(REGISTRY[name].sources for name in THE_TWELVE)


@pytest.fixture
def data_home():
    home = os.environ.get("TAMIZ_DATA_HOME")
    if not home:
        pytest.skip("set TAMIZ_DATA_HOME to the folder with the npz files")
    return Path(home)


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_real_file(data_home, name):
    if not (data_home / f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is not in TAMIZ_DATA_HOME")
    entry, dataset = REGISTRY[name], load_dataset(name, data_home, download=False)
    assert dataset.data.shape == entry.shape
    assert sp.issparse(dataset.data) == entry.sparse == (name == "dexter")
    assert dataset.data.dtype == (np.uint8 if entry.image_shape else np.float32)
    assert dataset.target.dtype == np.int64
    assert np.bincount(dataset.target).tolist() == list(entry.class_counts)
    assert dataset.label == entry.label
    assert (entry.label in dataset.display_name) or not entry.label
    if entry.n_train is None:
        assert dataset.train is dataset.test is None
    else:
        both = np.concatenate([dataset.train, dataset.test])
        assert both.tolist() == list(range(entry.shape[0]))
        assert dataset.train.size == entry.n_train


@pytest.mark.data
def test_checksums_of_two_files(data_home):
    known = {
        "colon": "5a8fb205c1ab5d6fef6b517a98957c5ef430b886f710c99fd53b0a3927ca1dbc",
        "madelon": "3f187247bcef9bdd7c0d0e0614740621c49baf7b2e4ad9797bd4c24151317e90",
    }
    for name, digest in known.items():
        assert file_checksum(data_home / f"{name}.npz") == digest


@pytest.mark.data
def test_a_genuine_set_is_not_replaced_by_the_rebuilt_one(data_home):
    if (data_home / "gina.npz").exists():
        pytest.skip("the genuine GINA is there")
    with pytest.raises(DatasetError, match="you can load 'gina_rebuilt'"):
        load_dataset("gina", data_home, download=False)
