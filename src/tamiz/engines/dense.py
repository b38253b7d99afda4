"""Fit a dense network and its mask: starts side by side in threads, which of them is kept, and the record."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from tamiz._utils.compiling import njit
from tamiz._utils.extras import require
from tamiz.core.compiled import IN_PLACE
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Fit, Problem, Progress, check_dense_size
from tamiz.engines.dense_loop import EPSILON, Row, first_layer_products, new_dense_memory, run_dense, views
from tamiz.engines.design import Design, in_canonical_order
from tamiz.engines.linear import Run, count_parts, warn_near_chance
from tamiz.engines.loop import LoopSlot, rows_in_parts
from tamiz.engines.schedule import DENSE_STARTS, Schedule

#: Rows that go through the network at once.
ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class DenseModel:
    """A dense network over the selected columns: affine layers with ReLU between them, batch normalisation folded in.

    Parameters
    ----------
    layers : tuple of tuple of two ndarrays of float32
        Weights (n_inputs, units) and constants (units,) of each layer; the units of the last one are the outputs.

    Examples
    --------
    >>> layers = (np.float32([[2.0]]), np.float32([0.0])), (np.float32([[1.0]]), np.float32([0.5]))
    >>> DenseModel(layers).scores(np.array([[1.0], [-1.0]])).tolist()
    [[2.5], [0.5]]
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]

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
        (first, base), *others = self.layers
        base = base if offset is None else base + offset.astype(np.float32) @ first
        out = np.empty((X.shape[0], self.layers[-1][1].size), dtype=np.float64)
        for begin in range(0, X.shape[0], ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            units = np.asarray(X[rows].astype(np.float32) @ first) + base
            for weights, constants in others:
                units = np.maximum(units, np.float32(0)) @ weights + constants
            out[rows] = units
        return out

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> DenseModel:
        """Model whose outputs are ``scores * scale + mean``."""
        *hidden, (weights, constants) = self.layers
        last = (weights * scale).astype(np.float32), (constants * scale + mean).astype(np.float32)
        return DenseModel((*hidden, last))

    def reordered(self, order: np.ndarray) -> DenseModel:
        """Model that reads the same columns in another order: first the one that was at ``order[0]``."""
        (weights, constants), *others = self.layers
        return DenseModel(((np.ascontiguousarray(weights[order]), constants), *others))

    def decided(self, loss: Loss) -> DenseModel:
        """Model after ``Loss.decision``: two competing outputs are reduced to their difference."""
        *hidden, (weights, constants) = self.layers
        return DenseModel((*hidden, (np.ascontiguousarray(loss.decision(weights)), loss.decision(constants[None])[0])))

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights (n_outputs, n_inputs) and constants of each layer, in float64; ReLU between them."""
        return [(weights.T.astype(np.float64), constants.astype(np.float64)) for weights, constants in self.layers]

    def to_torch(self) -> Any:
        """Network as an ``nn.Sequential`` of Linear and ReLU in evaluation mode, with the same predictions; needs PyTorch."""
        require("torch", "torch", "to_torch()")
        import torch
        from torch import nn

        parts: list[nn.Module] = []
        with torch.no_grad():
            for weights, constants in self.layers:
                linear = nn.Linear(*weights.shape)
                linear.weight.copy_(torch.from_numpy(weights.T))
                linear.bias.copy_(torch.from_numpy(constants))
                parts += [linear, nn.ReLU()]
        return nn.Sequential(*parts[:-1]).eval()


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
        self.hidden = hidden
        #: Share of the loss of the best constant scores that the networks remove on their own parts, in the mean.
        self.removed = 1.0
        rows = [(np.setdiff1d(np.arange(problem.n_samples), part), part) for part in parts]
        # An epoch is cut into equal parts, to one row, none smaller than the batch size: batch normalisation cannot work on a
        # last batch of one row.
        self.n_rows = min(problem.n_samples, 2 * schedule.batch_size)
        memory = new_dense_memory(design, rule, rows, hidden, problem.n_outputs, self.n_rows, seed)
        if len(parts) > 1:
            design.scale_groups(memory.gate)
        super().__init__(problem, rule, loss, schedule, design, memory)

    def _products(self) -> tuple[Any, ...]:
        return first_layer_products()

    def _cells(self) -> int:
        units = int(self.memory.rest.units[0])
        return (self.width + units) * units * self.n_rows * self.memory.rows.shape[0] // 5

    def _finish(self) -> None:
        """Keep the network with the lowest loss on the rows that it did not train on, and go on with all rows.

        Groups return to the scale of the table: their weights take over the factors of their gates.
        """
        memory, everything, matrix = self.memory, np.arange(self.problem.n_samples), self.design.matrix
        if matrix.scales.size:
            scales = np.repeat(matrix.scales, np.diff(matrix.starts))[:, None]
            memory.weights[:, : scales.size] *= scales
            memory.weights_first[:, : scales.size] /= scales
            memory.weights_second[:, : scales.size] /= scales**2
            memory.gate[:] = 1.0
            self.design.matrix = matrix._replace(scales=matrix.scales[:0])
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
        memory, hidden, layers = self.memory, self.hidden, self.memory.rest
        averaged = bool(self.training.average_from < memory.loop_counters[LoopSlot.REFINED])
        weights = (layers.first_average if averaged else memory.weights[number])[: self.width, : hidden[0]]
        n_outputs, found = int(layers.units[-1]), []
        for size, n_next, parts in zip(hidden, (*hidden[1:], n_outputs), views(layers, number, averaged)):
            scale, shift, behind, mean, variance = (part[:size].astype(np.float64) for part in parts)
            slope = scale / np.sqrt(variance + EPSILON)
            found.append(((weights * slope).astype(np.float32), (shift - mean * slope).astype(np.float32)))
            weights = behind[:, :n_next]
        constants = layers.parameters[number, Row.AVERAGE if averaged else Row.VALUE, -n_outputs:].copy()
        return DenseModel((*found, (weights.astype(np.float32), constants)))

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
        self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, *, seed: int = 0, progress: Progress = None
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
        model, selection = best.network().decided(loss), best.selection(seed, started, "dense")
        kept = problem.columns_of(selection.support[features])
        return Fit(selection, model.reordered(np.argsort(order[kept], kind="stable")))


def _run_side_by_side(starts: list[DenseRun], progress: Progress) -> None:
    """Train all starts in threads; report progress and take interrupts in the thread of the caller."""
    stop = threading.Event()

    def report() -> None:
        if progress is not None:
            step, n_alive, refined = np.mean([start.position() for start in starts], axis=0)
            progress(int(step), int(np.ceil(n_alive)), int(refined))

    with ThreadPoolExecutor(min(len(starts), os.cpu_count() or 1)) as pool:
        futures = [pool.submit(start.train, None, lambda _: stop.is_set()) for start in starts]
        try:
            running = set(futures)
            while running:
                done, running = wait(futures, timeout=_POLL)
                report()
                for future in done:
                    future.result()
        finally:
            stop.set()
    report()
