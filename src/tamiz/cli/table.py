"""The table as the commands see it: numbers in one float32 block, text as codes, columns by name or number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tamiz.cli.errors import EXIT_USAGE, UserError, did_you_mean, listed, shorten


@dataclass
class TextColumn:
    """A column of text: ``codes[i]`` is the position of row i's value in ``categories``, -1 where it is missing.

    Examples
    --------
    >>> column = TextColumn.of(["b", None, "a", "b"])
    >>> column.categories, column.codes.tolist()
    (['a', 'b'], [1, -1, 0, 1])
    """

    codes: np.ndarray
    categories: list[str]

    @classmethod
    def of(cls, values: Sequence[str | None]) -> TextColumn:
        """From plain values, None where missing; the categories come out sorted."""
        import pyarrow as pa

        return cls.from_arrow(pa.chunked_array([pa.array(values, type=pa.string())]))

    @classmethod
    def from_arrow(cls, chunked: Any) -> TextColumn:
        """From an arrow column of text, plain or dictionary-encoded."""
        import pyarrow as pa

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

    def take(self, rows: np.ndarray) -> TextColumn:
        """The same column for some of the rows."""
        return TextColumn(self.codes[rows], self.categories)

    def values(self) -> list[str | None]:
        """The text of each row."""
        return [None if code < 0 else self.categories[code] for code in self.codes]


@dataclass
class Table:
    """A table in memory.

    Attributes
    ----------
    path, format : Path, str
        Where it came from.
    names : list of str
        All columns of the file, in its order, including those that were not read.
    n_rows : int
        How many rows there are.
    numbers : ndarray of float32, shape (n_rows, len(number_columns)), or csr matrix
        The numeric columns; NaN is missing.
    number_columns : ndarray of int
        Which column of the file each of them is.
    texts : dict of int to TextColumn
        The columns of text, by position in the file.
    left_out : dict of int to str
        Columns that were not used, and why.
    target : ndarray of float64, TextColumn or None
        The target column, if one was asked for.
    target_name : str or None
        Its name.
    options : dict
        How the file was read (delimiter, header), to write another in the same way.
    """

    path: Path
    format: str
    names: list[str]
    n_rows: int
    numbers: Any
    number_columns: np.ndarray
    texts: dict[int, TextColumn] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)
    target: np.ndarray | TextColumn | None = None
    target_name: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def take(self, rows: np.ndarray) -> Table:
        """The same table with some of the rows."""
        texts = {column: text.take(rows) for column, text in self.texts.items()}
        target = self.target
        if isinstance(target, TextColumn):
            target = target.take(rows)
        elif target is not None:
            target = target[rows]
        return Table(
            self.path,
            self.format,
            self.names,
            len(rows),
            self.numbers[rows],
            self.number_columns,
            texts,
            self.left_out,
            target,
            self.target_name,
            self.options,
        )


def name_columns(names: Sequence[str]) -> list[str]:
    """Names for all columns: empty ones are called by their number; two of one name are refused.

    Examples
    --------
    >>> name_columns(["a", "", " b "])
    ['a', 'column_2', 'b']
    """
    cleaned = [name.strip() or f"column_{number}" for number, name in enumerate(names, start=1)]
    first: dict[str, int] = {}
    for number, name in enumerate(cleaned, start=1):
        if name in first:
            raise UserError(
                f"Two columns are called {shorten(name)} (numbers {first[name]} and {number}). "
                "Rename one of them: names must be unique."
            )
        first[name] = number
    return cleaned


def find_column(spec: str, names: Sequence[str], what: str = "column") -> int:
    """The position of a column given by name, or by number counted from 1 (negative: from the end).

    A column that is called like the number wins.

    Examples
    --------
    >>> names = ["age", "dose", "tumour"]
    >>> find_column("dose", names), find_column("1", names), find_column("-1", names)
    (1, 0, 2)
    >>> find_column("tumor", names, "target")
    Traceback (most recent call last):
    tamiz.cli.errors.UserError: There is no target 'tumor' among the 3 columns. Did you mean 'tumour'?
    """
    for candidate in (spec, spec.strip()):
        if candidate in names:
            return list(names).index(candidate)
    try:
        number = int(spec)
    except ValueError:
        number = 0
    if 1 <= number <= len(names):
        return number - 1
    if -len(names) <= number <= -1:
        return len(names) + number
    hint = did_you_mean(spec, names) or f" The columns are {listed(names, limit=8)}."
    raise UserError(f"There is no {what} {shorten(spec)} among the {len(names):,} columns.{hint}", EXIT_USAGE)


def find_columns(specs: Sequence[str], names: Sequence[str], what: str = "column") -> set[int]:
    """Several columns: each spec is a name or number, a range of numbers (``3-7``) or a pattern (``gene_*``).

    Examples
    --------
    >>> sorted(find_columns(["id", "3-4", "g*"], ["id", "x", "y", "z", "g1", "g2"]))
    [0, 2, 3, 4, 5]
    """
    import fnmatch
    import re

    known = set(names)
    found: set[int] = set()
    for spec in specs:
        if spec not in known:
            numbers = re.fullmatch(r"(\d+)-(\d+)", spec)
            if numbers and 1 <= int(numbers[1]) <= int(numbers[2]) <= len(names):
                found.update(range(int(numbers[1]) - 1, int(numbers[2])))
                continue
            if any(letter in spec for letter in "*?["):
                matches = [i for i, name in enumerate(names) if fnmatch.fnmatchcase(name, spec)]
                if not matches:
                    raise UserError(f"No column matches {shorten(spec)} ({what}).", EXIT_USAGE)
                found.update(matches)
                continue
        found.add(find_column(spec, names, what))
    return found
