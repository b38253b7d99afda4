"""The registry of formats, and every format but text: polars frames, Excel, NPZ and svmlight."""

from __future__ import annotations

import datetime
import decimal
import io
import zipfile

import numpy as np
import polars
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import xlsxwriter
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from tamiz.cli.main import app
from tamiz.tables import (
    Format,
    TableArgumentError,
    TableError,
    TableMemoryError,
    read_table,
    register_format,
    write_columns,
)
from tamiz.tables.formats import FORMATS, output_suffix


def test_files_and_formats_that_are_not_there(tmp_path, write_csv, read):
    there = write_csv("a,b\n1,2\n", "there.csv")
    for path, options, message in (
        (tmp_path / "their.csv", {}, r"There is no file .* There are 'there.csv'"),
        (tmp_path, {}, "is a folder"),
        (write_csv(b"PAR1\x15\x04", "t.dat"), {}, r"Say which with `format`: .* It looks like parquet"),
        (there, {"format": "parqet"}, r"Unknown format 'parqet'. Did you mean 'parquet'\?"),
    ):
        with pytest.raises(TableArgumentError, match=message):
            read(path, **options)
    assert read(write_csv("a,b\n1,2\n", "table.dat"), format="csv").n_rows == 1
    suffixes = [suffix for format in FORMATS.values() for suffix in format.suffixes]
    assert len(suffixes) == len(set(suffixes))


def read_fixed(path, options):
    """Two digits per number, one line per row, names on the first line: a format that nobody else knows."""
    names, *lines = path.read_text().splitlines()
    return polars.DataFrame(
        [[float(line[i : i + 2]) for i in range(0, len(line), 2)] for line in lines], names, orient="row"
    )


@pytest.fixture
def fixed_file(tmp_path, monkeypatch):
    """A file of the toy format, which is registered."""
    monkeypatch.setattr("tamiz.tables.formats.FORMATS", dict(FORMATS))
    register_format(Format("fixed", "fixed width", (".fix",), read_fixed))
    generator = np.random.default_rng(0)
    X = generator.integers(10, 60, size=(40, 4))
    y = np.repeat([10, 20], 20)
    X[:, 2] = 2 * y + X[:, 2] % 10
    lines = ["abcdy"] + ["".join(map(str, [*row, label])) for row, label in zip(X, y)]
    path = tmp_path / "table.fix"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("options", [[], ["--read", "format=fixed"]])
def test_a_toy_format_is_read_and_written_by_the_command(fixed_file, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(
        app, ["select", str(fixed_file), "-t", "y", "-k", "1", "--folds", "2", "--permutations", "0", *options]
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "tamiz-table" / "reduced.csv").read_text().startswith("c,y\n")


ARROW = pa.table(
    {
        "size": pa.array([1.5, None, 3.0]),
        "count": pa.array([1, 2, None], pa.int64()),
        "price": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("2.20")]),
        "old": pa.array([True, False, None]),
        "kind": pa.array(["a", None, "b"]),
        "shade": pa.array(["x", "y", "x"]).dictionary_encode(),
        "when": pa.array([datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 1), None]),
        "many": pa.array([[1], [2], [3]]),
        "void": pa.nulls(3),
        "ill": pa.array([0, 1, 0]),
    }
)


