"""Hold a table in memory: numbers in one float32 block, text as codes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz._utils.extras import require

if TYPE_CHECKING:
    from tamiz.tables.target import Target


#: A whole number with decimals that are zero.
_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))\.0+")


def load_arrow() -> Any:
    """Import pyarrow, or raise with the command that installs it."""
    return require("pyarrow", "cli", "Reading a table")


def _canonical_spelling(category: str) -> str:
    lowered = category.lower()
    if lowered in ("true", "false"):
        return lowered
    whole = _WHOLE.fullmatch(category)
    return whole[1] if whole else category


@dataclass
class TextColumn:
    """Hold a column of text.

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
    def from_values(cls, values: Sequence[str | None]) -> TextColumn:
        """Build a column from plain values, None where missing."""
        pa = load_arrow()
        return cls.from_arrow(pa.chunked_array([pa.array(values, type=pa.string())]))

    @classmethod
    def from_arrow(cls, chunked: Any) -> TextColumn:
        """Build a column from an arrow column of text, plain or dictionary-encoded."""
        pa = load_arrow()
        if not pa.types.is_dictionary(chunked.type):
            chunked = chunked.cast(pa.string()).dictionary_encode()
        chunked = chunked.unify_dictionaries()
        if chunked.num_chunks == 0:
            return cls(np.empty(0, dtype=np.int32), [])
        found = [str(value) for value in chunked.chunk(0).dictionary.to_pylist()]
        codes = np.concatenate([chunk.indices.fill_null(-1).to_numpy() for chunk in chunked.chunks])
        # Sorted, and only those that occur: the codes must not depend on the order of the rows.
        used = np.unique(codes[codes >= 0])
        order = sorted(used.tolist(), key=found.__getitem__)
        position = np.full(len(found) + 1, -1, dtype=np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        return cls(position[codes], [found[i] for i in order])

    def canonical(self) -> TextColumn:
        """Return the column with booleans and whole numbers spelt in one way, whatever the format of the file.

        Examples
        --------
        >>> TextColumn.from_values(["True", "FALSE", "true"]).canonical().values()
        ['true', 'false', 'true']
        >>> TextColumn.from_values(["1.0", "2", "01"]).canonical().values()
        ['1', '2', '01']
        """
        spelt = [_canonical_spelling(category) for category in self.categories]
        if spelt == self.categories:
            return self
        categories = sorted(set(spelt))
        places = {category: place for place, category in enumerate(categories)}
        position = np.array([*(places[category] for category in spelt), -1], dtype=np.int32)
        return TextColumn(position[self.codes], categories)

    def take(self, rows: np.ndarray) -> TextColumn:
        """Return the column for some of the rows; the categories stay the same."""
        return TextColumn(self.codes[rows], self.categories)

    def values(self) -> list[str | None]:
        """Return the text of each row, None where it is missing."""
        return [None if code < 0 else self.categories[code] for code in self.codes]


@dataclass
class DataTable:
    """Hold a table in memory, as :func:`tamiz.tables.read_table` returns it.

    Rows can be taken by indexing (``table[rows]``), so scikit-learn's cross-validation splits it as it splits an array;
    put :class:`~tamiz.tables.TableEncoder` first in the pipeline.

    Parameters
    ----------
    path : Path
        File the table was read from.
    format : str
        Name of its format.
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
        What was subtracted from each numeric column, see :mod:`tamiz.tables.centring`.
    target_column : ndarray of float64, TextColumn or None, default=None
        The target column as it was read.
    target_name : str or None, default=None
        Its name.
    target : Target or None, default=None
        The target as classes or numbers, once :func:`~tamiz.tables.target.resolve_target` has looked at it.
    source : dict, default={}
        Facts about the file (delimiter, header) that are needed to write another in the same way.
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
    target_column: np.ndarray | TextColumn | None = None
    target_name: str | None = None
    target: Target | None = None
    source: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Put zeros where no centres are given."""
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
            target_column=target_column,
            target=target,
        )
