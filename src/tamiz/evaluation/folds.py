"""Folds of a table, and what runs inside each: the rows to learn from and the rows to predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tamiz.evaluation.metrics import Metric

#: Indices of the training rows and of the test rows.
Fold = tuple[np.ndarray, np.ndarray]
#: Training rows, test rows -> the two matrices; whatever is learnt on the way (imputing, encoding) comes from the first.
Prepare = Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]


def make_folds(y: np.ndarray, task: str, n_folds: int, n_repeats: int = 1, seed: int = 0) -> list[Fold]:
    """Split the rows into folds, stratified for classes, repeated with other shuffles.

    Parameters
    ----------
    y : ndarray
        Target.
    task : {"classification", "regression"}
        Task.
    n_folds : int
        At least 2; at most the rows of the smallest class (or all rows, for regression).
    n_repeats : int, default=1
        Number of repeats.
    seed : int, default=0
        Seed of the shuffles.

    Returns
    -------
    list of (train rows, test rows)

    Examples
    --------
    >>> folds = make_folds(np.array(["a", "a", "b", "b"]), "classification", 2)
    >>> len(folds), sorted(np.concatenate([test for _, test in folds]).tolist())
    (2, [0, 1, 2, 3])
    """
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

    if n_folds < 2:
        raise ValueError(f"At least 2 folds are needed, got {n_folds}.")
    blank = np.zeros((len(y), 1))
    if task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < n_folds:
            rare = labels[int(counts.argmin())]
            raise ValueError(
                f"Class {str(rare)!r} has {counts.min()} row(s), fewer than the {n_folds} folds. "
                "Use fewer folds, or leave that class out."
            )
        splitter = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed)
        return list(splitter.split(blank, y))
    if len(y) < n_folds:
        raise ValueError(f"There are {len(y)} rows, fewer than the {n_folds} folds. Use fewer folds.")
    return list(RepeatedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed).split(blank))


def mean_test_share(folds: Sequence[Fold]) -> float:
    """Return the mean share of the rows that a fold tests on.

    Examples
    --------
    >>> mean_test_share([(np.arange(3), np.arange(3, 4))])
    0.25
    """
    return float(np.mean([len(test) / (len(train) + len(test)) for train, test in folds]))


def count_test_rows(metric: Metric, y: np.ndarray, folds: Sequence[Fold]) -> float | None:
    """Return the rows that a bound of the metric may count on, each tested row once; None if it has no such bound.

    Examples
    --------
    >>> from tamiz.evaluation.metrics import BALANCED_ACCURACY
    >>> count_test_rows(BALANCED_ACCURACY, np.array([0, 0, 1, 1]), [(np.arange(2), np.arange(4))] * 3)
    4.0
    """
    if metric.count_rows is None:
        return None
    return metric.count_rows(y[np.unique(np.concatenate([test for _, test in folds]))])


def take_columns(X: Any, columns: np.ndarray) -> Any:
    """Return some columns of an array or sparse matrix, contiguous in memory.

    Examples
    --------
    >>> take_columns(np.array([[1, 2, 3]]), np.array([0, 2])).tolist()
    [[1, 3]]
    """
    return X[:, columns] if hasattr(X, "tocsr") else np.ascontiguousarray(X[:, columns])
