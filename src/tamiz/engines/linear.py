"""Train a linear model and its mask in pieces of the compiled loop, for one M or for several that share their first steps."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tamiz._utils.compiling import call_loop
from tamiz.core.history import history_to_dict, room_for_steps
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule, Slot, selection_schedule
from tamiz.engines import loop
from tamiz.engines.contract import Fit, Problem, Progress
from tamiz.engines.design import Design, in_canonical_order
from tamiz.engines.loop import LoopSlot, Status
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
    #: Steps before which the refinement does not begin.
    refinement_from: int
    refinement_steps: int
    #: Steps of refinement after which weights are averaged.
    average_from: int
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
    memory : Memory
        What the loop changes, before the first step.
    fit_intercept : bool, default=True
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
        memory: loop.Memory,
        fit_intercept: bool = True,
    ) -> None:
        if schedule.average != 0 and self.compiled_loop is loop.run:
            raise ValueError(f"only networks average weights: average must be 0, got {schedule.average!r}")
        self.problem, self.rule, self.loss, self.schedule = problem, rule, loss, schedule
        self.numbers, self.training = rule.numbers, training_numbers(rule, schedule, fit_intercept)
        self.design, self.memory = design, memory
        self._take_costs()

    def continued(self, rule: Rule, schedule: Schedule) -> Run:
        """Copy the run, to go on with a smaller M."""
        fresh = copy.copy(self)
        fresh.rule, fresh.schedule, fresh.numbers = rule, schedule, rule.numbers
        fresh.training = training_numbers(rule, schedule, self.training.fit_intercept)
        fresh.memory, fresh.design = loop.copy_memory(self.memory), self.design.copy()
        fresh.memory.mask.counters[Slot.KEPT] = rule.n_features_to_select
        return fresh

    @property
    def width(self) -> int:
        """Coefficients of the working set."""
        return int(self.memory.loop_counters[LoopSlot.WIDTH])

    def position(self) -> tuple[int, int, int]:
        """Step, features alive, steps of refinement done."""
        counters = self.memory.mask.counters
        n_alive = int(counters[Slot.OPEN] or counters[Slot.KEPT])
        return int(counters[Slot.STEP]), n_alive, int(self.memory.loop_counters[LoopSlot.REFINED])

    def train(self, progress: Progress = None, before_piece: Callable[[Run], Any] | None = None) -> None:
        """Train until done, or until ``before_piece`` returns True, and drop all that is eliminated."""
        rule, data = self.rule, self.problem
        targets, weights = np.ascontiguousarray(data.targets, dtype=np.float32), data.unit_weights()
        functions, first, steps = (self.loss.compiled, *self._products()), 0, (np.zeros(0), np.zeros(0))
        decided = rule.n_features_to_select == rule.n_features and rule.warmup_steps == 0
        while not (decided and self.schedule.refinement_steps == 0):
            if before_piece is not None and before_piece(self):
                break
            # Pieces of about ten milliseconds: Ctrl-C is noticed, and the cost of coming back to Python is negligible.
            piece = int(max(16, min(4096, 2e7 // max(1, self._cells()))))
            piece = min(piece, room_for_steps(self.memory.history))
            begin = self.position()[0] + 1 - first
            if begin + piece > steps[0].size:  # alpha and target are computed for many steps at a time
                first, begin = first + begin, 0
                steps = selection_schedule(rule, first, 8192)
            rows = loop.Piece(self.design.matrix, targets, weights, *(part[begin : begin + piece] for part in steps))
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

    def _products(self) -> tuple[Any, ...]:
        return self.design.products

    def _cells(self) -> int:
        """Entries of the tables that a step works on."""
        return self.width * (self.schedule.batch_size + 8) * self.problem.n_outputs

    def _finish(self) -> None:
        loop.merge_parts(self.memory)

    def drop(self) -> None:
        """Drop what is eliminated, and take the numbers of the rule for what is left; in the closing each counts once."""
        loop.drop_eliminated(self.memory, self.design)
        if self.memory.mask.counters[Slot.CLOSED]:
            self._finish()
        self._take_costs()

    def _take_costs(self) -> None:
        memory, rule = self.memory, self.rule
        if rule.costs is not None:
            n, counters = int(memory.loop_counters[LoopSlot.FEATURES]), memory.mask.counters
            costs = rule.costs[memory.feature[:n]] if counters[Slot.OPEN] else np.ones(n)
            self.numbers = rule.numbers._replace(costs=costs, n_features_to_select=int(counters[Slot.KEPT]))

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and constants of the kept columns after ``Loss.decision``, in float64."""
        n_outputs, decision = self.problem.n_outputs, self.loss.decision
        weights = self.memory.weights[:n_outputs, : self.width].astype(np.float64)
        constants = self.memory.rest[:1, :n_outputs].astype(np.float64)
        return decision(weights.T).T, decision(constants)[0]

    def selection(self, seed: int, started: float, engine: str) -> Selection:
        """Record the finished run, whose memory is freed; warn if the step limit had to decide."""
        rule, counters, loop_counters = self.rule, self.memory.mask.counters, self.memory.loop_counters
        m = int(counters[Slot.KEPT])
        feature, rank, history = self.memory.feature, self.memory.mask.rank[:m].copy(), self.memory.history
        del self.memory
        if counters[Slot.FORCED]:
            warnings.warn(
                f"The selection did not settle within {rule.max_steps} steps; the {m} largest were kept. Raise max_steps"
                + ("." if rule.variant == "soft" else ", or use variant='soft'."),
                ConvergenceWarning,
                stacklevel=3,
            )
        ranking = np.empty(feature.size, dtype=np.int64)
        ranking[feature] = np.arange(1, feature.size + 1, dtype=np.int32)
        ranking[feature[:m]] = rank
        return Selection(
            support=ranking <= m,
            ranking=ranking,
            variant=rule.variant,
            converged=not counters[Slot.FORCED],
            n_steps=int(counters[Slot.STEP]),
            closed_at=int(loop_counters[LoopSlot.CLOSED_AT]),
            seed=int(seed),
            seconds=time.perf_counter() - started,
            history=history_to_dict(history, ranking, m),
            engine=engine,
        )


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
        """Outputs for each row, shape (n_samples, n_outputs)."""
        base = 0.0 if offset is None else self.coef @ offset
        return np.asarray(X @ self.coef.T) + (base + self.intercept)

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> LinearModel:
        """Model whose outputs are ``scores * scale + mean``."""
        return LinearModel(self.coef * scale[:, None], self.intercept * scale + mean)


