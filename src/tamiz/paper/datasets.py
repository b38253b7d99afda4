"""The paper's data sets: a registry in ``datasets.json``, downloads, checks, and the files of the data home.

A new data set is one entry in ``datasets.json``, with the fields of :class:`DatasetEntry`. Where the publisher gives checksums
of the files (the image sets), they are checked. The other publishers give none; there the arrays are checked: shape, rows of
each class, and the sum of the absolute values, which for MADELON and GINA are the official check-sums.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp

from tamiz._utils.files import open_atomic
from tamiz._utils.progress import ProgressBar
from tamiz._utils.text import pick
from tamiz.errors import DatasetError, DownloadError, UnknownDatasetError, UnknownNameError, describe_disk_fault

#: float32 values that were rounded on another machine may differ in their last digit; a wrong file differs by far more.
_TOTAL_TOLERANCE = 1e-6
#: Seconds to wait for another process that downloads the same data set.
LOCK_TIMEOUT = 3600.0


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of the registry.

    Parameters
    ----------
    name : str
        Name to load it by; the file in the data home is ``<name>.npz``.
    title : str
        Name in the paper.
    shape : tuple of int
        (rows, features), all parts together.
    class_counts : tuple of int
        Rows of class 0, 1, ...
    reference : str
        Publication.
    n_train : int or None, default=None
        Number of rows, counted from the first, for training, the others being for testing; None without a predefined
        split.
    sources : sequence of dict, default=()
        Public sources, tried in this order: ``title``, ``parser`` (see :data:`tamiz.paper.parsers.PARSERS`), ``files`` (each with
        ``name``, ``urls`` and where it was published ``checksum``) and ``size`` in bytes, if known. Empty if the data set exists
        only as a file.
    label : str, default=""
        Empty for the genuine set, otherwise what it is instead; printed with every result.
    stands_in_for : str, default=""
        Genuine set in whose place it can be loaded by its own name.
    note : str, default=""
        Difference from the set of the paper.
    totals : tuple of float or None, default=()
        Sum of the absolute values of the training rows and of the other rows, or of all rows without a split.
    sparse : bool, default=False
        Whether the data is a CSR matrix.
    image_shape : tuple of int or None, default=None
        (height, width, colours).
    target_names : tuple of str or None, default=None
        Names of the classes.
    """

    name: str
    title: str
    shape: tuple[int, int]
    class_counts: tuple[int, ...]
    reference: str
    n_train: int | None = None
    sources: Sequence[Mapping[str, Any]] = ()
    label: str = ""
    stands_in_for: str = ""
    note: str = ""
    totals: tuple[float | None, ...] = ()
    sparse: bool = False
    image_shape: tuple[int, int, int] | None = None
    target_names: tuple[str, ...] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_counts)

    @property
    def display_name(self) -> str:
        """Title with its label, as every table and figure has to print it."""
        return f"{self.title} ({self.label})" if self.label else self.title


def read_facts(name: str) -> dict[str, Any]:
    """Read a JSON file of this folder, its lists as tuples.

    Examples
    --------
    >>> read_facts("datasets.json")["colon"]["shape"]
    (62, 2000)
    """
    text = files("tamiz.paper").joinpath(name).read_text(encoding="utf-8")
    return json.loads(
        text, object_hook=lambda facts: {k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()}
    )


#: All data sets by name.
REGISTRY: dict[str, DatasetEntry] = {
    name: DatasetEntry(name, **facts) for name, facts in read_facts("datasets.json").items()
}


