"""Columns of a table as the search for pairs takes them."""

import numpy as np

from tamiz.cli.pairs_run import gather_columns
from tamiz.tables.read import read_table


def test_numbers_come_first_and_text_as_codes(write_csv):
    path = write_csv("a,place,b,y\n1,x,,0\n2,,5,1\n,z,7,0\n4,x,9,1\n")
    table = read_table(path, target="y", need_target=True, max_categories=10)
    matrix, names, levels = gather_columns(table)
    assert names[-1] == "place"
    assert set(names[:-1]) >= {"a", "b"}
    codes = matrix[:, -1]
    assert [levels["place"][float(code)] for code in codes] == ["x", "(missing)", "z", "x"]
    # Gaps are filled by the median.
    assert matrix[2, names.index("a")] == 2.0
    assert np.isfinite(matrix).all()
