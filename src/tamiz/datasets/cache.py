"""Keep datasets in the data home: one npz file per dataset, checked against the registry when it is read."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._files import open_atomic
from tamiz.datasets.dataset import DatasetArrays
from tamiz.datasets.errors import DatasetError, describe_disk_fault
from tamiz.datasets.registry import DatasetEntry

#: float32 values that were rounded on another machine may differ in their last digit; a wrong file differs by far more.
_TOTAL_TOLERANCE = 1e-6


def find_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the datasets: the argument, else ``TAMIZ_DATA_HOME``, else ``tamiz`` in the user's cache folder.

    Examples
    --------
    >>> find_data_home("/data/sets").as_posix()
    '/data/sets'
    """
    if data_home is not None:
        chosen = Path(data_home)
    elif os.environ.get("TAMIZ_DATA_HOME"):
        chosen = Path(os.environ["TAMIZ_DATA_HOME"])
    elif os.environ.get("XDG_CACHE_HOME"):
        chosen = Path(os.environ["XDG_CACHE_HOME"]) / "tamiz"
    elif os.environ.get("LOCALAPPDATA"):  # Windows
        chosen = Path(os.environ["LOCALAPPDATA"]) / "tamiz" / "cache"
    else:
        chosen = Path("~/.cache/tamiz")
    return chosen.expanduser()


