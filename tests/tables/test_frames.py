"""Data frames as tables."""

from __future__ import annotations

import pandas
import polars
import pytest

from tamiz.tables import TableError, as_table


def test_the_index_of_a_part_of_a_frame_is_no_column():
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    table = as_table(frame.iloc[[2, 0]])
    assert table.names == ["a", "b"]
    assert table.numbers.ravel().tolist() == [3, 1]
    assert as_table(table) is table


def test_lazy_frames_are_collected():
    assert as_table(polars.LazyFrame({"a": [1, 2], "b": ["x", "y"]})).names == ["a", "b"]


def test_frames_that_cannot_be_used():
    with pytest.raises(TypeError, match="A data frame"):
        as_table([[1, 2]])
    with pytest.raises(TableError, match="cannot be read"):
        as_table(pandas.DataFrame({"a": [1, "x", {}]}, dtype=object))
    with pytest.raises(TableError, match="no rows"):
        as_table(pandas.DataFrame({"a": []}))
