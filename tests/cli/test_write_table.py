"""Reduced tables: the format that came in, the values as they stood."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.io.arff

from tamiz.cli.memory import MemoryBudget
from tamiz.cli.read import ReadOptions, read_table
from tamiz.cli.write_table import write_reduced


def read(path, **options):
    return read_table(path, ReadOptions(**{"need_target": False, **options}), MemoryBudget(lambda sentence: None))


def test_csv_keeps_digits_text_and_order(write_csv, tmp_path):
    path = write_csv('a,"b, x",c,kind\n0.12345678901234567,1,"say ""hi""",u\n,2,=1+1,v\n')
    write_reduced(read(path, target="kind"), [2, 0], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == 'a,c,kind\n0.12345678901234567,"say ""hi""",u\n,=1+1,v\n'


def test_csv_with_semicolons_and_tsv(write_csv, tmp_path):
    write_reduced(read(write_csv("a;b;c\n1;2;3\n")), [0, 2], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "a;c\n1;3\n"
    write_reduced(read(write_csv("a\tb\tc\n1\t2\t3\n", "t.tsv")), [1], tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text() == "b\n2\n"


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_arrow_keeps_types(tmp_path, name):
    source = pa.table({"a": pa.array([1, 2], pa.int8()), "b": ["x", "y"], "c": [1.0, None], "y": [0, 1]})
    if name.endswith("parquet"):
        pq.write_table(source, tmp_path / name)
    else:
        pyarrow.feather.write_feather(source, tmp_path / name)
    write_reduced(read(tmp_path / name, target="y"), [2, 0], tmp_path / f"out_{name}")
    found = (
        pq.read_table(tmp_path / f"out_{name}")
        if name.endswith("parquet")
        else pyarrow.feather.read_table(tmp_path / f"out_{name}")
    )
    assert found.equals(source.select(["a", "c", "y"]))


def test_npz(tmp_path):
    X = np.arange(6).reshape(2, 3)
    np.savez(tmp_path / "t.npz", X=X, y=np.array([0, 1]))
    write_reduced(read(tmp_path / "t.npz"), [2, 0], tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["X"], X[:, [0, 2]])
        assert found["names"].tolist() == ["x0", "x2"]
        assert found["y"].tolist() == [0, 1]


def test_svmlight_keeps_the_numbers_of_the_columns(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:0.5 3:2 # note\n-1 2:1 3:4\n")
    write_reduced(read(tmp_path / "t.svm"), [2], tmp_path / "out.svm")
    assert (tmp_path / "out.svm").read_text() == "1 3:2\n-1 3:4\n"


def test_arff_can_be_read_by_scipy(write_csv, tmp_path):
    path = write_csv(
        "@relation r\n@attribute a real\n@attribute 'b b' {'x y', z}\n@attribute c real\n@data\n1,'x y',2\n?,z,3\n",
        "t.arff",
    )
    write_reduced(read(path), [0, 1], tmp_path / "out.arff")
    data, meta = scipy.io.arff.loadarff(tmp_path / "out.arff")
    assert meta.names() == ["a", "b b"]
    assert np.isnan(data["a"][1])
    assert read(tmp_path / "out.arff").texts[1].values() == ["x y", "z"]
