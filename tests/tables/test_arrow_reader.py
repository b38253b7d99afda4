"""Types of arrow columns, in Parquet files, Arrow files and Arrow streams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from tamiz.tables import MemoryBudget, ReadOptions, TableError, arrow_reader, as_table, read_table, write_columns
from tamiz.tables.arrow_reader import ArrowSource, read_arrow


@pytest.mark.parametrize("kind", ["parquet", "feather", "stream"])
def test_arrow_types(tmp_path, arrow_table, kind, monkeypatch, read):
    monkeypatch.setattr(arrow_reader, "_BATCH_CELLS", 20)  # two rows at a time
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
    np.testing.assert_array_equal(table.target_column, [0, 1, 0])


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.npz"])
def test_files_that_are_something_else(tmp_path, name, read):
    path = tmp_path / name
    path.write_bytes(b"this is no such file at all, is it")
    with pytest.raises(TableError, match="cannot be read as"):
        read(path)


def test_a_date_as_target_and_an_empty_table(tmp_path, arrow_table, read):
    pq.write_table(arrow_table, tmp_path / "t.parquet")
    with pytest.raises(TableError, match="neither classes nor numbers"):
        read(tmp_path / "t.parquet", target="when")
    pq.write_table(arrow_table.slice(0, 0), tmp_path / "e.parquet")
    with pytest.raises(TableError, match="no rows"):
        read(tmp_path / "e.parquet")


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_arrow_keeps_types(tmp_path, name, read):
    source = pa.table({"a": pa.array([1, 2], pa.int8()), "b": ["x", "y"], "c": [1.0, None], "y": [0, 1]})
    if name.endswith("parquet"):
        pq.write_table(source, tmp_path / name)
    else:
        pyarrow.feather.write_feather(source, tmp_path / name)
    write_columns(read(tmp_path / name, target="y"), [2, 0], tmp_path / f"out_{name}")
    found = (
        pq.read_table(tmp_path / f"out_{name}")
        if name.endswith("parquet")
        else pyarrow.feather.read_table(tmp_path / f"out_{name}")
    )
    assert found.equals(source.select(["a", "c", "y"]))


def test_whole_numbers_beyond_float64_are_rounded():
    table = as_table(pa.table({"id": [2**60 + 1, 2**62 + 3, 5], "a": [1.0, 2.0, 3.0]}))
    assert (table.numbers[:, 0] + table.centres[0]).tolist() == [2.0**60, 2.0**62, 5]


@pytest.mark.parametrize("name", ["kind", "ill"])
def test_text_that_is_not_utf8(tmp_path, name):
    broken = pa.StringArray.from_buffers(3, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\x9ab"))
    table = pa.table({"size": [1.0, 2.0, 3.0], name: broken, "other": ["x", "y", "x"]})
    pa.feather.write_feather(table, tmp_path / "t.arrow")
    with pytest.raises(TableError, match=r"is damaged: .*UTF8"):
        read_table(tmp_path / "t.arrow", target="ill" if name == "ill" else "other")


def test_fewer_rows_than_claimed(arrow_table):
    source = ArrowSource(Path("t.parquet"), "parquet", arrow_table.schema, 3, lambda columns, n_rows: iter([]))
    with pytest.raises(TableError, match="it claims 3 rows, but holds 0"):
        read_arrow(source, ReadOptions(), MemoryBudget())


@pytest.mark.parametrize("target", ["word", "other"])
def test_offsets_that_point_outside_of_the_file(tmp_path, target):
    source = pa.table({"size": [1.0, 2.0, 3.0], "word": ["aa", "bb", "aa"], "other": ["x", "y", "x"]})
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, source.schema) as writer:
        writer.write_table(source)
    content = (tmp_path / "t.arrow").read_bytes()
    offsets, wild = (np.array(ends, np.int32).tobytes() for ends in ([0, 2, 4, 6], [0, 2, 2**30, 2**30 + 2]))
    assert content.count(offsets) == 1
    (tmp_path / "t.arrow").write_bytes(content.replace(offsets, wild))
    with pytest.raises(TableError, match=r"t\.arrow (is damaged|cannot be read)"):
        read_table(tmp_path / "t.arrow", target=target)
