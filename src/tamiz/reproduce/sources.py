"""Data sets for the cells: loaded once a process, and checked to be those that the run was planned for."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.datasets import load
from tamiz.datasets.registry import find_entry
from tamiz.datasets.table import Dataset


class UnknownNameError(ValueError):
    """A name that is in no list; the message suggests the nearest."""


def pick_name(name: str, known: Sequence[str], kind: str) -> str:
    """The name as the list spells it, whichever case and punctuation; else an error with the nearest one.

    Examples
    --------
    >>> pick_name("Naive F", ["naivef", "svm"], "learner")
    'naivef'
    >>> pick_name("smv", ["naivef", "svm"], "learner")
    Traceback (most recent call last):
    tamiz.reproduce.sources.UnknownNameError: Unknown learner 'smv'. Did you mean 'svm'? There are: naivef, svm.
    """
    spellings = {_plain(one): one for one in known}
    if _plain(name) in spellings:
        return spellings[_plain(name)]
    near = difflib.get_close_matches(_plain(name), spellings, n=1, cutoff=0.4)
    hint = f" Did you mean {spellings[near[0]]!r}?" if near else ""
    raise UnknownNameError(f"Unknown {kind} {name!r}.{hint} There are: {', '.join(known)}.")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter == "+")


def checksum(*arrays: Any) -> str:
    """The hash of some arrays or sparse matrices: values, types and shapes.

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
    """A data set and its check-sum.

    Parameters
    ----------
    name : str
        As in :func:`tamiz.datasets.load`.
    data_home : str or None
        As there.
    expected : str or None
        The check-sum that the run was planned with; another one is an error (a worker with other files).
    """
    dataset = load(find_entry(name).name, data_home)
    found = checksum(dataset.data, dataset.target)
    if expected is not None and found != expected:
        raise ValueError(f"{name} in this data home is not the one that the run was planned with; use the same files.")
    return dataset, found


def nonzero_columns(X: Any) -> np.ndarray:
    """The columns that are not all zero, as the authors keep them.

    Examples
    --------
    >>> nonzero_columns(np.array([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [1]
    """
    if sp.issparse(X):
        return np.flatnonzero(np.asarray((X != 0).sum(axis=0)).ravel())
    return np.flatnonzero((X != 0).any(axis=0))
