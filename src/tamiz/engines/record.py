"""Numbers for compiled code, errors, warnings and the record of a fit: what the compiled engines share."""

from __future__ import annotations

import time
import warnings
from typing import NamedTuple, NoReturn

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tamiz.core.history import History, history_to_dict
from tamiz.core.rule import Rule, RuleNumbers, Slot
from tamiz.engines.memory import LoopSlot
from tamiz.engines.schedule import Schedule
from tamiz.errors import DivergenceError
from tamiz.selection import Selection


class TrainingNumbers(NamedTuple):
    """Settings of the weights, as numbers only, so that compiled code can take them."""

    learning_rate: float
    l2: float
    refinement_l2: float
    beta1: float
    beta2: float
    epsilon: float
    batch_size: int
    warmup_steps: int
    step_limit: int
    refinement_from: int
    """Steps before which the refinement does not begin."""
    refinement_steps: int
    average_from: int
    """Steps of refinement after which weights are averaged."""
    fit_intercept: bool


def training_numbers(rule: Rule, schedule: Schedule, fit_intercept: bool = True) -> TrainingNumbers:
    """Return the settings of the weights for compiled code.

    Examples
    --------
    >>> from tamiz.engines import linear_schedule
    >>> training_numbers(Rule(10, 2), linear_schedule(200, 2, "regression")).batch_size
    4
    """
    return TrainingNumbers(
        learning_rate=float(schedule.learning_rate),
        l2=float(schedule.l2),
        refinement_l2=float(schedule.refinement_l2),
        beta1=float(schedule.beta1),
        beta2=float(schedule.beta2),
        epsilon=float(schedule.epsilon),
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


def count_parts(schedule: Schedule, rule: Rule, n_samples: int, *, overfits: bool) -> int:
    """Return how many sets of weights a run trains: 1 if gamma is trained on the same rows as the weights.

    Parameters
    ----------
    schedule : Schedule
        With ``gamma_rows``.
    rule : Rule
        If it has nothing to eliminate, one set is enough.
    n_samples : int
        Rows to train on.
    overfits : bool
        Whether features of the model have several weights, so that noise can gain by their number; what "auto" follows.

    Examples
    --------
    >>> from tamiz.engines import linear_schedule
    >>> count_parts(linear_schedule(200, 2, "regression"), Rule(10, 2), 200, overfits=True)
    4
    """
    held_out = overfits if schedule.gamma_rows == "auto" else schedule.gamma_rows == "held-out"
    decided = rule.n_features_to_select == rule.n_features
    return N_PARTS if held_out and not decided and n_samples >= ROWS_FOR_PARTS else 1


def raise_diverged() -> NoReturn:
    """Raise the error of a training loss that is not finite.

    Examples
    --------
    >>> raise_diverged()
    Traceback (most recent call last):
    tamiz.errors.DivergenceError: The training loss became infinite or NaN: the features are too large. Normalise them ...
    """
    raise DivergenceError(
        "The training loss became infinite or NaN: the features are too large. "
        "Normalise them (normalize='erf' or 'standard'), or lower learning_rate or l2."
    )


def numbers_of_working_set(
    rule: Rule, feature: np.ndarray, loop_counters: np.ndarray, counters: np.ndarray
) -> RuleNumbers:
    """Return the numbers of the rule for the features that are left; in the closing each of them counts once.

    Parameters
    ----------
    rule : Rule
        The settings.
    feature : ndarray of int, shape (n_features,)
        Original numbers of the features, those of the working set first.
    loop_counters : ndarray
        By :class:`~tamiz.engines.memory.LoopSlot`.
    counters : ndarray
        By :class:`~tamiz.core.rule.Slot`.
    """
    numbers = rule.numbers
    if rule.costs is None:
        return numbers
    n = int(loop_counters[LoopSlot.FEATURES])
    costs = rule.costs[feature[:n]] if counters[Slot.OPEN] else np.ones(n)
    return numbers._replace(costs=costs, n_features_to_select=int(counters[Slot.KEPT]))


def warn_near_chance(removed: float, rows: str, advice: str) -> None:
    """Warn that a trained model tells hardly more than a constant does.

    Parameters
    ----------
    removed : float
        Share of the loss of the best constant scores that the model removes.
    rows : str
        Which rows this was measured on.
    advice : str
        What to do, as a sentence.
    """
    warnings.warn(
        f"The network removes {max(0.0, removed):.0%} of the loss of a constant on {rows}, which is near chance: it may have "
        f"lost the columns that matter. {advice}",
        ConvergenceWarning,
        stacklevel=4,
    )


def final_ranking(feature: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the ranks by original number.

    Parameters
    ----------
    feature : ndarray of int, shape (n_features,)
        Original numbers: the kept features first, then the eliminated in the order of their ranks.
    rank : ndarray of int, shape (n_features_to_select,)
        Ranks of the kept features.

    Examples
    --------
    >>> final_ranking(np.array([3, 1, 0, 2]), np.array([2, 1])).tolist()
    [3, 1, 4, 2]
    """
    ranking = np.empty(feature.size, dtype=np.int64)
    ranking[feature] = np.arange(1, feature.size + 1, dtype=np.int32)
    ranking[feature[: rank.size]] = rank
    return ranking


def record_selection(
    rule: Rule,
    ranking: np.ndarray,
    counters: np.ndarray,
    closed_at: int,
    history: History,
    *,
    seed: int,
    started: float,
    engine: str,
) -> Selection:
    """Return the record of a run; warn if the step limit had to decide.

    Parameters
    ----------
    rule : Rule
        The settings.
    ranking : ndarray of int, shape (n_features,)
        Ranks; 1 is the best.
    counters : ndarray
        By :class:`~tamiz.core.rule.Slot`.
    closed_at : int
        Step at which the mask was closed.
    history : History
        Lines of the run.
    seed : int
        Seed of the run.
    started : float
        ``time.perf_counter()`` at its start.
    engine : str
        Name of the engine.
    """
    m = int(counters[Slot.KEPT])
    if counters[Slot.FORCED]:
        warnings.warn(
            f"The selection did not settle within {rule.max_steps} steps; the {m} largest were kept. Raise max_steps"
            + ("." if rule.variant == "soft" else ", or use variant='soft'."),
            ConvergenceWarning,
            stacklevel=3,
        )
    return Selection(
        support=ranking <= m,
        ranking=ranking,
        variant=rule.variant,
        converged=not counters[Slot.FORCED],
        n_steps=int(counters[Slot.STEP]),
        closed_at=int(closed_at),
        seed=int(seed),
        seconds=time.perf_counter() - started,
        history=history_to_dict(history, ranking, m),
        engine=engine,
    )
