"""What a run of the engine is told, and everything that it changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamiz.linear.gamma import N_COUNTERS

# Places in the counters beyond those of gamma.
WIDTH, POSITION, RECORDS, STRIDE, SINCE, CLOSED_AT, REFINED, WEIGHT_AGE = range(N_COUNTERS, N_COUNTERS + 8)
ALL_COUNTERS = N_COUNTERS + 8

HARD, SOFT, RANKING = range(3)
RUNNING, COMPACT, DONE, DIVERGED = range(4)
WARMUP_PHASE, SELECTION_PHASE, CLOSING_PHASE, REFINEMENT_PHASE = range(4)


class Plan(NamedTuple):
    """The settings of a run; numbers only, so that compiled code can take them."""

    loss: int
    variant: int
    n_features: int
    m: int
    mu: float
    rho: float
    beta: float
    warmup_steps: int
    ramp_steps: int
    max_steps: int
    mask_learning_rate: float
    mask_beta1: float
    mask_beta2: float
    mask_epsilon: float
    learning_rate: float
    l2: float
    batch_size: int
    refinement_steps: int
    refinement_l2: float
    fit_intercept: bool


class Memory(NamedTuple):
    """Everything that the loop changes, allocated once.

    Ten vectors of the length of the table for one output: wide tables are bound by memory, so what is needed at different
    times shares its place.
    """

    weights: np.ndarray
    """(outputs, columns): w."""
    folded: np.ndarray
    """(outputs, columns): v = gamma * w. Between the scores and the update of a step its first row holds the gradient of
    the loss by gamma instead."""
    gradient: np.ndarray
    """(outputs, columns): g."""
    weights_first: np.ndarray
    weights_second: np.ndarray
    gamma: np.ndarray
    gamma_first: np.ndarray
    gamma_second: np.ndarray
    rank: np.ndarray
    order: np.ndarray
    """Scratch for sorting: the first row of the gradient seen as integers, free once the weights have moved."""
    column: np.ndarray
    """The original number of each column of the working set; behind them those of the dropped ones, by rank."""
    intercept: np.ndarray
    """(3, outputs): value and moments."""
    rows: np.ndarray
    """The order of the samples in this epoch."""
    random: np.ndarray
    """State of the generator."""
    counters: np.ndarray
    history: np.ndarray
    """(records, columns of a history)."""
    path: np.ndarray
    """(records, features) gamma in 255 steps, or no columns where the table is too wide."""
    scores: np.ndarray
    slope: np.ndarray
    batch_targets: np.ndarray
    batch_weights: np.ndarray
    tally: np.ndarray
    """Sum of the losses since the last line of the history."""
