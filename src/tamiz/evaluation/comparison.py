"""Compare several selectors on the same folds: scores by number of features, time, agreement, tests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tamiz.evaluation.candidates import FIT_ERRORS, Candidate
from tamiz.evaluation.folds import Fold, Prepare, count_test_rows, mean_test_share, take_columns
from tamiz.evaluation.intervals import Interval, corrected_interval
from tamiz.evaluation.methods import fit_size
from tamiz.evaluation.metrics import Metric, Parts, get_metric
from tamiz.evaluation.pools import run_in_threads
from tamiz.evaluation.significance import (
    FriedmanResult,
    MethodRank,
    PairedTest,
    corrected_t_tests,
    friedman_ranks,
    rank_against_best,
)
from tamiz.evaluation.stability import nogueira_stability


@dataclass(frozen=True, eq=False)
class Comparison:
    """Hold the scores of several methods on the same splits.

    Attributes
    ----------
    metric : Metric
        Metric of the scores.
    methods : tuple of str
        Names.
    m_values : tuple of int
        Numbers of features.
    scores : ndarray, shape (methods, values of M, splits)
        NaN where a method failed.
    seconds : ndarray, shape (methods, values of M), or None
        Mean time of one selection.
    supports : ndarray of bool, shape (methods, values of M, splits, features), or None
        Features that were kept.
    test_share : float or None
        Mean share of the rows that a split tests on; None: splits are treated as independent.
    failures : dict of str to str
        Methods that failed in some split, and their message.
    alpha : float
        Level of the tests.
    references : tuple of str
        Methods that are lines to compare with: neither ranked nor tested.
    n_test_rows : float or None
        Rows that a bound may count on where the splits do not vary, see
        :attr:`~tamiz.evaluation.metrics.Metric.count_rows`.

    Examples
    --------
    >>> from tamiz.evaluation.metrics import BALANCED_ACCURACY
    >>> found = Comparison(BALANCED_ACCURACY, ("a", "b"), (2,), np.array([[[0.9, 1.0]], [[0.5, 0.6]]]))
    >>> [rank.mean_rank for rank in found.ranks], found.intervals[0][0].high
    ([1.0, 2.0], 1.0)
    """

    metric: Metric
    methods: tuple[str, ...]
    m_values: tuple[int, ...]
    scores: np.ndarray
    seconds: np.ndarray | None = None
    supports: np.ndarray | None = None
    test_share: float | None = None
    failures: dict[str, str] = field(default_factory=dict)
    alpha: float = 0.05
    references: tuple[str, ...] = ()
    n_test_rows: float | None = None

    def __post_init__(self) -> None:
        if self.test_share is not None and not 0 < self.test_share < 1:
            raise ValueError(f"test_share must lie between 0 and 1, got {self.test_share}")
        shape = (len(self.methods), len(self.m_values))
        for name, table in (("scores", self.scores), ("seconds", self.seconds), ("supports", self.supports)):
            if table is not None and np.shape(table)[:2] != shape:
                raise ValueError(
                    f"{name} must have {shape[0]} methods by {shape[1]} values of M, got {np.shape(table)}"
                )

    @cached_property
    def intervals(self) -> tuple[tuple[Interval, ...], ...]:
        """Mean score and corrected interval of each method for each M."""
        return tuple(
            tuple(
                corrected_interval(splits, self.test_share, limits=self.metric.limits, n_rows=self.n_test_rows)
                for splits in by_m
            )
            for by_m in self.scores
        )

    def stability(self, method: int, m: int) -> float:
        """Return Nogueira's stability over the splits, of a method and an M by their positions."""
        return math.nan if self.supports is None else nogueira_stability(self.supports[method, m])

    def agreement(self, m: int) -> np.ndarray | None:
        """Return the mean share of kept features that each two methods have in common: of the smaller set, over the splits.

        None where the features are not known.
        """
        if self.supports is None:
            return None
        kept = self.supports[:, m].astype(np.float64)
        common = np.einsum("afk,bfk->abf", kept, kept)
        sizes = kept.sum(axis=2)
        smaller = np.minimum(sizes[:, None], sizes[None])
        with np.errstate(invalid="ignore"):
            return np.mean(common / smaller, axis=2)

    @cached_property
    def competitors(self) -> tuple[str, ...]:
        """Methods that are ranked and tested: no references, and none that failed in more than half of the splits."""
        whole = np.isfinite(self.scores).all(axis=1).mean(axis=1)
        return tuple(
            name for name, share in zip(self.methods, whole, strict=True) if name not in self.references and share > 0.5
        )

    @cached_property
    def by_split(self) -> dict[str, np.ndarray]:
        """Mean over the values of M for each split, by competitor: one number per split, since its values share rows."""
        return {name: self.scores[self.methods.index(name)].mean(axis=0) for name in self.competitors}

    @cached_property
    def tests(self) -> tuple[PairedTest, ...]:
        """Corrected resampled t tests of all pairs of competitors over the splits, corrected after Holm."""
        return tuple(corrected_t_tests(self.by_split, self.test_share, self.alpha))

    @cached_property
    def friedman(self) -> FriedmanResult:
        """Mean ranks of the competitors over the splits, with Friedman's test."""
        return friedman_ranks({name: self.metric.sign * scores for name, scores in self.by_split.items()}, self.alpha)

    @cached_property
    def ranks(self) -> tuple[MethodRank, ...]:
        """Mean rank of each competitor, with its test against the best; empty if nothing can be ranked."""
        if not self.competitors:
            return ()
        return rank_against_best(self.friedman.mean_ranks, self.tests, self.metric.greater_is_better)

    @cached_property
    def smallest_visible_difference(self) -> float:
        """Typical half-width of the intervals of the differences: smaller ones cannot be told with these splits."""
        reach = [(test.high - test.low) / 2 for test in self.tests if math.isfinite(test.high - test.low)]
        return float(np.median(reach)) if reach else math.nan


