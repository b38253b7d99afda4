"""CSV, TSV and ARFF: every way to write a table, and every way to break one."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io.arff
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamiz.cli import delimited
from tamiz.cli.delimited import pieces, sniff
from tamiz.cli.errors import EXIT_USAGE, UserError
from tamiz.cli.memory import MemoryBudget
from tamiz.cli.read import ReadOptions, read_table

BUDGET = MemoryBudget(lambda sentence: None)


def read(path: Path, **options):
    options.setdefault("need_target", False)
    return read_table(path, ReadOptions(**options), BUDGET)


def test_numbers_text_and_gaps(write_csv):
    table = read(write_csv("a,b,c\n1,red,\n2.5,,NA\n-3e2,blue,7\n"))
    assert table.names == ["a", "b", "c"]
    np.testing.assert_array_equal(table.numbers, np.array([[1, np.nan], [2.5, np.nan], [-300, 7]], dtype=np.float32))
    assert table.numbers.dtype == np.float32
    assert table.number_columns.tolist() == [0, 2]
    assert table.texts[1].values() == ["red", None, "blue"]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\n1,2\n3,4",  # no line end at the end
        "a,b\r\n1,2\r\n3,4\r\n",
        "\ufeffa,b\n1,2\n\n3,4\n\n",  # byte-order mark, empty lines
        "a;b\n1;2\n3;4\n",
        "a\tb\n1\t2\n3\t4\n",
        "a, b\n 1, 2 \n3 ,4\n",
        '"a","b"\n"1","2"\n3,4\n',
        "\n\na,b\n1,2\n3,4\n",
    ],
)
def test_dialects(write_csv, text):
    table = read(write_csv(text))
    assert table.names == ["a", "b"]
    np.testing.assert_array_equal(table.numbers, [[1, 2], [3, 4]])


def test_a_first_row_of_numbers_is_data(write_csv):
    path = write_csv("1,2,x\n3,4,y\n5,6,z\n")
    assert read(path).n_rows == 2  # 'x' makes it a header
    table = read(write_csv("1,2\n3,4\n5,6\n", "bare.csv"))
    assert table.n_rows == 3
    assert table.names == ["column_1", "column_2"]
    assert read(path, header=False).n_rows == 3
    assert read(write_csv("1990,1991\n3,4\n", "years.csv"), header=True).names == ["1990", "1991"]


def test_names_with_spaces_quotes_newlines_and_unicode(write_csv):
    table = read(write_csv('"cell ""size""","größe, cm","two\nlines",<script>\n1,2,3,4\n'))
    assert table.names == ['cell "size"', "größe, cm", "two\nlines", "<script>"]
    np.testing.assert_array_equal(table.numbers, [[1, 2, 3, 4]])


def test_quoted_cells_with_delimiters_and_newlines(write_csv):
    table = read(write_csv('a,b\n1,"x, y"\n2,"line\nline"\n3,"say ""hi"""\n'))
    assert table.texts[1].values() == ["x, y", "line\nline", 'say "hi"']


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(2, 5).flatmap(
        lambda width: st.lists(
            st.lists(
                st.one_of(
                    st.floats(-1e6, 1e6, width=32).map(repr),
                    st.sampled_from(["", "NA"]),
                    st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=6),
                    st.sampled_from(['a "b"', "x,y", "x\ny"]),
                ),
                min_size=width,
                max_size=width,
            ),
            min_size=1,
            max_size=12,
        )
    ),
    st.integers(8, 200),
)
def test_cells_agree_with_the_csv_module_whatever_the_pieces(tmp_path, rows, piece_bytes):
    path = tmp_path / "fuzz.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f"name{i}" for i in range(len(rows[0]))])
        writer.writerows(rows)
    found = []
    for cells in pieces(path, sniff(path, delimiter=","), piece_bytes):
        flat = cells.flat().to_pylist()
        found += [flat[i * cells.n_columns : (i + 1) * cells.n_columns] for i in range(cells.n_rows)]
    with open(path, newline="", encoding="utf-8") as file:
        expected = [[cell or None for cell in row] for row in list(csv.reader(file))[1:] if row]
    assert found == expected


def test_text_that_appears_late_makes_the_whole_column_text(write_csv, monkeypatch):
    monkeypatch.setattr("tamiz.cli.read_delimited._SAMPLE_BYTES", 64)
    monkeypatch.setattr(delimited.pieces, "__defaults__", (256,))
    rows = [f"{i},{i * 2},{i * 3}" for i in range(200)] + ["1,high,2"] + [f"{i},5,6" for i in range(50)]
    table = read(write_csv("a,b,c\n" + "\n".join(rows) + "\n"))
    assert table.number_columns.tolist() == [0, 2]
    assert table.numbers.shape == (251, 2)
    assert table.texts[1].values()[198:202] == ["396", "398", "high", "5"]
    np.testing.assert_array_equal(table.numbers[198:202], [[198, 594], [199, 597], [1, 2], [0, 6]])


def test_twenty_thousand_columns(write_csv):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(5, 20_000)).astype(np.float32)
    buffer = io.StringIO()
    buffer.write(",".join(f"gène {i}" for i in range(20_000)) + ",kind\n")
    for row, kind in zip(X, "ababa"):
        buffer.write(",".join(repr(float(value)) for value in row) + f",{kind}\n")
    table = read(write_csv(buffer.getvalue()), target="kind")
    np.testing.assert_array_equal(table.numbers, X)
    assert table.target.values() == list("ababa")


