"""Fit a dense network and its mask: starts side by side in threads, which of them is kept, and the record."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.optimize import minimize

from tamiz._utils.extras import require
from tamiz.core.compiled import IN_PLACE
from tamiz.core.history import room_for_steps
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule, ScheduleWindow, Slot
from tamiz.engines.compilation import announce_compilation, call_loop
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.dense_loop import DenseMemory, drop_eliminated, most_rows, new_dense_memory, run_dense
from tamiz.engines.design import Design
from tamiz.engines.layers import EPSILON, Row, batch_memory, first_layer_products, network_of, views
from tamiz.engines.loop import Status
from tamiz.engines.memory import LoopSlot, rows_in_parts
from tamiz.engines.record import (
    count_parts,
    final_ranking,
    numbers_of_working_set,
    raise_diverged,
    record_selection,
    training_numbers,
    warn_near_chance,
)
from tamiz.engines.schedule import DENSE_STARTS, Schedule

#: Rows that go through the network at once.
ROWS_AT_ONCE = 4096


class HiddenLayer(NamedTuple):
    """A linear layer without constants, batch normalisation and ReLU, in float32."""

    weights: np.ndarray
    """(n_inputs, units)."""
    scale: np.ndarray
    shift: np.ndarray
    mean: np.ndarray
    """Running mean of the batch normalisation."""
    variance: np.ndarray


@dataclass(frozen=True, eq=False)
class DenseModel:
    """A dense network over the selected columns.

    Parameters
    ----------
    hidden : tuple of HiddenLayer
        The hidden layers.
    output_weights : ndarray of float32, shape (n_outputs, units)
        Weights of the output layer.
    output_constants : ndarray of float32, shape (n_outputs,)
        Constants of the output layer.

    Examples
    --------
    >>> one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    >>> layer = HiddenLayer(np.float32([[2.0]]), scale=one, shift=zero, mean=zero, variance=one)
    >>> DenseModel((layer,), np.float32([[1.0]]), zero).scores(np.array([[1.0], [-1.0]])).round(3).tolist()
    [[2.0], [0.0]]
    """

    hidden: tuple[HiddenLayer, ...]
    output_weights: np.ndarray
    output_constants: np.ndarray

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Return the outputs for each row.

        Parameters
        ----------
        X : ndarray or sparse matrix, shape (n_samples, n_features_to_select)
            The selected columns, in the order of the table.
        offset : ndarray, shape (n_features_to_select,), or None, default=None
            Implicit value of each column of a sparse table.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_outputs)
        """
        out = np.empty((X.shape[0], self.output_constants.size), dtype=np.float64)
        for begin in range(0, X.shape[0], ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            units = X[rows].astype(np.float32)
            base = None if offset is None else offset.astype(np.float32) @ self.hidden[0].weights
            for layer in self.hidden:
                units = np.asarray(units @ layer.weights)
                if base is not None:
                    units, base = units + base, None
                slope = layer.scale / np.sqrt(layer.variance + np.float32(EPSILON))
                units = np.maximum((units - layer.mean) * slope + layer.shift, np.float32(0))
            out[rows] = units @ self.output_weights.T + self.output_constants
        return out

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> DenseModel:
        """Return the model whose outputs are ``scores * scale + mean``."""
        weights, constants = self.output_weights * scale[:, None], self.output_constants * scale + mean
        return DenseModel(self.hidden, weights.astype(np.float32), constants.astype(np.float32))

    def reordered(self, order: np.ndarray) -> DenseModel:
        """Return the model that reads the same columns in another order: first the one that was at ``order[0]``."""
        first = self.hidden[0]
        layers = (first._replace(weights=np.ascontiguousarray(first.weights[order])), *self.hidden[1:])
        return DenseModel(layers, self.output_weights, self.output_constants)

    def decided(self, loss: Loss) -> DenseModel:
        """Return the model after ``Loss.decision``: two competing outputs are reduced to their difference."""
        weights, constants = loss.decision(self.output_weights.T).T, loss.decision(self.output_constants[None])[0]
        return DenseModel(self.hidden, np.ascontiguousarray(weights), constants)

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return weights (n_outputs, n_inputs) and constants of each layer, batch normalisation folded in; ReLU between."""
        found = []
        for layer in self.hidden:
            slope = layer.scale / np.sqrt(layer.variance.astype(np.float64) + EPSILON)
            found.append((layer.weights.T * slope[:, None], layer.shift - layer.mean * slope))
        return [*found, (self.output_weights.astype(np.float64), self.output_constants.astype(np.float64))]

    def to_torch(self) -> Any:
        """Return the network as an ``nn.Sequential`` in evaluation mode, with the same predictions; needs PyTorch.

        Returns
        -------
        torch.nn.Sequential
            Linear, BatchNorm1d and ReLU for each hidden layer, then Linear.
        """
        require("torch", "torch", "to_torch()")
        import torch
        from torch import nn

        parts: list[nn.Module] = []
        with torch.no_grad():
            for layer in self.hidden:
                linear = nn.Linear(layer.weights.shape[0], layer.weights.shape[1], bias=False)
                linear.weight.copy_(torch.from_numpy(layer.weights.T))
                norm = nn.BatchNorm1d(layer.scale.size, eps=EPSILON)
                values = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
                for tensor, array in zip(values, (layer.scale, layer.shift, layer.mean, layer.variance)):
                    assert tensor is not None
                    tensor.copy_(torch.from_numpy(array))
                parts += [linear, norm, nn.ReLU()]
            output = nn.Linear(self.output_weights.shape[1], self.output_weights.shape[0])
            output.weight.copy_(torch.from_numpy(self.output_weights))
            output.bias.copy_(torch.from_numpy(self.output_constants))
        return nn.Sequential(*parts, output).eval()


def trained_model(
    memory: DenseMemory, hidden: tuple[int, ...], width: int, averaged: bool, number: int = 0
) -> DenseModel:
    """Return a network of a run, without the padding of its layers.

    Parameters
    ----------
    memory : DenseMemory
        The memory of the run; its first ``width`` columns are the kept ones.
    hidden : tuple of int
        Units of the hidden layers.
    width : int
        Number of columns that the network reads.
    averaged : bool
        Whether to take the averages over the last part of the refinement.
    number : int, default=0
        Which of the networks that share gamma.

    Returns
    -------
    DenseModel
        With as many outputs as there are targets.
    """
    weights = (memory.weights_average if averaged else memory.weights[number, :width])[:, : hidden[0]].copy()
    network = network_of(memory.layers, number)
    row, which = (Row.AVERAGE, 1) if averaged else (Row.VALUE, 0)
    n_outputs = int(network.units[-1])
    layers = []
    for size, n_next, parts in zip(hidden, (*hidden[1:], n_outputs), views(network, row, which)):
        scale, shift, behind, mean, variance = parts
        layers.append(HiddenLayer(weights, *(part[:size].copy() for part in (scale, shift, mean, variance))))
        weights = behind[:size, :n_next].copy()
    constants = network.parameters[row, -n_outputs:].copy()
    return DenseModel(tuple(layers), np.ascontiguousarray(weights.T), constants)


class Start:
    """Hold a network, or several that share gamma until it is closed, and train it.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    problem, rule, loss, schedule : Problem, Rule, Loss, Schedule
        As for an engine.
    seed : tuple of int
        Decides the weights and the order of the rows.
    parts : list of ndarray of int
        Rows that each network does not train on before the mask is closed. Several networks share gamma, which is trained on
        these rows; a single one trains gamma with its weights. The network with the lowest loss on its part is then refined on
        all rows.
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
        parts: list[np.ndarray],
        owned: bool,
        starts: np.ndarray | None = None,
    ) -> None:
        self.hidden, self.problem, self.rule, self.loss, self.schedule = hidden, problem, rule, loss, schedule
        self.n_rows = most_rows(problem.n_samples, schedule.batch_size)
        rows = [(np.setdiff1d(np.arange(problem.n_samples), part), part) for part in parts]
        self.removed: float | None = None
        """Share of the loss of the best constant scores that the networks remove on their own parts, in the mean."""
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

    def _choose_network(self) -> None:
        """Keep the network with the lowest loss on the rows that it did not train on, and go on with all rows."""
        memory, everything = self.memory, np.arange(self.problem.n_samples)
        held_out = [rows[rows.size - n :].copy() for rows, n in zip(memory.rows, memory.n_held_out)]
        losses = [self.loss_on(rows, number) for number, rows in enumerate(held_out)]
        best = int(np.argmin(losses))
        constants = [constant_loss(self.loss, self.problem, rows) for rows in held_out]
        self.removed = 1.0 - float(np.sum(losses) / np.sum(constants))
        one = slice(best, best + 1)
        layers = memory.layers._replace(
            parameters=memory.layers.parameters[one].copy(), statistics=memory.layers.statistics[one].copy()
        )
        self.memory = memory._replace(
            layers=layers,
            weights=memory.weights[one].copy(),
            weights_first=memory.weights_first[one].copy(),
            weights_second=memory.weights_second[one].copy(),
            rows=everything[None],
            n_held_out=np.zeros(1, dtype=np.int64),
            positions=np.array([[everything.size, 0]]),
        )

    def _drop_eliminated(self) -> None:
        memory = self.memory
        width = drop_eliminated(memory, int(memory.counters[Slot.KEPT]))
        self.design.keep(memory.order, width)
        self.numbers = numbers_of_working_set(self.rule, memory.feature, memory.loop_counters, memory.counters)
        if memory.counters[Slot.OPEN] == 0 and memory.weights_average.shape[0] != width:
            averages = np.zeros((width, memory.weights.shape[2]), dtype=np.float32)
            self.memory = memory._replace(weights_average=averages)
        if memory.counters[Slot.CLOSED] and memory.n_held_out[0] > 0:
            self._choose_network()

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
            cells = (int(memory.loop_counters[LoopSlot.WIDTH]) + units) * units * self.n_rows * memory.rows.shape[0]
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

    def network(self, number: int = 0) -> DenseModel:
        """Return a trained network, with as many outputs as there are targets."""
        averaged = self.training.average_from < self.memory.loop_counters[LoopSlot.REFINED]
        return trained_model(self.memory, self.hidden, int(self.memory.loop_counters[LoopSlot.WIDTH]), averaged, number)

    def loss_on(self, rows: np.ndarray, number: int = 0) -> float:
        """Return the mean loss of a network on some rows."""
        values, data, indices, indptr, offset = self.design.matrix
        table: Any = values
        if self.design.sparse:
            table = sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, offset.size))
        scores = self.network(number).scores(table[rows], offset if self.design.sparse else None)
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


