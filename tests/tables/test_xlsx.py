"""Excel files."""

from __future__ import annotations

import datetime

import openpyxl
import pytest

from tamiz.tables import TableError, read_table, write_columns


@pytest.fixture
def write_sheet(tmp_path):
    """Writes rows to an Excel file and gives its path."""

    def write(rows, name="table.xlsx"):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


ROWS = [
    ["age", "colour", "when", "old", "ill"],
    [50, "red", datetime.date(2024, 1, 1), True, "yes"],
    [61.5, "blue, dark", datetime.date(2024, 1, 2), False, "no"],
    [None, "red", datetime.date(2024, 1, 3), True, "yes"],
]


def test_types_of_cells(write_sheet):
    table = read_table(write_sheet(ROWS), target="ill")
    assert table.numbers[:2, 0].tolist() == [50, 61.5]
    assert table.texts[1].values() == ["red", "blue, dark", "red"]
    assert table.left_out == {2: "dates"}
    assert table.texts[3].values() == ["true", "false", "true"]
    assert table.y.tolist() == ["yes", "no", "yes"]
    assert table.path.name == "table.xlsx"


def test_lines_above_empty_rows_and_short_rows(write_sheet):
    rows = [["Table 1: patients"], [], ROWS[0], *ROWS[1:3], [], [70, "red"]]
    table = read_table(write_sheet(rows), skip_rows=2)
    assert table.names == ROWS[0]
    assert table.n_rows == 3


def test_the_reduced_table_is_excel_too(write_sheet, tmp_path):
    table = read_table(write_sheet(ROWS), target="ill")
    write_columns(table, [0, 1], tmp_path / "reduced.xlsx")
    again = read_table(tmp_path / "reduced.xlsx", target="ill")
    assert again.names == ["age", "colour", "ill"]
    assert again.texts[1].values() == table.texts[1].values()


@pytest.mark.parametrize("content", [b"PK\x03\x04abc", b"hello", b"PK\x05\x06" + bytes(18)])
def test_damaged_files(write_csv, content):
    with pytest.raises(TableError, match="cannot be read as xlsx"):
        read_table(write_csv(content, "t.xlsx"))


def test_an_empty_sheet(write_sheet):
    with pytest.raises(TableError, match="first sheet holds no cells"):
        read_table(write_sheet([]))
