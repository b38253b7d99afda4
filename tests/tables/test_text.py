"""CSV, TSV and ARFF: every way to write a table, and every way to break one."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import scipy.io.arff
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamiz.tables import TableError, read_table, write_columns

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


AB = (["a", "b"], [[1, 2], [3, 4]])
NAN = float("nan")
CELLS = [  # text, options, names, numbers
    ("a,b\n1,2\n3,4\n", {}, *AB),
    ("a,b\n1,2\n3,4", {}, *AB),  # no line end at the end
    ("a,b\r\n1,2\r\n3,4\r\n", {}, *AB),
    ("\ufeffa,b\n1,2\n\n3,4\n\n", {}, *AB),  # byte-order mark, empty lines
    ("a;b\n1;2\n3;4\n", {}, *AB),
    ("a\tb\n1\t2\n3\t4\n", {}, *AB),
    ("a, b\n 1, 2 \n3 ,4\n", {}, *AB),
    ('"a","b"\n"1","2"\n3,4\n', {}, *AB),
    ("\n\na,b\n1,2\n3,4\n", {}, *AB),
    ("Export of 2024\n\na,b\n1,2\n3,4\n", {"skip_rows": 2}, *AB),
    ("a,b,c\n1,red,\n2.5,,NA\n-3e2,blue,7\n", {}, ["a", "b", "c"], [[1, NAN], [2.5, NAN], [-300, 7]]),
    ('"cell ""size""","größe, cm","two\nlines"\n1,2,3\n', {}, ['cell "size"', "größe, cm", "two\nlines"], [[1, 2, 3]]),
    # A first row of numbers is data, unless only names can be such numbers.
    ("1,2,x\n3,4,y\n5,6,z\n", {}, ["1", "2", "x"], [[3, 4], [5, 6]]),
    ("1,2,x\n3,4,y\n5,6,z\n", {"header": False}, ["column_1", "column_2", "column_3"], [[1, 2], [3, 4], [5, 6]]),
    ("1990,1991\n3,4\n", {"header": True}, ["1990", "1991"], [[3, 4]]),
    ("1,2\n3,4\n5,6\n", {"skip_rows": 1, "header": False}, ["column_1", "column_2"], [[3, 4], [5, 6]]),
    *((text, {}, ["column_1", "column_2"], None) for text in ("1,2\n3,4\n", "5,5\n0.5,1.5\n", "1,2.5\n.5,1.5\n", ",2.5\n,1\n")),
    ("0,1,2\n0.5,1.5,0\n0.25,3.5,1\n", {}, ["0", "1", "2"], [[0.5, 1.5, 0], [0.25, 3.5, 1]]),  # pandas, no names
    (",0,1\n0,0.5,3\n1,0.25,4\n", {}, ["column_1", "0", "1"], [[0.5, 3], [0.25, 4]]),  # pandas with its index
    (",400.5,401\n0,0.5,3\n1,0.25,4\n", {}, ["column_1", "400.5", "401"], [[0.5, 3], [0.25, 4]]),  # wavelengths
    ("7157,672\n0.5,-1.5\n0.25,3.5\n", {}, ["7157", "672"], [[0.5, -1.5], [0.25, 3.5]]),  # numbers of genes
    ('"a" "b"\n"r1" 1.5 2\n"r2" 3 4\n', {}, ["column_1", "a", "b"], [[1.5, 2], [3, 4]]),  # R: the header is one short
    ("a,b\nx,1,2\ny,3,4\n", {}, ["column_1", "a", "b"], [[1, 2], [3, 4]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "names", "numbers"), CELLS)
def test_cells_and_names(write_csv, text, options, names, numbers, read):
    table = read(write_csv(text), **options)
    assert table.names == names
    if numbers is not None:
        np.testing.assert_array_equal(table.numbers, np.array(numbers, dtype=np.float32))
    assert ("row names" in table.left_out.get(0, "")) == (names[0] == "column_1" and names[1] != "column_2")


def test_text_delimiters_and_quotes(write_csv, read, tmp_path):
    table = read(write_csv('a,b\n1,"x, y"\n2,"line\nline"\n3,"say ""hi"""\n4,\n'))
    assert table.texts[1].values() == ["x, y", "line\nline", 'say "hi"', None]
    assert read(write_csv("a;b\n1;2\n", "t.tsv"), delimiter=";").numbers.tolist() == [[1, 2]]
    with pytest.raises(TableError, match="fewer lines than the 9"):
        read(write_csv("a,b\n1,2\n"), skip_rows=9)
    table = read_table(write_csv("a,b\n\uff11\uff12,1\nx,2\nx,3\n"))  # full-width digits are text
    assert table.texts[0].categories == ["x", "\uff11\uff12"]


