"""gamma's update, compiled: the rule of ``tamiz.core`` in place, without temporaries.

The same pieces serve the linear engine, which fuses them with the update of its weights, and the mask for PyTorch on the
CPU. A test compares them with ``tamiz.core`` step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tamiz.linear.matrix import FAST

# Places in the array of counters that belongs to a gamma.
STEP, AGE, OPEN, CLOSED, FORCED = range(5)
N_COUNTERS = 5

NOT_FINITE = -1

TINY = np.float32(1e-30)
"""Moments below this are set to zero: left alone they would decay into denormal numbers, ten times slower to compute with."""


class Drive(NamedTuple):
    """The numbers of one step, the same for all features."""

    weight: float
    """alpha."""
    aim: float
    """The target of the count penalty."""
    mu: float
    beta: float
    learning_rate: float
    beta1: float
    beta2: float
    epsilon: float
    m: int
    """How many features are kept in the end."""
    forced: bool
    """Whether the step limit decides now."""


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def side_of(gamma, rank, m, aim):
    """Whether the sum of the living gamma is above (1), on (0) or below (-1) the target."""
    total = 0.0
    for j in range(gamma.shape[0]):
        total += gamma[j] if rank[j] <= m else 0.0
    return np.sign(total - aim)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def norms(gamma, rank, pull, side, mu, m):
    """Lengths of the two gradients over the living features, from float32 entries summed in float64."""
    lift = np.float32(1.0 + (1.0 + mu) * side)
    of_loss = 0.0
    of_penalty = 0.0
    for j in range(gamma.shape[0]):
        push = lift - np.float32(2.0) * gamma[j]
        if rank[j] <= m:
            of_loss += np.float64(pull[j]) * np.float64(pull[j])
            of_penalty += push * push
    return np.sqrt(of_loss), np.sqrt(of_penalty)


@njit(cache=True, nogil=True)
def shares(length_of_loss, length_of_penalty, weight, beta):
    """By what the two gradients are multiplied before they are added; a zero gradient gives zero, not NaN."""
    of_loss = beta * (1.0 - weight) / length_of_loss if length_of_loss > 0.0 else 0.0
    of_penalty = beta * weight / length_of_penalty if length_of_penalty > 0.0 else 0.0
    # A gradient of denormal numbers would ask for a factor that float32 does not have.
    return np.float32(min(of_loss, 3e38)), np.float32(min(of_penalty, 3e38))


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def adam(first, second, slope, alive, constants):
    """Adam's two moments after one more gradient, and the step to take; what is not alive has none."""
    b1, b2, rate, correction, epsilon = constants
    one, zero = np.float32(1.0), np.float32(0.0)
    a = b1 * first + (one - b1) * slope
    b = b2 * second + (one - b2) * slope * slope
    a = a if alive and abs(a) > TINY else zero
    b = b if alive and b > TINY else zero
    return a, b, rate * a / (np.sqrt(b * correction) + epsilon)


@njit(cache=True, nogil=True)
def adam_constants(learning_rate, beta1, beta2, epsilon, age):
    """The numbers of Adam's step ``age``, in float32 so that loops over float32 stay in it."""
    return (
        np.float32(beta1),
        np.float32(beta2),
        np.float32(learning_rate / (1.0 - beta1**age)),
        np.float32(1.0 / (1.0 - beta2**age)),
        np.float32(epsilon),
    )


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def mixture(gamma, rank, pull, drive):
    """How to mix: the factors of the loss gradient and of the penalty gradient, ``lift`` with
    ``penalty gradient = lift - 2 gamma``, and whether the loss gradient is finite."""
    side = side_of(gamma, rank, drive.m, drive.aim)
    length, length_of_penalty = norms(gamma, rank, pull, side, drive.mu, drive.m)
    of_loss, of_penalty = shares(length, length_of_penalty, drive.weight, drive.beta)
    return of_loss, of_penalty, np.float32(1.0 + (1.0 + drive.mu) * side), np.isfinite(length)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def move(gamma, first, second, rank, pull, counters, drive):
    """One step of gamma for a given gradient ``pull``; everything in place.

    Values not above zero are left as they are (they decide who dies), values above one are clipped.
    Returns how many open features stand at or below zero, or NOT_FINITE with nothing changed.
    """
    of_loss, of_penalty, lift, finite = mixture(gamma, rank, pull, drive)
    if not finite:
        return NOT_FINITE
    counters[AGE] += 1
    constants = adam_constants(drive.learning_rate, drive.beta1, drive.beta2, drive.epsilon, counters[AGE])
    one, two, zero = np.float32(1.0), np.float32(2.0), np.float32(0.0)
    m = np.int32(drive.m)
    n_low = 0
    for j in range(gamma.shape[0]):
        alive = rank[j] <= m
        mixed = of_loss * pull[j] + of_penalty * (lift - two * gamma[j])
        first[j], second[j], step = adam(first[j], second[j], mixed, alive, constants)
        value = gamma[j] - step
        gamma[j] = min(value, one) if alive else zero
        n_low += 1 if alive and value <= zero else 0
    return n_low


