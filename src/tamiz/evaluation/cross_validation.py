"""Cross-validation without a leak: whatever learns from the rows - imputing, encoding, selecting - learns in each fold.

Nothing here knows of files or of a particular selector: a caller passes how to prepare the rows of a fold and how to make
a selector, and reads scores, intervals and stability from the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamiz.evaluation.folds import Fold, Prepare, mean_test_share, take_columns
from tamiz.evaluation.heldout import model_effects, model_output, model_probabilities
from tamiz.evaluation.intervals import Interval, corrected_interval
from tamiz.evaluation.metrics import METRICS, Metric
from tamiz.evaluation.pools import run_in_processes, run_in_threads
from tamiz.evaluation.stability import kuncheva_index, nogueira_stability

#: Number of features to keep, seed -> an estimator with ``fit``, ``predict``, ``selection_``.
MakeModel = Callable[[int, int], Any]


@dataclass(frozen=True)
class FoldResult:
    """Hold what one fold measured; ``curve`` holds the score for other numbers of features.

    ``outputs`` (by the names of ``heldout.COLUMN_SETS``), ``probabilities`` and ``effects`` are what the models of the fold
    say of the held-out rows and of the kept columns; they are empty or None where a model has none.
    """

    kept: float
    all_features: float
    random_features: float
    support: np.ndarray
    predicted: np.ndarray
    seconds: float
    converged: bool
    curve: Mapping[int, float] = field(default_factory=dict)
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    probabilities: np.ndarray | None = None
    effects: np.ndarray | None = None


@dataclass(frozen=True)
class Evaluation:
    """Hold the scores of a selection over folds.

    Attributes
    ----------
    metric : Metric
        Metric of the scores.
    folds : list of FoldResult
        One record per fold.
    predicted : ndarray
        For every row the prediction of the fold (of the first repeat) that had not seen it.
    test_share : float
        Mean share of the rows that a fold tests on, for the intervals.
    """

    metric: Metric
    folds: list[FoldResult]
    predicted: np.ndarray
    test_share: float

    def interval(self, what: str) -> Interval:
        """Return mean and corrected interval of "kept", "all_features" or "random_features"."""
        values = [getattr(fold, what) for fold in self.folds]
        return corrected_interval(values, self.test_share, limits=self.metric.limits)

    def difference(self, what: str) -> Interval:
        """Return the interval of *kept* minus ``what``, paired over the folds."""
        values = [fold.kept - getattr(fold, what) for fold in self.folds]
        return corrected_interval(values, self.test_share)

    def curve(self) -> list[tuple[int, Interval]]:
        """Return the score for each number of features."""
        sizes = sorted(self.folds[0].curve)
        return [
            (
                size,
                corrected_interval(
                    [fold.curve[size] for fold in self.folds], self.test_share, limits=self.metric.limits
                ),
            )
            for size in sizes
        ]

    @property
    def fold_share(self) -> np.ndarray:
        """Share of folds that kept each feature."""
        return np.mean([fold.support for fold in self.folds], axis=0)

    @property
    def stability(self) -> float:
        """Nogueira's stability of the selections of the folds."""
        return nogueira_stability([fold.support for fold in self.folds])

    @property
    def kuncheva(self) -> float:
        """Kuncheva's index of the selections of the folds."""
        return kuncheva_index([fold.support for fold in self.folds])


def curve_sizes(n_features: int, chosen: int, n_points: int = 8) -> list[int]:
    """Return numbers of features for a curve: from 1 to eight times the chosen one, evenly on a log scale.

    Examples
    --------
    >>> curve_sizes(2000, 10)
    [1, 2, 3, 7, 10, 12, 23, 43, 80]
    """
    top = min(n_features, max(16, 8 * chosen))
    sizes = np.unique(np.rint(np.geomspace(1, top, n_points)).astype(int))
    return sorted({*sizes.tolist(), chosen})


