"""Svmlight: sparse rows, columns called by their numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from tamiz.tables import TableError, TableMemoryError, read_table, write_columns


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight(tmp_path, zero_based, read):
    X = sp.random(20, 30, density=0.3, random_state=0, format="lil", dtype=np.float64)
    X[0, 0] = X[1, 29] = 1.0
    X = X.tocsr()
    y = np.arange(20) % 2
    path = tmp_path / "t.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    table = read(path)
    np.testing.assert_allclose(table.numbers.toarray(), X.toarray(), rtol=1e-6)
    assert table.names[0] == ("0" if zero_based else "1")
    np.testing.assert_array_equal(table.target_column, y)


def test_svmlight_columns_without_an_entry_are_zero(tmp_path, read):
    (tmp_path / "t.svm").write_text("1 2:0.5\n0 1:1.5\n")
    table = read(tmp_path / "t.svm", columns=["2", "9"])
    np.testing.assert_array_equal(table.numbers.toarray(), [[0.5, 0], [0, 0]])
    (tmp_path / "b.svm").write_text("hello world\n")
    with pytest.raises(TableError, match="svmlight"):
        read(tmp_path / "b.svm")


def test_svmlight_keeps_the_numbers_of_the_columns(tmp_path, read):
    (tmp_path / "t.svm").write_text("1 1:0.5 3:2 # note\n-1 2:1 3:4\n")
    write_columns(read(tmp_path / "t.svm"), [2], tmp_path / "out.svm")
    assert (tmp_path / "out.svm").read_text() == "1 3:2\n-1 3:4\n"


def test_a_large_column_number_raises_before_memory_is_taken(tmp_path):
    (tmp_path / "t.svm").write_text("1 2147483647:1\n0 1:1\n")
    with pytest.raises(TableMemoryError, match="columns up to number 2,147,483,647"):
        read_table(tmp_path / "t.svm")


def test_nan_is_called_nan(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:nan\n0 1:1\n")
    with pytest.raises(TableError, match="Column '1' holds NaN in data row 1"):
        read_table(tmp_path / "t.svm")
