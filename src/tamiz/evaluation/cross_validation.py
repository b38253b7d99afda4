"""Cross-validation without a leak: whatever learns from the rows - imputing, encoding, selecting - learns in each fold.

Nothing here knows of files or of a particular selector: a caller passes how to prepare the rows of a fold and how to make
a selector, and reads scores, intervals and stability from the result.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamiz.evaluation.fold_work import FoldTask, FoldWork, MakeModel
from tamiz.evaluation.folds import Fold, Prepare, count_test_rows, mean_test_share
from tamiz.evaluation.intervals import Interval, corrected_interval, exact_interval
from tamiz.evaluation.metrics import Metric, Parts, get_metric
from tamiz.evaluation.null import Null, permutation_null
from tamiz.evaluation.pools import run_in_processes, run_in_threads
from tamiz.evaluation.stability import nogueira_stability

#: Level below which a score counts as better than that of shuffled targets.
SIGNAL_LEVEL = 0.05


def find_verdict(evaluation: Evaluation) -> str:
    """Return one sentence on an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        With its null, or without.

    Returns
    -------
    str
    """
    n_kept, n_features = evaluation.n_features_to_select, evaluation.n_features
    kept = f"{n_kept:,} of {n_features:,} columns"
    null = evaluation.null
    if null is not None and null.p_value > SIGNAL_LEVEL and null.p_value * (null.n_permutations + 1) <= 1:
        return (
            f"None of {null.n_permutations} shuffled targets does as well, which are too few to tell a signal from chance; "
            "take 20 or more."
        )
    if null is not None and null.p_value > SIGNAL_LEVEL:
        return f"No sign of signal: shuffled targets do as well (p = {null.p_value:.2f}, {null.n_permutations} permutations)."
    tested = (
        f"better than shuffled targets, p = {null.p_value:.3f}"
        if null is not None and math.isfinite(null.p_value)
        else "not compared with shuffled targets"
    )
    if n_kept == n_features:
        return f"All {n_features:,} columns were kept ({tested})."
    gap = evaluation.difference("all_features")
    if not gap.has_ends:
        return f"{kept} were kept ({tested}); how they compare with all cannot be told."
    ahead = evaluation.metric.sign * gap.value
    if gap.low <= 0 <= gap.high:
        return f"{kept} predict as well as all, as far as these rows can tell ({tested})."
    return f"{kept} predict {'better' if ahead > 0 else 'worse'} than all, by {abs(gap.value):.3f} ({tested})."


def holdout_interval(
    metric: Metric,
    y_true: np.ndarray,
    response: np.ndarray,
    y_train: np.ndarray,
    sample_weight: np.ndarray | None = None,
    n_draws: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return the score of held-out rows with its 95 % interval.

    The interval is the percentile bootstrap over the rows, within classes; where every draw gives the same score it is the
    exact bound on the number of rows.

    Parameters
    ----------
    metric : Metric
        Metric.
    y_true, response : ndarray
        Targets of the rows, and what the metric reads of the model.
    y_train : ndarray
        Targets of the training rows, for R².
    sample_weight : ndarray or None, default=None
        Weights of the rows.
    n_draws : int, default=1000
        Draws of the bootstrap.
    seed : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> from tamiz.evaluation.metrics import BALANCED_ACCURACY
    >>> y = np.repeat([0, 1], 10)
    >>> holdout_interval(BALANCED_ACCURACY, y, y, y)
    Interval(value=1.0, low=0.83..., high=1.0)
    """
    generator = np.random.default_rng(seed)
    strata = _strata(metric, y_true)
    value = _score(metric, y_true, response, y_train, sample_weight, np.arange(len(y_true)))
    if len(y_true) < 2 or not math.isfinite(value):
        return Interval(value)
    draws = np.array(
        [
            _score(
                metric, y_true, response, y_train, sample_weight,
                np.concatenate([generator.choice(rows, rows.size) for rows in strata]),
            )
            for _ in range(n_draws)
        ]
    )  # fmt: skip
    known = draws[np.isfinite(draws)]
    if known.size and np.ptp(known) > 1e-12:
        low, high = np.quantile(known, [0.025, 0.975])
        return Interval(value, float(low), float(high))
    if metric.count_rows is None:
        return Interval(value)
    return exact_interval(value, metric.count_rows(y_true))


