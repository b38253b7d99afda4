"""Cross-validate a fitted estimator for its report."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from tamiz.evaluation.cross_validation import Evaluation, curve_sizes, evaluate_selection
from tamiz.evaluation.folds import Fold, make_folds
from tamiz.report.evidence import KeptSet
from tamiz.report.gather import make_kept_sets


def make_clone(estimator: Any, n_features_to_select: int, seed: int) -> Any:
    """Return the same estimator, not fitted, with another M and seed."""
    parameters = estimator.get_params(deep=False)
    changed = {"n_features_to_select": n_features_to_select}
    if "random_state" in parameters:
        changed["random_state"] = seed
    return clone(estimator).set_params(**changed)


def make_plain_clone(estimator: Any, n_features_to_select: int, seed: int) -> Any:
    """Return :func:`make_clone` for given columns, among which nothing is selected."""
    made = make_clone(estimator, n_features_to_select, seed)
    options = ("groups", "keep", "drop", "costs", "budget")
    return made.set_params(**{name: None for name in options if name in made.get_params(deep=False)})


def _split_rows(X: Any, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
    return X[train], X[test]


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
    folds = make_folds(y, task, int(cv)) if isinstance(cv, (int, np.integer)) else list(cv.split(X, y))
    selection = estimator.selection_
    m = int(selection.group_support.sum())
    # Only linear models are quick enough to be trained once more for every M of a curve.
    linear = hasattr(estimator, "coef_")
    free = all(getattr(estimator, name, None) is None for name in ("keep", "drop", "budget"))
    sizes = curve_sizes(selection.group_support.size, m) if linear and free else []
    X = X.tocsr() if hasattr(X, "tocsr") else X
    make_model = partial(make_clone, estimator)
    evaluation = evaluate_selection(
        partial(_split_rows, X),
        y,
        make_model,
        m,
        folds,
        task=task,
        sizes=sizes,
        n_random=5 if linear else 1,
        units=selection.groups,
        make_plain=partial(make_plain_clone, estimator),
        tick=tick,
    )

    def fit(size: int) -> Any:
        tick()
        return make_model(size, 0).fit(X, y)

    return evaluation, folds, make_kept_sets((size, fit(size)) for size in sizes if size != m)
