"""Registry of the datasets: what each is, where it comes from, and how to check that it is the right one.

A new dataset is one entry in ``datasets.json``, with the fields of :class:`DatasetEntry`. Where the publisher gives checksums
of the files (the image sets), they are checked. The other publishers give none; there the arrays are checked: shape, rows of
each class, and the sum of the absolute values, which for MADELON and GINA are the official check-sums.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tamiz._utils.names import pick
from tamiz.errors import UnknownDatasetError, UnknownNameError
from tamiz.paper.parsers import PARSERS, Parser


@dataclass(frozen=True)
class RemoteFile:
    """A public file.

    Parameters
    ----------
    name : str
        Name under which the parser finds it.
    urls : tuple of str
        Addresses, in order of preference.
    checksum : str or None, default=None
        ``"md5:<hex>"`` or ``"sha256:<hex>"``, if published.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str | None = None


@dataclass(frozen=True)
class Source:
    """Files that together make a dataset.

    Parameters
    ----------
    title : str
        Name of the publisher.
    files : tuple of RemoteFile
        Files to download.
    parser : callable
        Called with the paths by file name and the entry; returns :class:`~tamiz.paper.parsers.DatasetArrays`.
    size : int or None, default=None
        Bytes of all files, about; None if not known.
    """

    title: str
    files: tuple[RemoteFile, ...]
    parser: Parser
    size: int | None = None


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset of the registry.

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
    sources : tuple of Source, default=()
        Public sources, tried in this order; empty if the dataset exists only as a file.
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
    sources: tuple[Source, ...] = ()
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
        """Title with its label."""
        return f"{self.title} ({self.label})" if self.label else self.title


def _read_entry(name: str, facts: dict[str, Any]) -> DatasetEntry:
    """Make an entry from its facts; lists become tuples."""
    sources = tuple(
        Source(
            source["title"],
            tuple(RemoteFile(file["name"], tuple(file["urls"]), file.get("checksum")) for file in source["files"]),
            PARSERS[source["parser"]],
            source.get("size"),
        )
        for source in facts.pop("sources", ())
    )
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
    return DatasetEntry(name, sources=sources, **values)


_FACTS = json.loads(files("tamiz.paper").joinpath("datasets.json").read_text(encoding="utf-8"))
#: All datasets by name.
REGISTRY: dict[str, DatasetEntry] = {name: _read_entry(name, facts) for name, facts in _FACTS.items()}


def find_entry(name: str) -> DatasetEntry:
    """Return the entry of that name; case, spaces and hyphens do not matter.

    Parameters
    ----------
    name : str
        Name of a dataset.

    Returns
    -------
    DatasetEntry

    Raises
    ------
    UnknownDatasetError
        If there is none; the message suggests the nearest name.

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


def stand_ins(name: str) -> list[DatasetEntry]:
    """Return the datasets that can be loaded, by their own names, in place of another one.

    Examples
    --------
    >>> [entry.name for entry in stand_ins("gisette")]
    ['gisette_rebuilt', 'gisette_genuine_168rows']
    """
    return [entry for entry in REGISTRY.values() if entry.stands_in_for == name]
