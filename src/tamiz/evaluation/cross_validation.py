"""Cross-validation without a leak: whatever learns from the rows - imputing, encoding, selecting - learns in each fold.

Nothing here knows of files or of a particular selector: a caller hands in how to prepare the rows of a fold and how to
make a selector, and reads scores, intervals and stability from what comes back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamiz.evaluation.metrics import (
    Interval,
    balanced_accuracy,
    corrected_interval,
    kuncheva_index,
    nogueira_stability,
    r_squared,
)
from tamiz.evaluation.pools import run_in_processes, run_side_by_side

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


@dataclass(frozen=True)
class _Plan:
    """What all folds share."""

    prepare: Prepare
    y: np.ndarray
    folds: Sequence[Fold]
    make_model: MakeModel
    n_features_to_select: int
    task: str
    sizes: Sequence[int]
    n_random: int
    seed: int


class _FoldWork:
    """One fold: its matrices, and the fits that are made on them."""

    def __init__(self, plan: _Plan, number: int) -> None:
        self.plan = plan
        self.seed = plan.seed + number
        fold = plan.folds[number]
        self.train, self.test = plan.prepare(*fold)
        self.y_train, self.y_test = plan.y[fold[0]], plan.y[fold[1]]
        self.score = metric_of(plan.task)[1]

    def score_columns(self, columns: np.ndarray | None) -> float:
        """The score of a model that keeps all of the given columns."""
        train, test = self.train, self.test
        if columns is not None:
            train, test = columns_of(train, columns), columns_of(test, columns)
        model = self.plan.make_model(train.shape[1], self.seed).fit(train, self.y_train)
        return self.score(self.y_test, model.predict(test))

    def kept(self, tick: Callable[[], None]) -> dict[str, Any]:
        """The selection, its score, and the scores of the other numbers of features."""
        m = self.plan.n_features_to_select
        started = time.perf_counter()
        model = self.plan.make_model(m, self.seed).fit(self.train, self.y_train)
        seconds = time.perf_counter() - started
        predicted = model.predict(self.test)
        kept = self.score(self.y_test, predicted)
        tick()
        selection = model.selection_
        best_first = np.argsort(selection.ranking, kind="stable")
        curve = {
            size: kept if size == m else self.score_columns(np.sort(best_first[:size])) for size in self.plan.sizes
        }
        tick()
        return {
            "kept": kept,
            "support": selection.support,
            "predicted": predicted,
            "seconds": seconds,
            "converged": selection.converged,
            "curve": curve,
        }

    def all_features(self, tick: Callable[[], None]) -> dict[str, Any]:
        """The score of all features; nothing is selected."""
        found = self.score_columns(None)
        tick()
        return {"all_features": found}

    def random_features(self, tick: Callable[[], None]) -> dict[str, Any]:
        """The mean score of random sets; nothing is selected."""
        generator = np.random.default_rng([self.seed, len(self.y_test)])
        draws = [
            np.sort(generator.choice(self.train.shape[1], self.plan.n_features_to_select, replace=False))
            for _ in range(self.plan.n_random)
        ]
        found = float(np.mean([self.score_columns(draw) for draw in draws]))
        tick()
        return {"random_features": found}


#: The parts of a fold, the longest first, and how often each reports.
_PARTS = {"kept": 2, "all_features": 1, "random_features": 1}


def _evaluate_fold(plan: _Plan, number: int, tick: Callable[[], None]) -> FoldResult:
    work = _FoldWork(plan, number)
    found: dict[str, Any] = {}
    for part in _PARTS:
        found.update(getattr(work, part)(tick))
    return FoldResult(**found)


def _evaluate_part(plan: _Plan, number: int, part: str) -> dict[str, Any]:
    return getattr(_FoldWork(plan, number), part)(lambda: None)


def _evaluate_in_processes(plan: _Plan, n_jobs: int, tick: Callable[[], None]) -> list[FoldResult]:
    """Every part of every fold by itself: the bar moves more often, and no process idles while one ends its fold."""
    pieces = [(number, part) for part in _PARTS for number in range(len(plan.folds))]

    def done(piece: int) -> None:
        for _ in range(_PARTS[pieces[piece][1]]):
            tick()

    found: list[dict[str, Any]] = [{} for _ in plan.folds]
    for (number, _), part in zip(pieces, run_in_processes(_evaluate_part, plan, pieces, n_jobs, done), strict=True):
        found[number].update(part)
    return [FoldResult(**parts) for parts in found]


#: How often :func:`evaluate_selection` reports within a fold.
TICKS_PER_FOLD = sum(_PARTS.values())


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
    processes: bool = False,
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
    processes : bool, default=False
        Whether they run in processes instead of threads: for models that torch trains. What is handed in must pickle.
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
    metric, _, limits = metric_of(task)
    plan = _Plan(prepare, y, folds, make_model, n_features_to_select, task, sizes, n_random, seed)
    if processes:
        results = _evaluate_in_processes(plan, n_jobs, tick)
    else:
        pieces = (lambda tick, number=number: _evaluate_fold(plan, number, tick) for number in range(len(folds)))
        results = run_side_by_side(pieces, n_jobs, tick)
    predicted = np.empty(len(y), dtype=np.asarray(results[0].predicted).dtype)
    for fold, result in reversed(list(zip(folds, results, strict=True))):  # the first repeat has the last word
        predicted[fold[1]] = result.predicted
    test_share = float(np.mean([len(test) / (len(train) + len(test)) for train, test in folds]))
    return Evaluation(metric, limits, results, predicted, test_share)
