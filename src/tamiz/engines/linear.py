"""Fit a linear model and its mask with the compiled loop: pieces, dropped columns, interrupts, several M, and the record."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tamiz.core.history import History, room_for_steps
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule, ScheduleWindow, Slot
from tamiz.engines import loop
from tamiz.engines.compilation import announce_compilation, call_loop
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.design import Design
from tamiz.engines.loop import Status
from tamiz.engines.memory import LoopSlot, Memory, compact_vectors, copy_memory, merge_parts, new_memory, rows_in_parts
from tamiz.engines.record import (
    count_parts,
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


@dataclass
class _Run:
    """A run of the loop between two of its pieces, which can be continued."""

    memory: Memory
    design: Design

    @classmethod
    def start(cls, problem: Problem, rule: Rule, schedule: Schedule, seed: int, starts: np.ndarray | None) -> _Run:
        n_parts = count_parts(schedule, rule, problem.n_samples, overfits=problem.has_wide_groups)
        if n_parts > 1 and starts is None:
            starts = np.arange(problem.n_columns + 1)
        rows = rows_in_parts(problem.targets, n_parts, seed)
        sizes = problem.n_outputs, problem.n_columns, rule.n_features_to_select, schedule.batch_size
        memory = new_memory(rows, *sizes, seed, starts, n_parts)
        return cls(memory, Design(problem.X, problem.offset, problem.owned))

    def copy(self) -> _Run:
        return _Run(copy_memory(self.memory), self.design.copy())


class _Copies:
    """Keep the latest state of a run in which no step has depended on M, for a run with a smaller M to continue from.

    Copying takes time too: until about twice M features are left, a state is kept when half of the features of the one
    before are gone.
    """

    def __init__(self, latest: _Run | None, rule: Rule) -> None:
        self.latest = latest
        self.near = 2 * rule.n_features_to_select + 8
        self.n_open = rule.n_features if latest is None else int(latest.memory.counters[Slot.OPEN])

    def look_at(self, run: _Run) -> None:
        n_open = int(run.memory.counters[Slot.OPEN])
        if n_open == 0 or run.memory.loop_counters[LoopSlot.TARGET_MATTERS]:
            return
        if n_open <= self.n_open // 2 or self.near >= n_open < self.n_open:
            self.latest, self.n_open = run.copy(), n_open


class _Result(NamedTuple):
    """What the memory of a run that is done holds of the model and the record."""

    coef: np.ndarray
    intercept: np.ndarray
    counters: np.ndarray
    closed_at: int
    history: History
    feature: np.ndarray
    rank: np.ndarray


def _read_result(memory: Memory) -> _Result:
    m, n_outputs = int(memory.counters[Slot.KEPT]), memory.gradient.shape[0]
    width = compact_vectors(memory, m)
    merge_parts(memory)
    return _Result(
        coef=memory.weights[:n_outputs, :width].astype(np.float64),
        intercept=memory.intercept[0, :n_outputs].astype(np.float64),
        counters=memory.counters,
        closed_at=int(memory.loop_counters[LoopSlot.CLOSED_AT]),
        history=memory.history,
        feature=memory.feature,
        rank=memory.rank[:m].copy(),
    )


def _shares_steps(rule: Rule, other: Rule, schedule: Schedule, other_schedule: Schedule) -> bool:
    """Return whether a run with ``other`` takes the same steps as one with ``rule`` until these depend on M."""

    def before_refinement(one: Schedule) -> Schedule:
        return replace(one, refinement_steps=0, refinement_l2=0.0, refinement_rates=())

    return (
        other.n_features_to_select < rule.n_features_to_select < rule.n_features
        and rule.costs is None
        and replace(rule, n_features_to_select=other.n_features_to_select) == other
        and rule.numbers._replace(n_features_to_select=other.n_features_to_select) == other.numbers
        and before_refinement(schedule) == before_refinement(other_schedule)
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
        return next(self.fit_path(problem, [rule], loss, [schedule], seed=seed, progress=progress))

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
        if len(rules) > 1:  # every run reads the table
            problem = replace(problem, owned=False)
        problem, order, starts = problem.side_by_side()
        latest: _Run | None = None  # as it was before a step depended on M
        for number, (rule, schedule) in enumerate(zip(rules, schedules, strict=True)):
            if schedule.average != 0:
                raise ValueError(
                    f"the linear engine does not average weights: average must be 0, got {schedule.average!r}"
                )
            if latest is None or not _shares_steps(rules[number - 1], rule, schedules[number - 1], schedule):
                latest = None
                run = _Run.start(problem, rule, schedule, seed, starts)
            else:
                run = latest.copy()
                run.memory.counters[Slot.KEPT] = rule.n_features_to_select
            follows = number + 1 < len(rules) and _shares_steps(
                rule, rules[number + 1], schedule, schedules[number + 1]
            )
            copies = _Copies(latest, rule) if follows else None
            self._train(problem, rule, loss, schedule, run, progress, copies)
            latest = None if copies is None else copies.latest
            result = _read_result(run.memory)
            # Before the record is made: the vectors of both together would be the most memory of the fit.
            del run, copies
            yield self._record(problem, rule, loss, result, order, seed, started)
            started = time.perf_counter()

    def _record(
        self,
        problem: Problem,
        rule: Rule,
        loss: Loss,
        result: _Result,
        order: np.ndarray | None,
        seed: int,
        started: float,
    ) -> Fit:
        """Return the record and the model of a run that is done."""
        ranking, coef = final_ranking(result.feature, result.rank), result.coef
        if order is not None and problem.groups is not None:
            coef = coef[:, np.argsort(order[problem.columns_of(ranking <= result.rank.size)])]
        model = LinearModel(loss.decision(coef.T).T, loss.decision(result.intercept[None])[0])
        selection = record_selection(
            rule,
            ranking,
            result.counters,
            result.closed_at,
            result.history,
            seed=seed,
            started=started,
            engine="linear",
        )
        return Fit(selection, model)

    def _train(
        self,
        problem: Problem,
        rule: Rule,
        loss: Loss,
        schedule: Schedule,
        run: _Run,
        progress: Progress | None,
        copies: _Copies | None,
    ) -> None:
        memory, design = run.memory, run.design
        counters, numbers = memory.counters, rule.numbers
        if rule.n_features_to_select == rule.n_features and schedule.refinement_steps == 0 and rule.warmup_steps == 0:
            return
        targets = np.ascontiguousarray(problem.targets, dtype=np.float32)
        weights = problem.unit_weights()
        training = training_numbers(rule, schedule, self.fit_intercept)
        rates = np.array(schedule.refinement_rates, dtype=np.float64)
        functions = (*design.products, loss.compiled)
        window = ScheduleWindow(rule)
        while True:
            if copies is not None:
                copies.look_at(run)
            # Pieces of about ten milliseconds: Ctrl-C is heard, and the cost of coming back to Python is not seen.
            cells = memory.loop_counters[LoopSlot.WIDTH] * (schedule.batch_size + 8) * problem.n_outputs
            piece = min(int(max(16, min(4096, 2e7 // max(1, cells)))), room_for_steps(memory.history))
            status = call_loop(
                loop.run, *functions, design.matrix, targets, weights, memory, numbers, training, rates,
                *window.steps(int(counters[Slot.STEP]) + 1, piece),
            )  # fmt: skip
            if status == Status.DIVERGED:
                raise_diverged()
            if status == Status.DONE:
                return
            if status == Status.COMPACT:
                width = compact_vectors(memory, int(counters[Slot.KEPT]))
                if counters[Slot.CLOSED]:
                    merge_parts(memory)
                design.keep(memory.order, width)
                numbers = numbers_of_working_set(rule, memory.feature, memory.loop_counters, counters)
            if progress is not None:
                refined = int(memory.loop_counters[LoopSlot.REFINED])
                progress(int(counters[Slot.STEP]), int(counters[Slot.OPEN]) or int(counters[Slot.KEPT]), refined)
