"""Fit a linear model and its mask with the compiled loop: pieces, dropped columns, interrupts, and the record."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.core.history import room_for_steps
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.core.schedule import ScheduleWindow
from tamiz.core.state import Slot
from tamiz.engines import loop
from tamiz.engines._compile_notice import announce_compilation
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.design import Design
from tamiz.engines.loop import Status
from tamiz.engines.memory import LoopSlot, Memory, compact_vectors, new_memory
from tamiz.engines.record import (
    final_ranking,
    numbers_of_working_set,
    raise_diverged,
    record_selection,
    training_numbers,
)
from tamiz.engines.schedule import Schedule


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
        """Return the outputs for each row, shape (n_samples, n_outputs)."""
        base = 0.0 if offset is None else self.coef @ offset
        return np.asarray(X @ self.coef.T) + (base + self.intercept)

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> LinearModel:
        """Return the model whose outputs are ``scores * scale + mean``."""
        return LinearModel(self.coef * scale[:, None], self.intercept * scale + mean)


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
    >>> from tamiz.engines import Problem, linear_schedule
    >>> X = np.random.default_rng(0).normal(size=(60, 30)).astype(np.float32)
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, 1.0, -1.0)[:, None]
    >>> schedule = linear_schedule(60, 2, "classification")
    >>> rule = Rule(30, 2, ramp_steps=schedule.ramp_steps, warmup_steps=schedule.warmup_steps)
    >>> fit = LinearEngine().fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> fit.selection.indices.tolist(), fit.model.coef.shape
    ([3, 7], (1, 2))
    """

    fit_intercept: bool = True

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
        """Select exactly M columns, or M groups of columns, and train a linear model on them, in one run.

        Parameters
        ----------
        problem : Problem
            The data.
        rule : Rule
            How gamma moves.
        loss : Loss
            What is minimised.
        schedule : Schedule
            How the weights move; ``average`` must be 0.
        seed : int, default=0
            Seed of the order of the samples.
        progress : callable or None, default=None
            Called now and then with (step, features alive, steps of refinement done).

        Returns
        -------
        Fit
        """
        if schedule.average != 0:
            raise ValueError(f"the linear engine does not average weights: average must be 0, got {schedule.average!r}")
        started = time.perf_counter()
        announce_compilation(loop.run)
        m = rule.n_features_to_select
        problem.check_groups(rule.n_features)
        problem, order, starts = problem.side_by_side()
        memory = new_memory(
            problem.n_samples, problem.n_outputs, problem.n_columns, m, schedule.batch_size, seed, starts
        )  # fmt: skip
        self._train(problem, rule, loss, schedule, memory, progress)

        m = int(memory.counters[Slot.KEPT])
        width = compact_vectors(memory, m)
        coef, intercept = memory.weights[:, :width].astype(np.float64), memory.intercept[0].astype(np.float64)
        counters, history = memory.counters, memory.history
        closed_at = int(memory.loop_counters[LoopSlot.CLOSED_AT])
        feature, rank = memory.feature, memory.rank[:m].copy()
        del memory  # before the record is made: the vectors of both together would be the most memory of the whole fit
        ranking = final_ranking(feature, rank)
        if order is not None and problem.groups is not None:
            coef = coef[:, np.argsort(order[problem.columns_of(ranking <= m)])]
        model = LinearModel(loss.decision(coef.T).T, loss.decision(intercept[None])[0])
        selection = record_selection(
            rule, ranking, counters, closed_at, history, seed=seed, started=started, engine="linear"
        )
        return Fit(selection, model)

    def _train(
        self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, memory: Memory, progress: Progress | None
    ) -> None:
        counters, numbers = memory.counters, rule.numbers
        if rule.n_features_to_select == rule.n_features and schedule.refinement_steps == 0 and rule.warmup_steps == 0:
            return
        design = Design(problem.X, problem.offset, problem.owned)
        targets = np.ascontiguousarray(problem.targets, dtype=np.float32)
        weights = problem.unit_weights()
        training = training_numbers(rule, schedule, self.fit_intercept)
        rates = np.array(schedule.refinement_rates, dtype=np.float64)
        functions = (*design.products, loss.compiled)
        window = ScheduleWindow(rule)
        while True:
            # Pieces of about ten milliseconds: Ctrl-C is heard, and the cost of coming back to Python is not seen.
            cells = memory.loop_counters[LoopSlot.WIDTH] * (schedule.batch_size + 8) * problem.n_outputs
            piece = min(int(max(16, min(4096, 2e7 // max(1, cells)))), room_for_steps(memory.history))
            status = loop.run(
                *functions, design.matrix, targets, weights, memory, numbers, training, rates,
                *window.steps(int(counters[Slot.STEP]) + 1, piece),
            )  # fmt: skip
            if status == Status.DIVERGED:
                raise_diverged()
            if status == Status.DONE:
                return
            if status == Status.COMPACT:
                width = compact_vectors(memory, int(counters[Slot.KEPT]))
                design.keep(memory.order, width)
                numbers = numbers_of_working_set(rule, memory.feature, memory.loop_counters, counters)
            if progress is not None:
                refined = int(memory.loop_counters[LoopSlot.REFINED])
                progress(int(counters[Slot.STEP]), int(counters[Slot.OPEN]) or int(counters[Slot.KEPT]), refined)
