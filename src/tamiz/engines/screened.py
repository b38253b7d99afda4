"""Screen columns before a fit: only those with the most evidence, on their own or in a pair, reach an engine."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Engine, Fit, Problem, Progress
from tamiz.engines.schedule import Schedule
from tamiz.pairs.screening import screening_scores
from tamiz.selection import Selection


@dataclass(frozen=True, eq=False)
class Screening:
    """Hold the features that were screened, and the problem with these alone.

    Parameters
    ----------
    problem : Problem
        Dense, with the columns of the screened features in the order of the table; groups are numbered anew.
    features : ndarray of int, shape (n_screened,)
        Numbers of the screened features, ascending.
    by_evidence : ndarray of int, shape (n_features,)
        All features, most evidence first; the screened ones are the first of them.
    """

    problem: Problem
    features: np.ndarray
    by_evidence: np.ndarray

    def ranked(self, selection: Selection) -> Selection:
        """Return the record of a fit on the screened features as one of all: the others rank behind, by their evidence.

        Parameters
        ----------
        selection : Selection
            Record of the fit on the screened features.
        """
        n_screened = self.features.size
        ranking = np.empty(self.by_evidence.size, dtype=np.int64)
        ranking[self.by_evidence] = np.arange(1, self.by_evidence.size + 1)
        ranking[self.features] = selection.ranking
        assert np.sort(ranking[self.by_evidence[:n_screened]])[-1] == n_screened
        history = dict(selection.history)
        if "gamma_path_features" in history:
            history["gamma_path_features"] = self.features[history["gamma_path_features"]]
        return replace(selection, support=ranking <= selection.n_features_to_select, ranking=ranking, history=history)


def screen(problem: Problem, loss: Loss, n_screened: int, seed: int = 0, n_best: int | None = None) -> Screening:
    """Keep the features with the most evidence, by :func:`tamiz.pairs.screening.screening_scores`; ties by number.

    Parameters
    ----------
    problem : Problem
        The data; a sparse table is searched as it is, and only the screened columns are made dense.
    loss : Loss
        Tells classes from numbers.
    n_screened : int
        How many features to keep.
    seed : int, default=0
        Seed of the search of very wide tables.
    n_best : int or None, default=None
        How many of the best must be known; None: ``n_screened``. If there are no more features, nothing is searched.

    Returns
    -------
    Screening
    """
    n_features = problem.n_features
    groups = np.arange(problem.n_columns) if problem.groups is None else np.asarray(problem.groups)
    by_evidence = np.arange(n_features)
    if n_features > min(n_screened, n_screened if n_best is None else n_best):
        scores = screening_scores(
            problem.X,
            problem.targets,
            is_classification=loss.task == "classification",
            sample_weight=problem.sample_weight,
            groups=problem.groups,
            seed=seed,
        )
        by_evidence = np.argsort(-scores, kind="stable")
    features = np.sort(by_evidence[:n_screened])
    columns = np.flatnonzero(np.isin(groups, features))
    values: Any = problem.X[:, columns]
    values = (values.toarray() if sp.issparse(values) else np.asarray(values)).astype(np.float32, copy=False)
    if problem.offset is not None:
        values = values + problem.offset[columns].astype(np.float32)
    small = Problem(
        np.ascontiguousarray(values),
        problem.targets,
        problem.sample_weight,
        owned=True,
        groups=None if problem.groups is None else np.searchsorted(features, groups[columns]),
    )
    return Screening(small, features, by_evidence)


@dataclass(frozen=True)
class ScreenedEngine:
    """Screen columns, then let another engine select among them.

    Parameters
    ----------
    engine : Engine
        What is fitted on the screened columns.
    n_screened : int
        How many columns are screened; at least M.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines import linear_schedule
    >>> from tamiz.engines.linear import LinearEngine
    >>> X = np.random.default_rng(0).normal(size=(60, 50)).astype(np.float32)
    >>> y = np.where(X[:, [3]] - X[:, [7]] > 0, 1.0, -1.0)
    >>> schedule = linear_schedule(60, 2, "classification")
    >>> rule = Rule(50, 2, ramp_steps=schedule.ramp_steps, warmup_steps=schedule.warmup_steps)
    >>> fit = ScreenedEngine(LinearEngine(), 10).fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> fit.selection.indices.tolist(), fit.selection.ranking.size
    ([3, 7], 50)
    """

    engine: Engine
    n_screened: int

    def fit(
        self,
        problem: Problem,
        rule: Rule,
        loss: Loss,
        schedule: Schedule,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Fit:
        """Select exactly M of the screened columns, in one run of the engine.

        Parameters
        ----------
        problem, rule, loss, schedule, seed, progress
            As for every engine.

        Returns
        -------
        Fit
        """
        started = time.perf_counter()
        screened = screen(problem, loss, max(self.n_screened, rule.n_features_to_select), seed)
        rule = replace(rule, n_features=screened.features.size)
        fit = self.engine.fit(screened.problem, rule, loss, schedule, seed=seed, progress=progress)
        selection = screened.ranked(fit.selection)
        return Fit(replace(selection, seconds=time.perf_counter() - started), fit.model)
