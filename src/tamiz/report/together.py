"""Compute what kept columns show together: clusters, correlations, pairs, folds and projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.evaluation.folds import Fold
from tamiz.report.describe import standardise_columns
from tamiz.report.evidence import ActsWith, Correlations, FoldGrid, HeatMap, PairsFound, Projection
from tamiz.selection import Selection

#: Largest heat map: kept columns by rows.
MOST_COLUMNS, MOST_ROWS = 50, 400
#: The search for pairs looks at so many columns (the kept ones first, then by rank) and rows.
PAIR_COLUMNS, PAIR_ROWS = 60, 1000
_PROJECTED_COLUMNS = 5000


def cluster_order(values: np.ndarray) -> np.ndarray:
    """Return an order of the rows in which like rows are neighbours (average linkage).

    Examples
    --------
    >>> cluster_order(np.array([[0.0, 0.0], [9.0, 9.0], [0.1, 0.0]])).tolist()
    [1, 0, 2]
    """
    from scipy.cluster.hierarchy import leaves_list, linkage

    values = np.nan_to_num(np.asarray(values, dtype=np.float64))
    if len(values) < 3:
        return np.arange(len(values))
    return leaves_list(linkage(values, method="average"))


def draw_rows(groups: Sequence[tuple[str, np.ndarray]], n_rows: int, most: int) -> np.ndarray:
    """Return at most ``most`` rows, of each group its share and at least one.

    Examples
    --------
    >>> draw_rows([("a", np.arange(10) < 8), ("b", np.arange(10) >= 8)], 10, 5).size
    5
    """
    if n_rows <= most:
        return np.arange(n_rows)
    random = np.random.default_rng(0)
    drawn = []
    for _, members in groups:
        rows = np.flatnonzero(members)
        size = min(rows.size, max(1, int(most * rows.size / n_rows)))
        drawn.append(random.choice(rows, size, replace=False))
    return np.sort(np.concatenate(drawn))[:most]


def make_heat_map(
    X: Any,
    order: Sequence[int],
    names: Sequence[str],
    groups: Sequence[tuple[str, np.ndarray]],
    wrong: np.ndarray | None = None,
) -> HeatMap | None:
    """Return the heat map of the first kept columns.

    Parameters
    ----------
    X : table
        As :func:`~tamiz.report.describe.check_report_table` returns it.
    order : sequence of int
        Kept columns, by contribution.
    names : sequence of str
        Their names.
    groups : sequence of (str, ndarray of bool)
        Classes and their rows.
    wrong : ndarray of bool or None, default=None
        Rows whose held-out prediction was wrong.

    Examples
    --------
    >>> rows = np.arange(4) < 2
    >>> found = make_heat_map(np.array([[0.0, 1], [0, 2], [5, 1], [5, 2]]), [0, 1], ["a", "b"], [("x", rows), ("y", ~rows)])
    >>> found.z.shape, found.labels
    ((2, 4), ('x', 'y'))
    """
    columns = np.asarray(order, dtype=np.int64)[:MOST_COLUMNS]
    if columns.size < 2 or X.shape[0] < 3:
        return None
    rows = draw_rows(groups, X.shape[0], MOST_ROWS)
    z = standardise_columns(X, columns, np.arange(X.shape[0]))[rows].T * np.sqrt(X.shape[0])
    by_column, by_row = cluster_order(z), cluster_order(z.T)
    codes = np.zeros(X.shape[0], dtype=np.int64)
    for code, (_, members) in enumerate(groups):
        codes[members] = code
    shown = rows[by_row]
    return HeatMap(
        names=tuple(names[i] for i in by_column),
        rows=shown,
        z=z[by_column][:, by_row],
        groups=codes[shown],
        labels=tuple(label for label, _ in groups),
        wrong=None if wrong is None else wrong[shown],
        n_rows=X.shape[0],
    )


def make_correlations(X: Any, order: Sequence[int], names: Sequence[str], wanted: Sequence[str]) -> Correlations | None:
    """Return the correlations of the kept columns whose names are wanted, in that order.

    Examples
    --------
    >>> make_correlations(np.array([[0.0, 0], [1, -2], [2, -4]]), [0, 1], ["a", "b"], ["b", "a"]).values[0].tolist()
    [1.0, -1.0]
    """
    if len(wanted) < 2:
        return None
    place = {name: int(column) for name, column in zip(names, order, strict=True)}
    unit = standardise_columns(X, np.array([place[name] for name in wanted]), np.arange(X.shape[0]))
    return Correlations(tuple(wanted), np.clip(np.round(unit.T @ unit, 6), -1, 1))


def find_partners(
    X: Any, y: Any, task: str, selection: Selection, order: Sequence[int], names: Sequence[str]
) -> PairsFound:
    """Search for columns that act together with the kept ones, among the columns that rank next.

    Parameters
    ----------
    X, y : table and target
        What the selector was fitted on.
    task : {"classification", "regression"}
        Task.
    selection : Selection
        Gives the columns that rank next.
    order : sequence of int
        Kept columns, by contribution.
    names : sequence of str
        Names of all columns.
    """
    from tamiz.pairs import find_pairs  # loads compiled code, which a page without a table does not need

    by_rank = np.argsort(selection.ranking, kind="stable")
    others = by_rank[selection.n_features_to_select :]
    columns = np.concatenate([np.asarray(order, dtype=np.int64), others])[:PAIR_COLUMNS]
    rows = np.arange(X.shape[0])
    if rows.size > PAIR_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, PAIR_ROWS, replace=False))
    block = X[rows][:, columns]
    block = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
    target = np.asarray(y)[rows]
    if np.asarray(y).ndim != 1:
        return PairsFound(note="Pairs are judged for one target only.")
    try:
        search = find_pairs(block, target, task=task, n_permutations=20, n_jobs=1, random_state=0)
    except ValueError as error:
        return PairsFound(note=str(error))
    found = []
    for pair in search.significant_pairs():
        first, second = (int(columns[i]) for i in pair.indices)
        if not selection.support[first]:
            first, second = second, first
        if selection.support[first]:
            kept = bool(selection.support[second])
            found.append(ActsWith(names[first], names[second], kept, pair.shape, pair.p_value))
    return PairsFound(tuple(found), len(columns), search.note)


def make_fold_grid(selection: Selection, order: Sequence[int], supports: Sequence[np.ndarray]) -> FoldGrid | None:
    """Return which folds kept which columns.

    Examples
    --------
    >>> selection = Selection(np.array([True, False, False]), np.array([1, 2, 3]))
    >>> grid = make_fold_grid(selection, [0], [np.array([1, 1, 0], bool), np.array([0, 1, 1], bool)])
    >>> grid.names, grid.kept
    (('x0', 'x1', 'x2'), (True, False, False))
    """
    if len(supports) < 2:
        return None
    chosen = np.asarray(supports, dtype=bool)
    share = chosen.mean(axis=0)
    others = np.flatnonzero((share >= 0.5) & ~selection.support)
    others = others[np.argsort(-share[others], kind="stable")][:20]
    columns = [*list(order)[:MOST_COLUMNS], *others.tolist()]
    return FoldGrid(
        tuple(selection.name_of(int(c)) for c in columns),
        tuple(bool(selection.support[c]) for c in columns),
        chosen[:, columns].T,
    )


def make_projections(
    X: Any, groups: Sequence[tuple[str, np.ndarray]], fold: Fold, support: np.ndarray
) -> tuple[Projection, ...]:
    """Return principal components of the training rows of one fold, by all columns and by those the fold kept.

    Scaling and components come from the training rows alone; the held-out rows are only placed.

    Parameters
    ----------
    X : table
        As :func:`~tamiz.report.describe.check_report_table` returns it.
    groups : sequence of (str, ndarray of bool)
        Classes and their rows.
    fold : (train rows, test rows)
        The fold.
    support : ndarray of bool
        Columns that the fold kept.
    """
    train, test = draw_part(fold[0]), draw_part(fold[1])
    codes = np.zeros(X.shape[0], dtype=np.int64)
    for code, (_, members) in enumerate(groups):
        codes[members] = code
    kept = np.flatnonzero(support)
    every = np.arange(X.shape[1])
    if every.size > _PROJECTED_COLUMNS:
        every = np.sort(np.random.default_rng(0).choice(every, _PROJECTED_COLUMNS, replace=False))
    found = []
    for title, columns in ((f"All {X.shape[1]:,} columns", every), (f"The {kept.size:,} columns the fold kept", kept)):
        if columns.size < 2 or train.size < 3:
            continue
        block = X[np.concatenate([train, test])][:, columns]
        dense = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
        points, explained = _components(dense, train.size)
        held_out = np.arange(len(points)) >= train.size
        labels = tuple(label for label, _ in groups)
        found.append(Projection(title, points, codes[np.concatenate([train, test])], held_out, explained, labels))
    return tuple(found)


def draw_part(rows: np.ndarray, most: int = 300) -> np.ndarray:
    """Return at most ``most`` of some rows.

    Examples
    --------
    >>> draw_part(np.arange(5), 3).size
    3
    """
    return rows if rows.size <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _components(dense: np.ndarray, n_train: int) -> tuple[np.ndarray, tuple[float, float]]:
    """Return the first two components, fitted on the first ``n_train`` rows; missing values count as the mean."""
    dense = np.where(np.isfinite(dense), dense, np.nan)
    known = np.isfinite(dense[:n_train])
    mean = np.where(known, dense[:n_train], 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    dense = np.where(np.isfinite(dense), dense - mean, 0.0)
    deviation = dense[:n_train].std(axis=0)
    dense = np.clip(dense / np.where(deviation > 0, deviation, np.inf), -10, 10)
    _, sizes, axes = np.linalg.svd(dense[:n_train], full_matrices=False)
    total = float((sizes**2).sum()) or 1.0
    shares = [*(sizes[:2] ** 2 / total), 0.0, 0.0]
    points = dense @ axes[:2].T
    if points.shape[1] < 2:
        points = np.column_stack([points, np.zeros(len(points))])
    return points, (float(shares[0]), float(shares[1]))