def find_entry(name: str) -> DatasetEntry:
    """Look up the entry of a data set; case, spaces and hyphens do not matter.

    Examples
    --------
    >>> find_entry("Fashion-MNIST").shape
    (70000, 784)
    >>> find_entry("leukaemia")
    Traceback (most recent call last):
    tamiz.errors.UnknownDatasetError: Unknown dataset 'leukaemia'. Did you mean 'leukemia'? ...
    """
    try:
        return pick(name, REGISTRY, "dataset")
    except UnknownNameError as fault:
        raise UnknownDatasetError(str(fault)) from None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A loaded data set; attributes of its entry (``name``, ``title``, ``label``, ``image_shape``, ...) are attributes too.

    Parameters
    ----------
    entry : DatasetEntry
        What the registry knows of it. A ``label`` that is not empty tells that this is a stand-in: print it.
    data : ndarray or scipy.sparse.csr_matrix of shape (n_samples, n_features)
        float32; uint8 for images, flattened row by row with the colours last.
    target : ndarray of shape (n_samples,)
        Classes 0 .. C-1, int64.
    n_train : int or None, default=None
        Number of rows, counted from the first, that are for training; None without a predefined split.
    feature_names : ndarray of str or None, default=None
        Names of the columns, where they are known.

    Examples
    --------
    >>> entry = DatasetEntry("toy", "TOY", (4, 3), (2, 2), "nobody", label="SUBSET")
    >>> Dataset(entry, np.zeros((4, 3), np.float32), np.array([0, 1, 0, 1]))
    Dataset('TOY (SUBSET)', 4 x 3, 2 classes)
    """

    entry: DatasetEntry
    data: Any
    target: np.ndarray
    n_train: int | None = None
    feature_names: np.ndarray | None = None

    @property
    def train(self) -> np.ndarray | None:
        """Training rows of the predefined split."""
        return None if self.n_train is None else np.arange(self.n_train)

    @property
    def test(self) -> np.ndarray | None:
        """Test rows of the predefined split."""
        return None if self.n_train is None else np.arange(self.n_train, self.target.size)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "entry":
            raise AttributeError(name)
        return getattr(self.entry, name)

    def __repr__(self) -> str:
        rows, columns = self.data.shape
        return f"Dataset({self.display_name!r}, {rows} x {columns}, {self.n_classes} classes)"


def find_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Find the folder of the data sets: the argument, else ``TAMIZ_DATA_HOME``, else ``tamiz`` in the user's cache folder.

    Examples
    --------
    >>> find_data_home("/data/sets").as_posix()
    '/data/sets'
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"  # the second: Windows
    chosen = data_home if data_home is not None else os.environ.get("TAMIZ_DATA_HOME") or Path(cache, "tamiz")
    return Path(chosen).expanduser()


def cache_path(entry: DatasetEntry, home: Path) -> Path:
    """File of a data set in the data home."""
    return home / f"{entry.name}.npz"


def read_cached(entry: DatasetEntry, home: Path) -> Dataset:
    """Read a data set from the data home and check it; a damaged file is named in a DatasetError and left where it is."""
    path = cache_path(entry, home)
    try:
        # Opened here: numpy leaves the file open when it turns out to be no archive.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        n_train = int(arrays["n_train"]) if "n_train" in arrays else None
        if "X_train" in arrays:
            n_train = arrays["X_train"].shape[0]
            data: Any = np.concatenate([arrays["X_train"], arrays["X_test"]])
            target = np.concatenate([arrays["y_train"], arrays["y_test"]])
        elif "indptr" in arrays:
            pieces = (arrays["data"], arrays["indices"], arrays["indptr"])
            data, target = sp.csr_matrix(pieces, shape=tuple(int(n) for n in arrays["shape"])), arrays["y"]
        else:
            data, target = arrays["X"], arrays["y"]
        dataset = Dataset(entry, data, target.astype(np.int64), n_train, arrays.get("feature_names"))
        verify(dataset)
    except DatasetError as fault:
        raise DatasetError(f"{path} is not {entry.title}: {fault}. Remove it and load {entry.name!r} again.") from fault
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, KeyError, EOFError, IndexError) as fault:
        raise DatasetError(
            f"{path} is damaged ({type(fault).__name__}: {fault}). Remove it and load {entry.name!r} again."
        ) from fault
    except OSError as fault:
        raise DatasetError(f"{path} cannot be read ({fault.strerror or fault}).") from fault
    return dataset


def write_cached(dataset: Dataset, home: Path) -> Path:
    """Write a data set into the data home, whole or not at all; DatasetError if the disk is full or cannot be written."""
    data = dataset.data
    stored = {"X": data}
    if sp.issparse(data):
        stored = {"data": data.data, "indices": data.indices, "indptr": data.indptr, "shape": np.array(data.shape)}
    if dataset.n_train is not None:
        stored["n_train"] = np.int64(dataset.n_train)
    if dataset.feature_names is not None:
        stored["feature_names"] = np.asarray(dataset.feature_names, dtype=str)
    path = cache_path(dataset.entry, home)
    with open_atomic(path) as stream:
        np.savez_compressed(stream, y=dataset.target, **stored)
    return path


def verify(dataset: Dataset) -> None:
    """Check that a data set is the registered one; the message of the DatasetError is a clause on how it differs.

    Examples
    --------
    >>> verify(Dataset(REGISTRY["colon"], np.zeros((2, 3)), np.array([0, 1])))
    Traceback (most recent call last):
    tamiz.errors.DatasetError: it is 2 x 3, expected 62 x 2000
    """
    entry, data, n_train = dataset.entry, dataset.data, dataset.n_train
    if tuple(data.shape) != entry.shape:
        raise DatasetError(f"it is {' x '.join(map(str, data.shape))}, expected {entry.shape[0]} x {entry.shape[1]}")
    if dataset.target.shape != (entry.shape[0],):
        raise DatasetError(f"it has {dataset.target.size} target values for {entry.shape[0]} rows")
    classes, counts = np.unique(dataset.target, return_counts=True)
    if classes.tolist() != list(range(entry.n_classes)) or counts.tolist() != list(entry.class_counts):
        raise DatasetError(f"its classes have {counts.tolist()} rows, expected {list(entry.class_counts)}")
    if n_train not in (None, entry.n_train) or (n_train is None and entry.image_shape is not None):
        raise DatasetError(f"it has {n_train} training rows, expected {entry.n_train}")
    if dataset.feature_names is not None and len(dataset.feature_names) != entry.shape[1]:
        raise DatasetError(f"it has {len(dataset.feature_names)} names for {entry.shape[1]} columns")
    parts = [data] if n_train is None else [data[:n_train], data[n_train:]]
    # Without its split a set that has one can only be checked as a whole, and that only if both parts are known.
    expected = entry.totals if len(entry.totals) == len(parts) else (None,) * len(parts)
    for part, total in zip(parts, expected, strict=True):
        values = part.data.reshape(-1, 1) if sp.issparse(part) else part
        # In blocks of rows, so that the largest set costs no second copy.
        found = float(sum(np.abs(values[at : at + 4096]).sum(dtype=np.float64) for at in range(0, len(values), 4096)))
        if not np.isfinite(found):
            raise DatasetError("its values hold NaN or infinity")
        if total is not None and abs(found - total) > _TOTAL_TOLERANCE * total:
            raise DatasetError(f"its absolute values sum to {found:.10g}, expected {total:.10g}")


def load_dataset(
    name: str, data_home: str | os.PathLike[str] | None = None, download: bool = True, *, progress: Any = None
) -> Dataset:
    """Load a data set of the paper by its name.

    Parameters
    ----------
    name : str
        One of :data:`tamiz.paper.REGISTRY`; case, spaces and hyphens do not matter.
    data_home : path or None, default=None
        Folder of the data sets; None means ``TAMIZ_DATA_HOME``, else ``tamiz`` in the user's cache folder.
    download : bool, default=True
        Whether to download a data set that is not in the data home. It is then kept there.
    progress : callable or None, default=None
        Called with the name of a file, the bytes received and the bytes in all (None if not known). None draws a bar on stderr
        if that is a terminal and the download takes longer than two seconds.

    Returns
    -------
    Dataset

    Raises
    ------
    UnknownDatasetError
        If there is no data set of that name; the nearest is suggested.
    DatasetError
        If it is neither in the data home nor available from a source, or the file is damaged. A data set is never
        replaced by a stand-in: the message names those that are in the data home.

    Examples
    --------
    >>> load_dataset("colonn")
    Traceback (most recent call last):
    tamiz.errors.UnknownDatasetError: Unknown dataset 'colonn'. Did you mean 'colon'? ...
    >>> load_dataset("colon")  # doctest: +SKIP
    Dataset('COLON', 62 x 2000, 2 classes)
    """
    entry, home = find_entry(name), find_data_home(data_home)
    path = cache_path(entry, home)
    if path.exists():
        return read_cached(entry, home)
    if not entry.sources:
        raise DatasetError(
            f"{entry.display_name} has no public source: put {entry.name}.npz into {home}, or into the folder that "
            "TAMIZ_DATA_HOME names."
        )
    if not download:
        raise DatasetError(
            f"{path} does not exist, and downloads are off. Load with download=True to download it "
            f"from {entry.sources[0]['title']}.{_stand_in_hint(entry, home)}"
        )
    return fetch(entry, home, progress)


def _stand_in_hint(entry: DatasetEntry, home: Path) -> str:
    others = [other for other in REGISTRY.values() if other.stands_in_for == entry.name]
    available = [repr(other.name) for other in others if cache_path(other, home).exists()]
    return f" In its place you can load {' or '.join(available)}, which is in the data home." if available else ""


def fetch(entry: DatasetEntry, home: Path, progress: Any = None) -> Dataset:
    """Download, parse, check and keep a data set; of several processes one does it, the others wait and read.

    Raises
    ------
    DownloadError
        If no source has the data set; the message says why for each.
    """
    from filelock import FileLock, Timeout  # here: only a download needs it

    bar = ProgressBar("", unit="bytes", only_terminal=True)

    def draw(name: str, received: int, total: int | None) -> None:
        if name != bar.label:
            bar.begin(name, received)
        bar.update(received, total)

    reasons = []
    path = home / f".{entry.name}.lock"  # stays behind, empty: removing it would let two processes hold the lock
    try:
        home.mkdir(parents=True, exist_ok=True)
        # The operating system frees the lock if its owner is killed.
        with FileLock(path, timeout=LOCK_TIMEOUT):
            if cache_path(entry, home).exists():  # another process was faster
                return read_cached(entry, home)
            for source in entry.sources:
                try:
                    dataset = _fetch_from(source, entry, home, progress or draw)
                    write_cached(dataset, home)
                    return dataset
                except DatasetError as fault:
                    reasons.append(f"{source['title']}: {fault}")
    except Timeout as fault:
        raise DatasetError(
            f"Another process has held the lock {path} for more than {LOCK_TIMEOUT:g} s. Wait until it has finished its "
            "download, or end it, which frees the lock."
        ) from fault
    except OSError as fault:
        raise DatasetError(describe_disk_fault(fault, "the dataset", home)) from fault
    finally:
        bar.close()
    raise DownloadError(f"Could not get {entry.title}.\n" + "\n".join(reasons) + _stand_in_hint(entry, home))


def _fetch_from(source: Mapping[str, Any], entry: DatasetEntry, home: Path, progress: Any) -> Dataset:
    """Download, parse and check the files of one source."""
    from tamiz.paper.download import download
    from tamiz.paper.parsers import PARSERS

    with tempfile.TemporaryDirectory(prefix=f".{entry.name}.", dir=home, ignore_cleanup_errors=True) as folder:
        paths = {file["name"]: Path(folder) / file["name"] for file in source["files"]}
        for file in source["files"]:
            download(file["urls"], paths[file["name"]], checksum=file.get("checksum"), progress=progress)
        try:
            dataset = PARSERS[source["parser"]](paths, entry)
            verify(dataset)
        except Exception as fault:  # of any kind: a reader raises what a broken file leads it to
            raise DatasetError(f"the download is not {entry.title}: {fault}. It was not kept.") from fault
    return dataset


def describe(data_home: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """List all data sets: what they are, whether they are in the data home, and what a download would fetch.

    Parameters
    ----------
    data_home : path or None, default=None
        As in :func:`load_dataset`.

    Returns
    -------
    list of dict
        ``name``, ``title``, ``shape``, ``n_classes``, ``label`` and ``note`` of the entry; ``origin`` of a download;
        ``in_data_home``; ``size``, the bytes of the file in the data home, else about those of a download, if known.

    Examples
    --------
    >>> row = describe("no/such/folder")[1]
    >>> row["name"], row["shape"], row["in_data_home"], row["origin"]
    ('colon', (62, 2000), False, 'GitHub, braisCB/E2E-FS (raw.githubusercontent.com)')
    """
    home, rows = find_data_home(data_home), []
    for entry in REGISTRY.values():
        path, source = cache_path(entry, home), next(iter(entry.sources), None)
        origin, size = "a file in the data home only", None
        if source is not None:
            origin = f"{source['title']} ({urlsplit(source['files'][0]['urls'][0]).hostname})"
            size = source.get("size")
        present = path.is_file()
        facts = {key: getattr(entry, key) for key in ("name", "title", "shape", "n_classes", "label", "note")}
        size = path.stat().st_size if present else size
        rows.append({**facts, "origin": origin, "in_data_home": present, "size": size})
    return rows
