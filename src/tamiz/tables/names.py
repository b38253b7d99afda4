"""Find columns by name, number, range or pattern, and choose those that are read."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamiz._utils.names import suggest
from tamiz._utils.text import list_some, quote
from tamiz.errors import TableArgumentError, TableError

#: Cells that mean a missing value, besides an empty one.
MISSING = (
    "",
    "NA",
    "N/A",
    "n/a",
    "na",
    "NaN",
    "nan",
    "NAN",
    "-nan",
    "NULL",
    "null",
    "None",
    "none",
    "?",
    "#N/A",
    "<NA>",
)


def clean_column_names(names: Sequence[str]) -> list[str]:
    """Return names without blanks around them; number those that are empty.

    Parameters
    ----------
    names : sequence of str
        Names as they stand in the file.

    Raises
    ------
    TableError
        If two columns have the same name.

    Examples
    --------
    >>> clean_column_names(["a", "", " b "])
    ['a', 'column_2', 'b']
    """
    # Half of a surrogate pair, which only NPZ files can hold, has no UTF-8.
    encodable = [name.encode("utf-8", "replace").decode() for name in names]
    cleaned = [name.strip() or f"column_{number}" for number, name in enumerate(encodable, start=1)]
    first: dict[str, int] = {}
    for number, name in enumerate(cleaned, start=1):
        if name in first:
            raise TableError(
                f"Two columns are called {quote(name)} (numbers {first[name]} and {number}). "
                "Rename one of them: names must be unique."
            )
        first[name] = number
    return cleaned


def find_column(spec: str, names: Sequence[str], kind: str = "column") -> int:
    """Return the position of a column given by name, or by number counted from 1 (negative: from the end).

    A name takes precedence over a number.

    Parameters
    ----------
    spec : str
        Name or number.
    names : sequence of str
        Names of all columns.
    kind : str, default="column"
        What the column is, for the message.

    Examples
    --------
    >>> names = ["age", "dose", "tumour"]
    >>> find_column("dose", names), find_column("1", names), find_column("-1", names)
    (1, 0, 2)
    >>> find_column("tumor", names, "target")
    Traceback (most recent call last):
    tamiz.errors.TableArgumentError: There is no target 'tumor' among the 3 columns. Did you mean 'tumour'?
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
    hint = suggest(spec, names, n=3) or f" The columns are {list_some(names, limit=8)}."
    raise TableArgumentError(f"There is no {kind} {quote(spec)} among the {len(names):,} columns.{hint}")


