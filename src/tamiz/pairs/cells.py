"""Cut two columns into cells and describe the target in each: what pictures of a pair show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from tamiz.pairs.columns import ColumnTable
from tamiz.pairs.target import PairTarget

_MOST_CELLS = 8
_FEWEST_CELLS = 3
# Rows that a cell holds on average, if columns have enough different values.
_ROWS_PER_CELL = 8


@dataclass(frozen=True, eq=False)
class CellAxis:
    """Describe the cells along one column.

    Parameters
    ----------
    name : str
        The column.
    codes : ndarray of int, shape (n_samples,)
        Cell of each row.
    lower, upper : ndarray of shape (n_cells,)
        Smallest and largest value in each cell; equal where a cell is one value.
    positions : ndarray of shape (n_samples,)
        Where the rows lie: ranks from 0 to 1, or the cell where each value is a cell of its own.
    by_rank : bool
        Whether the cells hold equally many rows, by rank, and not one value each.
    """

    name: str
    codes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    positions: np.ndarray
    by_rank: bool

    @property
    def n_cells(self) -> int:
        """Return the number of cells."""
        return len(self.lower)


@dataclass(frozen=True, eq=False)
class PairCells:
    """Describe the target in the cells of two columns.

    Parameters
    ----------
    first, second : CellAxis
        The columns; ``first`` goes with the last axis of the arrays below.
    means : ndarray of shape (n_second, n_first)
        Share of the second class, mean of a numeric target, or position of the commonest of several classes; NaN without rows.
    shares : ndarray of shape (n_second, n_first)
        Share of the commonest class where there are several; else the means, moved to 0 to 1.
    counts : ndarray of int, shape (n_second, n_first)
        Rows.
    label : str
        What the means are.
    classes : tuple of str
        The classes; empty for numbers.
    """

    first: CellAxis
    second: CellAxis
    means: np.ndarray
    shares: np.ndarray
    counts: np.ndarray
    label: str
    classes: tuple[str, ...]


def cut_axis(table: ColumnTable, column: int) -> CellAxis:
    """Cut a column into cells: one for each value if these are few, else by rank.

    Parameters
    ----------
    table : ColumnTable
        The columns; of a group the number of the largest input is taken, which for one-hot columns is the category.
    column : int
        Which column.

    Examples
    --------
    >>> from tamiz.pairs.columns import read_columns
    >>> axis = cut_axis(read_columns(np.arange(300.0)[:, None]), 0)
    >>> axis.n_cells, axis.lower.tolist()
    (6, [0.0, 50.0, 100.0, 150.0, 200.0, 250.0])
    """
    members = table.column(column)
    values = members[:, 0] if members.shape[1] == 1 else members.argmax(axis=1).astype(np.float64)
    levels, codes = np.unique(values, return_inverse=True)
    name = table.names[column]
    if len(levels) <= _MOST_CELLS:
        return CellAxis(name, codes, levels, levels, codes.astype(np.float64), False)
    n_cells = int(np.clip(np.sqrt(len(values) / _ROWS_PER_CELL), _FEWEST_CELLS, _MOST_CELLS))
    ranks = (stats.rankdata(values) - 0.5) / len(values)
    codes = np.minimum((ranks * n_cells).astype(int), n_cells - 1)
    codes = np.unique(codes, return_inverse=True)[1]  # ties can leave a cell empty
    n_cells = int(codes.max()) + 1
    lower = np.array([values[codes == cell].min() for cell in range(n_cells)])
    upper = np.array([values[codes == cell].max() for cell in range(n_cells)])
    return CellAxis(name, codes, lower, upper, ranks, True)


def describe_cells(table: ColumnTable, target: PairTarget, first: int, second: int) -> PairCells:
    """Describe the target in the cells of two columns.

    Parameters
    ----------
    table : ColumnTable
        The columns.
    target : PairTarget
        The target.
    first, second : int
        Which columns.

    Examples
    --------
    >>> from tamiz.pairs.columns import read_columns
    >>> from tamiz.pairs.target import read_target
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> cells = describe_cells(read_columns(X), read_target(["no", "yes", "yes", "no"] * 5, None, 20), 0, 1)
    >>> cells.means.tolist(), cells.label
    ([[0.0, 1.0], [1.0, 0.0]], 'share of yes')
    """
    x, y = cut_axis(table, first), cut_axis(table, second)
    shape = (y.n_cells, x.n_cells)
    cell = y.codes * shape[1] + x.codes
    n_cells = shape[0] * shape[1]
    size = np.bincount(cell, weights=target.weights, minlength=n_cells)
    classes = () if target.classes is None else tuple(str(name) for name in target.classes)
    with np.errstate(invalid="ignore"):
        if len(classes) > 2:
            by_class = np.stack(
                [
                    np.bincount(cell, weights=target.weights * (target.values == c), minlength=n_cells)
                    for c in range(len(classes))
                ]
            )
            means = np.where(size > 0, by_class.argmax(axis=0), np.nan)
            shares, label = by_class.max(axis=0) / size, "commonest class"
        else:
            means = shares = np.bincount(cell, weights=target.weights * target.values, minlength=n_cells) / size
            label = f"share of {classes[1]}" if classes else "mean of y"
    if not classes and np.isfinite(means).any():
        low, high = np.nanmin(means), np.nanmax(means)
        shares = (means - low) / (high - low) if high > low else np.where(np.isfinite(means), 0.5, np.nan)
    counts = np.bincount(cell, minlength=n_cells).reshape(shape)
    return PairCells(x, y, means.reshape(shape), shares.reshape(shape), counts, label, classes)
