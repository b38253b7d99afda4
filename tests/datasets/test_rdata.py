"""The reader of R workspaces, on bytes written here after the description in "R Internals" (serialization, XDR)."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct

import numpy as np
import pytest

from tamiz.errors import DatasetError
from tamiz.paper.dataset_registry import DatasetEntry
from tamiz.paper.parsers import PARSE_FAULTS, parse_rdata, read_rdata

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
        if y.dtype.kind == "f":
            return w.reals(y)
        return w.integers(
            y + 1, [("levels", lambda: w.strings(["ALL", "AML"])), ("class", lambda: w.strings(["factor"]))]
        )

    head = f"RDX{version}\nX\n".encode() + integer(version) + integer(0x30400) + integer(0x20300)
    if version == 3:
        head += integer(5) + b"UTF-8"
    return head + w.pairs([("golub", lambda: w.list([table, factor], ["x", "y"]))])


TOY = DatasetEntry("toy", "TOY", (5, 3), (2, 3), "nobody")
X = np.arange(15.0).reshape(5, 3)
Y = np.array([0, 1, 0, 1, 0])  # three ALL, two AML


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_list_of_table_and_factor(tmp_path, frame, version, pack):
    path = tmp_path / "golub.RData"
    path.write_bytes(pack(workspace(X, Y, frame, version)))
    table = parse_rdata({"golub.RData": path}, TOY)
    np.testing.assert_array_equal(table.data, X)
    assert table.target.tolist() == [1, 0, 1, 0, 1]
    assert table.feature_names.tolist() == ["gene0", "gene1", "gene2"]


def test_numbers_as_target(tmp_path):
    path = tmp_path / "dose.RData"
    dose = np.array([0.1, -1e-300, 1 / 3, 2.0, 1e22])
    path.write_bytes(workspace(X, dose, True))
    regression = DatasetEntry("toy", "TOY", (5, 3), None, "nobody")
    assert parse_rdata({"dose.RData": path}, regression).target.tolist() == dose.tolist()
    path.write_bytes(workspace(X, Y, True))
    with pytest.raises(ValueError, match="could not convert"):  # the codes of a factor are no numbers
        parse_rdata({"dose.RData": path}, regression)


def test_factor_keeps_its_levels(tmp_path):
    path = tmp_path / "golub.RData"
    path.write_bytes(workspace(X, Y, True))
    assert read_rdata(path)["golub"].named()["y"].as_labels().tolist() == ["ALL", "AML", "ALL", "AML", "ALL"]


def test_every_truncation_is_refused(tmp_path):
    whole = workspace(X, Y, True)
    path = tmp_path / "golub.RData"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises((DatasetError, *PARSE_FAULTS)):
            parse_rdata({"golub.RData": path}, TOY)


def test_code_is_refused(tmp_path):
    """A closure (type 3) is not data."""
    path = tmp_path / "evil.RData"
    path.write_bytes(b"RDX2\nX\n" + integer(2) + integer(0) * 2 + Writer().pairs([("f", lambda: integer(3))]))
    with pytest.raises(DatasetError, match=r"no plain data \(type 3\)"):
        read_rdata(path)
