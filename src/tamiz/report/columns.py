"""Describe columns of the user's table: distributions by class, heat map, correlations, folds, clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from tamiz._utils.pictures import Grid
from tamiz.selection import Selection, correlated_clusters

#: Largest heat map: kept columns by rows; pictures are drawn of so many columns.
MOST_COLUMNS, MOST_ROWS, N_PICTURED = 50, 400, 48
#: Columns that correlate more than this, over at most so many rows, carry the same information; sought for the first kept ones.
NEAR_COPY, N_ROWS_SAMPLED, N_CLUSTERED = 0.9, 5000, 200
#: Levels of a column that are drawn; the others are counted together.
MOST_LEVELS = 8
_N_BINS = 24
Groups = Sequence[tuple[str, np.ndarray]]


@dataclass(frozen=True)
class Group:
    """One class in the distribution of a column: quantiles (5, 25, 50, 75, 95 %), counts by bin or level."""

    label: str
    n_rows: int
    quantiles: tuple[float, ...]
    counts: tuple[int, ...]
    n_missing: int = 0


@dataclass(frozen=True)
class Distribution:
    """A column by class: ``edges`` of bins with the lowest and highest value, or ``levels``."""

    groups: tuple[Group, ...]
    edges: tuple[float, ...] = ()
    ends: tuple[float, float] = (0.0, 0.0)
    levels: tuple[str, ...] = ()


class Columns:
    """Columns of the user's table behind the features of a selection.

    A column of text is several features, one for each level, and so is a number with an indicator of missing values; the
    groups of the selection say which belong together. Without groups each feature is a column.

    Parameters
    ----------
    selection : Selection
        Selection of features.
    numbers : sequence of int, default=()
        Number of the column of each feature as its file counts; without, they count from 0 as in an array.

    Examples
    --------
    >>> selection = Selection(
    ...     np.array([True, False, True]), np.array([1, 3, 2]), feature_names=["sex=f", "age", "sex=m"],
    ...     groups=np.array([1, 0, 1]), group_names=["age", "sex"])
    >>> columns = Columns(selection)
    >>> columns.n_kept, columns.names[int(columns.kept[0])], columns.levels_of(1)
    (1, 'sex', ['f', 'm'])
    """

    def __init__(self, selection: Selection, numbers: Sequence[int] = ()) -> None:
        self.selection = selection
        groups, names = selection.groups, list(() if selection.group_names is None else selection.group_names)
        if groups is None:
            groups, names = np.arange(selection.n_features), [selection.name_of(i) for i in range(selection.n_features)]
        self.names = [str(name) for name in names]
        self.members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
        self.support, self.ranking = selection.group_support, selection.group_ranking
        self.order = np.argsort(self.ranking, kind="stable")
        self.n_kept = int(self.support.sum())
        self.kept = self.order[: self.n_kept]
        firsts = [int(members[0]) for members in self.members]
        self.numbers = [int(numbers[i]) for i in firsts] if len(numbers) else firsts

    def __len__(self) -> int:
        return len(self.names)

    def levels_of(self, column: int) -> list[str]:
        """Names of the features of a column without the name of the column; empty if it is one number."""
        name = self.names[column]
        shown = [self.selection.name_of(int(i)) for i in self.members[column]]
        return [] if shown == [name] else [one.removeprefix(f"{name}=") for one in shown]

    def of_features(self, values: np.ndarray) -> np.ndarray:
        """Largest value of the features of each column."""
        if self.selection.groups is None:
            return np.asarray(values)
        found = np.full(len(self), -np.inf)
        np.maximum.at(found, self.selection.groups, values)
        return found

    def read(self, X: Any, column: int) -> tuple[np.ndarray, tuple[str, ...]]:
        """Values of a column, NaN where missing; if it has levels, the number of the level and their names."""
        members, name = self.members[column], self.names[column]
        block = np.asarray(X[:, members].toarray() if sp.issparse(X) else X[:, members], dtype=np.float64)
        shown = [self.selection.name_of(int(i)) for i in members]
        coded = [place for place, one in enumerate(shown) if one.startswith(f"{name}=")]
        if coded:
            levels = [shown[place].removeprefix(f"{name}=") for place in coded]
            hits = block[:, coded] > 0.5
            codes = np.where(hits.any(axis=1), hits.argmax(axis=1), len(levels)).astype(np.float64)
            if (codes == len(levels)).any():
                levels.append(f"not {levels[0]}" if len(levels) == 1 else "other")
            return codes, tuple(levels)
        missing = np.array([one == f"{name} is missing" for one in shown])
        missing &= not missing.all()
        numeric = np.flatnonzero(~missing)
        best = numeric[self.selection.ranking[members[numeric]].argmin()]
        return np.where((block[:, missing] > 0.5).any(axis=1), np.nan, block[:, best]), ()

    def scores(self, X: Any, columns: Sequence[int] | np.ndarray, target: np.ndarray | None) -> np.ndarray:
        """Compute one number per row and column; a level is placed by the mean of the target over its rows."""
        found = np.empty((X.shape[0], len(columns)))
        for place, column in enumerate(columns):
            values, levels = self.read(X, int(column))
            if levels and target is not None:
                codes = values.astype(np.int64)
                sums = np.bincount(codes, weights=np.nan_to_num(target), minlength=len(levels))
                values = (sums / np.maximum(np.bincount(codes, minlength=len(levels)), 1))[codes]
            found[:, place] = values
        return found


def check_report_table(X: Any, selection: Selection) -> Any:
    """Check that a table has one column of numbers per feature of the selection; return it as an array or CSC matrix."""
    if not sp.issparse(X) and selection.shape is not None and np.ndim(X) == len(selection.shape) + 1:
        X = np.asarray(X).reshape(len(X), -1)
    try:
        table = check_array(X, accept_sparse="csc", dtype=np.float64, ensure_all_finite=False, ensure_min_features=1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The report needs X as a table of numbers, as the selector saw it: {error}") from error
    n = selection.n_features
    if table.shape[1] != n:
        had = f"X has {table.shape[1]} columns, the selection was made on {n}."
        raise ValueError(f"{had} Give the table that the selector was fitted on.")
    return table


def group_rows(y: Any, task: str, target: str | None = None) -> list[tuple[str, np.ndarray]]:
    """Group rows by class; for a numeric target by its lower, middle and upper third.

    Examples
    --------
    >>> [(label, rows.tolist()) for label, rows in group_rows(["b", "a", "b"], "classification")]
    [('a', [False, True, False]), ('b', [True, False, True])]
    >>> group_rows([1.0, 2.0, 3.0], "regression", "price")[0][0]
    'lowest third of price'
    """
    values = np.asarray(y)
    values = values.ravel() if values.shape[1:] == (1,) else values
    if values.ndim != 1:
        return [("all rows", np.ones(values.shape[0], dtype=bool))]
    if task == "classification":
        labels, codes = np.unique(values.astype(str) if values.dtype.kind == "O" else values, return_inverse=True)
        return [(str(label), codes == i) for i, label in enumerate(labels)]
    values = values.astype(np.float64)
    low, high = np.nanquantile(values, [1 / 3, 2 / 3])
    of = f" of {target}" if target else ""
    thirds = [("lowest", values <= low), ("middle", (values > low) & (values <= high)), ("highest", values > high)]
    return [(f"{label} third{of}", rows) for label, rows in thirds if rows.any()]


def target_numbers(y: Any, task: str) -> np.ndarray | None:
    """Numbers to place levels by: the target, the second of two classes, or the commonest of more."""
    values = np.asarray(y)
    if values.ndim != 1:
        return None
    if task == "regression":
        return values.astype(np.float64)
    labels, codes = np.unique(values.astype(str), return_inverse=True)
    return (codes == (1 if labels.size == 2 else np.bincount(codes).argmax())).astype(np.float64)


def describe_distribution(values: np.ndarray, groups: Groups, levels: Sequence[str] = ()) -> Distribution | None:
    """Count one column by class: levels, or bins whose outermost hold the 0.5 % tails where these are long.

    Examples
    --------
    >>> shown = describe_distribution(np.array([0.0, 1.0, 2.0]), [("all", np.ones(3, dtype=bool))])
    >>> shown.groups[0].quantiles[2], sum(shown.groups[0].counts), shown.ends
    (1.0, 3, (0.0, 2.0))
    """
    finite = np.isfinite(values)
    if not finite.any():
        return None
    named: list[str] = list(levels)
    if not levels and np.isin(values[finite], (0.0, 1.0)).all():
        named = ["0", "1"]
    edges, ends = (np.arange(len(named) + 1) - 0.5, (0.0, 0.0)) if named else _bins(values[finite], len(groups))
    described = []
    for label, rows in groups:
        held, n_missing = values[rows & finite], int((rows & ~finite).sum())
        counts = np.histogram(np.clip(held, edges[0], edges[-1]), bins=edges)[0]
        quantiles = np.quantile(held, [0.05, 0.25, 0.5, 0.75, 0.95]) if held.size else np.full(5, np.nan)
        described.append(Group(label, held.size, tuple(quantiles.tolist()), tuple(counts.tolist()), n_missing))
    if len(named) > MOST_LEVELS:
        by_size = np.argsort(-np.sum([g.counts for g in described], axis=0), kind="stable").tolist()
        first, rest = by_size[: MOST_LEVELS - 1], by_size[MOST_LEVELS - 1 :]
        for place, g in enumerate(described):
            others = sum(g.counts[i] for i in rest)
            described[place] = replace(g, counts=(*(g.counts[i] for i in first), others))
        named = [*(named[i] for i in first), f"{len(rest)} others"]
    if named:
        return Distribution(tuple(described), levels=tuple(named))
    return Distribution(tuple(described), tuple(edges.tolist()), ends)


def _bins(values: np.ndarray, n_groups: int) -> tuple[np.ndarray, tuple[float, float]]:
    """Edges of bins, and the values at both ends; bins of whole numbers hold equally many of them."""
    low, high = float(values.min()), float(values.max())
    near, far = np.quantile(values, [0.005, 0.995])
    if high - low > 1.5 * (far - near) > 0:  # a few values far away would flatten all else
        low, high = float(near), float(far)
    n_bins = int(np.clip(np.sqrt(values.size / max(n_groups, 1)) * 2, 8, _N_BINS))
    if bool(np.all(np.floor(values) == values)) and high - low < 1e6:
        low, high = float(np.floor(low)), float(np.ceil(high))
        width = max(1.0, np.ceil((high - low + 1) / n_bins))
        return np.append(np.arange(low - 0.5, high + 0.5, width), high + 0.5), (low, high)
    if low == high:
        return np.array([low - 0.5, high + 0.5]), (low, high)
    return np.linspace(low, high, n_bins + 1), (low, high)


def standardise(block: np.ndarray) -> np.ndarray:
    """Scale columns to mean 0 and length 1; missing entries count as the mean, constant columns become zeros."""
    known = np.isfinite(block)
    mean = np.where(known, block, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    dense = np.where(known, block - mean, 0.0)
    # Scaled by the largest entry first: squares of 1e200 would be infinite, those of 1e-200 nothing.
    dense /= np.maximum(np.abs(dense).max(axis=0, initial=0.0), np.finfo(float).tiny)
    return dense / np.maximum(np.linalg.norm(dense, axis=0), 1e-12)


def cluster_order(values: np.ndarray) -> np.ndarray:
    """Order rows so that like rows are neighbours (average linkage).

    Examples
    --------
    >>> cluster_order(np.array([[0.0, 0.0], [9.0, 9.0], [0.1, 0.0]])).tolist()
    [1, 0, 2]
    """
    from scipy.cluster.hierarchy import leaves_list, linkage

    values = np.nan_to_num(np.asarray(values, dtype=np.float64))
    return np.arange(len(values)) if len(values) < 3 else leaves_list(linkage(values, method="average"))


def draw_rows(groups: Groups, n_rows: int, most: int) -> np.ndarray:
    """Draw at most ``most`` rows, of each group its share and at least one.

    Examples
    --------
    >>> draw_rows([("a", np.arange(10) < 8), ("b", np.arange(10) >= 8)], 10, 5).size
    5
    """
    if n_rows <= most:
        return np.arange(n_rows)
    random, members = np.random.default_rng(0), [np.flatnonzero(rows) for _, rows in groups]
    drawn = [random.choice(m, min(m.size, max(1, int(most * m.size / n_rows))), replace=False) for m in members]
    return np.sort(np.concatenate(drawn))[:most]


def kept_grids(columns: Columns, X: Any, y: Any, task: str, groups: Groups) -> tuple[Grid, np.ndarray, Grid] | None:
    """Describe the heat map of the first kept columns, its rows, and their correlations; columns and rows clustered.

    Returns
    -------
    tuple of (Grid, ndarray of int, Grid) or None
        None with fewer than two kept columns or three rows.
    """
    shown = columns.kept[:MOST_COLUMNS]
    if shown.size < 2 or X.shape[0] < 3:
        return None
    unit = standardise(columns.scores(X, shown, None if y is None else target_numbers(y, task)))
    rows = draw_rows(groups, X.shape[0], MOST_ROWS)
    z = unit[rows].T * np.sqrt(X.shape[0])
    by_column, by_row = cluster_order(z), cluster_order(z.T)
    names = [columns.names[int(shown[i])] for i in by_column]
    rows, z = rows[by_row], z[by_column][:, by_row]
    title = f"z scores of {len(names)} kept columns in {rows.size} rows, clustered"
    heat = Grid(title, names, [], z, -3.0, 3.0, "z", "rows, clustered")
    r = np.clip(np.round(unit.T @ unit, 6), -1, 1)[np.ix_(by_column, by_column)]
    return heat, rows, Grid(f"correlations of {len(names)} kept columns", names, names, r, -1.0, 1.0, "r")


def fold_grid(columns: Columns, supports: Sequence[np.ndarray]) -> tuple[Grid, int] | None:
    """Describe which folds kept which columns: the kept ones, then those that half of the folds chose and the fit did not.

    Parameters
    ----------
    columns : Columns
        Columns of the fit on all rows.
    supports : sequence of ndarray of bool
        Features, or columns, that each fold kept.

    Returns
    -------
    tuple of (Grid, int) or None
        Cells and how many of the rows were kept; None with fewer than two folds.

    Examples
    --------
    >>> columns = Columns(Selection(np.array([True, False, False]), np.array([1, 2, 3])))
    >>> grid, n_kept = fold_grid(columns, [np.array([1, 1, 0], bool), np.array([0, 1, 1], bool)])
    >>> grid.rows, n_kept
    (['x0', 'x1', 'x2'], 1)
    """
    if len(supports) < 2:
        return None
    chosen = np.array([s if len(s) == len(columns) else columns.of_features(s) for s in supports], dtype=bool)
    share = chosen.mean(axis=0)
    others = np.flatnonzero((share >= 0.5) & ~columns.support)
    kept = columns.kept[:MOST_COLUMNS]
    shown = [*kept.tolist(), *others[np.argsort(-share[others], kind="stable")][:20].tolist()]
    names, numbers = [columns.names[c] for c in shown], [str(i + 1) for i in range(len(supports))]
    return Grid("columns that each fold kept", names, numbers, chosen[:, shown].T, 0, 1, "", "fold"), len(kept)


def find_clusters(columns: Columns, X: Any, y: Any, task: str) -> list[list[tuple[int, float]]]:
    """Cluster kept columns with all columns that carry the same information, see :func:`tamiz.selection.correlated_clusters`.

    Returns
    -------
    list of list of (int, float)
        Columns of each cluster, the best kept one first, and their correlations with it.

    Examples
    --------
    >>> columns = Columns(Selection(support=np.array([True, False, False]), ranking=np.array([1, 2, 3])))
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    >>> [[column for column, _ in cluster] for cluster in find_clusters(columns, X, None, "classification")]
    [[0, 1]]
    """
    if X.shape[0] > N_ROWS_SAMPLED:
        rows = np.sort(np.random.default_rng(0).choice(X.shape[0], N_ROWS_SAMPLED, replace=False))
        X, y = (X.tocsr()[rows].tocsc() if sp.issparse(X) else X[rows]), None if y is None else np.asarray(y)[rows]
    target = None if y is None else target_numbers(y, task)
    table = X if columns.selection.groups is None else columns.scores(X, range(len(columns)), target)
    found, first = [], columns.support & (columns.ranking <= N_CLUSTERED)
    for members in correlated_clusters(table, first, columns.ranking, NEAR_COPY):
        unit = standardise(columns.scores(X, members, target))
        r = np.clip(np.round(unit.T @ unit[:, 0], 6), -1.0, 1.0)
        found.append(list(zip(members, r.tolist(), strict=True)))
    return found


def image_planes(selection: Selection, X: Any) -> tuple[np.ndarray, np.ndarray | None] | None:
    """Shape the mask and the mean of the rows as images; None where the inputs have no image shape.

    Channels come first or last; a pixel is kept if one of its channels is.
    """
    shape = selection.shape or ()
    if len(shape) not in (2, 3) or (len(shape) == 2 and min(shape) < 2) or (len(shape) == 3 and min(shape[::2]) > 4):
        return None
    mask, mean = selection.support.reshape(shape), None if X is None else np.asarray(X.mean(axis=0)).reshape(shape)
    if len(shape) == 2:
        return mask, mean
    axis = 0 if shape[0] <= 4 else 2
    return np.asarray(mask.any(axis=axis)), None if mean is None else mean.mean(axis=axis)
