"""Say which columns share an entry of gamma, which are always or never read, and what they may cost together.

gamma decides over *features*: groups of columns that are neither forced in nor forced out. What is forced has no entry of
gamma: a kept group is read from the first step on and counts towards M or the budget, a dropped one is never read. So the
step of gamma knows nothing of this, and costs nothing where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.core.rule import BUDGET_TOLERANCE

#: In place of the number of a feature: a group that is always read, and one that never is.
KEPT, DROPPED = -1, -2


@dataclass(frozen=True, eq=False)
class Gates:
    """Hold what gamma decides over; :func:`make_gates` builds it.

    Parameters
    ----------
    group : ndarray of int, shape (n_columns,)
        Number of the group of each column, from 0 on without gaps.
    feature : ndarray of int, shape (n_groups,)
        Entry of gamma of each group, from 0 on in the order of the groups, ``KEPT`` or ``DROPPED``.
    n_features_to_select : int
        How many features are kept beside the ``KEPT`` ones; 0 with a budget.
    costs : ndarray, shape (n_features,), or None
        What each feature costs.
    budget : float or None
        What the features may cost that gamma keeps.
    """

    group: np.ndarray
    feature: np.ndarray
    n_features_to_select: int
    costs: np.ndarray | None = None
    budget: float | None = None

    @property
    def n_columns(self) -> int:
        """Return the number of columns."""
        return self.group.size

    @property
    def n_groups(self) -> int:
        """Return the number of groups, the forced ones included."""
        return self.feature.size

    @property
    def n_features(self) -> int:
        """Return the number of entries of gamma."""
        return int((self.feature >= 0).sum())

    @property
    def is_plain(self) -> bool:
        """Check whether every column has an entry of gamma of its own, and there is no budget."""
        return self.costs is None and self.n_features == self.n_groups == self.n_columns

    @property
    def column_feature(self) -> np.ndarray:
        """Return the entry of gamma of each column, ``KEPT`` or ``DROPPED``."""
        return self.feature[self.group]

    @property
    def expected_size(self) -> int:
        """Return how many groups are kept in the end: exactly M, or about so many with a budget."""
        forced = int((self.feature == KEPT).sum())
        if self.costs is None or self.budget is None:
            return forced + self.n_features_to_select
        return forced + min(self.n_features, max(1, int(self.budget / self.costs.mean())))

    def rule_options(self) -> dict[str, Any]:
        """Return the arguments of a ``Rule`` that this decides."""
        return {
            "n_features": self.n_features,
            "n_features_to_select": self.n_features_to_select,
            "costs": self.costs,
            "budget": self.budget,
        }

    def rank_groups(self, ranking: np.ndarray, n_kept: int) -> tuple[np.ndarray, int]:
        """Return the ranks of all groups, and how many are kept, from those of the features.

        Forced groups come first and last, in their order.

        Parameters
        ----------
        ranking : ndarray of int, shape (n_features,)
            A permutation of 1 .. n_features.
        n_kept : int
            How many features gamma kept.

        Returns
        -------
        ranking : ndarray of int, shape (n_groups,)
        n_kept : int

        Examples
        --------
        >>> gates = make_gates(np.arange(4), 2, keep=np.array([2]), drop=np.array([0]))
        >>> gates.rank_groups(np.array([2, 1]), 1)
        (array([4, 3, 1, 2]), 2)
        """
        order = np.argsort(ranking, kind="stable")
        places = np.flatnonzero(self.feature >= 0)[order]
        forced, never = np.flatnonzero(self.feature == KEPT), np.flatnonzero(self.feature == DROPPED)
        found = np.empty(self.n_groups, dtype=np.int64)
        found[np.concatenate([forced, places, never])] = np.arange(1, self.n_groups + 1)
        return found, forced.size + n_kept

    def rank_columns(self, ranking: np.ndarray, n_kept: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rank and support of all columns from the ranks of the features; the columns of a group follow each other.

        Examples
        --------
        >>> gates = make_gates(np.array([0, 1, 0, 2]), 1)
        >>> [part.tolist() for part in gates.rank_columns(np.array([2, 1, 3]), 1)]
        [[2, 1, 3, 4], [False, True, False, False]]
        """
        groups, n_kept = self.rank_groups(ranking, n_kept)
        of_columns = groups[self.group]
        found = np.empty(self.n_columns, dtype=np.int64)
        found[np.argsort(of_columns, kind="stable")] = np.arange(1, self.n_columns + 1)
        return found, of_columns <= n_kept

    def first_columns(self) -> np.ndarray:
        """Return the first column of each feature.

        Examples
        --------
        >>> make_gates(np.array([1, 0, 1, 2]), 2, keep=np.array([1])).first_columns().tolist()
        [1, 3]
        """
        _, first = np.unique(self.group, return_index=True)
        return first[self.feature >= 0]


