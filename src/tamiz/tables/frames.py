"""Turn data frames (polars, pandas, pyarrow and others with the Arrow interface) into tables."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.text import quote
from tamiz._utils.validation import collect_lazy
from tamiz.errors import TableError
from tamiz.tables.columns import (
    Alert,
    describe_dates,
    describe_spellings,
    describe_units,
    parse_dates,
    spelt_numbers,
)
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ColumnChoice, ReadOptions, choose_columns, clean_column_names
from tamiz.tables.table import DataTable, TextColumn, load_polars, pack_numbers


def as_table(
    frame: Any,
    categorical: Sequence[str] = (),
    *,
    options: ReadOptions | None = None,
    path: Path = Path("the data frame"),
    format: str = "frame",
    budget: MemoryBudget | None = None,
) -> DataTable:
    """Turn a data frame into a table; a table is returned as it is.

    Parameters
    ----------
    frame : DataTable or data frame
        polars (also lazy), pandas, or any object with the Arrow interface (``__arrow_c_stream__``).
    categorical : sequence of str, default=()
        Columns of numbers that are names of categories.
    options : ReadOptions or None, default=None
        Target, columns to ignore and so on, for readers of a :class:`~tamiz.tables.Format`.
    path : Path, default=Path("the data frame")
        File the frame was read from.
    format : str, default="frame"
        Name of its format.
    budget : MemoryBudget or None, default=None
        Asked before the memory of the table is taken.

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
    options = options or ReadOptions(categorical=categorical)
    pl = load_polars()
    names = clean_column_names(column_names(frame))
    choice = choose_columns(names, options)
    positions = choice.positions
    if isinstance(frame, pl.LazyFrame):
        taken = collect_lazy(frame.select(pl.nth(positions)))
    else:
        taken = columns_of_frame(frame, positions)
    if taken.height and budget is not None:
        need = taken.height * len(positions) * (8 + 4 * options.copies)
        budget.require(need, f"{path.name} ({taken.height:,} rows, {len(names):,} columns and the run on it)")
    table = build_table(taken, names, choice, options, path, format)
    if format == "frame":
        table.source["frame"] = frame
    return table


def column_names(frame: Any) -> list[str]:
    """Return the names of the columns of a data frame."""
    if hasattr(frame, "collect_schema"):
        return list(frame.collect_schema().names())
    if hasattr(frame, "column_names"):
        return list(frame.column_names)
    if not hasattr(frame, "columns") and not hasattr(frame, "__arrow_c_stream__"):
        raise TypeError(f"A data frame (pandas, polars, pyarrow) or a DataTable is needed, got {type(frame)}.")
    columns = frame.columns if hasattr(frame, "columns") else load_polars().DataFrame(frame).columns
    return [str(name) for name in columns]


