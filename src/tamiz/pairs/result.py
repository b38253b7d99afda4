"""The result of a search for pairs: tables of columns and of pairs, data frames, text, HTML and pictures."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz._extras import require
from tamiz._names import suggest

if TYPE_CHECKING:
    from tamiz.pairs.cells import PairCells


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

    def _headline(self) -> str:
        found, columns = len(self.significant_pairs()), len(self.significant_columns())
        listed = "all listed " if found and found == len(self.pairs) < self.n_tests else ""
        return (
            f"{listed}{found} significant pair{'' if found == 1 else 's'} and {columns} significant columns "
            f"(corrected p < 0.05) among {len(self.names):,} columns, {self.n_samples:,} rows"
        )

    def _rows(self, limit: int = 10) -> list[tuple[str, str, str, str, str]]:
        return [
            (pair.first, pair.second, f"{pair.strength:.2f}", f"{pair.p_value:.2g}", pair.shape)
            for pair in self.pairs[:limit]
        ]

    def __repr__(self) -> str:
        lines = [f"PairSearch ({self.method}): {self._headline()}"]
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
        return f"<div><p><b>Pairs</b>: {html.escape(self._headline())}</p>{table}{note}</div>"

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
        from tamiz.pairs.plot import draw_pair

        return draw_pair(*self._find_pair(first, second), ax=ax)

    def cells(self, first: int | str | None = None, second: int | str | None = None) -> PairCells:
        """Return the target in cells of two columns: the numbers behind the picture of a pair.

        Parameters
        ----------
        first, second : int, str or None, default=None
            The columns, as in :meth:`plot`.
        """
        from tamiz.pairs.cells import describe_cells

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