def check_test_target(y_test: np.ndarray, y_train: np.ndarray, task: str) -> None:
    """Raise if held-out targets cannot be scored: other classes than those learnt, or another number of targets.

    Examples
    --------
    >>> check_test_target(np.array(["a", "c"]), np.array(["a", "b"]), "classification")
    Traceback (most recent call last):
    ValueError: The rows to test on have classes that there are no training rows of: 'c'. Leave these rows out.
    """
    if y_test.shape[1:] != y_train.shape[1:]:
        raise ValueError(
            f"The targets to test on have shape {y_test.shape}, those to train on {y_train.shape}; give both the same columns."
        )
    unknown = np.setdiff1d(y_test, y_train) if task == "classification" else np.empty(0)
    if unknown.size:
        some = ", ".join(repr(str(label)) for label in unknown[:5])
        raise ValueError(
            f"The rows to test on have classes that there are no training rows of: {some}. Leave these rows out."
        )


def _strata(metric: Metric, y_true: np.ndarray) -> list[np.ndarray]:
    if metric.tasks != ("classification",):
        return [np.arange(len(y_true))]
    return [np.flatnonzero(y_true == label) for label in np.unique(y_true)]


def _score(metric: Metric, y_true: Any, response: Any, y_train: Any, weights: Any, rows: np.ndarray) -> float:
    parts = metric.measure(y_true[rows], response[rows], y_train, None if weights is None else weights[rows])
    return float(metric.combine([parts])[0])


@dataclass(frozen=True)
class FoldResult:
    """Hold what one fold measured: parts of scores, see :class:`~tamiz.evaluation.metrics.Metric`.

    ``outputs`` (by the names of ``heldout.COLUMN_SETS``), ``probabilities`` and ``effects`` are what the models of the fold
    say of the held-out rows and of the kept columns; they are empty or None where a model has none.

    ``curve`` holds those of other numbers of features.
    """

    kept: Parts
    all_features: Parts
    random_features: Parts
    support: np.ndarray
    predicted: np.ndarray
    seconds: float
    converged: bool
    curve: Mapping[int, Parts] = field(default_factory=dict)
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
    tested : ndarray of bool or None
        Rows that a fold has predicted; None for all of them.
    n_test_rows : float or None
        Rows that the interval may count on where the folds do not vary or few rows are wrong.
    null : Null or None
        What shuffled targets give over the same folds; None if that was not computed.
    test_score : Interval or None
        Score on rows that took no part in the folds, of the model fitted on all others; None if there are none.
    n_kept, n_units : int or None
        How many features are kept of how many, where these are groups or each fold chose its own M; None: as the folds did.
    """

    metric: Metric
    folds: list[FoldResult]
    predicted: np.ndarray
    test_share: float
    tested: np.ndarray | None = None
    n_test_rows: float | None = None
    null: Null | None = None
    test_score: Interval | None = None
    n_kept: int | None = None
    n_units: int | None = None

    def values(self, what: str) -> np.ndarray:
        """Return one value per fold of "kept", "all_features" or "random_features"; their mean is the score."""
        return self.metric.combine([getattr(fold, what) for fold in self.folds])

    def interval(self, what: str) -> Interval:
        """Return score and corrected interval of "kept", "all_features" or "random_features"."""
        return self._interval(self.values(what))

    def _interval(self, values: np.ndarray) -> Interval:
        return corrected_interval(values, self.test_share, limits=self.metric.limits, n_rows=self.n_test_rows)

    def difference(self, what: str) -> Interval:
        """Return the interval of *kept* minus ``what``, paired over the folds."""
        values = self.values("kept") - self.values(what)
        if self.n_test_rows is None:
            return corrected_interval(values, self.test_share)
        return corrected_interval(values, self.test_share, limits=(-1, 1), n_rows=self.n_test_rows)

    def curve(self) -> list[tuple[int, Interval]]:
        """Return the score for each number of features."""
        sizes = sorted(self.folds[0].curve)
        return [
            (size, self._interval(self.metric.combine([fold.curve[size] for fold in self.folds]))) for size in sizes
        ]

    @property
    def n_features_to_select(self) -> int:
        """Number of features that are kept."""
        return int(self.folds[0].support.sum()) if self.n_kept is None else self.n_kept

    @property
    def n_features(self) -> int:
        """Number of features of the table."""
        return int(self.folds[0].support.size) if self.n_units is None else self.n_units

    @property
    def n_without_score(self) -> int:
        """Number of folds in which the score of the kept features is not defined."""
        return int((~np.isfinite(self.values("kept"))).sum())

    @property
    def verdict(self) -> str:
        """Return one sentence: is there anything, and do the kept features do as well as all of them."""
        return find_verdict(self)

    @property
    def fold_share(self) -> np.ndarray:
        """Share of folds that kept each feature."""
        return np.mean([fold.support for fold in self.folds], axis=0)

    @property
    def stability(self) -> float:
        """Nogueira's stability of the selections of the folds."""
        return nogueira_stability([fold.support for fold in self.folds])


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


