"""Columns of no use are left out and named."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.tables import TableError
from tamiz.tables.columns import drop_unusable_columns, report_encoding


def test_useless_columns_are_left_out_and_named(write_csv, read):
    rows = "".join(f"{i},2024-01-{i + 1:02d},{i % 7 + 1}/12/1999,,id{i},{'<1' if i == 3 else i},a\n" for i in range(12))
    table = read(write_csv("x,day,odd day,void,id,level,kind\n" + rows))
    said = []
    drop_unusable_columns(table, 5, said.append)
    assert table.number_columns.tolist() == [0]
    assert list(table.texts) == [6]
    text = "\n".join(said)
    assert "'day', 'odd day' (dates)" in text
    assert "'void' (no values at all)" in text
    assert "'id' (a different text in every row, as identifiers have)" in text
    assert "'level' (numbers mixed with text (such as '<1' in data row 4))" in text


def test_categories_that_are_measurements_are_named(write_csv, read):
    said = []
    table = read(write_csv("a,b\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(9))), categorical=["a"])
    drop_unusable_columns(table, 5, said.append)
    assert "named in `categorical`, but it holds more than 5 different numbers" in said[0]


def test_a_table_without_any_column_left_raises(write_csv, read):
    with pytest.raises(TableError, match="no column left"):
        drop_unusable_columns(read(write_csv("a,b\nNA,\n,NA\n")), 5, lambda sentence: None)


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e300"])
def test_infinities_raise_with_the_name_of_the_column(write_csv, cell, read):
    with pytest.raises(TableError, match=r"Column 'b' holds an infinity .* in data row 2"):
        drop_unusable_columns(read(write_csv(f"a,b\n1,2\n3,{cell}\n")), 5, lambda sentence: None)


def test_encoding_and_imputing_are_reported(table_of):
    said = []
    report_encoding(table_of([[1.0, np.nan], [2.0, 3.0]], [["a", "b"]]), said.append)
    assert any("'t0'" in sentence and "one-hot" in sentence for sentence in said)
    assert any("1 missing numbers in 1 column(s)" in sentence for sentence in said)
