"""Fit a linear model and its mask, for one M or for several that share their first steps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamiz.core.losses import Loss
from tamiz.core.rule import Rule, Slot
from tamiz.engines import loop
from tamiz.engines.compilation import announce_compilation
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.design import Design, in_canonical_order
from tamiz.engines.memory import LoopSlot
from tamiz.engines.schedule import Schedule
from tamiz.engines.training import Run, count_parts


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model over the selected columns.

    Parameters
    ----------
    coef : ndarray, shape (n_outputs, n_selected_columns)
        Weights of the selected columns (with groups, of all columns of the kept groups), in the order of the table.
    intercept : ndarray, shape (n_outputs,)
        Constant terms.

    Examples
    --------
    >>> LinearModel(np.array([[1.0, 2.0]]), np.array([0.5])).scores(np.array([[1.0, 1.0]])).tolist()
    [[3.5]]
    """

    coef: np.ndarray
    intercept: np.ndarray

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Outputs for each row, shape (n_samples, n_outputs)."""
        base = 0.0 if offset is None else self.coef @ offset
        return np.asarray(X @ self.coef.T) + (base + self.intercept)

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> LinearModel:
        """Model whose outputs are ``scores * scale + mean``."""
        return LinearModel(self.coef * scale[:, None], self.intercept * scale + mean)


class _Copies:
    """Keep the latest state of a run in which no step has depended on M, for a run with a smaller M to continue from.

    Copying takes time too: until about twice M features are left, a state is kept when half of the features of the one
    before are gone.
    """

    def __init__(self, latest: Run | None, rule: Rule) -> None:
        self.latest = latest
        self.near = 2 * rule.n_features_to_select + 8
        self.n_open = rule.n_features if latest is None else int(latest.memory.mask.counters[Slot.OPEN])

    def look_at(self, run: Run) -> None:
        n_open = int(run.memory.mask.counters[Slot.OPEN])
        if n_open == 0 or run.memory.loop_counters[LoopSlot.TARGET_MATTERS]:
            return
        if n_open <= self.n_open // 2 or self.near >= n_open < self.n_open:
            self.latest, self.n_open = run.continued(run.rule, run.schedule), n_open


def _shares_steps(run: Run, rule: Rule, schedule: Schedule) -> bool:
    """Whether a run with another rule takes the same steps as ``run`` until these depend on M."""

    def before_refinement(one: Schedule) -> Schedule:
        return replace(one, refinement_steps=0, refinement_l2=0.0, refinement_rates=())

    m = rule.n_features_to_select
    return (
        m < run.rule.n_features_to_select < run.rule.n_features
        and run.rule.costs is None
        and replace(run.rule, n_features_to_select=m) == rule
        and run.rule.numbers._replace(n_features_to_select=m) == rule.numbers
        and before_refinement(run.schedule) == before_refinement(schedule)
    )


@dataclass(frozen=True)
class LinearEngine:
    """Train a linear model and select its inputs, compiled.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is a constant term; l2 leaves it free.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.core import Rule
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines.contract import Problem
    >>> from tamiz.engines.schedule import linear_schedule
    >>> X = np.random.default_rng(0).normal(size=(60, 30)).astype(np.float32)
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, 1.0, -1.0)[:, None]
    >>> schedule = linear_schedule(60, 2, "classification")
    >>> rule = Rule(30, 2, ramp_steps=schedule.ramp_steps, warmup_steps=schedule.warmup_steps)
    >>> fit = LinearEngine().fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> fit.selection.indices.tolist(), fit.model.coef.shape
    ([3, 7], (1, 2))
    """

    fit_intercept: bool = True

    def fit(self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, **run: Any) -> Fit:
        """Select exactly M columns, or M groups of columns, and train a linear model on them, in one run.

        Parameters are those of every :class:`~tamiz.engines.contract.Engine`; ``schedule.average`` must be 0.
        """
        return next(self.fit_path(problem, [rule], loss, [schedule], **run))

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
        """Fit one table with several rules; yield what :meth:`fit` returns for each, to the last digit.

        Fits with different M take the same steps until the larger M is nearly reached: until then the sum of gamma is above
        every target, and its sign is all that a step reads of the target. So these steps are taken once, where rules follow
        each other by falling M and all else is the same up to the refinement.

        Parameters
        ----------
        problem : Problem
            The data.
        rules, schedules : sequences
            One of each per fit.
        loss : Loss
            What is minimised.
        seed : int, default=0
            Seed of the order of the samples.
        progress : callable or None, default=None
            As for :meth:`fit`.

        Yields
        ------
        Fit
            In the order of the rules.
        """
        started = time.perf_counter()
        announce_compilation(loop.run)
        problem.check_groups(rules[0].n_features)
        problem, order, starts, features = in_canonical_order(problem)
        latest: Run | None = None  # as it was before a step depended on M
        for number, (rule, schedule) in enumerate(zip(rules, schedules, strict=True)):
            if latest is not None and _shares_steps(latest, rule, schedule):
                run = latest.continued(rule, schedule)
            else:
                latest, n_parts = None, count_parts(schedule, rule, problem.n_samples, problem.has_wide_groups)
                if n_parts > 1 and starts is None:
                    starts = np.arange(problem.n_columns + 1)
                design = Design(problem.X, problem.offset, len(rules) == 1, starts, features)
                run = Run(problem, rule, loss, schedule, design, n_parts, seed, self.fit_intercept)
                del design
            copies = None
            if number + 1 < len(rules) and _shares_steps(run, rules[number + 1], schedules[number + 1]):
                copies = _Copies(latest, rule)
            run.train(progress, None if copies is None else copies.look_at)
            latest = None if copies is None else copies.latest
            weights, intercept = (part.astype(np.float64) for part in run.release())
            selection = run.selection(seed, started, "linear")
            kept = problem.columns_of(selection.support[features])
            weights = weights[:, np.argsort(order[kept], kind="stable")]
            yield Fit(selection, LinearModel(loss.decision(weights.T).T, loss.decision(intercept[None])[0]))
            started = time.perf_counter()
