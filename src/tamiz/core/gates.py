"""Groups of columns, columns kept or dropped by force, costs and budgets."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz._utils.text import suggest
from tamiz._utils.validation import resolve_n_features_to_select
from tamiz.core.rule import BUDGET_TOLERANCE, expected_size
from tamiz.errors import UnknownNameError

#: In place of the number of a feature: a group that is always read, and one that never is.
KEPT, DROPPED = -1, -2


@dataclass(frozen=True, eq=False)
class Gates:
    """What gamma decides over; :func:`read_gates` builds it.

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
    def n_features(self) -> int:
        """Number of entries of gamma."""
        return int((self.feature >= 0).sum())

    @property
    def column_feature(self) -> np.ndarray:
        """Entry of gamma of each column, ``KEPT`` or ``DROPPED``."""
        return self.feature[self.group]

    @property
    def expected_size(self) -> int:
        """Count the groups that are kept in the end: exactly M, or about so many with a budget."""
        return int((self.feature == KEPT).sum()) + expected_size(self)

    def rule_options(self) -> dict[str, Any]:
        """Arguments of a ``Rule`` that this decides."""
        names = ("n_features", "n_features_to_select", "costs", "budget")
        return {name: getattr(self, name) for name in names}

    def rank_columns(self, ranking: np.ndarray, n_kept: int) -> tuple[np.ndarray, np.ndarray]:
        """Rank all columns by the ranks of the features; forced groups come first and last, columns of a group together.

        Parameters
        ----------
        ranking : ndarray of int, shape (n_features,)
            A permutation of 1 .. n_features.
        n_kept : int
            How many features gamma kept.

        Returns
        -------
        ranking : ndarray of int, shape (n_columns,)
        support : ndarray of bool, shape (n_columns,)

        Examples
        --------
        >>> gates, _ = read_gates(5, 2, groups=[0, 1, 0, 2, 3], keep=[3], drop=[4])
        >>> [part.tolist() for part in gates.rank_columns(np.array([2, 1]), 1)]
        [[3, 2, 4, 1, 5], [False, True, False, True, False]]
        """
        forced, never = np.flatnonzero(self.feature == KEPT), np.flatnonzero(self.feature == DROPPED)
        places = np.flatnonzero(self.feature >= 0)[np.argsort(ranking, kind="stable")]
        groups = np.empty(self.feature.size, dtype=np.int64)
        groups[np.concatenate([forced, places, never])] = np.arange(1, self.feature.size + 1)
        of_columns = groups[self.group]
        found = np.empty(of_columns.size, dtype=np.int64)
        found[np.argsort(of_columns, kind="stable")] = np.arange(1, of_columns.size + 1)
        return found, of_columns <= forced.size + n_kept

    def first_columns(self) -> np.ndarray:
        """First column of each feature.

        Examples
        --------
        >>> read_gates(4, 2, groups=[0, 1, 0, 2], keep=[1])[0].first_columns().tolist()
        [0, 3]
        """
        _, first = np.unique(self.group, return_index=True)
        return first[self.feature >= 0]


def read_gates(
    n_columns: int,
    n_features_to_select: Any = None,
    *,
    groups: Any = None,
    keep: Any = None,
    drop: Any = None,
    costs: Any = None,
    budget: float | None = None,
    names: Sequence[str] | np.ndarray | None = None,
) -> tuple[Gates, np.ndarray | None]:
    """Read what gamma decides over, and the names of the groups (None without groups).

    Parameters
    ----------
    n_columns : int
        Number of columns.
    n_features_to_select : int, float or None, default=None
        M, a fraction of the groups, or None for half of them; must be None with a budget.
    groups : array-like of labels, shape (n_columns,), list of lists, mapping of label to list, or None, default=None
        Columns with the same label are one group; or the columns of each group by name or number, where a column in no
        list is a group of its own.
    keep, drop : list of column names or numbers, or None, default=None
        Columns whose groups are always, or never, read.
    costs : array-like, shape (n_columns,), or mapping of name or number to cost, default=None
        What each column costs; a group costs the sum of its columns. A mapping may name groups as well, and what it does
        not name costs 1.
    budget : float or None, default=None
        What the kept columns may cost together. A group that costs nothing is always kept, since it always fits.
    names : sequence of str or None, default=None
        Names of the columns.

    Returns
    -------
    gates : Gates
    group_names : ndarray of str, shape (n_groups,), or None

    Examples
    --------
    >>> gates, labels = read_gates(4, 2, groups=[["a", "b"]], keep=["d"], names=["a", "b", "c", "d"])
    >>> gates.group.tolist(), labels.tolist(), gates.feature.tolist()
    ([0, 0, 1, 2], ['a+b', 'c', 'd'], [0, 1, -1])
    >>> read_gates(2, 1, drop=["ago"], names=["age", "dose"])
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: drop: there is no column 'ago'. Did you mean 'age'?
    """
    known = None if names is None else {str(name): number for number, name in enumerate(names)}
    group, labels = read_groups(groups, n_columns, known)
    forced, never = _read_forced(keep, drop, group, known, labels)
    n_groups = forced.size
    if budget is None:
        if costs is not None:
            raise ValueError("costs need a budget: say what the kept columns may cost together")
        m = resolve_n_features_to_select(n_features_to_select, n_groups)
        if forced.sum() > m:
            raise ValueError(
                f"keep holds {int(forced.sum())} features, more than n_features_to_select={m}: keep fewer or select more"
            )
        if m > n_groups - never.sum():
            raise ValueError(
                f"drop leaves {int(n_groups - never.sum())} of {n_groups} features, fewer than n_features_to_select={m}: "
                "drop fewer or select fewer"
            )
        return _gates(group, forced, never, m - int(forced.sum())), labels
    if n_features_to_select is not None:
        raise ValueError(
            f"budget takes the place of n_features_to_select: give one of them, got n_features_to_select="
            f"{n_features_to_select!r} and budget={budget!r}"
        )
    if not isinstance(budget, numbers.Real) or isinstance(budget, bool) or not 0 <= budget < np.inf:
        raise ValueError(f"budget must be a number, finite and from 0 on, got {budget!r}")
    if costs is None:
        raise ValueError("a budget needs costs: say what each feature costs")
    prices = _read_costs(costs, group, n_groups, known, labels)
    limit, spent = budget * (1.0 + BUDGET_TOLERANCE), float(prices[forced].sum())
    if spent > limit:
        raise ValueError(f"the features in keep cost {spent:g}, more than the budget of {budget:g}")
    if not forced.any() and prices[~never].min() > limit:
        raise ValueError(
            f"the budget of {budget:g} is below the cheapest feature, which costs {prices[~never].min():g}"
        )
    forced |= ~never & (prices == 0)
    never |= ~forced & (prices > limit - spent)
    free = ~forced & ~never
    if prices[free].sum() <= limit - spent:  # all that is left fits: nothing to decide
        return _gates(group, forced, never, int(free.sum())), labels
    return _gates(group, forced, never, 0, costs=prices[free], budget=float(budget) - spent), labels


