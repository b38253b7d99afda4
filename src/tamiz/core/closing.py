"""Eliminate features so that exactly M are left, or what fits into a budget, and project gamma into [0, 1].

Several features can reach zero in the same step. No more of them are eliminated than allowed: the largest survive, by
value before clipping, ties by index. Each feature that is eliminated takes the worst rank still free, so the ranks are
the order of elimination.

With a budget, features are eliminated until the rest fits into it. Then the final order (survivors by value, then the
eliminated, the last one first) is walked once, and what still fits is taken: :func:`fill_budget`.
"""

from __future__ import annotations

import numpy as np

from tamiz.core._arrays import Array, arange, argsort, namespace, positions

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
