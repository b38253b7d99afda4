"""Train a model in pieces of its compiled loop, drop what is eliminated in between, and record the selection."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tamiz.core.history import history_to_dict, room_for_steps
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule, ScheduleWindow, Slot
from tamiz.engines import loop
from tamiz.engines.compilation import call_loop
from tamiz.engines.contract import Problem, Progress
from tamiz.engines.design import Design
from tamiz.engines.loop import Piece, Status
from tamiz.engines.memory import LoopSlot, copy_memory, drop_eliminated, merge_parts, new_memory, rows_in_parts
from tamiz.engines.schedule import Schedule
from tamiz.errors import DivergenceError
from tamiz.selection import Selection


class TrainingNumbers(NamedTuple):
    """Settings of the weights, as numbers only, so that compiled code can take them."""

    learning_rate: float
    l2: float
    refinement_l2: float
    refinement_rates: np.ndarray
    beta1: float
    beta2: float
    epsilon: float
    batch_size: int
    warmup_steps: int
    step_limit: int
    refinement_from: int
    """Steps before which the refinement does not begin."""
    refinement_steps: int
    average_from: int
    """Steps of refinement after which weights are averaged."""
    fit_intercept: bool


def training_numbers(rule: Rule, schedule: Schedule, fit_intercept: bool = True) -> TrainingNumbers:
    """Take the settings of the weights from rule and schedule.

    Examples
    --------
    >>> from tamiz.engines.schedule import linear_schedule
    >>> training_numbers(Rule(10, 2), linear_schedule(200, 2, "regression")).batch_size
    4
    """
    rates = ("learning_rate", "l2", "refinement_l2", "beta1", "beta2", "epsilon")
    return TrainingNumbers(
        **{name: float(getattr(schedule, name)) for name in rates},
        refinement_rates=np.array(schedule.refinement_rates, dtype=np.float64),
        batch_size=int(schedule.batch_size),
        warmup_steps=int(rule.warmup_steps),
        step_limit=int(rule.step_limit),
        # Without features to eliminate there is no selection to wait for.
        refinement_from=int(schedule.selection_steps) if rule.n_features_to_select < rule.n_features else 0,
        refinement_steps=int(schedule.refinement_steps),
        average_from=int(schedule.refinement_steps * (1.0 - schedule.average)),
        fit_intercept=bool(fit_intercept),
    )


#: Parts of the rows where gamma is trained on rows that did not train the weights, and the fewest rows for it.
N_PARTS, ROWS_FOR_PARTS = 4, 16


def count_parts(schedule: Schedule, rule: Rule, n_samples: int, overfits: bool) -> int:
    """Count the sets of weights that a run trains: 1 if gamma is trained on the same rows as the weights.

    ``overfits`` tells whether features of the model have several weights, so that noise can gain by their number; it decides
    where ``schedule.gamma_rows`` is "auto".

    Examples
    --------
    >>> from tamiz.engines.schedule import linear_schedule
    >>> count_parts(linear_schedule(200, 2, "regression"), Rule(10, 2), 200, overfits=True)
    4
    """
    held_out = overfits if schedule.gamma_rows == "auto" else schedule.gamma_rows == "held-out"
    decided = rule.n_features_to_select == rule.n_features
    return N_PARTS if held_out and not decided and n_samples >= ROWS_FOR_PARTS else 1


def warn_near_chance(removed: float, rows: str, advice: str) -> None:
    """Warn that a trained model removes only the share ``removed`` of the loss of the best constant scores on ``rows``."""
    warnings.warn(
        f"The network removes {max(0.0, removed):.0%} of the loss of a constant on {rows}, which is near chance: it may have "
        f"lost the columns that matter. {advice}",
        ConvergenceWarning,
        stacklevel=4,
    )


class Run:
    """A run of the loop of linear models, between two of its pieces.

    Parameters
    ----------
    problem, rule, loss, schedule
        As for an engine.
    design : Design
        The table of the loop.
    n_parts : int
        Sets of weights (:func:`count_parts`).
    seed : int
        Seed of the order of the rows.
    fit_intercept : bool
        Whether there is a constant term.
    """

    compiled_loop: Any = staticmethod(loop.run)

    def __init__(
        self,
        problem: Problem,
        rule: Rule,
        loss: Loss,
        schedule: Schedule,
        design: Design,
        n_parts: int,
        seed: int,
        fit_intercept: bool = True,
    ) -> None:
        if schedule.average != 0:
            raise ValueError(f"only networks average weights: average must be 0, got {schedule.average!r}")
        self._prepare(problem, rule, loss, schedule, fit_intercept)
        self.design = design
        rows = rows_in_parts(problem.targets, n_parts, seed)
        self.memory = new_memory(design, rule, rows, problem.n_outputs, schedule.batch_size, seed, n_parts)
        self._take_costs()

    def _prepare(self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, fit_intercept: bool) -> None:
        self.problem, self.rule, self.loss, self.schedule = problem, rule, loss, schedule
        self.numbers, self.training = rule.numbers, training_numbers(rule, schedule, fit_intercept)

    def continued(self, rule: Rule, schedule: Schedule) -> Run:
        """Copy the run, to go on with a smaller M."""
        fresh = object.__new__(type(self))
        fresh._prepare(self.problem, rule, self.loss, schedule, self.training.fit_intercept)
        fresh.memory, fresh.design = copy_memory(self.memory), self.design.copy()
        fresh.memory.mask.counters[Slot.KEPT] = rule.n_features_to_select
        return fresh

    def position(self) -> tuple[int, int, int]:
        """Step, features alive, steps of refinement done."""
        counters = self.memory.mask.counters
        n_alive = int(counters[Slot.OPEN] or counters[Slot.KEPT])
        return int(counters[Slot.STEP]), n_alive, int(self.memory.loop_counters[LoopSlot.REFINED])

    def train(self, progress: Progress | None = None, before_piece: Callable[[Run], Any] | None = None) -> None:
        """Train until done, or until ``before_piece`` returns True, and drop all that is eliminated."""
        rule, data = self.rule, self.problem
        targets, weights = np.ascontiguousarray(data.targets, dtype=np.float32), data.unit_weights()
        functions, window = (self.loss.compiled, *self._products()), ScheduleWindow(rule)
        decided = rule.n_features_to_select == rule.n_features and rule.warmup_steps == 0
        while not (decided and self.schedule.refinement_steps == 0):
            if before_piece is not None and before_piece(self):
                break
            # Pieces of about ten milliseconds: Ctrl-C is noticed, and the cost of coming back to Python is negligible.
            piece = int(max(16, min(4096, 2e7 // max(1, self._cells()))))
            piece = min(piece, room_for_steps(self.memory.history))
            steps = window.steps(self.position()[0] + 1, piece)
            rows = Piece(self.design.matrix, targets, weights, *steps)
            status = call_loop(self.compiled_loop, rows, self.memory, self.numbers, self.training, *functions)
            if status == Status.DIVERGED:
                raise DivergenceError(
                    "The training loss became infinite or NaN: the features are too large. "
                    "Normalise them (normalize='erf' or 'standard'), or lower learning_rate or l2."
                )
            if status == Status.DONE:
                break
            if status == Status.COMPACT:
                self.drop()
            if progress is not None:
                progress(*self.position())
        self.drop()
        self._finish()

    def _products(self) -> tuple[Any, ...]:
        return self.design.products

    def _cells(self) -> int:
        """Entries of the tables that a step works on."""
        width = int(self.memory.loop_counters[LoopSlot.WIDTH])
        return width * (self.schedule.batch_size + 8) * self.problem.n_outputs

    def _finish(self) -> None:
        merge_parts(self.memory)

    def drop(self) -> None:
        """Drop what is eliminated, and take the numbers of the rule for what is left; in the closing each counts once."""
        drop_eliminated(self.memory, self.design)
        if self.memory.mask.counters[Slot.CLOSED]:
            self._finish()
        self._take_costs()

    def _take_costs(self) -> None:
        memory, rule = self.memory, self.rule
        if rule.costs is not None:
            n, counters = int(memory.loop_counters[LoopSlot.FEATURES]), memory.mask.counters
            costs = rule.costs[memory.feature[:n]] if counters[Slot.OPEN] else np.ones(n)
            self.numbers = rule.numbers._replace(costs=costs, n_features_to_select=int(counters[Slot.KEPT]))

    def release(self) -> tuple[np.ndarray, np.ndarray]:
        """Free the memory of a finished run but what the record needs; return weights and constants of the kept columns."""
        memory, n_outputs = self.memory, self.problem.n_outputs
        width = int(memory.loop_counters[LoopSlot.WIDTH])
        model = memory.weights[:n_outputs, :width].copy(), memory.rest[0, :n_outputs].copy()
        none, mask = np.zeros(0, np.float32), memory.mask
        mask = mask._replace(gamma=none, first=none, second=none, gradient=none, order=none)
        self.memory = memory._replace(
            mask=mask, weights=none, folded=none, gradient=none, weights_first=none, weights_second=none, gate=none
        )
        return model

    def selection(self, seed: int, started: float, engine: str) -> Selection:
        """Record the finished run; warn if the step limit had to decide."""
        memory, rule = self.memory, self.rule
        counters, feature = memory.mask.counters, memory.feature
        m = int(counters[Slot.KEPT])
        if counters[Slot.FORCED]:
            warnings.warn(
                f"The selection did not settle within {rule.max_steps} steps; the {m} largest were kept. Raise max_steps"
                + ("." if rule.variant == "soft" else ", or use variant='soft'."),
                ConvergenceWarning,
                stacklevel=3,
            )
        ranking = np.empty(feature.size, dtype=np.int64)
        ranking[feature] = np.arange(1, feature.size + 1, dtype=np.int32)
        ranking[feature[:m]] = memory.mask.rank[:m]
        self.memory = memory._replace(feature=feature[:m].copy())
        return Selection(
            support=ranking <= m,
            ranking=ranking,
            variant=rule.variant,
            converged=not counters[Slot.FORCED],
            n_steps=int(counters[Slot.STEP]),
            closed_at=int(memory.loop_counters[LoopSlot.CLOSED_AT]),
            seed=int(seed),
            seconds=time.perf_counter() - started,
            history=history_to_dict(memory.history, ranking, m),
            engine=engine,
        )
