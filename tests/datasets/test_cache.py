"""The data home: where it is, what is written to it and read back."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.errors import DatasetError
from tamiz.paper.dataset_registry import DatasetEntry, find_entry
from tamiz.paper.datasets import cache_path, find_data_home, prepare_folder, read_cached, verify_arrays, write_cached
from tamiz.paper.parsers import DatasetArrays

X = np.arange(54).reshape(6, 9)
Y = np.array([0, 1, 0, 1, 1, 0])
NUMBERS = np.array([0.5, -1.25, 3.0, 2.0, 0.0, 7.5])
TOY = DatasetEntry("toy", "TOY", (6, 9), (3, 3), "nobody", n_train=4, totals=(float(X[:4].sum()), float(X[4:].sum())))
REGRESSION = DatasetEntry("dose", "DOSE", (6, 9), None, "nobody", target_total=14.25)


def test_tables_of_all_kinds_survive_the_data_home(tmp_path):
    names = np.array([f"gene {j}" for j in range(9)])
    sparse = DatasetArrays(sp.csr_matrix(X, dtype=np.float32), Y, 4, names)
    write_cached(sparse, replace(TOY, sparse=True), tmp_path)
    back = read_cached(replace(TOY, sparse=True), tmp_path)
    assert (back.data != sparse.data).nnz == 0
    assert back.feature_names.tolist() == names.tolist()
    image = replace(TOY, image_shape=(3, 3, 1))
    write_cached(DatasetArrays(X.astype(np.uint8), Y, 4), image, tmp_path)
    back = read_cached(image, tmp_path)
    assert back.data.dtype == np.uint8
    assert back.n_train == 4


def test_data_home_order(monkeypatch, tmp_path):
    for variable in ("TAMIZ_DATA_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_data_home() == tmp_path / ".cache" / "tamiz"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert find_data_home() == tmp_path / "xdg" / "tamiz"
    monkeypatch.setenv("TAMIZ_DATA_HOME", str(tmp_path / "data"))
    assert find_data_home() == tmp_path / "data"
    assert find_data_home("~/here") == tmp_path / "here"


def test_cache_path_names_the_npz(tmp_path):
    assert cache_path(find_entry("Fashion MNIST"), tmp_path).name == "fashion_mnist.npz"


def test_numbers_as_target_survive_the_data_home(tmp_path):
    write_cached(DatasetArrays(X.astype(np.float32), NUMBERS), REGRESSION, tmp_path)
    back = read_cached(REGRESSION, tmp_path)
    assert back.target.dtype == np.float64
    assert back.target.tolist() == NUMBERS.tolist()


@pytest.mark.parametrize(
    ("arrays", "entry", "message"),
    [
        (DatasetArrays(X, Y, 3), TOY, "3 training rows, expected 4"),
        (DatasetArrays(X, Y[:5], 4), TOY, "5 target values for 6 rows"),
        (DatasetArrays(X, 1 - Y * 2, 4), TOY, r"classes have \[3, 3\] rows"),
        (DatasetArrays(X, Y, 4, np.array(["a"])), TOY, "1 names for 9 columns"),
        (DatasetArrays(X, NUMBERS + 1), REGRESSION, r"absolute target values sum to .*, expected 14\.25"),
        (DatasetArrays(X, np.where(NUMBERS == 0, np.nan, NUMBERS)), REGRESSION, "target values hold NaN or infinity"),
        (DatasetArrays(X, NUMBERS.reshape(6, 1)), REGRESSION, "6 target values for 6 rows"),
    ],
)
def test_arrays_that_are_not_the_registered_ones(arrays, entry, message):
    with pytest.raises(DatasetError, match=message):
        verify_arrays(arrays, entry)


def test_a_failed_write_keeps_the_old_file(tmp_path):
    write_cached(DatasetArrays(X.astype(np.float32), Y, 4), TOY, tmp_path)
    before = cache_path(TOY, tmp_path).read_bytes()

    class Broken:
        shape = X.shape

        def __array__(self, *arguments, **keywords):
            raise RuntimeError("stopped in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write_cached(DatasetArrays(Broken(), Y), replace(TOY, n_train=None), tmp_path)
    assert cache_path(TOY, tmp_path).read_bytes() == before
    assert os.listdir(tmp_path) == ["toy.npz"]


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(DatasetError, match=r"Cannot write the dataset into .*home.*TAMIZ_DATA_HOME"):
        prepare_folder(tmp_path / "home")
