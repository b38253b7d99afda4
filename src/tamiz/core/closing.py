"""Projection into [0, 1], and the rule by which exactly M features are left.

Several features can reach zero in the same step. No more of them die than may: the largest survive, by value before
clipping, ties by index. Each feature that dies takes the worst rank still free, so the ranks are the order of death.
"""

from __future__ import annotations

from tamiz.core._arrays import Array, arange, argsort, namespace, positions

#: The rank of a feature whose fate is open.
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
    """For the features in ``among``: 0 for the worst, 1 for the next, ...; of equal values the later index is worse."""
    xp = namespace(value)
    n = value.shape[0]
    outside = xp.full_like(value, float("inf"))
    reversed_key = xp.flip(xp.where(among, value, outside), (0,))
    return positions((n - 1) - argsort(reversed_key))


def deaths(value: Array, rank: Array, n_features_to_select: int, forced: bool = False) -> Array:
    """The ranks after a step: features whose value is not above zero die, but never so many that fewer than M are left.

    Parameters
    ----------
    value : array of float, shape (n_features,)
        gamma after its step, before clipping.
    rank : array of int, shape (n_features,)
        ``UNDECIDED`` for what is alive, the rank for what died before.
    n_features_to_select : int
        M.
    forced : bool
        The step limit is reached: all but the M largest die now.

    Examples
    --------
    >>> import numpy as np
    >>> deaths(np.array([-0.2, 0.7, -0.1, 0.0, 0.9]), np.zeros(5, int), 3).tolist()
    [5, 0, 4, 0, 0]
    >>> deaths(np.array([0.2, 0.7, 0.2, 0.0, 0.9]), np.zeros(5, int), 3, forced=True).tolist()
    [0, 0, 4, 5, 0]
    """
    xp = namespace(value)
    alive = rank == UNDECIDED
    n_alive = alive.sum()
    dying = alive if forced else alive & (value <= 0)
    place = _from_worst(value, dying)
    dies = dying & (place < n_alive - n_features_to_select)
    return xp.where(dies, n_alive - place, rank)


def survivors_ranked(value: Array, rank: Array) -> Array:
    """The ranks once exactly M features are alive: the survivors take 1 .. M by value, ties by index.

    Examples
    --------
    >>> import numpy as np
    >>> survivors_ranked(np.array([0.2, 0.7, 0.2]), np.array([0, 0, 3])).tolist()
    [2, 1, 3]
    """
    alive = rank == UNDECIDED
    return namespace(value).where(alive, alive.sum() - _from_worst(value, alive), rank)


def first_ranks(n_features: int, n_features_to_select: int, like: Array) -> Array:
    """The ranks at the start: all open, or, where nothing is to be cut, already decided."""
    order = arange(n_features, like)
    return order + 1 if n_features == n_features_to_select else order * 0
