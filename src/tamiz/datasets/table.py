"""Two records: what a parser makes of files (``Table``), and what a user gets (``Dataset``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, labels 0 .. C-1, and how many of the first rows are for training (None: no predefined split)."""

    data: Any
    target: np.ndarray
    n_train: int | None = None
    feature_names: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset, loaded.

    Parameters
    ----------
    name : str
        Its name in the registry.
    title : str
        Its name in the paper.
    data : ndarray or scipy.sparse.csr_matrix, shape (n_samples, n_features)
        float32; uint8 for images, flattened row by row with the colours last.
    target : ndarray of int64, shape (n_samples,)
        Classes 0 .. C-1.
    feature_names : ndarray of str or None
        Names of the columns, where they are known.
    target_names : tuple of str or None
        Names of the classes, where they are known.
    train, test : ndarray of int or None
        The rows of the predefined split; both None if there is none.
    label : str
        Empty for the genuine set; otherwise what it is instead, such as "REBUILT" or "SUBSET". Print it.
    image_shape : tuple of int or None
        (height, width, colours) of an image.
    note : str
        How it differs from the set of the paper.

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

    @property
    def display_name(self) -> str:
        """The title with its label: what every table and figure has to print."""
        return f"{self.title} ({self.label})" if self.label else self.title

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(np.unique(self.target).size)

    def __repr__(self) -> str:
        rows, columns = self.data.shape
        return f"Dataset({self.display_name!r}, {rows} x {columns}, {self.n_classes} classes)"
