"""Load a dataset by its name: from the data home, else from its public sources."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from tamiz._progress import ProgressBar
from tamiz.datasets.cache import cache_path, find_data_home, prepare_folder, read_cached, verify_arrays, write_cached
from tamiz.datasets.dataset import Dataset, DatasetArrays
from tamiz.datasets.download import DownloadSettings
from tamiz.datasets.download import download as download_file
from tamiz.datasets.errors import DatasetError, DownloadError
from tamiz.datasets.parsers import PARSE_FAULTS
from tamiz.datasets.registry import REGISTRY, DatasetEntry, Source, find_entry, stand_ins
from tamiz.datasets.transfer import DownloadProgress


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
        One of :data:`tamiz.datasets.REGISTRY`; case, spaces and hyphens do not matter.
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
    tamiz.datasets.errors.UnknownDatasetError: Unknown dataset 'colonn'. Did you mean 'colon'? ...
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
        task=entry.task,
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
    """Download and parse the files of one source; remove them, except the parts of a broken download."""
    folder = home / ".downloads" / entry.name
    prepare_folder(folder)
    files = {}
    for file in source.files:
        path = folder / file.name
        # Whole files of an interrupted earlier call are reused only if their checksum was checked.
        if not (path.exists() and file.checksum):
            download_file(file.urls, path, checksum=file.checksum, progress=progress, settings=settings)
        files[file.name] = path
    try:
        arrays = source.parser(files, entry)
        verify_arrays(arrays, entry)
    except (DatasetError, *PARSE_FAULTS) as fault:
        _remove_downloads(folder)
        raise DatasetError(f"the download is not {entry.title}: {fault}. It was not kept.") from fault
    _remove_downloads(folder)
    return arrays


def _remove_downloads(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.parent.rmdir()
    except OSError:  # another dataset is under way
        return


@dataclass(frozen=True)
class Listing:
    """Summary of a dataset, as :func:`describe` returns it.

    Parameters
    ----------
    name, title, shape, label, note
        See :class:`~tamiz.datasets.DatasetEntry`.
    n_classes : int or None
        Number of classes; None for regression.
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
    n_classes: int | None
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
