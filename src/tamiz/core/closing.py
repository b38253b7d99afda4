"""Eliminate features so that exactly M are left, and project gamma into [0, 1].

Several features can reach zero in the same step. No more of them are eliminated than allowed: the largest survive, by
value before clipping, ties by index. Each feature that is eliminated takes the worst rank still free, so the ranks are
the order of elimination.
"""

from __future__ import annotations

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


def eliminate(value: Array, rank: Array, n_features_to_select: int, forced: bool = False) -> Array:
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
    """
    xp = namespace(value)
    alive = rank == UNDECIDED
    n_alive = alive.sum()
    candidates = alive if forced else alive & (value <= 0)
    place = _from_worst(value, candidates)
    eliminated = candidates & (place < n_alive - n_features_to_select)
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


def initial_ranks(n_features: int, n_features_to_select: int, like: Array) -> Array:
    """Return the ranks at the start: all undecided or, where nothing is to be eliminated, already decided."""
    order = arange(n_features, like)
    return order + 1 if n_features == n_features_to_select else order * 0
