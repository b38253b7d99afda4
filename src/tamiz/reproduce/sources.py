"""Data sets for the cells: loaded once per process, and checked to be those that the run was planned with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.datasets import load_dataset
from tamiz.datasets.dataset import Dataset
from tamiz.datasets.registry import find_entry


def checksum(*arrays: Any) -> str:
    """Return a hash of arrays or sparse matrices: values, types and shapes.

    Examples
    --------
    >>> checksum(np.zeros(2)) == checksum(np.zeros(2)) != checksum(np.zeros(2, dtype=np.float32))
    True
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{type(array).__name__}{array.shape}{array.dtype}".encode())
        pieces = (array.data, array.indices, array.indptr) if sp.issparse(array) else (array,)
        for piece in pieces:
            digest.update(np.ascontiguousarray(piece).view(np.uint8).data)
    return digest.hexdigest()[:32]


@lru_cache(maxsize=4)
def load_checked(name: str, data_home: str | None, expected: str | None = None) -> tuple[Dataset, str]:
    """Load a data set; return it with its checksum.

    Parameters
    ----------
    name : str
        As in :func:`tamiz.datasets.load_dataset`.
    data_home : str or None
        As there.
    expected : str or None, default=None
        Checksum that the run was planned with.

    Raises
    ------
    ValueError
        If the checksum is another one: a worker with other files.
    """
    dataset = load_dataset(find_entry(name).name, data_home)
    found = checksum(dataset.data, dataset.target)
    if expected is not None and found != expected:
        raise ValueError(f"{name} in this data home is not the one that the run was planned with; use the same files.")
    return dataset, found


def nonzero_columns(X: Any) -> np.ndarray:
    """Return the columns that are not all zero; the authors keep only these.

    Examples
    --------
    >>> nonzero_columns(np.array([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [1]
    """
    if sp.issparse(X):
        return np.flatnonzero(np.asarray((X != 0).sum(axis=0)).ravel())
    return np.flatnonzero((X != 0).any(axis=0))


def pick_datasets(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of data sets as the registry spells them, none twice.

    Examples
    --------
    >>> pick_datasets(["COLON", "colon"])
    ('colon',)
    """
    return tuple(dict.fromkeys(find_entry(name).name for name in names))


def display_name(dataset: str) -> str:
    """Return the title of a data set with its label: a stand-in is always called one.

    Examples
    --------
    >>> display_name("gina_rebuilt"), display_name("leukemia_3571")
    ('GINA (REBUILT)', 'LEUKEMIA (3571 genes)')
    """
    entry = find_entry(dataset)
    if dataset == "leukemia_3571":
        return "LEUKEMIA (3571 genes)"
    return f"{entry.title} ({entry.label})" if entry.label else entry.title
