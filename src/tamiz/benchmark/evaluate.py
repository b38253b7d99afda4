"""Cross-validation without a leak: whatever learns from the rows - imputing, encoding, selecting - learns in each fold.

Nothing here knows of files or of a particular selector: a caller hands in how to prepare the rows of a fold and how to
make a selector, and reads scores, intervals and stability from what comes back.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamiz.benchmark.metrics import (
    Interval,
    balanced_accuracy,
    corrected_interval,
    kuncheva_index,
    nogueira_stability,
    r_squared,
)

Fold = tuple[np.ndarray, np.ndarray]
#: Rows to learn from and rows to predict -> the two matrices; whatever is learnt on the way comes from the first.
Prepare = Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]
#: Number of features to keep and a seed -> an estimator with ``fit``, ``predict``, ``selection_``.
MakeModel = Callable[[int, int], Any]


def metric_of(task: str) -> tuple[str, Callable[[Any, Any], float], tuple[float, float]]:
    """Name of the score of a task, the score, and the lowest and highest value it can have.

    Examples
    --------
    >>> metric_of("classification")[0], metric_of("regression")[0]
    ('balanced accuracy', 'R²')
    """
    if task == "classification":
        return "balanced accuracy", balanced_accuracy, (0.0, 1.0)
    return "R²", r_squared, (-math.inf, 1.0)


def make_folds(y: np.ndarray, task: str, n_folds: int, n_repeats: int = 1, seed: int = 0) -> list[Fold]:
    """Folds, with every class in each where there are classes; repeated with other shuffles if asked.

    Parameters
    ----------
    y : ndarray
        The target.
    task : str
        "classification" or "regression".
    n_folds : int
        At least 2; at most the rows of the smallest class (or the rows, for regression).
    n_repeats : int, default=1
        How many times.
    seed : int, default=0
        Of the shuffles.

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


@dataclass(frozen=True)
class FoldResult:
    """What one fold measured; ``curve`` holds the score for other numbers of features."""

    kept: float
    all_features: float
    random_features: float
    support: np.ndarray
    predicted: np.ndarray
    seconds: float
    converged: bool
    curve: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """Scores over folds, and how far to trust them.

    Attributes
    ----------
    metric : str
        Which score.
    folds : list of FoldResult
        One for each fold.
    predicted : ndarray
        For every row the prediction of the fold (of the first repeat) that had not seen it.
    test_share : float
        The share of the rows each fold tested on; the intervals need it.
    """

    metric: str
    limits: tuple[float, float]
    folds: list[FoldResult]
    predicted: np.ndarray
    test_share: float

    def interval(self, what: str) -> Interval:
        """Mean and corrected interval of "kept", "all_features" or "random_features"."""
        values = [getattr(fold, what) for fold in self.folds]
        return corrected_interval(values, self.test_share, limits=self.limits)

    def difference(self, what: str) -> Interval:
        """Of *kept* minus ``what``, paired over the folds."""
        values = [fold.kept - getattr(fold, what) for fold in self.folds]
        return corrected_interval(values, self.test_share)

    def curve(self) -> list[tuple[int, Interval]]:
        """Score against the number of features."""
        sizes = sorted(self.folds[0].curve)
        return [
            (size, corrected_interval([fold.curve[size] for fold in self.folds], self.test_share, limits=self.limits))
            for size in sizes
        ]

    @property
    def fold_share(self) -> np.ndarray:
        """For each feature the share of folds that kept it."""
        return np.mean([fold.support for fold in self.folds], axis=0)

    @property
    def stability(self) -> float:
        """Nogueira's stability of the selections of the folds."""
        return nogueira_stability([fold.support for fold in self.folds])

    @property
    def kuncheva(self) -> float:
        """Kuncheva's index of the selections of the folds."""
        return kuncheva_index([fold.support for fold in self.folds])


def columns_of(X: Any, columns: np.ndarray) -> Any:
    """Some columns of an array or sparse matrix, contiguous."""
    return X[:, columns] if hasattr(X, "tocsr") else np.ascontiguousarray(X[:, columns])


def curve_sizes(n_features: int, chosen: int, n_points: int = 8) -> list[int]:
    """Numbers of features for a curve: from 1 to about eight times the chosen one, evenly on a log scale.

    Examples
    --------
    >>> curve_sizes(2000, 10)
    [1, 2, 3, 7, 10, 12, 23, 43, 80]
    """
    top = min(n_features, max(16, 8 * chosen))
    sizes = np.unique(np.rint(np.geomspace(1, top, n_points)).astype(int))
    return sorted({*sizes.tolist(), chosen})


def _score_columns(
    make_model: MakeModel,
    train: Any,
    test: Any,
    y: np.ndarray,
    fold: Fold,
    columns: np.ndarray | None,
    seed: int,
    score: Any,
) -> float:
    """The score of a model that keeps all of the given columns."""
    if columns is not None:
        train, test = columns_of(train, columns), columns_of(test, columns)
    model = make_model(train.shape[1], seed).fit(train, y[fold[0]])
    return score(y[fold[1]], model.predict(test))


