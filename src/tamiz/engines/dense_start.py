"""Train a dense network from one start: pieces of the compiled loop, dropped columns, and the loss it ends with."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numba import njit
from scipy.optimize import minimize

from tamiz.core.compiled import IN_PLACE
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.core.schedule import selection_schedule
from tamiz.core.state import Slot
from tamiz.engines.contract import Problem
from tamiz.engines.dense_loop import DenseNumbers, drop_eliminated, largest_batch, new_dense_memory, run_dense
from tamiz.engines.dense_model import DenseModel, trained_model
from tamiz.engines.design import Design
from tamiz.engines.first_layer import batch_memory, first_layer_products
from tamiz.engines.loop import LoopSlot, Status
from tamiz.engines.schedule import Schedule

#: Steps whose schedule is computed at a time.
_SCHEDULE_CHUNK = 8192


class Start:
    """Hold one start of a network and train it.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    problem, rule, loss, schedule : Problem, Rule, Loss, Schedule
        As for an engine.
    seed : tuple of int
        Decides the weights and the order of the rows.
    rows : ndarray of int
        The rows to train on.
    owned : bool
        Whether the table may be overwritten.
    """

    def __init__(
        self,
        hidden: tuple[int, ...],
        problem: Problem,
        rule: Rule,
        loss: Loss,
        schedule: Schedule,
        seed: tuple[int, ...],
        rows: np.ndarray,
        owned: bool,
    ) -> None:
        self.hidden, self.problem, self.rule, self.loss, self.schedule = hidden, problem, rule, loss, schedule
        self.owned = owned
        # Rows held out may come back for the refinement.
        self.n_rows = max(largest_batch(n, schedule.batch_size) for n in (rows.size, problem.n_samples))
        self.memory = new_dense_memory(
            rows, hidden, problem.n_outputs, rule.n_features, rule.n_features_to_select, self.n_rows, seed
        )
        self.training = dense_numbers(rule, schedule)
        self.design: Design | None = None

    def position(self) -> tuple[int, int, int]:
        """Return how far it is: step, features alive, steps of refinement done."""
        counters = self.memory.counters
        n_alive = int(counters[Slot.OPEN]) or self.rule.n_features_to_select
        return int(counters[Slot.STEP]), n_alive, int(self.memory.loop_counters[LoopSlot.REFINED])

    def train(self, stop: threading.Event) -> None:
        """Train until done, or until ``stop`` is set."""
        problem, rule, memory, m = self.problem, self.rule, self.memory, self.rule.n_features_to_select
        if not (memory.counters[Slot.CLOSED] and self.schedule.refinement_steps == 0 and rule.warmup_steps == 0):
            design = Design(problem.X, problem.offset, self.owned)
            self._run(design, stop)
        drop_eliminated(memory, m)

    def refine_on(self, rows: np.ndarray) -> None:
        """Repeat the refinement with other rows."""
        memory, m = self.memory, self.rule.n_features_to_select
        self.memory = memory._replace(rows=rows.astype(np.int64))
        memory.loop_counters[LoopSlot.REFINED] = 0
        memory.loop_counters[LoopSlot.POSITION] = rows.size
        kept = memory.column[:m]
        offset = None if self.problem.offset is None else self.problem.offset[kept]
        self._run(Design(self.problem.X[:, kept], offset, owned=True), threading.Event())

    def _run(self, design: Design, stop: threading.Event) -> None:
        problem, rule, schedule, memory = self.problem, self.rule, self.schedule, self.memory
        counters = memory.counters
        targets = np.ascontiguousarray(problem.targets, dtype=np.float32)
        weights = problem.unit_weights()
        rates = np.array(schedule.refinement_rates, dtype=np.float64)
        functions = (*first_layer_products(design), self.loss.compiled)
        batch = batch_memory(design, self.n_rows, int(memory.layers.units[0]))
        first, alphas, mask_targets = 0, np.zeros(0), np.zeros(0)
        while not stop.is_set():
            # Pieces of about ten milliseconds: an interrupt is heard, and the cost of coming back to Python is not seen.
            cells = (memory.loop_counters[LoopSlot.WIDTH] + memory.layers.units[1:].sum()) * self.n_rows * memory.layers.units[0]
            piece = int(max(8, min(1024, 2e8 // max(1, cells))))
            done = int(counters[Slot.STEP]) - first
            if done + piece > alphas.size:
                first, done = int(counters[Slot.STEP]), 0
                alphas, mask_targets = selection_schedule(rule, first + 1, _SCHEDULE_CHUNK)
            status = run_dense(
                *functions, design.matrix, batch, targets, weights, memory, rule.numbers, self.training, rates,
                alphas[done : done + piece], mask_targets[done : done + piece],
            )  # fmt: skip
            if status == Status.DIVERGED:
                raise FloatingPointError(
                    "The training loss became infinite or NaN. Normalise the features (normalize='erf' or 'standard') "
                    "or lower learning_rate."
                )
            if status == Status.DONE:
                return
            if status == Status.COMPACT:
                width = drop_eliminated(memory, rule.n_features_to_select)
                design.keep(memory.order, width)

    def network(self) -> DenseModel:
        """Return the trained network, with as many outputs as there are targets."""
        averaged = 0 < self.schedule.refinement_steps and self.training.average_from < self.schedule.refinement_steps
        return trained_model(self.memory, self.hidden, self.rule.n_features_to_select, averaged)

    def loss_on(self, rows: np.ndarray) -> float:
        """Return the mean loss of the trained network on some rows."""
        kept = self.memory.column[: self.rule.n_features_to_select]
        offset = None if self.problem.offset is None else self.problem.offset[kept]
        scores = self.network().scores(self.problem.X[rows][:, kept], offset)
        value, _ = evaluate(self.loss, self.problem, scores, rows)
        return value


def dense_numbers(rule: Rule, schedule: Schedule) -> DenseNumbers:
    """Return the settings of the weights for compiled code."""
    return DenseNumbers(
        learning_rate=float(schedule.learning_rate),
        l2=float(schedule.l2),
        refinement_l2=float(schedule.refinement_l2),
        beta1=float(schedule.beta1),
        beta2=float(schedule.beta2),
        epsilon=float(schedule.epsilon),
        batch_size=int(schedule.batch_size),
        warmup_steps=int(rule.warmup_steps),
        step_limit=int(rule.step_limit),
        refinement_steps=int(schedule.refinement_steps),
        average_from=int(schedule.refinement_steps * (1.0 - schedule.average)),
    )


@njit(**IN_PLACE)
def _call(loss, scores, targets, weights, gradient):
    """Call a compiled loss, which Python cannot."""
    return loss(scores, targets, weights, gradient)


def evaluate(loss: Loss, problem: Problem, scores: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the weighted mean loss of scores for some rows, and its gradient."""
    scores = np.ascontiguousarray(scores, dtype=np.float32)
    gradient = np.zeros_like(scores)
    targets = np.ascontiguousarray(problem.targets[rows], dtype=np.float32)
    return float(_call(loss.compiled, scores, targets, problem.unit_weights()[rows], gradient)), gradient


def constant_loss(loss: Loss, problem: Problem) -> float:
    """Return the mean loss of the best constant scores."""
    rows = np.arange(problem.n_samples)

    def value(constant: np.ndarray) -> tuple[float, Any]:
        found, gradient = evaluate(loss, problem, np.tile(constant, (rows.size, 1)), rows)
        return found, gradient.sum(axis=0, dtype=np.float64)

    return float(minimize(value, np.zeros(problem.n_outputs), jac=True, method="L-BFGS-B").fun)