#: Functions that the loop calls, for the progress of its compilation.
_N_FUNCTIONS = 42
#: Seconds between two reports of progress.
_POLL = 0.05
#: A network is near chance if it removes less than this share of the loss of the best constant scores: on the rows that it
#: was trained on, of which it learns some by heart, and on rows held out.
NEAR_CHANCE, NEAR_CHANCE_HELD_OUT = 0.25, 0.1


@dataclass(frozen=True)
class DenseEngine:
    """Train a dense network and select its inputs, compiled.

    Each hidden layer is linear without constants, followed by batch normalisation and ReLU; the output layer is linear.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(50, 25, 10)
        Units of the hidden layers; the default is the paper's three-layer network.
    n_init : int, default=4
        Networks with different first weights, and parts of the rows. Each network trains on half of the parts; gamma, which
        they share, is trained on the rows that each of them leaves out. The network with the lowest loss on these is then
        refined on all rows. If the networks are near chance, or with ``gamma_rows="joint"``, each is trained with a gamma of
        its own on all parts but one, and the one that does best on that part is kept. With 1 there are no parts: one network
        and gamma train on all rows.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines import network_schedule
    >>> X = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    >>> targets = np.where(X[:, [2]] * X[:, [5]] > 0, np.float32(1), np.float32(-1))
    >>> schedule = network_schedule(200, 2, "classification", refinement_epochs=20)
    >>> rule = Rule(8, 2, ramp_steps=schedule.ramp_steps)
    >>> fit = DenseEngine().fit(Problem(X, targets), rule, get_loss("logistic"), schedule)
    >>> fit.selection.indices.tolist(), fit.model.scores(X[:, [2, 5]]).shape
    ([2, 5], (200, 1))
    """

    hidden_layer_sizes: Sequence[int] = (50, 25, 10)
    n_init: int = DENSE_STARTS

    def __post_init__(self) -> None:
        sizes = tuple(self.hidden_layer_sizes)
        if not sizes or not all(isinstance(size, (int, np.integer)) and size >= 1 for size in sizes):
            raise ValueError(
                "hidden_layer_sizes must hold the number of units of each hidden layer, at least one layer of at least "
                f"one unit, such as (50, 25, 10); got {self.hidden_layer_sizes!r}"
            )
        object.__setattr__(self, "hidden_layer_sizes", tuple(int(size) for size in sizes))
        if self.n_init < 1:
            raise ValueError(f"n_init must be at least 1, got {self.n_init!r}")

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
        """Select exactly M columns, or M groups of columns, and train a network on them, in one run for each start.

        Parameters are those of every :class:`~tamiz.engines.contract.Engine`. Sparse tables are not made dense;
        ``progress`` is given means over the starts.
        """
        problem.check_groups(rule.n_features)
        if problem.n_samples < 2:
            raise ValueError(f"batch normalisation needs at least 2 rows to train on, got {problem.n_samples}")
        if schedule.batch_size < 2:
            raise ValueError(f"batch normalisation needs a batch_size of at least 2, got {schedule.batch_size}")
        started = time.perf_counter()
        announce_compilation(run_dense, _N_FUNCTIONS)
        problem, order, group_starts = problem.side_by_side()
        n_parts = self.n_init if rule.n_features_to_select < rule.n_features else 1
        n_parts = n_parts if problem.n_samples >= 2 * n_parts else 1
        rows = rows_in_parts(problem.targets, n_parts, seed)
        parts = [np.sort(rows[part::n_parts]) for part in range(n_parts)] if n_parts > 1 else [rows[:0]]
        hidden, owned = tuple(self.hidden_layer_sizes), problem.owned and n_parts == 1

        def start(number: int, parts: list[np.ndarray]) -> Start:
            return Start(hidden, problem, rule, loss, schedule, (seed, number), parts, owned, group_starts)

        best: Start | None = None
        if n_parts > 1 and count_parts(schedule, rule, problem.n_samples, overfits=True) > 1:
            # Each network leaves out half of the parts: with more rows it would learn more of the noise by heart.
            halves = [np.concatenate([parts[i - j] for j in range(n_parts // 2)]) for i in range(n_parts)]
            best = start(0, halves)
            _run_side_by_side([best], progress)
        if best is None or _share(best) < NEAR_CHANCE_HELD_OUT:
            # Networks that share gamma may all lose an input that one of them alone would find.
            starts = [start(number, [part]) for number, part in enumerate(parts)]
            _run_side_by_side(starts, progress)
            alone = max(starts, key=_share)
            best = alone if best is None or _share(alone) >= NEAR_CHANCE_HELD_OUT else best
            del starts, alone  # each holds columns of the table
        _warn_near_chance(best.removed, 1.0 - best.loss_on(rows) / constant_loss(loss, problem, rows))
        memory = best.memory
        m = int(memory.counters[Slot.KEPT])
        ranking = final_ranking(memory.feature, memory.rank[:m])
        closed_at = memory.loop_counters[LoopSlot.CLOSED_AT]
        selection = record_selection(
            rule, ranking, memory.counters, closed_at, memory.history, seed=seed, started=started, engine="dense"
        )
        model = best.network().decided(loss)
        if order is not None:
            model = model.reordered(np.argsort(order[problem.columns_of(selection.support)]))
        return Fit(selection, model)


def _run_side_by_side(starts: list[Start], progress: Progress | None) -> None:
    """Train all starts in threads; report progress and hear interrupts in the thread of the caller."""
    stop = threading.Event()

    def report() -> None:
        if progress is not None:
            step, n_alive, refined = np.mean([start.position() for start in starts], axis=0)
            progress(int(step), int(np.ceil(n_alive)), int(refined))

    with ThreadPoolExecutor(min(len(starts), os.cpu_count() or 1)) as pool:
        futures = [pool.submit(start.train, stop) for start in starts]
        try:
            while wait(futures, timeout=_POLL).not_done:
                report()
                for future in futures:
                    if future.done():
                        future.result()
            for future in futures:
                future.result()
        finally:
            stop.set()
    report()


def _share(start: Start) -> float:
    return 1.0 if start.removed is None else start.removed


def _warn_near_chance(held_out: float | None, trained: float) -> None:
    """Warn if the network tells hardly more than a constant does, by the shares of the loss that it removes."""
    if trained < NEAR_CHANCE or (held_out is not None and held_out < NEAR_CHANCE_HELD_OUT):
        warn_near_chance(
            trained if held_out is None else held_out,
            "its own training rows" if held_out is None else "rows held out",
            "Use network='pairs', which finds columns that act together, 'additive' or 'linear', raise n_init to train more "
            "networks, or raise n_features_to_select.",
        )