#: The parts of a fold, the longest first, and how often each reports.
_PARTS = {"kept": 2, "all_features": 1, "random_features": 1}


def _join_parts(parts: Sequence[Mapping[str, Any]]) -> FoldResult:
    """Return the result of a fold from those of its parts."""
    outputs = {name: output for part in parts for name, output in part.get("outputs", {}).items()}
    found = {name: value for part in parts for name, value in part.items()}
    return FoldResult(**{**found, "outputs": outputs})


def _evaluate_fold(shared: FoldTask, number: int, tick: Callable[[], None]) -> FoldResult:
    work = FoldWork(shared, number)
    return _join_parts([getattr(work, part)(tick) for part in _PARTS])


def _evaluate_part(shared: FoldTask, number: int, part: str) -> dict[str, Any]:
    return getattr(FoldWork(shared, number), part)(lambda: None)


def _evaluate_in_processes(shared: FoldTask, n_jobs: int, tick: Callable[[], None]) -> list[FoldResult]:
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
    automatic: bool = False,
    scoring: str | Metric | None = None,
    sample_weight: np.ndarray | None = None,
    n_permutations: int = 0,
    groups: np.ndarray | None = None,
    time: np.ndarray | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    processes: bool = False,
    tick: Callable[[], None] = lambda: None,
    units: np.ndarray | None = None,
    make_plain: MakeModel | None = None,
    make_null: MakeModel | None = None,
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
        Decides the metric, if ``scoring`` does not: balanced accuracy or pooled R².
    sizes : sequence of int, default=()
        Further numbers of features to score, each by a fit of its own.
    n_random : int, default=5
        Random sets of M features per fold, whose scores are averaged.
    automatic : bool, default=False
        Whether each fold chooses its own M from its training rows (``make_model("auto", seed)``), so that the rows which
        score it did not choose it; ``n_features_to_select`` is then that of the random sets and of the permutations.
    scoring : str, Metric or None, default=None
        Metric, see :func:`~tamiz.evaluation.metrics.get_metric`.
    sample_weight : ndarray or None, default=None
        Weights of the rows, for the fits and for the score.
    n_permutations : int, default=0
        Permutations of the null, see :func:`~tamiz.evaluation.null.permutation_null`; 0 leaves it out.
    groups, time : ndarray or None, default=None
        Group or time of each row, as the folds were made with, for the null.
    seed : int, default=0
        Seed of models and random sets.
    n_jobs : int, default=1
        Folds that run in parallel.
    processes : bool, default=False
        Whether they run in processes instead of threads, for models that torch trains. The arguments must pickle then.
    tick : callable, default=no-op
        Called ``TICKS_PER_FOLD + n_permutations`` times per fold.
    units : ndarray of int, shape (n_columns,), or None, default=None
        Number of the group of each column, where the models select groups: M, ``sizes`` and random sets count groups.
    make_plain : callable or None, default=None
        As ``make_model``, for models of given columns, among which nothing is selected; None: ``make_model``.
    make_null : callable or None, default=None
        As ``make_model``, for permuted rows; None: ``make_model``.

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
    metric = get_metric(scoring, task)
    shared = FoldTask(
        prepare,
        y,
        folds,
        make_model,
        n_features_to_select,
        metric,
        task,
        sizes,
        n_random,
        seed,
        sample_weight,
        units,
        make_plain or make_model,
        automatic,
    )
    if processes:
        results = _evaluate_in_processes(shared, n_jobs, tick)
    else:
        pieces = (lambda tick, number=number: _evaluate_fold(shared, number, tick) for number in range(len(folds)))
        results = run_in_threads(pieces, n_jobs, tick)
    first = np.asarray(results[0].predicted)
    predicted = np.zeros((len(y), *first.shape[1:]), dtype=first.dtype)
    tested = np.zeros(len(y), dtype=bool)
    for fold, result in reversed(list(zip(folds, results, strict=True))):  # the first repeat overwrites later ones
        predicted[fold[1]] = result.predicted
        tested[fold[1]] = True
    found = Evaluation(
        metric,
        results,
        predicted,
        mean_test_share(folds),
        tested,
        count_test_rows(metric, y, folds),
        n_kept=n_features_to_select,
        n_units=None if units is None else int(np.max(units)) + 1,
    )
    if not n_permutations:
        return found
    null = permutation_null(
        dataclasses.replace(shared, automatic=False, make_model=make_null or make_model),
        float(np.nanmean(found.values("kept"))),
        n_permutations,
        groups=groups,
        time=time,
        n_jobs=n_jobs,
        processes=processes,
        tick=tick,
    )
    return dataclasses.replace(found, null=null)
