"""Read a table as a user of the library does."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.tables import TableArgumentError, TableError, read_table


def test_columns_rows_and_target_are_ready_for_use(write_csv):
    path = write_csv("a,void,day,late,ill\n1,,2024-01-01,,no\n2,,2024-01-02,7,\n3,,2024-01-03,,yes\n,,2024-01-04,,no\n")
    messages = []
    table = read_table(path, target="ill", report=messages.append)
    assert table.y.tolist() == ["no", "yes", "no"]
    assert table.task == "classification"
    assert table.target.rows.tolist() == [0, 2, 3]
    # The only value of 'late' stood in the row without a target.
    assert [table.names[i] for i in table.number_columns] == ["a"]
    np.testing.assert_array_equal(table.numbers, np.array([[1], [3], [np.nan]], dtype=np.float32))
    assert any(message.startswith("Left out: 1 row(s)") for message in messages)
    assert any("1 missing numbers" in message for message in messages)


def test_without_a_target(write_csv):
    path = write_csv("a,b\n1,2\n3,4\n")
    table = read_table(str(path))
    assert table.task is None
    with pytest.raises(AttributeError, match="without a target"):
        _ = table.y
    with pytest.raises(TableArgumentError, match="`target`"):
        read_table(path, need_target=True)


def test_named_columns_are_all_kept(write_csv):
    table = read_table(write_csv("a,void,c\n1,,2\n3,,4\n"), columns=["c", "void"])
    assert [table.names[i] for i in table.number_columns] == ["void", "c"]


def test_a_first_row_of_numbers_is_reported(write_csv):
    messages = []
    read_table(write_csv("1,2\n3,4\n"), report=messages.append)
    assert messages[0].startswith("Warning: the first row holds only numbers")


def test_errors_are_value_errors(tmp_path):
    with pytest.raises(ValueError, match="There is no file"):
        read_table(tmp_path / "none.csv")
    assert issubclass(TableArgumentError, TableError)
