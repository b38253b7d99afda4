"""Fit a dense network and its mask: starts side by side in threads, which of them is kept, and the record."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.core.state import Slot
from tamiz.engines._compile_notice import announce_compilation
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.dense_loop import run_dense
from tamiz.engines.dense_start import Start, constant_loss
from tamiz.engines.memory import LoopSlot
from tamiz.engines.record import final_ranking, record_selection, warn_near_chance
from tamiz.engines.schedule import DENSE_STARTS, Schedule

#: Functions that the loop calls, for the progress of its compilation.
_N_FUNCTIONS = 42
#: Seconds between two reports of progress.
_POLL = 0.05
#: Rows from which on some are held out to choose among starts, and the share of them.
ROWS_TO_HOLD_OUT, SHARE_HELD_OUT = 1000, 0.2
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
        Starts from different weights, trained side by side in threads. From 1,000 rows on, a fifth of them is held out, the
        start with the lowest loss on these is kept, and trained once more, from its first weights, on all rows, unless it
        then keeps columns that tell less about the rows held out. Of fewer rows none can be spared: the start with the
        lowest loss on the training rows is kept. A network that lost an input it needs cannot make up for it, so either
        loss tells which start chose well.

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
        n_starts = self.n_init if rule.n_features_to_select < rule.n_features else 1
        rows, judged = _split(problem.n_samples, seed, n_starts)
        hidden, owned = tuple(self.hidden_layer_sizes), problem.owned and n_starts == 1

        def start(number: int, rows: np.ndarray) -> Start:
            return Start(hidden, problem, rule, loss, schedule, (seed, number), rows, owned, group_starts)

        starts = [start(number, rows) for number in range(n_starts)]
        _run_side_by_side(starts, progress)
        losses = [start.loss_on(judged) for start in starts]
        number = int(np.argmin(losses))
        best = starts[number]
        del starts  # each holds columns of the table
        _warn_near_chance(1.0 - losses[number] / constant_loss(loss, problem, judged), held_out=judged is not rows)
        if judged is not rows:
            best = _with_all_rows(best, start(number, np.arange(problem.n_samples)), judged, losses[number], progress)
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


def _split(n_samples: int, seed: int, n_starts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and the rows that choose among the starts; the same array if none can be spared."""
    rows = np.arange(n_samples)
    if n_starts == 1 or n_samples < ROWS_TO_HOLD_OUT:
        return rows, rows
    order = np.random.default_rng((seed, n_starts)).permutation(n_samples)
    n_held_out = int(SHARE_HELD_OUT * n_samples)
    return order[n_held_out:], order[:n_held_out]


def _with_all_rows(
    chosen: Start, again: Start, held_out: np.ndarray, held_out_loss: float, progress: Progress | None
) -> Start:
    """Train the chosen start once more, so that all rows take part in the selection.

    If the columns that it keeps then tell less about the rows held out, with weights refined on the others, it took another
    way and lost an input that it needs: what was chosen stays. Either is refined on all rows in the end.
    """
    _run_side_by_side([again], progress)
    rows = np.arange(again.problem.n_samples)
    again.refine_on(np.setdiff1d(rows, held_out))
    better = again if again.loss_on(held_out) <= held_out_loss else chosen
    better.refine_on(rows)
    return better


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


def _warn_near_chance(removed: float, held_out: bool) -> None:
    """Warn if the network tells hardly more than a constant does; ``removed`` is the share of the loss that it removes."""
    if removed < (NEAR_CHANCE_HELD_OUT if held_out else NEAR_CHANCE):
        warn_near_chance(
            removed,
            "rows held out" if held_out else "its own training rows",
            "Use network='pairs', which finds columns that act together, 'additive' or 'linear', raise n_init to try more "
            "starts, or raise n_features_to_select.",
        )
