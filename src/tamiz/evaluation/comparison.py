"""Compare several selectors on the same folds: scores by number of features, time, agreement, tests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from tamiz._extras import require
from tamiz.baselines.registry import get_method
from tamiz.estimators.networks import find_network
from tamiz.evaluation.folds import Fold, Prepare, mean_test_share, take_columns
from tamiz.evaluation.intervals import Interval, corrected_interval
from tamiz.evaluation.methods import fit_size, make_seeded
from tamiz.evaluation.metrics import METRICS, Metric
from tamiz.evaluation.pools import run_in_threads
from tamiz.evaluation.significance import (
    FriedmanResult,
    MethodRank,
    PairedTest,
    friedman_ranks,
    rank_against_best,
    wilcoxon_pairs,
)
from tamiz.evaluation.stability import nogueira_stability


@dataclass(frozen=True)
class Candidate:
    """Describe how a selector takes part in a comparison.

    Parameters
    ----------
    make : callable
        ``make(n_features_to_select, seed)`` returns a selector with ``fit`` and ``ranking_``.
    nested : {"any", "largest", "smallest", "each"}, default="any"
        M at which one fit serves every M, see :class:`~tamiz.baselines.Method`.
    keeps_all : bool, default=False
        Whether it keeps every feature, whatever M is.
    in_threads : bool, default=True
        Whether its fits may run in threads; if not, they run one after the other when the rest is done.
    """

    make: Callable[[int, int], Any]
    nested: str = "any"
    keeps_all: bool = False
    in_threads: bool = True


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
            tuple(corrected_interval(splits, self.test_share, limits=self.metric.limits) for splits in by_m)
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

    def _series(self, sign: float = 1.0) -> dict[str, np.ndarray]:
        return {name: sign * self.scores[i].ravel() for i, name in enumerate(self.methods)}

    @cached_property
    def tests(self) -> tuple[PairedTest, ...]:
        """Wilcoxon tests of all pairs of methods over splits and values of M, corrected after Holm."""
        return tuple(wilcoxon_pairs(self._series(), self.alpha))

    @cached_property
    def friedman(self) -> FriedmanResult:
        """Mean ranks over splits and values of M, with Friedman's test."""
        return friedman_ranks(self._series(1.0 if self.metric.greater_is_better else -1.0), self.alpha)

    @cached_property
    def ranks(self) -> tuple[MethodRank, ...]:
        """Mean rank of each method, with its test against the best."""
        return rank_against_best(self.friedman.mean_ranks, self.tests)


def make_candidates(names: Sequence[str], task: str, network: str = "linear") -> dict[str, Candidate]:
    """Make the candidates of a comparison from the names of methods.

    Parameters
    ----------
    names : sequence of str
        As :func:`~tamiz.baselines.registry.canonical_name` spells them.
    task : {"classification", "regression"}
        Task.
    network : {"linear", "mlp"}, default="linear"
        Network of E2E-FS.

    Raises
    ------
    ValueError
        If a method cannot be fitted for the task.

    Examples
    --------
    >>> make_candidates(["fisher", "svm-rfe"], "classification")["svm-rfe"].nested
    'smallest'
    """
    candidates = {}
    for name in names:
        info = get_method(name)
        if task not in info.tasks:
            raise ValueError(f"The method {name!r} needs classes, but the task is regression. Leave it out.")
        its_network = network if info.trains_model else "linear"
        make = partial(make_seeded, name, task=task, network=its_network)
        made, kind = make(1, 0), find_network(its_network)
        if info.trains_model:
            kind.engine(made)  # a package that is missing is reported here, not by every fold
        in_threads = info.engine != "torch" and kind.compiled
        candidates[name] = Candidate(make, info.nested, info.keeps_all, in_threads)
    return candidates


def load_engines(candidates: Mapping[str, Candidate], task: str) -> None:
    """Compile the engine of E2E-FS and import torch, if needed, so that the first fit is not timed with it."""
    own = [one for name, one in candidates.items() if get_method(name).trains_model and one.in_threads]
    if own:
        X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
        own[0].make(1, 0).fit(X, np.repeat([0, 1], 6) if task == "classification" else X[:, 0])
    if any(not one.in_threads for one in candidates.values()):
        names = [name for name, one in candidates.items() if not one.in_threads]
        require("torch", "torch", f"The method {names[0]}")


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


@dataclass
class _Record:
    score: float = math.nan
    seconds: float = math.nan
    support: np.ndarray | None = None
    failure: str | None = None


def _compare_fold(
    prepare: Prepare,
    y: np.ndarray,
    fold: Fold,
    candidate: Candidate,
    m_values: Sequence[int],
    task: str,
    seed: int,
    tick: Callable[[], None],
) -> list[_Record]:
    """Run one method on one fold, for every M."""
    train, test = prepare(*fold)
    y_train, y_test = y[fold[0]], y[fold[1]]
    records = []
    ranking: np.ndarray | None = None
    seconds = math.nan
    for m in m_values:
        record = _Record()
        try:
            if ranking is None or candidate.nested == "each":
                started = time.perf_counter()
                selector = candidate.make(fit_size(candidate.nested, m, m_values), seed).fit(train, y_train)
                seconds = time.perf_counter() - started
                ranking = np.asarray(selector.ranking_)
            record.support = np.ones(ranking.size, dtype=bool) if candidate.keeps_all else ranking <= m
            columns = np.flatnonzero(record.support)
            judge = default_judge(task, hasattr(train, "tocsr")).fit(take_columns(train, columns), y_train)
            record.score = METRICS[task](y_test, judge.predict(take_columns(test, columns)))
            record.seconds = seconds
        except (ValueError, FloatingPointError, ImportError, TypeError, MemoryError) as error:
            record.failure = str(error).splitlines()[0] if str(error) else type(error).__name__
        records.append(record)
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
    jobs: list[tuple[str, int]] = []
    results: list[list[_Record]] = []
    for in_threads in (True, False):
        some = [
            (name, i) for name, one in candidates.items() for i in range(len(folds)) if one.in_threads == in_threads
        ]
        work = (
            lambda tick, name=name, i=i: _compare_fold(
                prepare, y, folds[i], candidates[name], m_values, task, seed + i, tick
            )
            for name, i in some
        )
        jobs += some
        results += run_in_threads(work, n_jobs if in_threads else 1, tick)
    shape = (len(candidates), len(m_values), len(folds))
    scores, seconds = np.full(shape, np.nan), np.full(shape, np.nan)
    supports = np.zeros((*shape, n_features), dtype=bool)
    failures: dict[str, str] = {}
    order = list(candidates)
    for (name, number), records in zip(jobs, results, strict=True):
        for position, record in enumerate(records):
            place = (order.index(name), position, number)
            scores[place], seconds[place] = record.score, record.seconds
            if record.failure is not None:
                failures.setdefault(name, record.failure)
            elif record.support is not None:
                supports[place] = record.support
    known = np.isfinite(seconds)
    mean_seconds = np.where(known, seconds, 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    mean_seconds[~known.any(axis=2)] = np.nan
    return Comparison(
        metric=METRICS[task],
        methods=tuple(order),
        m_values=tuple(m_values),
        scores=scores,
        seconds=mean_seconds,
        supports=supports,
        test_share=mean_test_share(folds),
        failures=failures,
    )
