"""Cross-validation without a leak: whatever learns from the rows - imputing, encoding, selecting - learns in each fold."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from tamiz._utils.text import list_some
from tamiz.evaluation.alerts import find_row_alerts
from tamiz.evaluation.folds import Fold, make_folds, take_columns
from tamiz.evaluation.intervals import Interval
from tamiz.evaluation.metrics import Metric, Parts, get_metric
from tamiz.evaluation.null import finite_mean, permutation_null
from tamiz.evaluation.pools import run_parallel
from tamiz.evaluation.results import Evaluation, FoldResult, interval_of_parts, measure_moments, model_output
from tamiz.evaluation.subjects import Subject
from tamiz.rows.rows import Part, Rows
from tamiz.tables import TableEncoder
from tamiz.tables.load import read_rows

#: Of tables with more cells, targets are shuffled over this many folds: their test rows are many.
MOST_CELLS, NULL_FOLDS = 5_000_000, 2
#: Called with (what is done, parts done, all parts); what it raises ends the evaluation.
Progress = Callable[[str, int, int], None]


def evaluate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    time: Any = None,
    cv: Any = 5,
    repeats: int = 1,
    scoring: str | Metric | None = None,
    sample_weight: Any = None,
    sizes: Sequence[int] = (),
    n_random: int = 5,
    n_permutations: int | None = None,
    n_jobs: int = 1,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Score a selection against all columns, random ones and shuffled targets, with the selection inside each fold.

    Parameters
    ----------
    estimator : estimator or pipeline
        Anything that selects: an estimator of this package with any of its parameters, a selector of scikit-learn, or a
        pipeline with one. A selector without a model behind it is judged by logistic or ridge regression on the standardised
        columns that it keeps; ``Evaluation.model`` says which model was scored. It is cloned.
    X : array, sparse matrix, data frame or table
        Data frames may have text and gaps, which are encoded and imputed inside each fold. A feature is a column of the
        frame, whatever number of levels it has.
    y : array-like, shape (n_samples,) or (n_samples, n_targets), or None, default=None
        Target; several numeric ones are predicted together. None: that of a table read with a target.
    groups, time : array-like or None, default=None
        Group or time of each row, see :func:`~tamiz.evaluation.folds.make_folds`. Inner folds of the estimator respect them.
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds, or folds whose indices refer to the rows of X.
    repeats : int, default=1
        How many times the folds are drawn; only for a number of folds.
    scoring : str, Metric or None, default=None
        Metric, see :func:`~tamiz.evaluation.metrics.get_metric`.
    sample_weight : array-like or None, default=None
        Weights of the rows; rows of weight 0 are left out of each fold.
    sizes : sequence of int, default=()
        Further numbers of columns to score.
    n_random : int, default=5
        Random sets of columns per fold, as many as the fold keeps, whose scores are averaged.
    n_permutations : int or None, default=None
        Most permutations of the null; 0 leaves it out, None takes 99, or fewer for large tables. They end early where the
        score is not better than that of shuffled targets.
    n_jobs : int, default=1
        Fits that run in parallel.
    random_state : int, default=0
        Seed of folds, models, random sets and permutations.
    progress : callable or None, default=None
        Called with (stage, parts done, all parts); what it raises ends the evaluation.

    Returns
    -------
    Evaluation
        ``score`` with its interval, ``verdict`` one sentence, ``difference("all_features")``, ``null``, ``stability``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamiz.baselines import FisherScore
    >>> X, y = load_iris(return_X_y=True)
    >>> patients = np.arange(150) // 3  # three rows of each
    >>> found = evaluate(FisherScore(n_features_to_select=2), X, y, groups=patients)
    >>> found.verdict
    '2 of 4 columns predict as well as all, within 0.03 (at most 0.0... worse; better than shuffled targets, p <= 0.010).'
    >>> found.score.value > 0.9, found.model
    (True, 'LogisticRegression')
    """
    first = estimator.steps[0][1] if isinstance(estimator, Pipeline) else None
    encoder = first if isinstance(first, TableEncoder) else None
    rows = read_rows(X, y, sample_weight=sample_weight, groups=groups, time=time, encoder=encoder)
    subject = Subject(estimator, rows)
    folds, n_folds = split_folds(rows, subject.task, cv, repeats, random_state)
    for alert in find_row_alerts(rows):
        if alert.kind != "near copy":  # harms no score
            warnings.warn(alert.message, UserWarning, stacklevel=2)
    return cross_validate(
        subject,
        folds,
        get_metric(scoring, subject.task),
        n_folds=n_folds,
        sizes=sizes,
        n_random=n_random,
        n_permutations=choose_permutations(rows) if n_permutations is None else n_permutations,
        seed=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )


