"""Train a dense network from one start: pieces of the compiled loop, dropped columns, and the loss it ends with."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.optimize import minimize

from tamiz.core.compiled import IN_PLACE
from tamiz.core.history import room_for_steps
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.core.schedule import ScheduleWindow
from tamiz.core.state import Slot
from tamiz.engines._compile_notice import call_loop
from tamiz.engines.contract import Problem
from tamiz.engines.dense_loop import drop_eliminated, most_rows, new_dense_memory, run_dense
from tamiz.engines.dense_model import DenseModel, trained_model
from tamiz.engines.design import Design
from tamiz.engines.first_layer import batch_memory, first_layer_products
from tamiz.engines.loop import Status
from tamiz.engines.memory import LoopSlot
from tamiz.engines.record import numbers_of_working_set, raise_diverged, training_numbers
from tamiz.engines.schedule import Schedule


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
    starts : ndarray of int, shape (n_features + 1,), or None, default=None
        First column of each group, and the end (:meth:`Problem.side_by_side`); None without groups.
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
        starts: np.ndarray | None = None,
    ) -> None:
        self.hidden, self.problem, self.rule, self.loss, self.schedule = hidden, problem, rule, loss, schedule
        # Of any part: the refinement may be repeated on other rows.
        self.n_rows = most_rows(problem.n_samples, schedule.batch_size)
        self.memory = new_dense_memory(
            rows, hidden, problem.n_outputs, problem.n_columns, rule.n_features_to_select, self.n_rows, seed, starts
        )
        self.numbers = rule.numbers
        self.training = training_numbers(rule, schedule)
        self.design = Design(problem.X, problem.offset, owned)

    def position(self) -> tuple[int, int, int]:
        """Return how far it is: step, features alive, steps of refinement done."""
        counters = self.memory.counters
        n_alive = int(counters[Slot.OPEN] or counters[Slot.KEPT])
        return int(counters[Slot.STEP]), n_alive, int(self.memory.loop_counters[LoopSlot.REFINED])

    def train(self, stop: threading.Event) -> None:
        """Train until done, or until ``stop`` is set; the design then holds the kept columns only."""
        decided = self.memory.counters[Slot.CLOSED] == 1 and self.rule.warmup_steps == 0
        if not decided or self.schedule.refinement_steps > 0:
            self._run(stop)
        self._drop_eliminated()

    def refine_on(self, rows: np.ndarray) -> None:
        """Repeat the refinement of a trained network on other rows, from where its weights are."""
        if self.schedule.refinement_steps == 0:
            return
        self.memory.loop_counters[LoopSlot.REFINED] = 0
        self.memory.loop_counters[LoopSlot.POSITION] = rows.size
        self.memory = self.memory._replace(rows=rows.astype(np.int64))
        self._run(threading.Event())

    def _drop_eliminated(self) -> None:
        memory = self.memory
        width = drop_eliminated(memory, int(memory.counters[Slot.KEPT]))
        self.design.keep(memory.order, width)
        self.numbers = numbers_of_working_set(self.rule, memory.feature, memory.loop_counters, memory.counters)
        if memory.counters[Slot.OPEN] == 0 and memory.weights_average.shape[0] != width:
            averages = np.zeros((width, memory.weights.shape[1]), dtype=np.float32)
            self.memory = memory._replace(weights_average=averages)

    def _run(self, stop: threading.Event) -> None:
        problem, rule, schedule = self.problem, self.rule, self.schedule
        counters, units = self.memory.counters, int(self.memory.layers.units[0])
        targets = np.ascontiguousarray(problem.targets, dtype=np.float32)
        weights = problem.unit_weights()
        rates = np.array(schedule.refinement_rates, dtype=np.float64)
        functions = (*first_layer_products(self.design), self.loss.compiled)
        batch = batch_memory(self.design, self.n_rows, units)
        window = ScheduleWindow(rule)
        while not stop.is_set():
            # Pieces of about ten milliseconds: an interrupt is heard, and the cost of coming back to Python is not seen.
            memory = self.memory
            cells = (int(memory.loop_counters[LoopSlot.WIDTH]) + units) * units * self.n_rows
            piece = min(max(8, min(1024, 100_000_000 // cells)), room_for_steps(memory.history))
            status = call_loop(
                run_dense, *functions, self.design.matrix, batch, targets, weights, memory, self.numbers, self.training,
                rates, *window.steps(int(counters[Slot.STEP]) + 1, piece),
            )  # fmt: skip
            if status == Status.DIVERGED:
                raise_diverged()
            if status == Status.DONE:
                return
            if status == Status.COMPACT:
                self._drop_eliminated()

    def network(self) -> DenseModel:
        """Return the trained network, with as many outputs as there are targets."""
        averaged = self.training.average_from < self.training.refinement_steps
        return trained_model(self.memory, self.hidden, int(self.memory.loop_counters[LoopSlot.WIDTH]), averaged)

    def loss_on(self, rows: np.ndarray) -> float:
        """Return the mean loss of the trained network on some rows."""
        values, data, indices, indptr, offset = self.design.matrix
        table: Any = values
        if self.design.sparse:
            table = sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, offset.size))
        scores = self.network().scores(table[rows], offset if self.design.sparse else None)
        return mean_loss(self.loss, self.problem, scores, rows)[0]


@njit(**IN_PLACE)
def _call(loss, scores, targets, weights, gradient):
    """Call a compiled loss, which Python cannot."""
    return loss(scores, targets, weights, gradient)


def mean_loss(loss: Loss, problem: Problem, scores: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the weighted mean loss of scores for some rows, and its gradient."""
    scores = np.ascontiguousarray(scores, dtype=np.float32)
    gradient = np.zeros_like(scores)
    targets = np.ascontiguousarray(problem.targets[rows], dtype=np.float32)
    return float(_call(loss.compiled, scores, targets, problem.unit_weights()[rows], gradient)), gradient


def constant_loss(loss: Loss, problem: Problem, rows: np.ndarray) -> float:
    """Return the mean loss on some rows of the scores that are best for them among those that are the same for all rows.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> problem = Problem(np.zeros((4, 1)), np.float32([[1], [2], [3], [9]]))
    >>> round(constant_loss(get_loss("squared_error"), problem, np.arange(3)), 4)
    0.6667
    """

    def value(constant: np.ndarray) -> tuple[float, np.ndarray]:
        found, gradient = mean_loss(loss, problem, np.tile(constant, (rows.size, 1)), rows)
        return found, gradient.sum(axis=0, dtype=np.float64)

    return float(minimize(value, np.zeros(problem.n_outputs), jac=True, method="L-BFGS-B").fun)
