"""Folds of a table, and what runs inside each: the rows to learn from and the rows to predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tamiz._utils.text import counted, discard, quote
from tamiz.errors import TableError

#: Indices of the training rows and of the test rows.
Fold = tuple[np.ndarray, np.ndarray]


def make_folds(
    y: np.ndarray,
    task: str,
    n_folds: int,
    n_repeats: int = 1,
    seed: int = 0,
    *,
    groups: np.ndarray | None = None,
    time: np.ndarray | None = None,
) -> list[Fold]:
    """Split the rows into folds, stratified for classes, repeated with other shuffles.

    Parameters
    ----------
    y : ndarray
        Target.
    task : {"classification", "regression"}
        Task.
    n_folds : int
        At least 2; at most the rows of the smallest class, or half of all rows for regression.
    n_repeats : int, default=1
        Number of repeats.
    seed : int, default=0
        Seed of the shuffles.
    groups : ndarray or None, default=None
        Group of each row; rows of one group (those of one patient) are never in training and test part of one fold.
    time : ndarray or None, default=None
        Time of each row; every fold trains on what came before its test rows. Rows of the same time stay together.

    Returns
    -------
    list of (train rows, test rows)

    Examples
    --------
    >>> folds = make_folds(np.array(["a", "a", "b", "b"]), "classification", 2)
    >>> len(folds), sorted(np.concatenate([test for _, test in folds]).tolist())
    (2, [0, 1, 2, 3])
    >>> [(train.tolist(), test.tolist()) for train, test in make_folds(np.arange(6.0), "regression", 2, time=np.arange(6))]
    [([0, 1], [2, 3]), ([0, 1, 2, 3], [4, 5])]
    """
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

    if n_folds < 2:
        raise ValueError(f"At least 2 folds are needed, got {n_folds}.")
    if n_repeats < 1:
        raise ValueError(f"At least 1 repeat is needed, got {n_repeats}.")
    if groups is not None and time is not None:
        raise ValueError("Folds follow groups or time, not both. Leave one of them out.")
    if time is not None:
        from tamiz.rows.rows import read_time  # loads scikit-learn

        return _folds_in_time(y, task, n_folds, n_repeats, read_time(time))
    if groups is not None:
        return _folds_of_groups(y, task, n_folds, n_repeats, seed, np.asarray(groups))
    blank = np.zeros((len(y), 1))
    if task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < n_folds:
            rare = labels[int(counts.argmin())]
            raise TableError(
                f"Class {str(rare)!r} has {counted(counts.min(), 'row')}, fewer than the {n_folds} folds. "
                "Use fewer folds, or leave that class out."
            )
        splitter = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed)
        return list(splitter.split(blank, y))
    if len(y) < 2 * n_folds:
        raise TableError(
            f"There are {len(y)} rows, fewer than two for each of the {n_folds} folds. Use {len(y) // 2} folds or fewer."
        )
    return list(RepeatedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed).split(blank))


def possible_folds(
    y: np.ndarray, task: str, n_folds: int, *, nested: bool = False, report: Callable[[str], None] = discard
) -> int:
    """Lower the number of folds to what the rows allow; raise if they allow none.

    Parameters
    ----------
    y : ndarray
        Target.
    task : {"classification", "regression"}
        Task.
    n_folds : int
        Folds that were asked for.
    nested : bool, default=False
        Whether the training parts are split once more, to choose M.
    report : callable, default=discard
        Called with the reason for fewer folds.

    Examples
    --------
    >>> possible_folds(np.array(["a", "a", "b", "b", "b"]), "classification", 5, report=print)
    Folds: 2 instead of 5, since class 'a' has 2 rows only.
    2
    """
    if task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        most, rare = int(counts.min()), quote(labels[int(counts.argmin())])
        if most < 2:
            raise TableError(
                f"Class {rare} of the target has one row only, which cannot be both learnt and tested. "
                "Leave that row out, or join the class with another."
            )
        if nested and most < 3:
            raise TableError(f"k='auto' needs at least 3 rows of each class, and {rare} has {most}: give k a number.")
        reason = f"since class {rare} has {most} rows only"
    else:
        least, most, reason = 8 if nested else 4, len(y) // 2, "for two rows in each of them"
        if len(y) < 4:
            raise TableError(f"There are {len(y)} rows with a target; at least 4 are needed.")
        if len(y) < least:
            raise TableError(f"k='auto' needs at least {least} rows, there are {len(y)}: give k a number.")
    if n_folds > most:
        report(f"Folds: {most} instead of {n_folds}, {reason}.")
    return min(n_folds, most)


def _folds_of_groups(
    y: np.ndarray, task: str, n_folds: int, n_repeats: int, seed: int, groups: np.ndarray
) -> list[Fold]:
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    n_groups = np.unique(groups).size
    if n_groups < 2:
        raise TableError("All rows are of one group: none can be held out. Name another column as groups.")
    if n_groups < n_folds:
        raise TableError(f"There are {n_groups} groups, fewer than the {n_folds} folds. Use fewer folds.")
    kind = StratifiedGroupKFold if task == "classification" else GroupKFold
    blank = np.zeros((len(y), 1))
    folds: list[Fold] = []
    for repeat in range(n_repeats):
        splitter = kind(n_splits=n_folds, shuffle=True, random_state=seed + repeat)
        folds += [(train, test) for train, test in splitter.split(blank, y, groups) if test.size]
    _check_classes_are_learnt(y, task, folds, np.unique(y).size, ", or other groups (not the target itself)")
    return folds


def _folds_in_time(y: np.ndarray, task: str, n_folds: int, n_repeats: int, time: np.ndarray) -> list[Fold]:
    if n_repeats > 1:
        raise ValueError("Folds in time are the same in every repeat. Use one repeat.")
    if np.ptp(time) == 0:
        raise TableError("All rows are of one time: none comes before another. Name another column as time.")
    order = np.argsort(time, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(np.unique(time, return_inverse=True)[1][order]) != 0])
    wanted = np.arange(1, n_folds + 1) * len(y) / (n_folds + 1)
    # Every border moves to the next change of time, so that rows of one time stay together.
    found = np.unique([next((start for start in starts if start >= border), len(y)) for border in wanted])
    borders = [int(border) for border in found if border < len(y)]
    if len(borders) < n_folds:
        raise TableError(
            f"The time has {starts.size} different values, or so many rows of one time, that there are {len(borders)} "
            f"folds instead of {n_folds}. Use fewer folds."
        )
    ends = [*borders[1:], len(y)]
    folds = [(np.sort(order[:start]), np.sort(order[start:end])) for start, end in zip(borders, ends, strict=True)]
    _check_classes_are_learnt(y, task, folds, 2)
    return folds


def _check_classes_are_learnt(y: np.ndarray, task: str, folds: Sequence[Fold], needed: int, more: str = "") -> None:
    """Raise if a fold trains on fewer classes than are needed; ``more`` is advice beyond fewer folds."""
    if task != "classification":
        return
    for number, (train, _) in enumerate(folds, start=1):
        n_classes = np.unique(y[train]).size
        if n_classes < needed:
            which = f"Fold {number} would train on {n_classes} of {np.unique(y).size} classes"
            raise TableError(f"{which}. Use fewer folds{more}.")


def mean_test_share(folds: Sequence[Fold]) -> float:
    """Return the mean share of the rows that a fold tests on.

    Examples
    --------
    >>> mean_test_share([(np.arange(3), np.arange(3, 4))])
    0.25
    """
    return float(np.mean([len(test) / (len(train) + len(test)) for train, test in folds]))


def take_columns(X: Any, columns: np.ndarray) -> Any:
    """Return some columns of an array or sparse matrix, contiguous in memory.

    Examples
    --------
    >>> take_columns(np.array([[1, 2, 3]]), np.array([0, 2])).tolist()
    [[1, 3]]
    """
    return X[:, columns] if hasattr(X, "tocsr") else np.ascontiguousarray(X[:, columns])