def split_folds(rows: Rows, task: str, cv: Any = 5, repeats: int = 1, seed: int = 0) -> tuple[list[Fold], int]:
    """Split rows into folds; return them, in numbers of the rows as given, and how many make one repeat.

    Examples
    --------
    >>> folds, n_folds = split_folds(Rows(np.zeros((6, 1)), np.arange(6.0)), "regression", 3, repeats=2)
    >>> len(folds), n_folds
    (6, 3)
    """
    if not rows.used.size:
        raise ValueError("There are no rows.")
    if not isinstance(seed, (int, np.integer)):
        raise ValueError(f"random_state must be a whole number, got {seed!r}.")
    if rows.y.ndim > 1 and task == "classification":
        raise ValueError(f"Several targets must be numbers, but y has shape {rows.y.shape} and holds classes.")
    if task == "classification" and np.unique(rows.y[rows.used]).size < 2:
        raise ValueError("The target has one class only: there is nothing to predict.")
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        used = rows.used
        groups, moments = (None if v is None else v[used] for v in (rows.groups, rows.time))
        found = make_folds(rows.y[used], task, int(cv), repeats, seed, groups=groups, time=moments)
        return [(used[train], used[test]) for train, test in found], len(found) // repeats
    if repeats != 1:
        raise ValueError("repeats needs a number of folds as cv; folds that are given are used as they are.")
    if (not hasattr(cv, "__iter__") and not hasattr(cv, "split")) or isinstance(cv, str):
        raise ValueError(f"cv must be a number of folds, a splitter, or folds of (train rows, test rows); got {cv!r}.")
    given = cv.split(np.zeros((rows.n_rows, 1)), rows.y, rows.groups) if hasattr(cv, "split") else cv
    folds = [(_numbers(train), _numbers(test)) for train, test in given]
    if not folds or not all(train.size and test.size for train, test in folds):
        raise ValueError("cv must give folds of (train rows, test rows), none of them empty.")
    if max(int(part.max()) for fold in folds for part in fold) >= rows.n_rows:
        raise ValueError(f"cv names rows beyond the {rows.n_rows} of X.")
    times_tested = sum(test.size for _, test in folds) / np.unique(np.concatenate([test for _, test in folds])).size
    return folds, max(1, round(len(folds) / times_tested))


def _numbers(part: Any) -> np.ndarray:
    return np.flatnonzero(part) if np.asarray(part).dtype == bool else np.asarray(part)


def choose_permutations(rows: Rows) -> int:
    """Choose how many permutations are afforded: 99 for small tables, at least 20."""
    cells = rows.used.size * rows.columns.size
    return 99 if cells <= 20_000 else 39 if cells <= 100_000 else 20


@dataclass(frozen=True)
class FoldTask:
    """What all folds of an evaluation share."""

    subject: Subject
    folds: Sequence[Fold]
    metric: Metric
    classes: np.ndarray | None
    sizes: tuple[int, ...]
    n_random: int
    seed: int

    def measure(self, model: Any, X: Any, train: Part, test: Part) -> Parts:
        """Measure a model on the test rows."""
        response = self.metric.read(model, X)
        return self.metric.measure(test.y, response, train.y, test.sample_weight, self.classes)


