"""Running the compiled engine: memory, pieces, compaction, interrupts, and the record that comes out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from tamiz.core import VARIANTS, Rule
from tamiz.linear import engine, state
from tamiz.linear.gamma import CLOSED, FORCED, OPEN, STEP
from tamiz.linear.losses import LOSSES
from tamiz.linear.matrix import compact_dense, compact_sparse, places_of
from tamiz.selection import HISTORY_COLUMNS, Selection

HISTORY_LINES = 256
WIDEST_PATH = 1 << 16
PATHS_KEPT = 64


@dataclass(frozen=True)
class Training:
    """How the weights of the linear model are trained.

    Parameters
    ----------
    loss : str
        A name in ``tamiz.linear.losses.LOSSES``.
    learning_rate : float
        Of Adam, for the weights.
    l2 : float
        Weight of the squared norm of the weights during warm-up, selection and closing.
    refinement_l2 : float or None
        The same during the refinement; None: as before.
    batch_size : int
        Rows a step.
    refinement_steps : int
        Steps after the mask is closed.
    fit_intercept : bool
        Whether there is a constant term; l2 leaves it free.
    """

    loss: str = "squared_hinge"
    learning_rate: float = 1e-3
    l2: float = 0.0
    refinement_l2: float | None = None
    batch_size: int = 2
    refinement_steps: int = 1000
    fit_intercept: bool = True


@dataclass(frozen=True, eq=False)
class LinearFit:
    """What the engine gives back."""

    selection: Selection
    coef: np.ndarray
    """(outputs, n_features_to_select): weights of the kept columns, in the order of the columns."""
    intercept: np.ndarray


def _plan(rule: Rule, training: Training) -> state.Plan:
    refinement_l2 = training.l2 if training.refinement_l2 is None else training.refinement_l2
    return state.Plan(
        loss=LOSSES[training.loss].kind,
        variant=VARIANTS.index(rule.variant),
        n_features=rule.n_features,
        m=rule.n_features_to_select,
        mu=float(rule.mu),
        rho=float(rule.rho),
        beta=float(rule.beta),
        warmup_steps=int(rule.warmup_steps),
        ramp_steps=int(rule.ramp_steps),
        max_steps=int(rule.max_steps or 0),
        mask_learning_rate=float(rule.learning_rate),
        mask_beta1=float(rule.beta1),
        mask_beta2=float(rule.beta2),
        mask_epsilon=float(rule.epsilon),
        learning_rate=float(training.learning_rate),
        l2=float(training.l2),
        batch_size=int(training.batch_size),
        refinement_steps=int(training.refinement_steps),
        refinement_l2=float(refinement_l2),
        fit_intercept=bool(training.fit_intercept),
    )


def _memory(n: int, outputs: int, plan: state.Plan, seed: int) -> state.Memory:
    f = plan.n_features
    counters = np.zeros(state.ALL_COUNTERS, dtype=np.int64)
    counters[state.WIDTH] = f
    counters[state.STRIDE] = 1
    counters[state.POSITION] = n  # the first batch begins an epoch
    decided = plan.m == f
    counters[OPEN] = 0 if decided else f
    counters[CLOSED] = 1 if decided else 0
    column = np.arange(f, dtype=np.int32)
    size = min(plan.batch_size, n)
    table = lambda: np.zeros((outputs, f), dtype=np.float32)  # noqa: E731
    vector = lambda: np.zeros(f, dtype=np.float32)  # noqa: E731
    gradient = table()
    return state.Memory(
        weights=table(),
        folded=table(),
        gradient=gradient,
        weights_first=table(),
        weights_second=table(),
        gamma=np.ones(f, dtype=np.float32),
        gamma_first=vector(),
        gamma_second=vector(),
        rank=column + 1 if decided else np.zeros(f, dtype=np.int32),
        order=gradient[0].view(np.int32),
        column=column,
        intercept=np.zeros((3, outputs), dtype=np.float32),
        rows=np.arange(n, dtype=np.int64),
        random=np.array([seed], dtype=np.uint64),
        counters=counters,
        history=np.zeros((HISTORY_LINES, len(HISTORY_COLUMNS)), dtype=np.float64),
        path=np.zeros((HISTORY_LINES, f if f <= WIDEST_PATH else 0), dtype=np.uint8),
        scores=np.zeros((size, outputs), dtype=np.float32),
        slope=np.zeros((size, outputs), dtype=np.float32),
        batch_targets=np.zeros((size, outputs), dtype=np.float32),
        batch_weights=np.zeros(size, dtype=np.float32),
        tally=np.zeros(1),
    )


class _Table:
    """The table as the engine sees it, shrinking as columns die. Memory that is the caller's is never written to."""

    def __init__(self, X: Any, offset: np.ndarray | None, owned: bool) -> None:
        self.n_rows = X.shape[0]
        self.sparse = sp.issparse(X)
        self.matrix: tuple[np.ndarray, ...]
        if self.sparse:
            X = X.tocsr()
            index = np.int32 if X.nnz < 2**31 else np.int64
            data = X.data.astype(np.float32, copy=not owned)
            indices, indptr = X.indices.astype(np.int32, copy=not owned), X.indptr.astype(index, copy=not owned)
            if offset is None:
                empty = np.zeros(X.shape[1], np.float32)
            else:
                empty = offset.astype(np.float32, copy=not owned)
            self.matrix = (data, indices, indptr, empty)
        else:
            self.matrix = (np.ascontiguousarray(X, dtype=np.float32),)
            owned = owned or not np.shares_memory(self.matrix[0], X)
        self.owned = owned

    def keep(self, order: np.ndarray, width: int) -> None:
        """Drop all columns but those whose numbers are the first ``width`` in ``order``, which is used up."""
        if self.sparse:
            data, indices, indptr, offset = self.matrix
            place = order[: offset.size]
            places_of(place, width)
            left = compact_sparse(data, indices, indptr, offset, place)
            self.matrix = (data[:left], indices[:left], indptr, offset[:width])
            return
        values = self.matrix[0]
        size = values.shape[0] * width
        out = values.reshape(-1)[:size] if self.owned else np.empty(size, dtype=np.float32)
        compact_dense(values, order[:width], out)
        self.matrix = (out.reshape(values.shape[0], width),)
        self.owned = True


