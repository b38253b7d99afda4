"""Hold a table in memory: numbers in one block, text as codes; turn data frames of any library into tables."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz._utils.text import quote
from tamiz._utils.validation import collect_lazy
from tamiz.errors import TableError
from tamiz.tables.columns import Alert, describe_dates, describe_spellings, read_cells
from tamiz.tables.names import Choice, ReadOptions, check_memory, choose_columns, clean_column_names

#: A whole number with decimals that are zero, or a boolean.
_OTHER_SPELLING = re.compile(r"^(?:(-?(?:0|[1-9]\d*))\.0+|(?i:true|false))\Z")
#: float32 must not change a value by more than this part of the half width of its column.
_TOLERANCE = 1e-4


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
        return self.rename([_OTHER_SPELLING.sub(lambda m: m[1] or m[0].lower(), name) for name in self.categories])

    def merge_spellings(self) -> TextColumn:
        """Join values that differ in case only, under the most frequent spelling.

        Examples
        --------
        >>> TextColumn.from_values(["F", "f", "m", "F"]).merge_spellings().values()
        ['F', 'F', 'm', 'F']
        """
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.categories))
        chosen: dict[str, str] = {}
        for code in np.argsort(-counts, kind="stable"):
            chosen.setdefault(self.categories[code].casefold(), self.categories[code])
        return self.rename([chosen[category.casefold()] for category in self.categories])

    def align(self, known: Iterable[str]) -> TextColumn:
        """Spell values as in ``known`` where they differ from one of these in case only."""
        known = set(known)
        folded = Counter(value.casefold() for value in known)
        spelling = {value.casefold(): value for value in known if folded[value.casefold()] == 1}
        names = [value if value in known else spelling.get(value.casefold(), value) for value in self.categories]
        return self.rename(names)

    def values(self) -> list[str | None]:
        """List the text of each row, None where it is missing."""
        return [None if code < 0 else self.categories[code] for code in self.codes]


def pack_numbers(block: np.ndarray, exact: bool = False) -> np.ndarray:
    """Convert numbers to float32, or to float64 where float32 cannot tell the values of a column apart.

    Seconds since 1970 or long identifiers differ in digits that float32 does not have.

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_columns)
        Numbers of any type; NaN is missing.
    exact : bool, default=False
        Whether to keep float64 anyway.

    Examples
    --------
    >>> pack_numbers(np.array([[1_700_000_001.0], [1_700_000_005.0]])).dtype, pack_numbers(np.eye(2)).dtype
    (dtype('float64'), dtype('float32'))
    """
    if not block.size:
        return np.zeros(block.shape, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large for float32 raise later
        low, high = np.fmin.reduce(block, axis=0).astype(np.float64), np.fmax.reduce(block, axis=0).astype(np.float64)
        # float32 rounds by at most 2^-24 of a value: below this ratio no column can lose anything. A column of one value
        # loses something if other rows may differ from it by 1.
        largest = np.maximum(-low, high)
        suspects = np.where(low == high, largest > 2.0**24, largest * 2.0**-24 > _TOLERANCE * (high / 2 - low / 2))
        for column in np.flatnonzero(suspects | ~np.isfinite(high - low)):
            values = block[:, column].astype(np.float64)
            values = values[np.abs(values) < 3e38]
            if values.size and not exact:
                width = values.max() / 2 - values.min() / 2
                exact = bool(np.abs(values.astype(np.float32) - values).max() > _TOLERANCE * width)
        return np.ascontiguousarray(block, dtype=np.float64 if exact else np.float32)


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
    numbers : ndarray of float32 or float64, shape (n_rows, len(number_columns)), or csr matrix
        The numeric columns; NaN is missing. float64 where float32 has too few digits.
    number_columns : ndarray of int
        Position in the file of each numeric column.
    texts : dict of int to TextColumn, default={}
        Columns of text, by position in the file.
    left_out : dict of int to str, default={}
        Columns that are not used, and why.
    origins : dict of int to float, default={}
        First date of each column of dates, in days since 1970; its numbers are days since that date.
    alerts : list of Alert, default=[]
        What a user should know about the columns.
    target_column : ndarray of float64, TextColumn or None, default=None
        The target column as it was read.
    target_name : str or None, default=None
        Its name.
    task : str or None, default=None
        "classification", "regression", or None for a table that was read without a target.
    y : ndarray or None, default=None
        Class labels as text or float64 numbers of the target, one per row.
    rows : ndarray of int or None, default=None
        Rows of the file that have a target.
    source : dict, default={}
        Facts about the file (layout, temporary copy) that are needed to read it again.
    """

    path: Path
    format: str
    names: list[str]
    n_rows: int
    numbers: Any
    number_columns: np.ndarray
    texts: dict[int, TextColumn] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)
    origins: dict[int, float] = field(default_factory=dict)
    alerts: list[Alert] = field(default_factory=list)
    target_column: np.ndarray | TextColumn | None = None
    target_name: str | None = None
    task: str | None = None
    y: Any = None
    rows: Any = None
    source: dict[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns that are used."""
        return self.n_rows, self.number_columns.size + len(self.texts)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, key: Any) -> DataTable:
        rows = np.arange(self.n_rows)[key]  # scikit-learn indexes with [rows, ...]
        if rows.ndim != 1:
            raise TypeError("Index a table by several rows: a slice, a list or an array of numbers or booleans.")
        return self.take(rows)

    def column_values(self, name: str) -> np.ndarray:
        """Take the values of a column that was read: float64 numbers, or text (None where missing)."""
        position = self.names.index(name)
        if position in self.texts:
            return np.array(self.texts[position].values(), dtype=object)
        taken = self.numbers[:, [self.number_columns.tolist().index(position)]]
        values = taken.toarray() if hasattr(taken, "toarray") else taken
        return values.ravel().astype(np.float64)

    def take(self, rows: np.ndarray) -> DataTable:
        """Take some of the rows."""
        return dataclasses.replace(
            self,
            n_rows=len(rows),
            numbers=self.numbers[rows],
            texts={i: TextColumn(text.codes[rows], text.categories) for i, text in self.texts.items()},
            left_out=dict(self.left_out),
            alerts=list(self.alerts),
            target_column=None,
            y=None if self.y is None else self.y[rows],
            rows=None if self.rows is None else self.rows[rows],
        )


def as_table(
    frame: Any, options: ReadOptions | None = None, path: Path = Path("the data frame"), format: str = "frame"
) -> DataTable:
    """Turn a data frame into a table; a table is returned as it is.

    Parameters
    ----------
    frame : DataTable or data frame
        polars (also lazy), pandas, or any object with the Arrow interface (``__arrow_c_stream__``).
    options : ReadOptions or None, default=None
        Target, columns to ignore, columns of numbers that are names of categories, and so on.
    path : Path, default=Path("the data frame")
        File the frame was read from.
    format : str, default="frame"
        Name of its format.

    Returns
    -------
    DataTable

    Examples
    --------
    >>> import pandas
    >>> table = as_table(pandas.DataFrame({"age": [50, 60], "colour": ["red", None]}))
    >>> table.numbers.tolist(), table.texts[1].values()
    ([[50.0], [60.0]], ['red', None])
    """
    if isinstance(frame, DataTable):
        return frame
    options = options or ReadOptions()
    names = clean_column_names(column_names(frame))
    choice = choose_columns(names, options)
    taken = columns_of_frame(frame, choice[0])
    need = taken.height * len(choice[0]) * (8 + 4 * options.copies)
    check_memory(need, f"{path.name} ({taken.height:,} rows, {len(names):,} columns and the run on it)")
    table = build_table(taken, names, choice, options, path, format)
    if format == "frame":
        table.source["frame"] = frame
    return table


def column_names(frame: Any) -> list[str]:
    """List the names of the columns of a data frame."""
    if hasattr(frame, "collect_schema"):
        return list(frame.collect_schema().names())
    if hasattr(frame, "iloc"):
        return [str(name) for name in frame.columns]
    if hasattr(frame, "__arrow_c_stream__"):
        return list(getattr(frame, "column_names", None) or load_polars().DataFrame(frame).columns)
    raise TypeError(f"A data frame (pandas, polars, pyarrow) or a DataTable is needed, got {type(frame)}.")


def columns_of_frame(frame: Any, positions: Sequence[int], names: Sequence[str] | None = None) -> Any:
    """Take some columns of a data frame of any library as a polars frame.

    Parameters
    ----------
    frame : data frame
        Of polars (also lazy), pandas, pyarrow or any library with the Arrow interface.
    positions : sequence of int
        Columns to take.
    names : sequence of str or None, default=None
        Names of all columns; None calls the columns by their positions.
    """
    pl = load_polars()
    called = {position: str(position) if names is None else names[position] for position in positions}
    try:
        if isinstance(frame, pl.LazyFrame):
            return collect_lazy(frame.select(pl.nth(position).alias(name) for position, name in called.items()))
        if hasattr(frame, "iloc"):
            return pl.DataFrame([_from_pandas(frame.iloc[:, position], name) for position, name in called.items()])
        frame = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
        return pl.DataFrame([frame.to_series(position).alias(name) for position, name in called.items()])
    except TableError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError, OverflowError) as error:
        raise TableError(f"The data frame cannot be read: {str(error).splitlines()[0]}") from None


def _from_pandas(column: Any, name: str) -> Any:
    """Turn a pandas column of any type into a polars series, without pyarrow; the index is dropped."""
    pl = load_polars()
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf" or (kind == "b" and column.hasnans):
        return pl.Series(name, column.to_numpy(dtype=np.float64, na_value=np.nan), nan_to_null=True)
    if kind in "mM" and getattr(column.dtype, "tz", None) is None:
        return pl.Series(name, column.to_numpy(dtype=f"{'timedelta' if kind == 'm' else 'datetime'}64[us]"))
    cells = [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]
    kinds = {type(cell) for cell in cells if cell is not None}
    if all(issubclass(one, (int, float, np.number, decimal.Decimal)) and one is not bool for one in kinds):
        # Whole numbers beyond 2^63 have no type of their own.
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)
    for base, dtype in (((bool, np.bool_), pl.Boolean), (str, pl.String), (datetime.date, pl.String)):
        if all(issubclass(one, base) for one in kinds):
            return pl.Series(name, [c.isoformat() if isinstance(c, datetime.date) else c for c in cells], dtype=dtype)
    raise TableError(
        f"The data frame cannot be read: column {quote(column.name)} holds values that are neither numbers, text nor "
        f"dates, or of several types ({', '.join(sorted(one.__name__ for one in kinds)[:4])}). Convert it to numbers or to text."
    )


def build_table(
    frame: Any,
    names: list[str],
    choice: Choice,
    options: ReadOptions,
    path: Path,
    format_name: str,
    comma: bool = False,
) -> DataTable:
    """Build a table from a polars frame: find out what its columns mean.

    Numbers, booleans, text that reads as numbers (also with decimal commas, thousands, a currency or a unit) and dates
    become numbers; other text becomes categories; what is neither is left out.

    Parameters
    ----------
    frame : polars.DataFrame
        The columns to read, in the order of the file.
    names : list of str
        Names of all columns of the file.
    choice : (list of int, set of int, int or None)
        Which columns are read, which are text whatever they hold, and which is the target: see ``choose_columns``.
    options : ReadOptions
        Words for missing values.
    path : Path
        The file.
    format_name : str
        Name of its format.
    comma : bool, default=False
        Whether numbers such as "1,500" have a decimal comma.
    """
    pl, (positions, as_text, target) = load_polars(), choice
    if frame.height == 0:
        raise TableError(f"{path.name} has no rows.")
    table = DataTable(path, format_name, names, frame.height, None, np.empty(0), source={"comma": comma})
    kinds = frame.dtypes
    plain = {kind: kind.is_numeric() or kind in (pl.Boolean, pl.Null) for kind in set(kinds)}
    textual = {kind for kind in plain if kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum))}
    numeric, cells, words = {}, {}, list(options.missing_words)
    for position, kind, column in zip(positions, kinds, frame.get_columns(), strict=True):
        is_text = kind in textual
        if position == target:
            table.target_name = names[position]
            if is_text or kind == pl.Boolean:
                column = column.cast(pl.String).str.strip_chars()
                counts = column.filter(column.is_in([word for word in words if word])).value_counts()
                table.source["missing_words"] = dict(counts.iter_rows())
                table.target_column = TextColumn.from_values(column.set(column.is_in(words), None))
            elif plain[kind]:
                table.target_column = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
            else:
                of_type = f"of type {kind.base_type()}, neither classes nor numbers"
                raise TableError(f"The target {names[position]!r} is {of_type}. Convert it first.")
        elif is_text or position in as_text:
            cells[position] = column if kind == pl.String else column.cast(pl.String)
        elif plain[kind]:
            numeric[position] = column if kind.is_float() else column.cast(pl.Float64, strict=False)
        elif kind in (pl.Date, pl.Datetime):
            days = column.cast(pl.Datetime("us", None)).to_physical() / 86_400e6
            if days.null_count() < len(days):
                table.origins[position] = float(days.min())
                table.alerts.append(describe_dates(names[position], table.origins[position]))
            numeric[position] = days - table.origins.get(position, 0.0)
        elif kind == pl.Duration:
            numeric[position] = column.dt.total_microseconds() / 86_400e6
        else:
            table.left_out[position] = f"values of type {kind}"
    for position, column in cells.items():
        exact = position in as_text or names[position] in options.texts
        found = None if exact or options.na_values is not None else column.cast(pl.Float64, strict=False)
        if found is None or found.null_count() > column.null_count():
            column = column.str.strip_chars()
            column = column.set(column.is_in(words), None)
            found = (column.str.replace(",", ".", literal=True) if comma else column).cast(pl.Float64, strict=False)
        if not exact and found.null_count() == column.null_count():
            numeric[position] = found
            continue
        text = TextColumn.from_values(column)
        values, alert = (None, None) if exact else read_cells(names[position], text.categories, comma)
        if values is not None:
            if alert is not None and alert.kind == "dates":
                table.origins[position] = min(values)
            numeric[position] = pl.Series(np.array([*values, np.nan])[text.codes] - table.origins.get(position, 0.0))
        else:
            table.texts[position] = text.canonical() if exact else text.canonical().merge_spellings()
            if not exact and len(table.texts[position].categories) < len(text.categories):
                alert = describe_spellings(names[position], text, table.texts[position])
        table.alerts.extend([alert] if alert is not None else [])
    table.number_columns = np.array(sorted(numeric), dtype=np.int64)
    block = pl.DataFrame([numeric[i].alias(str(i)) for i in table.number_columns])
    matrix = block.to_numpy() if numeric else np.empty((frame.height, 0))
    table.numbers = pack_numbers(matrix, exact=options.columns is not None)
    return table
