"""ARFF: as scipy reads it, and files that are broken."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.io.arff

from tamiz.tables import TableError, write_columns

ARFF = """% a comment
@RELATION 'a test'

@ATTRIBUTE 'cell size' REAL
@attribute kind {'big one', small}
@ATTRIBUTE when DATE "yyyy-MM-dd"
@attribute n integer
@DATA
1.5,'big one','2024-01-01',3
% another comment
?,small,'2024-01-02',4
"""


def test_arff_agrees_with_scipy(write_csv, read):
    path = write_csv(ARFF, "table.arff")
    table = read(path)
    expected, _ = scipy.io.arff.loadarff(io.StringIO(ARFF))
    np.testing.assert_array_equal(table.numbers[:, 0], expected["cell size"].astype(np.float32))
    np.testing.assert_array_equal(table.numbers[:, 1], expected["n"])
    assert table.texts[1].values() == [value.decode() for value in expected["kind"]]
    assert table.left_out == {2: "dates"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation a\n@attribute x real\n", "no @data line"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n{0 1}\n", "sparse ARFF"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n% a comment\n\n {0 1}\n", "sparse ARFF"),
        ("@relation a\n@attribute x\n@data\n1\n", "cannot be understood"),
        ("hello\n@data\n", "no part of an ARFF header"),
        ("@relation a\n@data\n1,2\n", "no @attribute line"),
        ("@relation a\n@attribute x real\n@attribute y real\n@data\n", "no rows"),
    ],
)
def test_broken_arff(write_csv, text, message, read):
    with pytest.raises(TableError, match=message):
        read(write_csv(text, "table.arff"))


def test_arff_can_be_read_by_scipy(write_csv, tmp_path, read):
    path = write_csv(
        "@relation r\n@attribute a real\n@attribute 'b b' {'x y', z}\n@attribute c real\n@data\n1,'x y',2\n?,z,3\n",
        "t.arff",
    )
    write_columns(read(path), [0, 1], tmp_path / "out.arff")
    data, meta = scipy.io.arff.loadarff(tmp_path / "out.arff")
    assert meta.names() == ["a", "b b"]
    assert np.isnan(data["a"][1])
    assert read(tmp_path / "out.arff").texts[1].values() == ["x y", "z"]
