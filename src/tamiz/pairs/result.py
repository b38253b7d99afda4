"""The result of a search for pairs: tables of columns and of pairs, data frames, text, HTML and pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from tamiz._utils.pictures import Grid, draw
from tamiz.core.gates import column_number
from tamiz.pairs.columns import ColumnTable
from tamiz.pairs.target import PairTarget

_MOST_CELLS = 8
_FEWEST_CELLS = 3
# Rows that a cell holds on average, if columns have enough different values.
_ROWS_PER_CELL = 8
Digits = Callable[[float], str]


def cut_axis(table: ColumnTable, column: int, digits: Digits) -> tuple[np.ndarray, list[str], list[str]]:
    """Cut a column into cells: one for each value if these are few, else by rank.

    Parameters
    ----------
    table : ColumnTable
        The columns; of a group the number of the largest input is taken, which for one-hot columns is the category.
    column : int
        Which column.
    digits : callable
        Formats a number.

    Returns
    -------
    codes : ndarray of int, shape (n_samples,)
        Cell of each row.
    names, ticks : list of str
        What each cell holds; of cells by rank only the lowest and the highest value are ticks.

    Examples
    --------
    >>> from tamiz.pairs.columns import read_columns
    >>> codes, names, ticks = cut_axis(read_columns(np.arange(300.0)[:, None]), 0, "{:g}".format)
    >>> np.bincount(codes).tolist(), names[0], ticks
    ([50, 50, 50, 50, 50, 50], '0 to 49', ['0', '', '', '', '', '299'])
    """
    members, known = table.column(column), table.levels.get(table.names[column], {})
    values = members[:, 0] if members.shape[1] == 1 else members.argmax(axis=1).astype(np.float64)
    levels, codes = np.unique(values, return_inverse=True)
    if len(levels) <= _MOST_CELLS:
        names = [known.get(float(level), digits(float(level))) for level in levels]
        return codes, names, names
    n_cells = int(np.clip(np.sqrt(len(values) / _ROWS_PER_CELL), _FEWEST_CELLS, _MOST_CELLS))
    codes = np.minimum(((stats.rankdata(values) - 0.5) / len(values) * n_cells).astype(int), n_cells - 1)
    codes = np.unique(codes, return_inverse=True)[1]  # ties can leave a cell empty
    cells = [values[codes == cell] for cell in range(int(codes.max()) + 1)]
    ends = [(digits(float(cell.min())), digits(float(cell.max()))) for cell in cells]
    names = [low if low == high else f"{low} to {high}" for low, high in ends]
    return codes, names, [ends[0][0], *[""] * (len(ends) - 2), ends[-1][1]]


def describe_cells(table: ColumnTable, target: PairTarget, first: int, second: int, digits: Digits) -> Grid:
    """Describe the target in the cells of two columns: the second from top to bottom, the first from left to right.

    Parameters
    ----------
    table, target : ColumnTable, PairTarget
        The rows.
    first, second : int
        Which columns.
    digits : callable
        Formats a number.

    Returns
    -------
    Grid
        Share of the second class, mean of a numeric target, or share of the commonest of several classes, whose number
        is in ``codes``; NaN without rows.

    Examples
    --------
    >>> from tamiz.pairs.columns import read_columns
    >>> from tamiz.pairs.target import read_target
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> target = read_target(["no", "yes", "yes", "no"] * 5, None, 20)
    >>> cells = describe_cells(read_columns(X), target, 0, 1, "{:g}".format)
    >>> cells.values.tolist(), cells.label, cells.tips[0][1]
    ([[1.0, 0.0], [0.0, 1.0]], 'share of yes', 'x0 1, x1 1: 0% yes (5 rows)')
    """
    (x, x_names, x_ticks), (y, y_names, y_ticks) = (cut_axis(table, one, digits) for one in (first, second))
    shape, classes = (len(y_names), len(x_names)), [] if target.classes is None else list(map(str, target.classes))

    def total(weights: Any = None) -> np.ndarray:
        found = np.bincount(y * shape[1] + x, weights=weights, minlength=shape[0] * shape[1])
        return found.reshape(shape)[::-1]

    counts, size, codes = total(), total(target.weights), None
    with np.errstate(invalid="ignore"):
        if len(classes) > 2:
            by_class = np.stack([total(target.weights * (target.values == c)) for c in range(len(classes))])
            values, codes = by_class.max(axis=0) / size, by_class.argmax(axis=0)
        else:
            values = total(target.weights * target.values) / size
    label = "commonest class" if len(classes) > 2 else f"share of {classes[1]}" if classes else "mean of y"
    names, tips = (table.names[first], table.names[second]), []
    for row, row_name in enumerate(y_names[::-1]):
        tips.append(list[str]())
        for column, column_name in enumerate(x_names):
            value, n_rows = float(values[row, column]), int(counts[row, column])
            which = "" if not classes else classes[1 if codes is None else int(codes[row, column])]
            said = f"{value:.0%} {which[:30]}" if classes and n_rows else digits(value)
            where = f"{names[0]} {column_name}, {names[1]} {row_name}"
            tips[-1].append(f"{where}: {said} ({n_rows:,} row{'' if n_rows == 1 else 's'})")
    low, high = (0.0, 1.0) if classes else (float(np.nanmin(values)), float(np.nanmax(values)))
    title = f"{label} over {names[0]} and {names[1]}"
    return Grid(title, y_ticks[::-1], x_ticks, values, low, high, label, *names, tips=tips, codes=codes)


@dataclass(frozen=True)
class Pair:
    """Two columns that act together.

    Parameters
    ----------
    first, second : str
        Names of the columns.
    indices : tuple of int
        Their places in the table.
    strength : float
        Multiple correlation of the target with the products of both columns, beyond what each says alone; from 0 to 1.
    p_value : float
        Corrected for all pairs.
    shape : str
        Which product dominates, for example "linear x linear" (a product, or an exclusive or).
    """

    first: str
    second: str
    indices: tuple[int, int]
    strength: float
    p_value: float
    shape: str


@dataclass(frozen=True, eq=False)
class PairSearch:
    """Result of :func:`tamiz.find_pairs`.

    Parameters
    ----------
    names : list of str
        Names of the columns (or groups) that were searched.
    marginal_p_values : ndarray of shape (n_columns,)
        Evidence of each column on its own, corrected for all columns.
    pair_p_values : ndarray of shape (n_columns,)
        Evidence of the best pair of each column, corrected for all pairs.
    partners : ndarray of int, shape (n_columns,)
        The other column of that pair; -1 if none was judged.
    p_values : ndarray of shape (n_columns,)
        Evidence of each column, on its own or in a pair, corrected for all columns and pairs.
    scores : ndarray of shape (n_columns,)
        The same for ranking: the larger of both evidences, -log p - log(number of tests). Noise stays below about 3.
    pairs : list of Pair
        The strongest pairs, strongest first.
    method : {"full", "sketch"}
        Which way was taken.
    n_samples : int
        Rows.
    n_tests : int
        Number of pairs that the p values are corrected for.
    n_effective_tests : float
        Number of independent tests that these are worth.
    n_permutations : int
        Permutations that the correction rests on; 0 is a correction for the number of tests alone.
    fitted : list of str
        Columns whose own effect was taken out before pairs were judged.
    unused : dict of str to str
        Columns that could not be searched, with the reason.
    note : str
        What to know about this search: why it is empty, or what it can miss.
    """

    names: list[str]
    marginal_p_values: np.ndarray
    pair_p_values: np.ndarray
    partners: np.ndarray
    p_values: np.ndarray
    scores: np.ndarray
    pairs: list[Pair]
    method: str
    n_samples: int
    n_tests: int
    n_effective_tests: float
    n_permutations: int
    fitted: list[str] = field(default_factory=list)
    unused: dict[str, str] = field(default_factory=dict)
    note: str = ""
    _table: Any = field(default=None, repr=False)
    _target: Any = field(default=None, repr=False)

    @property
    def ranking(self) -> np.ndarray:
        """Columns by falling score, as indices."""
        return np.argsort(-self.scores, kind="stable")

    def significant_pairs(self, alpha: float = 0.05) -> list[Pair]:
        """List the pairs whose corrected p value is below ``alpha``; any false one among them has that probability.

        Parameters
        ----------
        alpha : float, default=0.05
            Family-wise error.
        """
        return [pair for pair in self.pairs if pair.p_value < alpha]

    def significant_columns(self, alpha: float = 0.05) -> np.ndarray:
        """List the columns that matter on their own or in a pair, as indices, strongest first.

        Parameters
        ----------
        alpha : float, default=0.05
            Family-wise error over all columns and pairs.
        """
        return np.array([j for j in self.ranking if self.p_values[j] < alpha], dtype=np.int64)

    def columns_to_dict(self) -> dict[str, list[Any]]:
        """Table of columns, by falling score, as lists by name."""
        order = self.ranking
        return {
            "column": [self.names[j] for j in order],
            "score": [float(self.scores[j]) for j in order],
            "p_value": [float(self.p_values[j]) for j in order],
            "marginal_p_value": [float(self.marginal_p_values[j]) for j in order],
            "partner": [self.names[self.partners[j]] if self.partners[j] >= 0 else None for j in order],
            "pair_p_value": [float(self.pair_p_values[j]) for j in order],
        }

    def pairs_to_dict(self) -> dict[str, list[Any]]:
        """Table of pairs, strongest first, as lists by name."""
        fields = ("first", "second", "strength", "p_value", "shape")
        return {name: [getattr(pair, name) for pair in self.pairs] for name in fields}

    @property
    def summary(self) -> str:
        """Count the significant pairs and columns, in two sentences.

        A column counts once: as significant on its own, or as significant in a pair only.
        """
        found, columns = len(self.significant_pairs()), self.significant_columns()
        own = self.marginal_p_values[columns]
        n_own = int((own * (2 - own) < 0.05).sum())
        many = "at least " if found and found == len(self.pairs) < self.n_tests else ""
        pairs = f"{many}{found or 'no'} pair{'s are' if found > 1 else ' is'} significant (p < 0.05, corrected for "
        pairs += f"{self.n_tests:,} pair{'' if self.n_tests == 1 else 's'})"
        split = (
            f": {n_own:,} on {'its' if n_own == 1 else 'their'} own, {len(columns) - n_own:,} only in a pair"
            if len(columns)
            else ""
        )
        of_columns = f"{len(columns):,} of {len(self.names):,} columns {'is' if len(columns) == 1 else 'are'}"
        return f"{pairs.capitalize()}. {of_columns} significant{split}; {self.n_samples:,} rows."

    def __repr__(self) -> str:
        lines = [f"PairSearch ({self.method}): {self.summary}"]
        listed = [(p.first, p.second, f"{p.strength:.2f}", f"{p.p_value:.2g}", p.shape) for p in self.pairs[:10]]
        rows = [("first", "second", "strength", "p value", "shape"), *listed]
        if len(rows) > 1:
            widths = [max(len(row[k]) for row in rows) for k in range(5)]
            lines += ["  " + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]
        hidden = len(self.pairs) - (len(rows) - 1)
        if hidden:
            lines.append(f"  ... and {hidden} more in .pairs")
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)

    def index_of(self, column: int | str) -> int:
        """Find the place of a column that is given by name or index.

        Parameters
        ----------
        column : int or str
            The column.
        """
        return column_number(column, len(self.names), {name: place for place, name in enumerate(self.names)}, "plot")

    def plot(self, first: int | str | None = None, second: int | str | None = None, *, ax: Any = None) -> Any:
        """Draw a pair: share of the classes, or mean of the target, over both columns.

        Parameters
        ----------
        first, second : int, str or None, default=None
            The columns; None is the strongest pair, or the best partner of ``first``.
        ax : matplotlib axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        matplotlib axes
        """
        return draw(self.cells(first, second), ax)

    def cells(
        self, first: int | str | None = None, second: int | str | None = None, digits: Digits = "{:.4g}".format
    ) -> Grid:
        """Compute the target in cells of two columns: the numbers behind the picture of a pair.

        Parameters
        ----------
        first, second : int, str or None, default=None
            The columns, as in :meth:`plot`.
        digits : callable, default="{:.4g}".format
            Formats a number.
        """
        if first is None:
            if not self.pairs:
                raise ValueError(f"There is no pair to draw. {self.note}".strip())
            i, j = self.pairs[0].indices
        else:
            i = self.index_of(first)
            j = self.index_of(second) if second is not None else int(self.partners[i])
            if j < 0:
                raise ValueError(f"Column {self.names[i]!r} has no partner; give two columns.")
        return describe_cells(self._table, self._target, i, j, digits)