@njit(cache=True, nogil=True)
def _worse(a, b, key):
    return key[a] < key[b] or (key[a] == key[b] and a > b)


@njit(cache=True, nogil=True)
def sort_worst_first(order, n, key):
    """Sort the first ``n`` indices in ``order`` by ``key`` upwards, of equal keys the later index first; heap sort in place."""
    for start in range(n // 2 - 1, -1, -1):
        _sift(order, start, n, key)
    for end in range(n - 1, 0, -1):
        order[0], order[end] = order[end], order[0]
        _sift(order, 0, end, key)


@njit(cache=True, nogil=True)
def _sift(order, root, n, key):
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        if child + 1 < n and _worse(order[child], order[child + 1], key):
            child += 1
        if not _worse(order[root], order[child], key):
            return
        order[root], order[child] = order[child], order[root]
        root = child


@njit(cache=True, nogil=True)
def _headings(gamma, first, second, rank, key, counters, drive):
    """``tamiz.core.heading`` for the open features."""
    rate = np.float32(drive.learning_rate / (1.0 - drive.beta1 ** counters[AGE]))
    correction = np.float32(1.0 / (1.0 - drive.beta2 ** counters[AGE]))
    for j in range(gamma.shape[0]):
        if rank[j] == 0:
            held = max(gamma[j], np.float32(0.0))
            key[j] = held - rate * first[j] / (np.sqrt(second[j] * correction) + np.float32(drive.epsilon))


@njit(cache=True, nogil=True)
def _is_closed(gamma, rank, m):
    n_one = 0
    for j in range(gamma.shape[0]):
        n_one += 1 if rank[j] <= m and gamma[j] == 1.0 else 0
    return 1 if n_one == m else 0


@njit(cache=True, nogil=True)
def settle(gamma, first, second, rank, key, order, counters, drive, n_low):
    """Let die who may, begin the closing when exactly M are left, and say when gamma is closed.

    ``key`` and ``order`` are scratch of the length of gamma; ``key`` may be the gradient, which is not needed any more.
    Returns the number of features that died.
    """
    n_dead = 0
    n_open, m = counters[OPEN], drive.m
    if n_open == 0:
        counters[CLOSED] = _is_closed(gamma, rank, m)
        return 0
    if drive.forced:
        counters[FORCED] = 1 if n_open - m > n_low else counters[FORCED]
        _headings(gamma, first, second, rank, key, counters, drive)
    if n_low > 0 or drive.forced:
        n = 0
        for j in range(gamma.shape[0]):
            if rank[j] == 0 and (drive.forced or gamma[j] <= 0.0):
                order[n] = j
                n += 1
        sort_worst_first(order, n, key if drive.forced else gamma)
        n_dead = min(n, n_open - m)
        for i in range(n_dead):
            j = order[i]
            rank[j] = n_open - i
            gamma[j] = first[j] = second[j] = 0.0
        for i in range(n_dead, n):
            gamma[order[i]] = max(gamma[order[i]], np.float32(0.0))
        counters[OPEN] = n_open - n_dead
    if counters[OPEN] == m:
        _headings(gamma, first, second, rank, key, counters, drive)
        n = 0
        for j in range(gamma.shape[0]):
            if rank[j] == 0:
                order[n] = j
                n += 1
        sort_worst_first(order, n, key)
        for i in range(n):
            j = order[i]
            rank[j] = m - i
            first[j] = second[j] = 0.0
        counters[OPEN] = 0
        counters[AGE] = 0
        counters[CLOSED] = _is_closed(gamma, rank, m)
    return n_dead


@njit(cache=True, nogil=True)
def advance_in_place(gamma, first, second, rank, pull, order, counters, drive):
    """The whole step of ``tamiz.core.advance`` after the warm-up, for a mask outside the linear engine.

    Returns how many features died, or NOT_FINITE with nothing changed.
    """
    n_low = move(gamma, first, second, rank, pull, counters, drive)
    if n_low == NOT_FINITE:
        return NOT_FINITE
    return settle(gamma, first, second, rank, pull, order, counters, drive, n_low)
