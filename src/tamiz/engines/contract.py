"""Inputs and results of an engine, the same for all engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.core.step import fill_budget
from tamiz.engines.schedule import Schedule
from tamiz.selection import Selection

#: Called now and then with (step, features alive, steps of refinement done).
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True, eq=False)
class Problem:
    """Hold the data of a fit, ready for training.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_columns)
        The table, normalised.
    targets : ndarray of float32, shape (n_samples, n_outputs)
        As the loss takes them: -1 and +1, or numbers.
    sample_weight : ndarray, shape (n_samples,), or None, default=None
        Weights of the samples; engines scale them to a mean of one.
    offset : ndarray, shape (n_columns,), or None, default=None
        Implicit value of each column of a sparse table (``X + 1 offset^T`` is meant).
    owned : bool, default=False
        Whether an engine may overwrite X and offset.
    groups : ndarray of int, shape (n_columns,), or None, default=None
        Number of the group of each column, from 0 on without gaps. The columns of a group share one entry of gamma: the
        features of the ``Rule`` and of the ``Selection`` are then the groups, and the model reads all columns of the kept
        ones. Columns with -1 have no entry of gamma: the model always reads them. None: every column is a feature.
    """

    X: Any
    targets: np.ndarray
    sample_weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    owned: bool = False
    groups: np.ndarray | None = None

    @property
    def n_samples(self) -> int:
        """Return the number of rows."""
        return self.X.shape[0]

    @property
    def n_outputs(self) -> int:
        """Return the number of outputs of the model."""
        return self.targets.shape[1]

    @property
    def n_columns(self) -> int:
        """Return the number of columns of the table."""
        return self.X.shape[1]

    @property
    def n_features(self) -> int:
        """Return the number of features that can be selected: groups or, without groups, columns.

        Examples
        --------
        >>> Problem(np.zeros((2, 3)), np.zeros((2, 1)), groups=np.array([0, 1, 1])).n_features
        2
        """
        return self.n_columns if self.groups is None else int(np.max(self.groups, initial=-1)) + 1

    @property
    def has_wide_groups(self) -> bool:
        """Return whether a feature has several columns."""
        return self.groups is not None and np.bincount(self.groups[self.groups >= 0]).max(initial=0) > 1

    def check_groups(self, n_features: int) -> None:
        """Raise ValueError unless the columns and groups are those of a rule with ``n_features`` features.

        Examples
        --------
        >>> Problem(np.zeros((2, 3)), np.zeros((2, 1)), groups=np.array([0, 2, 2])).check_groups(3)
        Traceback (most recent call last):
        ValueError: groups must number the 3 features of the rule from 0 on, each with at least one column; ...
        """
        if self.groups is None:
            if n_features != self.n_columns:
                raise ValueError(f"the rule has {n_features} features, the table {self.n_columns} columns")
            return
        groups = np.asarray(self.groups)
        if groups.shape != (self.n_columns,) or groups.dtype.kind not in "iu":
            raise ValueError(
                f"groups must hold one integer for each of the {self.n_columns} columns, "
                f"got an array of {groups.dtype} of shape {groups.shape}"
            )
        if groups.size and groups.min() < -1:
            raise ValueError(
                f"numbers of groups begin at 0, or are -1 for columns that are always read, got {groups.min()}"
            )
        sizes = np.bincount(groups[groups >= 0], minlength=n_features)
        if sizes.size != n_features or not sizes.all():
            raise ValueError(
                f"groups must number the {n_features} features of the rule from 0 on, each with at least one column; "
                f"got {np.count_nonzero(sizes)} groups with columns, the largest number is {sizes.size - 1}"
            )

    def columns_of(self, kept: np.ndarray) -> np.ndarray:
        """Return which columns the model reads, as a mask, for a mask of the kept features.

        Examples
        --------
        >>> problem = Problem(np.zeros((2, 3)), np.zeros((2, 1)), groups=np.array([0, -1, 1]))
        >>> problem.columns_of(np.array([False, True])).tolist()
        [False, True, True]
        """
        return kept if self.groups is None else (self.groups < 0) | kept[self.groups]

    def side_by_side(self) -> tuple[Problem, np.ndarray | None, np.ndarray | None]:
        """Return the problem with the columns of each group side by side, their old numbers, and the starts.

        Columns that are always read go to the end.

        Returns
        -------
        problem : Problem
        order : ndarray of int, shape (n_columns,), or None
            Old numbers of the columns; None: not moved.
        starts : ndarray of int, shape (n_features + 1,), or None
            First column of each group and the end; None without groups.

        Examples
        --------
        >>> problem = Problem(np.zeros((2, 4)), np.zeros((2, 1)), groups=np.array([1, 0, -1, 1]))
        >>> [part.tolist() for part in problem.side_by_side()[1:]]
        [[1, 0, 3, 2], [0, 1, 3]]
        """
        if self.groups is None:
            return self, None, None
        groups = np.asarray(self.groups)
        key = np.where(groups < 0, self.n_columns, groups)
        starts = np.concatenate([[0], np.cumsum(np.bincount(groups[groups >= 0]))])
        if (np.diff(key) >= 0).all():
            return replace(self, groups=groups), None, starts
        order = np.argsort(key, kind="stable")
        offset = None if self.offset is None else self.offset[order]
        return replace(self, X=self.X[:, order], offset=offset, owned=True, groups=groups[order]), order, starts

    def unit_weights(self) -> np.ndarray:
        """Return the sample weights, scaled to a mean of one, as float32.

        Examples
        --------
        >>> Problem(np.zeros((2, 1)), np.zeros((2, 1)), np.array([1.0, 3.0])).unit_weights().tolist()
        [0.5, 1.5]
        """
        if self.sample_weight is None:
            return np.ones(self.n_samples, dtype=np.float32)
        weights = np.asarray(self.sample_weight, dtype=np.float64)
        return (weights / weights.mean()).astype(np.float32)

    def dense(self) -> np.ndarray:
        """Return the table as a dense float32 array."""
        if isinstance(self.X, np.ndarray):
            return np.asarray(self.X, dtype=np.float32)
        dense = self.X.toarray().astype(np.float32, copy=False)
        return dense if self.offset is None else dense + self.offset.astype(np.float32)


class Model(Protocol):
    """A trained model that reads the M selected columns."""

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Return the outputs for each row after ``Loss.decision``, float64, shape (n_samples, n_outputs)."""

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> Model:
        """Return the model whose outputs are ``scores * scale + mean``."""


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit gives back.

    Parameters
    ----------
    selection : Selection
        The record of the run; exactly M features are kept.
    model : Model
        The trained model, which reads the M selected columns in the order of the table; with groups, the columns of the
        kept groups and those with -1.
    """

    selection: Selection
    model: Any


class Engine(Protocol):
    """Train a model and select its inputs in one run."""

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
        """Select exactly M columns, or M groups of columns, and train the model on them, in one run.

        Parameters
        ----------
        problem : Problem
            The data.
        rule : Rule
            How gamma moves.
        loss : Loss
            What is minimised.
        schedule : Schedule
            How the weights move.
        seed : int, default=0
            Decides the order of the samples and the weights that a network starts with.
        progress : callable or None, default=None
            Called now and then with (step, features alive, steps of refinement done).

        Returns
        -------
        Fit
        """


@runtime_checkable
class PathEngine(Protocol):
    """An engine that fits several M on one table and shares work between them."""

    def fit_path(
        self,
        problem: Problem,
        rules: Sequence[Rule],
        loss: Loss,
        schedules: Sequence[Schedule],
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Iterator[Fit]:
        """Yield for each rule and schedule what ``fit`` returns; rules by falling M share most of the work."""


def fit_with_rule(
    engine: Engine,
    problem: Problem,
    rule: Rule,
    loss: Loss,
    schedule: Schedule,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Fit:
    """Fit an engine; with a budget, take what was eliminated but still fits, and train the model on all of it.

    An engine eliminates features until the rest fits, and forgets what it eliminated. So where something still fits beside
    that, the model is trained once more, on the kept columns alone.

    Parameters
    ----------
    engine : Engine
        What trains the model.
    problem, rule, loss, schedule, seed, progress
        As for ``engine.fit``.

    Returns
    -------
    Fit
        The kept features cost at most the budget, and no other would still fit.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines.linear import LinearEngine
    >>> from tamiz.engines.schedule import linear_schedule
    >>> X = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
    >>> y = np.where(X[:, 3] - X[:, 5] > 0, 1.0, -1.0)[:, None]
    >>> schedule = linear_schedule(60, 2, "classification", ramp_steps=2000, refinement_epochs=5)
    >>> rule = Rule(6, 0, ramp_steps=2000, costs=[1, 1, 1, 4, 1, 4], budget=9)
    >>> fit = fit_with_rule(LinearEngine(), Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> fit.selection.support[[3, 5]].tolist(), int(rule.costs[fit.selection.support].sum())
    ([True, True], 9)
    """
    if rule.costs is None:
        return engine.fit(problem, rule, loss, schedule, seed=seed, progress=progress)
    # The table is needed once more: no engine may overwrite it.
    problem = replace(problem, owned=False)
    fit = engine.fit(problem, rule, loss, schedule, seed=seed, progress=progress)
    selection = fit.selection
    ranking, n_kept = fill_budget(selection.ranking, int(selection.support.sum()), rule.costs, rule.limit)
    if n_kept == selection.support.sum():
        return fit
    kept = ranking <= n_kept
    columns = np.flatnonzero(problem.columns_of(kept))
    groups = None
    if problem.groups is not None:
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        groups = np.where(problem.groups[columns] < 0, -1, number[problem.groups[columns]])
    part = replace(
        problem,
        X=problem.X[:, columns],
        offset=None if problem.offset is None else problem.offset[columns],
        owned=True,
        groups=groups,
    )
    decided = replace(rule, n_features=n_kept, n_features_to_select=n_kept, costs=None, budget=None)
    model = engine.fit(part, decided, loss, schedule, seed=seed, progress=progress)
    seconds, n_steps = (getattr(selection, name) + getattr(model.selection, name) for name in ("seconds", "n_steps"))
    return Fit(replace(selection, support=kept, ranking=ranking, seconds=seconds, n_steps=n_steps), model.model)
