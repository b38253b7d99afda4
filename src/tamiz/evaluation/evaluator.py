"""Evaluate a selector of any kind on a table in memory: what ``tamiz select`` does with a file, as one function."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_regressor

from tamiz._utils.validation import check_target_length, resolve_n_features_to_select
from tamiz.evaluation.alerts import describe_table_risks
from tamiz.evaluation.comparison import default_judge, rank_for_targets
from tamiz.evaluation.cross_validation import Evaluation, check_test_target, evaluate_selection, holdout_interval
from tamiz.evaluation.folds import make_folds, take_columns
from tamiz.evaluation.metrics import Metric, get_metric
from tamiz.evaluation.null import N_PERMUTATIONS
from tamiz.rows.targets import decide_task
from tamiz.selection import Selection
from tamiz.tables.encode import TableEncoder
from tamiz.tables.frames import as_table
from tamiz.tables.table import DataTable


class SelectorWithModel:
    """Put a linear model behind a selector that does not predict.

    Parameters
    ----------
    selector : estimator
        With ``fit``, ``transform`` and ``selection_``. To several targets it is fitted one by one.
    task : {"classification", "regression"}
        Task.
    """

    def __init__(self, selector: Any, task: str) -> None:
        self.selector = selector
        self.task = task

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SelectorWithModel:
        """Select, and fit the model on what was kept; weights go to the model."""
        n_features = X.shape[1]
        if self.selector.n_features_to_select == n_features:  # nothing to select
            self.selection_ = Selection(np.ones(n_features, dtype=bool), np.arange(1, n_features + 1))
        else:
            self.selection_ = self._select(X, y)
        self.model_ = default_judge(self.task, sp.issparse(X))
        named = {} if sample_weight is None else {f"{self.model_.steps[-1][0]}__sample_weight": sample_weight}
        self.model_.fit(take_columns(X, self.selection_.indices), y, **named)
        return self

    def _select(self, X: Any, y: Any) -> Selection:
        if np.ndim(y) < 2:
            return self.selector.fit(X, y).selection_
        ranking = rank_for_targets(lambda: clone(self.selector), X, y)
        return Selection(ranking <= self.selector.n_features_to_select, ranking)

    def predict(self, X: Any) -> Any:
        """Predict with the model."""
        return self.model_.predict(take_columns(X, self.selection_.indices))

    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classes."""
        return self.model_.decision_function(take_columns(X, self.selection_.indices))


