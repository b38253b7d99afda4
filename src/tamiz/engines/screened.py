"""Screen columns before a fit: only those with the most evidence, on their own or in a pair, reach an engine."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.core.losses import Loss
from tamiz.core.rule import BUDGET_TOLERANCE, Rule
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
        Dense, with the columns of the screened features and those that are always read in the order of the table; groups
        are numbered anew.
    features : ndarray of int, shape (n_screened,)
        Numbers of the screened features, ascending.
    by_evidence : ndarray of int, shape (n_features,)
        All features, most evidence first; the screened ones are the first of them.
    best : ndarray of int, shape (n_screened + n_always,)
        The screened features by their new numbers and, numbered behind them, the columns that are always read; most evidence
        first.
    """

    problem: Problem
    features: np.ndarray
    by_evidence: np.ndarray
    best: np.ndarray

    def rule(self, rule: Rule) -> Rule:
        """Return the rule of a fit on the screened features.

        Parameters
        ----------
        rule : Rule
            That of all features.
        """
        costs = None if rule.costs is None else rule.costs[self.features]
        return replace(rule, n_features=self.features.size, costs=costs)

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


def count_screened(by_evidence: np.ndarray, n_screened: int, rule: Rule, share: float = 1.0) -> int:
    """Return how many features are screened: at least M or, with a budget, so many that they cost more than it.

    Parameters
    ----------
    by_evidence : ndarray of int, shape (n_features,)
        Features, most evidence first.
    n_screened : int
        How many are wanted.
    rule : Rule
        With M or a budget.
    share : float, default=1.0
        How many times the budget they shall cost, 1 or more, as far as there are as many.

    Examples
    --------
    >>> rule = Rule(5, 0, costs=[1, 2, 1, 2, 4], budget=4)
    >>> count_screened(np.array([3, 2, 1, 0, 4]), 1, rule), count_screened(np.arange(5), 1, rule, share=3.0)
    (3, 5)
    """
    n = max(n_screened, rule.n_features_to_select)
    if rule.costs is not None:
        # A rule must have something to decide: its costs exceed the budget, in whatever order they are added.
        spent = np.cumsum(rule.costs[by_evidence])
        n = max(n, int(np.searchsorted(spent, share * rule.limit * (1.0 + BUDGET_TOLERANCE), side="right")) + 1)
    return min(n, by_evidence.size)


def screen(
    problem: Problem,
    rule: Rule,
    loss: Loss,
    n_screened: int,
    seed: int = 0,
    n_best: int | None = None,
    share: float = 1.0,
) -> Screening:
    """Keep the features with the most evidence, by :func:`tamiz.pairs.screening.screening_scores`; ties by number.

    Columns that are always read stay.

    Parameters
    ----------
    problem : Problem
        The data; a sparse table is searched as it is, and only the columns that stay are made dense.
    rule : Rule
        With M or a budget: enough features stay to select from, see :func:`count_screened`.
    loss : Loss
        Tells classes from numbers.
    n_screened : int
        How many features to keep.
    seed : int, default=0
        Seed of the search of very wide tables.
    n_best : int or None, default=None
        How many of the best must be known, columns that are always read included; None: only which features stay. If there
        are no more, nothing is searched.
    share : float, default=1.0
        How many times the budget the features that stay shall cost.

    Returns
    -------
    Screening
    """
    problem.check_groups(rule.n_features)
    n_features = rule.n_features
    units = np.arange(problem.n_columns) if problem.groups is None else np.array(problem.groups)
    always = np.flatnonzero(units < 0)
    units[always] = n_features + np.arange(always.size)
    scores = np.zeros(n_features + always.size)
    # The most expensive ones first: if so few of them do not suffice, nothing is left out in any order.
    first = np.arange(n_features) if rule.costs is None else np.argsort(-rule.costs)
    leaves_out = count_screened(first, n_screened, rule, share) < n_features
    if leaves_out or (n_best is not None and scores.size > n_best):
        scores = screening_scores(
            problem.X,
            problem.targets,
            is_classification=loss.task == "classification",
            sample_weight=problem.sample_weight,
            groups=None if problem.groups is None else units,
            seed=seed,
        )
    by_evidence = np.argsort(-scores[:n_features], kind="stable")
    features = np.sort(by_evidence[: count_screened(by_evidence, n_screened, rule, share)])
    numbers = np.concatenate([features, np.arange(n_features, scores.size)])
    columns = np.flatnonzero(np.isin(units, numbers))
    values: Any = problem.X[:, columns]
    values = (values.toarray() if sp.issparse(values) else np.asarray(values)).astype(np.float32, copy=False)
    if problem.offset is not None:
        values = values + problem.offset[columns].astype(np.float32)
    groups = None
    if problem.groups is not None:
        groups = np.where(units[columns] < n_features, np.searchsorted(features, units[columns]), -1)
    small = Problem(np.ascontiguousarray(values), problem.targets, problem.sample_weight, owned=True, groups=groups)
    return Screening(small, features, by_evidence, np.argsort(-scores[numbers], kind="stable"))


@dataclass(frozen=True)
class ScreenedEngine:
    """Screen columns, then let another engine select among them.

    Parameters
    ----------
    engine : Engine
        What is fitted on the screened columns.
    n_screened : int
        How many features are screened; at least M and, with a budget, so many that they cost more than it.

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
        """Select exactly M of the screened features, or what fits into the budget, in one run of the engine.

        Parameters are those of every :class:`~tamiz.engines.contract.Engine`.
        """
        started = time.perf_counter()
        screened = screen(problem, rule, loss, self.n_screened, seed)
        fit = self.engine.fit(screened.problem, screened.rule(rule), loss, schedule, seed=seed, progress=progress)
        selection = screened.ranked(fit.selection)
        return Fit(replace(selection, seconds=time.perf_counter() - started), fit.model)
