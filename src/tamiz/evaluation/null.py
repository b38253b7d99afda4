"""Null by permutation: what the same folds give when the features know nothing of the target.

Rows of the features are shuffled against the targets, and everything is selected and fitted anew in the same folds. So the
folds keep their classes, and the score and the stability of the selection have something to be compared with: folds share
training rows, and what they keep of pure noise is more alike than chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.evaluation.fold_work import FoldTask, FoldWork
from tamiz.evaluation.metrics import Parts
from tamiz.evaluation.pools import run_in_processes, run_in_threads
from tamiz.evaluation.stability import nogueira_stability

#: Permutations, if the user asks for no other number.
N_PERMUTATIONS = 20
#: So many permutations that do as well, or fewer, are near the edge; the number is then five times as large.
_NEAR_EDGE = 3
#: A score so many standard deviations above the permuted ones is far from the edge.
_FAR = 4.0
#: A permutation that leaves a fold without one of the classes is drawn again, so often.
_MOST_DRAWS = 50


@dataclass(frozen=True, eq=False)
class Null:
    """Hold what shuffled targets give over the same folds.

    Parameters
    ----------
    scores : ndarray of float, shape (n_permutations,)
        Mean score of the selection, for each permutation.
    stabilities : ndarray of float, shape (n_permutations,)
        Nogueira's stability of what the folds kept; NaN where it is not defined.
    always_kept : ndarray of int, shape (n_permutations,)
        Number of features that every fold kept.
    p_value : float
        Share of permutations that do better than the targets themselves, which count as one; ties count half.

    Examples
    --------
    >>> null = Null(np.array([0.4, 0.5, 0.6]), np.array([0.2, 0.3, 0.4]), np.array([1, 2, 3]), 0.25)
    >>> null.n_permutations, round(null.stability, 2), null.mean_always_kept
    (3, 0.3, 2.0)
    """

    scores: np.ndarray
    stabilities: np.ndarray
    always_kept: np.ndarray
    p_value: float

    @property
    def n_permutations(self) -> int:
        """Number of permutations."""
        return len(self.scores)

    @property
    def score(self) -> float:
        """Mean score with shuffled targets."""
        return float(np.nanmean(self.scores)) if np.isfinite(self.scores).any() else math.nan

    @property
    def stability(self) -> float:
        """Mean stability with shuffled targets."""
        return float(np.nanmean(self.stabilities)) if np.isfinite(self.stabilities).any() else math.nan

    @property
    def highest_stability(self) -> float:
        """95th percentile of the stability with shuffled targets."""
        known = self.stabilities[np.isfinite(self.stabilities)]
        return float(np.quantile(known, 0.95)) if known.size else math.nan

    @property
    def mean_always_kept(self) -> float:
        """Mean number of features that every fold kept, with shuffled targets."""
        return float(self.always_kept.mean())

    def as_record(self) -> dict[str, Any]:
        """Return the figures for JSON and pages."""
        return {
            "n_permutations": self.n_permutations,
            "p_value": self.p_value,
            "score": self.score,
            "stability": self.stability,
            "highest_stability": self.highest_stability,
            "always_kept": self.mean_always_kept,
        }


Orders = tuple[np.ndarray | None, np.ndarray | None]


def permuted_orders(
    y: np.ndarray,
    generator: np.random.Generator,
    groups: np.ndarray | None = None,
    time: np.ndarray | None = None,
) -> Orders:
    """Draw the orders of rows and of targets for one permutation.

    Without groups and time the features of whole rows change places, so that every fold keeps its targets. Groups take the
    targets of another group, in a shuffled order and as many as they need, so that targets that are the same within each
    group stay so. In time the targets are shifted in a circle, which keeps what follows on each other.

    Parameters
    ----------
    y : ndarray
        Target.
    generator : numpy Generator
        Source of chance.
    groups, time : ndarray or None, default=None
        Group and time of each row.

    Returns
    -------
    rows, targets : ndarray of int or None
        Rows of the features and of the targets; None: as they are.

    Examples
    --------
    >>> rows, targets = permuted_orders(np.arange(3), np.random.default_rng(0))
    >>> sorted(rows.tolist()), targets
    ([0, 1, 2], None)
    """
    n_rows = len(y)
    if time is not None:
        order = np.argsort(time, kind="stable")
        targets = np.empty(n_rows, dtype=np.int64)
        targets[order] = np.roll(order, int(generator.integers(1, n_rows)))
        return None, targets
    if groups is None:
        return generator.permutation(n_rows), None
    codes = np.unique(groups, return_inverse=True)[1]
    members = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    targets = np.empty(n_rows, dtype=np.int64)
    for group, source in zip(members, generator.permutation(len(members)), strict=True):
        targets[group] = np.resize(generator.permutation(members[source]), group.size)
    return None, targets


def _draw(task: FoldTask, number: int, groups: np.ndarray | None, time: np.ndarray | None) -> Orders:
    """Draw the orders of one permutation, again if a fold would train without one of the classes."""
    generator = np.random.default_rng([task.seed, number, 20])
    n_classes = [np.unique(task.y[train]).size for train, _ in task.folds] if task.task == "classification" else []
    for _ in range(_MOST_DRAWS):
        rows, targets = permuted_orders(task.y, generator, groups, time)
        if targets is None or all(
            np.unique(task.y[targets[train]]).size >= n for (train, _), n in zip(task.folds, n_classes, strict=False)
        ):
            return rows, targets
    raise ValueError(
        "The targets cannot be shuffled without leaving a fold without one of the classes. "
        "Use fewer folds, or no permutations."
    )


def _run_permuted_fold(task: FoldTask, number: int, rows: Any, targets: Any) -> tuple[Parts, np.ndarray]:
    parts, model, _ = FoldWork(task, number, rows, targets).select()
    return parts, np.asarray(model.selection_.support)


def permutation_null(
    task: FoldTask,
    observed: float,
    n_permutations: int = N_PERMUTATIONS,
    *,
    groups: np.ndarray | None = None,
    time: np.ndarray | None = None,
    n_jobs: int = 1,
    processes: bool = False,
    tick: Callable[[], None] = lambda: None,
) -> Null:
    """Select and score with shuffled targets over the same folds.

    Where at most three permutations do as well as the targets themselves, and these are not far above them all, more
    are drawn: five times ``n_permutations`` less one.

    Parameters
    ----------
    task : FoldTask
        What the folds share.
    observed : float
        Score of the selection with the targets themselves.
    n_permutations : int, default=20
        Number of permutations.
    groups, time : ndarray or None, default=None
        As in :func:`permuted_orders`.
    n_jobs : int, default=1
        Fits that run in parallel.
    processes : bool, default=False
        Whether they run in processes instead of threads.
    tick : callable, default=no-op
        Called after each of the first ``n_permutations`` times the number of folds fits.

    Returns
    -------
    Null
    """
    found: list[tuple[float, float, int]] = []

    def run(numbers: range, step: Callable[[], None]) -> None:
        pieces = [
            (fold, *orders)
            for orders in (_draw(task, number, groups, time) for number in numbers)
            for fold in range(len(task.folds))
        ]
        if processes:
            results = run_in_processes(_run_permuted_fold, task, pieces, n_jobs, lambda _: step())
        else:
            results = run_in_threads((_as_work(task, piece) for piece in pieces), n_jobs, step)
        n_folds = len(task.folds)
        found.extend(_summarise(task, results[i : i + n_folds]) for i in range(0, len(results), n_folds))

    run(range(n_permutations), tick)
    sign = task.metric.sign
    scores = sign * np.array([score for score, _, _ in found])
    if _count_as_good(scores, sign * observed) <= _NEAR_EDGE and not _is_far(scores, sign * observed):
        run(range(n_permutations, 5 * n_permutations - 1), lambda: None)
    table = np.array(found, dtype=np.float64)
    as_good = _count_as_good(sign * table[:, 0], sign * observed)
    p_value = (1 + as_good) / (1 + len(table)) if math.isfinite(observed) else math.nan
    return Null(table[:, 0], table[:, 1], table[:, 2].astype(np.int64), p_value)


def _as_work(task: FoldTask, piece: tuple[Any, ...]) -> Callable[[Callable[[], None]], Any]:
    def work(step: Callable[[], None]) -> Any:
        result = _run_permuted_fold(task, *piece)
        step()
        return result

    return work


def _count_as_good(scores: np.ndarray, observed: float) -> float:
    """Count the permutations that do better, and half of those that do as well: scores of few rows often tie."""
    return float(np.sum(scores > observed + 1e-12) + np.sum(np.abs(scores - observed) <= 1e-12) / 2)


def _is_far(scores: np.ndarray, observed: float) -> bool:
    known = scores[np.isfinite(scores)]
    return known.size > 1 and observed > known.mean() + _FAR * known.std(ddof=1)


def _summarise(task: FoldTask, results: list[tuple[Parts, np.ndarray]]) -> tuple[float, float, int]:
    values = task.metric.combine([parts for parts, _ in results])
    supports = np.array([support for _, support in results])
    score = float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
    return score, nogueira_stability(supports), int(supports.all(axis=0).sum())
