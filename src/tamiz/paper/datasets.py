"""Load the paper's data sets by name."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp

from tamiz._utils.files import open_atomic
from tamiz._utils.progress import ProgressBar
from tamiz.errors import DatasetError, DownloadError, describe_disk_fault
from tamiz.paper.dataset_registry import REGISTRY, DatasetEntry, Source, find_entry, stand_ins
from tamiz.paper.download import DownloadProgress, DownloadSettings
from tamiz.paper.download import download as download_file
from tamiz.paper.parsers import PARSE_FAULTS, Dataset, DatasetArrays

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
    names = stored.get("feature_names")
    if "X_train" in stored:
        data: Any = np.concatenate([stored["X_train"], stored["X_test"]])
        target = np.concatenate([stored["y_train"], stored["y_test"]])
        return DatasetArrays(data, target.astype(np.int64), stored["X_train"].shape[0], names)
    if "indptr" in stored:
        pieces = (stored["data"], stored["indices"], stored["indptr"])
        data = sp.csr_matrix(pieces, shape=tuple(int(n) for n in stored["shape"]))
    else:
        data = stored["X"]
    n_train = int(stored["n_train"]) if "n_train" in stored else None
    return DatasetArrays(data, stored["y"].astype(np.int64), n_train, names)


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
    >>> from tamiz.paper.dataset_registry import REGISTRY
    >>> verify_arrays(DatasetArrays(np.zeros((2, 3)), np.array([0, 1])), REGISTRY["colon"])
    Traceback (most recent call last):
    tamiz.errors.DatasetError: it is 2 x 3, expected 62 x 2000
    """
    if tuple(arrays.data.shape) != entry.shape:
        raise DatasetError(
            f"it is {' x '.join(map(str, arrays.data.shape))}, expected {entry.shape[0]} x {entry.shape[1]}"
        )
    if arrays.target.shape != (entry.shape[0],):
        raise DatasetError(f"it has {arrays.target.size} target values for {entry.shape[0]} rows")
    classes, counts = np.unique(arrays.target, return_counts=True)
    if classes.tolist() != list(range(len(entry.class_counts))) or counts.tolist() != list(entry.class_counts):
        raise DatasetError(f"its classes have {counts.tolist()} rows, expected {list(entry.class_counts)}")
    if arrays.n_train not in (None, entry.n_train) or (arrays.n_train is None and entry.image_shape is not None):
        raise DatasetError(f"it has {arrays.n_train} training rows, expected {entry.n_train}")
    if arrays.feature_names is not None and len(arrays.feature_names) != entry.shape[1]:
        raise DatasetError(f"it has {len(arrays.feature_names)} names for {entry.shape[1]} columns")
    _check_totals(arrays, entry)


def _check_totals(arrays: DatasetArrays, entry: DatasetEntry) -> None:
    n_train = arrays.n_train
    parts = [arrays.data] if n_train is None else [arrays.data[:n_train], arrays.data[n_train:]]
    # Without its split a set that has one can only be checked as a whole, and that only if both parts are known.
    expected = entry.totals if len(entry.totals) == len(parts) else (None,) * len(parts)
    for part, total in zip(parts, expected, strict=True):
        found = _absolute_sum(part)
        if not np.isfinite(found):
            raise DatasetError("its values hold NaN or infinity")
        if total is not None and abs(found - total) > _TOTAL_TOLERANCE * total:
            raise DatasetError(f"its absolute values sum to {found:.10g}, expected {total:.10g}")


def _absolute_sum(data: Any, block: int = 4096) -> float:
    """Sum the absolute values in blocks of rows, so that the largest set costs no second copy."""
    values = data.data.reshape(-1, 1) if sp.issparse(data) else data
    blocks = (values[start : start + block] for start in range(0, values.shape[0], block))
    if values.dtype.kind == "u":
        return float(sum(int(rows.sum(dtype=np.uint64)) for rows in blocks))
    return float(sum(np.abs(rows).sum(dtype=np.float64) for rows in blocks))


