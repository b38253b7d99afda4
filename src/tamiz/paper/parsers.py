"""Parse the files of the public sources; nothing downloaded is ever unpickled."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.io.arff
import scipy.sparse as sp

from tamiz.errors import DatasetError
from tamiz.paper.datasets import Dataset, DatasetEntry


def classes_by_count(labels: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Code labels of any spelling as 0 .. C-1, identified by the number of rows of each class.

    Sources spell the classes of a microarray set in several ways ("tumor", "t", -1); the counts are always the same.

    Examples
    --------
    >>> classes_by_count(np.array(["t", "n", "t"]), (1, 2))
    array([1, 0, 1])
    """
    _, codes, found = np.unique(np.asarray(labels).ravel(), return_inverse=True, return_counts=True)
    if sorted(found) != sorted(counts) or len(set(counts)) != len(counts):
        raise DatasetError(f"the classes have {sorted(found.tolist())} rows, expected {sorted(counts)}")
    return np.array([counts.index(count) for count in found.tolist()], dtype=np.int64)[codes.reshape(-1)]


def _signs_to_classes(labels: np.ndarray) -> np.ndarray:
    labels = np.asarray(labels, dtype=np.float64).ravel()
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise DatasetError("the labels must be -1 and 1")
    return (labels > 0).astype(np.int64)


def orient(data: Any, shape: tuple[int, int]) -> np.ndarray:
    """Make a float32 matrix with samples in rows, transposed if it was stored the other way."""
    data = np.asarray(data)
    if data.shape == shape:
        return data.astype(np.float32)
    if data.shape == shape[::-1]:
        return np.ascontiguousarray(data.T, dtype=np.float32)
    raise DatasetError(f"the table is {' x '.join(map(str, data.shape))}, expected {shape[0]} x {shape[1]}")


def parse_mat(files: Mapping[str, Path], entry: DatasetEntry) -> Dataset:
    """Parse a MATLAB file with one matrix of the expected shape and one target vector, whatever their names."""
    (path,) = files.values()
    arrays = [value for key, value in scipy.io.loadmat(path).items() if not key.startswith("__")]
    matrices = [a for a in arrays if a.ndim == 2 and sorted(a.shape) == sorted(entry.shape)]
    vectors = [a for a in arrays if a.size == entry.shape[0]]
    if len(matrices) != 1 or len(vectors) != 1:
        raise DatasetError(
            f"the file holds {len(matrices)} tables of {entry.shape} and {len(vectors)} target vectors, "
            "expected one each"
        )
    return Dataset(entry, orient(matrices[0], entry.shape), classes_by_count(vectors[0], entry.class_counts))


def _challenge_matrix(text: bytes, entry: DatasetEntry) -> Any:
    if not entry.sparse:
        return np.loadtxt(io.BytesIO(text), dtype=np.float32, ndmin=2)
    from sklearn.datasets import load_svmlight_file  # here, so that listing the datasets need not load scikit-learn

    # "3:29 17:84": the svmlight layout without its labels, so give it some.
    rows = b"\n".join(b"0 " + line for line in text.strip().splitlines())
    matrix, _ = load_svmlight_file(io.BytesIO(rows), n_features=entry.shape[1], zero_based=False, dtype=np.float32)
    return matrix