def fit_linear(
    X: Any,
    targets: np.ndarray,
    rule: Rule,
    training: Training,
    *,
    sample_weight: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    seed: int = 0,
    owned: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> LinearFit:
    """Select exactly M columns and train a linear model on them, in one run.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (n_samples, n_features)
        The table, already normalised.
    targets : ndarray, shape (n_samples, n_outputs)
        As the loss wants them: -1 and +1, or numbers.
    rule : Rule
        How gamma moves.
    training : Training
        How the weights move.
    sample_weight : ndarray, shape (n_samples,), optional
        Weights of the samples; brought to a mean of one.
    offset : ndarray, shape (n_features,), optional
        What stands in the empty cells of a sparse table.
    seed : int
        Seed of the order of the samples.
    owned : bool
        Whether X and the offset may be overwritten.
    progress : callable, optional
        Called now and then with (step, features alive, steps of refinement done).

    Returns
    -------
    LinearFit

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.core import Rule
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 30)).astype(np.float32)
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, 1.0, -1.0)[:, None]
    >>> fit = fit_linear(X, y, Rule(30, 2), Training(l2=0.1))
    >>> fit.selection.indices.tolist(), fit.coef.shape
    ([3, 7], (1, 2))
    """
    started = time.perf_counter()
    n = X.shape[0]
    plan = _plan(rule, training)
    table = _Table(X, offset, owned)
    targets = np.ascontiguousarray(targets, dtype=np.float32)
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weights = (weights / weights.mean()).astype(np.float32)
    memory = _memory(n, targets.shape[1], plan, seed)
    _loop(table, targets, weights, memory, plan, progress)

    counters, m = memory.counters, plan.m
    engine.compact_vectors(memory, m)
    coef, intercept = memory.weights[:, :m].astype(np.float64), memory.intercept[0].astype(np.float64)
    column, rank = memory.column, memory.rank[:m].copy()
    lines, path = memory.history[: counters[state.RECORDS]], memory.path
    del memory  # before the record is made: the vectors of both together would be the most memory of the whole fit
    converged = counters[FORCED] == 0
    if not converged:
        warnings.warn(
            f"The selection did not settle within {plan.max_steps} steps; the {m} largest were kept. "
            "Raise max_steps or ramp_steps, or use variant='soft'.",
            ConvergenceWarning,
            stacklevel=2,
        )
    ranking = engine.final_ranking(column, rank)
    selection = Selection(
        support=ranking <= m,
        ranking=ranking,
        variant=rule.variant,
        converged=bool(converged),
        n_steps=int(counters[STEP]),
        closed_at=int(counters[state.CLOSED_AT]),
        seed=int(seed),
        seconds=time.perf_counter() - started,
        history=_history(lines, path, ranking, m),
        engine="linear",
    )
    return LinearFit(selection, coef, intercept)


def _loop(
    table: _Table,
    targets: np.ndarray,
    weights: np.ndarray,
    memory: state.Memory,
    plan: state.Plan,
    progress: Callable[[int, int, int], None] | None,
) -> None:
    counters = memory.counters
    if plan.m == plan.n_features and plan.refinement_steps == 0 and plan.warmup_steps == 0:
        return
    while True:
        # Pieces of about ten milliseconds: Ctrl-C is heard, and the cost of coming back to Python is not seen.
        cells = counters[state.WIDTH] * (plan.batch_size + 8) * memory.weights.shape[0]
        piece = int(max(16, min(4096, 2e7 // max(1, cells))))
        status = engine.run(table.matrix, targets, weights, memory, plan, piece)
        if status == state.DIVERGED:
            raise FloatingPointError(
                "The training loss became infinite or NaN: the features are too large. "
                "Normalise them (normalize='erf' or 'standard') or lower learning_rate."
            )
        if status == state.DONE:
            return
        if status == state.COMPACT:
            width = engine.compact_vectors(memory, plan.m)
            table.keep(memory.order, width)
        if progress is not None:
            progress(int(counters[STEP]), int(counters[OPEN]) or plan.m, int(counters[state.REFINED]))


def _history(lines: np.ndarray, path: np.ndarray, ranking: np.ndarray, m: int) -> dict[str, np.ndarray]:
    """The recorded lines by name; of the paths of gamma, those of the best features."""
    history = {name: lines[:, i].copy() for i, name in enumerate(HISTORY_COLUMNS)}
    if path.shape[1]:
        best = np.argsort(ranking, kind="stable")[: min(ranking.size, max(PATHS_KEPT, min(2 * m, 2 * PATHS_KEPT)))]
        history["gamma_path_features"] = best
        history["gamma_path"] = (path[: lines.shape[0]][:, best] / np.float32(255)).astype(np.float32)
    return history
