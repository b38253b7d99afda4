"""Hold a table in memory: numbers in one float32 block, text as codes."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz._utils.extras import require

if TYPE_CHECKING:
    from tamiz.tables.columns import Alert
    from tamiz.tables.target import Target

#: A whole number with decimals that are zero.
_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))\.0+")
#: A column gets a centre if float32 would change a value by more than this part of the column's half width.
_TOLERANCE = 1e-4
_CELLS_AT_ONCE = 1_000_000


def load_polars() -> Any:
    """Import polars, or raise with the command that installs it."""
    return require("polars", "cli", "Reading a table")


@dataclass
class TextColumn:
    """Column of text.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        Position of the value of each row in ``categories``; -1 where it is missing.
    categories : list of str
        The different values, sorted.

    Examples
    --------
    >>> column = TextColumn.from_values(["b", None, "a", "b"])
    >>> column.categories, column.codes.tolist()
    (['a', 'b'], [1, -1, 0, 1])
    """

    codes: np.ndarray
    categories: list[str]

    @classmethod
    def from_values(cls, values: Any) -> TextColumn:
        """Build a column from plain values or a polars series of text; None where missing."""
        pl = load_polars()
        series = pl.Series(values, dtype=pl.String)
        # Sorted, and only those that occur: the codes must not depend on the order of the rows.
        categories = series.drop_nulls().unique().sort().to_list()
        codes = series.cast(pl.Enum(categories)).to_physical().cast(pl.Int32).fill_null(-1)
        return cls(codes.to_numpy(), categories)

    def rename(self, names: Sequence[str]) -> TextColumn:
        """Give each category a new name; categories of the same name become one."""
        if list(names) == self.categories:
            return self
        categories = sorted(set(names))
        places = {category: place for place, category in enumerate(categories)}
        position = np.array([*(places[name] for name in names), -1], dtype=np.int32)
        return TextColumn(position[self.codes], categories)

    def canonical(self) -> TextColumn:
        """Spell booleans and whole numbers in one way, whatever the format of the file.

        Examples
        --------
        >>> TextColumn.from_values(["True", "FALSE", "true"]).canonical().values()
        ['true', 'false', 'true']
        >>> TextColumn.from_values(["1.0", "2", "01"]).canonical().values()
        ['1', '2', '01']
        """
        return self.rename([_canonical_spelling(category) for category in self.categories])

    def merge_spellings(self) -> TextColumn:
        """Join values that differ in case only, under the most frequent spelling.

        Examples
        --------
        >>> TextColumn.from_values(["F", "f", "m", "F"]).merge_spellings().values()
        ['F', 'F', 'm', 'F']
        """
        if len({category.casefold() for category in self.categories}) == len(self.categories):
            return self
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.categories))
        chosen: dict[str, int] = {}
        for code, category in enumerate(self.categories):
            best = chosen.setdefault(category.casefold(), code)
            if counts[code] > counts[best]:
                chosen[category.casefold()] = code
        return self.rename([self.categories[chosen[category.casefold()]] for category in self.categories])

    def align(self, known: Iterable[str]) -> TextColumn:
        """Spell values as in ``known`` where they differ from one of these in case only."""
        known = set(known)
        folded = Counter(value.casefold() for value in known)
        spelling = {value.casefold(): value for value in known if folded[value.casefold()] == 1}
        return self.rename(
            [value if value in known else spelling.get(value.casefold(), value) for value in self.categories]
        )

    def take(self, rows: np.ndarray) -> TextColumn:
        """Return the column for some of the rows; the categories stay the same."""
        return TextColumn(self.codes[rows], self.categories)

    def values(self) -> list[str | None]:
        """Return the text of each row, None where it is missing."""
        return [None if code < 0 else self.categories[code] for code in self.codes]


def _canonical_spelling(category: str) -> str:
    lowered = category.lower()
    if lowered in ("true", "false"):
        return lowered
    whole = _WHOLE.fullmatch(category)
    return whole[1] if whole else category


def pack_numbers(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Store numbers as float32, less a centre where float32 cannot tell the values of a column apart.

    Seconds since 1970 or long identifiers differ in digits that float32 does not have. Their columns are stored as the
    difference to the middle of their range; all other columns have the centre 0 and keep their values.

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_columns)
        Numbers of any type; NaN is missing.

    Returns
    -------
    numbers : ndarray of float32, shape (n_rows, n_columns)
    centres : ndarray of float64, shape (n_columns,)

    Examples
    --------
    >>> numbers, centres = pack_numbers(np.array([[1_700_000_001.0, 50.0], [1_700_000_005.0, 0.5]]))
    >>> numbers.tolist(), centres.tolist()
    ([[-2.0, 50.0], [2.0, 0.5]], [1700000003.0, 0.0])
    """
    centres = np.zeros(block.shape[1])
    numbers = np.empty(block.shape, dtype=np.float32)
    if not block.size:
        return numbers, centres
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # numbers too large for float32 become infinite, which raises later
        low, high = np.fmin.reduce(block, axis=0).astype(np.float64), np.fmax.reduce(block, axis=0).astype(np.float64)
        # float32 rounds by at most 2^-24 of a value: below this ratio no column can need a centre.
        suspects = np.maximum(-low, high) * 2.0**-24 > _TOLERANCE * (high / 2 - low / 2)
        for column in np.flatnonzero(suspects | ~np.isfinite(high - low)):
            values = block[:, column].astype(np.float64)
            values = values[np.isfinite(values) & (np.abs(values) < 3e38)]
            if values.size == 0 or values.min() == values.max():
                continue
            worst = np.abs(values.astype(np.float32) - values).max()
            least, most = values.min(), values.max()
            if worst > _TOLERANCE * (most / 2 - least / 2):
                # A whole number where the range allows: differences of whole numbers are exact.
                centres[column] = np.rint(least / 2 + most / 2) if most - least >= 1 else least
        step = max(1, _CELLS_AT_ONCE // block.shape[1])
        for row in range(0, block.shape[0], step):
            part = block[row : row + step]
            numbers[row : row + step] = part - centres if centres.any() else part
    return numbers, centres


@dataclass
class DataTable:
    """Table in memory, as :func:`tamiz.tables.read_table` returns it.

    Rows can be taken by indexing (``table[rows]``), so scikit-learn's cross-validation splits it as it splits an array;
    put :class:`~tamiz.tables.TableEncoder` first in the pipeline.

    Parameters
    ----------
    path : Path
        File the table was read from.
    format : str
        Name of its format; "frame" for a data frame.
    names : list of str
        All columns of the file, in its order, including those that were not read.
    n_rows : int
        Number of rows.
    numbers : ndarray of float32, shape (n_rows, len(number_columns)), or csr matrix
        The numeric columns, each less its centre; NaN is missing.
    number_columns : ndarray of int
        Position in the file of each numeric column.
    texts : dict of int to TextColumn, default={}
        Columns of text, by position in the file.
    left_out : dict of int to str, default={}
        Columns that are not used, and why.
    centres : ndarray of float64, shape (len(number_columns),), default=zeros
        What was subtracted from each numeric column, see :func:`pack_numbers`.
    origins : dict of int to float, default={}
        First date of each column of dates, in days since 1970; its numbers are days since that date.
    alerts : list of Alert, default=[]
        What a user should know about the columns.
    target_column : ndarray of float64, TextColumn or None, default=None
        The target column as it was read.
    target_name : str or None, default=None
        Its name.
    target : Target or None, default=None
        The target as classes or numbers, see :func:`~tamiz.tables.target.resolve_target`.
    source : dict, default={}
        Facts about the file (delimiter, header, temporary copy) that are needed to read it again.
    """

    path: Path
    format: str
    names: list[str]
    n_rows: int
    numbers: Any
    number_columns: np.ndarray
    texts: dict[int, TextColumn] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)
    centres: np.ndarray = field(default_factory=lambda: np.zeros(0))
    origins: dict[int, float] = field(default_factory=dict)
    alerts: list[Alert] = field(default_factory=list)
    target_column: np.ndarray | TextColumn | None = None
    target_name: str | None = None
    target: Target | None = None
    source: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.centres.size != self.number_columns.size:
            self.centres = np.zeros(self.number_columns.size)

    @property
    def y(self) -> np.ndarray:
        """Class labels or numbers of the target, one per row."""
        if self.target is None:
            raise AttributeError("This table was read without a target: call read_table with `target`.")
        return self.target.y

    @property
    def task(self) -> str | None:
        """``"classification"``, ``"regression"``, or None for a table without a target."""
        return None if self.target is None else self.target.task

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns that are used."""
        return self.n_rows, self.number_columns.size + len(self.texts)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, key: Any) -> DataTable:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # scikit-learn indexes with [rows, ...]
            key = key[0]
        rows = np.arange(self.n_rows)[key]
        if rows.ndim != 1:
            raise TypeError("Index a table by several rows: a slice, a list or an array of numbers or booleans.")
        return self.take(rows)

    def column_values(self, name: str) -> np.ndarray:
        """Return the values of one column: float64 numbers in the unit of the file, or text (None where missing).

        Parameters
        ----------
        name : str
            Name of a column that was read.
        """
        position = self.names.index(name)
        if position in self.texts:
            return np.array(self.texts[position].values(), dtype=object)
        place = self.number_columns.tolist().index(position)
        taken = self.numbers[:, [place]]
        values = taken.toarray() if hasattr(taken, "toarray") else taken
        return values.ravel().astype(np.float64) + self.centres[place]

    def take(self, rows: np.ndarray) -> DataTable:
        """Return the table with some of the rows."""
        target = self.target
        if target is not None:
            target = dataclasses.replace(target, y=target.y[rows], rows=target.rows[rows])
        target_column: Any = self.target_column
        if isinstance(target_column, TextColumn):
            target_column = target_column.take(rows)
        elif target_column is not None:
            target_column = target_column[rows]
        return dataclasses.replace(
            self,
            n_rows=len(rows),
            numbers=self.numbers[rows],
            texts={column: text.take(rows) for column, text in self.texts.items()},
            left_out=dict(self.left_out),
            alerts=list(self.alerts),
            target_column=target_column,
            target=target,
        )
