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
from numba import njit
from scipy.optimize import minimize

from tamiz._utils.extras import require
from tamiz.core.compiled import IN_PLACE
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.engines.compilation import announce_compilation
from tamiz.engines.contract import Fit, Problem, Progress, check_dense_size
from tamiz.engines.dense_loop import most_rows, new_dense_memory, run_dense
from tamiz.engines.design import Design, in_canonical_order
from tamiz.engines.layers import EPSILON, Row, first_layer_products, network_of, views
from tamiz.engines.memory import LoopSlot, rows_in_parts
from tamiz.engines.schedule import DENSE_STARTS, Schedule
from tamiz.engines.training import Run, count_parts, warn_near_chance

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
        """Outputs for each row.

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
        """Model whose outputs are ``scores * scale + mean``."""
        weights, constants = self.output_weights * scale[:, None], self.output_constants * scale + mean
        return DenseModel(self.hidden, weights.astype(np.float32), constants.astype(np.float32))

    def reordered(self, order: np.ndarray) -> DenseModel:
        """Model that reads the same columns in another order: first the one that was at ``order[0]``."""
        first = self.hidden[0]
        layers = (first._replace(weights=np.ascontiguousarray(first.weights[order])), *self.hidden[1:])
        return DenseModel(layers, self.output_weights, self.output_constants)

    def decided(self, loss: Loss) -> DenseModel:
        """Model after ``Loss.decision``: two competing outputs are reduced to their difference."""
        weights, constants = loss.decision(self.output_weights.T).T, loss.decision(self.output_constants[None])[0]
        return DenseModel(self.hidden, np.ascontiguousarray(weights), constants)

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights (n_outputs, n_inputs) and constants of each layer, batch normalisation folded in; ReLU between."""
        found = []
        for layer in self.hidden:
            slope = layer.scale / np.sqrt(layer.variance.astype(np.float64) + EPSILON)
            found.append((layer.weights.T * slope[:, None], layer.shift - layer.mean * slope))
        return [*found, (self.output_weights.astype(np.float64), self.output_constants.astype(np.float64))]

    def to_torch(self) -> Any:
        """Network as an ``nn.Sequential`` in evaluation mode, with the same predictions; needs PyTorch.

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


class DenseRun(Run):
    """A run of a network, or of several that share gamma until it is closed.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    problem, rule, loss, schedule : Problem, Rule, Loss, Schedule
        As for an engine.
    design : Design
        The table.
    seed : tuple of int
        Decides the weights and the order of the rows.
    parts : list of ndarray of int
        Rows that each network does not train on before the mask is closed. Several networks share gamma, which is trained on
        these rows; a single one trains gamma with its weights. The network with the lowest loss on its part is then refined on
        all rows.
    """

    compiled_loop = staticmethod(run_dense)

    def __init__(
        self,
        hidden: tuple[int, ...],
        problem: Problem,
        rule: Rule,
        loss: Loss,
        schedule: Schedule,
        design: Design,
        seed: tuple[int, ...],
        parts: list[np.ndarray],
    ) -> None:
        self._prepare(problem, rule, loss, schedule, True)
        self.hidden, self.design = hidden, design
        self.removed = 1.0
        """Share of the loss of the best constant scores that the networks remove on their own parts, in the mean."""
        rows = [(np.setdiff1d(np.arange(problem.n_samples), part), part) for part in parts]
        self.n_rows = most_rows(problem.n_samples, schedule.batch_size)
        self.memory = new_dense_memory(design, rule, rows, hidden, problem.n_outputs, self.n_rows, seed)
        self._take_costs()

    def _products(self) -> tuple[Any, ...]:
        return first_layer_products()

    def _cells(self) -> int:
        units, width = int(self.memory.rest.units[0]), int(self.memory.loop_counters[LoopSlot.WIDTH])
        return (width + units) * units * self.n_rows * self.memory.rows.shape[0] // 5

    def _finish(self) -> None:
        """Keep the network with the lowest loss on the rows that it did not train on, and go on with all rows."""
        memory, everything = self.memory, np.arange(self.problem.n_samples)
        width = int(memory.loop_counters[LoopSlot.WIDTH])
        if memory.rest.first_average.shape[0] != width:
            averages = np.zeros((width, memory.weights.shape[2]), dtype=np.float32)
            memory = self.memory = memory._replace(rest=memory.rest._replace(first_average=averages))
        held_out = [rows[n:].copy() for rows, n in zip(memory.rows, memory.positions[:, 2])]
        if held_out[0].size == 0:
            return
        losses = [self.loss_on(rows, number) for number, rows in enumerate(held_out)]
        constants = [constant_loss(self.loss, self.problem, rows) for rows in held_out]
        self.removed = 1.0 - float(np.sum(losses) / np.sum(constants))
        one = slice(best := int(np.argmin(losses)), best + 1)
        layers = memory.rest
        self.memory = memory._replace(
            rest=layers._replace(parameters=layers.parameters[one].copy(), statistics=layers.statistics[one].copy()),
            weights=memory.weights[one].copy(),
            weights_first=memory.weights_first[one].copy(),
            weights_second=memory.weights_second[one].copy(),
            rows=everything[None],
            positions=np.array([[everything.size, 0, everything.size]]),
        )

    def network(self, number: int = 0) -> DenseModel:
        """Copy a trained network, without the padding of its layers; it has as many outputs as there are targets."""
        memory, hidden, layers = self.memory, self.hidden, network_of(self.memory.rest, number)
        averaged = self.training.average_from < memory.loop_counters[LoopSlot.REFINED]
        row, which = (Row.AVERAGE, 1) if averaged else (Row.VALUE, 0)
        width, n_outputs = int(memory.loop_counters[LoopSlot.WIDTH]), int(layers.units[-1])
        weights = (layers.first_average if averaged else memory.weights[number, :width])[:, : hidden[0]].copy()
        found = []
        for size, n_next, parts in zip(hidden, (*hidden[1:], n_outputs), views(layers, row, which)):
            scale, shift, behind, mean, variance = parts
            found.append(HiddenLayer(weights, *(part[:size].copy() for part in (scale, shift, mean, variance))))
            weights = behind[:size, :n_next].copy()
        constants = layers.parameters[row, -n_outputs:].copy()
        return DenseModel(tuple(found), np.ascontiguousarray(weights.T), constants)

    def loss_on(self, rows: np.ndarray, number: int = 0) -> float:
        """Mean loss of a network on some rows."""
        scores = self.network(number).scores(self.design.matrix.values[rows])
        return mean_loss(self.loss, self.problem, scores, rows)[0]


@njit(**IN_PLACE)
def _call(loss, scores, targets, weights, gradient):
    """Call a compiled loss, which Python cannot."""
    return loss(scores, targets, weights, gradient)


def mean_loss(loss: Loss, problem: Problem, scores: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Weighted mean loss of scores for some rows, and its gradient."""
    scores = np.ascontiguousarray(scores, dtype=np.float32)
    gradient = np.zeros_like(scores)
    targets = np.ascontiguousarray(problem.targets[rows], dtype=np.float32)
    return float(_call(loss.compiled, scores, targets, problem.unit_weights()[rows], gradient)), gradient


