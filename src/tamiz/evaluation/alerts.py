"""Alerts about rows, columns and what was kept: what makes scores look better than they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.text import list_some
from tamiz.rows.rows import Rows
from tamiz.tables.columns import Alert

if TYPE_CHECKING:
    from tamiz.evaluation.results import Evaluation

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


def find_row_alerts(rows: Rows) -> list[Alert]:
    """Find copies of rows, and columns that look like running numbers or identifiers.

    Parameters
    ----------
    rows : Rows
        The rows; of large tables the first are looked at.

    Examples
    --------
    >>> X = np.column_stack([np.arange(30.0), np.random.default_rng(0).normal(size=30)])
    >>> find_row_alerts(Rows(X, np.zeros(30), names=["id", "x"]))[0].message
    "Column 'id' looks like a running number: leave it out unless it measures something."
    """
    n_features = max(1, rows.columns.size)
    some = rows.used[: max(1, _MOST_CELLS // n_features)]
    part = rows.fold(some, some[:1])[0]
    found = []
    copies = count_copies(part.X, part.y)
    if copies and copies >= _LEAST_SHARE_OF_COPIES * some.size:
        message = (
            f"{copies:,} of {some.size:,} rows are copies of other rows. Copies in the training and the test part of a fold "
            "make the score too good: remove them, or keep them together with groups."
        )
        found.append(Alert("repeated rows", (), message))
    identifiers = {rows.names[rows.columns[j]]: kind for j, kind in find_identifiers(part.X).items()}
    for kind in ("a running number", "an identifier"):
        names = tuple(name for name, found_kind in identifiers.items() if found_kind == kind)
        if names:
            looks = f"Column {list_some(names)} looks like"
            if len(names) > 1:
                looks = f"{len(names)} columns ({list_some(names)}) look each like"
            found.append(Alert("identifier", names, f"{looks} {kind}: leave it out unless it measures something."))
    return found


def find_selection_alerts(evaluation: Evaluation, support: np.ndarray, X: Any, units: np.ndarray) -> list[Alert]:
    """Find kept columns that few folds kept, constant ones among them, and folds without a score.

    Parameters
    ----------
    evaluation : Evaluation
        Scores over folds.
    support : ndarray of bool
        Columns of the table that were kept.
    X : ndarray or sparse matrix
        Encoded rows.
    units : ndarray of int
        Column of the table of each column of X.
    """
    names, kept = evaluation.names, np.flatnonzero(support)
    found = []
    rare = tuple(names[j] for j in kept if evaluation.fold_share[j] < 0.5)
    if rare:
        verb = "was" if len(rare) == 1 else "were"
        message = (
            f"{len(rare)} of {kept.size} kept columns {verb} kept by fewer than half of the folds: {list_some(rare)}."
        )
        found.append(Alert("unstable", rare, message))
    columns = np.flatnonzero(np.isin(units, kept))
    part = X[:, columns]
    low, high = part.min(axis=0), part.max(axis=0)
    if sp.issparse(part):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    varies = np.isin(kept, units[columns[np.asarray(low != high).ravel()]])
    constant = tuple(names[j] for j in kept[~varies])
    if constant:
        message = f"Kept although constant: {list_some(constant)}. There are fewer columns of use than were asked for."
        found.append(Alert("constant", constant, message))
    if evaluation.n_without_score:
        message = (
            f"In {evaluation.n_without_score} of {len(evaluation.folds)} folds {evaluation.metric.name} is not defined; "
            "the score is that of the others."
        )
        found.append(Alert("no score", (), message))
    return found