class _Rows:
    """Hand out the rows of a table as matrices; data frames are imputed and encoded from the training rows."""

    def __init__(self, X: Any) -> None:
        self.table: DataTable | None = None
        self.matrix: Any = None
        if sp.issparse(X) or isinstance(X, (np.ndarray, list, tuple)):
            matrix: Any = X.tocsr() if sp.issparse(X) else np.asarray(X)
            if matrix.ndim != 2:
                raise ValueError(f"X must be a table with rows and columns, got shape {matrix.shape}.")
            self.matrix, self.names = matrix, [f"x{j}" for j in range(matrix.shape[1])]
        else:
            self.table = as_table(X)
            self.features = TableEncoder().fit(X).features_
            self.names = [feature.name for feature in self.features]

    def prepare(self, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        if self.table is None:
            return self.matrix[train], self.matrix[test]
        encoder = TableEncoder(features=self.features).fit(self.table, rows=train)
        return encoder.transform(self.table, rows=train), encoder.transform(self.table, rows=test)

    def with_test(self, X_test: Any) -> tuple[Any, Any]:
        """Return the matrices of all rows and of a test table."""
        if self.table is None:
            if (np.ndim(X_test) != 2 and not sp.issparse(X_test)) or X_test.shape[1] != self.matrix.shape[1]:
                raise ValueError(
                    f"X_test must have the {self.matrix.shape[1]} features of X, got shape {np.shape(X_test)}."
                )
            return self.matrix, X_test
        encoder = TableEncoder(features=self.features).fit(self.table)
        return encoder.transform(self.table), encoder.transform(X_test)


def evaluate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_folds: int = 5,
    n_repeats: int = 1,
    groups: Any = None,
    time: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    scoring: str | Metric | None = None,
    sample_weight: Any = None,
    n_permutations: int = N_PERMUTATIONS,
    sizes: Sequence[int] = (),
    n_random: int = 5,
    n_jobs: int = 1,
    random_state: int = 0,
) -> Evaluation:
    """Score a selection against all features, random ones and shuffled targets, with the selection inside each fold.

    Parameters
    ----------
    estimator : estimator
        With ``n_features_to_select`` and ``selection_``: those of this package and its baselines. One that does not predict
        gets a linear model behind it. It is cloned.
    X : array, sparse matrix or data frame
        Table. Data frames may have text and gaps, which are encoded and imputed inside each fold.
    y : array-like, shape (n_samples,) or (n_samples, n_targets)
        Target; several numeric ones are predicted together.
    n_folds : int, default=5
        Number of folds.
    n_repeats : int, default=1
        How many times the folds are drawn.
    groups, time : array-like or None, default=None
        Group or time of each row, see :func:`~tamiz.evaluation.folds.make_folds`.
    X_test, y_test : table and target or None, default=None
        Rows that take no part in the folds; the estimator fitted on all of X is scored on them.
    scoring : str, Metric or None, default=None
        Metric, see :func:`~tamiz.evaluation.metrics.get_metric`.
    sample_weight : array-like or None, default=None
        Weights of the rows.
    n_permutations : int, default=20
        Permutations of the null; 0 leaves it out.
    sizes : sequence of int, default=()
        Further numbers of features to score.
    n_random : int, default=5
        Random sets of features per fold, whose scores are averaged.
    n_jobs : int, default=1
        Fits that run in parallel.
    random_state : int, default=0
        Seed of folds, models, random sets and permutations.

    Returns
    -------
    Evaluation
        ``interval("kept")`` is the score, ``verdict`` one sentence, ``null`` what shuffled targets give, ``test_score`` the
        score on ``X_test``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamiz.baselines import FisherScore
    >>> X, y = load_iris(return_X_y=True)
    >>> patients = np.arange(150) // 3  # three rows of each
    >>> found = evaluate(FisherScore(n_features_to_select=2), X, y, groups=patients)
    >>> found.verdict
    '2 of 4 columns predict as well as all, as far as these rows can tell (better than shuffled targets, p = 0.048).'
    >>> found.interval("kept").value > 0.9, found.null.n_permutations
    (True, 20)
    """
    rows, target = _Rows(X), np.asarray(y)
    check_target_length(X if rows.table is None else np.empty((rows.table.n_rows, 0)), target)
    task = _find_task(estimator, target)
    if target.ndim > 1 and task == "classification":
        raise ValueError(f"Several targets must be numbers, but y has shape {target.shape} and holds classes.")
    if n_permutations < 0:
        raise ValueError(f"n_permutations must be at least 0, got {n_permutations}.")
    metric = get_metric(scoring, task)
    groups, time, weights = (_check_row_values(v, n, len(target)) for v, n in _named(groups, time, sample_weight))
    for message in describe_table_risks(rows.prepare(np.arange(len(target)), np.arange(1))[0], target, rows.names):
        warnings.warn(message.replace("`", ""), UserWarning, stacklevel=2)
    if (X_test is None) != (y_test is None):
        given, other = ("X_test", "y_test") if y_test is None else ("y_test", "X_test")
        raise ValueError(f"{given} was given without {other}; hand in both, or neither.")
    if X_test is not None:
        X_test = X_test if hasattr(X_test, "shape") else np.asarray(X_test)
        check_target_length(X_test, np.asarray(y_test))
        check_test_target(np.asarray(y_test), target, task)
    m = resolve_n_features_to_select(estimator.n_features_to_select, len(rows.names))

    def make_model(n_features_to_select: int, seed: int) -> Any:
        model = clone(estimator).set_params(n_features_to_select=n_features_to_select)
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        return model if hasattr(model, "predict") else SelectorWithModel(model, task)

    found = evaluate_selection(
        rows.prepare,
        target,
        make_model,
        m,
        make_folds(target, task, n_folds, n_repeats, random_state, groups=groups, time=time),
        task=task,
        sizes=sizes,
        n_random=n_random,
        scoring=metric,
        sample_weight=weights,
        n_permutations=n_permutations,
        groups=groups,
        time=time,
        seed=random_state,
        n_jobs=n_jobs,
    )
    if X_test is None:
        return found
    train, test = rows.with_test(X_test)
    model = make_model(m, random_state)
    model.fit(train, target) if weights is None else model.fit(train, target, sample_weight=weights)
    score = holdout_interval(metric, np.asarray(y_test), metric.read(model, test), target, seed=random_state)
    return dataclasses.replace(found, test_score=score)


def _named(groups: Any, time: Any, sample_weight: Any) -> list[tuple[Any, str]]:
    return [(groups, "groups"), (time, "time"), (sample_weight, "sample_weight")]


def _check_row_values(values: Any, name: str, n_rows: int) -> np.ndarray | None:
    """Return one value per row, all of them known."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have one value for each of the {n_rows} rows, got shape {array.shape}.")
    missing = np.array([value is None or value != value for value in array.tolist()])
    if missing.any():
        raise ValueError(f"{name} has no value in {missing.sum()} row(s). Fill them in, or leave these rows out.")
    if name == "sample_weight":
        array = array.astype(np.float64)
        if (array < 0).any() or not array.any():
            raise ValueError("sample_weight must not be negative, and not zero everywhere.")
    return array


def _find_task(estimator: Any, y: np.ndarray) -> str:
    task = getattr(estimator, "task", "auto")
    if task in ("classification", "regression"):
        return task
    if is_regressor(estimator):
        return "regression"
    if getattr(estimator, "tasks", ()) == ("classification",):
        return "classification"
    return "classification" if hasattr(estimator, "predict") else decide_task(y)