def constant_loss(loss: Loss, problem: Problem, rows: np.ndarray) -> float:
    """Mean loss on some rows of the scores that are best for them among those that are the same for all rows.

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
    >>> from tamiz.engines.schedule import network_schedule
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

        Parameters are those of every :class:`~tamiz.engines.contract.Engine`. A sparse table is made dense;
        ``progress`` is given means over the starts.
        """
        problem.check_groups(rule.n_features)
        if problem.n_samples < 2:
            raise ValueError(f"batch normalisation needs at least 2 rows to train on, got {problem.n_samples}")
        if schedule.batch_size < 2:
            raise ValueError(f"batch normalisation needs a batch_size of at least 2, got {schedule.batch_size}")
        started = time.perf_counter()
        announce_compilation(run_dense, _N_FUNCTIONS)
        check_dense_size(problem, problem.n_columns)
        problem, order, group_starts, features = in_canonical_order(problem.densified())
        n_parts = self.n_init if rule.n_features_to_select < rule.n_features else 1
        n_parts = n_parts if problem.n_samples >= 2 * n_parts else 1
        rows = rows_in_parts(problem.targets, n_parts, seed)
        parts = [np.sort(rows[part::n_parts]) for part in range(n_parts)] if n_parts > 1 else [rows[:0]]
        hidden, owned = tuple(self.hidden_layer_sizes), n_parts == 1

        def start(number: int, parts: list[np.ndarray]) -> DenseRun:
            design = Design(problem.X, None, owned, group_starts, features)
            return DenseRun(hidden, problem, rule, loss, schedule, design, (seed, number), parts)

        best: DenseRun | None = None
        if n_parts > 1 and count_parts(schedule, rule, problem.n_samples, overfits=True) > 1:
            # Each network leaves out half of the parts: with more rows it would learn more of the noise by heart.
            halves = [np.concatenate([parts[i - j] for j in range(n_parts // 2)]) for i in range(n_parts)]
            best = start(0, halves)
            _run_side_by_side([best], progress)
        if best is None or best.removed < NEAR_CHANCE_HELD_OUT:
            # Networks that share gamma may all lose an input that one of them alone would find.
            starts = [start(number, [part]) for number, part in enumerate(parts)]
            _run_side_by_side(starts, progress)
            alone = max(starts, key=lambda one: one.removed)
            best = alone if best is None or alone.removed >= NEAR_CHANCE_HELD_OUT else best
            del starts, alone  # each holds columns of the table
        trained = 1.0 - best.loss_on(rows) / constant_loss(loss, problem, rows)
        if trained < NEAR_CHANCE or best.removed < NEAR_CHANCE_HELD_OUT:
            warn_near_chance(
                trained if n_parts == 1 else best.removed,
                "its own training rows" if n_parts == 1 else "rows held out",
                "Use network='pairs', which finds columns that act together, 'additive' or 'linear', raise n_init to train "
                "more networks, or raise n_features_to_select.",
            )
        selection = best.selection(seed, started, "dense")
        kept = problem.columns_of(selection.support[features])
        return Fit(selection, best.network().decided(loss).reordered(np.argsort(order[kept], kind="stable")))


def _run_side_by_side(starts: list[DenseRun], progress: Progress | None) -> None:
    """Train all starts in threads; report progress and take interrupts in the thread of the caller."""
    stop = threading.Event()

    def report() -> None:
        if progress is not None:
            step, n_alive, refined = np.mean([start.position() for start in starts], axis=0)
            progress(int(step), int(np.ceil(n_alive)), int(refined))

    with ThreadPoolExecutor(min(len(starts), os.cpu_count() or 1)) as pool:
        futures = [pool.submit(start.train, None, lambda _: stop.is_set()) for start in starts]
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