def load_dataset(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    *,
    progress: DownloadProgress | None = None,
    settings: DownloadSettings | None = None,
) -> Dataset:
    """Load a dataset of the paper by its name.

    Parameters
    ----------
    name : str
        One of :data:`tamiz.paper.REGISTRY`; case, spaces and hyphens do not matter.
    data_home : path or None, default=None
        Folder of the datasets; None means ``TAMIZ_DATA_HOME``, else ``tamiz`` in the user's cache folder.
    download : bool, default=True
        Whether to download a dataset that is not in the data home. It is then kept there.
    progress : callable or None, default=None
        Called with the name of a file, the bytes received and the bytes in all. None draws a bar on stderr if that is a
        terminal and the download takes longer than two seconds.
    settings : DownloadSettings or None, default=None
        Timeouts and retries; None uses the defaults.

    Returns
    -------
    Dataset
        With ``data``, ``target``, ``feature_names``, ``target_names``, the predefined split ``train`` and ``test``, and
        ``label``, which is not empty if this is a stand-in for the genuine set.

    Raises
    ------
    UnknownDatasetError
        If there is no dataset of that name; the nearest is suggested.
    DatasetError
        If it is neither in the data home nor available from a source, or the file is damaged. A dataset is never
        replaced by a stand-in: the message names those that are in the data home.

    Examples
    --------
    >>> load_dataset("colonn")
    Traceback (most recent call last):
    tamiz.errors.UnknownDatasetError: Unknown dataset 'colonn'. Did you mean 'colon'? ...
    >>> colon = load_dataset("colon")  # doctest: +SKIP
    >>> colon  # doctest: +SKIP
    Dataset('COLON', 62 x 2000, 2 classes)
    """
    entry = find_entry(name)
    home = find_data_home(data_home)
    if cache_path(entry, home).exists():
        return _as_dataset(read_cached(entry, home), entry)
    if not entry.sources:
        raise DatasetError(
            f"{entry.display_name} has no public source: put {entry.name}.npz into {home}, or into the folder that "
            "TAMIZ_DATA_HOME names."
        )
    if not download:
        raise DatasetError(
            f"{cache_path(entry, home)} does not exist, and downloads are off. Load with download=True to download it "
            f"from {entry.sources[0].title}.{_stand_in_hint(entry, home)}"
        )
    return _as_dataset(fetch(entry, home, progress=progress, settings=settings), entry)


def _stand_in_hint(entry: DatasetEntry, home: Path) -> str:
    available = [repr(other.name) for other in stand_ins(entry.name) if cache_path(other, home).exists()]
    return f" In its place you can load {' or '.join(available)}, which is in the data home." if available else ""


def _as_dataset(arrays: DatasetArrays, entry: DatasetEntry) -> Dataset:
    rows = np.arange(entry.shape[0])
    train, test = (None, None) if arrays.n_train is None else (rows[: arrays.n_train], rows[arrays.n_train :])
    return Dataset(
        name=entry.name,
        title=entry.title,
        data=arrays.data,
        target=arrays.target,
        feature_names=arrays.feature_names,
        target_names=entry.target_names,
        train=train,
        test=test,
        label=entry.label,
        image_shape=entry.image_shape,
        note=entry.note,
    )


def fetch(
    entry: DatasetEntry,
    home: Path,
    *,
    progress: DownloadProgress | None = None,
    settings: DownloadSettings | None = None,
) -> DatasetArrays:
    """Download, parse, check and keep a dataset; of several processes one does it, the others wait and read.

    Parameters
    ----------
    entry : DatasetEntry
        Dataset to download.
    home : Path
        Data home; created if need be.
    progress, settings
        See :func:`load_dataset`.

    Returns
    -------
    DatasetArrays

    Raises
    ------
    DownloadError
        If no source has the dataset; the message says why for each.
    """
    settings = settings or DownloadSettings()
    prepare_folder(home)
    with _download_lock(entry, home, settings.lock_timeout):
        if cache_path(entry, home).exists():  # another process was faster
            return read_cached(entry, home)
        bar = ProgressBar("", unit="bytes", only_terminal=True)
        reasons = []
        try:
            for source in entry.sources:
                try:
                    arrays = _fetch_from(source, entry, home, progress or _draw_on(bar), settings)
                except DatasetError as fault:
                    reasons.append(f"{source.title}: {fault}")
                else:
                    write_cached(arrays, entry, home)
                    return arrays
        finally:
            bar.close()
    raise DownloadError(f"Could not get {entry.title}.\n" + "\n".join(reasons) + _stand_in_hint(entry, home))


