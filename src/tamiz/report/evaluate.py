"""Cross-validate a fitted estimator for its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tamiz.evaluation.cross_validation import cross_validate, curve_sizes, split_folds
from tamiz.evaluation.folds import Fold
from tamiz.evaluation.metrics import get_metric
from tamiz.evaluation.results import Evaluation
from tamiz.evaluation.subjects import Subject
from tamiz.report.evidence import KeptSet
from tamiz.report.gather import make_kept_sets
from tamiz.rows.rows import Rows


def evaluate_estimator(
    estimator: Any, X: Any, y: np.ndarray, task: str, cv: Any, tick: Callable[[], None] = lambda: None
) -> tuple[Evaluation, list[Fold], tuple[KeptSet, ...]]:
    """Select and score in each fold.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``n_features_to_select`` and ``predict``.
    X, y : table and target
        All rows.
    task : {"classification", "regression"}
        Task.
    cv : int or cross-validation splitter
        Number of folds, or a splitter of scikit-learn.
    tick : callable, default=no-op
        Called after each part; what it raises ends the evaluation.

    Returns
    -------
    evaluation : Evaluation
    folds : list of (train rows, test rows)
    kept_sets : tuple of KeptSet
        What is kept with every M of the curve; empty where the model is not linear.
    """
    if not hasattr(estimator, "predict") or "n_features_to_select" not in getattr(estimator, "get_params", dict)():
        raise ValueError("cv needs an estimator that predicts and has n_features_to_select, such as E2EFSClassifier.")
    selection = estimator.selection_
    m = int(selection.group_support.sum())
    # Only linear models are quick enough to be trained once more for every M of a curve.
    linear = hasattr(estimator, "coef_")
    free = all(getattr(estimator, name, None) is None for name in ("keep", "drop", "budget"))
    sizes = curve_sizes(selection.group_support.size, m) if linear and free else []
    subject = Subject(estimator, Rows(X, y), task)
    folds, n_folds = split_folds(subject.rows, task, cv)
    evaluation = cross_validate(
        subject,
        folds,
        get_metric(None, task),
        n_folds=n_folds,
        sizes=sizes,
        n_random=5 if linear else 1,
        n_kept=m,
        progress=lambda *_: tick(),
    )
    fits = estimator.fit_copies([size for size in sizes if size != m], X, y) if hasattr(estimator, "fit_copies") else ()
    return evaluation, folds, make_kept_sets(fits)
