"""Tables in memory: rows, data frames, numbers that float32 cannot tell apart, memory that is not there."""

from __future__ import annotations

import pickle

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from tamiz._utils.memory import available_memory
from tamiz.tables import (
    TableEncoder,
    TableError,
    TableMemoryError,
    TextColumn,
    as_table,
    read_table,
    write_columns,
)
from tamiz.tables.read import resolve_target
from tamiz.tables.table import pack_numbers

SECONDS = 1_700_000_000 + np.arange(40) * 3


def test_rows_by_number_mask_slice_and_as_scikit_learn_does(table_of):
    target = np.array([0.0, 1.0, 0.0, 1.0])
    table = table_of([[0.0], [1.0], [2.0], [3.0]], [["a", "b", None, "a"]], target)
    table.task, table.y, table.rows = resolve_target(table)
    for key in ([1, 3], np.array([False, True, False, True]), slice(1, 4, 2), (np.array([1, 3]), ...)):
        part = table[key]
        assert len(part) == 2
        assert part.numbers.ravel().tolist() == [1, 3]
        assert part.texts[1].values() == ["b", "a"]
        assert part.y.tolist() == ["1", "1"]
        assert part.rows.tolist() == [1, 3]
    assert table.shape == (4, 2)
    with pytest.raises(TypeError, match="by several rows"):
        table[1]


def test_spellings_are_joined_and_aligned():
    assert TextColumn.from_values([None, None]).codes.tolist() == [-1, -1]
    column = TextColumn.from_values(["F", "f", "F", "m", None])
    assert column.merge_spellings().values() == ["F", "F", "F", "m", None]
    assert column.align(["f", "M"]).values() == ["f", "f", "f", "M", None]
    genotype = TextColumn.from_values(["Aa", "aa", "aA"])
    assert genotype.align(["AA", "Aa", "aa"]).values() == ["Aa", "aa", "aA"]  # what is ambiguous stays


def test_float64_is_for_columns_that_need_it():
    generator = np.random.default_rng(0)
    odd = np.where(np.arange(40) < 39, 1e9 + 1, 1e9 + 2)
    odd[0] = np.nan
    plain = [generator.normal(size=40), generator.normal(2000, 10, 40), np.full(40, 0.1), np.full(40, np.nan)]
    assert pack_numbers(np.column_stack(plain)).dtype == np.float32
    for special in (SECONDS, odd, np.full(40, 1_700_000_001)):
        block = np.column_stack([*plain, special])
        numbers = pack_numbers(block)
        assert numbers.dtype == np.float64
        np.testing.assert_array_equal(numbers, block)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "svm"])
def test_seconds_since_1970_survive_every_format(tmp_path, ending):
    path = tmp_path / f"times.{ending}"
    frame = pandas.DataFrame({"when": SECONDS, "noise": np.linspace(-1, 1, 40), "y": SECONDS % 2})
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    elif ending == "npz":
        np.savez(path, X=frame[["when", "noise"]].to_numpy(), y=frame["y"].to_numpy())
    else:
        path.write_text("".join(f"{y} 1:{when} 2:{noise}\n" for when, noise, y in frame.itertuples(index=False)))
    table = read_table(path, target="y" if ending in ("csv", "parquet") else None)
    matrix = TableEncoder().fit_transform(table)
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    assert np.unique(dense[:, 0]).size == 40


def test_one_row_keeps_the_digits_of_the_fitted_rows():
    frame = pandas.DataFrame({"when": SECONDS.astype(float), "other": np.linspace(0, 1, 40)})
    frame.loc[5, "when"] = np.nan
    encoder = TableEncoder().fit(frame)
    assert encoder.transform(frame[30:31])[0, 0] == SECONDS[30]
    np.testing.assert_array_equal(encoder.transform(frame[30:]), encoder.transform(frame)[30:])
    assert encoder.transform(frame)[5, 0] == np.nanmedian(frame["when"])


def test_the_index_of_a_part_of_a_frame_is_no_column():
    table = as_table(pandas.DataFrame({"a": [1, 2, 3]}).iloc[[2, 0]])
    assert (table.names, table.numbers.ravel().tolist()) == (["a"], [3, 1])
    assert as_table(table) is table


@pytest.mark.parametrize(
    "convert", [lambda f: f, polars.from_pandas, lambda f: polars.from_pandas(f).lazy(), pyarrow.Table.from_pandas]
)
def test_data_frames_are_read_like_files(convert, tmp_path):
    data = {"a": [1.0, None, 3.0], "old": [True, False, True], "fee": ["$1", "$2,000", None], "y": ["u", "v", "u"]}
    data["day"] = pandas.to_datetime(["2024-01-01", "2024-01-03", None])
    table = read_table(convert(pandas.DataFrame(data)), target="y")
    assert table.names == ["a", "old", "fee", "y", "day"]
    expected = [[1, 1, 1, 0], [np.nan, 0, 2000, 2], [3, 1, np.nan, np.nan]]
    np.testing.assert_array_equal(table.numbers, np.array(expected, dtype=np.float32))
    assert table.y.tolist() == ["u", "v", "u"]
    write_columns(table, [0], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "a,y\n1.0,u\n,v\n3.0,u\n"
    assert pickle.loads(pickle.dumps(table)).shape == (3, 4)


@pytest.mark.parametrize(
    ("frame", "kind", "message"),
    [
        ([[1, 2]], TypeError, "A data frame"),
        (
            pandas.DataFrame({"a": [1, "x", {}]}, dtype=object),
            TableError,
            "column 'a' holds values that are neither numbers, text nor dates, or of several types",
        ),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), TableError, "Two columns are called 'a'"),
        (pandas.DataFrame({"a": []}), TableError, "no rows"),
    ],
)
def test_frames_that_cannot_be_used(frame, kind, message):
    with pytest.raises(kind, match=message):
        as_table(frame)


def test_whole_numbers_beyond_float64_are_rounded():
    large = [2**60 + 1, 2**62 + 3, 5]
    for frame in (pyarrow.table({"id": large}), pandas.DataFrame({"id": large})):
        assert as_table(frame).column_values("id").tolist() == [2.0**60, 2.0**62, 5]
    frame = pandas.DataFrame({"id": [2**70, 2**71, 5]}, dtype=object)
    assert as_table(frame).column_values("id").tolist() == [2.0**70, 2.0**71, 5]
    assert TableEncoder().fit_transform(frame).shape == (3, 1)


def test_a_table_larger_than_memory_raises_from_the_header_alone(tmp_path, read):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.ones((2, 2)), y=np.ones(2))
    available = available_memory()
    assert available is not None
    with pytest.raises(TableMemoryError, match=r"needs about .* but only .* are available"):
        read(path, copies=available)


def test_without_the_module_resource(monkeypatch):
    """Windows has none; what else is known still counts."""
    monkeypatch.setattr("tamiz._utils.memory.resource", None)
    available = available_memory()
    assert available is None or available > 0
