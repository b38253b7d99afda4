"""Data sets of the cells: names, and files that are not those of the plan."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.errors import UnknownDatasetError
from tamiz.paper.recipes import checksum, load_checked, nonzero_columns, pick_datasets


def test_checksums_see_values_types_and_shapes():
    X = np.arange(6.0).reshape(2, 3)
    others = [X.T, X.astype(np.float32), X.reshape(3, 2), X + 1, sp.csr_matrix(X)]
    assert len({checksum(X), *map(checksum, others)}) == 6
    assert checksum(X.T.copy().T) == checksum(X)


def test_columns_of_zeros_are_found_in_dense_and_sparse_tables():
    X = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    assert nonzero_columns(X).tolist() == nonzero_columns(sp.csr_matrix(X)).tolist() == [1, 2]


def test_names_are_those_of_the_registry():
    assert pick_datasets(["Colon", "LUNG", "colon"]) == ("colon", "lung")
    with pytest.raises(UnknownDatasetError, match="Did you mean 'colon'"):
        pick_datasets(["colonn"])


@pytest.mark.data
def test_other_files_than_planned_are_an_error(data_home):
    _, found = load_checked("colon", data_home)
    assert load_checked("colon", data_home, found)[1] == found
    with pytest.raises(ValueError, match="not the one that the run was planned with"):
        load_checked("colon", data_home, "0" * 32)
