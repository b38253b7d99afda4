"""The result of a search for pairs: tables of columns and of pairs, data frames, text, HTML and pictures."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from tamiz._utils.extras import require
from tamiz._utils.names import suggest
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


def _layout(axis: CellAxis, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return where the dots lie (jittered where values are few) and the edges of the cells."""
    if axis.by_rank:
        starts = [axis.positions[axis.codes == cell].min() for cell in range(1, axis.n_cells)]
        return axis.positions, np.array([0.0, *starts, 1.0])
    return axis.positions + random.uniform(-0.3, 0.3, len(axis.positions)), np.arange(axis.n_cells + 1) - 0.5


def draw_pair(table: ColumnTable, target: PairTarget, first: int, second: int, *, ax: Any = None) -> Any:
    """Draw the mean of the target in cells of two columns, and the rows as dots.

    Parameters
    ----------
    table : ColumnTable
        The columns.
    target : PairTarget
        The target; for more than two classes the commonest class of each cell is drawn.
    first, second : int
        Which columns.
    ax : matplotlib axes or None, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes
    """
    pyplot = require("matplotlib.pyplot", "plot", "Drawing a pair")
    if ax is None:
        ax = pyplot.figure(figsize=(5, 4), layout="constrained").add_subplot()
    random = np.random.default_rng(0)
    cells = describe_cells(table, target, first, second)
    (x, x_edges), (y, y_edges) = _layout(cells.first, random), _layout(cells.second, random)
    n_classes = len(cells.classes)
    colours = "RdBu_r" if n_classes == 2 else "viridis"
    limits = {"vmin": 0, "vmax": max(1, n_classes - 1)} if n_classes else {}
    mesh = ax.pcolormesh(x_edges, y_edges, cells.means, cmap=colours, alpha=0.6, **limits)
    shown = random.permutation(len(x))[:1000]
    ax.scatter(
        x[shown], y[shown], c=target.values[shown], cmap=colours, s=8, edgecolors="0.3", linewidths=0.3, **limits
    )
    bar = ax.figure.colorbar(mesh, ax=ax, label=cells.label)
    if n_classes > 2:
        bar.set_ticks(range(n_classes), labels=list(cells.classes))
    ax.set_xlabel(cells.first.name + (" (rank)" if cells.first.by_rank else ""))
    ax.set_ylabel(cells.second.name + (" (rank)" if cells.second.by_rank else ""))
    return ax


