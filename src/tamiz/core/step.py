"""Advance gamma by one step of the paper's rule, as pure functions for NumPy arrays and torch tensors."""

from __future__ import annotations

import math
import numbers
import sys
from typing import Any, NamedTuple

import numpy as np

from tamiz.core.rule import Rule, selection_schedule

Array = Any
"""A NumPy array or a torch tensor."""


def namespace(x: Array) -> Any:
    """Return the module that ``x`` belongs to: ``torch`` for tensors, else ``numpy``.

    Examples
    --------
    >>> import numpy as np
    >>> namespace(np.zeros(2)).__name__
    'numpy'
    """
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(x, torch.Tensor) else np


def argsort(x: Array) -> Array:
    """Return the indices that sort ``x`` upwards; equal values keep their order."""
    xp = namespace(x)
    return xp.argsort(x, kind="stable") if xp is np else xp.argsort(x, stable=True)


def arange(n: int, like: Array) -> Array:
    """Return 0 .. n-1 as integers on the device of ``like``."""
    xp = namespace(like)
    return xp.arange(n) if xp is np else xp.arange(n, device=like.device)


def as_array(x: float | int | bool, like: Array) -> Array:
    """Return a number as a 0-d array on the device of ``like``; a float in the type of ``like``."""
    xp = namespace(like)
    dtype = like.dtype if isinstance(x, float) else None
    return np.asarray(x, dtype=dtype) if xp is np else xp.asarray(x, dtype=dtype, device=like.device)


def cast(x: Array, like: Array) -> Array:
    """Return ``x`` in the type of ``like``."""
    return x.astype(like.dtype, copy=False) if namespace(x) is np else x.to(like.dtype)


