"""Layout of delimited files: delimiter, names and the byte at which the rows begin."""

from __future__ import annotations

import pytest

from tamiz.errors import TableError
from tamiz.tables.delimited import check_several_columns, detect_layout


@pytest.mark.parametrize(
    ("text", "delimiter", "names", "rows"),
    [
        ("a,b\n1,2\n", ",", ["a", "b"], "1,2\n"),
        ("a;b;c\n1;2;3\n", ";", ["a", "b", "c"], "1;2;3\n"),
        ("a b\n1 2\n", " ", ["a", "b"], "1 2\n"),
        ("1\t2\n3\t4\n", "\t", ["column_1", "column_2"], "1\t2\n3\t4\n"),  # numbers like those below are no names
        ("\n7,8\n0.5,1\n", ",", ["7", "8"], "0.5,1\n"),  # whole numbers above decimals are names
    ],
)
def test_delimiter_names_and_begin_of_the_rows(tmp_path, text, delimiter, names, rows):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    layout = detect_layout(path)
    assert (layout.delimiter, layout.names) == (delimiter, names)
    assert path.read_bytes()[layout.data_offset :].decode() == rows


def test_names_of_the_rows_without_a_name_above_them(tmp_path):
    path = tmp_path / "from_r.csv"
    path.write_text("height,width\nfirst,1,2\nsecond,3,4\n")
    layout = detect_layout(path)
    assert len(layout.names) == 3
    assert layout.names[1:] == ["height", "width"]


def test_a_single_column_asks_for_the_delimiter(tmp_path):
    with pytest.raises(TableError, match="one column only"):
        check_several_columns(tmp_path / "table.csv", ["a:b"])
