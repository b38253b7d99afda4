"""Read an R workspace (``.RData``): plain vectors, lists, factors and data frames in the XDR layout (versions 2, 3).

Two microarray sets of the paper are published in this format. Nothing is evaluated: anything but plain data raises.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz.datasets.dataset import DatasetArrays
from tamiz.datasets.errors import DatasetError
from tamiz.datasets.parsers import orient, target_of_entry

if TYPE_CHECKING:
    from tamiz.datasets.registry import DatasetEntry

_SYMBOL, _PAIRS, _CHARS, _LOGICAL, _INTEGER, _REAL, _STRINGS, _LIST = 1, 2, 9, 10, 13, 14, 16, 19
_REFERENCE, _NIL = 255, 254
_HAS_ATTRIBUTES, _HAS_TAG = 1 << 9, 1 << 10


@dataclass
class RValue:
    """A value of R with its attributes (names, dim, levels, class)."""

    value: Any
    attributes: dict[str, Any] = field(default_factory=dict)

    def named(self) -> dict[str, RValue]:
        """Return the entries of a list by their names."""
        return dict(zip(self.attributes["names"].value, self.value, strict=True))

    def as_labels(self) -> np.ndarray:
        """Return a factor or a vector of strings as an array of strings."""
        if "levels" not in self.attributes:
            return np.asarray(self.value, dtype=str)
        return np.asarray(self.attributes["levels"].value, dtype=str)[np.asarray(self.value) - 1]

    def as_matrix(self) -> tuple[np.ndarray, list[str] | None]:
        """Return a matrix or a data frame as an array, and the names of its columns."""
        if isinstance(self.value, list):
            return np.column_stack([column.value for column in self.value]), self.attributes["names"].value
        shape = tuple(int(n) for n in self.attributes["dim"].value)
        names = self.attributes["dimnames"].value[1] if "dimnames" in self.attributes else None
        return np.asarray(self.value).reshape(shape, order="F"), None if names is None else names.value


class _Reader:
    """Decode the bytes in order; later references point into ``symbols``."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0
        self.symbols: list[str] = []

    def take(self, n_bytes: int) -> bytes:
        if n_bytes < 0 or self.at + n_bytes > len(self.raw):
            raise DatasetError("the R file ends too early")
        self.at += n_bytes
        return self.raw[self.at - n_bytes : self.at]

    def integer(self) -> int:
        return struct.unpack(">i", self.take(4))[0]

    def vector(self, dtype: str) -> np.ndarray:
        n = self.integer()
        return np.frombuffer(self.take(n * np.dtype(dtype).itemsize), dtype=dtype).astype(dtype[1:])

    def pairs(self, flags: int) -> dict[str, Any]:
        """Read a linked list of tags and values, which ends with nil."""
        found = {}
        while flags & 0xFF == _PAIRS:
            if flags & _HAS_ATTRIBUTES:
                self.item()
            tag = self.item() if flags & _HAS_TAG else ""
            found[tag] = self.item()
            flags = self.integer()
        if flags & 0xFF != _NIL:
            raise DatasetError("an R list does not end as it should")
        return found

    def item(self) -> Any:
        flags = self.integer()
        kind = flags & 0xFF
        if kind == _NIL:
            return None
        if kind == _SYMBOL:
            self.symbols.append(self.item())
            return self.symbols[-1]
        if kind == _REFERENCE:
            return self.symbols[(flags >> 8 or self.integer()) - 1]
        if kind == _PAIRS:
            return self.pairs(flags)
        if kind == _CHARS:
            length = self.integer()
            return "" if length == -1 else self.take(length).decode("utf-8", "replace")
        value = self.plain(kind)
        return RValue(value, self.pairs(self.integer()) if flags & _HAS_ATTRIBUTES else {})

    def plain(self, kind: int) -> Any:
        if kind in (_LOGICAL, _INTEGER):
            return self.vector(">i4")
        if kind == _REAL:
            return self.vector(">f8")
        if kind in (_STRINGS, _LIST):
            return [self.item() for _ in range(self.integer())]
        raise DatasetError(f"the R file holds something that is no plain data (type {kind})")


def read_rdata(path: Path) -> dict[str, Any]:
    """Return the objects of an R workspace by their names.

    Parameters
    ----------
    path : Path
        File, compressed by gzip, bzip2 or xz, or not compressed.

    Raises
    ------
    DatasetError
        If it is not an R workspace, ends too early or holds anything but plain data.
    """
    raw = path.read_bytes()
    for magic, unpack in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ", lzma.decompress)):
        if raw.startswith(magic):
            raw = unpack(raw)
    if raw[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
        raise DatasetError(f"{path.name} is no R workspace in the XDR layout")
    reader = _Reader(raw)
    reader.take(7)
    version = reader.integer()
    reader.take(8)  # the versions of R that wrote it and that can read it
    if version == 3:
        reader.take(reader.integer())  # the encoding of the writer's machine
    objects = reader.item()
    if not isinstance(objects, dict):
        raise DatasetError(f"{path.name} holds no R objects")
    return objects


def parse_rdata(files: Mapping[str, Path], entry: DatasetEntry) -> DatasetArrays:
    """Parse an R list of ``x`` (matrix or data frame) and ``y`` (factor or numbers), as in the package datamicroarray."""
    (path,) = files.values()
    (content,) = read_rdata(path).values()
    parts = content.named()
    matrix, names = parts["x"].as_matrix()
    data = orient(matrix, entry.shape)
    known = np.array(names) if names is not None and len(names) == entry.shape[1] else None
    return DatasetArrays(data, target_of_entry(parts["y"].as_labels(), entry), feature_names=known)
