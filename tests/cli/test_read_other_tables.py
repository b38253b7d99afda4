"""Parquet, Arrow, NPZ and svmlight; memory that is not there."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from tamiz.cli import read_arrow
from tamiz.cli.errors import EXIT_MEMORY, UserError
from tamiz.cli.memory import MemoryBudget, available_memory
from tamiz.cli.read import ReadOptions, read_table

BUDGET = MemoryBudget(lambda sentence: None)


def read(path, **options):
    options.setdefault("need_target", False)
    return read_table(path, ReadOptions(**options), BUDGET)


@pytest.fixture
def arrow_table():
    return pa.table(
        {
            "size": pa.array([1.5, None, 3.0]),
            "count": pa.array([1, 2, None], pa.int64()),
            "price": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("2.20")]),
            "old": pa.array([True, False, None]),
            "kind": pa.array(["a", None, "b"]),
            "shade": pa.array(["x", "y", "x"]).dictionary_encode(),
            "when": pa.array([datetime.date(2024, 1, 1)] * 3),
            "many": pa.array([[1], [2], [3]]),
            "void": pa.nulls(3),
            "ill": pa.array([0, 1, 0]),
        }
    )


@pytest.mark.parametrize("kind", ["parquet", "feather", "stream"])
def test_arrow_types(tmp_path, arrow_table, kind, monkeypatch):
    monkeypatch.setattr(read_arrow, "_BATCH_CELLS", 20)  # two rows at a time
    path = tmp_path / {"parquet": "t.parquet", "feather": "t.feather", "stream": "t.arrow"}[kind]
    if kind == "parquet":
        pq.write_table(arrow_table, path)
    elif kind == "feather":
        pyarrow.feather.write_feather(arrow_table, path)
    else:
        with pa.ipc.new_stream(str(path), arrow_table.schema) as writer:
            writer.write_table(arrow_table)
    table = read(path, target="ill")
    nan = np.nan
    np.testing.assert_array_equal(
        table.numbers,
        np.array([[1.5, 1, 1.1, 1, nan], [nan, 2, nan, 0, nan], [3, nan, 2.2, nan, nan]], dtype=np.float32),
    )
    assert [table.names[i] for i in table.number_columns] == ["size", "count", "price", "old", "void"]
    assert {table.names[i]: column.values() for i, column in table.texts.items()} == {
        "kind": ["a", None, "b"],
        "shade": ["x", "y", "x"],
    }
    assert [table.names[i] for i in table.left_out] == ["when", "many"]
    np.testing.assert_array_equal(table.target, [0, 1, 0])


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.npz"])
def test_files_that_are_something_else(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"this is no such file at all, is it")
    with pytest.raises(UserError, match="cannot be read as"):
        read(path)


def test_a_parquet_file_that_is_cut_off(tmp_path, arrow_table):
    path = tmp_path / "t.parquet"
    pq.write_table(arrow_table, path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match="cannot be read as parquet"):
        read(path)


def test_a_date_as_target_and_an_empty_table(tmp_path, arrow_table):
    pq.write_table(arrow_table, tmp_path / "t.parquet")
    with pytest.raises(UserError, match="neither classes nor numbers"):
        read(tmp_path / "t.parquet", target="when")
    pq.write_table(arrow_table.slice(0, 0), tmp_path / "e.parquet")
    with pytest.raises(UserError, match="no rows"):
        read(tmp_path / "e.parquet")


def test_npz(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.arange(6.0).reshape(3, 2), y=np.array(["a", "b", "a"]), names=np.array(["one", "two"]))
    table = read(path, need_target=True)
    assert table.names == ["one", "two"]
    assert table.numbers.dtype == np.float32
    assert table.target.values() == ["a", "b", "a"]
    assert read(path, ignore=["one"]).number_columns.tolist() == [1]
    with pytest.raises(UserError, match="leave --target out"):
        read(path, target="one")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((2, 2))}, "must hold arrays X and y"),
        ({"X": np.ones(3), "y": np.ones(3)}, "must be a matrix of numbers"),
        ({"X": np.ones((3, 2)), "y": np.ones(2)}, "y in .* has shape"),
        ({"X": np.ones((3, 2)), "y": np.ones(3), "names": np.array(["a"])}, "names in .* has shape"),
        ({"X": np.array([["a"], ["b"]]), "y": np.ones(2)}, "must be a matrix of numbers"),
        ({"X": np.ones((2, 1)), "y": np.array([1j, 2])}, "neither classes nor numbers"),
        ({"X": np.ones((0, 2)), "y": np.ones(0)}, "no rows"),
    ],
)
def test_broken_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(UserError, match=message):
        read(tmp_path / "t.npz", need_target=True)


def test_npz_with_pickled_objects_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((2, 2)), y=np.array([{}, []], dtype=object))
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "t.npz", need_target=True)


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight(tmp_path, zero_based):
    X = sp.random(20, 30, density=0.3, random_state=0, format="lil", dtype=np.float64)
    X[0, 0] = X[1, 29] = 1.0
    X = X.tocsr()
    y = np.arange(20) % 2
    path = tmp_path / "t.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    table = read(path)
    np.testing.assert_allclose(table.numbers.toarray(), X.toarray(), rtol=1e-6)
    assert table.names[0] == ("0" if zero_based else "1")
    np.testing.assert_array_equal(table.target, y)


def test_svmlight_columns_without_an_entry_are_zero(tmp_path):
    (tmp_path / "t.svm").write_text("1 2:0.5\n0 1:1.5\n")
    table = read(tmp_path / "t.svm", columns=["2", "9"])
    np.testing.assert_array_equal(table.numbers.toarray(), [[0.5, 0], [0, 0]])
    (tmp_path / "b.svm").write_text("hello world\n")
    with pytest.raises(UserError, match="svmlight"):
        read(tmp_path / "b.svm")


def test_a_table_larger_than_memory_is_refused_from_the_header_alone(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.ones((2, 2)), y=np.ones(2))
    available = available_memory()
    assert available is not None
    with pytest.raises(UserError, match=r"needs about .* but only .* are available") as caught:
        read(path, run_factor=available)
    assert caught.value.exit_code == EXIT_MEMORY


def test_large_needs_are_said_before(write_csv):
    said = []
    path = write_csv("a,b\n" + "1,2\n" * 1000)
    read_table(path, ReadOptions(need_target=False), MemoryBudget(said.append, speak_from=1000))
    assert len(said) == 1
    assert "1,000 rows, 2 columns" in said[0]