def write_arrow(table, path):
    """Writes a table of pyarrow, so that another library than ours has made the file."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path)
    elif path.suffix == ".ndjson":
        polars.DataFrame(table).write_ndjson(path)
    else:
        with pa.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow"])
def test_types_of_columns(tmp_path, name, read):
    table = read(write_arrow(ARROW, tmp_path / name), target="ill")
    nan = np.nan
    expected = [[1.5, 1, 1.1, 1, 0.5, nan], [nan, 2, nan, 0, 0, nan], [3, nan, 2.2, nan, nan, nan]]
    np.testing.assert_array_equal(table.numbers, np.array(expected, dtype=np.float32))
    assert [table.names[i] for i in table.number_columns] == ["size", "count", "price", "old", "when", "void"]
    assert {table.names[i]: column.values() for i, column in table.texts.items()} == {
        "kind": ["a", None, "b"],
        "shade": ["x", "y", "x"],
    }
    assert [table.names[i] for i in table.left_out] == ["many"]
    assert table.origins == {6: 19723.0}
    np.testing.assert_array_equal(table.target_column, [0, 1, 0])
    with pytest.raises(TableError, match="neither classes nor numbers"):
        read(tmp_path / name, target="when")


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.ndjson"])
def test_reduced_files_keep_types(tmp_path, name, read):
    source = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", "y"], "c": [1.0, None], "y": [0, 1]})
    table = read(write_arrow(source, tmp_path / name), target="y")
    assert output_suffix(table) == (".csv" if name == "t.ndjson" else ".parquet")
    write_columns(table, [2, 0], tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(source.select(["a", "c", "y"]))


def parquet_of(table):
    pq.write_table(table, file := io.BytesIO())
    return file.getvalue()


JUNK = b"this is no such file at all, is it"
BROKEN = [  # ending, content, message
    *((ending, JUNK, "cannot be read as") for ending in ("parquet", "arrow", "ndjson", "npz", "xlsx")),
    *(("xlsx", content, "cannot be read as xlsx") for content in (b"PK\x03\x04abc", b"PK\x05\x06" + bytes(18))),
    ("parquet", parquet_of(ARROW.slice(0, 0)), "no rows"),
    ("parquet", parquet_of(ARROW)[:-40], "cannot be read as parquet"),
]


@pytest.mark.parametrize(("ending", "content", "message"), BROKEN)
def test_files_that_are_something_else_empty_or_cut_off(tmp_path, ending, content, message, read):
    (tmp_path / f"t.{ending}").write_bytes(content)
    with pytest.raises(TableError, match=message):
        read(tmp_path / f"t.{ending}")


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


@pytest.fixture
def write_sheet(tmp_path):
    """Writes rows to an Excel file and gives its path."""

    def write(rows, name="table.xlsx", far=None):
        with xlsxwriter.Workbook(tmp_path / name, {"default_date_format": "yyyy-mm-dd"}) as book:
            sheet = book.add_worksheet()
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
            if far is not None:
                sheet.write(*far, 1)
        return tmp_path / name

    return write


SHEET = [
    ["age", "colour", "when", "old", "ill"],
    [50, "red", datetime.date(2024, 1, 1), True, "yes"],
    [61.5, "blue, dark", datetime.date(2024, 1, 2), False, "no"],
    [None, "red", datetime.date(2024, 1, 3), True, "yes"],
]


def test_cells_of_a_sheet(write_sheet, tmp_path):
    table = read_table(write_sheet(SHEET), target="ill")
    assert table.column_values("age")[:2].tolist() == [50, 61.5]
    assert table.column_values("when").tolist() == [0, 1, 2]
    assert table.column_values("old").tolist() == [1, 0, 1]
    assert table.texts[1].values() == ["red", "blue, dark", "red"]
    assert table.y.tolist() == ["yes", "no", "yes"]
    write_columns(table, [0, 1], tmp_path / "reduced.csv")
    assert (tmp_path / "reduced.csv").read_text() == 'age,colour,ill\n50.0,red,yes\n61.5,"blue, dark",no\n,red,yes\n'


def test_lines_above_empty_rows_and_short_rows(write_sheet):
    rows = [["Table 1: patients"], [], SHEET[0], *SHEET[1:3], [], [70, "red"]]
    table = read_table(write_sheet(rows), skip_rows=2)
    assert table.names == SHEET[0]
    assert table.n_rows == 3
    with pytest.raises(TableError, match="first sheet holds no cells"):
        read_table(write_sheet([]))
    with pytest.raises(TableMemoryError, match="1,048,576 rows x 16,384 columns"):
        read_table(write_sheet(SHEET, far=(1048575, 16383)))


def test_npz(tmp_path, read):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.arange(6.0).reshape(3, 2), y=np.array(["a", "b", "a"]), names=np.array(["one", "two"]))
    table = read(path, need_target=True)
    assert table.names == ["one", "two"]
    assert table.numbers.dtype == np.float32
    assert table.target_column.values() == ["a", "b", "a"]
    assert read(path, ignore=["one"]).number_columns.tolist() == [1]
    with pytest.raises(TableError, match="leave `target` out"):
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
        ({"X": np.ones((2, 2)), "y": np.array([{}, []], dtype=object)}, "cannot be read"),  # nothing is unpickled
    ],
)
def test_broken_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "t.npz", need_target=True)


def set_flag(content, local, central, value):
    """Sets a byte in all headers of a zip file."""
    for sign, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        place = content.find(sign)
        while place >= 0:
            content[place + offset] = value
            place = content.find(sign, place + 4)


def damage(content):
    content[len(content) // 3 : len(content) // 3 + 20] = bytes(20)


@pytest.mark.parametrize(
    "change",
    [lambda c: set_flag(c, 6, 8, 1), lambda c: set_flag(c, 8, 10, 77), damage],
    ids=["encrypted", "packing", "damaged"],
)
def test_members_that_cannot_be_read(tmp_path, change):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(50, 4)), y=np.arange(50)[:, None] % 2)
    assert read_table(path).y[:3].tolist() == ["0", "1", "0"]  # a target of one column
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"t\.npz cannot be read as NPZ: "):
        read_table(path)


@pytest.mark.parametrize("name", ["y", "names"])
def test_target_and_names_count_in_the_memory_budget(tmp_path, name):
    arrays = {"X": np.ones((2, 1)), "y": np.zeros(2), "names": np.array(["a"])}
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        for member, array in arrays.items():
            claimed = (10**13,) if member == name else array.shape  # more than there is on any machine
            header = {"descr": array.dtype.str, "fortran_order": False, "shape": claimed}
            content = io.BytesIO()
            np.lib.format.write_array_header_1_0(content, header)
            archive.writestr(f"{member}.npy", content.getvalue() + array.tobytes())
    with pytest.raises(TableMemoryError, match="needs about"):
        read_table(tmp_path / "t.npz")


def test_columns_of_a_matrix_are_written(tmp_path, read):
    np.savez(tmp_path / "t.npz", X=np.arange(6).reshape(2, 3), y=np.array([0, 1]))
    write_columns(read(tmp_path / "t.npz"), [2, 0], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "x0,x2,y\n0,2,0\n3,5,1\n"
    (tmp_path / "t.svm").write_text("1 1:0.5 3:2 # note\n-1 2:1 3:4\n")
    write_columns(read(tmp_path / "t.svm"), [0, 2], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "1,3,y\n0.5,2.0,1.0\n0.0,4.0,-1.0\n"


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


@pytest.mark.parametrize(("text", "names"), [("1 2:1 # 0:3\n0 1:1\n", ["1", "2"]), ("1\t0:1\n0\t1:1\n", ["0", "1"])])
def test_svmlight_counts_from_0_where_a_column_has_that_number(write_csv, read, text, names):
    assert read(write_csv(text, "t.svm")).names == names


def test_svmlight_columns_without_an_entry_are_zero(write_csv, read):
    table = read(write_csv("1 2:0.5\n0 1:1.5\n", "t.svm"), columns=["2", "9"])
    np.testing.assert_array_equal(table.numbers.toarray(), [[0.5, 0], [0, 0]])
    for text, kind, message in (
        ("hello world\n", TableError, "svmlight"),
        ("1 2147483647:1\n0 1:1\n", TableMemoryError, "columns up to number 2,147,483,647"),
        ("1 1:nan\n0 1:1\n", TableError, "Column '1' holds NaN in data row 1"),
    ):
        with pytest.raises(kind, match=message):
            read_table(write_csv(text, "b.svm"))
