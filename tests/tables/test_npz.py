"""NPZ: the arrays X, y and names."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from tamiz.tables import TableError, TableMemoryError, read_table, write_columns


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


def test_a_target_of_one_column(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.arange(12.0).reshape(6, 2), y=np.array([[0], [1]] * 3))
    assert read_table(tmp_path / "t.npz").y.tolist() == ["0", "1"] * 3


def rewrite(path, change):
    """Changes the bytes of a file."""
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def encrypt(content):
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(sign)
        while place >= 0:
            content[place + offset] |= 1
            place = content.find(sign, place + 4)


def unknown_packing(content):
    for sign, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = content.find(sign)
        while place >= 0:
            content[place + offset] = 77
            place = content.find(sign, place + 4)


def damage(content):
    content[len(content) // 3 : len(content) // 3 + 20] = bytes(20)


@pytest.mark.parametrize("change", [encrypt, unknown_packing, damage])
def test_members_that_cannot_be_read(tmp_path, change):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(50, 4)), y=np.arange(50) % 2)
    rewrite(path, change)
    with pytest.raises(TableError, match=r"t\.npz cannot be read as NPZ: "):
        read_table(path)


@pytest.mark.parametrize("name", ["y", "names"])
def test_target_and_names_count_in_the_memory_budget(tmp_path, name):
    arrays = {"X": np.ones((2, 1)), "y": np.zeros(2), "names": np.array(["a"])}
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        for member, array in arrays.items():
            claimed = (10**13,) if member == name else array.shape  # more than there is on any machine
            header = {"descr": array.dtype.str, "fortran_order": False, "shape": claimed}
            content = io.BytesIO()
            np.lib.format.write_array_header_1_0(content, header)
            archive.writestr(f"{member}.npy", content.getvalue() + array.tobytes())
    with pytest.raises(TableMemoryError, match="needs about"):
        read_table(tmp_path / "t.npz")