def columns_of_frame(frame: Any, positions: Sequence[int], names: Sequence[str] | None = None) -> Any:
    """Return some columns of a data frame of any library as a polars frame.

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
    frame = collect_lazy(frame)
    try:
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
    if kind in "biuf":
        values = (
            column.to_numpy(dtype=np.float64, na_value=np.nan) if kind != "b" or column.hasnans else np.asarray(column)
        )
        return pl.Series(name, values, nan_to_null=True)
    if kind == "M" and getattr(column.dtype, "tz", None) is None:
        return pl.Series(name, column.to_numpy(dtype="datetime64[us]"))
    cells = [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]
    kinds = {type(cell) for cell in cells if cell is not None}
    if all(issubclass(one, str) for one in kinds):
        return pl.Series(name, cells, dtype=pl.String)
    if all(issubclass(one, (bool, np.bool_)) for one in kinds):
        return pl.Series(name, cells, dtype=pl.Boolean)
    if all(issubclass(one, (int, float, np.number, decimal.Decimal)) for one in kinds):
        # Whole numbers beyond 2^63 have no type of their own.
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)
    if all(issubclass(one, (datetime.date, datetime.datetime)) for one in kinds):
        return pl.Series(name, [cell.isoformat() if cell is not None else None for cell in cells], dtype=pl.String)
    raise TableError(
        f"The data frame cannot be read: column {quote(column.name)} holds values of different types "
        f"({', '.join(sorted(one.__name__ for one in kinds)[:4])}). Convert it to numbers or to text."
    )


def build_table(
    frame: Any,
    names: list[str],
    choice: ColumnChoice,
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
        The columns ``choice.positions`` of the file, in that order.
    names : list of str
        Names of all columns of the file.
    choice : ColumnChoice
        Which columns are read, as text or not, and which is the target.
    options : ReadOptions
        Words for missing values.
    path : Path
        The file.
    format_name : str
        Name of its format.
    comma : bool, default=False
        Whether numbers such as "1,500" have a decimal comma.
    """
    pl = load_polars()
    if frame.height == 0:
        raise TableError(f"{path.name} has no rows.")
    positions = choice.positions
    columns = dict(zip(positions, frame.get_columns(), strict=True))
    kinds = dict(zip(positions, frame.dtypes, strict=True))
    usual = {pl.Float64, pl.Float32, pl.Boolean, pl.Null}
    plain = {kind: kind in usual or kind.is_numeric() for kind in set(kinds.values())}
    special = [i for i in positions if not plain[kinds[i]] or i == choice.target or choice.as_text[i]]
    numeric = dict.fromkeys(positions)
    left_out, alerts, origins = {}, [], {}
    texts: dict[int, TextColumn] = {}
    cells = {}
    for position in special:
        column, kind = columns[position], kinds[position]
        del numeric[position]
        if position == choice.target:
            continue
        if kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum)) or choice.as_text[position]:
            cells[position] = column.cast(pl.String)
        elif kind in (pl.Date, pl.Datetime):
            days = column.cast(pl.Datetime("us", None)).to_physical() / 86_400e6
            if days.null_count() < len(days):
                origins[position] = float(days.min())
                alerts.append(describe_dates(names[position], origins[position]))
                days = days - origins[position]
            numeric[position] = days
        elif kind == pl.Duration:
            numeric[position] = column.dt.total_microseconds() / 86_400e6
        else:
            left_out[position] = f"values of type {kind}"
    stripped = _strip(cells, options.missing_words)
    as_numbers = stripped.cast(pl.Float64, strict=False)
    for position in cells:
        column, found = stripped[str(position)], as_numbers[str(position)]
        exact = choice.as_text[position] or names[position] in options.texts
        if not exact and found.null_count() == column.null_count():
            numeric[position] = found
            continue
        text = TextColumn.from_values(column)
        if exact:
            texts[position] = text.canonical()
            continue
        values, about = _understand(names[position], text, comma)
        if isinstance(values, TextColumn):
            texts[position] = values
        else:
            if about is not None and about.kind == "dates":
                origins[position] = float(np.nanmin(values))
                values = values - origins[position]
            numeric[position] = pl.Series(values)
        alerts.extend([about] if about is not None else [])
    number_columns = np.array(sorted(numeric), dtype=np.int64)
    block = pl.DataFrame([columns[i] if (own := numeric[i]) is None else own.alias(str(i)) for i in sorted(numeric)])
    if any(kinds[i] != pl.Float64 for i in numeric):
        block = block.cast(pl.Float64, strict=False)
    numbers, centres = pack_numbers(block.to_numpy() if number_columns.size else np.empty((frame.height, 0)))
    del block
    table = DataTable(path, format_name, names, frame.height, numbers, number_columns, dict(sorted(texts.items())))
    table.left_out, table.alerts, table.origins, table.centres = left_out, alerts, origins, centres
    if choice.target is not None:
        table.target_name = names[choice.target]
        table.target_column = _target_column(columns[choice.target], options.missing_words, table.target_name)
    table.source["comma"] = comma
    return table


def _strip(cells: dict[int, Any], words: Sequence[str]) -> Any:
    """Remove blanks around cells and set missing values to null."""
    pl = load_polars()
    frame = pl.DataFrame([column.alias(str(position)) for position, column in cells.items()])
    frame = frame.select(pl.all().str.strip_chars())
    return frame.select(pl.when(pl.all().is_in(list(words)).not_()).then(pl.all()))


def _understand(name: str, text: TextColumn, comma: bool) -> tuple[np.ndarray | TextColumn, Alert | None]:
    """Return what a column of text means: numbers, days since 1970 or categories; and the alert about it."""
    cells = text.categories
    lowered = {cell.lower() for cell in cells}
    if not cells or lowered <= {"true", "false"}:
        values, about = [float(cell.lower() == "true") for cell in cells], None
    elif (spelt := spelt_numbers(cells, comma)) is not None:
        values, about = spelt[0], describe_units(name, spelt[1], cells[0])
    elif (dates := parse_dates(cells)) is not None:
        values, about = dates[0], describe_dates(name, min(dates[0]), dates[1])
    else:
        merged = text.canonical().merge_spellings()
        alert = describe_spellings(name, text, merged) if len(merged.categories) < len(cells) else None
        return merged, alert
    return np.array([*values, np.nan])[text.codes], about


def _target_column(column: Any, words: Sequence[str], name: str) -> np.ndarray | TextColumn:
    pl = load_polars()
    kind = column.dtype
    if kind == pl.Boolean or isinstance(kind, (pl.Categorical, pl.Enum)):
        return TextColumn.from_values(column.cast(pl.String))
    if kind == pl.String:
        return TextColumn.from_values(_strip({0: column}, words).to_series())
    if kind.is_numeric() or kind == pl.Null:
        return column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    raise TableError(f"The target {name!r} holds {kind}, neither classes nor numbers. Convert it first.")
