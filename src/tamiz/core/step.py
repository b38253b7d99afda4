"""Advance gamma by one step of the paper's rule, as pure functions of NumPy arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamiz.core.rule import Rule, selection_schedule

#: A NumPy array; the penalties take torch tensors too.
Array = Any


class _SameMemory:
    """Hand the memory of an array to NumPy as memory that may be written to; keep the array alive."""

    def __init__(self, array: np.ndarray) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self.array = array


def writeable_view(array: np.ndarray) -> np.ndarray:
    """View the same memory without the read-only flag, for compiled functions that never write to it.

    Numba compiles a function once more for read-only arrays, which is what joblib hands to its workers. Memory that is
    mapped read-only stays so: to write to the view would end the process.

    Examples
    --------
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
    r"""Compute :math:`L_{1-2}`, zero exactly where every entry is 0 or 1 (Lemma 3).

    Written as :math:`\sum \gamma_i (1 - \gamma_i)`, which does not lose digits to the difference of two large sums.

    Examples
    --------
    >>> float(binary_penalty(np.array([0.0, 1.0, 0.5])))
    0.25
    """
    return _weighed(gamma * (1 - gamma), costs).sum()


def count_penalty(gamma: Array, target: Array | float, mu: float = 1.0, costs: Array | None = None) -> Array:
    r"""Compute :math:`L_M`, zero exactly where :math:`\|\gamma\|_1 = M` (Lemma 4).

    Examples
    --------
    >>> float(count_penalty(np.array([1.0, 1.0, 1.0]), target=1))
    4.0
    """
    return (1 + mu) * abs(_weighed(gamma, costs).sum() - target)


def penalty(gamma: Array, target: Array | float, mu: float = 1.0, costs: Array | None = None) -> Array:
    r"""Compute :math:`L_{1-2} + L_M`, zero exactly for a binary gamma with M ones (Lemma 5).

    Examples
    --------
    >>> float(penalty(np.array([1.0, 0.0, 0.0]), target=1)), float(penalty(np.ones(3), target=1))
    (0.0, 4.0)
    """
    return binary_penalty(gamma, costs) + count_penalty(gamma, target, mu, costs)


def penalty_gradient(gamma: np.ndarray, target: float, mu: float = 1.0, costs: np.ndarray | None = None) -> np.ndarray:
    r"""Compute the gradient of :math:`L_{1-2} + L_M`.

    :math:`2(1 - \gamma_i) + \mu` where the sum is above the target (Lemma 1), :math:`-2\gamma_i - \mu` below (Lemma 2).
    On the target :math:`L_M` has a kink; its subgradient 0 leaves :math:`1 - 2\gamma_i`, that of :math:`L_{1-2}`.

    Examples
    --------
    >>> penalty_gradient(np.array([1.0, 0.5]), target=1).tolist()
    [1.0, 2.0]
    >>> penalty_gradient(np.array([1.0, 0.5]), target=2).tolist()
    [-3.0, -2.0]
    >>> penalty_gradient(np.array([1.0, 0.5]), target=1, costs=np.array([1.0, 3.0])).tolist()
    [1.0, 6.0]
    """
    side = np.sign(_weighed(gamma, costs).sum() - target)
    return _weighed(1 - 2 * gamma + (1 + mu) * side, costs)


#: A gradient shorter than this, the smallest normal number of float32, counts as zero: float32 does not hold the inverse of
#: its length. A power of two, so that it is the same number in float32 and float64.
SMALLEST_NORM = 2.0**-126


def unit(x: np.ndarray) -> np.ndarray:
    r"""Compute :math:`z(x) = x / \|x\|`; a zero vector stays zero instead of turning into NaN.

    The entries are scaled by the largest one first, so that gradients of size 1e-30 or 1e30 neither vanish nor overflow
    in their squares. A vector shorter than :data:`SMALLEST_NORM` counts as zero.

    Examples
    --------
    >>> unit(np.array([3.0, 4.0])).tolist(), unit(np.array([0.0, 1e-40])).tolist()
    ([0.6, 0.8], [0.0, 0.0])
    """
    largest = np.max(np.abs(x), initial=0)
    scaled = x / (largest if largest > 0 else 1)
    norm = np.sqrt((scaled * scaled).sum())
    # NaN is not smaller than anything, and stays.
    return np.zeros_like(x) if largest * norm < SMALLEST_NORM else scaled / norm


