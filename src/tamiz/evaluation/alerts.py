"""Checks of a table and of what was kept, for what makes scores look better than they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Fewer rows are too few to tell a running number from a measurement.
_LEAST_ROWS = 20
#: A smaller share of rows that are copies changes no score that one could see.
_LEAST_SHARE_OF_COPIES = 0.01
#: Cells that are looked at; of larger tables the first rows.
_MOST_CELLS = 20_000_000


def count_copies(X: Any, y: Any) -> int:
    """Return how many rows are copies of an earlier row, features and target alike.

    Columns of few values make equal rows by chance; where that is likely, none are counted.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> count_copies(np.vstack([X, X[:5]]), np.zeros(35)), count_copies(np.zeros((40, 2)), np.zeros(40))
    (5, 0)
    """
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        rows = [X.data[a:b].tobytes() + X.indices[a:b].tobytes() for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
        distinct = None
    else:
        X = np.ascontiguousarray(X)
        rows = [row.tobytes() for row in X]
        distinct = np.array([np.unique(X[:, j]).size for j in range(min(X.shape[1], 200))])
    seen = {row + repr(target).encode() for row, target in zip(rows, np.asarray(y).tolist(), strict=True)}
    copies = len(rows) - len(seen)
    if copies and distinct is not None and np.log(distinct).sum() < np.log(10.0 * len(rows) ** 2):
        return 0
    return copies


def find_identifiers(X: Any) -> dict[int, str]:
    """Return columns that look like a running number or an identifier, and which of the two.

    A running number goes up (or down) by the same step from row to row. An identifier is a different whole number in every
    row.

    Examples
    --------
    >>> X = np.column_stack([np.arange(30), np.random.default_rng(0).permutation(1000)[:30], np.linspace(0, 1, 30) ** 2])
    >>> find_identifiers(X)
    {0: 'a running number', 1: 'an identifier'}
    """
    if sp.issparse(X) or X.shape[0] < _LEAST_ROWS:
        return {}
    found = {}
    for j in range(X.shape[1]):
        column = np.asarray(X[:, j], dtype=np.float64)
        if not np.all(np.isfinite(column)) or np.any(column != np.round(column)):
            continue
        steps = np.diff(column)
        if steps[0] != 0 and np.all(steps == steps[0]):
            found[j] = "a running number"
        elif np.unique(column).size == column.size:
            found[j] = "an identifier"
    return found


def describe_table_risks(X: Any, y: Any, names: Sequence[str]) -> list[str]:
    """Return a warning for duplicate rows and for each kind of suspicious column, with numbers.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Table as the selector sees it.
    y : array-like
        Target.
    names : sequence of str
        Names of the columns.

    Examples
    --------
    >>> X = np.column_stack([np.arange(30.0), np.random.default_rng(0).normal(size=30)])
    >>> describe_table_risks(X, np.zeros(30), ["id", "x"])[0]
    "Column 'id' looks like a running number: leave it out unless it measures something."
    """
    n_rows = min(X.shape[0], max(1, _MOST_CELLS // max(1, X.shape[1])))
    part, target = X[:n_rows], np.asarray(y)[:n_rows]
    messages = []
    copies = count_copies(part, target)
    if copies and copies >= _LEAST_SHARE_OF_COPIES * n_rows:
        messages.append(
            f"{copies:,} of {n_rows:,} rows are copies of other rows. Copies in the training and the test part of a fold "
            "make the score too good: remove them, or keep them together with `groups`."
        )
    for kind in ("a running number", "an identifier"):
        columns = [names[j] for j, found in find_identifiers(part).items() if found == kind]
        if columns:
            messages.append(f"{_list(columns)} {kind}: leave it out unless it measures something.")
    return messages


def describe_selection_risks(
    support: np.ndarray, fold_share: np.ndarray | None, X: Any, names: Sequence[str]
) -> list[str]:
    """Return a warning for kept columns that few folds kept, and for constant ones that were kept.

    Parameters
    ----------
    support : ndarray of bool
        Columns that were kept.
    fold_share : ndarray of float or None
        Share of the folds that kept each column.
    X : ndarray or sparse matrix
        Table.
    names : sequence of str
        Names of the columns.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [2.0, 5.0]])
    >>> describe_selection_risks(np.array([True, True]), np.array([1.0, 0.2]), X, ["a", "b"])[1]
    "Kept although constant: 'b'. There are fewer columns of use than were asked for."
    """
    kept = np.flatnonzero(support)
    messages = []
    if fold_share is not None:
        rare = [names[int(j)] for j in kept if fold_share[j] < 0.5]
        if rare:
            messages.append(
                f"{len(rare)} of {kept.size} kept columns {'was' if len(rare) == 1 else 'were'} kept by fewer than half of the "
                f"folds: {_some(rare)}."
            )
    part = X[:, kept]
    low, high = (part.min(axis=0), part.max(axis=0))
    if sp.issparse(part):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    constant = [names[int(j)] for j, same in zip(kept, np.asarray(low == high).ravel(), strict=True) if same]
    if constant:
        messages.append(
            f"Kept although constant: {_some(constant)}. There are fewer columns of use than were asked for."
        )
    return messages


def _some(names: Sequence[str], limit: int = 5) -> str:
    listed = ", ".join(repr(str(name)) for name in names[:limit])
    return listed + (f" and {len(names) - limit} more" if len(names) > limit else "")


def _list(columns: Sequence[str]) -> str:
    if len(columns) == 1:
        return f"Column {_some(columns)} looks like"
    return f"{len(columns)} columns ({_some(columns)}) look each like"