def test_columns_of_text_are_found_among_many(write_csv):
    """Text in the first row, only in a later one, in the last column; gaps and blanks are none."""
    names = [f"c{i}" for i in range(300)]
    rows = [["1"] * 300 for _ in range(4)]
    rows[0][7] = rows[1][7] = "a"
    rows[2][100] = "b"
    rows[3][299] = "1_0x"
    rows[0][50], rows[1][51], rows[0][52], rows[0][53] = "", " NA ", " 2 ", "1e3"
    path = write_csv("\n".join(",".join(row) for row in [names, *rows]))
    table = read_table(path, ReadOptions(target="c0"), MemoryBudget(print))
    assert sorted(table.texts) == [7, 100, 299]
    assert table.numbers.shape == (4, 296)


def test_row_names_of_r_and_pandas_are_left_out(write_csv):
    table = read(write_csv(",a,b\n0,1,2\n1,3,4\n"))
    assert table.number_columns.tolist() == [1, 2]
    assert "row names" in table.left_out[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n  \n", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2,3\n", r"data row 1: 3 cell\(s\), but there are 2 columns"),
        (b"a,b\n1,2\n3\n5,6\n", r"data row 2: 1 cell\(s\)"),
        (b'a,b\n"1",2\n3\n', r"data row 2: 1 cell\(s\)"),
        (b"a,b,a\n1,2,3\n", r"Two columns are called 'a' \(numbers 1 and 3\)"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "binary file"),
        (b"PAR1abcdef", "looks like Parquet"),
        (b"PK\x03\x04abc", "looks like zip"),
        (b"\xff\xfea\0,\0", "UTF-16"),
        (b"a,b\n1,caf\xe9\n", "not UTF-8"),
        (b"a\n1\n2\n", "one column only"),
    ],
)
def test_broken_files(write_csv, content, message):
    with pytest.raises(UserError, match=message):
        read(write_csv(content))


def test_missing_file_folder_and_unknown_ending(tmp_path, write_csv):
    write_csv("a,b\n1,2\n", "there.csv")
    with pytest.raises(UserError, match=r"There is no file .* There are 'there.csv'") as caught:
        read(tmp_path / "their.csv")
    assert caught.value.exit_code == EXIT_USAGE
    with pytest.raises(UserError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(UserError, match="--format"):
        read(write_csv("a,b\n1,2\n", "table.dat"))
    assert read(tmp_path / "table.dat", format="csv").n_rows == 1


def test_target_by_name_number_and_from_the_end(write_csv):
    path = write_csv("a,2,c\n1,2,3\n4,5,6\n7,8,9\n")
    assert read(path, target="c").target_name == "c"
    assert read(path, target="1").target_name == "a"
    assert read(path, target="2").target_name == "2"  # the name wins
    assert read(path, target="-1").target_name == "c"
    assert read(path, target="c").number_columns.tolist() == [0, 1]
    with pytest.raises(UserError, match=r"no target 'C1'"):
        read(path, target="C1")
    with pytest.raises(UserError, match="--target"):
        read(path, need_target=True)


def test_columns_to_ignore_by_name_range_and_pattern(write_csv):
    path = write_csv("id,g1,g2,g3,h\n1,2,3,4,5\n")
    assert read(path, ignore=["id", "g*"]).number_columns.tolist() == [4]
    assert read(path, ignore=["2-4"]).number_columns.tolist() == [0, 4]
    with pytest.raises(UserError, match="No column matches"):
        read(path, ignore=["z*"])
    with pytest.raises(UserError, match="cannot be ignored"):
        read(path, target="h", ignore=["h"])


def test_only_the_named_columns_are_read(write_csv):
    path = write_csv("a,b,c\n1,x,3\n")
    table = read(path, columns=["c", "b"], categorical=["b"])
    assert table.number_columns.tolist() == [2]
    assert list(table.texts) == [1]
    with pytest.raises(UserError, match=r"lacks 2 column\(s\) that the model needs: 'd', 'e'"):
        read(path, columns=["a", "d", "e"])


ARFF = """% a comment
@RELATION 'a test'

@ATTRIBUTE 'cell size' REAL
@attribute kind {'big one', small}
@ATTRIBUTE when DATE "yyyy-MM-dd"
@attribute n integer
@DATA
1.5,'big one','2024-01-01',3
% another comment
?,small,'2024-01-02',4
"""


def test_arff_agrees_with_scipy(write_csv):
    path = write_csv(ARFF, "table.arff")
    table = read(path)
    expected, _ = scipy.io.arff.loadarff(io.StringIO(ARFF))
    np.testing.assert_array_equal(table.numbers[:, 0], expected["cell size"].astype(np.float32))
    np.testing.assert_array_equal(table.numbers[:, 1], expected["n"])
    assert table.texts[1].values() == [value.decode() for value in expected["kind"]]
    assert table.left_out == {2: "dates"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation a\n@attribute x real\n", "no @data line"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n{0 1}\n", "sparse ARFF"),
        ("@relation a\n@attribute x\n@data\n1\n", "cannot be understood"),
        ("hello\n@data\n", "no part of an ARFF header"),
        ("@relation a\n@data\n1,2\n", "no @attribute line"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n", "no rows"),
    ],
)
def test_broken_arff(write_csv, text, message):
    with pytest.raises(UserError, match=message):
        read(write_csv(text, "table.arff"))
