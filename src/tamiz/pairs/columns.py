"""Read a table into columns to be searched: numbers, categories, and groups that count as one column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from tamiz._utils.validation import check_table
from tamiz.core.gates import column_mask, read_groups


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """Checked table.

    Parameters
    ----------
    values : ndarray or csc_array, shape (n_samples, n_inputs)
        The numbers; categorical columns hold codes.
    names : list of str
        One name for each column to be searched; a group has one.
    members : list of ndarray of int
        The inputs that belong to each column.
    is_categorical : ndarray of bool, shape (n_inputs,)
        Which inputs hold codes without an order.
    levels : mapping, default={}
        Names of categories, by name of the column and code.
    """

    values: Any
    names: list[str]
    members: list[np.ndarray]
    is_categorical: np.ndarray
    levels: Mapping[str, Mapping[float, str]] = field(default_factory=dict)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns that are searched."""
        return len(self.names)

    @cached_property
    def first_inputs(self) -> np.ndarray:
        """First input of each column."""
        return np.array([members[0] for members in self.members], dtype=np.int64)

    @cached_property
    def is_single(self) -> np.ndarray:
        """Which columns are one input with an order: no category, no group."""
        return (np.array([len(members) for members in self.members]) == 1) & ~self.is_categorical[self.first_inputs]

    def take(self, rows: np.ndarray) -> ColumnTable:
        """Select some rows."""
        values = sp.csc_array(self.values.tocsr()[rows]) if sp.issparse(self.values) else self.values[rows]
        return replace(self, values=values)

    def column(self, index: int) -> np.ndarray:
        """Inputs of one column as a dense array of shape (n_samples, n_members)."""
        part = self.values[:, self.members[index]]
        return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


def read_columns(X: Any, *, categorical: Any = None, groups: Any = None) -> ColumnTable:
    """Check a table and find out what its columns are.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame, shape (n_samples, n_inputs)
        The table.
    categorical : None, "auto" or sequence of str, int or bool, default=None
        Columns without an order, by name or index, or as a mask; "auto" takes text, boolean and category columns of a
        data frame.
    groups : array-like of shape (n_inputs,) or None, default=None
        Label of the group of each input; inputs of one group are searched as one column.

    Examples
    --------
    >>> table = read_columns([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]], groups=["a", "colour", "colour"])
    >>> table.names, [m.tolist() for m in table.members]
    (['a', 'colour'], [[0], [1, 2]])
    """
    names = [str(name) for name in getattr(X, "columns", ())]
    mask = _categorical_mask(X, categorical, names)
    levels: dict[str, dict[float, str]] = {}
    if mask.any() and names:
        X, levels = _encode_frame(X, mask)
    values = check_table(BaseEstimator(), X, reset=True, accept_sparse=["csc", "csr"], dtype=(np.float64, np.float32))
    if sp.issparse(values):
        if mask.any():
            raise ValueError(
                "categorical= needs a dense table; one-hot columns of a sparse table can be given as groups=."
            )
        values = sp.csc_array(values)
        values.sum_duplicates()
        values.eliminate_zeros()
    names = names or [f"x{index}" for index in range(values.shape[1])]
    numbers, labels = read_groups(groups, len(names), dict(zip(names, range(len(names)))))
    members = members_of(numbers)
    for indices in members:
        if indices.size > 1 and mask[indices].any():
            raise ValueError(
                f"Column {names[indices[0]]!r} is categorical and in a group with others; give one of the two."
            )
    return ColumnTable(values, names if labels is None else labels.tolist(), members, mask, levels)


def members_of(numbers: np.ndarray) -> list[np.ndarray]:
    """List the columns of each group, given the number of the group of each column, from 0 on without gaps.

    Examples
    --------
    >>> [members.tolist() for members in members_of(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    return np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1]) if numbers.size else []


def _categorical_mask(X: Any, categorical: Any, names: list[str]) -> np.ndarray:
    shape = np.shape(X)
    n_inputs = int(shape[1]) if len(shape) == 2 else 0
    if isinstance(categorical, str) and categorical == "auto":
        kinds = [str(getattr(X[name], "dtype", "")).lower() for name in getattr(X, "columns", [])]
        words = ("object", "str", "categor", "enum", "bool")
        return np.array([any(word in kind for word in words) for kind in kinds or [""] * n_inputs], dtype=bool)
    return column_mask(categorical, n_inputs, {name: place for place, name in enumerate(names)} or None, "categorical")


def _encode_frame(X: Any, mask: np.ndarray) -> tuple[Any, dict[str, dict[float, str]]]:
    """Replace categories by codes; return also the names of the codes."""
    import pandas as pd

    columns, levels = {name: np.asarray(X[name]) for name in X.columns}, dict[str, dict[float, str]]()
    for name in [name for name, is_categorical in zip(columns, mask) if is_categorical]:
        values = np.asarray(X[name], dtype=object)
        missing = np.array([value is None or value != value for value in values])
        if missing.any():
            raise ValueError(
                f"Input X contains a missing value in categorical column {str(name)!r} (first in row "
                f"{int(missing.argmax())}). Fill it with a category of its own or drop the row."
            )
        found, codes = np.unique(values.astype(str), return_inverse=True)
        columns[name], levels[str(name)] = codes.astype(np.float64), dict(zip(map(float, codes), found[codes].tolist()))
    return pd.DataFrame(columns), levels
