"""Columns by name, number, range and pattern."""

from __future__ import annotations

import pytest

from tamiz.tables import TableArgumentError, TableError


def test_target_by_name_number_and_from_the_end(write_csv, read):
    path = write_csv("a,2,c\n1,2,3\n4,5,6\n7,8,9\n")
    assert read(path, target="c").target_name == "c"
    assert read(path, target="1").target_name == "a"
    assert read(path, target="2").target_name == "2"  # the name wins
    assert read(path, target="-1").target_name == "c"
    assert read(path, target="c").number_columns.tolist() == [0, 1]
    with pytest.raises(TableArgumentError, match=r"no target 'C1'"):
        read(path, target="C1")
    with pytest.raises(TableArgumentError, match="`target`"):
        read(path, need_target=True)


def test_columns_to_ignore_by_name_range_and_pattern(write_csv, read):
    path = write_csv("id,g1,g2,g3,h\n1,2,3,4,5\n")
    assert read(path, ignore=["id", "g*"]).number_columns.tolist() == [4]
    assert read(path, ignore=["2-4"]).number_columns.tolist() == [0, 4]
    with pytest.raises(TableArgumentError, match="No column matches"):
        read(path, ignore=["z*"])
    with pytest.raises(TableArgumentError, match="cannot be ignored"):
        read(path, target="h", ignore=["h"])


def test_only_the_named_columns_are_read(write_csv, read):
    path = write_csv("a,b,c\n1,x,3\n")
    table = read(path, columns=["c", "b"], categorical=["b"])
    assert table.number_columns.tolist() == [2]
    assert list(table.texts) == [1]
    with pytest.raises(TableError, match=r"lacks 2 column\(s\) that the model needs: 'd', 'e'"):
        read(path, columns=["a", "d", "e"])
