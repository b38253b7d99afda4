"""Tables in memory: rows can be taken as from an array."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.tables import TextColumn
from tamiz.tables.target import resolve_target


def test_rows_by_number_mask_slice_and_as_scikit_learn_does(table_of):
    target = np.array([0.0, 1.0, 0.0, 1.0])
    table = table_of([[0.0], [1.0], [2.0], [3.0]], [["a", "b", None, "a"]], target)
    table.target = resolve_target(table)
    for key in ([1, 3], np.array([False, True, False, True]), slice(1, 4, 2), (np.array([1, 3]), ...)):
        part = table[key]
        assert len(part) == 2
        assert part.numbers.ravel().tolist() == [1, 3]
        assert part.texts[1].values() == ["b", "a"]
        assert part.y.tolist() == ["1", "1"]
        assert part.target.rows.tolist() == [1, 3]
    assert table.shape == (4, 2)
    with pytest.raises(TypeError, match="by several rows"):
        table[1]


def test_codes_of_text_do_not_depend_on_the_order_of_the_rows():
    assert TextColumn.from_values(["b", "a"]).categories == TextColumn.from_values(["a", "b"]).categories == ["a", "b"]
    assert TextColumn.from_values([None, None]).codes.tolist() == [-1, -1]
