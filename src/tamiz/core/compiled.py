"""Advance gamma by one step in place: the compiled twin of ``tamiz.core.step`` for float32 arrays on the CPU.

The linear engine fuses :func:`move_feature` with the update of its weights; the other engines and the mask for PyTorch call
:func:`advance_in_place`. A test compares both with ``tamiz.core.step.advance`` step by step. Nothing here allocates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from tamiz._utils.compiling import njit
from tamiz.core.rule import Slot
from tamiz.core.step import SMALLEST_NORM

#: Sums may be reordered (SIMD), but NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}

#: Options of compiled functions that work in place: no lock of Python, no counting of references (``_nrt``), which makes the
#: compiler reject whatever allocates and halves the time of a step on a small table. A division by zero raises nothing: it
#: gives infinity or NaN, which the loops look for.
IN_PLACE: dict = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True, "error_model": "numpy"}
#: The same for functions that compiled code alone calls: nothing is made for a call from Python, nothing is stored beside
#: the caller, and each caller has a copy of its own, so that it rounds the same whatever else the process has compiled.
INLINED: dict[str, Any] = {**IN_PLACE, "forceinline": True}
#: The same for loops over float32 numbers.
FAST_INLINED: dict[str, Any] = {**INLINED, "fastmath": FAST}

NOT_FINITE = -1


class MaskArrays(NamedTuple):
    """State of a mask that is advanced in place."""

    gamma: np.ndarray
    first: np.ndarray
    second: np.ndarray
    #: 0 while a feature is undecided, then its final rank.
    rank: np.ndarray
    #: Gradient of the loss with respect to gamma; overwritten by the step.
    gradient: np.ndarray
    #: Scratch for sorting, int32.
    order: np.ndarray
    #: By :class:`~tamiz.core.rule.Slot`.
    counters: np.ndarray


#: Moments below this are set to zero: they would decay into denormal numbers, ten times slower to compute with.
TINY = np.float32(1e-30)


@register_jitable(**FAST_INLINED)
def adam(first, second, gradient, alive, constants):
    """Compute the two moments of Adam after one more gradient, and the step to take; all zero for what is not alive."""
    beta1, beta2, rate, correction, epsilon = constants
    one, zero = np.float32(1.0), np.float32(0.0)
    a = beta1 * first + (one - beta1) * gradient
    b = beta2 * second + (one - beta2) * gradient * gradient
    a = a if alive and abs(a) > TINY else zero
    b = b if alive and b > TINY else zero
    return a, b, rate * a / (np.sqrt(b * correction) + epsilon)


@register_jitable(**INLINED)
def adam_constants(learning_rate, numbers, age):
    """Numbers of step ``age`` of Adam, in float32 so that loops over float32 stay in it."""
    return (
        np.float32(numbers.beta1),
        np.float32(numbers.beta2),
        np.float32(learning_rate / (1.0 - numbers.beta1**age)),
        np.float32(1.0 / (1.0 - numbers.beta2**age)),
        np.float32(numbers.epsilon),
    )


@register_jitable(**INLINED)
def cost_of(costs, j):
    """Cost of a feature; the branch is decided when it is compiled, by the type of ``costs``."""
    if costs is None:
        return np.float32(1.0)
    return np.float32(costs[j])


@register_jitable(**FAST_INLINED)
def mixing_coefficients(mask, alpha, target, rule):
    """Compute the factors of the two gradients in eq. 5, and whether the loss gradient is finite.

    Returns
    -------
    loss_factor, penalty_factor : float32
        ``(1 - alpha) / |loss gradient|`` and ``alpha / |penalty gradient|`` over the living features; 0 for a zero gradient.
    shift : float32
        ``penalty gradient = shift - 2 gamma`` (Lemmas 1 and 2), times the cost of the feature where there are costs.
    finite : bool
    """
    gamma, rank, loss_gradient = mask.gamma, mask.rank, mask.gradient
    m, costs = rule.n_features_to_select, rule.costs
    total = 0.0
    for j in range(gamma.shape[0]):
        total += cost_of(costs, j) * gamma[j] if rank[j] <= m else 0.0
    shift = np.float32(1.0 + (1.0 + rule.mu) * np.sign(total - target))
    # float32 entries, summed in float64.
    loss_square = 0.0
    penalty_square = 0.0
    for j in range(gamma.shape[0]):
        penalty_gradient = cost_of(costs, j) * (shift - np.float32(2.0) * gamma[j])
        if rank[j] <= m:
            loss_square += np.float64(loss_gradient[j]) * np.float64(loss_gradient[j])
            penalty_square += penalty_gradient * penalty_gradient
    smallest = SMALLEST_NORM * SMALLEST_NORM
    loss_factor = (1.0 - alpha) / np.sqrt(loss_square) if loss_square >= smallest else 0.0
    penalty_factor = alpha / np.sqrt(penalty_square) if penalty_square >= smallest else 0.0
    return np.float32(loss_factor), np.float32(penalty_factor), shift, np.isfinite(loss_square)


@register_jitable(**FAST_INLINED)
def move_feature(gamma, first, second, loss_gradient, alive, coefficients, constants):
    """Move one entry of gamma; return its value before clipping, and its moments."""
    loss_factor, penalty_factor, shift = coefficients
    mixed = loss_factor * loss_gradient + penalty_factor * (shift - np.float32(2.0) * gamma)
    first, second, step = adam(first, second, mixed, alive, constants)
    return gamma - step, first, second


@register_jitable(**FAST_INLINED)
def move_in_place(mask, alpha, target, rule):
    """Move gamma in place; count the living features at or below zero, or return NOT_FINITE with nothing changed.

    Values at or below zero are left as they are (they decide who is eliminated), values above one are clipped.
    """
    loss_factor, penalty_factor, shift, finite = mixing_coefficients(mask, alpha, target, rule)
    if not finite:
        return NOT_FINITE
    gamma, first, second, rank, loss_gradient, _, counters = mask
    counters[Slot.AGE] += 1
    constants = adam_constants(rule.mask_learning_rate, rule, counters[Slot.AGE])
    one, zero = np.float32(1.0), np.float32(0.0)
    m, costs = np.int32(rule.n_features_to_select), rule.costs
    n_low = 0
    for j in range(gamma.shape[0]):
        alive = rank[j] <= m
        coefficients = (loss_factor, penalty_factor * cost_of(costs, j), shift)
        value, first[j], second[j] = move_feature(
            gamma[j], first[j], second[j], loss_gradient[j], alive, coefficients, constants
        )
        gamma[j] = min(value, one) if alive else zero
        n_low += 1 if alive and value <= zero else 0
    return n_low


@register_jitable(**INLINED)
def _sift_down(order, root, n, key):
    """Restore the heap below ``root``; the best stands on top, of equal keys the earlier index is better."""
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        a, b = order[child], order[min(child + 1, n - 1)]
        if key[a] < key[b] or (key[a] == key[b] and a > b):
            child += 1
        a, b = order[root], order[child]
        if not (key[a] < key[b] or (key[a] == key[b] and a > b)):
            return
        order[root], order[child] = b, a
        root = child


@njit(**IN_PLACE)
def sort_worst_first(order, n, key):
    """Sort the first ``n`` indices in ``order`` by ``key`` upwards, of equal keys the later index first.

    Heap sort: it works in place, and the training loop allocates nothing.
    """
    root, end = n // 2, n
    while end > 1:
        if root > 0:  # build the heap
            root -= 1
        else:  # take its top away
            end -= 1
            order[0], order[end] = order[end], order[0]
        _sift_down(order, root, end, key)


@register_jitable(**INLINED)
def _undecided(mask, only_low):
    """Write the undecided features (only those at or below zero) to the front of ``order`` and count them."""
    n = 0
    for j in range(mask.gamma.shape[0]):
        if mask.rank[j] == 0 and (not only_low or mask.gamma[j] <= 0.0):
            mask.order[n] = j
            n += 1
    return n


@register_jitable(**INLINED)
def _extrapolate(mask, rule):
    """Write ``tamiz.core.step.extrapolated_gamma`` of the undecided features in place of the gradient."""
    _, _, rate, correction, epsilon = adam_constants(rule.mask_learning_rate, rule, mask.counters[Slot.AGE])
    for j in range(mask.gamma.shape[0]):
        if mask.rank[j] == 0:
            held = max(mask.gamma[j], np.float32(0.0))
            mask.gradient[j] = held - rate * mask.first[j] / (np.sqrt(mask.second[j] * correction) + epsilon)


@register_jitable(**INLINED)
def _is_closed(gamma, rank, m):
    n_one = 0
    for j in range(gamma.shape[0]):
        n_one += 1 if rank[j] <= m and gamma[j] == 1.0 else 0
    return 1 if n_one == m else 0


@register_jitable(**INLINED)
def _sum_undecided(costs, rank):
    total = 0.0
    for j in range(rank.shape[0]):
        total += costs[j] if rank[j] == 0 else 0.0
    return total


@register_jitable(**INLINED)
def _n_to_eliminate(mask, n, rule, costs):
    """Count how many of the ``n`` features in ``order``, the worst first, may go: until M are left, or the rest fits."""
    if costs is None:
        return min(n, mask.counters[Slot.OPEN] - rule.n_features_to_select)
    total = _sum_undecided(costs, mask.rank)
    found = 0
    while found < n and total > rule.budget:
        total -= costs[mask.order[found]]
        found += 1
    return found


@register_jitable(**INLINED)
def _is_settled(mask, rule, costs, is_new):
    """Check whether exactly M features are undecided or, with costs, whether all undecided ones fit into the budget.

    ``is_new`` tells whether other features are undecided than at the last check: costs are not added up again in vain.
    """
    if costs is None:
        return mask.counters[Slot.OPEN] == rule.n_features_to_select
    return is_new and _sum_undecided(costs, mask.rank) <= rule.budget


@register_jitable(**INLINED)
def eliminate_in_place(mask, rule, forced, n_low):
    """Eliminate features at zero (never below M), begin the closing when exactly M are left, and test whether gamma is closed.

    With costs, "exactly M are left" means that those left fit into the budget; ``Slot.KEPT`` then tells how many.

    Parameters
    ----------
    mask : MaskArrays
        As :func:`move_in_place` left it.
    rule : RuleNumbers
    forced : bool
        Whether the step limit decides now.
    n_low : int
        Living features at or below zero.

    Returns
    -------
    int
        Number of features that were eliminated.
    """
    gamma, first, second, rank, key, order, counters = mask
    n_eliminated = 0
    n_open, m = counters[Slot.OPEN], rule.n_features_to_select
    if n_open == 0:
        counters[Slot.CLOSED] = _is_closed(gamma, rank, m)
        return 0
    if forced:
        _extrapolate(mask, rule)
    if n_low > 0 or forced:
        n = _undecided(mask, not forced)
        sort_worst_first(order, n, key if forced else gamma)
        n_eliminated = _n_to_eliminate(mask, n, rule, rule.costs)
        if forced and n_eliminated > n_low:
            counters[Slot.FORCED] = 1
        for i in range(n_eliminated):
            j = order[i]
            rank[j] = n_open - i
            gamma[j] = first[j] = second[j] = 0.0
        for i in range(n_eliminated, n):
            gamma[order[i]] = max(gamma[order[i]], np.float32(0.0))
        counters[Slot.OPEN] = n_open - n_eliminated
    if _is_settled(mask, rule, rule.costs, n_eliminated > 0 or counters[Slot.AGE] <= 1):
        m = counters[Slot.KEPT] = counters[Slot.OPEN]
        _extrapolate(mask, rule)
        n = _undecided(mask, False)
        sort_worst_first(order, n, key)
        for i in range(n):
            j = order[i]
            rank[j] = m - i
            first[j] = second[j] = 0.0
        counters[Slot.OPEN] = 0
        counters[Slot.AGE] = 0
        counters[Slot.CLOSED] = _is_closed(gamma, rank, m)
    return n_eliminated


@njit(**IN_PLACE)
def advance_in_place(mask, alpha, target, forced, rule):
    """Take the step of ``tamiz.core.step.advance`` after the warm-up, in place.

    Parameters
    ----------
    mask : MaskArrays
        The state, with the gradient of the loss. ``Slot.STEP`` is the caller's to advance. Once the closing of a budget
        begins, ``rule`` must hold ``Slot.KEPT`` as its M, and costs of 1.
    alpha, target : float
        Of this step while features are undecided (:func:`~tamiz.core.rule.selection_schedule`); during the closing
        they are 1 and M.
    forced : bool
        Whether the step limit is reached.
    rule : RuleNumbers

    Returns
    -------
    int
        Number of features that were eliminated, or NOT_FINITE with nothing changed.
    """
    if mask.counters[Slot.OPEN] == 0:
        alpha, target = 1.0, float(rule.n_features_to_select)
    n_low = move_in_place(mask, alpha, target, rule)
    if n_low == NOT_FINITE:
        return NOT_FINITE
    return eliminate_in_place(mask, rule, forced, n_low)
