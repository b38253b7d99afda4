"""The data home: one npz file a dataset, written whole or not at all, and checked against the registry when read."""

from __future__ import annotations

import errno
import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.datasets.errors import DatasetError
from tamiz.datasets.registry import Entry
from tamiz.datasets.table import Table

#: float32 values that were rounded on another machine may differ in their last digit; a wrong file differs by far more.
_TOTAL_TOLERANCE = 1e-6


def find_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Where datasets are kept: the argument, else ``TAMIZ_DATA_HOME``, else ``tamiz`` in the user's cache folder.

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
    """Make a folder to write into, or say what to do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        raise _no_room(fault, folder) from fault


def _no_room(fault: OSError, folder: Path) -> DatasetError:
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return DatasetError(
            f"The disk is full: the dataset does not fit into {folder}. Make room there, or set TAMIZ_DATA_HOME to a "
            "folder on a larger disk."
        )
    return DatasetError(
        f"Cannot write into {folder} ({fault.strerror or fault}). Set TAMIZ_DATA_HOME to a folder you may write to."
    )


def file_of(entry: Entry, home: Path) -> Path:
    """Where a dataset lies in the data home."""
    return home / f"{entry.name}.npz"


def read_table(entry: Entry, home: Path) -> Table:
    """Read a dataset from the data home, and check that it is the right one.

    Raises
    ------
    DatasetError
        If the file is damaged or holds something else; it is named, and left where it is.
    """
    path = file_of(entry, home)
    try:
        # Opened here: numpy leaves the file open when it turns out to be no archive.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            table = _from_arrays({key: arrays[key] for key in arrays.files})
        check_table(table, entry)
    except DatasetError as fault:
        raise DatasetError(f"{path} is not {entry.title}: {fault}. Remove it and load {entry.name!r} again.") from fault
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, KeyError, EOFError, IndexError) as fault:
        raise DatasetError(
            f"{path} is damaged ({type(fault).__name__}: {fault}). Remove it and load {entry.name!r} again."
        ) from fault
    except OSError as fault:
        raise DatasetError(f"{path} cannot be read ({fault.strerror or fault}).") from fault
    return table


def _from_arrays(arrays: dict[str, np.ndarray]) -> Table:
    names = arrays.get("feature_names")
    if "X_train" in arrays:
        data: Any = np.concatenate([arrays["X_train"], arrays["X_test"]])
        target = np.concatenate([arrays["y_train"], arrays["y_test"]])
        return Table(data, target.astype(np.int64), arrays["X_train"].shape[0], names)
    if "indptr" in arrays:
        pieces = (arrays["data"], arrays["indices"], arrays["indptr"])
        data = sp.csr_matrix(pieces, shape=tuple(int(n) for n in arrays["shape"]))
    else:
        data = arrays["X"]
    n_train = int(arrays["n_train"]) if "n_train" in arrays else None
    return Table(data, arrays["y"].astype(np.int64), n_train, names)


def _to_arrays(table: Table, entry: Entry) -> dict[str, Any]:
    arrays: dict[str, Any]
    if entry.image_shape is not None:
        n = table.n_train
        arrays = {
            "X_train": table.data[:n],
            "y_train": table.target[:n],
            "X_test": table.data[n:],
            "y_test": table.target[n:],
        }
    else:
        if sp.issparse(table.data):
            csr = table.data
            arrays = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": np.array(csr.shape)}
        else:
            arrays = {"X": table.data}
        arrays["y"] = table.target
        if table.n_train is not None:
            arrays["n_train"] = np.int64(table.n_train)
    if table.feature_names is not None:
        arrays["feature_names"] = np.asarray(table.feature_names, dtype=str)
    return arrays


def write_table(table: Table, entry: Entry, home: Path) -> Path:
    """Put a dataset into the data home, in one step: a reader sees the whole file or none."""
    path = file_of(entry, home)
    descriptor, name = tempfile.mkstemp(prefix=f".{entry.name}.", suffix=".tmp", dir=home)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            np.savez_compressed(stream, **_to_arrays(table, entry))
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)  # mkstemp makes files that only their owner may read
        os.replace(name, path)
    except OSError as fault:
        Path(name).unlink(missing_ok=True)
        raise _no_room(fault, home) from fault
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def check_table(table: Table, entry: Entry) -> None:
    """Refuse a table that is not the registered one; the message is a clause that says how it differs.

    Examples
    --------
    >>> from tamiz.datasets.registry import REGISTRY
    >>> check_table(Table(np.zeros((2, 3)), np.array([0, 1])), REGISTRY["colon"])
    Traceback (most recent call last):
    tamiz.datasets.errors.DatasetError: it is 2 x 3, expected 62 x 2000
    """
    if tuple(table.data.shape) != entry.shape:
        raise DatasetError(
            f"it is {' x '.join(map(str, table.data.shape))}, expected {entry.shape[0]} x {entry.shape[1]}"
        )
    if table.target.shape != (entry.shape[0],):
        raise DatasetError(f"it has {table.target.size} labels for {entry.shape[0]} rows")
    classes, counts = np.unique(table.target, return_counts=True)
    if classes.tolist() != list(range(entry.n_classes)) or counts.tolist() != list(entry.class_counts):
        raise DatasetError(f"its classes have {counts.tolist()} rows, expected {list(entry.class_counts)}")
    if table.n_train not in (None, entry.n_train) or (table.n_train is None and entry.image_shape is not None):
        raise DatasetError(f"it has {table.n_train} training rows, expected {entry.n_train}")
    if table.feature_names is not None and len(table.feature_names) != entry.shape[1]:
        raise DatasetError(f"it has {len(table.feature_names)} names for {entry.shape[1]} columns")
    _check_totals(table, entry)


def _check_totals(table: Table, entry: Entry) -> None:
    n_train = table.n_train or 0
    split = table.n_train is not None
    parts = [table.data[:n_train], table.data[n_train:]] if split else [table.data]
    # Without its split a set that has one can only be checked as a whole, and that only if both parts are known.
    expected = entry.totals if len(entry.totals) == len(parts) else (None,) * len(parts)
    for part, total in zip(parts, expected, strict=True):
        found = _absolute_sum(part)
        if not np.isfinite(found):
            raise DatasetError("it holds NaN or infinity")
        if total is not None and abs(found - total) > _TOTAL_TOLERANCE * total:
            raise DatasetError(f"the absolute values sum to {found:.10g}, expected {total:.10g}")


def _absolute_sum(data: Any, block: int = 4096) -> float:
    """In blocks of rows, so that the largest set costs no second copy."""
    values = data.data.reshape(-1, 1) if sp.issparse(data) else data
    blocks = (values[start : start + block] for start in range(0, values.shape[0], block))
    if values.dtype.kind == "u":
        return float(sum(int(rows.sum(dtype=np.uint64)) for rows in blocks))
    return float(sum(np.abs(rows).sum(dtype=np.float64) for rows in blocks))
