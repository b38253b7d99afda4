"""Read Parquet and Arrow files, and data frames, into a table, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tamiz.errors import TableError
from tamiz.tables.centring import CentredBlock
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ColumnChoice, ReadOptions, choose_columns, clean_column_names
from tamiz.tables.table import DataTable, TextColumn

_BATCH_CELLS = 4_000_000
#: Cells that are written at a time.
_WRITTEN_CELLS = 1_000_000


def classify_type(arrow_type: Any) -> str:
    """Return what columns of an arrow type are used as: "number", "text", "date" or "other".

    Examples
    --------
    >>> classify_type(pa.int16()), classify_type(pa.string()), classify_type(pa.date32()), classify_type(pa.list_(pa.int8()))
    ('number', 'text', 'date', 'other')
    """
    types = pa.types
    if types.is_dictionary(arrow_type):
        return classify_type(arrow_type.value_type)
    if types.is_floating(arrow_type) or types.is_integer(arrow_type) or types.is_decimal(arrow_type):
        return "number"
    if types.is_boolean(arrow_type) or types.is_null(arrow_type):
        return "number"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return "text"
    return "date" if types.is_temporal(arrow_type) else "other"


@dataclass(frozen=True)
class ArrowSource:
    """Describe where batches of arrow columns come from.

    Parameters
    ----------
    path : Path
        The file; for data frames a name for messages.
    format : str
        Name of the format.
    schema : pyarrow.Schema
        Names and types of all columns.
    n_rows : int
        Number of rows.
    iterate : callable
        ``iterate(columns, n_rows)`` yields record batches of some columns, in the given order.
    """

    path: Path
    format: str
    schema: Any
    n_rows: int
    iterate: Callable[[list[int], int], Iterator[Any]]

    def batches(self, columns: list[int], n_rows: int) -> Iterator[Any]:
        """Yield batches of some columns; raise TableError if the file is damaged."""
        try:
            for batch in self.iterate(columns, n_rows):
                # A file in the layout of the memory is not checked when it is opened: offsets may point anywhere.
                batch.validate(full=True)
                yield batch
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.path.name} is damaged: {str(error).splitlines()[0].rstrip('.')}.") from None

    def batches_to_write(self, columns: list[int]) -> tuple[Any, Iterator[Any]]:
        """Return the schema of some columns and their batches."""
        schema = pa.schema([self.schema.field(index) for index in columns])
        return schema, self.batches(columns, max(1, _WRITTEN_CELLS // len(columns)))


def iterate_table(table: Any) -> Callable[[list[int], int], Iterator[Any]]:
    """Return the ``iterate`` function of a table in memory."""
    return lambda columns, n_rows: iter(table.select(columns).to_batches(max_chunksize=n_rows))


@contextmanager
def translate_errors(path: Path, title: str) -> Iterator[None]:
    """Turn arrow's errors on opening a file into a TableError of one line."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{path.name} cannot be read as {title}: {detail.rstrip('.')}.") from None


def _to_numbers(column: pa.Array) -> np.ndarray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan, dtype=np.float32)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    column = column.cast(pa.float64(), safe=False)  # whole numbers beyond 2^53 are rounded
    filled = column.fill_null(float("nan")) if column.null_count else column
    return filled.to_numpy()


def _leave_out(source: ArrowSource, choice: ColumnChoice, kinds: list[str]) -> dict[int, str]:
    """Return the wanted columns that hold neither numbers nor text, and why they are left out."""
    left_out = {}
    for index, kind in enumerate(kinds):
        if choice.wanted[index] and index != choice.target and kind in ("date", "other"):
            left_out[index] = "dates" if kind == "date" else f"values of type {source.schema.types[index]}"
    return left_out


def read_arrow(
    source: ArrowSource,
    options: ReadOptions,
    budget: MemoryBudget,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> DataTable:
    """Read the columns that the options name.

    Parameters
    ----------
    source : ArrowSource
        A file or a data frame.
    options : ReadOptions
        Target, columns to ignore and so on.
    budget : MemoryBudget
        Asked before the memory is taken.
    on_rows : callable, default=no progress
        Called with the number of rows that are done, and of all rows.

    Raises
    ------
    TableError
        If the columns cannot be used, or the file is damaged: also where its values are no text, or fewer than it claims.
    """
    try:
        return _read_arrow(source, options, budget, on_rows)
    except UnicodeDecodeError as error:
        raise TableError(f"{source.path.name} is damaged: it holds text that is not UTF-8 ({error.reason}).") from None
    except pa.ArrowException as error:
        raise TableError(f"{source.path.name} is damaged: {str(error).splitlines()[0].rstrip('.')}.") from None


def _read_arrow(
    source: ArrowSource, options: ReadOptions, budget: MemoryBudget, on_rows: Callable[[int, int], None]
) -> DataTable:
    names = clean_column_names(source.schema.names)
    choice = choose_columns(names, options)
    target = choice.target
    kinds = [classify_type(arrow_type) for arrow_type in source.schema.types]
    if source.n_rows == 0:
        raise TableError(f"{source.path.name} has no rows.")
    left_out = _leave_out(source, choice, kinds)
    read = [i for i in range(len(names)) if (choice.wanted[i] and i not in left_out) or i == target]
    is_text = [i for i in read if kinds[i] == "text" or choice.as_text[i]]
    number_columns = np.array([i for i in read if i not in set(is_text) and i != target], dtype=np.int64)
    need = source.n_rows * (number_columns.size * 4 * options.copies + 8 * len(is_text)) + 24 * min(
        _BATCH_CELLS, source.n_rows * len(read)
    )
    budget.require(need, f"{source.path.name} ({source.n_rows:,} rows, {len(names):,} columns and the run on it)")
    block = CentredBlock(source.n_rows, number_columns.size)
    chunks: dict[int, list[Any]] = {index: [] for index in is_text}
    if target is not None:
        chunks.setdefault(target, [])
    place = {int(column): position for position, column in enumerate(number_columns)}
    row = 0
    for batch in source.batches(read, max(1, _BATCH_CELLS // max(1, len(read)))):
        stop = row + batch.num_rows
        numbers = np.empty((batch.num_rows, number_columns.size))
        for position, index in enumerate(read):
            if index in place:
                numbers[:, place[index]] = _to_numbers(batch.column(position))
            else:
                chunks[index].append(batch.column(position))
        block.write(row, numbers)
        row = stop
        on_rows(row, source.n_rows)
    if row != source.n_rows:
        raise TableError(f"{source.path.name} is damaged: it claims {source.n_rows:,} rows, but holds {row:,}.")
    table = DataTable(source.path, source.format, names, row, block.numbers, number_columns, left_out=left_out)
    table.centres = block.centres
    if target is not None:
        table.target_name = names[target]
        table.target_column = _target_column(pa.chunked_array(chunks.pop(target)), kinds[target], names[target])
    table.texts = {index: TextColumn.from_arrow(pa.chunked_array(parts)).canonical() for index, parts in chunks.items()}
    return table


def _target_column(column: pa.ChunkedArray, kind: str, name: str) -> np.ndarray | TextColumn:
    if kind in ("date", "other"):
        raise TableError(f"The target {name!r} holds {column.type}, neither classes nor numbers. Convert it first.")
    if kind == "text" or pa.types.is_boolean(column.type):
        return TextColumn.from_arrow(column)
    return np.concatenate([_to_numbers(chunk) for chunk in column.chunks]).astype(np.float64)