def parse_challenge(files: Mapping[str, Path], entry: DatasetEntry) -> Dataset:
    """Parse the layout of the NIPS 2003 challenge: ``<name>_train`` and ``<name>_valid``, each ``.data`` and ``.labels``.

    The test part is left out: its labels were never published.
    """
    (path,) = files.values()
    with zipfile.ZipFile(path) as archive:  # by their base names: the folders differ between mirrors
        wanted = [n for n in archive.namelist() if n.endswith((".data", ".labels")) and "_test" not in n]
        members = {name.rsplit("/", 1)[-1]: archive.read(name) for name in wanted}
    parts = (f"{entry.name}_train", f"{entry.name}_valid")
    missing = [name for part in parts for name in (f"{part}.data", f"{part}.labels") if name not in members]
    if missing:
        raise DatasetError(f"the source lacks {', '.join(missing)}")
    blocks = [_challenge_matrix(members[f"{part}.data"], entry) for part in parts]
    labels = [np.loadtxt(io.BytesIO(members[f"{part}.labels"])) for part in parts]
    for block, label in zip(blocks, labels, strict=True):
        if block.shape[0] != label.size:
            raise DatasetError(f"there are {block.shape[0]} rows of data for {label.size} labels")
    data = sp.csr_matrix(sp.vstack(blocks)) if entry.sparse else np.vstack(blocks)
    return Dataset(entry, data, _signs_to_classes(np.concatenate(labels)), n_train=blocks[0].shape[0])


def parse_arff(files: Mapping[str, Path], entry: DatasetEntry) -> Dataset:
    """Read a dense ARFF file of numbers with the class -1 / 1 in the last column (OpenML's copy of GINA).

    The validation rows are put last; they are identified by their official check-sum, as copies differ in order.
    """
    (path,) = files.values()
    table, meta = scipy.io.arff.loadarff(path)
    values = np.array(table.tolist(), dtype=np.float64)
    names = np.array(meta.names()[:-1])
    data, target = orient(values[:, :-1], entry.shape), _signs_to_classes(values[:, -1])
    n_rows, n_train = entry.shape[0], entry.n_train or 0
    for start in (n_train, 0):
        rows = np.arange(start, start + n_rows - n_train)
        if data[rows].sum(dtype=np.float64) == entry.totals[-1]:
            order = np.concatenate([np.setdiff1d(np.arange(n_rows), rows), rows])
            return Dataset(entry, data[order], target[order], n_train, names)
    warnings.warn(
        f"{entry.title}: this copy mixes the training and the validation rows; it is loaded without a split.",
        stacklevel=2,
    )
    return Dataset(entry, data, target, None, names)


def read_idx(path: Path) -> np.ndarray:
    """Read an array of bytes in the idx layout of MNIST, compressed or not."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    zeros, kind, n_axes = struct.unpack(">HBB", raw[:4])
    if zeros != 0 or kind != 0x08 or not 1 <= n_axes <= 4:
        raise DatasetError(f"{path.name} is not an idx file of bytes")
    shape = struct.unpack(f">{n_axes}I", raw[4 : 4 + 4 * n_axes])
    values = np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * n_axes)
    if values.size != int(np.prod(shape, dtype=np.int64)):
        raise DatasetError(f"{path.name} announces {shape} and holds {values.size} bytes")
    return values.reshape(shape)


def parse_idx(files: Mapping[str, Path], entry: DatasetEntry) -> Dataset:
    """Parse the four files of MNIST or Fashion-MNIST."""
    arrays = {(name.startswith("train"), "images" in name): read_idx(path) for name, path in files.items()}
    images, labels = ([arrays[train, kind] for train in (True, False)] for kind in (True, False))
    data = np.concatenate([part.reshape(part.shape[0], -1) for part in images])
    return Dataset(entry, data, np.concatenate(labels).astype(np.int64), n_train=images[0].shape[0])


def read_cifar(raw: bytes, n_label_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Read images (flattened row, column, colour) and labels from a file in the binary layout of CIFAR.

    A record is the labels (the last one counts: CIFAR-100 puts the coarse class first), then the red, the green and
    the blue plane.
    """
    size = n_label_bytes + 3072
    if not raw or len(raw) % size:
        raise DatasetError(f"a CIFAR file of {len(raw)} bytes is not a whole number of records of {size}")
    records = np.frombuffer(raw, dtype=np.uint8).reshape(-1, size)
    planes = records[:, n_label_bytes:].reshape(-1, 3, 32, 32)
    return planes.transpose(0, 2, 3, 1).reshape(-1, 3072), records[:, n_label_bytes - 1].astype(np.int64)


