"""Fit a second-order model and its mask: screening, pieces of the compiled loop, and the trained curves and joint effects."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamiz.core.history import room_for_steps
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.core.schedule import ScheduleWindow
from tamiz.core.state import Slot
from tamiz.engines._compile_notice import announce_compilation, call_loop
from tamiz.engines.additive import MAX_BYTES, N_KNOTS, AdditiveModel
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.dense_start import constant_loss, mean_loss
from tamiz.engines.loop import Status
from tamiz.engines.memory import LoopSlot
from tamiz.engines.pair_basis import PairBasis, pair_basis
from tamiz.engines.pair_loop import run_pair_loop
from tamiz.engines.pair_memory import PairMemory, drop_features, new_pair_memory
from tamiz.engines.pair_model import PairModel
from tamiz.engines.record import (
    final_ranking,
    numbers_of_working_set,
    raise_diverged,
    record_selection,
    training_numbers,
    warn_near_chance,
)
from tamiz.engines.schedule import Schedule
from tamiz.engines.screened import screen

#: Functions that the loop calls, for the progress of its compilation.
_N_FUNCTIONS = 38
#: Features that are screened: for each one that is selected, one for so many rows up to a limit, and at the least.
SCREENED_PER_SELECTED, ROWS_PER_SCREENED, MOST_BY_ROWS, FEWEST_SCREENED = 2, 25, 40, 8
#: Features, those with the most evidence, whose products are in the model: with all of them a wide model would have many
#: more products than there are rows.
MOST_PAIRED = 64
#: A model is near chance if it removes less than this share of the loss of the best constant scores on its training rows.
NEAR_CHANCE = 0.1


def expected_size(rule: Rule) -> int:
    """Return M or, with a budget, about how many features it pays for.

    Examples
    --------
    >>> expected_size(Rule(9, 4)), expected_size(Rule(3, 0, costs=[1, 2, 3], budget=4))
    (4, 2)
    """
    if rule.costs is None or rule.budget is None:
        return rule.n_features_to_select
    return min(rule.n_features, max(1, int(rule.budget / rule.costs.mean())))


def automatic_n_screened(n_samples: int, n_features_to_select: int) -> int:
    """Return how many features are screened where the user does not say: max(8, 2 M, min(40, N / 25)).

    More of them give a weak effect that the search ranks low another chance, but bring four products for each pair: with few
    rows these drown it.

    Examples
    --------
    >>> automatic_n_screened(1000, 2), automatic_n_screened(500, 2), automatic_n_screened(100, 50)
    (40, 20, 100)
    """
    by_rows = min(MOST_BY_ROWS, n_samples // ROWS_PER_SCREENED)
    return max(FEWEST_SCREENED, SCREENED_PER_SELECTED * n_features_to_select, by_rows)


@dataclass(frozen=True)
class PairEngine:
    """Screen the columns, train curves and products of pairs of them, and select the columns, compiled.

    Each screened column has a curve, as in the additive model, and two functions of its ranks, a line and a U-shape; the
    products of the functions of two columns are their joint effect. The coefficients of a curve are multiplied by the gamma of
    its column, those of a joint effect by the product of the gammas of both columns. All columns of a group share
    one gamma. Columns that are always read are not screened, have a gamma of 1, and each has joint effects of its own. Of a
    sparse table only the columns that are left are made dense.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is a constant term; l2 leaves it free.
    n_screened : int or None, default=None
        How many features are screened, at least M; None: :func:`automatic_n_screened`. With a budget there are so many
        that they cost more than it and, if None, twice as much. Of the 64 with the most evidence, columns that are always
        read among them, the products are in the model, of the others the curves.
    max_bytes : int, default=8 GiB
        Memory that the curves of the screened columns may take; beyond it the fit raises a ``MemoryError``.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines import pair_schedule
    >>> X = np.random.default_rng(0).normal(size=(300, 60)).astype(np.float32)
    >>> y = np.where(X[:, [3]] * X[:, [7]] > 0, 1.0, -1.0)
    >>> schedule = pair_schedule(300, 2, "classification")
    >>> rule = Rule(60, 2, ramp_steps=schedule.ramp_steps, warmup_steps=schedule.warmup_steps)
    >>> fit = PairEngine().fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> fit.selection.indices.tolist(), [pair[:2] for pair in fit.model.pair_strengths()]
    ([3, 7], [(0, 1)])
    """

    fit_intercept: bool = True
    n_screened: int | None = None
    max_bytes: int = MAX_BYTES

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
        """Select exactly M columns, or M groups of columns, and train curves and joint effects of them, in one run.

        Parameters are those of every :class:`~tamiz.engines.contract.Engine`; ``schedule.average`` must be 0.
        """
        if schedule.average != 0:
            raise ValueError(f"the pair engine does not average weights: average must be 0, got {schedule.average!r}")
        if problem.n_samples < 2:
            raise ValueError(f"joint effects need at least 2 rows to train on, got {problem.n_samples}")
        problem.check_groups(rule.n_features)
        started = time.perf_counter()
        announce_compilation(run_pair_loop, _N_FUNCTIONS)
        n_screened = self.n_screened or automatic_n_screened(problem.n_samples, expected_size(rule))
        share = 1.0 if self.n_screened else float(SCREENED_PER_SELECTED)
        screened = screen(problem, rule, loss, n_screened, seed, MOST_PAIRED, share)
        small, small_rule = screened.problem, screened.rule(rule)
        n_bytes = 4 * (N_KNOTS - 1) * small.n_samples * small.n_columns
        if n_bytes > self.max_bytes:
            raise MemoryError(
                f"the curves of {small.n_columns} screened columns and {small.n_samples} rows take {n_bytes / 2**30:.1f} GiB, "
                f"more than the {self.max_bytes / 2**30:.1f} GiB allowed: lower n_features_to_select or n_screened, or fit on "
                "a part of the rows"
            )
        groups = np.arange(small.n_columns) if small.groups is None else small.groups.copy()
        n_always = int(np.count_nonzero(groups < 0))
        groups[groups < 0] = small_rule.n_features + np.arange(n_always)
        order = np.argsort(groups, kind="stable")  # the columns of a group lie side by side
        basis = pair_basis(small.X[:, order], small.unit_weights(), groups[order], screened.best[:MOST_PAIRED])
        memory = new_pair_memory(
            small.n_samples, small.n_outputs, small_rule.n_features_to_select, schedule.batch_size, seed,
            *basis.starts(small_rule.n_features + n_always), n_always,
        )  # fmt: skip
        self._train(small, basis.table, small_rule, loss, schedule, memory, progress)
        m = int(memory.counters[Slot.KEPT])
        drop_features(memory, m)

        ranking = final_ranking(memory.feature, memory.rank[:m])
        selection = record_selection(
            small_rule, ranking, memory.counters, memory.loop_counters[LoopSlot.CLOSED_AT], memory.history,
            seed=seed, started=started, engine="pairs",
        )  # fmt: skip
        model = _trained_model(basis, memory, order, selection.support, loss)
        _report_chance(model, small, small.columns_of(selection.support), loss)
        selection = screened.ranked(selection)
        return Fit(replace(selection, seconds=time.perf_counter() - started), model)

    def _train(
        self,
        problem: Problem,
        table: np.ndarray,
        rule: Rule,
        loss: Loss,
        schedule: Schedule,
        memory: PairMemory,
        progress: Progress | None,
    ) -> None:
        counters, numbers = memory.counters, rule.numbers
        if rule.n_features_to_select == rule.n_features and schedule.refinement_steps == 0 and rule.warmup_steps == 0:
            return
        targets = np.ascontiguousarray(problem.targets, dtype=np.float32)
        weights = problem.unit_weights()
        training = training_numbers(rule, schedule, self.fit_intercept)
        rates = np.array(schedule.refinement_rates, dtype=np.float64)
        window = ScheduleWindow(rule)
        while True:
            # Pieces of about ten milliseconds: Ctrl-C is heard, and the cost of coming back to Python is not seen.
            cells = memory.loop_counters[LoopSlot.WIDTH] * (schedule.batch_size + 8) * problem.n_outputs
            piece = min(int(max(16, min(4096, 2e7 // max(1, cells)))), room_for_steps(memory.history))
            status = call_loop(
                run_pair_loop, loss.compiled, table, targets, weights, memory, numbers, training, rates,
                *window.steps(int(counters[Slot.STEP]) + 1, piece),
            )  # fmt: skip
            if status == Status.DIVERGED:
                raise_diverged()
            if status == Status.DONE:
                return
            if status == Status.COMPACT:
                table = np.ascontiguousarray(table[:, drop_features(memory, int(counters[Slot.KEPT]))])
                numbers = numbers_of_working_set(rule, memory.feature, memory.loop_counters, counters)
            if progress is not None:
                refined = int(memory.loop_counters[LoopSlot.REFINED])
                progress(int(counters[Slot.STEP]), int(counters[Slot.OPEN]) or int(counters[Slot.KEPT]), refined)


def _trained_model(
    basis: PairBasis, memory: PairMemory, order: np.ndarray, support: np.ndarray, loss: Loss
) -> PairModel:
    """Return the model of a finished run, which reads the columns of the kept features in the order of the table."""
    kept = np.concatenate([support, np.ones(memory.gamma.size - memory.feature.size, dtype=bool)])
    n = int(kept.sum())
    width, n_curves = int(memory.loop_counters[LoopSlot.WIDTH]), int(memory.curve_starts[n])
    coef = loss.decision(memory.folded[:, :width].astype(np.float64).T).T
    intercept = loss.decision(memory.intercept[0].astype(np.float64)[None])[0]

    columns = np.flatnonzero(kept[basis.column_features])  # side by side, not in the order of the table
    knots, heights, constants = zip(*basis.hats.heights(coef[:, :n_curves], columns), strict=True)
    knots = [part * basis.deviation[j] + basis.mean[j] for part, j in zip(knots, columns)]
    in_table = np.argsort(order[columns], kind="stable")
    curves = AdditiveModel(
        np.concatenate([knots[j] for j in in_table]),
        np.concatenate([[0], np.cumsum([knots[j].size for j in in_table])]),
        np.concatenate([heights[j] for j in in_table], axis=1),
        intercept + np.sum(constants, axis=0),
    )
    starts = basis.knot_starts()
    places = np.concatenate([np.arange(starts[j], starts[j + 1]) for j in columns[in_table]])
    rows = np.flatnonzero(kept[basis.function_features])
    function_features = np.searchsorted(np.flatnonzero(kept), basis.function_features[rows])
    weights = np.zeros((coef.shape[0], rows.size, rows.size))
    first, second = np.nonzero(function_features[:, None] < function_features)
    weights[:, first, second] = coef[:, n_curves:]
    return PairModel(curves, basis.heights[np.ix_(rows, places)], function_features, weights)


def _report_chance(model: PairModel, problem: Problem, columns: np.ndarray, loss: Loss) -> None:
    """Warn if the model tells hardly more than a constant does on its own training rows."""
    rows = np.arange(problem.n_samples)
    scores: Any = model.scores(problem.X[:, columns])
    if scores.shape[1] < problem.n_outputs:  # two competing outputs were reduced to their difference
        scores = np.column_stack([-scores / 2, scores / 2])
    reference = constant_loss(loss, problem, rows)
    removed = 1.0 - mean_loss(loss, problem, scores, rows)[0] / reference if reference > 0 else 1.0
    if removed < NEAR_CHANCE:
        warn_near_chance(
            removed,
            "its own training rows",
            "Raise n_screened or n_features_to_select, or look for pairs with tamiz.find_pairs first.",
        )