def default_judge(task: str, sparse: bool = False) -> Any:
    """Return the model that scores every set of features: a linear one on standardised columns.

    Examples
    --------
    >>> default_judge("regression").steps[-1][0]
    'ridge'
    """
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not sparse)  # subtracting the mean would make a sparse table dense
    if task == "regression":
        return make_pipeline(scaler, Ridge())
    return make_pipeline(scaler, LogisticRegression(class_weight="balanced", max_iter=2000, tol=1e-3))


@dataclass(frozen=True)
class _Task:
    """Hold what all folds of a comparison share."""

    prepare: Prepare
    y: np.ndarray
    folds: Sequence[Fold]
    m_values: Sequence[int]
    task: str
    metric: Metric
    seed: int
    sample_weight: np.ndarray | None = None


@dataclass
class _Record:
    parts: Parts | None = None
    seconds: float = math.nan
    support: np.ndarray | None = None
    failure: str | None = None


def _compare_fold(shared: _Task, number: int, candidate: Candidate, tick: Callable[[], None]) -> list[_Record]:
    """Run one method on one fold, for every M; the scores of several draws are averaged."""
    data = shared.prepare(*shared.folds[number])
    draws = [
        _compare_draw(shared, number, candidate, data, shared.seed + number + 7919 * draw, tick if draw == 0 else None)
        for draw in range(candidate.n_draws)
    ]
    for position, record in enumerate(draws[0]):
        known = [parts for parts in (draw[position].parts for draw in draws) if parts is not None]
        if known:
            record.parts = tuple(np.mean(np.array(known), axis=0).tolist())
    return draws[0]


def _compare_draw(
    shared: _Task,
    number: int,
    candidate: Candidate,
    data: tuple[Any, Any],
    seed: int,
    tick: Callable[[], None] | None,
) -> list[_Record]:
    (train, test), (train_rows, test_rows) = data, shared.folds[number]
    y_train, y_test = shared.y[train_rows], shared.y[test_rows]
    weights = shared.sample_weight
    records = []
    ranking: np.ndarray | None = None
    seconds = math.nan
    for m in shared.m_values:
        record = _Record()
        try:
            if ranking is None or candidate.nested == "each":
                started = time.perf_counter()
                ranking = candidate.rank(fit_size(candidate.nested, m, shared.m_values), seed, train, y_train)
                seconds = time.perf_counter() - started
            record.support = np.ones(ranking.size, dtype=bool) if candidate.keeps_all else ranking <= m
            columns = np.flatnonzero(record.support)
            judge = default_judge(shared.task, hasattr(train, "tocsr"))
            last = judge.steps[-1][0]
            named = {} if weights is None else {f"{last}__sample_weight": weights[train_rows]}
            judge.fit(take_columns(train, columns), y_train, **named)
            response = shared.metric.read(judge, take_columns(test, columns))
            record.parts = shared.metric.measure(
                y_test, response, y_train, None if weights is None else weights[test_rows]
            )
            record.seconds = seconds
        except FIT_ERRORS as error:
            record.failure = str(error).splitlines()[0] if str(error) else type(error).__name__
        records.append(record)
        if tick is not None:
            tick()
    return records


