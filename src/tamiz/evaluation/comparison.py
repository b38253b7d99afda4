"""Several selectors on the same folds: scores by number of features, time, agreement, statistics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.evaluation.cross_validation import Fold, Prepare, columns_of, metric_of
from tamiz.evaluation.metrics import (
    FriedmanResult,
    Interval,
    PairedTest,
    corrected_interval,
    friedman_ranks,
    nogueira_stability,
    wilcoxon_pairs,
)
from tamiz.evaluation.pools import run_side_by_side


@dataclass(frozen=True)
class Method:
    """How to make a selector.

    Parameters
    ----------
    make : callable
        ``make(n_features_to_select, seed)`` gives a selector with ``fit`` and ``ranking_``.
    fit_at : {"largest", "smallest", "each"}
        For which M it is fitted. A ranking that does not depend on M serves all of them ("largest"); one of an
        elimination that goes on until M are left serves the larger ones as well ("smallest").
    keeps_all : bool
        True for the method that keeps every feature whatever M is.
    side_by_side : bool
        False for methods that must not run in threads (torch draws its random numbers from one place, and uses all
        cores by itself); they run one after the other, when the rest is done.
    """

    make: Callable[[int, int], Any]
    fit_at: str = "largest"
    keeps_all: bool = False
    side_by_side: bool = True


@dataclass(frozen=True)
class Comparison:
    """What a comparison measured.

    Attributes
    ----------
    scores : ndarray, shape (methods, values of M, folds)
        NaN where a method failed.
    seconds : ndarray, shape (methods, values of M)
        Mean time of one selection.
    supports : ndarray of bool, shape (methods, values of M, folds, features)
        What was kept.
    failures : dict of str to str
        Methods that failed in some fold, and their message.
    """

    metric: str
    limits: tuple[float, float]
    methods: tuple[str, ...]
    m_values: tuple[int, ...]
    scores: np.ndarray
    seconds: np.ndarray
    supports: np.ndarray
    test_share: float
    failures: dict[str, str]

    def interval(self, method: int, m: int) -> Interval:
        """Mean score and corrected interval."""
        return corrected_interval(self.scores[method, m], self.test_share, limits=self.limits)

    def stability(self, method: int, m: int) -> float:
        """Nogueira's stability over the folds."""
        return nogueira_stability(self.supports[method, m])

    def agreement(self, m: int) -> np.ndarray:
        """Mean share of kept features that two methods have in common: of the smaller set, over the folds."""
        kept = self.supports[:, m].astype(np.float64)
        common = np.einsum("afk,bfk->abf", kept, kept)
        sizes = kept.sum(axis=2)
        smaller = np.minimum(sizes[:, None], sizes[None])
        with np.errstate(invalid="ignore"):
            return np.mean(common / smaller, axis=2)

    def _series(self) -> dict[str, np.ndarray]:
        return {name: self.scores[i].ravel() for i, name in enumerate(self.methods)}

    def tests(self, alpha: float = 0.05) -> list[PairedTest]:
        """Wilcoxon tests of all pairs of methods over folds and values of M, corrected after Holm."""
        return wilcoxon_pairs(self._series(), alpha)

    def ranks(self, alpha: float = 0.05) -> FriedmanResult:
        """Mean ranks over folds and values of M."""
        return friedman_ranks(self._series(), alpha)


def default_judge(task: str, sparse: bool = False) -> Any:
    """The model that scores every set of features alike: a linear one on standardised columns.

    Examples
    --------
    >>> default_judge("regression").steps[-1][0]
    'ridge'
    """
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not sparse)  # a sparse table without its mean would be dense
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
    method: Method,
    m_values: Sequence[int],
    task: str,
    seed: int,
    tick: Callable[[], None],
) -> list[_Record]:
    """One method on one fold, for every M."""
    _, score, _ = metric_of(task)
    train, test = prepare(*fold)
    y_train, y_test = y[fold[0]], y[fold[1]]
    records = []
    ranking: np.ndarray | None = None
    seconds = math.nan
    for m in m_values:
        record = _Record()
        try:
            if ranking is None or method.fit_at == "each":
                started = time.perf_counter()
                asked = {"largest": max(m_values), "smallest": min(m_values), "each": m}[method.fit_at]
                selector = method.make(asked, seed).fit(train, y_train)
                seconds = time.perf_counter() - started
                ranking = np.asarray(selector.ranking_)
            record.support = np.ones(ranking.size, dtype=bool) if method.keeps_all else ranking <= m
            columns = np.flatnonzero(record.support)
            judge = default_judge(task, hasattr(train, "tocsr")).fit(columns_of(train, columns), y_train)
            record.score = score(y_test, judge.predict(columns_of(test, columns)))
            record.seconds = seconds
        except (ValueError, FloatingPointError, ImportError, TypeError, MemoryError) as error:
            record.failure = str(error).splitlines()[0] if str(error) else type(error).__name__
        records.append(record)
        tick()
    return records


def compare_methods(
    prepare: Prepare,
    y: np.ndarray,
    methods: Mapping[str, Method],
    m_values: Sequence[int],
    folds: Sequence[Fold],
    *,
    task: str,
    n_features: int,
    seed: int = 0,
    n_jobs: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> Comparison:
    """Every method on the same folds, scored by the same model; a method that fails does not stop the others.

    Parameters
    ----------
    prepare, y, folds, task, seed, n_jobs
        As in :func:`~tamiz.evaluation.cross_validation.evaluate_selection`.
    methods : mapping of str to Method
        By name.
    m_values : sequence of int
        Numbers of features to keep.
    n_features : int
        How many there are.
    tick : callable
        Called once for every method, fold and M.
    """
    metric, _, limits = metric_of(task)
    jobs: list[tuple[str, int]] = []
    results: list[list[_Record]] = []
    for together in (True, False):
        some = [
            (name, i) for name, method in methods.items() for i in range(len(folds)) if method.side_by_side == together
        ]
        work = (
            lambda tick, name=name, i=i: _compare_fold(
                prepare, y, folds[i], methods[name], m_values, task, seed + i, tick
            )
            for name, i in some
        )
        jobs += some
        results += run_side_by_side(work, n_jobs if together else 1, tick)
    shape = (len(methods), len(m_values), len(folds))
    scores, seconds = np.full(shape, np.nan), np.full(shape, np.nan)
    supports = np.zeros((*shape, n_features), dtype=bool)
    failures: dict[str, str] = {}
    order = list(methods)
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
    test_share = float(np.mean([len(test) / (len(train) + len(test)) for train, test in folds]))
    return Comparison(
        metric, limits, tuple(order), tuple(m_values), scores, mean_seconds, supports, test_share, failures
    )
