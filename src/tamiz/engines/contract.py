"""Inputs and results of an engine, the same for all engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.core.step import fill_budget
from tamiz.engines.schedule import Schedule
from tamiz.selection import Selection

#: Called now and then with (step, features alive, steps of refinement done); None: nobody is told.
Progress = Callable[[int, int, int], None] | None


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
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return self.targets.shape[1]

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return self.X.shape[1]

    @property
    def n_features(self) -> int:
        """Number of features that can be selected: groups or, without groups, columns.

        Examples
        --------
        >>> Problem(np.zeros((2, 3)), np.zeros((2, 1)), groups=np.array([0, 1, 1])).n_features
        2
        """
        return self.n_columns if self.groups is None else int(np.max(self.groups, initial=-1)) + 1

    def check_groups(self, n_features: int) -> None:
        """Raise ValueError unless the columns and groups are those of a rule with ``n_features`` features.

        Examples
        --------
        >>> Problem(np.zeros((2, 3)), np.zeros((2, 1)), groups=np.array([0, 2, 2])).check_groups(3)
        Traceback (most recent call last):
        ValueError: groups must number the 3 features of the rule from 0 on, one integer for each of the 3 columns, ...
        """
        groups = np.arange(self.n_columns) if self.groups is None else np.asarray(self.groups)
        is_whole = groups.shape == (self.n_columns,) and groups.dtype.kind in "iu" and groups.min(initial=0) >= -1
        sizes = np.bincount(groups[groups >= 0]) if is_whole else np.zeros(0)
        if sizes.size != n_features or not sizes.all():
            raise ValueError(
                f"groups must number the {n_features} features of the rule from 0 on, one integer for each of the "
                f"{self.n_columns} columns, each feature with at least one; -1 is for columns that are always read"
            )

    def columns_of(self, kept: np.ndarray) -> np.ndarray:
        """Which columns the model reads, as a mask, for a mask of the kept features.

        Examples
        --------
        >>> problem = Problem(np.zeros((2, 3)), np.zeros((2, 1)), groups=np.array([0, -1, 1]))
        >>> problem.columns_of(np.array([False, True])).tolist()
        [False, True, True]
        """
        return kept if self.groups is None else (self.groups < 0) | kept[self.groups]

    def part(self, kept: np.ndarray) -> Problem:
        """Problem with the kept features, given as a mask, and the columns that are always read.

        Examples
        --------
        >>> problem = Problem(np.eye(3), np.zeros((3, 1)), groups=np.array([0, -1, 1]))
        >>> problem.part(np.array([False, True])).groups.tolist()
        [-1, 0]
        """
        columns = np.flatnonzero(self.columns_of(kept))
        groups = None if self.groups is None else np.append(np.cumsum(kept) - 1, -1)[self.groups[columns]]
        offset = None if self.offset is None else self.offset[columns]
        return replace(self, X=self.X[:, columns], offset=offset, owned=True, groups=groups)

    def unit_weights(self) -> np.ndarray:
        """Sample weights, scaled to a mean of one, as float32.

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
        """Copy the table to a dense float32 array; a dense one is copied only where it is of another type."""
        if isinstance(self.X, np.ndarray):
            return np.asarray(self.X, dtype=np.float32)
        dense = self.X.toarray().astype(np.float32, copy=False)
        return dense if self.offset is None else dense + self.offset.astype(np.float32)

    def densified(self) -> Problem:
        """Make a sparse table dense."""
        return self if isinstance(self.X, np.ndarray) else replace(self, X=self.dense(), offset=None, owned=True)


#: Memory that a dense table which an engine makes may take.
MAX_BYTES = 8 << 30


def check_dense_size(problem: Problem, n_columns: int) -> None:
    """Raise MemoryError if the rows of a problem with so many columns, dense in float32, take more than ``MAX_BYTES``."""
    n_bytes = 4 * problem.n_samples * n_columns
    if n_bytes > MAX_BYTES:
        raise MemoryError(
            f"{problem.n_samples} dense rows of {n_columns} columns take {n_bytes / 2**30:.1f} GiB, more than the "
            f"{MAX_BYTES / 2**30:.1f} GiB allowed: select fewer columns first, for example with network='linear', lower "
            "n_screened, or fit on a part of the rows"
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit gives back.

    Parameters
    ----------
    selection : Selection
        The record of the run; exactly M features are kept.
    model : object
        The trained model, which reads the M selected columns in the order of the table; with groups, the columns of the
        kept groups and those with -1. ``scores(X, offset=None)`` gives the outputs for each row after ``Loss.decision``,
        float64, ``rescaled(mean, scale)`` the model whose outputs are ``scores * scale + mean``.
    """

    selection: Selection
    model: Any


class Engine(Protocol):
    """Train a model and select its inputs in one run."""

    def fit(
        self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, *, seed: int = 0, progress: Progress = None
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


def fit_with_rule(engine: Engine, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, **run: Any) -> Fit:
    """Fit an engine; with a budget, take what was eliminated but still fits, and train the model on all of it.

    An engine eliminates features until the rest fits, and forgets what it eliminated. So where something still fits beside
    that, the model is trained once more, on the kept columns alone.

    Parameters
    ----------
    engine : Engine
        What trains the model.
    problem, rule, loss, schedule, **run
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
        return engine.fit(problem, rule, loss, schedule, **run)
    # The table is needed once more: no engine may overwrite it.
    problem = replace(problem, owned=False)
    fit = engine.fit(problem, rule, loss, schedule, **run)
    selection = fit.selection
    ranking, n_kept = fill_budget(selection.ranking, int(selection.support.sum()), rule.costs, rule.limit)
    if n_kept == selection.support.sum():
        return fit
    kept = ranking <= n_kept
    decided = replace(rule, n_features=n_kept, n_features_to_select=n_kept, costs=None, budget=None)
    model = engine.fit(problem.part(kept), decided, loss, schedule, **run)
    seconds, n_steps = (getattr(selection, name) + getattr(model.selection, name) for name in ("seconds", "n_steps"))
    return Fit(replace(selection, support=kept, ranking=ranking, seconds=seconds, n_steps=n_steps), model.model)
