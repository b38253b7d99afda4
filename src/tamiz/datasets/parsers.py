"""Parse the files of the public sources into :class:`DatasetArrays`; nothing downloaded is ever unpickled.

A parser takes the files by name and the registry entry, which knows the shape and the target to expect.
"""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from tamiz._arff import read_arff_header
from tamiz.datasets.dataset import DatasetArrays
from tamiz.datasets.errors import DatasetError

if TYPE_CHECKING:
    from tamiz.datasets.registry import DatasetEntry

Parser = Callable[[Mapping[str, Path], "DatasetEntry"], DatasetArrays]
#: Exceptions of the readers below on files that are not what they should be.
PARSE_FAULTS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    OSError,
    NotImplementedError,
    RecursionError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
    scipy.io.matlab.MatReadError,
)


def classes_by_count(labels: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Return labels of any spelling as 0 .. C-1, identified by the number of rows of each class.

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


def target_of_entry(values: np.ndarray, entry: DatasetEntry) -> np.ndarray:
    """Return the target of an entry: classes 0 .. C-1 by their counts, or float64 numbers for regression."""
    if entry.class_counts is None:
        return np.asarray(values, dtype=np.float64).ravel()
    return classes_by_count(values, entry.class_counts)


def _signs_to_classes(labels: np.ndarray) -> np.ndarray:
    labels = np.asarray(labels, dtype=np.float64).ravel()
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise DatasetError("the labels must be -1 and 1")
    return (labels > 0).astype(np.int64)


def orient(data: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return a float32 matrix with samples in rows, transposed if it was stored the other way."""
    data = np.asarray(data)
    if data.shape == shape:
        return data.astype(np.float32)
    if data.shape == shape[::-1]:
        return np.ascontiguousarray(data.T, dtype=np.float32)
    raise DatasetError(f"the table is {' x '.join(map(str, data.shape))}, expected {shape[0]} x {shape[1]}")


def parse_mat(files: Mapping[str, Path], entry: DatasetEntry) -> DatasetArrays:
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
    return DatasetArrays(orient(matrices[0], entry.shape), target_of_entry(vectors[0], entry))


def _zip_members(path: Path) -> dict[str, bytes]:
    """Read the members of a zip archive by their base names: the folders differ between mirrors."""
    with zipfile.ZipFile(path) as archive:
        wanted = [n for n in archive.namelist() if n.endswith((".data", ".labels")) and "_test" not in n]
        return {name.rsplit("/", 1)[-1]: archive.read(name) for name in wanted}


def _challenge_matrix(text: bytes, entry: DatasetEntry) -> Any:
    if not entry.sparse:
        return np.loadtxt(io.BytesIO(text), dtype=np.float32, ndmin=2)
    from sklearn.datasets import load_svmlight_file  # here, so that listing the datasets need not load scikit-learn

    # "3:29 17:84": the svmlight layout without its labels, so give it some.
    rows = b"\n".join(b"0 " + line for line in text.strip().splitlines())
    matrix, _ = load_svmlight_file(io.BytesIO(rows), n_features=entry.shape[1], zero_based=False, dtype=np.float32)
    return matrix


def parse_challenge(files: Mapping[str, Path], entry: DatasetEntry) -> DatasetArrays:
    """Parse the layout of the NIPS 2003 challenge: ``<name>_train`` and ``<name>_valid``, each ``.data`` and ``.labels``.

    The test part is left out: its labels were never published.
    """
    members: dict[str, bytes] = {}
    for name, path in files.items():
        members.update(_zip_members(path) if path.suffix == ".zip" else {name: path.read_bytes()})
    missing = [
        f"{entry.name}_{part}.{kind}"
        for part in ("train", "valid")
        for kind in ("data", "labels")
        if f"{entry.name}_{part}.{kind}" not in members
    ]
    if missing:
        raise DatasetError(f"the source lacks {', '.join(missing)}")
    blocks = [_challenge_matrix(members[f"{entry.name}_{part}.data"], entry) for part in ("train", "valid")]
    labels = [np.loadtxt(io.BytesIO(members[f"{entry.name}_{part}.labels"])) for part in ("train", "valid")]
    for block, label in zip(blocks, labels, strict=True):
        if block.shape[0] != label.size:
            raise DatasetError(f"there are {block.shape[0]} rows of data for {label.size} labels")
    data = sp.csr_matrix(sp.vstack(blocks)) if entry.sparse else np.vstack(blocks)
    return DatasetArrays(data, _signs_to_classes(np.concatenate(labels)), n_train=blocks[0].shape[0])


def parse_arff(files: Mapping[str, Path], entry: DatasetEntry) -> DatasetArrays:
    """Read a dense ARFF file of numbers with the class -1 / 1 in the last column (OpenML's copy of GINA)."""
    (path,) = files.values()
    header = read_arff_header(path)
    with open(path, "rb") as stream:
        stream.seek(header.data_offset)
        values = np.loadtxt(stream, delimiter=",", comments="%", ndmin=2, encoding="utf-8")
    if values.shape[1] != len(header.names):
        raise DatasetError(f"the rows have {values.shape[1]} cells for {len(header.names)} attributes")
    data = orient(values[:, :-1], entry.shape)
    return _find_split(DatasetArrays(data, _signs_to_classes(values[:, -1]), None, np.array(header.names[:-1])), entry)


def _find_split(table: DatasetArrays, entry: DatasetEntry) -> DatasetArrays:
    """Put the validation rows last; they are identified by their official check-sum, as copies differ in order."""
    if entry.n_train is None:
        return table
    n_valid = entry.shape[0] - entry.n_train
    for start in (entry.n_train, 0):
        rows = np.arange(start, start + n_valid)
        if table.data[rows].sum(dtype=np.float64) == entry.totals[-1]:
            order = np.concatenate([np.setdiff1d(np.arange(entry.shape[0]), rows), rows])
            return DatasetArrays(table.data[order], table.target[order], entry.n_train, table.feature_names)
    warnings.warn(
        f"{entry.title}: this copy mixes the training and the validation rows; it is loaded without a split.",
        stacklevel=2,
    )
    return table


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


def parse_idx(files: Mapping[str, Path], entry: DatasetEntry) -> DatasetArrays:
    """Parse the four files of MNIST or Fashion-MNIST."""
    parts = {}
    for name, path in files.items():
        images = "images" in name
        array = read_idx(path)
        parts[("train" if name.startswith("train") else "test", images)] = (
            array.reshape(array.shape[0], -1) if images else array.astype(np.int64)
        )
    data = np.concatenate([parts[("train", True)], parts[("test", True)]])
    target = np.concatenate([parts[("train", False)], parts[("test", False)]])
    return DatasetArrays(data, target, n_train=parts[("train", True)].shape[0])


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


def parse_cifar(files: Mapping[str, Path], entry: DatasetEntry) -> DatasetArrays:
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
    return DatasetArrays(np.concatenate([i for i, _ in parts]), np.concatenate([y for _, y in parts]), n_train)