def cross_validate(
    subject: Subject,
    folds: Sequence[Fold],
    metric: Metric,
    *,
    n_folds: int,
    sizes: Sequence[int] = (),
    n_random: int = 5,
    n_permutations: int = 0,
    n_kept: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate a subject over given folds; the parameters are those of :func:`evaluate`."""
    rows, task = subject.rows, subject.task
    if min(n_permutations, n_random) < 0:
        raise ValueError(f"n_permutations and n_random must be at least 0, got {n_permutations} and {n_random}.")
    most = len(subject.unit_names)
    if any(not 1 <= size <= most for size in sizes):
        raise ValueError(f"sizes must be numbers from 1 to the {most} columns, got {list(sizes)}.")
    classes = np.unique(rows.y[rows.used]) if task == "classification" else None
    shared = FoldTask(subject, folds, metric, classes, tuple(sizes), n_random, seed)
    tell = progress or (lambda *_: None)
    pieces = [(shared, number) for number in range(len(folds))]
    found = run_parallel(
        _evaluate_fold, pieces, n_jobs, lambda n: tell("cross-validation", n, len(folds)), in_threads=subject.in_threads
    )
    results, selectors = map(list, zip(*found, strict=True))
    kept = int(np.median([fold.support.sum() for fold in results])) if n_kept is None else n_kept
    splits = [(rows.weighted(train), rows.weighted(test)) for train, test in folds]
    names, model, about = subject.unit_names, subject.model_name, (subject.units, subject.allowed.size)
    evaluation = Evaluation(metric, task, model, results, splits, rows.y, names, n_folds, kept, *about)
    if not n_permutations:
        return evaluation
    n_tested = len(folds) if rows.used.size * rows.columns.size <= MOST_CELLS else min(NULL_FOLDS, len(folds))
    observed = finite_mean(metric.combine([fold.kept for fold in results[:n_tested]]))
    tested = dataclasses.replace(shared, folds=folds[:n_tested])
    null = permutation_null(tested, selectors, observed, n_permutations, n_jobs=n_jobs, progress=tell)
    return dataclasses.replace(evaluation, null=null)


def _evaluate_fold(shared: FoldTask, number: int) -> tuple[FoldResult, Any]:
    """Select and score in one fold; return its result and the selector with what the fit chose from the data."""
    subject, task, seed = shared.subject, shared.subject.task, shared.seed + number
    train, test = subject.rows.fold(*shared.folds[number])
    fitted = subject.fit(train, seed)
    m = int(fitted.support.sum())
    kept = shared.measure(fitted.model, test.X, train, test)
    others = [size for size in shared.sizes if size != m]
    models = subject.fit_sizes(train, others, seed, fitted)
    curve = {m: kept} | {size: shared.measure(model, test.X, train, test) for size, model in models}
    outputs = {"kept": model_output(fitted.model, test.X, task)}

    every, columns = subject.fit_columns(train, None, seed, fitted)
    allowed = take_columns(test.X, columns)
    outputs["all_features"] = model_output(every, allowed, task)
    generator = np.random.default_rng([seed, len(test.y)])
    drawn = []
    for draw in range(shared.n_random):
        units = generator.choice(subject.allowed, m, replace=False)
        model, columns = subject.fit_columns(train, units, seed, fitted)
        part = take_columns(test.X, columns)
        drawn.append(shared.measure(model, part, train, test))
        if draw == 0:  # one curve, not a mean of curves
            outputs["random_features"] = model_output(model, part, task)

    moments = None
    if np.ndim(test.y) == 1:
        moments = measure_moments(take_columns(test.X, fitted.features), test.y, task, np.asarray(shared.classes))
    result = FoldResult(
        kept=kept,
        all_features=shared.measure(every, allowed, train, test),
        random_features=tuple(np.mean(drawn, axis=0).tolist()) if drawn else (np.nan,) * len(kept),
        support=fitted.support,
        features=fitted.features,
        predicted=fitted.model.predict(test.X),
        seconds=fitted.seconds,
        converged=fitted.converged,
        curve={size: curve[size] for size in shared.sizes},
        outputs=outputs,
        moments=moments,
    )
    return result, subject.without_choices(fitted)


def score_held_out(
    metric: Metric, y_true: np.ndarray, response: np.ndarray, y_train: np.ndarray, seed: int = 0
) -> Interval:
    """Score rows that took no part in a fit, with a 95 % interval.

    Shares of rows have the interval of :func:`~tamiz.evaluation.intervals.mean_share_reach`, other metrics the percentile
    bootstrap over the rows.

    Examples
    --------
    >>> from tamiz.evaluation.metrics import BALANCED_ACCURACY
    >>> y = np.repeat([0, 1], 10)
    >>> score_held_out(BALANCED_ACCURACY, y, y, y)
    Interval(value=1.0, low=0.8..., high=1.0)
    """
    parts = metric.measure(y_true, response, y_train, None, np.unique(y_true) if metric.shares else None)
    value, n = float(metric.combine([parts])[0]), len(y_true)
    if n < 2 or not np.isfinite(value):
        return Interval(value)
    if metric.shares is not None:
        # Two equal halves of one fold: no variance between folds, so that the rows alone tell.
        return dataclasses.replace(interval_of_parts(metric, [parts, parts], None, 1), value=value)
    draws = np.random.default_rng(seed).integers(n, size=(1000, n))
    values = np.array([metric.combine([metric.measure(y_true[some], response[some], y_train)])[0] for some in draws])
    known = values[np.isfinite(values)]
    if not known.size or np.ptp(known) <= 1e-12:
        return Interval(value)
    low, high = np.quantile(known, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def check_test_target(y_test: np.ndarray, y_train: np.ndarray, task: str) -> None:
    """Raise if held-out targets cannot be scored: other classes than those learnt, or another number of targets.

    Examples
    --------
    >>> check_test_target(np.array(["a", "c"]), np.array(["a", "b"]), "classification")
    Traceback (most recent call last):
    ValueError: The rows to test on have classes that there are no training rows of: 'c'. Leave these rows out.
    """
    if y_test.shape[1:] != y_train.shape[1:]:
        shapes = f"shape {y_test.shape}, those to train on {y_train.shape}"
        raise ValueError(f"The targets to test on have {shapes}; give both the same columns.")
    unknown = np.setdiff1d(y_test, y_train).tolist() if task == "classification" else []
    if unknown:
        message = f"The rows to test on have classes that there are no training rows of: {list_some(unknown)}. "
        raise ValueError(message + "Leave these rows out.")


def curve_sizes(n_features: int, chosen: int, n_points: int = 8) -> list[int]:
    """Choose numbers of columns for a curve: from 1 to eight times the chosen one, evenly on a log scale.

    Examples
    --------
    >>> curve_sizes(2000, 10)
    [1, 2, 3, 7, 10, 12, 23, 43, 80]
    """
    top = min(n_features, max(16, 8 * chosen))
    sizes = np.unique(np.rint(np.geomspace(1, top, n_points)).astype(int))
    return sorted({*sizes.tolist(), chosen})