def positions(order: Array) -> Array:
    """Invert a permutation: return the position of each index in ``order``.

    Examples
    --------
    >>> import numpy as np
    >>> positions(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    place = namespace(order).empty_like(order)
    place[order] = arange(order.shape[0], order)
    return place


class _SameMemory:
    """Hand the memory of an array to NumPy as memory that may be written to; keep the array alive."""

    def __init__(self, array: np.ndarray) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self.array = array


def writeable_view(array: np.ndarray) -> np.ndarray:
    """Return a view of the same memory without the read-only flag, for compiled functions that never write to it.

    Numba compiles a function once more for read-only arrays, which is what joblib hands to its workers. Memory that is
    mapped read-only stays so: to write to the view would end the process.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(3)
    >>> x.flags.writeable = False
    >>> view = writeable_view(x)
    >>> view.flags.writeable, np.shares_memory(view, x), view.tolist()
    (True, True, [0, 1, 2])
    """
    return array if array.flags.writeable else np.asarray(_SameMemory(array))


def _weighed(values: Array, costs: Array | None) -> Array:
    return values if costs is None else costs * values


def binary_penalty(gamma: Array, costs: Array | None = None) -> Array:
    r"""Return :math:`L_{1-2}`, zero exactly where every entry is 0 or 1 (Lemma 3).

    Written as :math:`\sum \gamma_i (1 - \gamma_i)`, which does not lose digits to the difference of two large sums.

    Examples
    --------
    >>> import numpy as np
    >>> float(binary_penalty(np.array([0.0, 1.0, 0.5])))
    0.25
    """
    return _weighed(gamma * (1 - gamma), costs).sum()


def count_penalty(gamma: Array, target: Array | float, mu: float = 1.0, costs: Array | None = None) -> Array:
    r"""Return :math:`L_M`, zero exactly where :math:`\|\gamma\|_1 = M` (Lemma 4).

    Examples
    --------
    >>> import numpy as np
    >>> float(count_penalty(np.array([1.0, 1.0, 1.0]), target=1))
    4.0
    """
    return (1 + mu) * abs(_weighed(gamma, costs).sum() - target)


def penalty(gamma: Array, target: Array | float, mu: float = 1.0, costs: Array | None = None) -> Array:
    r"""Return :math:`L_{1-2} + L_M`, zero exactly for a binary gamma with M ones (Lemma 5).

    Examples
    --------
    >>> import numpy as np
    >>> float(penalty(np.array([1.0, 0.0, 0.0]), target=1)), float(penalty(np.ones(3), target=1))
    (0.0, 4.0)
    """
    return binary_penalty(gamma, costs) + count_penalty(gamma, target, mu, costs)


def penalty_gradient(gamma: Array, target: Array | float, mu: float = 1.0, costs: Array | None = None) -> Array:
    r"""Return the gradient of :math:`L_{1-2} + L_M`.

    :math:`2(1 - \gamma_i) + \mu` where the sum is above the target (Lemma 1), :math:`-2\gamma_i - \mu` below (Lemma 2).
    On the target :math:`L_M` has a kink; its subgradient 0 leaves :math:`1 - 2\gamma_i`, that of :math:`L_{1-2}`.

    Examples
    --------
    >>> import numpy as np
    >>> penalty_gradient(np.array([1.0, 0.5]), target=1).tolist()
    [1.0, 2.0]
    >>> penalty_gradient(np.array([1.0, 0.5]), target=2).tolist()
    [-3.0, -2.0]
    >>> penalty_gradient(np.array([1.0, 0.5]), target=1, costs=np.array([1.0, 3.0])).tolist()
    [1.0, 6.0]
    """
    side = namespace(gamma).sign(_weighed(gamma, costs).sum() - target)
    return _weighed(1 - 2 * gamma + (1 + mu) * side, costs)


#: A gradient shorter than this, the smallest normal number of float32, counts as zero: float32 does not hold the inverse of
#: its length. A power of two, so that it is the same number in float32 and float64.
SMALLEST_NORM = 2.0**-126


def unit(x: Array) -> Array:
    r"""Return :math:`z(x) = x / \|x\|`; a zero vector stays zero instead of turning into NaN.

    The entries are scaled by the largest one first, so that gradients of size 1e-30 or 1e30 neither vanish nor overflow
    in their squares. A vector shorter than :data:`SMALLEST_NORM` counts as zero.

    Examples
    --------
    >>> import numpy as np
    >>> unit(np.array([3.0, 4.0])).tolist(), unit(np.array([0.0, 1e-40])).tolist()
    ([0.6, 0.8], [0.0, 0.0])
    """
    xp = namespace(x)
    if x.shape[0] == 0:
        return x
    largest = abs(x).max()
    scaled = x / xp.where(largest > 0, largest, xp.ones_like(largest))
    norm = (scaled * scaled).sum() ** 0.5
    direction = scaled / xp.where(norm > 0, norm, xp.ones_like(norm))
    # NaN is not smaller than anything, and stays.
    return xp.where(largest * norm < SMALLEST_NORM, xp.zeros_like(x), direction)


def mixed_gradient(loss_gradient: Array, penalty_gradient: Array, alpha: Array | float) -> Array:
    """Return the gradient that gamma follows: both parts scaled to length one, then weighted by alpha.

    Examples
    --------
    >>> import numpy as np
    >>> mixed_gradient(np.array([0.0, 2.0]), np.array([5.0, 0.0]), alpha=0.25).tolist()
    [0.25, 0.75]
    """
    return (1 - alpha) * unit(loss_gradient) + alpha * unit(penalty_gradient)


#: Rank of a feature that is neither eliminated nor kept yet.
UNDECIDED = 0


def project(gamma: Array) -> Array:
    """Clip into [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> project(np.array([-0.5, 0.5, 1.5])).tolist()
    [0.0, 0.5, 1.0]
    """
    return namespace(gamma).clip(gamma, 0, 1)


def _from_worst(value: Array, among: Array) -> Array:
    """Number the features in ``among`` from the worst (0) on; of equal values the later index is worse."""
    xp = namespace(value)
    n = value.shape[0]
    outside = xp.full_like(value, float("inf"))
    reversed_key = xp.flip(xp.where(among, value, outside), (0,))
    return positions((n - 1) - argsort(reversed_key))


def eliminate(
    value: Array,
    rank: Array,
    n_features_to_select: int,
    forced: bool = False,
    costs: Array | None = None,
    limit: float = 0.0,
) -> Array:
    """Eliminate features whose value is not above zero, but never so many that fewer than M are left.

    Parameters
    ----------
    value : array of float, shape (n_features,)
        gamma after its step, before clipping.
    rank : array of int, shape (n_features,)
        ``UNDECIDED`` for what is alive, the rank for what was eliminated before.
    n_features_to_select : int
        M.
    forced : bool, default=False
        Whether the step limit is reached: all but the M largest are eliminated now.
    costs : array, shape (n_features,), or None, default=None
        What each feature costs. Then ``n_features_to_select`` does not count: features are eliminated until the others
        cost at most ``limit``.
    limit : float, default=0.0
        What the others may cost together.

    Returns
    -------
    array of int, shape (n_features,)
        Ranks after the step.

    Examples
    --------
    >>> import numpy as np
    >>> eliminate(np.array([-0.2, 0.7, -0.1, 0.0, 0.9]), np.zeros(5, int), 3).tolist()
    [5, 0, 4, 0, 0]
    >>> eliminate(np.array([0.2, 0.7, 0.2, 0.0, 0.9]), np.zeros(5, int), 3, forced=True).tolist()
    [0, 0, 4, 5, 0]
    >>> eliminate(np.array([-0.2, -0.3, -0.1]), np.zeros(3, int), 0, costs=np.array([1.0, 1.0, 2.0]), limit=2.5).tolist()
    [2, 3, 0]
    """
    xp = namespace(value)
    alive = rank == UNDECIDED
    n_alive = alive.sum()
    candidates = alive if forced else alive & (value <= 0)
    place = _from_worst(value, candidates)
    if costs is None:
        eliminated = candidates & (place < n_alive - n_features_to_select)
    else:
        by_place = xp.empty_like(costs)
        by_place[place] = costs
        gone_before = (xp.cumsum(by_place, 0) - by_place)[place]
        eliminated = candidates & (xp.where(alive, costs, xp.zeros_like(costs)).sum() - gone_before > limit)
    return xp.where(eliminated, n_alive - place, rank)


def rank_survivors(value: Array, rank: Array) -> Array:
    """Give the undecided features the ranks 1, 2, ... by value, ties by index.

    Examples
    --------
    >>> import numpy as np
    >>> rank_survivors(np.array([0.2, 0.7, 0.2]), np.array([0, 0, 3])).tolist()
    [2, 1, 3]
    """
    alive = rank == UNDECIDED
    return namespace(value).where(alive, alive.sum() - _from_worst(value, alive), rank)


def fill_budget(rank: np.ndarray, n_kept: int, costs: np.ndarray, limit: float) -> tuple[np.ndarray, int]:
    """Take what was eliminated but still fits beside the kept features, the last eliminated first.

    Parameters
    ----------
    rank : ndarray of int, shape (n_features,)
        Final ranks: the kept features hold 1 .. ``n_kept``.
    n_kept : int
        How many are kept.
    costs : ndarray, shape (n_features,)
        What each feature costs.
    limit : float
        What the kept ones may cost together.

    Returns
    -------
    rank : ndarray of int, shape (n_features,)
        The ranks after it: again the kept ones come first, each part in the order it had.
    n_kept : int
        How many are kept now.

    Examples
    --------
    >>> fill_budget(np.array([1, 2, 3, 4]), 1, np.array([3.0, 3.0, 2.0, 1.0]), limit=5.5)
    (array([1, 3, 2, 4]), 2)
    """
    order = np.argsort(rank, kind="stable")
    is_kept = np.arange(order.size) < n_kept
    left = limit - costs[order[:n_kept]].sum()
    for place in range(n_kept, order.size):
        if costs[order[place]] <= left:
            is_kept[place] = True
            left -= costs[order[place]]
    filled = np.empty_like(rank)
    filled[np.concatenate([order[is_kept], order[~is_kept]])] = np.arange(1, order.size + 1)
    return filled, int(is_kept.sum())


def initial_ranks(n_features: int, n_features_to_select: int, like: Array) -> Array:
    """Return the ranks at the start: all undecided or, where nothing is to be eliminated, already decided."""
    order = arange(n_features, like)
    return order + 1 if n_features == n_features_to_select else order * 0


class MaskState(NamedTuple):
    """State of a mask between two steps; arrays of one kind, on one device."""

    gamma: Array
    """The mask, in [0, 1]."""
    first: Array
    """First moment of the mixed gradient (Adam)."""
    second: Array
    """Second moment."""
    rank: Array
    """0 while a feature is undecided, then its final rank (1 is the best)."""
    age: Array
    """Steps that the moments have seen (0-d)."""
    kept: Array
    """Features that are kept in the end (0-d): M; with a budget 0 until the closing begins."""


def initial_state(rule: Rule, like: Array) -> MaskState:
    """Return the state at the start: gamma all ones, nothing decided; arrays of the kind, type and device of ``like``.

    Examples
    --------
    >>> import numpy as np
    >>> initial_state(Rule(3, 1), np.zeros(0)).gamma.tolist()
    [1.0, 1.0, 1.0]
    """
    rank = initial_ranks(rule.n_features, rule.n_features_to_select, like)
    gamma = cast(rank * 0 + as_array(1.0, like), like)
    return MaskState(gamma, 0 * gamma, 0 * gamma, rank, as_array(0, like), as_array(rule.n_features_to_select, like))


def extrapolated_gamma(state: MaskState, rule: Rule) -> Array:
    """Return gamma one step on if its gradient stayed as it is, not clipped.

    Many of the best features stand at 1 together; their values without the bound tell them apart.

    Examples
    --------
    >>> import numpy as np
    >>> rule = Rule(3, 1)
    >>> state = advance(initial_state(rule, np.zeros(0)), np.array([-1.0, 2.0, 0.0]), 1, rule)
    >>> extrapolated_gamma(state, rule).round(3).tolist()
    [1.01, 0.98, 0.98]
    """
    return state.gamma - _adam_step(state.first, state.second, state.age, rule)


def _unbiased(moment: Array, beta: float, age: Array) -> Array:
    """Apply the correction of Adam, ``moment / (1 - beta ** age)``, by ``expm1`` so that float32 does not lose digits."""
    if beta == 0:
        return moment
    return moment / -namespace(moment).expm1(cast(age, moment) * math.log(beta))


def _adam_step(first: Array, second: Array, age: Array, rule: Rule) -> Array:
    """Return the step of Adam for moments that have seen ``age`` gradients (0 for none)."""
    seen = namespace(first).where(age > 0, age, as_array(1, first))
    numbers = rule.numbers
    denominator = _unbiased(second, numbers.beta2, seen) ** 0.5 + numbers.epsilon
    return numbers.mask_learning_rate * _unbiased(first, numbers.beta1, seen) / denominator


def current_ranking(state: MaskState, rule: Rule) -> Array:
    """Return a full order at any moment, 1 the best: the undecided by extrapolated gamma, then the eliminated, last first.

    Examples
    --------
    >>> import numpy as np
    >>> current_ranking(initial_state(Rule(3, 1), np.zeros(0)), Rule(3, 1)).tolist()
    [1, 2, 3]
    """
    return rank_survivors(extrapolated_gamma(state, rule), state.rank)


def is_closed(state: MaskState, rule: Rule) -> Array:
    r"""Check that :math:`L_{1-2} + L_M = 0` with every feature decided: gamma is binary with exactly M ones (Theorem 2)."""
    kept = (state.rank > UNDECIDED) & (state.rank <= state.kept)
    return ((kept & (state.gamma == 1)).sum() == state.kept) & ((state.rank == UNDECIDED).sum() == 0)


def advance(state: MaskState, loss_gradient: Array, step: int, rule: Rule) -> MaskState:
    """Return the state after one more step.

    Parameters
    ----------
    state : MaskState
        The state before the step.
    loss_gradient : array, shape (n_features,)
        Gradient of the training loss with respect to gamma.
    step : int
        Number of this step, counted from 1 over warm-up and selection.
    rule : Rule
        The settings.

    Returns
    -------
    MaskState

    Examples
    --------
    >>> import numpy as np
    >>> rule = Rule(4, 2, ramp_steps=1000)
    >>> state, step = initial_state(rule, np.zeros(0)), 0
    >>> while not is_closed(state, rule):
    ...     step += 1
    ...     state = advance(state, np.array([-1.0, -0.1, -2.0, 1.0]), step, rule)
    >>> state.gamma.tolist(), state.rank.tolist()
    ([1.0, 0.0, 1.0, 0.0], [2, 3, 1, 4])
    """
    if step <= rule.warmup_steps:
        return state
    xp = namespace(state.gamma)
    gamma, m, numbers = state.gamma, state.kept, rule.numbers

    alive = state.rank <= m
    selecting = (state.rank == UNDECIDED).sum() > 0
    # While features are undecided there are more than M of them; after that the target is M for every variant.
    (alpha,), (target,) = selection_schedule(rule, step, 1)
    target = xp.where(selecting, as_array(float(target), gamma), cast(m, gamma))
    alpha = xp.where(selecting, as_array(float(alpha), gamma), as_array(1.0, gamma))
    costs = _costs(rule, gamma)
    # In the closing every feature counts once: all that are left have to come to 1.
    weights = None if costs is None else xp.where(selecting, cast(costs, gamma), xp.ones_like(gamma))

    zeros = xp.zeros_like(gamma)
    mixed = mixed_gradient(
        xp.where(alive & selecting, loss_gradient, zeros),
        xp.where(alive, penalty_gradient(gamma, target, numbers.mu, weights), zeros),
        alpha,
    )
    age = state.age + 1
    beta1, beta2 = numbers.beta1, numbers.beta2
    first = beta1 * state.first + (1 - beta1) * mixed
    second = beta2 * state.second + (1 - beta2) * mixed * mixed
    value = gamma - _adam_step(first, second, age, rule)

    forced = step >= rule.step_limit and rule.strength is None
    extrapolated = extrapolated_gamma(MaskState(project(value), first, second, state.rank, age, m), rule)
    rank = eliminate(extrapolated if forced else value, state.rank, m, forced, costs, rule.limit)
    undecided = rank == UNDECIDED
    if costs is None:
        closing_begins = selecting & (undecided.sum() == m)
    else:
        closing_begins = selecting & (xp.where(undecided, costs, xp.zeros_like(costs)).sum() <= rule.limit)
        m = xp.where(closing_begins, undecided.sum(), m)
    rank = xp.where(closing_begins, rank_survivors(extrapolated, rank), rank)
    kept = rank <= m
    # The closing starts from fresh moments: what pulled a survivor down during the selection is over.
    moving = kept & ~closing_begins
    return MaskState(
        cast(xp.where(kept, project(value), zeros), gamma),
        cast(xp.where(moving, first, zeros), gamma),
        cast(xp.where(moving, second, zeros), gamma),
        rank,
        xp.where(closing_begins, as_array(0, age), age),
        m,
    )


def _costs(rule: Rule, like: Array) -> Array | None:
    """Return the costs as an array of the kind and on the device of ``like``, in float64."""
    if rule.costs is None:
        return None
    xp = namespace(like)
    return rule.costs if xp is np else xp.asarray(rule.costs, device=like.device)


#: L_12 lifts what is above and lowers what is below.
BOUNDARY = 0.5


def check_strength(strength: Any) -> None:
    """Raise ValueError if a strength is not a finite number above 0.

    Examples
    --------
    >>> check_strength(0)
    Traceback (most recent call last):
    ValueError: strength must be a finite number above 0, got 0
    """
    is_number = isinstance(strength, numbers.Real) and not isinstance(strength, bool)
    if not is_number or not 0 < float(strength) < math.inf:
        raise ValueError(f"strength must be a finite number above 0, got {strength!r}")


def decide_by_price(state: MaskState, rule: Rule) -> MaskState:
    """Return the state with every feature decided: those above one half are kept, the others eliminated, the lowest first.

    Parameters
    ----------
    state : MaskState
        At the end of the selection, or earlier, to see what would be kept now.
    rule : Rule
        The settings.

    Returns
    -------
    MaskState
        ``kept`` holds how many are kept, 0 to all of them; the moments are fresh, as at the beginning of every closing.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.core import initial_state
    >>> rule = Rule(4, 0, strength=0.1)
    >>> state = initial_state(rule, np.zeros(0))._replace(gamma=np.array([0.9, 0.2, 0.6, 0.4]))
    >>> decided = decide_by_price(state, rule)
    >>> decided.rank.tolist(), int(decided.kept), decided.gamma.tolist()
    ([1, 4, 2, 3], 2, [0.9, 0.0, 0.6, 0.0])
    """
    xp = namespace(state.gamma)
    rank = eliminate(state.gamma - BOUNDARY, state.rank, 0)
    n_kept = (rank == UNDECIDED).sum()
    rank = rank_survivors(extrapolated_gamma(state, rule), rank)
    zeros = xp.zeros_like(state.gamma)
    gamma = cast(xp.where(rank <= n_kept, state.gamma, zeros), state.gamma)
    return MaskState(gamma, zeros, zeros, rank, as_array(0, state.gamma), n_kept)


def advance_with_price(state: MaskState, loss_gradient: Array, step: int, rule: Rule) -> MaskState:
    """Return the state after one more step of a rule with a strength; parameters of :func:`tamiz.core.advance`.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.core import initial_state, is_closed
    >>> rule = Rule(4, 0, strength=0.5, ramp_steps=300)
    >>> state, step = initial_state(rule, np.zeros(0)), 0
    >>> while not is_closed(state, rule):
    ...     step += 1
    ...     state = advance_with_price(state, np.array([-1.0, -0.1, -2.0, 1.0]), step, rule)
    >>> state.gamma.tolist()  # only two lower the loss by more than 0.5
    [1.0, 0.0, 1.0, 0.0]
    """
    assert rule.strength is not None
    state = advance(state, loss_gradient + rule.strength, step, rule)
    return decide_by_price(state, rule) if step == rule.step_limit else state