def make_gates(
    group: np.ndarray,
    n_features_to_select: int | None = None,
    *,
    keep: np.ndarray | None = None,
    drop: np.ndarray | None = None,
    costs: np.ndarray | None = None,
    budget: float | None = None,
) -> Gates:
    """Return what gamma decides over.

    Parameters
    ----------
    group : ndarray of int, shape (n_columns,)
        Number of the group of each column, from 0 on without gaps.
    n_features_to_select : int or None, default=None
        M, counted in groups; None with a budget.
    keep, drop : ndarray of int or None, default=None
        Numbers of groups that are always, or never, read.
    costs : ndarray, shape (n_groups,), or None, default=None
        What each group costs; only with ``budget``.
    budget : float or None, default=None
        What the kept groups may cost together. A group that costs nothing is always kept, since it always fits.

    Returns
    -------
    Gates

    Raises
    ------
    ValueError
        If these are at odds.

    Examples
    --------
    >>> gates = make_gates(np.arange(4), keep=np.array([0]), costs=np.array([1.0, 2.0, 3.0, 9.0]), budget=5.0)
    >>> gates.feature.tolist(), gates.budget, gates.n_features_to_select
    ([-1, 0, 1, -2], 4.0, 0)
    """
    n_groups = int(group.max(initial=-1)) + 1
    forced, never = np.zeros(n_groups, dtype=bool), np.zeros(n_groups, dtype=bool)
    forced[[] if keep is None else keep] = True
    never[[] if drop is None else drop] = True
    if (forced & never).any():
        raise ValueError(f"keep and drop are at odds: feature {int(np.argmax(forced & never))} is in both")
    if never.all():
        raise ValueError("drop leaves no feature to select from; drop fewer")
    if budget is None:
        n_free = _count_free(n_groups, n_features_to_select, forced, never)
        return _gates(group, forced, never, n_free)
    return _gates_with_budget(group, forced, never, costs, budget)


def _count_free(n_groups: int, m: int | None, forced: np.ndarray, never: np.ndarray) -> int:
    """Return how many features gamma has to keep beside the forced ones."""
    assert m is not None
    if forced.sum() > m:
        raise ValueError(
            f"keep holds {int(forced.sum())} features, more than n_features_to_select={m}: keep fewer or select more"
        )
    if m > n_groups - never.sum():
        raise ValueError(
            f"drop leaves {int(n_groups - never.sum())} of {n_groups} features, fewer than n_features_to_select={m}: "
            "drop fewer or select fewer"
        )
    return m - int(forced.sum())


def _gates(group: np.ndarray, forced: np.ndarray, never: np.ndarray, n_free: int, **budget: Any) -> Gates:
    if n_free == 0 and not budget:
        # Nothing is left to decide: the forced ones are the features, all of them kept.
        never = ~forced
        forced, n_free = np.zeros_like(forced), int(forced.sum())
    feature = np.where(never, DROPPED, np.where(forced, KEPT, 0))
    gated = feature == 0
    feature[gated] = np.arange(gated.sum())
    return Gates(group, feature, n_free, **budget)


def _gates_with_budget(
    group: np.ndarray, forced: np.ndarray, never: np.ndarray, costs: np.ndarray | None, budget: float
) -> Gates:
    if costs is None:
        raise ValueError("a budget needs costs: say what each feature costs")
    costs = np.asarray(costs, dtype=np.float64)
    if costs.shape != forced.shape or not np.isfinite(costs).all() or (costs < 0).any():
        raise ValueError(f"costs must be finite numbers from 0 on, one for each of the {forced.size} features")
    if not (np.isfinite(budget) and budget >= 0):
        raise ValueError(f"budget must be a finite number from 0 on, got {budget!r}")
    limit = budget * (1.0 + BUDGET_TOLERANCE)
    spent = float(costs[forced].sum())
    if spent > limit:
        raise ValueError(f"the features in keep cost {spent:g}, more than the budget of {budget:g}")
    if not forced.any() and costs[~never].min() > limit:
        raise ValueError(f"the budget of {budget:g} is below the cheapest feature, which costs {costs[~never].min():g}")
    forced = forced | (~never & (costs == 0))
    never = never | (~forced & (costs > limit - spent))
    free = ~forced & ~never
    if costs[free].sum() <= limit - spent:  # all that is left fits: nothing to decide
        return _gates(group, forced, never, int(free.sum()))
    return _gates(group, forced, never, 0, costs=costs[free], budget=budget - spent)
