"""Records of a dataset: the arrays that a parser returns, and the dataset that a user gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class DatasetArrays:
    """Arrays that a parser reads from the files of a source.

    Parameters
    ----------
    data : ndarray or scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Features.
    target : ndarray of shape (n_samples,)
        Classes 0 .. C-1 as int64, or numbers as float64.
    n_train : int or None, default=None
        Number of rows, counted from the first, that are for training; None without a predefined split.
    feature_names : ndarray of str or None, default=None
        Names of the columns, where they are known.
    """

    data: Any
    target: np.ndarray
    n_train: int | None = None
    feature_names: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A loaded dataset.

    Parameters
    ----------
    name : str
        Name in the registry.
    title : str
        Name in the paper.
    data : ndarray or scipy.sparse.csr_matrix of shape (n_samples, n_features)
        float32; uint8 for images, flattened row by row with the colours last.
    target : ndarray of shape (n_samples,)
        int64 classes 0 .. C-1, or float64 for regression.
    feature_names : ndarray of str or None, default=None
        Names of the columns, where they are known.
    target_names : tuple of str or None, default=None
        Names of the classes, where they are known.
    train, test : ndarray of int or None, default=None
        Rows of the predefined split; both None if there is none.
    label : str, default=""
        Empty for the genuine set; otherwise what it is instead, such as "REBUILT" or "SUBSET". Print it.
    image_shape : tuple of int or None, default=None
        (height, width, colours) of an image.
    note : str, default=""
        Difference from the set of the paper.
    task : {"classification", "regression"}, default="classification"
        Kind of target.

    Examples
    --------
    >>> import numpy as np
    >>> dataset = Dataset("toy", "TOY", np.zeros((4, 3), np.float32), np.array([0, 1, 0, 1]), label="SUBSET")
    >>> dataset
    Dataset('TOY (SUBSET)', 4 x 3, 2 classes)
    """

    name: str
    title: str
    data: Any
    target: np.ndarray
    feature_names: np.ndarray | None = None
    target_names: tuple[str, ...] | None = None
    train: np.ndarray | None = None
    test: np.ndarray | None = None
    label: str = ""
    image_shape: tuple[int, int, int] | None = None
    note: str = ""
    task: str = "classification"

    @property
    def display_name(self) -> str:
        """Title with its label, as every table and figure has to print it."""
        return f"{self.title} ({self.label})" if self.label else self.title

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None for regression."""
        return int(np.unique(self.target).size) if self.task == "classification" else None

    def __repr__(self) -> str:
        rows, columns = self.data.shape
        target = f"{self.n_classes} classes" if self.task == "classification" else self.task
        return f"Dataset({self.display_name!r}, {rows} x {columns}, {target})"