def test_twenty_thousand_columns(write_csv, read):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(5, 20_000)).astype(np.float32)
    buffer = io.StringIO()
    buffer.write(",".join(f"gène {i}" for i in range(20_000)) + ",kind\n")
    for row, kind in zip(X, "ababa"):
        buffer.write(",".join(repr(float(value)) for value in row) + f",{kind}\n")
    table = read(write_csv(buffer.getvalue()), target="kind")
    np.testing.assert_array_equal(table.numbers, X)
    assert table.target_column.values() == list("ababa")


def test_columns_of_text_are_found_among_many(write_csv, read):
    """Text in the first row, only in a later one, in the last column; gaps and blanks are none."""
    names = [f"c{i}" for i in range(300)]
    rows = [["1"] * 300 for _ in range(4)]
    rows[0][7] = rows[1][7] = "a"
    rows[2][100] = "b"
    rows[3][299] = "1_0x"
    rows[0][50], rows[1][51], rows[0][52], rows[0][53] = "", " NA ", " 2 ", "1e3"
    path = write_csv("\n".join(",".join(row) for row in [names, *rows]))
    table = read(path, target="c0")
    assert sorted(table.texts) == [7, 100, 299]
    assert table.numbers.shape == (4, 296)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n  \n", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2,3,4\n", r"data row 1: 4 cells, but there are 2 columns"),
        (b"a,b\n1,2,\n3,4,\n", r"data row 1: 3 cells, but there are 2 columns"),
        (b"a,b\n1,2\n3\n5,6\n", r"data row 2: 1 cell, "),
        (b'a,b\n"1",2\n3\n', r"data row 2: 1 cell, "),
        (b"a,b,a\n1,2,3\n", r"Two columns are called 'a' \(numbers 1 and 3\)"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "binary file"),
        (b"PAR1abcdef", "looks like Parquet"),
        (b"PK\x03\x04abc", "looks like zip"),
        (b"\xff\xfea\0,\0b", "cannot be read as utf-16"),
        (b"a,b\n1,caf\xe9\n", "not UTF-8"),
        (b"a\n1\n2\n", "one column only"),
    ],
)
def test_broken_files(write_csv, content, message, read):
    with pytest.raises(TableError, match=message):
        read(write_csv(content))


def test_words_for_missing_values(write_csv):
    text = "a,ill,b\n1,none,1\n2,mild,2\n-9,severe,3\nNA,none,4\n5,,5\n2,mild,6\n"
    messages = []
    table = read_table(write_csv(text), target="ill", report=messages.append)
    assert sorted(set(table.y)) == ["mild", "severe"]
    assert any("holds 'none' in 2 rows, taken as missing" in m and "with `na_values`" in m for m in messages)
    table = read_table(write_csv(text), target="ill", na_values=["NA", "-9"])
    assert table.y.tolist() == ["none", "mild", "severe", "none", "mild"]
    np.testing.assert_array_equal(table.numbers[:, 0], [1, 2, np.nan, np.nan, 2])
    table = read_table(write_csv(text), target="ill", na_values=())
    assert table.texts[0].values() == ["1", "2", "-9", "NA", "2"]