def prepare_folder(folder: Path) -> None:
    """Create a folder if need be and check that it can be written to.

    Raises
    ------
    DatasetError
        If it cannot; the message says what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        raise DatasetError(describe_disk_fault(fault, "the dataset", folder)) from fault


def cache_path(entry: DatasetEntry, home: Path) -> Path:
    """Return the file of a dataset in the data home."""
    return home / f"{entry.name}.npz"


def read_cached(entry: DatasetEntry, home: Path) -> DatasetArrays:
    """Read a dataset from the data home and check it.

    Raises
    ------
    DatasetError
        If the file is damaged or holds something else; the message names it, and it is left where it is.
    """
    path = cache_path(entry, home)
    try:
        # Opened here: numpy leaves the file open when it turns out to be no archive.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = _from_npz({key: stored[key] for key in stored.files}, entry)
        verify_arrays(arrays, entry)
    except DatasetError as fault:
        raise DatasetError(f"{path} is not {entry.title}: {fault}. Remove it and load {entry.name!r} again.") from fault
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, KeyError, EOFError, IndexError) as fault:
        raise DatasetError(
            f"{path} is damaged ({type(fault).__name__}: {fault}). Remove it and load {entry.name!r} again."
        ) from fault
    except OSError as fault:
        raise DatasetError(f"{path} cannot be read ({fault.strerror or fault}).") from fault
    return arrays


def _from_npz(stored: dict[str, np.ndarray], entry: DatasetEntry) -> DatasetArrays:
    dtype = np.int64 if entry.task == "classification" else np.float64
    names = stored.get("feature_names")
    if "X_train" in stored:
        data: Any = np.concatenate([stored["X_train"], stored["X_test"]])
        target = np.concatenate([stored["y_train"], stored["y_test"]])
        return DatasetArrays(data, target.astype(dtype), stored["X_train"].shape[0], names)
    if "indptr" in stored:
        pieces = (stored["data"], stored["indices"], stored["indptr"])
        data = sp.csr_matrix(pieces, shape=tuple(int(n) for n in stored["shape"]))
    else:
        data = stored["X"]
    n_train = int(stored["n_train"]) if "n_train" in stored else None
    return DatasetArrays(data, stored["y"].astype(dtype), n_train, names)


def _to_npz(arrays: DatasetArrays, entry: DatasetEntry) -> dict[str, Any]:
    stored: dict[str, Any]
    if entry.image_shape is not None:
        n = arrays.n_train
        stored = {
            "X_train": arrays.data[:n],
            "y_train": arrays.target[:n],
            "X_test": arrays.data[n:],
            "y_test": arrays.target[n:],
        }
    else:
        if sp.issparse(arrays.data):
            csr = arrays.data
            stored = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": np.array(csr.shape)}
        else:
            stored = {"X": arrays.data}
        stored["y"] = arrays.target
        if arrays.n_train is not None:
            stored["n_train"] = np.int64(arrays.n_train)
    if arrays.feature_names is not None:
        stored["feature_names"] = np.asarray(arrays.feature_names, dtype=str)
    return stored


def write_cached(arrays: DatasetArrays, entry: DatasetEntry, home: Path) -> Path:
    """Write a dataset into the data home, whole or not at all, and return its path.

    Raises
    ------
    DatasetError
        If the disk is full or the folder cannot be written to.
    """
    path = cache_path(entry, home)
    try:
        with open_atomic(path) as stream:
            np.savez_compressed(stream, **_to_npz(arrays, entry))
    except OSError as fault:
        raise DatasetError(describe_disk_fault(fault, "the dataset", home)) from fault
    return path


def verify_arrays(arrays: DatasetArrays, entry: DatasetEntry) -> None:
    """Check that arrays are those of a registered dataset.

    Raises
    ------
    DatasetError
        If they are not; the message is a clause that says how they differ.

    Examples
    --------
    >>> from tamiz.datasets.registry import REGISTRY
    >>> verify_arrays(DatasetArrays(np.zeros((2, 3)), np.array([0, 1])), REGISTRY["colon"])
    Traceback (most recent call last):
    tamiz.datasets.errors.DatasetError: it is 2 x 3, expected 62 x 2000
    """
    if tuple(arrays.data.shape) != entry.shape:
        raise DatasetError(
            f"it is {' x '.join(map(str, arrays.data.shape))}, expected {entry.shape[0]} x {entry.shape[1]}"
        )
    if arrays.target.shape != (entry.shape[0],):
        raise DatasetError(f"it has {arrays.target.size} target values for {entry.shape[0]} rows")
    _check_target(arrays.target, entry)
    if arrays.n_train not in (None, entry.n_train) or (arrays.n_train is None and entry.image_shape is not None):
        raise DatasetError(f"it has {arrays.n_train} training rows, expected {entry.n_train}")
    if arrays.feature_names is not None and len(arrays.feature_names) != entry.shape[1]:
        raise DatasetError(f"it has {len(arrays.feature_names)} names for {entry.shape[1]} columns")
    _check_totals(arrays, entry)


def _check_target(target: np.ndarray, entry: DatasetEntry) -> None:
    if entry.class_counts is None:
        _check_total(_absolute_sum(target), entry.target_total, "target values")
        return
    classes, counts = np.unique(target, return_counts=True)
    if classes.tolist() != list(range(len(entry.class_counts))) or counts.tolist() != list(entry.class_counts):
        raise DatasetError(f"its classes have {counts.tolist()} rows, expected {list(entry.class_counts)}")


def _check_totals(arrays: DatasetArrays, entry: DatasetEntry) -> None:
    n_train = arrays.n_train or 0
    split = arrays.n_train is not None
    parts = [arrays.data[:n_train], arrays.data[n_train:]] if split else [arrays.data]
    # Without its split a set that has one can only be checked as a whole, and that only if both parts are known.
    expected = entry.totals if len(entry.totals) == len(parts) else (None,) * len(parts)
    for part, total in zip(parts, expected, strict=True):
        _check_total(_absolute_sum(part), total, "values")


def _check_total(found: float, expected: float | None, what: str) -> None:
    if not np.isfinite(found):
        raise DatasetError(f"its {what} hold NaN or infinity")
    if expected is not None and abs(found - expected) > _TOTAL_TOLERANCE * expected:
        raise DatasetError(f"its absolute {what} sum to {found:.10g}, expected {expected:.10g}")


def _absolute_sum(data: Any, block: int = 4096) -> float:
    """Sum the absolute values in blocks of rows, so that the largest set costs no second copy."""
    values = data.data.reshape(-1, 1) if sp.issparse(data) else data
    blocks = (values[start : start + block] for start in range(0, values.shape[0], block))
    if values.dtype.kind == "u":
        return float(sum(int(rows.sum(dtype=np.uint64)) for rows in blocks))
    return float(sum(np.abs(rows).sum(dtype=np.float64) for rows in blocks))