class _Copies:
    """Keep the latest state of a run in which no step has depended on M, for a run with a smaller M to continue from.

    Copying takes time too: until about twice M features are left, a state is kept when half of the features of the one
    before are gone.
    """

    def __init__(self, latest: Run | None, rule: Rule) -> None:
        self.latest = latest
        self.near = 2 * rule.n_features_to_select + 8
        self.n_open = rule.n_features if latest is None else int(latest.memory.mask.counters[Slot.OPEN])

    def look_at(self, run: Run) -> None:
        n_open = int(run.memory.mask.counters[Slot.OPEN])
        if n_open == 0 or run.memory.loop_counters[LoopSlot.TARGET_MATTERS]:
            return
        if n_open <= self.n_open // 2 or self.near >= n_open < self.n_open:
            self.latest, self.n_open = run.continued(run.rule, run.schedule), n_open


def _shares_steps(run: Run, rule: Rule, schedule: Schedule) -> bool:
    """Whether a run with another rule takes the same steps as ``run`` until these depend on M."""

    def before_refinement(one: Schedule) -> Schedule:
        return replace(one, refinement_steps=0, refinement_l2=0.0, refinement_rates=())

    m = rule.n_features_to_select
    return (
        m < run.rule.n_features_to_select < run.rule.n_features
        and run.rule.costs is None
        and replace(run.rule, n_features_to_select=m) == rule
        and run.rule.numbers._replace(n_features_to_select=m) == rule.numbers
        and before_refinement(run.schedule) == before_refinement(schedule)
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
    >>> from tamiz.core.rule import Rule
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines.contract import Problem
    >>> from tamiz.engines.schedule import linear_schedule
    >>> X = np.random.default_rng(0).normal(size=(60, 30)).astype(np.float32)
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, 1.0, -1.0)[:, None]
    >>> schedule = linear_schedule(60, 2, "classification")
    >>> rule = Rule(30, 2, ramp_steps=schedule.ramp_steps, warmup_steps=schedule.warmup_steps)
    >>> fit = LinearEngine().fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> fit.selection.indices.tolist(), fit.model.coef.shape
    ([3, 7], (1, 2))
    """

    fit_intercept: bool = True

    def fit(self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, **run: Any) -> Fit:
        """Select exactly M columns, or M groups of columns, and train a linear model on them, in one run.

        Parameters are those of every :class:`~tamiz.engines.contract.Engine`; ``schedule.average`` must be 0.
        """
        return next(self.fit_path(problem, [rule], loss, [schedule], **run))

    def fit_path(
        self,
        problem: Problem,
        rules: Sequence[Rule],
        loss: Loss,
        schedules: Sequence[Schedule],
        *,
        seed: int = 0,
        progress: Progress = None,
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
        problem.check_groups(rules[0].n_features)
        problem, order, starts, features = in_canonical_order(problem)
        wide = starts is not None and bool((np.diff(starts) > 1).any())  # a feature has several columns
        latest: Run | None = None  # as it was before a step depended on M
        for number, (rule, schedule) in enumerate(zip(rules, schedules, strict=True)):
            if latest is not None and _shares_steps(latest, rule, schedule):
                run = latest.continued(rule, schedule)
            else:
                latest, n_parts = None, count_parts(schedule, rule, problem.n_samples, wide)
                if n_parts > 1 and starts is None:
                    starts = np.arange(problem.n_columns + 1)
                design = Design(problem.X, problem.offset, len(rules) == 1, starts, features)
                memory = loop.new_memory(design, rule, problem.targets, schedule.batch_size, seed, n_parts)
                run = Run(problem, rule, loss, schedule, design, memory, self.fit_intercept)
                del design, memory
            copies = None
            if number + 1 < len(rules) and _shares_steps(run, rules[number + 1], schedules[number + 1]):
                copies = _Copies(latest, rule)
            run.train(progress, None if copies is None else copies.look_at)
            latest = None if copies is None else copies.latest
            coef, intercept = run.coefficients()
            selection = run.selection(seed, started, "linear")
            kept = problem.columns_of(selection.support[features])
            coef = coef[:, np.argsort(order[kept], kind="stable")]
            yield Fit(selection, LinearModel(coef, intercept))
            started = time.perf_counter()
