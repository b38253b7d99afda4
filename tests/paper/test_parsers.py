"""Parsers on small files written here in the layouts of the public sources, whole and damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import warnings
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from tamiz.errors import DatasetError
from tamiz.paper.datasets import DatasetEntry
from tamiz.paper.parsers import (
    PARSE_FAULTS,
    classes_by_count,
    parse_arff,
    parse_challenge,
    parse_cifar,
    parse_idx,
    parse_mat,
    parse_rdata,
    read_cifar,
    read_idx,
    read_rdata,
)

RANDOM = np.random.default_rng(0)


def entry(shape, counts, **more):
    return DatasetEntry("toy", "TOY", shape, counts, "nobody", **more)


@pytest.mark.parametrize("transpose", [False, True])
def test_mat_is_found_by_shape_whatever_the_names(tmp_path, transpose):
    X, y = RANDOM.normal(size=(5, 7)), np.array([-1, 1, 1, -1, 1])
    scipy.io.savemat(tmp_path / "toy.mat", {"Donnees": X.T if transpose else X, "etiquettes": y.reshape(-1, 1)})
    table = parse_mat({"toy.mat": tmp_path / "toy.mat"}, entry((5, 7), (2, 3)))
    np.testing.assert_allclose(table.data, X, rtol=1e-6)
    assert table.data.dtype == np.float32
    assert table.target.tolist() == [0, 1, 1, 0, 1]


def test_mat_of_another_shape_is_refused(tmp_path):
    scipy.io.savemat(tmp_path / "toy.mat", {"X": np.zeros((5, 8)), "y": np.zeros(5)})
    with pytest.raises(DatasetError, match="0 tables"):
        parse_mat({"toy.mat": tmp_path / "toy.mat"}, entry((5, 7), (2, 3)))


def test_classes_by_count_refuses_other_counts():
    with pytest.raises(DatasetError, match=r"\[1, 3\] rows, expected \[2, 2\]"):
        classes_by_count(np.array(["a", "b", "b", "b"]), (2, 2))


def challenge_files(X, y, n_train, sparse):
    def text(rows):
        if sparse:
            return "\n".join(" ".join(f"{j + 1}:{int(v)}" for j, v in enumerate(row) if v) for row in rows) + "\n"
        return "\n".join(" ".join(str(int(v)) for v in row) + " " for row in rows) + "\n"

    def labels(part):
        return "\n".join(str(2 * v - 1) for v in part) + "\n"

    return {
        "TOY/toy_train.data": text(X[:n_train]),
        "TOY/toy_train.labels": labels(y[:n_train]),
        "TOY/toy_valid.data": text(X[n_train:]),
        "TOY/toy_test.data": "not a number\n",
        "toy_valid.labels": labels(y[n_train:]),
    }


@pytest.mark.parametrize("sparse", [False, True])
def test_challenge_layout(tmp_path, sparse):
    X = RANDOM.integers(0, 4, size=(6, 9))
    X[2] = 0  # an empty line in the sparse layout
    y = np.array([0, 1, 0, 1, 1, 0])
    contents = challenge_files(X, y, 4, sparse)
    with zipfile.ZipFile(tmp_path / "toy.zip", "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    table = parse_challenge({"toy.zip": tmp_path / "toy.zip"}, entry((6, 9), (3, 3), sparse=sparse, n_train=4))
    assert sp.issparse(table.data) == sparse
    np.testing.assert_array_equal(table.data.toarray() if sparse else table.data, X)
    assert table.target.tolist() == y.tolist()
    assert table.n_train == 4
    assert table.data.dtype == np.float32


def test_challenge_with_a_missing_or_short_member(tmp_path):
    contents = challenge_files(np.ones((6, 9)), np.array([0, 1, 0, 1, 1, 0]), 4, False)
    short = {**contents, "toy_valid.labels": "1\n"}
    missing = {name: text for name, text in contents.items() if name != "toy_valid.labels"}
    for case, words in ((short, "2 rows of data for 1 labels"), (missing, "lacks toy_valid.labels")):
        with zipfile.ZipFile(tmp_path / "toy.zip", "w") as archive:
            for name, text in case.items():
                archive.writestr(name, text)
        with pytest.raises(DatasetError, match=words):
            parse_challenge({"toy.zip": tmp_path / "toy.zip"}, entry((6, 9), (3, 3), n_train=4))


def write_arff(path, X, y):
    header = "".join(f"@ATTRIBUTE 'pixel {j}' NUMERIC\n" for j in range(X.shape[1]))
    rows = "\n".join(",".join(str(v) for v in [*row, label]) for row, label in zip(X.tolist(), y.tolist(), strict=True))
    path.write_text(f"% comment\n@RELATION toy\n{header}@ATTRIBUTE label {{-1,1}}\n@DATA\n{rows}\n")


@pytest.mark.parametrize("first", ["train", "valid", "neither"])
def test_arff_finds_the_validation_rows_by_their_sum(tmp_path, first):
    X = np.arange(24).reshape(6, 4)
    y = np.array([-1, 1, 1, -1, 1, 1])
    order = {"train": [0, 1, 2, 3, 4, 5], "valid": [4, 5, 0, 1, 2, 3], "neither": [0, 4, 1, 2, 5, 3]}[first]
    write_arff(tmp_path / "toy.arff", X[order], y[order])
    toy = entry((6, 4), (2, 4), n_train=4, totals=(None, float(X[4:].sum())))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = parse_arff({"toy.arff": tmp_path / "toy.arff"}, toy)
    assert table.feature_names.tolist() == [f"pixel {j}" for j in range(4)]
    if first == "neither":
        assert "mixes the training and the validation rows" in str(caught[0].message)
        assert table.n_train is None
    else:
        np.testing.assert_array_equal(table.data, X)
        assert table.target.tolist() == (y > 0).astype(int).tolist()
        assert table.n_train == 4


def idx_bytes(array):
    return struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_idx_files_make_one_table(tmp_path):
    train, test = (RANDOM.integers(0, 256, size=(n, 4, 3), dtype=np.uint8) for n in (5, 2))
    y_train, y_test = np.array([0, 1, 2, 0, 1], np.uint8), np.array([2, 0], np.uint8)
    files = {}
    for name, array in (
        ("train-images-idx3-ubyte.gz", train),
        ("train-labels-idx1-ubyte.gz", y_train),
        ("t10k-images-idx3-ubyte.gz", test),
        ("t10k-labels-idx1-ubyte.gz", y_test),
    ):
        files[name] = tmp_path / name
        files[name].write_bytes(gzip.compress(idx_bytes(array)))
    table = parse_idx(files, entry((7, 12), (3, 2, 2), n_train=5, image_shape=(4, 3, 1)))
    np.testing.assert_array_equal(table.data, np.concatenate([train, test]).reshape(7, 12))
    assert table.target.tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert table.n_train == 5


def test_damaged_idx_is_refused(tmp_path):
    good = idx_bytes(np.zeros((3, 2), np.uint8))
    for bad in (good[:-1], good + b"x", b"\x00\x00\x0d\x02" + good[4:], b"<html>", b"", gzip.compress(good)[:-9]):
        (tmp_path / "file").write_bytes(bad)
        with pytest.raises((DatasetError, *PARSE_FAULTS)):
            read_idx(tmp_path / "file")


@pytest.mark.parametrize("n_classes", [10, 100])
def test_cifar_binary_archive(tmp_path, n_classes):
    images = RANDOM.integers(0, 256, size=(6, 32, 32, 3), dtype=np.uint8)
    labels = np.array([3, 9, 0, 1, 2, 5], np.uint8)

    def records(rows):
        coarse = b"\x07" if n_classes == 100 else b""
        return b"".join(coarse + bytes([labels[i]]) + images[i].transpose(2, 0, 1).tobytes() for i in rows)

    members = {"cifar/data_batch_1.bin": [0, 1], "cifar/data_batch_2.bin": [2, 3], "cifar/test_batch.bin": [4, 5]}
    if n_classes == 100:
        members = {"cifar/train.bin": [0, 1, 2, 3], "cifar/test.bin": [4, 5]}
    with tarfile.open(tmp_path / "cifar.tar.gz", "w:gz") as archive:
        for name, raw in [*((n, records(r)) for n, r in members.items()), ("cifar/readme.html", b"<html>")]:
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    table = parse_cifar({"cifar.tar.gz": tmp_path / "cifar.tar.gz"}, entry((6, 3072), (1,) * n_classes))
    np.testing.assert_array_equal(table.data.reshape(6, 32, 32, 3), images)
    assert table.target.tolist() == labels.tolist()
    assert table.n_train == 4


def test_cifar_of_the_wrong_length_is_refused():
    with pytest.raises(DatasetError, match="not a whole number of records"):
        read_cifar(b"x" * 3074, 1)


# ---- R workspaces, in bytes written after the description in "R Internals" (serialization, XDR)

NIL = struct.pack(">i", 254)


def integer(value):
    return struct.pack(">i", value)


def chars(text):
    return integer(0x40009) + integer(len(text)) + text.encode()


class Writer:
    """Remembers the symbols it has written, as R does: the second time it writes a reference."""

    def __init__(self):
        self.seen = []

    def symbol(self, name):
        if name in self.seen:
            return integer(((self.seen.index(name) + 1) << 8) | 255)
        self.seen.append(name)
        return integer(1) + chars(name)

    def pairs(self, entries):
        return b"".join(integer(2 | 1 << 10) + self.symbol(tag) + value() for tag, value in entries) + NIL

    def vector(self, kind, body, attributes=()):
        flags = kind | (1 << 9 if attributes else 0)
        return integer(flags) + body + (self.pairs(attributes) if attributes else b"")

    def reals(self, values, attributes=()):
        return self.vector(14, integer(len(values)) + np.asarray(values, ">f8").tobytes(), attributes)

    def integers(self, values, attributes=()):
        return self.vector(13, integer(len(values)) + np.asarray(values, ">i4").tobytes(), attributes)

    def strings(self, values):
        return self.vector(16, integer(len(values)) + b"".join(chars(v) for v in values))

    def list(self, items, names, more=()):
        body = integer(len(items)) + b"".join(item() for item in items)
        return self.vector(19, body, [("names", lambda: self.strings(names)), *more])


def workspace(X, y, frame, version=2):
    w = Writer()
    columns = [f"gene{j}" for j in range(X.shape[1])]

    def table():
        if frame:
            extra = [
                ("class", lambda: w.strings(["data.frame"])),
                ("row.names", lambda: w.integers([-2147483648, -len(y)])),
            ]
            return w.list([lambda j=j: w.reals(X[:, j]) for j in range(X.shape[1])], columns, extra)
        dimnames = integer(19) + integer(2) + NIL + w.strings(columns)
        return w.reals(X.ravel(order="F"), [("dim", lambda: w.integers(X.shape)), ("dimnames", lambda: dimnames)])

    def factor():
        return w.integers(
            y + 1, [("levels", lambda: w.strings(["ALL", "AML"])), ("class", lambda: w.strings(["factor"]))]
        )

    head = f"RDX{version}\nX\n".encode() + integer(version) + integer(0x30400) + integer(0x20300)
    if version == 3:
        head += integer(5) + b"UTF-8"
    return head + w.pairs([("golub", lambda: w.list([table, factor], ["x", "y"]))])


GOLUB = DatasetEntry("toy", "TOY", (5, 3), (2, 3), "nobody")
X = np.arange(15.0).reshape(5, 3)
Y = np.array([0, 1, 0, 1, 0])  # three ALL, two AML


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_list_of_table_and_factor(tmp_path, frame, version, pack):
    path = tmp_path / "golub.RData"
    path.write_bytes(pack(workspace(X, Y, frame, version)))
    table = parse_rdata({"golub.RData": path}, GOLUB)
    np.testing.assert_array_equal(table.data, X)
    assert table.target.tolist() == [1, 0, 1, 0, 1]
    assert table.feature_names.tolist() == ["gene0", "gene1", "gene2"]


def test_every_truncation_is_refused(tmp_path):
    whole = workspace(X, Y, True)
    path = tmp_path / "golub.RData"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises((DatasetError, *PARSE_FAULTS)):
            parse_rdata({"golub.RData": path}, GOLUB)


def test_code_is_refused(tmp_path):
    """A closure (type 3) is not data."""
    path = tmp_path / "evil.RData"
    path.write_bytes(b"RDX2\nX\n" + integer(2) + integer(0) * 2 + Writer().pairs([("f", lambda: integer(3))]))
    with pytest.raises(DatasetError, match=r"no plain data \(type 3\)"):
        read_rdata(path)