@dataclass(frozen=True)
class _Shared:
    """Hold what all folds share."""

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
    """Prepare the matrices of one fold and fit models on them."""

    def __init__(self, shared: _Shared, number: int) -> None:
        self.shared = shared
        self.seed = shared.seed + number
        fold = shared.folds[number]
        self.train, self.test = shared.prepare(*fold)
        self.y_train, self.y_test = shared.y[fold[0]], shared.y[fold[1]]
        self.score = METRICS[shared.task]
        self.outputs: dict[str, np.ndarray] = {}

    def keep_output(self, name: str, model: Any, test: Any) -> None:
        """Keep what a model says of the held-out rows, under the name of its columns."""
        output = model_output(model, test, self.shared.task)
        if output is not None:
            self.outputs[name] = output

    def score_columns(self, columns: np.ndarray | None, name: str | None = None) -> float:
        """Return the score of a model that keeps all of the given columns (None: all); ``name`` keeps its output."""
        train, test = self.train, self.test
        if columns is not None:
            train, test = take_columns(train, columns), take_columns(test, columns)
        model = self.shared.make_model(train.shape[1], self.seed).fit(train, self.y_train)
        if name is not None:
            self.keep_output(name, model, test)
        return self.score(self.y_test, model.predict(test))

    def kept(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Select; return the score of the selection and those of the other numbers of features."""
        m = self.shared.n_features_to_select
        started = time.perf_counter()
        model = self.shared.make_model(m, self.seed).fit(self.train, self.y_train)
        seconds = time.perf_counter() - started
        predicted = model.predict(self.test)
        kept = self.score(self.y_test, predicted)
        self.keep_output("kept", model, self.test)
        tick()
        selection = model.selection_
        best_first = np.argsort(selection.ranking, kind="stable")
        curve = {
            size: kept if size == m else self.score_columns(np.sort(best_first[:size])) for size in self.shared.sizes
        }
        tick()
        return {
            "kept": kept,
            "support": selection.support,
            "predicted": predicted,
            "seconds": seconds,
            "converged": selection.converged,
            "curve": curve,
            "outputs": self.outputs,
            "probabilities": model_probabilities(model, self.test) if self.shared.task == "classification" else None,
            "effects": model_effects(model),
        }

    def all_features(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Return the score of all features."""
        found = self.score_columns(None, "all_features")
        tick()
        return {"all_features": found, "outputs": self.outputs}

    def random_features(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Return the mean score of random sets of features."""
        generator = np.random.default_rng([self.seed, len(self.y_test)])
        draws = [
            np.sort(generator.choice(self.train.shape[1], self.shared.n_features_to_select, replace=False))
            for _ in range(self.shared.n_random)
        ]
        # Of several draws the output of the first is kept: one curve, not a mean of curves.
        found = float(np.mean([self.score_columns(d, None if i else "random_features") for i, d in enumerate(draws)]))
        tick()
        return {"random_features": found, "outputs": self.outputs}


#: The parts of a fold, the longest first, and how often each reports.
_PARTS = {"kept": 2, "all_features": 1, "random_features": 1}


def _join_parts(parts: Sequence[Mapping[str, Any]]) -> FoldResult:
    """Return the result of a fold from those of its parts."""
    outputs = {name: output for part in parts for name, output in part.get("outputs", {}).items()}
    found = {name: value for part in parts for name, value in part.items()}
    return FoldResult(**{**found, "outputs": outputs})


def _evaluate_fold(shared: _Shared, number: int, tick: Callable[[], None]) -> FoldResult:
    work = _FoldWork(shared, number)
    return _join_parts([getattr(work, part)(tick) for part in _PARTS])


def _evaluate_part(shared: _Shared, number: int, part: str) -> dict[str, Any]:
    return getattr(_FoldWork(shared, number), part)(lambda: None)


def _evaluate_in_processes(shared: _Shared, n_jobs: int, tick: Callable[[], None]) -> list[FoldResult]:
    """Run every part of every fold by itself, so that no process idles while another finishes a fold."""
    pieces = [(number, part) for part in _PARTS for number in range(len(shared.folds))]

    def done(piece: int) -> None:
        for _ in range(_PARTS[pieces[piece][1]]):
            tick()

    found: list[list[dict[str, Any]]] = [[] for _ in shared.folds]
    for (number, _), part in zip(pieces, run_in_processes(_evaluate_part, shared, pieces, n_jobs, done), strict=True):
        found[number].append(part)
    return [_join_parts(parts) for parts in found]


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
        ``prepare(train_rows, test_rows)`` returns the two matrices.
    y : ndarray
        Target.
    make_model : callable
        ``make_model(n_features_to_select, seed)`` returns an estimator. With as many features as there are columns it
        selects nothing, so the same model scores all, random and other sets of features.
    n_features_to_select : int
        M.
    folds : sequence of (train rows, test rows)
        From :func:`~tamiz.evaluation.folds.make_folds`.
    task : {"classification", "regression"}
        Decides the metric: balanced accuracy or R².
    sizes : sequence of int, default=()
        Further numbers of features to score, by the ranking of each fold.
    n_random : int, default=5
        Random sets of M features per fold, whose scores are averaged.
    seed : int, default=0
        Seed of models and random sets.
    n_jobs : int, default=1
        Folds that run in parallel.
    processes : bool, default=False
        Whether they run in processes instead of threads, for models that torch trains. The arguments must pickle then.
    tick : callable, default=no-op
        Called ``TICKS_PER_FOLD`` times per fold.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamiz.baselines import FisherScore
    >>> from tamiz.evaluation.folds import make_folds
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
    >>> found.fold_share.tolist(), found.stability, found.interval("kept").value > 0.9
    ([0.0, 0.0, 1.0, 1.0], 1.0, True)
    """
    shared = _Shared(prepare, y, folds, make_model, n_features_to_select, task, sizes, n_random, seed)
    if processes:
        results = _evaluate_in_processes(shared, n_jobs, tick)
    else:
        pieces = (lambda tick, number=number: _evaluate_fold(shared, number, tick) for number in range(len(folds)))
        results = run_in_threads(pieces, n_jobs, tick)
    predicted = np.empty(len(y), dtype=np.asarray(results[0].predicted).dtype)
    for fold, result in reversed(list(zip(folds, results, strict=True))):  # the first repeat overwrites later ones
        predicted[fold[1]] = result.predicted
    return Evaluation(METRICS[task], results, predicted, mean_test_share(folds))