def test_written_columns_keep_digits_text_and_order(write_csv, tmp_path, read):
    path = write_csv('a,"b, x",c,kind\n0.12345678901234567,1,"say ""hi""",u\n,2,=1+1,v\n')
    write_columns(read(path, target="kind"), [2, 0], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == 'a,c,kind\n0.12345678901234567,"say ""hi""",u\n,=1+1,v\n'
    for name, text, column, written in (
        ("t.tsv", "a\tb\tc\n1\t2\t3\n", [1], "b\n2\n"),
        ("r.csv", '"a" "b"\n"r1" 1.5 2\n"r2" 3 4\n', [1], "a\n1.5\n3\n"),
        ("t.arff", "@relation r\n@attribute a real\n@attribute b {z}\n@data\n1,'x, y'\n?,z\n", [0, 1], 'a,b\n1,"x, y"\n,z\n'),
    ):  # fmt: skip
        write_columns(read(write_csv(text, name)), column, tmp_path / "out.csv")
        assert (tmp_path / "out.csv").read_text() == written


def test_decimal_commas_of_a_file_are_found(write_csv):
    text = "a;b;y\n-0,064;2;0,5\n2,250;3;1,5\n;4;2,5\n"
    for options in ({}, {"decimal": ","}):
        table = read_table(write_csv(text), target="y", task="regression", **options)
        np.testing.assert_array_equal(table.numbers, np.array([[-0.064, 2], [2.25, 3], [np.nan, 4]], dtype=np.float32))
        assert table.y.tolist() == [0.5, 1.5, 2.5]
    # A column with two groups can only hold thousands.
    assert read_table(write_csv("a;b\n1,500;2\n1,125,000;4\n")).numbers[:, 0].tolist() == [1500, 1125000]


@pytest.mark.parametrize("late", ["high", "NA", "1,5", " 7 ", "12345678901234567890", "1e3"])
@pytest.mark.parametrize("n_late", [1, 8])
def test_cells_that_differ_from_the_first_rows(write_csv, late, n_late):
    """Columns are read again as text where a cell far below is no plain number."""
    rows = [[str(i + j) for j in range(8)] for i in range(40)]
    for j in range(n_late):
        rows[35][j] = late
    text = "\n".join(["\t".join(f"c{j}" for j in range(8)), *("\t".join(row) for row in rows)])
    table = read_table(write_csv(text, "t.tsv"))
    values = {"NA": np.nan, "1,5": 1.5, " 7 ": 7.0, "12345678901234567890": 12345678901234567890.0, "1e3": 1000.0}
    assert table.n_rows == 40
    for j in range(8):
        if j >= n_late:
            assert table.column_values(f"c{j}")[35] == 35 + j
        elif late == "high":
            assert table.texts[j].values()[34:36] == [str(34 + j), "high"]
        else:
            assert table.column_values(f"c{j}")[35] == pytest.approx(values[late], nan_ok=True)


def test_empty_lines_are_no_rows_wherever_they_stand(write_csv, tmp_path):
    text = 'a,b,y\n\n1,"x\n\nx",0\n' + "2,y,1\n" * 5000 + "\n  \n3,z,0\n\n"
    table = read_table(write_csv(text), columns=["a", "b"])
    assert table.n_rows == 5002
    assert table.texts[1].categories == ["x\n\nx", "y", "z"]
    write_columns(table, [0], tmp_path / "out.csv")
    assert len((tmp_path / "out.csv").read_text().split()) == 5003


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(2, 5).flatmap(
        lambda width: st.lists(
            st.lists(
                st.one_of(
                    st.floats(-1e6, 1e6, width=32).map(repr),
                    st.sampled_from(["", "NA", 'a "b"', "x,y", "x\ny"]),
                    st.text(st.characters(blacklist_categories=("Cs", "Cc", "Z")), max_size=6),
                ),
                min_size=width,
                max_size=width,
            ),
            min_size=1,
            max_size=12,
        )
    )
)
def test_cells_agree_with_the_csv_module(tmp_path, rows):
    path = tmp_path / "fuzz.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f"name{i}" for i in range(len(rows[0]))])
        writer.writerows(rows)
    names = [f"name{i}" for i in range(len(rows[0]))]
    table = read_table(path, columns=names, categorical=names, na_values=(), delimiter=",", header=True)
    for i, cells in enumerate(zip(*rows)):
        expected = [cell.lower() if cell.lower() in ("true", "false") else cell for cell in cells]
        found = [cell or "" for cell in table.texts[i].values()]
        assert [cell.removesuffix(".0") for cell in found] == [cell.removesuffix(".0") for cell in expected]


def test_arff_agrees_with_scipy(write_csv, read):
    path = write_csv(ARFF, "table.arff")
    table = read(path)
    expected, _ = scipy.io.arff.loadarff(io.StringIO(ARFF))
    np.testing.assert_array_equal(table.numbers[:, 0], expected["cell size"].astype(np.float32))
    np.testing.assert_array_equal(table.column_values("n"), expected["n"])
    assert table.texts[1].values() == [value.decode() for value in expected["kind"]]
    assert table.column_values("when").tolist() == [0, 1]
    assert [alert.kind for alert in table.alerts] == ["dates"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation a\n@attribute x real\n", "no @data line"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n{0 1}\n", "sparse ARFF"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n% a comment\n\n {0 1}\n", "sparse ARFF"),
        ("@relation a\n@attribute x\n@data\n1\n", "cannot be understood"),
        ("hello\n@data\n", "no part of an ARFF header"),
        ("@relation a\n@data\n1,2\n", r"0 @attribute lines"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n", "no rows"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n1,2\n1,2,3\n", r"data row 2: 3 cells"),
        ("@relation größe\n".encode("latin1"), "not UTF-8"),
    ],
)
def test_broken_arff(write_csv, text, message, read):
    with pytest.raises(TableError, match=message):
        read(write_csv(text, "table.arff"))