def _evaluate_fold(
    prepare: Prepare,
    y: np.ndarray,
    fold: Fold,
    make_model: MakeModel,
    n_features_to_select: int,
    score: Callable[[Any, Any], float],
    sizes: Sequence[int],
    n_random: int,
    seed: int,
    tick: Callable[[], None],
) -> FoldResult:
    train, test = prepare(*fold)
    started = time.perf_counter()
    model = make_model(n_features_to_select, seed).fit(train, y[fold[0]])
    seconds = time.perf_counter() - started
    predicted = model.predict(test)
    kept = score(y[fold[1]], predicted)
    selection = model.selection_
    tick()
    everything = _score_columns(make_model, train, test, y, fold, None, seed, score)
    tick()
    generator = np.random.default_rng([seed, len(fold[1])])
    draws = [np.sort(generator.choice(train.shape[1], n_features_to_select, replace=False)) for _ in range(n_random)]
    by_chance = [_score_columns(make_model, train, test, y, fold, draw, seed, score) for draw in draws]
    tick()
    best_first = np.argsort(selection.ranking, kind="stable")
    curve = {}
    for size in sizes:
        if size == n_features_to_select:
            curve[size] = kept
        else:
            columns = np.sort(best_first[:size])
            curve[size] = _score_columns(make_model, train, test, y, fold, columns, seed, score)
    tick()
    return FoldResult(
        kept, everything, float(np.mean(by_chance)), selection.support, predicted, seconds, selection.converged, curve
    )


#: How often :func:`evaluate_selection` reports within a fold.
TICKS_PER_FOLD = 4


#: A piece of work; it calls what it is handed between its steps, and is stopped there when another piece has failed.
Work = Callable[[Callable[[], None]], Any]


class _Stopped(Exception):
    """Raised inside a piece of work that is no longer wanted."""


def run_side_by_side(pieces: Iterable[Work], n_jobs: int, tick: Callable[[], None] = lambda: None) -> list[Any]:
    """Run pieces of work in threads (the engine releases the lock of the interpreter); results in order.

    After an error or an interrupt, pieces that wait never start, and those that run stop at their next step.

    Examples
    --------
    >>> run_side_by_side([lambda tick: 1, lambda tick: 2], n_jobs=2)
    [1, 2]
    """
    if n_jobs <= 1:
        return [piece(tick) for piece in pieces]
    stopped = threading.Event()

    def step() -> None:
        if stopped.is_set():
            raise _Stopped
        tick()

    pool = ThreadPoolExecutor(n_jobs)
    try:
        results = [future.result() for future in [pool.submit(piece, step) for piece in pieces]]
    except BaseException as error:
        stopped.set()
        # A piece may be in the middle of compiling the engine, for half a minute: Ctrl-C does not wait for it.
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()
    return results


def evaluate_selection(
    prepare: Prepare,
    y: np.ndarray,
    make_model: MakeModel,
    n_features_to_select: int,
    folds: Sequence[Fold],
    *,
    task: str,
    sizes: Sequence[int] = (),
    n_random: int = 5,
    seed: int = 0,
    n_jobs: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Score M selected features against all of them and against M random ones, the selection made in each fold.

    Parameters
    ----------
    prepare : callable
        ``prepare(train_rows, test_rows)`` gives the two matrices.
    y : ndarray
        The target.
    make_model : callable
        ``make_model(n_features_to_select, seed)`` gives an estimator. Asked for as many features as there are
        columns, it selects nothing: so the same model scores all, random and other sets of features.
    n_features_to_select : int
        M.
    folds : sequence of (train rows, test rows)
        From :func:`make_folds`.
    task : str
        "classification" (balanced accuracy) or "regression" (R²).
    sizes : sequence of int
        Further numbers of features to score, by the ranking of each fold.
    n_random : int, default=5
        Random sets of M features for each fold, whose scores are averaged.
    seed : int, default=0
        Of everything.
    n_jobs : int, default=1
        Folds that run side by side.
    tick : callable
        Called ``TICKS_PER_FOLD`` times in each fold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamiz.baselines import FisherScore
    >>> from sklearn.linear_model import LogisticRegression
    >>> class Model:  # any selector and any model
    ...     def __init__(self, m): self.m = m
    ...     def fit(self, X, y):
    ...         self.selector = FisherScore(n_features_to_select=self.m).fit(X, y)
    ...         self.selection_ = self.selector.selection_
    ...         self.model = LogisticRegression(max_iter=500).fit(self.selector.transform(X), y)
    ...         return self
    ...     def predict(self, X): return self.model.predict(self.selector.transform(X))
    >>> X, y = load_iris(return_X_y=True)
    >>> found = evaluate_selection(
    ...     lambda train, test: (X[train], X[test]), y, lambda m, seed: Model(m), 2,
    ...     make_folds(y, "classification", 5), task="classification",
    ... )
    >>> found.fold_share.tolist(), found.stability, bool(found.interval("kept").mean > 0.9)
    ([0.0, 0.0, 1.0, 1.0], 1.0, True)
    """
    metric, score, limits = metric_of(task)
    results = run_side_by_side(
        (
            lambda tick, fold=fold, number=number: _evaluate_fold(  # type: ignore[misc]
                prepare, y, fold, make_model, n_features_to_select, score, sizes, n_random, seed + number, tick
            )
            for number, fold in enumerate(folds)
        ),
        n_jobs,
        tick,
    )
    predicted = np.empty(len(y), dtype=np.asarray(results[0].predicted).dtype)
    for fold, result in reversed(list(zip(folds, results, strict=True))):  # the first repeat has the last word
        predicted[fold[1]] = result.predicted
    test_share = float(np.mean([len(test) / (len(train) + len(test)) for train, test in folds]))
    return Evaluation(metric, limits, results, predicted, test_share)