def find_columns(specs: Sequence[str], names: Sequence[str], kind: str = "column") -> set[int]:
    """Return the positions of several columns.

    Parameters
    ----------
    specs : sequence of str
        Each a name or number, a range of numbers (``3-7``) or a pattern (``gene_*``).
    names : sequence of str
        Names of all columns.
    kind : str, default="column"
        What the columns are, for the message.

    Examples
    --------
    >>> sorted(find_columns(["id", "3-4", "g*"], ["id", "x", "y", "z", "g1", "g2"]))
    [0, 2, 3, 4, 5]
    """
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
                    raise TableArgumentError(f"No column matches {quote(spec)} ({kind}).")
                found.update(matches)
                continue
        found.add(find_column(spec, names, kind))
    return found


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file; the record that :class:`~tamiz.tables.Format` readers take.

    Parameters
    ----------
    target : str or None, default=None
        Column to predict: name, or number counted from 1.
    need_target : bool, default=False
        Raise if there is no target.
    ignore : sequence of str, default=()
        Columns to leave out: names, numbers, ranges or patterns.
    roles : sequence of (str, str), default=()
        Columns that are no features, after what they are: "target" (a further one), "groups", "time" or "weights".
    categorical : sequence of str, default=()
        Columns of numbers that are names of categories.
    texts : sequence of str, default=()
        Columns whose text is never read as numbers or dates.
    columns : sequence of str or None, default=None
        The only columns to read (those of a model); each must be there.
    format : str or None, default=None
        Name of the format; None finds it from the suffix.
    delimiter : str or None, default=None
        What separates the cells of a CSV file; None finds it.
    header : bool or None, default=None
        Whether the first row holds names; None finds it.
    encoding : str or None, default=None
        Encoding of a text file; None takes UTF-8, or what a mark at its beginning says.
    skip_rows : int, default=0
        Lines above the table to skip.
    decimal : {".", ","}, default="."
        Decimal mark of a text file. Columns that only a decimal comma explains are found without it.
    na_values : sequence of str or None, default=None
        Cells of a text file that mean a missing value, besides empty ones; None takes the usual words (NA, null, ...).
    copies : float, default=1.0
        How many copies of the table the work that follows will hold, for the check of the memory.
    """

    target: str | None = None
    need_target: bool = False
    ignore: Sequence[str] = ()
    roles: Sequence[tuple[str, str]] = ()
    categorical: Sequence[str] = ()
    texts: Sequence[str] = ()
    columns: Sequence[str] | None = None
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    encoding: str | None = None
    skip_rows: int = 0
    decimal: str = "."
    na_values: Sequence[str] | None = None
    copies: float = 1.0

    @property
    def missing_words(self) -> tuple[str, ...]:
        """Cells that mean a missing value."""
        return MISSING if self.na_values is None else ("", *(value.strip() for value in self.na_values))


@dataclass
class ColumnChoice:
    """Which columns of a file to read.

    Parameters
    ----------
    wanted : ndarray of bool, shape (n_columns,)
        Columns to read, without the target.
    as_text : ndarray of bool, shape (n_columns,)
        Columns to read as text whatever they hold.
    target : int or None, default=None
        Position of the target.
    """

    wanted: np.ndarray
    as_text: np.ndarray
    target: int | None = None

    @property
    def positions(self) -> list[int]:
        """Columns to read and the target, in the order of the file."""
        return sorted({*np.flatnonzero(self.wanted).tolist(), *([] if self.target is None else [self.target])})


def choose_columns(names: Sequence[str], options: ReadOptions) -> ColumnChoice:
    """Find the columns that the options name.

    Parameters
    ----------
    names : sequence of str
        Names of all columns.
    options : ReadOptions
        Target, columns to ignore and so on.

    Examples
    --------
    >>> choice = choose_columns(["id", "a", "b"], ReadOptions(target="b", ignore=["id"]))
    >>> choice.wanted.tolist(), choice.target
    ([False, True, False], 2)
    """
    as_text = np.zeros(len(names), dtype=bool)
    if options.columns is not None:
        return _choose_named(names, options.columns, options.categorical, as_text)
    if options.target is None and options.need_target:
        raise TableArgumentError(
            f"Say which column is the target with `target` (name or number). "
            f"The columns are {list_some(names, limit=8)}."
        )
    target = None if options.target is None else find_column(options.target, names, "target")
    wanted = np.ones(len(names), dtype=bool)
    for index in find_columns(options.ignore, names, "column to ignore"):
        if index == target:
            raise TableArgumentError(f"The target {names[index]!r} cannot be ignored.")
        wanted[index] = False
    targets = {target}
    for role, spec in options.roles:
        index = find_column(spec, names, "target" if role == "target" else f"column for {role}")
        if index in targets:
            name = quote(names[index])
            if role == "target":
                raise TableArgumentError(f"`target` names {name} twice; name every target once.")
            raise TableArgumentError(f"`{role}` names the target {name} itself; name another column.")
        if role == "target":
            targets.add(index)
        wanted[index] = False
    for index in find_columns(options.categorical, names, "categorical column"):
        as_text[index] = True
    if target is not None:
        wanted[target] = False
    return ColumnChoice(wanted, as_text, target)


def _choose_named(
    names: Sequence[str], columns: Sequence[str], categorical: Sequence[str], as_text: np.ndarray
) -> ColumnChoice:
    """Choose the columns that a model reads."""
    position = {name: index for index, name in enumerate(names)}
    lacking = [name for name in columns if name not in position]
    if lacking:
        raise TableError(
            f"The table lacks {len(lacking)} column(s) that the model needs: {list_some(lacking, limit=10)}."
        )
    wanted = np.zeros(len(names), dtype=bool)
    wanted[[position[name] for name in columns]] = True
    as_text[[position[name] for name in categorical]] = True
    return ColumnChoice(wanted, as_text)