def compare_methods(
    prepare: Prepare,
    y: np.ndarray,
    candidates: Mapping[str, Candidate],
    m_values: Sequence[int],
    folds: Sequence[Fold],
    *,
    task: str,
    n_features: int,
    scoring: str | Metric | None = None,
    sample_weight: np.ndarray | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> Comparison:
    """Run every method on the same folds, scored by the same model; a method that fails does not stop the others.

    Parameters
    ----------
    prepare, y, folds, task
        As in :func:`~tamiz.evaluation.cross_validation.evaluate_selection`.
    candidates : mapping of str to Candidate
        Methods by name.
    m_values : sequence of int
        Numbers of features to keep.
    n_features : int
        Number of features of the table.
    scoring : str, Metric or None, default=None
        Metric, see :func:`~tamiz.evaluation.metrics.get_metric`.
    sample_weight : ndarray or None, default=None
        Weights of the rows for the model that scores and for the score; the selectors do not use them.
    seed : int, default=0
        Seed of the methods.
    n_jobs : int, default=1
        Folds that run in parallel.
    tick : callable, default=no-op
        Called once for every method, fold and M.

    Returns
    -------
    Comparison
    """
    metric = get_metric(scoring, task)
    shared = _Task(prepare, y, folds, m_values, task, metric, seed, sample_weight)
    jobs: list[tuple[str, int]] = []
    results: list[list[_Record]] = []
    for in_threads in (True, False):
        some = [
            (name, i) for name, one in candidates.items() for i in range(len(folds)) if one.in_threads == in_threads
        ]
        work = (lambda tick, name=name, i=i: _compare_fold(shared, i, candidates[name], tick) for name, i in some)
        jobs += some
        results += run_in_threads(work, n_jobs if in_threads else 1, tick)
    return _collect(shared, candidates, n_features, jobs, results)


def _collect(
    shared: _Task,
    candidates: Mapping[str, Candidate],
    n_features: int,
    jobs: Sequence[tuple[str, int]],
    results: Sequence[Sequence[_Record]],
) -> Comparison:
    """Put the records of all folds into tables."""
    shape = (len(candidates), len(shared.m_values), len(shared.folds))
    seconds = np.full(shape, np.nan)
    supports = np.zeros((*shape, n_features), dtype=bool)
    n_parts = max((len(record.parts) for records in results for record in records if record.parts), default=1)
    parts = np.full((*shape, n_parts), np.nan)
    failures: dict[str, str] = {}
    order = list(candidates)
    for (name, number), records in zip(jobs, results, strict=True):
        for position, record in enumerate(records):
            place = (order.index(name), position, number)
            seconds[place] = record.seconds
            if record.failure is not None:
                failures.setdefault(name, record.failure)
            elif record.support is not None and record.parts is not None:
                supports[place], parts[place] = record.support, record.parts
    scores = np.array([[shared.metric.combine(splits) for splits in by_m] for by_m in parts])
    known = np.isfinite(seconds)
    mean_seconds = np.where(known, seconds, 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    mean_seconds[~known.any(axis=2)] = np.nan
    return Comparison(
        metric=shared.metric,
        methods=tuple(order),
        m_values=tuple(shared.m_values),
        scores=scores,
        seconds=mean_seconds,
        supports=supports,
        test_share=mean_test_share(shared.folds),
        failures=failures,
        references=tuple(name for name, one in candidates.items() if one.is_reference),
        n_test_rows=count_test_rows(shared.metric, shared.y, shared.folds),
    )
