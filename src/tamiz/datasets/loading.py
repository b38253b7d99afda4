"""From a name to a dataset: the data home first, then the public sources."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from tamiz.datasets.cache import check_table, file_of, find_data_home, prepare_folder, read_table, write_table
from tamiz.datasets.download import DownloadSettings
from tamiz.datasets.download import download as download_file
from tamiz.datasets.errors import DatasetError, DownloadError
from tamiz.datasets.locking import file_lock
from tamiz.datasets.parsers import PARSE_FAULTS
from tamiz.datasets.progress import Progress, TerminalBar
from tamiz.datasets.registry import REGISTRY, Entry, Source, find_entry, stand_ins
from tamiz.datasets.table import Dataset, Table


def load(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    *,
    progress: Progress | None = None,
    settings: DownloadSettings | None = None,
) -> Dataset:
    """Load a dataset of the paper by its name.

    Parameters
    ----------
    name : str
        One of :data:`tamiz.datasets.REGISTRY`.
    data_home : path or None
        Where datasets are kept; None means ``TAMIZ_DATA_HOME``, else ``tamiz`` in the user's cache folder.
    download : bool
        Whether to fetch a set that is not there from its public source. It is then kept in the data home.
    progress : callable or None
        Called with the name of a file, the bytes received and the bytes in all. None draws a bar on stderr if that is a
        terminal and the download takes longer than two seconds.
    settings : DownloadSettings or None
        Timeouts and retries.

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
        If it is not there and cannot be had, or the file is damaged. A set is never replaced by a stand-in: the message
        names those that are there.

    Examples
    --------
    >>> load("colonn")
    Traceback (most recent call last):
    tamiz.datasets.errors.UnknownDatasetError: There is no dataset 'colonn'. Did you mean 'colon'? ...
    >>> colon = load("colon")  # doctest: +SKIP
    >>> colon  # doctest: +SKIP
    Dataset('COLON', 62 x 2000, 2 classes)
    """
    entry = find_entry(name)
    home = find_data_home(data_home)
    if file_of(entry, home).exists():
        return _as_dataset(read_table(entry, home), entry)
    if not entry.sources:
        raise DatasetError(
            f"{entry.title} ({entry.label}) exists only as a file: put {entry.name}.npz into {home}, or into the "
            "folder that TAMIZ_DATA_HOME names."
        )
    if not download:
        raise DatasetError(
            f"{file_of(entry, home)} is not there, and downloads are off. Load with download=True to fetch it from "
            f"{entry.sources[0].title}.{_stand_in_hint(entry, home)}"
        )
    return _as_dataset(fetch(entry, home, progress=progress, settings=settings), entry)


def _stand_in_hint(entry: Entry, home: Path) -> str:
    there = [repr(other.name) for other in stand_ins(entry.name) if file_of(other, home).exists()]
    return f" In its place you can ask for {' or '.join(there)} by name, which is there." if there else ""


def _as_dataset(table: Table, entry: Entry) -> Dataset:
    rows = np.arange(entry.shape[0])
    train, test = (None, None) if table.n_train is None else (rows[: table.n_train], rows[table.n_train :])
    return Dataset(
        name=entry.name,
        title=entry.title,
        data=table.data,
        target=table.target,
        feature_names=table.feature_names,
        target_names=entry.target_names,
        train=train,
        test=test,
        label=entry.label,
        image_shape=entry.image_shape,
        note=entry.note,
    )


def fetch(
    entry: Entry, home: Path, *, progress: Progress | None = None, settings: DownloadSettings | None = None
) -> Table:
    """Download, parse, check and keep a dataset; of several processes one does it, the others wait and read.

    Parameters
    ----------
    entry : Entry
        The dataset.
    home : Path
        The data home; made if need be.
    progress, settings
        See :func:`load`.
    """
    settings = settings or DownloadSettings()
    prepare_folder(home)
    with file_lock(home / f".{entry.name}.lock", settings.lock_timeout):
        if file_of(entry, home).exists():  # another process was faster
            return read_table(entry, home)
        bar = TerminalBar()
        reasons = []
        try:
            for source in entry.sources:
                try:
                    table = _fetch_from(source, entry, home, progress or bar, settings)
                except DatasetError as fault:
                    reasons.append(f"{source.title}: {fault}")
                else:
                    write_table(table, entry, home)
                    return table
        finally:
            bar.close()
    raise DownloadError(f"Could not get {entry.title}.\n" + "\n".join(reasons) + _stand_in_hint(entry, home))


def _fetch_from(source: Source, entry: Entry, home: Path, progress: Progress, settings: DownloadSettings) -> Table:
    """The table from one source. What was fetched is removed, except the parts of a broken download."""
    folder = home / ".downloads" / entry.name
    prepare_folder(folder)
    files = {}
    for file in source.files:
        path = folder / file.name
        # Whole files of an interrupted earlier try are taken as they are only if their checksum was checked.
        if not (path.exists() and file.checksum):
            download_file(file.urls, path, checksum=file.checksum, progress=progress, settings=settings)
        files[file.name] = path
    try:
        table = source.parser(files, entry)
        check_table(table, entry)
    except (DatasetError, *PARSE_FAULTS) as fault:
        _remove_downloads(folder)
        raise DatasetError(f"what came is not {entry.title}: {fault}. It was not kept.") from fault
    _remove_downloads(folder)
    return table


def _remove_downloads(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.parent.rmdir()
    except OSError:  # another dataset is under way
        return


@dataclass(frozen=True)
class Listing:
    """A line of the list of datasets.

    ``origin`` is where a download would come from; ``size`` the bytes of the file in the data home, else about what a
    download would fetch (None if that is not known, or there is nothing to download).
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
    """All datasets: what they are, whether they are in the data home, and what a download would fetch.

    Examples
    --------
    >>> rows = describe("no/such/folder")
    >>> rows[1].name, rows[1].shape, rows[1].in_data_home, rows[1].origin
    ('colon', (62, 2000), False, 'GitHub, braisCB/E2E-FS (raw.githubusercontent.com)')
    """
    home = find_data_home(data_home)
    return [_listing(entry, home) for entry in REGISTRY.values()]


def _listing(entry: Entry, home: Path) -> Listing:
    path = file_of(entry, home)
    there = path.is_file()
    origin = "a file in the data home only"
    if entry.sources:
        source = entry.sources[0]
        origin = f"{source.title} ({urlsplit(source.files[0].urls[0]).hostname})"
    size = path.stat().st_size if there else (entry.sources[0].size if entry.sources else None)
    return Listing(entry.name, entry.title, entry.shape, entry.n_classes, entry.label, origin, there, size, entry.note)
