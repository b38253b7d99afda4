"""Null by permutation: what the same folds give when the features know nothing of the target.

Rows of the features are shuffled against the targets, and everything is selected and fitted anew in the same folds. So the
folds keep their classes, and the score and the stability of the selection have something to be compared with: folds share
training rows, and what they keep of pure noise is more alike than chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz.evaluation.metrics import Parts
from tamiz.evaluation.pools import run_parallel
from tamiz.evaluation.results import nogueira_stability
from tamiz.rows.rows import Rows

if TYPE_CHECKING:
    from tamiz.evaluation.cross_validation import FoldTask

#: So many permutations that do as well end the test: there is no sign of a signal.
ENOUGH = 10
#: Permutations that are fitted at a time.
_BATCH = 10
#: A permutation that leaves a fold without one of the classes is drawn again, so often.
_MOST_DRAWS = 50


@dataclass(frozen=True, eq=False)
class Null:
    """Scores of shuffled targets over the same folds.

    Parameters
    ----------
    scores : ndarray of float, shape (n_permutations,)
        Mean score of the selection, for each permutation.
    stabilities : ndarray of float, shape (n_permutations,)
        Nogueira's stability of what the folds kept; NaN where it is not defined.
    p_value : float
        Sequential p value, see :func:`sequential_p_value`.

    Examples
    --------
    >>> null = Null(np.array([0.4, 0.5, 0.6]), np.array([0.2, 0.3, 0.4]), 0.25)
    >>> null.n_permutations, round(null.stability, 2), null.p_text
    (3, 0.3, 'p <= 0.250')
    """

    scores: np.ndarray
    stabilities: np.ndarray
    p_value: float

    @property
    def n_permutations(self) -> int:
        """Number of permutations."""
        return len(self.scores)

    @property
    def is_at_floor(self) -> bool:
        """Whether no permutation did as well, so that the p value is only known to be this small."""
        return self.p_value * (self.n_permutations + 1) <= 1 + 1e-9

    @property
    def p_text(self) -> str:
        """The p value as text: at its floor, "p <= 0.010"."""
        return f"p {'<=' if self.is_at_floor else '='} {self.p_value:.3f}"

    @property
    def score(self) -> float:
        """Mean score with shuffled targets."""
        return finite_mean(self.scores)

    @property
    def stability(self) -> float:
        """Mean stability with shuffled targets."""
        return finite_mean(self.stabilities)

    @property
    def highest_stability(self) -> float:
        """95th percentile of the stability with shuffled targets."""
        known = self.stabilities[np.isfinite(self.stabilities)]
        return float(np.quantile(known, 0.95)) if known.size else math.nan

    def as_record(self) -> dict[str, Any]:
        """Collect the figures for JSON and pages."""
        names = ("n_permutations", "p_value", "p_text", "score", "stability", "highest_stability")
        return {name: getattr(self, name) for name in names}


def finite_mean(values: np.ndarray) -> float:
    """Compute the mean of the finite values; NaN if there are none.

    Examples
    --------
    >>> finite_mean(np.array([1.0, np.nan, 2.0]))
    1.5
    """
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


def sequential_p_value(scores: np.ndarray, observed: float, enough: int = ENOUGH) -> tuple[float, int]:
    """Compute the sequential Monte Carlo p value of Besag and Clifford (1991), and how many scores it needed.

    Scores are looked at in their order until ``enough`` of them are at least as good as the observed one; p is then
    ``enough`` by the number looked at. Otherwise it is (1 + number as good) / (1 + number of scores). It never rises with the
    observed score. Ties count half.

    Parameters
    ----------
    scores : ndarray
        Scores of permutations in the order in which they were drawn, larger is better.
    observed : float
        Score of the targets themselves.
    enough : int, default=10
        Number of scores as good that end the test.

    Examples
    --------
    >>> sequential_p_value(np.array([0.1, 0.9, 0.2, 0.8]), 0.5, enough=2), sequential_p_value(np.zeros(19), 1.0)
    ((0.5, 4), (0.05, 19))
    """
    if not math.isfinite(observed):
        return math.nan, len(scores)
    as_good = np.cumsum((scores > observed + 1e-12) + (np.abs(scores - observed) <= 1e-12) / 2)
    ended = np.flatnonzero(as_good >= enough)
    if ended.size:
        return float(enough / (ended[0] + 1)), int(ended[0]) + 1
    total = float(as_good[-1]) if len(scores) else 0.0
    return (1 + total) / (1 + len(scores)), len(scores)


Orders = tuple[np.ndarray | None, np.ndarray | None]


def permuted_orders(rows: Rows, generator: np.random.Generator) -> Orders:
    """Draw the orders of rows and of targets for one permutation.

    Without groups and time the features of whole rows change places, so that every fold keeps its targets. Groups take the
    targets of another group, in a shuffled order and as many as they need, so that targets that are the same within each
    group stay so. In time the targets, followed by themselves in reverse, are shifted in a circle: what follows on each other
    stays so, and no shift has a jump that the targets themselves do not have.

    Parameters
    ----------
    rows : Rows
        The rows; those of weight 0 stay where they are.
    generator : numpy Generator
        Source of chance.

    Returns
    -------
    features, targets : ndarray of int or None
        Row that each row takes its features, and its target, from; None: its own.

    Examples
    --------
    >>> features, targets = permuted_orders(Rows(np.zeros((3, 1)), np.arange(3)), np.random.default_rng(0))
    >>> sorted(features.tolist()), targets
    ([0, 1, 2], None)
    """
    used, order = rows.used, np.arange(rows.n_rows)
    if rows.time is not None:
        by_time = used[np.argsort(rows.time[used], kind="stable")]
        there_and_back = np.concatenate([by_time, by_time[::-1]])
        order[by_time] = np.roll(there_and_back, int(generator.integers(1, 2 * used.size)))[: used.size]
        return None, order
    if rows.groups is None:
        order[used] = generator.permutation(used)
        return order, None
    codes = np.unique(rows.groups[used], return_inverse=True)[1]
    members = [used[codes == code] for code in range(codes.max() + 1)]
    for group, source in zip(members, generator.permutation(len(members)), strict=True):
        order[group] = np.resize(generator.permutation(members[source]), group.size)
    return None, order


def _draw(task: FoldTask, number: int) -> Orders:
    """Draw the orders of one permutation, again if a fold would train without one of the classes."""
    rows = task.subject.rows
    generator = np.random.default_rng([task.seed, number, 20])
    if task.classes is None:
        return permuted_orders(rows, generator)
    parts = [train for train, _ in task.folds]
    for _ in range(_MOST_DRAWS):
        features, targets = permuted_orders(rows, generator)
        drawn = rows.y if targets is None else rows.y[targets]
        if all(np.unique(drawn[train]).size >= np.unique(rows.y[train]).size for train in parts):
            return features, targets
    message = "The targets cannot be shuffled without leaving a fold without one of the classes. "
    raise ValueError(message + "Use fewer folds, or no permutations.")


def _run_permuted_fold(
    task: FoldTask, selector: Any, number: int, features: Any, targets: Any
) -> tuple[Parts, np.ndarray]:
    train, test = task.subject.rows.reordered(features, targets).fold(*task.folds[number])
    fitted = task.subject.fit(train, task.seed + number, selector)
    return task.measure(fitted.model, test.X, train, test), fitted.support


def permutation_null(
    task: FoldTask,
    selectors: Sequence[Any],
    observed: float,
    n_permutations: int,
    *,
    n_jobs: int = 1,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Null:
    """Select and score with shuffled targets over the same folds, until enough of them do as well.

    Parameters
    ----------
    task : FoldTask
        What the folds share.
    selectors : sequence of estimator
        Selector of each fold, with what was chosen from its training rows as fixed parameters.
    observed : float
        Score of the selection with the targets themselves.
    n_permutations : int
        Most permutations.
    n_jobs : int, default=1
        Fits that run in parallel.
    progress : callable, default=no-op
        Called with ("shuffled targets", permutations done, most permutations).

    Returns
    -------
    Null
    """
    n_folds, sign = len(task.folds), task.metric.sign
    found: list[tuple[float, float]] = []
    p_value, needed = math.nan, 0
    for start in range(0, n_permutations, _BATCH):
        drawn = [_draw(task, number) for number in range(start, min(start + _BATCH, n_permutations))]
        pieces = [(task, selectors[fold], fold, *orders) for orders in drawn for fold in range(n_folds)]

        def tell(n_fits: int, before: int = start) -> None:
            progress("shuffled targets", before + n_fits // n_folds, n_permutations)

        results = run_parallel(_run_permuted_fold, pieces, n_jobs, tell, in_threads=task.subject.in_threads)
        for first in range(0, len(results), n_folds):
            parts, supports = zip(*results[first : first + n_folds], strict=True)
            found.append((finite_mean(task.metric.combine(parts)), nogueira_stability(np.array(supports))))
        p_value, needed = sequential_p_value(sign * np.array([score for score, _ in found]), sign * observed)
        if needed < len(found) or p_value * needed >= ENOUGH:
            break
    scores, stabilities = np.array(found[:needed], dtype=np.float64).T
    return Null(scores, stabilities, p_value)