def mixed_gradient(loss_gradient: np.ndarray, penalty_gradient: np.ndarray, alpha: float) -> np.ndarray:
    """Mix the two gradients that gamma follows: both scaled to length one, then weighted by alpha.

    Examples
    --------
    >>> mixed_gradient(np.array([0.0, 2.0]), np.array([5.0, 0.0]), alpha=0.25).tolist()
    [0.25, 0.75]
    """
    return (1 - alpha) * unit(loss_gradient) + alpha * unit(penalty_gradient)


#: Rank of a feature that is neither eliminated nor kept yet.
UNDECIDED = 0


def _from_worst(value: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Number the features in ``among`` from the worst (0) on; of equal values the later index is worse."""
    key = np.where(among, value, np.inf)
    place = np.empty(value.size, dtype=np.int64)
    place[np.lexsort((-np.arange(value.size), key))] = np.arange(value.size)
    return place


def eliminate(
    value: np.ndarray,
    rank: np.ndarray,
    n_features_to_select: int,
    forced: bool = False,
    costs: np.ndarray | None = None,
    limit: float = 0.0,
) -> np.ndarray:
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
    >>> eliminate(np.array([-0.2, 0.7, -0.1, 0.0, 0.9]), np.zeros(5, int), 3).tolist()
    [5, 0, 4, 0, 0]
    >>> eliminate(np.array([0.2, 0.7, 0.2, 0.0, 0.9]), np.zeros(5, int), 3, forced=True).tolist()
    [0, 0, 4, 5, 0]
    >>> eliminate(np.array([-0.2, -0.3, -0.1]), np.zeros(3, int), 0, costs=np.array([1.0, 1.0, 2.0]), limit=2.5).tolist()
    [2, 3, 0]
    """
    alive = rank == UNDECIDED
    n_alive = alive.sum()
    candidates = alive if forced else alive & (value <= 0)
    place = _from_worst(value, candidates)
    if costs is None:
        eliminated = candidates & (place < n_alive - n_features_to_select)
    else:
        by_place = np.empty_like(costs)
        by_place[place] = costs
        gone_before = (np.cumsum(by_place) - by_place)[place]
        eliminated = candidates & (costs[alive].sum() - gone_before > limit)
    return np.where(eliminated, n_alive - place, rank)


def rank_survivors(value: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Give the undecided features the ranks 1, 2, ... by value, ties by index.

    Examples
    --------
    >>> rank_survivors(np.array([0.2, 0.7, 0.2]), np.array([0, 0, 3])).tolist()
    [2, 1, 3]
    """
    alive = rank == UNDECIDED
    return np.where(alive, alive.sum() - _from_worst(value, alive), rank)


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


class MaskState(NamedTuple):
    """State of a mask between two steps."""

    #: The mask, in [0, 1].
    gamma: np.ndarray
    #: First moment of the mixed gradient (Adam).
    first: np.ndarray
    #: Second moment.
    second: np.ndarray
    #: 0 while a feature is undecided, then its final rank (1 is the best).
    rank: np.ndarray
    #: Steps that the moments have seen.
    age: int
    #: Features that are kept in the end: M; with a budget 0 until the closing begins.
    kept: int


def initial_state(rule: Rule) -> MaskState:
    """Begin a selection: gamma all ones, nothing decided (everything, where all features are kept).

    Examples
    --------
    >>> initial_state(Rule(3, 1)).gamma.tolist()
    [1.0, 1.0, 1.0]
    """
    n, m = rule.n_features, rule.n_features_to_select
    return MaskState(np.ones(n), np.zeros(n), np.zeros(n), np.arange(1, n + 1) * (n == m), 0, m)


def extrapolated_gamma(state: MaskState, rule: Rule) -> np.ndarray:
    """Compute gamma one step on if its gradient stayed as it is, not clipped.

    Many of the best features stand at 1 together; their values without the bound tell them apart.

    Examples
    --------
    >>> rule = Rule(3, 1)
    >>> state = advance(initial_state(rule), np.array([-1.0, 2.0, 0.0]), 1, rule)
    >>> extrapolated_gamma(state, rule).round(3).tolist()
    [1.01, 0.98, 0.98]
    """
    age, numbers = max(1, int(state.age)), rule.numbers
    first = state.first / (1 - numbers.beta1**age)
    second = state.second / (1 - numbers.beta2**age)
    return state.gamma - numbers.mask_learning_rate * first / (np.sqrt(second) + numbers.epsilon)


def current_ranking(state: MaskState, rule: Rule) -> np.ndarray:
    """Rank all features at any moment, 1 the best: the undecided by extrapolated gamma, then the eliminated, last first.

    Examples
    --------
    >>> current_ranking(initial_state(Rule(3, 1)), Rule(3, 1)).tolist()
    [1, 2, 3]
    """
    return rank_survivors(extrapolated_gamma(state, rule), state.rank)


def is_closed(state: MaskState, rule: Rule) -> bool:
    r"""Check that :math:`L_{1-2} + L_M = 0` with every feature decided: gamma is binary with exactly M ones (Theorem 2)."""
    kept = (state.rank > UNDECIDED) & (state.rank <= state.kept)
    return bool((kept & (state.gamma == 1)).sum() == state.kept) and bool((state.rank != UNDECIDED).all())


def advance(state: MaskState, loss_gradient: np.ndarray, step: int, rule: Rule) -> MaskState:
    """Take one step.

    Parameters
    ----------
    state : MaskState
        The state before the step.
    loss_gradient : ndarray, shape (n_features,)
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
    >>> rule = Rule(4, 2, ramp_steps=1000)
    >>> state, step = initial_state(rule), 0
    >>> while not is_closed(state, rule):
    ...     step += 1
    ...     state = advance(state, np.array([-1.0, -0.1, -2.0, 1.0]), step, rule)
    >>> state.gamma.tolist(), state.rank.tolist()
    ([1.0, 0.0, 1.0, 0.0], [2, 3, 1, 4])
    """
    if step <= rule.warmup_steps:
        return state
    gamma, m, numbers, costs = state.gamma, state.kept, rule.numbers, rule.costs
    alive = state.rank <= m
    selecting = bool((state.rank == UNDECIDED).any())
    # While features are undecided there are more than M of them; after that the target is M for every variant. In the closing
    # every feature counts once: all that are left have to come to 1.
    (alpha,), (target,) = selection_schedule(rule, step, 1) if selecting else ([1.0], [float(m)])
    weights = costs if selecting else None
    if rule.strength is not None:
        loss_gradient = loss_gradient + rule.strength
    mixed = mixed_gradient(
        np.where(alive & selecting, loss_gradient, 0.0),
        np.where(alive, penalty_gradient(gamma, target, numbers.mu, weights), 0.0),
        alpha,
    )
    first = numbers.beta1 * state.first + (1 - numbers.beta1) * mixed
    second = numbers.beta2 * state.second + (1 - numbers.beta2) * mixed * mixed
    moved = MaskState(gamma, first, second, state.rank, state.age + 1, m)
    value = extrapolated_gamma(moved, rule)

    moved = moved._replace(gamma=np.clip(value, 0, 1))
    forced = step >= rule.step_limit and rule.strength is None
    key = extrapolated_gamma(moved, rule) if forced else value
    rank = eliminate(key, state.rank, m, forced, costs, rule.limit)
    undecided = rank == UNDECIDED
    closing_begins = selecting and bool(undecided.sum() == m if costs is None else costs[undecided].sum() <= rule.limit)
    if closing_begins:
        m = int(undecided.sum())
        rank = rank_survivors(extrapolated_gamma(moved, rule), rank)
    kept = rank <= m
    # The closing starts from fresh moments: what pulled a survivor down during the selection is over.
    moving = kept & (not closing_begins)
    age = 0 if closing_begins else moved.age
    state = MaskState(
        np.where(kept, moved.gamma, 0.0), np.where(moving, first, 0.0), np.where(moving, second, 0.0), rank, age, m
    )
    return decide_by_price(state, rule) if rule.strength is not None and step == rule.step_limit else state


#: L_12 lifts what is above and lowers what is below.
BOUNDARY = 0.5


def decide_by_price(state: MaskState, rule: Rule) -> MaskState:
    """Decide every feature of a rule with a strength: keep those above one half, eliminate the others, the lowest first.

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
    >>> rule = Rule(4, 0, strength=0.1)
    >>> state = initial_state(rule)._replace(gamma=np.array([0.9, 0.2, 0.6, 0.4]))
    >>> decided = decide_by_price(state, rule)
    >>> decided.rank.tolist(), decided.kept, decided.gamma.tolist()
    ([1, 4, 2, 3], 2, [0.9, 0.0, 0.6, 0.0])
    """
    rank = eliminate(state.gamma - BOUNDARY, state.rank, 0)
    n_kept = int((rank == UNDECIDED).sum())
    rank = rank_survivors(extrapolated_gamma(state, rule), rank)
    zeros = np.zeros_like(state.gamma)
    return MaskState(np.where(rank <= n_kept, state.gamma, zeros), zeros, zeros, rank, 0, n_kept)