def parse_cifar(files: Mapping[str, Path], entry: DatasetEntry) -> Dataset:
    """Parse the binary archive of CIFAR-10 or CIFAR-100 (the other archive holds pickles, which are never opened)."""
    (path,) = files.values()
    n_label_bytes = 2 if entry.n_classes == 100 else 1
    train: list[tuple[np.ndarray, np.ndarray]] = []
    test: list[tuple[np.ndarray, np.ndarray]] = []
    with tarfile.open(path, "r:gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda m: m.name):
            base = member.name.rsplit("/", 1)[-1]
            stream = archive.extractfile(member) if member.isfile() and base.endswith(".bin") else None
            if stream is not None:
                (test if base.startswith("test") else train).append(read_cifar(stream.read(), n_label_bytes))
    if not train or not test:
        raise DatasetError("the archive lacks the training or the test images")
    parts = train + test
    n_train = sum(labels.size for _, labels in train)
    return Dataset(entry, np.concatenate([i for i, _ in parts]), np.concatenate([y for _, y in parts]), n_train)


# Kinds of values in the files of R; logical, integer and real vectors with their types.
_SYMBOL, _PAIRS, _CHARS, _STRINGS, _LIST, _NIL, _REFERENCE = 1, 2, 9, 16, 19, 254, 255
_NUMBERS = {10: ">i4", 13: ">i4", 14: ">f8"}
_HAS_ATTRIBUTES, _HAS_TAG = 1 << 9, 1 << 10


def _labels(value: tuple[Any, dict[str, Any]]) -> np.ndarray:
    """Read a factor or a vector of strings as an array of strings."""
    codes, attributes = value
    if "levels" not in attributes:
        return np.asarray(codes, dtype=str)
    return np.asarray(attributes["levels"][0], dtype=str)[np.asarray(codes) - 1]


def _matrix(value: tuple[Any, dict[str, Any]]) -> tuple[np.ndarray, list[str] | None]:
    """Read a matrix or a data frame as an array, with the names of its columns."""
    content, attributes = value
    if isinstance(content, list):
        return np.column_stack([column for column, _ in content]), attributes["names"][0]
    shape = tuple(int(n) for n in attributes["dim"][0])
    names = attributes["dimnames"][0][1] if "dimnames" in attributes else None
    return np.asarray(content).reshape(shape, order="F"), None if names is None else names[0]


class _Reader:
    """Decode the bytes in order: a value of R is a pair of its content and its attributes (names, dim, levels).

    Later references point into ``symbols``.
    """

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
        value: Any
        if kind in (_STRINGS, _LIST):
            value = [self.item() for _ in range(self.integer())]
        elif kind in _NUMBERS:
            value = self.vector(_NUMBERS[kind])
        else:
            raise DatasetError(f"the R file holds something that is no plain data (type {kind})")
        return value, self.pairs(self.integer()) if flags & _HAS_ATTRIBUTES else {}


def read_rdata(path: Path) -> dict[str, Any]:
    """Read the objects of an R workspace by their names.

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


def parse_rdata(files: Mapping[str, Path], entry: DatasetEntry) -> Dataset:
    """Parse an R list of ``x`` (matrix or data frame) and ``y`` (factor or numbers), as in the package datamicroarray."""
    (path,) = files.values()
    ((values, attributes),) = read_rdata(path).values()
    parts = dict(zip(attributes["names"][0], values, strict=True))
    matrix, names = _matrix(parts["x"])
    data = orient(matrix, entry.shape)
    known = np.array(names) if names is not None and len(names) == entry.shape[1] else None
    return Dataset(entry, data, classes_by_count(_labels(parts["y"]), entry.class_counts), feature_names=known)


#: Parsers by the names that the registry of datasets has for them.
PARSERS: dict[str, Callable[[Mapping[str, Path], DatasetEntry], Dataset]] = {
    "arff": parse_arff,
    "challenge": parse_challenge,
    "cifar": parse_cifar,
    "idx": parse_idx,
    "mat": parse_mat,
    "rdata": parse_rdata,
}