def _gates(group: np.ndarray, forced: np.ndarray, never: np.ndarray, n_free: int, **budget: Any) -> Gates:
    if n_free == 0 and not budget:
        # Nothing is left to decide: the forced ones are the features, all of them kept.
        never = ~forced
        forced, n_free = np.zeros_like(forced), int(forced.sum())
    feature = np.where(never, DROPPED, np.where(forced, KEPT, 0))
    gated = feature == 0
    feature[gated] = np.arange(gated.sum())
    return Gates(group, feature, n_free, **budget)


def possible_counts(
    n_columns: int, *, groups: Any = None, keep: Any = None, drop: Any = None, names: Any = None, **budget: Any
) -> tuple[int, int]:
    """Find the least and the largest M that groups, ``keep`` and ``drop`` allow; parameters of :func:`read_gates`.

    Examples
    --------
    >>> possible_counts(5, groups=[0, 0, 1, 2, 3], keep=[2, 3], drop=[4])
    (2, 3)
    """
    free, labels = read_gates(n_columns, groups=groups, names=names, **budget)
    known = None if names is None else {str(name): number for number, name in enumerate(names)}
    forced, never = _read_forced(keep, drop, free.group, known, labels)
    return max(1, int(forced.sum())), int((~never).sum())


def column_number(value: Any, n_columns: int, known: Mapping[str, int] | None, what: str) -> int:
    """Number of a column that is given by its name or number.

    Examples
    --------
    >>> column_number("dose", 2, {"age": 0, "dose": 1}, "keep"), column_number(-1, 2, None, "keep")
    (1, 1)
    >>> column_number(7, 2, None, "keep")
    Traceback (most recent call last):
    ValueError: keep: there is no column 7; columns are numbered from 0 to 1
    """
    if isinstance(value, str):
        if known is None:
            raise ValueError(f"{what}: the columns have no names, so {value!r} says nothing; give numbers of columns")
        if value not in known:
            raise UnknownNameError(f"{what}: there is no column {value!r}.{suggest(value, known)}")
        return known[value]
    if isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_)):
        number = int(value)
        if not -n_columns <= number < n_columns:
            raise ValueError(f"{what}: there is no column {number}; columns are numbered from 0 to {n_columns - 1}")
        return number % n_columns
    raise ValueError(f"{what} takes names or numbers of columns, got {value!r}")


def _is_list(value: Any) -> bool:
    return not isinstance(value, (str, bytes)) and isinstance(value, (Sequence, np.ndarray, set, frozenset))


