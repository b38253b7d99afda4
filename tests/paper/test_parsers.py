"""Parsers on small files written here in the layouts of the public sources, whole and damaged."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import struct
import tarfile
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from tamiz.errors import DatasetError
from tamiz.paper.datasets import DatasetEntry
from tamiz.paper.parsers import PARSERS, classes_by_count, read_cifar, read_idx, read_rdata

RANDOM = np.random.default_rng(0)


def parse(kind, path, shape, counts, **more):
    """Parse a file, or several in a dictionary, as an entry of the registry says."""
    files = path if isinstance(path, dict) else {path.name: path}
    return PARSERS[kind](files, DatasetEntry("toy", "TOY", shape, counts, "nobody", **more))


@pytest.mark.parametrize("transpose", [False, True])
def test_mat_is_found_by_shape_whatever_the_names(tmp_path, transpose):
    X, y, path = RANDOM.normal(size=(5, 7)), np.array([-1, 1, 1, -1, 1]), tmp_path / "toy.mat"
    scipy.io.savemat(path, {"Donnees": X.T if transpose else X, "etiquettes": y.reshape(-1, 1)})
    table = parse("mat", path, (5, 7), (2, 3))
    np.testing.assert_allclose(table.data, X, rtol=1e-6)
    assert table.data.dtype == np.float32
    assert table.target.tolist() == [0, 1, 1, 0, 1]
    with pytest.raises(DatasetError, match="0 tables"):
        parse("mat", path, (5, 8), (2, 3))


def test_classes_by_count_refuses_other_counts():
    with pytest.raises(DatasetError, match=r"\[1, 3\] rows, expected \[2, 2\]"):
        classes_by_count(np.array(["a", "b", "b", "b"]), (2, 2))


def challenge(path, X, y, sparse=False, **changes):
    """Write the archive of a challenge: four rows for training, two for validation, and a test part without labels."""

    def text(rows):
        if sparse:
            return "\n".join(" ".join(f"{j + 1}:{int(v)}" for j, v in enumerate(row) if v) for row in rows) + "\n"
        return "\n".join(" ".join(str(int(v)) for v in row) + " " for row in rows) + "\n"

    members = {"TOY/toy_test.data": "not a number\n"}
    for part, rows in (("train", slice(0, 4)), ("valid", slice(4, 6))):
        members[f"TOY/toy_{part}.data"] = text(X[rows])
        members[f"toy_{part}.labels"] = "\n".join(str(2 * label - 1) for label in y[rows]) + "\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, **changes}.items():
            if content is not None:
                archive.writestr(name, content)


@pytest.mark.parametrize("sparse", [False, True])
def test_challenge_layout(tmp_path, sparse):
    X, y, path = RANDOM.integers(0, 4, size=(6, 9)), np.array([0, 1, 0, 1, 1, 0]), tmp_path / "toy.zip"
    X[2] = 0  # an empty line in the sparse layout
    challenge(path, X, y, sparse)
    table = parse("challenge", path, (6, 9), (3, 3), sparse=sparse, n_train=4)
    assert sp.issparse(table.data) == sparse
    np.testing.assert_array_equal(table.data.toarray() if sparse else table.data, X)
    assert (table.target.tolist(), table.n_train, table.data.dtype) == (y.tolist(), 4, np.float32)
    for content, words in (("1\n", "2 rows of data for 1 labels"), (None, "lacks toy_valid.labels")):
        challenge(path, X, y, sparse, **{"toy_valid.labels": content})
        with pytest.raises(DatasetError, match=words):
            parse("challenge", path, (6, 9), (3, 3), sparse=sparse, n_train=4)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [4, 5, 0, 1, 2, 3], [0, 4, 1, 2, 5, 3]])
def test_arff_finds_the_validation_rows_by_their_sum(tmp_path, order):
    X, y, path = np.arange(24).reshape(6, 4), np.array([-1, 1, 1, -1, 1, 1]), tmp_path / "toy.arff"
    header = "".join(f"@ATTRIBUTE 'pixel {j}' NUMERIC\n" for j in range(4))
    rows = "\n".join(",".join(map(str, [*X[i], y[i]])) for i in order)
    path.write_text(f"% comment\n@RELATION toy\n{header}@ATTRIBUTE label {{-1,1}}\n@DATA\n{rows}\n")
    mixed = order == [0, 4, 1, 2, 5, 3]
    warned = pytest.warns(UserWarning, match="mixes the training and the validation rows")
    with warned if mixed else contextlib.nullcontext():
        table = parse("arff", path, (6, 4), (2, 4), n_train=4, totals=(None, float(X[4:].sum())))
    assert table.feature_names.tolist() == [f"pixel {j}" for j in range(4)]
    if mixed:
        assert table.n_train is None
    else:
        np.testing.assert_array_equal(table.data, X)
        assert (table.target.tolist(), table.n_train) == ((y > 0).astype(int).tolist(), 4)


def idx_bytes(array):
    return struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_idx_files_make_one_table(tmp_path):
    images = RANDOM.integers(0, 256, size=(7, 4, 3), dtype=np.uint8)
    labels = np.array([0, 1, 2, 0, 1, 2, 0], np.uint8)
    files = {}
    for part, rows in (("train", slice(0, 5)), ("t10k", slice(5, 7))):
        for name, array in ((f"{part}-images-idx3-ubyte.gz", images), (f"{part}-labels-idx1-ubyte.gz", labels)):
            files[name] = tmp_path / name
            files[name].write_bytes(gzip.compress(idx_bytes(array[rows])))
    table = parse("idx", files, (7, 12), (3, 2, 2), n_train=5, image_shape=(4, 3, 1))
    np.testing.assert_array_equal(table.data, images.reshape(7, 12))
    assert (table.target.tolist(), table.n_train) == (labels.tolist(), 5)
    good = idx_bytes(np.zeros((3, 2), np.uint8))
    for bad in (good[:-1], good + b"x", b"\x00\x00\x0d\x02" + good[4:], b"<html>", b"", gzip.compress(good)[:-9]):
        (tmp_path / "file").write_bytes(bad)
        with pytest.raises(Exception):  # noqa: B017 - the download is refused whatever it is
            read_idx(tmp_path / "file")


@pytest.mark.parametrize(
    ("coarse", "members"),
    [
        (b"", {"data_batch_1.bin": [0, 1], "data_batch_2.bin": [2, 3], "test_batch.bin": [4, 5]}),
        (b"\x07", {"train.bin": [0, 1, 2, 3], "test.bin": [4, 5]}),
    ],
    ids=["CIFAR-10", "CIFAR-100"],
)
def test_cifar_binary_archive(tmp_path, coarse, members):
    images = RANDOM.integers(0, 256, size=(6, 32, 32, 3), dtype=np.uint8)
    labels, path = np.array([3, 9, 0, 1, 2, 5], np.uint8), tmp_path / "cifar.tar.gz"
    contents = {
        name: b"".join(coarse + bytes([labels[i]]) + images[i].transpose(2, 0, 1).tobytes() for i in rows)
        for name, rows in members.items()
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, raw in {**contents, "readme.html": b"<html>"}.items():
            info = tarfile.TarInfo(f"cifar/{name}")
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    table = parse("cifar", path, (6, 3072), (1,) * (100 if coarse else 10))
    np.testing.assert_array_equal(table.data.reshape(6, 32, 32, 3), images)
    assert (table.target.tolist(), table.n_train) == (labels.tolist(), 4)
    with pytest.raises(DatasetError, match="not a whole number of records"):
        read_cifar(b"x" * 3074, 1)


# ---- R workspaces, in bytes written after the description in "R Internals" (serialization, XDR)

NIL = struct.pack(">i", 254)


def integer(*values):
    return struct.pack(f">{len(values)}i", *values)


def chars(text):
    return integer(0x40009, len(text)) + text.encode()


class Writer:
    """Remembers the symbols it has written, as R does: the second time it writes a reference."""

    def __init__(self):
        self.seen = []

    def pairs(self, **entries):
        """Write tags and values; a value is written when its turn comes, as later ones refer to earlier symbols."""
        parts = []
        for tag, value in entries.items():
            if tag in self.seen:
                symbol = integer(((self.seen.index(tag) + 1) << 8) | 255)
            else:
                self.seen.append(tag)
                symbol = integer(1) + chars(tag)
            parts.append(integer(2 | 1 << 10) + symbol + value())
        return b"".join(parts) + NIL

    def vector(self, kind, values, **attributes):
        """Write reals (14), integers (13), strings (16) or a list (19) of functions that write its items."""
        if kind < 16:
            body = np.asarray(values, {13: ">i4", 14: ">f8"}[kind]).tobytes()
        else:
            body = b"".join(chars(value) if kind == 16 else value() for value in values)
        flags = kind | (1 << 9 if attributes else 0)
        return integer(flags, len(values)) + body + (self.pairs(**attributes) if attributes else b"")


X = np.arange(15.0).reshape(5, 3)
Y = np.array([0, 1, 0, 1, 0])  # three ALL, two AML
GENES = ["gene0", "gene1", "gene2"]


def workspace(frame, version=2):
    w = Writer()

    def strings(values):
        return lambda: w.vector(16, values)

    def table():
        if frame:
            columns = [lambda j=j: w.vector(14, X[:, j]) for j in range(3)]
            rest = {"class": strings(["data.frame"]), "row.names": lambda: w.vector(13, [-2147483648, -5])}
            return w.vector(19, columns, names=strings(GENES), **rest)
        names = integer(19, 2) + NIL + w.vector(16, GENES)
        return w.vector(14, X.ravel(order="F"), dim=lambda: w.vector(13, X.shape), dimnames=lambda: names)

    def factor():
        return w.vector(13, Y + 1, levels=strings(["ALL", "AML"]), **{"class": strings(["factor"])})

    head = f"RDX{version}\nX\n".encode() + integer(version, 0x30400, 0x20300)
    head += integer(5) + b"UTF-8" if version == 3 else b""
    return head + w.pairs(golub=lambda: w.vector(19, [table, factor], names=strings(["x", "y"])))


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize(("version", "pack"), [(2, bytes), (3, gzip.compress), (2, bz2.compress), (3, lzma.compress)])
def test_list_of_table_and_factor(tmp_path, frame, version, pack):
    path = tmp_path / "golub.RData"
    path.write_bytes(pack(workspace(frame, version)))
    table = parse("rdata", path, (5, 3), (2, 3))
    np.testing.assert_array_equal(table.data, X)
    assert (table.target.tolist(), table.feature_names.tolist()) == ([1, 0, 1, 0, 1], GENES)


def test_what_is_cut_or_holds_code_is_refused(tmp_path):
    path, whole = tmp_path / "golub.RData", workspace(True)
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(Exception):  # noqa: B017 - the download is refused whatever it is
            parse("rdata", path, (5, 3), (2, 3))
    path.write_bytes(b"RDX2\nX\n" + integer(2, 0, 0) + Writer().pairs(f=lambda: integer(3)))  # a closure
    with pytest.raises(DatasetError, match=r"no plain data \(type 3\)"):
        read_rdata(path)
