"""Folds inside a fit: how the rows of a training table are split, fitted on and scored, for every choice that a fit makes."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from tamiz._names import pick_name
from tamiz.preprocessing.targets import as_target

#: Training rows and test rows.
Split = tuple[np.ndarray, np.ndarray]
#: A fitted estimator, the table and the target of held-out rows -> a score, larger is better.
Scorer = Callable[[Any, Any, Any], float]


class TrainingRows:
    """Hold the table, target and weights of a fit, to take some of the rows from.

    Rows of weight 0 are left out. The table stays what it was, an array, sparse matrix or data frame.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
        The table, checked already.
    y : array-like
        The target.
    sample_weight : array-like or None, default=None
        Weights of the rows.

    Examples
    --------
    >>> rows = TrainingRows(np.arange(6).reshape(3, 2), [0, 1, 1], [1.0, 0.0, 2.0])
    >>> X, y, weights = rows.take([1])
    >>> X.tolist(), y.tolist(), weights.tolist()
    ([[4, 5]], [1], [2.0])
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        if sp.issparse(X):
            X = X.tocsr()
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        y = as_target(y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            X, y, weights = _safe_indexing(X, kept), y[kept], weights[kept]
        self.X, self.y, self.sample_weight = X, y, weights

    def take(self, rows: Sequence[int] | np.ndarray) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return table, target and weights of some rows."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return _safe_indexing(self.X, rows), self.y[rows], weights


def has_classes(y: np.ndarray, task: str) -> bool:
    """Return whether the target holds one class per row (not labels of an indicator table, not numbers).

    Examples
    --------
    >>> has_classes(np.array([0, 1]), "classification"), has_classes(np.eye(2), "classification")
    (True, False)
    """
    return task == "classification" and (y.ndim == 1 or y.shape[1] == 1)


def smallest_class(y: np.ndarray) -> tuple[Any, int]:
    """Return the class with the fewest rows, and how many it has.

    Examples
    --------
    >>> smallest_class(np.array(["a", "b", "b"]))
    ('a', 1)
    """
    labels, counts = np.unique(y, return_counts=True)
    place = int(counts.argmin())
    return labels[place].item() if hasattr(labels[place], "item") else labels[place], int(counts[place])


def inner_splits(rows: TrainingRows, task: str, cv: Any, seed: int, purpose: str) -> list[Split]:
    """Split the rows of a fit.

    Parameters
    ----------
    rows : TrainingRows
        The rows.
    task : {"classification", "regression"}
        Classes are stratified.
    cv : int, splitter, iterable of splits or None
        A number of folds, shuffled by ``seed`` (at most the rows of the smallest class); None is 5; else as in
        scikit-learn's ``check_cv``.
    seed : int
        Seed of the shuffle.
    purpose : str
        The parameter that needs the folds, for messages.

    Examples
    --------
    >>> splits = inner_splits(TrainingRows(np.zeros((4, 1)), [0, 0, 1, 1]), "classification", 5, 0, "l2='auto'")
    >>> len(splits), sorted(np.concatenate([test for _, test in splits]).tolist())
    (2, [0, 1, 2, 3])
    """
    y = rows.y
    n_folds = 5 if cv is None else cv
    if not isinstance(n_folds, numbers.Integral):
        splits = list(check_cv(cv, y, classifier=task == "classification").split(rows.X, y))
        if not splits:
            raise ValueError(f"cv gives no splits; {purpose} needs at least one.")
        return splits
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv!r}.")
    if not has_classes(y, task):
        if y.shape[0] < 4:
            raise ValueError(f"{purpose} needs at least 4 rows to split into folds, got {y.shape[0]}; give a value.")
        return list(KFold(min(int(n_folds), y.shape[0] // 2), shuffle=True, random_state=seed).split(y))
    label, count = smallest_class(y)
    if count < 2:
        raise ValueError(
            f"Class {label!r} has 1 row, but {purpose} needs at least 2 of each class, one to learn from and one to score. "
            "Leave that class out, join it with another, or give a value."
        )
    folds = StratifiedKFold(min(int(n_folds), count), shuffle=True, random_state=seed)
    return list(folds.split(np.zeros(y.shape[0]), y.ravel()))


def balanced_recall(estimator: Any, X: Any, y: Any) -> float:
    """Return the balanced accuracy of a fitted classifier: the mean recall over the classes of ``y``.

    Unlike scikit-learn's, it does not warn when a class is predicted that the fold lacks.
    """
    y = np.asarray(y).ravel()
    _, codes = np.unique(y, return_inverse=True)
    hits = np.bincount(codes, weights=estimator.predict(X) == y)
    return float(np.mean(hits / np.bincount(codes)))


#: Beginnings of the names of scikit-learn's scores that subtract predictions from targets.
_SCORES_OF_NUMBERS = (
    *("r2", "explained_variance", "max_error", "neg_max_error", "neg_mean_", "neg_median_", "neg_root_"),
    *("d2_absolute_error", "d2_pinball", "d2_tweedie"),
)


def find_scorer(estimator: Any, scoring: Any, y: np.ndarray, task: str) -> tuple[str, Scorer]:
    """Return the name and the function of a ``scoring``.

    Parameters
    ----------
    estimator : estimator
        What is scored.
    scoring : str, callable or None
        As in scikit-learn; None is the balanced accuracy for classes, R2 for numbers, the accuracy for labels.
    y : ndarray
        The target.
    task : {"classification", "regression"}
        What it holds.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> find_scorer(DummyClassifier(), "acuracy", np.array([0, 1]), "classification")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown scoring 'acuracy'. Did you mean 'accuracy'? ...
    """
    if scoring is None:
        if has_classes(y, task):
            return "balanced_accuracy", balanced_recall
        return ("r2" if task == "regression" else "accuracy"), check_scoring(estimator)
    if isinstance(scoring, str):
        scoring = pick_name(scoring, get_scorer_names(), "scoring")
        if scoring.startswith(_SCORES_OF_NUMBERS) and np.asarray(y).dtype.kind not in "iufb":
            raise ValueError(
                f"scoring={scoring!r} is for numbers, but y holds classes; use balanced_accuracy or accuracy."
            )
    elif not callable(scoring):
        raise TypeError(f"scoring must be a name of scikit-learn, a callable or None, got {scoring!r}.")
    return str(getattr(scoring, "__name__", scoring)), check_scoring(estimator, scoring)


def row_scores(predicted: np.ndarray, y: np.ndarray, task: str) -> np.ndarray:
    """Return a score of each held-out row whose mean is the score of all.

    For classes it is 1 for a hit, weighted so that every class counts the same; for labels the share that is right; for
    numbers minus the squared error in units of the variance of the target, the mean over outputs.

    Parameters
    ----------
    predicted, y : ndarray, shape (n_rows,) or (n_rows, n_outputs)
        Predictions and truth.
    task : {"classification", "regression"}
        What they hold.

    Examples
    --------
    >>> row_scores(np.array([0, 0, 0, 0]), np.array([0, 0, 0, 1]), "classification").round(2).tolist()
    [0.67, 0.67, 0.67, 0.0]
    """
    if has_classes(y, task):
        y = y.ravel()
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        return (predicted == y) * (y.size / (counts.size * counts[codes]))
    truth, guess = (np.asarray(values, dtype=np.float64).reshape(y.shape[0], -1) for values in (y, predicted))
    if task == "classification":
        return (truth == guess).mean(axis=1)
    # A split into units of the largest number first: squares of numbers like 1e200 would overflow.
    unit = np.maximum(np.abs(truth).max(axis=0), np.finfo(float).tiny)
    variance = (truth / unit).var(axis=0)
    return -(((truth - guess) / unit) ** 2 / np.where(variance > 0, variance, 1.0)).mean(axis=1)
