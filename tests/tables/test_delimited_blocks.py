"""Blocks of cells: the same as Python's csv module gives, wherever the file is cut."""

from __future__ import annotations

import csv

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamiz.tables.delimited import detect_layout
from tamiz.tables.delimited_blocks import iterate_blocks


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
def test_cells_agree_with_the_csv_module_whatever_the_blocks(tmp_path, rows, block_bytes):
    path = tmp_path / "fuzz.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f"name{i}" for i in range(len(rows[0]))])
        writer.writerows(rows)
    found = []
    for cells in iterate_blocks(path, detect_layout(path, delimiter=","), block_bytes):
        flat = cells.flat().to_pylist()
        found += [flat[i * cells.n_columns : (i + 1) * cells.n_columns] for i in range(cells.n_rows)]
    with open(path, newline="", encoding="utf-8") as file:
        expected = [[cell or None for cell in row] for row in list(csv.reader(file))[1:] if row]
    assert found == expected
