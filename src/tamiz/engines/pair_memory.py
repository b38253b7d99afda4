"""Hold everything that the loop of the second-order model changes, allocated once, and move what is alive to the front."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamiz.core.history import History, new_history
from tamiz.engines.memory import LoopSlot, new_counters


class PairMemory(NamedTuple):
    """Everything that the loop changes, allocated once; the working set is at the front of every array."""

    weights: np.ndarray
    """(n_outputs, n_coefficients): w."""
    folded: np.ndarray
    """(n_outputs, n_coefficients): v = gate * w."""
    gradient: np.ndarray
    """(n_outputs, n_coefficients): g."""
    weights_first: np.ndarray
    weights_second: np.ndarray
    gate: np.ndarray
    """(n_coefficients,)."""
    curve_starts: np.ndarray
    """(n_all_features + 1,) int64: first curve column of each feature, and the end; those that are always read come last."""
    function_starts: np.ndarray
    """(n_all_features + 1,) int64: first function of each feature, and the end."""
    gamma: np.ndarray
    """(n_all_features,): behind the features of the working set, ones for those that are always read."""
    gamma_first: np.ndarray
    gamma_second: np.ndarray
    gamma_gradient: np.ndarray
    """(n_all_features,)."""
    rank: np.ndarray
    order: np.ndarray
    """Scratch for sorting."""
    feature: np.ndarray
    """(n_features,): original number of each feature of the working set; behind them those of the dropped ones, by rank."""
    intercept: np.ndarray
    """(3, n_outputs): value and moments."""
    rows: np.ndarray
    """Order of the samples in this epoch."""
    random: np.ndarray
    """State of the generator."""
    counters: np.ndarray
    """By :class:`~tamiz.core.state.Slot`."""
    loop_counters: np.ndarray
    """By :class:`~tamiz.engines.memory.LoopSlot`."""
    history: History
    scores: np.ndarray
    score_gradient: np.ndarray
    batch_targets: np.ndarray
    batch_weights: np.ndarray


def count_coefficients(curve_starts: np.ndarray, function_starts: np.ndarray) -> int:
    """Return how many coefficients an output has: one for each curve column and one for each product.

    Examples
    --------
    >>> count_coefficients(np.array([0, 7, 14]), np.array([0, 2, 4]))  # two columns: seven each, and four products
    18
    """
    later = function_starts[-1] - function_starts[1:]
    return int(curve_starts[-1] + np.sum(np.diff(function_starts) * later))


def new_pair_memory(
    n_samples: int,
    n_outputs: int,
    m: int,
    batch_size: int,
    seed: int,
    curve_starts: np.ndarray,
    function_starts: np.ndarray,
    n_always: int = 0,
) -> PairMemory:
    """Return the memory of a run before its first step: all weights are 0, all gates open.

    Parameters
    ----------
    n_samples, n_outputs, m, batch_size, seed : int
        Sizes and seed of the run; ``m`` is M, or 0 with a budget.
    curve_starts, function_starts : ndarray of int, shape (n_all_features + 1,)
        First curve column and first function of each feature, and the ends.
    n_always : int, default=0
        How many features, the last ones, are always read.

    Examples
    --------
    >>> new_pair_memory(10, 1, 1, 4, 0, np.array([0, 7, 14]), np.array([0, 2, 4])).weights.shape
    (1, 18)
    """
    n_all, n = curve_starts.size - 1, count_coefficients(curve_starts, function_starts)
    n_features = n_all - n_always
    counters, loop_counters, rank = new_counters(n_features, m, n, n_samples)
    size = min(batch_size, n_samples)
    weights, folded, gradient, first, second = (np.zeros((n_outputs, n), np.float32) for _ in range(5))
    return PairMemory(
        weights=weights,
        folded=folded,
        gradient=gradient,
        weights_first=first,
        weights_second=second,
        gate=np.ones(n, dtype=np.float32),
        curve_starts=curve_starts.astype(np.int64),
        function_starts=function_starts.astype(np.int64),
        gamma=np.ones(n_all, dtype=np.float32),
        gamma_first=np.zeros(n_features, dtype=np.float32),
        gamma_second=np.zeros(n_features, dtype=np.float32),
        gamma_gradient=np.zeros(n_all, dtype=np.float32),
        rank=rank,
        order=np.zeros(n_features, dtype=np.int32),
        feature=np.arange(n_features, dtype=np.int32),
        intercept=np.zeros((3, n_outputs), dtype=np.float32),
        rows=np.arange(n_samples, dtype=np.int64),
        random=np.array([seed], dtype=np.uint64),
        counters=counters,
        loop_counters=loop_counters,
        history=new_history(n_features),
        scores=np.zeros((size, n_outputs), dtype=np.float32),
        score_gradient=np.zeros((size, n_outputs), dtype=np.float32),
        batch_targets=np.zeros((size, n_outputs), dtype=np.float32),
        batch_weights=np.zeros(size, dtype=np.float32),
    )


def drop_features(memory: PairMemory, m: int) -> np.ndarray:
    """Move what belongs to living features to the front of every array; the eliminated go behind, by rank.

    Returns
    -------
    ndarray of int
        Columns of the table (curve columns, then functions) that stay.
    """
    n, k = int(memory.loop_counters[LoopSlot.FEATURES]), int(memory.loop_counters[LoopSlot.WIDTH])
    n_always = memory.gamma.size - memory.feature.size
    alive = memory.rank[:n] <= m
    n_kept = int(alive.sum())
    stays = np.concatenate([alive, np.ones(n_always, dtype=bool)])
    n_all, n_staying = n + n_always, n_kept + n_always
    curve_sizes, function_sizes = (
        np.diff(memory.curve_starts[: n_all + 1]),
        np.diff(memory.function_starts[: n_all + 1]),
    )
    curves, functions = np.repeat(stays, curve_sizes), np.repeat(stays, function_sizes)
    later = memory.function_starts[1 : n_all + 1].repeat(function_sizes)
    products = [own & functions[first:] for own, first in zip(functions, later)]
    coefficients = np.concatenate([curves, *products])
    assert coefficients.size == k
    # The eliminated of a working set of n features hold the ranks from n down to one more than are left.
    eliminated, place = memory.feature[:n][~alive].copy(), memory.rank[:n][~alive] - 1
    for vector in (memory.feature, memory.rank, memory.gamma_first, memory.gamma_second):
        vector[:n_kept] = vector[:n][alive]
    memory.gamma[:n_staying] = memory.gamma[:n_all][stays]
    memory.feature[place] = eliminated
    memory.curve_starts[1 : n_staying + 1] = np.cumsum(curve_sizes[stays])
    memory.function_starts[1 : n_staying + 1] = np.cumsum(function_sizes[stays])
    width = int(coefficients.sum())
    memory.gate[:width] = memory.gate[:k][coefficients]
    for array in (memory.weights, memory.folded, memory.weights_first, memory.weights_second):
        array[:, :width] = array[:, :k][:, coefficients]
    memory.loop_counters[LoopSlot.WIDTH] = width
    memory.loop_counters[LoopSlot.FEATURES] = n_kept
    return np.flatnonzero(np.concatenate([curves, functions]))
