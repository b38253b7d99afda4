"""NPZ: the arrays X, y and names."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz.tables import TableError, write_columns


def test_npz(tmp_path, read):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.arange(6.0).reshape(3, 2), y=np.array(["a", "b", "a"]), names=np.array(["one", "two"]))
    table = read(path, need_target=True)
    assert table.names == ["one", "two"]
    assert table.numbers.dtype == np.float32
    assert table.target_column.values() == ["a", "b", "a"]
    assert read(path, ignore=["one"]).number_columns.tolist() == [1]
    with pytest.raises(TableError, match="leave `target` out"):
        read(path, target="one")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((2, 2))}, "must hold arrays X and y"),
        ({"X": np.ones(3), "y": np.ones(3)}, "must be a matrix of numbers"),
        ({"X": np.ones((3, 2)), "y": np.ones(2)}, "y in .* has shape"),
        ({"X": np.ones((3, 2)), "y": np.ones(3), "names": np.array(["a"])}, "names in .* has shape"),
        ({"X": np.array([["a"], ["b"]]), "y": np.ones(2)}, "must be a matrix of numbers"),
        ({"X": np.ones((2, 1)), "y": np.array([1j, 2])}, "neither classes nor numbers"),
        ({"X": np.ones((0, 2)), "y": np.ones(0)}, "no rows"),
    ],
)
def test_broken_npz(tmp_path, arrays, message, read):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=message):
        read(tmp_path / "t.npz", need_target=True)


def test_npz_with_pickled_objects_raises(tmp_path, read):
    np.savez(tmp_path / "t.npz", X=np.ones((2, 2)), y=np.array([{}, []], dtype=object))
    with pytest.raises(TableError, match="cannot be read"):
        read(tmp_path / "t.npz", need_target=True)


def test_writing_keeps_types_and_names(tmp_path, read):
    X = np.arange(6).reshape(2, 3)
    np.savez(tmp_path / "t.npz", X=X, y=np.array([0, 1]))
    write_columns(read(tmp_path / "t.npz"), [2, 0], tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["X"], X[:, [0, 2]])
        assert found["names"].tolist() == ["x0", "x2"]
        assert found["y"].tolist() == [0, 1]