@dataclass(frozen=True)
class Pair:
    """Describe two columns that act together.

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
    """Hold what :func:`tamiz.find_pairs` found.

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
        """Return the columns by falling score, as indices."""
        return np.argsort(-self.scores, kind="stable")

    def with_names(self, names: Sequence[str]) -> PairSearch:
        """Return the same result with other names for the columns.

        Parameters
        ----------
        names : sequence of str
            One name for each column.
        """
        if len(names) != len(self.names):
            raise ValueError(f"names must hold one name for each of the {len(self.names)} columns, got {len(names)}.")
        named = [str(name) for name in names]
        place = {name: index for index, name in enumerate(self.names)}
        return dataclasses.replace(
            self,
            names=named,
            pairs=[
                dataclasses.replace(pair, first=named[pair.indices[0]], second=named[pair.indices[1]])
                for pair in self.pairs
            ],
            fitted=[named[place[name]] for name in self.fitted],
            unused={named[place[name]]: reason for name, reason in self.unused.items()},
            _table=None if self._table is None else dataclasses.replace(self._table, names=named),
        )

    def significant_pairs(self, alpha: float = 0.05) -> list[Pair]:
        """Return the pairs whose corrected p value is below ``alpha``; any false one among them has that probability.

        Parameters
        ----------
        alpha : float, default=0.05
            Family-wise error.
        """
        return [pair for pair in self.pairs if pair.p_value < alpha]

    def significant_columns(self, alpha: float = 0.05) -> np.ndarray:
        """Return the columns that matter on their own or in a pair, as indices, strongest first.

        Parameters
        ----------
        alpha : float, default=0.05
            Family-wise error over all columns and pairs.
        """
        return np.array([j for j in self.ranking if self.p_values[j] < alpha], dtype=np.int64)

    def columns_to_dict(self) -> dict[str, list[Any]]:
        """Return the table of columns, by falling score, as lists by name."""
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
        """Return the table of pairs, strongest first, as lists by name."""
        fields = ("first", "second", "strength", "p_value", "shape")
        return {name: [getattr(pair, name) for pair in self.pairs] for name in fields}

    def columns_to_frame(self) -> Any:
        """Return the table of columns as a pandas data frame."""
        return require("pandas", "test", "A data frame").DataFrame(self.columns_to_dict())

    def pairs_to_frame(self) -> Any:
        """Return the table of pairs as a pandas data frame."""
        return require("pandas", "test", "A data frame").DataFrame(self.pairs_to_dict())

    @property
    def summary(self) -> str:
        """Return how many pairs and columns are significant, in two sentences.

        A column counts once: as significant on its own, or as significant in a pair only.
        """
        found = len(self.significant_pairs())
        columns = self.significant_columns()
        own = self.marginal_p_values[columns]
        n_own = int((own * (2 - own) < 0.05).sum())
        many = "at least " if found and found == len(self.pairs) < self.n_tests else ""
        pairs = (
            f"{many}{found} pair{' is' if found == 1 else 's are'} significant" if found else "no pair is significant"
        )
        pairs += f" (p < 0.05, corrected for {self.n_tests:,} pairs)"
        split = f": {n_own:,} on their own, {len(columns) - n_own:,} only in a pair" if len(columns) else ""
        return (
            f"{pairs[:1].upper()}{pairs[1:]}. {len(columns):,} of {len(self.names):,} columns are significant{split}; "
            f"{self.n_samples:,} rows."
        )

    def _rows(self, limit: int = 10) -> list[tuple[str, str, str, str, str]]:
        return [
            (pair.first, pair.second, f"{pair.strength:.2f}", f"{pair.p_value:.2g}", pair.shape)
            for pair in self.pairs[:limit]
        ]

    def __repr__(self) -> str:
        lines = [f"PairSearch ({self.method}): {self.summary}"]
        rows = [("first", "second", "strength", "p value", "shape"), *self._rows()]
        if len(rows) > 1:
            widths = [max(len(row[k]) for row in rows) for k in range(5)]
            lines += ["  " + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]
        hidden = len(self.pairs) - (len(rows) - 1)
        if hidden:
            lines.append(f"  ... and {hidden} more in .pairs")
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("first", "second", "strength", "p value", "shape"))
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in self._rows(20)
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return f"<div><p><b>Pairs</b>: {html.escape(self.summary)}</p>{table}{note}</div>"

    def index_of(self, column: int | str) -> int:
        """Return the place of a column that is given by name or index.

        Parameters
        ----------
        column : int or str
            The column.
        """
        if isinstance(column, str):
            if column not in self.names:
                raise ValueError(f"There is no column {column!r}.{suggest(column, self.names)}")
            return self.names.index(column)
        if not -len(self.names) <= column < len(self.names):
            raise ValueError(f"There is no column {column}; indices go from 0 to {len(self.names) - 1}.")
        return int(column) % len(self.names)

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

        return draw_pair(*self._find_pair(first, second), ax=ax)

    def cells(self, first: int | str | None = None, second: int | str | None = None) -> PairCells:
        """Return the target in cells of two columns: the numbers behind the picture of a pair.

        Parameters
        ----------
        first, second : int, str or None, default=None
            The columns, as in :meth:`plot`.
        """

        return describe_cells(*self._find_pair(first, second))

    def _find_pair(self, first: int | str | None, second: int | str | None) -> tuple[Any, Any, int, int]:
        """Return table, target and the places of two columns."""
        if first is None:
            if not self.pairs:
                raise ValueError(f"There is no pair to draw. {self.note}".strip())
            i, j = self.pairs[0].indices
        else:
            i = self.index_of(first)
            j = self.index_of(second) if second is not None else int(self.partners[i])
            if j < 0:
                raise ValueError(f"Column {self.names[i]!r} has no partner; give two columns.")
        if self._table is None:
            raise ValueError("This result was stored without its table; run find_pairs again to draw pairs.")
        return self._table, self._target, i, j
