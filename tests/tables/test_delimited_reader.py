"""Text among numbers: found early, late, and with the right rows."""

from __future__ import annotations

import numpy as np

from tamiz.tables import delimited_blocks


def test_text_that_appears_late_makes_the_whole_column_text(write_csv, monkeypatch, read):
    monkeypatch.setattr("tamiz.tables.delimited_reader._SAMPLE_BYTES", 64)
    monkeypatch.setattr(delimited_blocks.iterate_blocks, "__defaults__", (256,))
    rows = [f"{i},{i * 2},{i * 3}" for i in range(200)] + ["1,high,2"] + [f"{i},5,6" for i in range(50)]
    table = read(write_csv("a,b,c\n" + "\n".join(rows) + "\n"))
    assert table.number_columns.tolist() == [0, 2]
    assert table.numbers.shape == (251, 2)
    assert table.texts[1].values()[198:202] == ["396", "398", "high", "5"]
    np.testing.assert_array_equal(table.numbers[198:202], [[198, 594], [199, 597], [1, 2], [0, 6]])
