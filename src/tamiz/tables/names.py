"""How a table is read: options, names of columns, the columns that are chosen, and the memory there is."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tamiz._utils.memory import available_memory
from tamiz._utils.progress import format_size
from tamiz._utils.text import counted, list_some, quote, suggest
from tamiz.errors import TableArgumentError, TableError, TableMemoryError

#: Cells that mean a missing value.
MISSING = (
    "",
    *["NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "-nan", "NULL", "null", "None", "none", "?", "#N/A", "<NA>"],
)


def clean_column_names(names: Sequence[str]) -> list[str]:
    """Strip names of blanks, number those that are empty, and raise TableError if two are the same.

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
        if first.setdefault(name, number) != number:
            raise TableError(
                f"Two columns are called {quote(name)} (numbers {first[name]} and {number}). "
                "Rename one of them: names must be unique."
            )
    return cleaned


def find_column(spec: str, names: Sequence[str], kind: str = "column") -> int:
    """Find a column by its name, or else by its number counted from 1 (negative: from the end).

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
    if not names:
        raise TableArgumentError("The table has no columns.")
    for candidate in (spec, spec.strip()):
        if candidate in names:
            return list(names).index(candidate)
    number = int(spec) if re.fullmatch(r"\s*[-+]?\d{1,9}\s*", spec) else 0
    if 1 <= abs(number) <= len(names):
        return number - 1 if number > 0 else len(names) + number
    hint = suggest(spec, names, n=3) or f" The columns are {list_some(names, limit=8)}."
    raise TableArgumentError(f"There is no {kind} {quote(spec)} among the {len(names):,} columns.{hint}")


def positions_of(wanted: Iterable[str], names: Sequence[str]) -> dict[str, int]:
    """Find the columns of a model by their names; raise TableError if any is not there."""
    position = {name: index for index, name in enumerate(names)}
    wanted = list(dict.fromkeys(wanted))
    if lacking := [name for name in wanted if name not in position]:
        raise TableError(
            f"The table lacks {counted(len(lacking), 'column')} that the model needs: {list_some(lacking, limit=10)}."
        )
    return {name: position[name] for name in wanted}


def find_columns(specs: Sequence[str], names: Sequence[str], kind: str = "column") -> set[int]:
    """Find several columns.

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
        numbers = None if spec in known else re.fullmatch(r"(\d+)-(\d+)", spec)
        if numbers and 1 <= int(numbers[1]) <= int(numbers[2]) <= len(names):
            found.update(range(int(numbers[1]) - 1, int(numbers[2])))
        elif spec not in known and any(letter in spec for letter in "*?["):
            matches = [i for i, name in enumerate(names) if fnmatch.fnmatchcase(name, spec)]
            if not matches:
                raise TableArgumentError(f"No column matches {quote(spec)} ({kind}).")
            found.update(matches)
        else:
            found.add(find_column(spec, names, kind))
    return found


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table.

    Parameters
    ----------
    target : str or None, default=None
        Column to predict: its name, or its number counted from 1 (-1 is the last). NPZ and svmlight files have their own.
    need_target : bool, default=False
        Raise if there is no target.
    ignore : sequence of str, default=()
        Columns to leave out: names, numbers, ranges ("3-7") or patterns ("id_*").
    roles : sequence of (str, str), default=()
        Columns that are no features, after what they are: "target" (a further one), "groups", "time" or "weights".
    categorical : sequence of str, default=()
        Columns of numbers that are names of categories; their values are taken as they are spelt.
    texts : sequence of str, default=()
        Columns whose text is never read as numbers or dates.
    columns : sequence of str or None, default=None
        The only columns to read (those of a model), each of which must be there; none is left out, no target is read, and
        numbers keep float64.
    format : str or None, default=None
        Name of the format; None finds it from the suffix.
    delimiter : str or None, default=None
        What separates the cells of a CSV file; None finds it.
    header : bool or None, default=None
        Whether the first row of a CSV or Excel file holds names; None finds it.
    encoding : str or None, default=None
        Encoding of a text file, such as "latin1"; None takes UTF-8, or what a mark at its beginning says.
    skip_rows : int, default=0
        Lines above the table to skip (CSV, TSV and Excel).
    decimal : {".", ","}, default="."
        Decimal mark of a text file; columns that only a decimal comma explains are found without it.
    na_values : sequence of str or None, default=None
        Cells of a text file that mean a missing value, besides empty ones; None takes the usual words (NA, null, ...),
        and with an empty list "none" or "NA" is a value.
    copies : float, default=1.0
        How many copies of the table the work that follows will hold; a table that does not fit raises TableMemoryError.
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

    def __post_init__(self) -> None:
        if isinstance(self.skip_rows, bool) or not isinstance(self.skip_rows, int) or self.skip_rows < 0:
            raise TableArgumentError(f"`skip_rows` must be a number of lines, at least 0; got {self.skip_rows!r}.")
        if self.decimal not in (".", ","):
            raise TableArgumentError(f"`decimal` must be a point or a comma, got {self.decimal!r:.40}.")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise TableArgumentError(f"`delimiter` must be one character, got {self.delimiter!r:.40}.")

    @property
    def missing_words(self) -> tuple[str, ...]:
        """Cells that mean a missing value."""
        return MISSING if self.na_values is None else ("", *(value.strip() for value in self.na_values))


Choice = tuple[list[int], set[int], int | None]


def choose_columns(names: Sequence[str], options: ReadOptions) -> Choice:
    """Find the columns to read, the target among them; those that are text whatever they hold; the target.

    Examples
    --------
    >>> choose_columns(["id", "a", "b"], ReadOptions(target="b", ignore=["id"]))
    ([1, 2], set(), 2)
    """
    if options.columns is not None:
        position = positions_of(options.columns, names)
        return sorted({*position.values()}), {position[name] for name in options.categorical}, None
    if options.target is None and options.need_target:
        raise TableArgumentError(
            f"Say which column is the target with `target` (name or number). The columns are {list_some(names, limit=8)}."
        )
    target = None if options.target is None else find_column(options.target, names, "target")
    unwanted = find_columns(options.ignore, names, "column to ignore")
    if target in unwanted:
        raise TableArgumentError(f"The target {names[target]!r} cannot be ignored.")
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
        unwanted.add(index)
    as_text = find_columns(options.categorical, names, "categorical column")
    return [i for i in range(len(names)) if i not in unwanted], as_text, target


def check_memory(amount: float, what: str) -> None:
    """Raise TableMemoryError if fewer than ``amount`` bytes are available.

    Examples
    --------
    >>> check_memory(10, "the table")
    >>> check_memory(2**60, "the table")
    Traceback (most recent call last):
    tamiz.errors.TableMemoryError: the table needs about 1152921504.6 GB of memory, ... are available...
    """
    available = available_memory()
    if available is not None and amount > available:
        raise TableMemoryError(
            f"{what} needs about {format_size(amount)} of memory, but only {format_size(available)} are "
            "available. Leave columns out with `ignore`, take fewer rows, or use a machine with more memory."
        )