def read_groups(groups: Any, n_columns: int, known: Mapping[str, int] | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Number the groups by their first column; return the group of each column, and the names of the groups.

    Examples
    --------
    >>> [part.tolist() for part in read_groups(["b", "a", "b"], 3, None)]
    [[0, 1, 0], ['b', 'a']]
    """
    if groups is None:
        return np.arange(n_columns), None
    if isinstance(groups, Mapping):
        return _from_lists(list(groups.values()), [str(label) for label in groups], n_columns, known)
    if not _is_list(groups) and not hasattr(groups, "__array__"):
        raise ValueError(f"groups must hold a label for each column, or lists of columns, got {groups!r}")
    listed = [groups] if isinstance(groups, (set, frozenset)) else list(groups)
    if listed and all(_is_list(one) for one in listed) and np.ndim(groups if isinstance(groups, np.ndarray) else 0) < 2:
        return _from_lists(listed, None, n_columns, known)
    labels = [str(label) for label in np.asarray(groups).ravel().tolist()]
    if len(labels) != n_columns:
        raise ValueError(
            f"groups holds {len(labels)} labels for {n_columns} columns: give one label for each column, "
            "or lists of columns"
        )
    number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return np.array([number[label] for label in labels], dtype=np.int64), np.array(list(number), dtype=object)


def _from_lists(
    lists: list[Any], labels: list[str] | None, n_columns: int, known: Mapping[str, int] | None
) -> tuple[np.ndarray, np.ndarray]:
    owner, titles = np.full(n_columns, -1), []
    names = [f"x{i}" for i in range(n_columns)] if known is None else list(known)
    for place, members in enumerate(lists):
        if not _is_list(members):
            raise ValueError(f"groups must hold a label for each column, or lists of columns, got {members!r} in it")
        found = [column_number(member, n_columns, known, "groups") for member in members]
        if not found:
            raise ValueError("groups holds a group without columns; leave it out")
        for column in found:
            if owner[column] >= 0:
                where = "twice in one group" if owner[column] == place else "in two groups"
                raise ValueError(f"groups: column {names[column]!r} is {where}; every column belongs to one group")
            owner[column] = place
        titles.append("+".join(names[i] for i in sorted(found)) if labels is None else labels[place])
    # A column in no list is a group of its own: its key is unlike those of the lists.
    keys = np.where(owner >= 0, owner, len(lists) + np.arange(n_columns)).tolist()
    number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    found_names = [titles[key] if key < len(lists) else names[key - len(lists)] for key in number]
    return np.array([number[key] for key in keys]), np.array(found_names, dtype=object)


def column_mask(value: Any, n_columns: int, known: Mapping[str, int] | None, what: str) -> np.ndarray:
    """Mask of the columns given by names or numbers, or by a mask; ``known`` numbers the names of the columns.

    Examples
    --------
    >>> column_mask(["dose", 0], 3, {"age": 0, "sex": 1, "dose": 2}, "keep").tolist()
    [True, False, True]
    """
    found = np.zeros(n_columns, dtype=bool)
    if value is None:
        return found
    if isinstance(value, (str, numbers.Integral)) or not isinstance(value, Iterable):
        raise ValueError(f"{what} must be a list of names or numbers of columns, got {value!r}")
    given = np.asarray(value).ravel().tolist() if hasattr(value, "__array__") else list(value)
    if given and all(isinstance(one, (bool, np.bool_)) for one in given):
        if len(given) != n_columns:
            raise ValueError(f"{what} is a mask over {len(given)} columns, there are {n_columns}")
        return np.array(given)
    found[[column_number(one, n_columns, known, what) for one in given]] = True
    return found


def _read_forced(
    keep: Any, drop: Any, group: np.ndarray, known: Mapping[str, int] | None, labels: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the groups of the columns that are always, and never, read."""
    forced, never = np.zeros((2, group.size if labels is None else labels.size), dtype=bool)
    for mask, value, what in ((forced, keep, "keep"), (never, drop, "drop")):
        mask[group[column_mask(value, group.size, known, what)]] = True
    if (forced & never).any():
        number = int(np.argmax(forced & never))
        label = f"column {number}" if known is None else repr(list(known)[number])
        label = label if labels is None else repr(str(labels[number]))
        raise ValueError(f"keep and drop are at odds: {label} is in both; take it out of one of them")
    if never.all():
        raise ValueError("drop leaves no feature to select from; drop fewer")
    return forced, never


def _read_costs(
    costs: Any, group: np.ndarray, n_groups: int, known: Mapping[str, int] | None, labels: np.ndarray | None
) -> np.ndarray:
    if not isinstance(costs, Mapping):
        values = np.asarray(costs, dtype=object).ravel()
        if values.size != group.size:
            raise ValueError(f"costs holds {values.size} numbers for {group.size} columns: give one for each column")
        of_columns = np.array([_cost(value, f"column {place}") for place, value in enumerate(values)])
        return np.bincount(group, weights=of_columns, minlength=n_groups)
    by_label = {} if labels is None else {str(label): place for place, label in enumerate(labels)}
    of_columns, of_groups = np.ones(group.size), np.full(n_groups, np.nan)
    for name, value in costs.items():
        cost = _cost(value, repr(name))
        if name in by_label:
            of_groups[by_label[name]] = cost
        else:
            of_columns[column_number(name, group.size, known, "costs")] = cost
    summed = np.bincount(group, weights=of_columns, minlength=n_groups)
    return np.where(np.isnan(of_groups), summed, of_groups)


def _cost(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"costs: the cost of {what} must be a number, got {value!r}") from None
    if not np.isfinite(number) or number < 0:
        raise ValueError(f"costs: the cost of {what} must be a finite number from 0 on, got {value!r}")
    return number