def _draw_on(bar: ProgressBar) -> DownloadProgress:
    """Return a callable that draws downloads on a bar, each file on a line of its own."""

    def draw(name: str, received: int, total: int | None) -> None:
        if name != bar.label:
            bar.begin(name, received)
        bar.update(received, total)

    return draw


@contextmanager
def _download_lock(entry: DatasetEntry, home: Path, timeout: float) -> Iterator[None]:
    """Hold the lock of a dataset between processes; the operating system frees it if its owner is killed."""
    from filelock import FileLock, Timeout  # here: only a download needs it

    path = home / f".{entry.name}.lock"  # stays behind, empty: removing it would let two processes hold the lock
    try:
        with FileLock(path, timeout=timeout):
            yield
    except Timeout as fault:
        raise DatasetError(
            f"Another process has held the lock {path} for more than {timeout:g} s. Wait until it has finished its "
            "download, or end it, which frees the lock."
        ) from fault


def _fetch_from(
    source: Source, entry: DatasetEntry, home: Path, progress: DownloadProgress, settings: DownloadSettings
) -> DatasetArrays:
    """Download, parse and check the files of one source."""
    with tempfile.TemporaryDirectory(prefix=f".{entry.name}.", dir=home, ignore_cleanup_errors=True) as folder:
        files = {file.name: Path(folder) / file.name for file in source.files}
        for file in source.files:
            download_file(file.urls, files[file.name], checksum=file.checksum, progress=progress, settings=settings)
        try:
            arrays = source.parser(files, entry)
            verify_arrays(arrays, entry)
        except (DatasetError, *PARSE_FAULTS) as fault:
            raise DatasetError(f"the download is not {entry.title}: {fault}. It was not kept.") from fault
    return arrays


@dataclass(frozen=True)
class Listing:
    """ProtocolSummary of a dataset, as :func:`describe` returns it.

    Parameters
    ----------
    name, title, shape, label, note
        See :class:`~tamiz.paper.DatasetEntry`.
    n_classes : int
        Number of classes.
    origin : str
        Where a download would come from.
    in_data_home : bool
        Whether the dataset is in the data home.
    size : int or None
        Bytes of the file in the data home, else about the bytes of a download; None if that is not known or there is
        nothing to download.
    """

    name: str
    title: str
    shape: tuple[int, int]
    n_classes: int
    label: str
    origin: str
    in_data_home: bool
    size: int | None
    note: str


def describe(data_home: str | os.PathLike[str] | None = None) -> list[Listing]:
    """List all datasets: what they are, whether they are in the data home, and what a download would fetch.

    Parameters
    ----------
    data_home : path or None, default=None
        As in :func:`load_dataset`.

    Returns
    -------
    list of Listing

    Examples
    --------
    >>> rows = describe("no/such/folder")
    >>> rows[1].name, rows[1].shape, rows[1].in_data_home, rows[1].origin
    ('colon', (62, 2000), False, 'GitHub, braisCB/E2E-FS (raw.githubusercontent.com)')
    """
    home = find_data_home(data_home)
    return [_listing(entry, home) for entry in REGISTRY.values()]


def _listing(entry: DatasetEntry, home: Path) -> Listing:
    path = cache_path(entry, home)
    present = path.is_file()
    origin = "a file in the data home only"
    if entry.sources:
        source = entry.sources[0]
        origin = f"{source.title} ({urlsplit(source.files[0].urls[0]).hostname})"
    size = path.stat().st_size if present else (entry.sources[0].size if entry.sources else None)
    return Listing(
        entry.name, entry.title, entry.shape, entry.n_classes, entry.label, origin, present, size, entry.note
    )
