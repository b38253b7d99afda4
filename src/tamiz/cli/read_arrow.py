"""Parquet and Arrow files into a :class:`~tamiz.cli.table.Table`, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tamiz.cli.errors import UserError
from tamiz.cli.memory import MemoryBudget
from tamiz.cli.table import Table, TextColumn, name_columns

_BATCH_CELLS = 4_000_000


def kind_of(arrow_type: Any) -> str:
    """What a column of an arrow type is to us: "number", "text", "date" or "other".

    Examples
    --------
    >>> kind_of(pa.int16()), kind_of(pa.string()), kind_of(pa.date32()), kind_of(pa.list_(pa.int8()))
    ('number', 'text', 'date', 'other')
    """
    types = pa.types
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_floating(arrow_type) or types.is_integer(arrow_type) or types.is_decimal(arrow_type):
        return "number"
    if types.is_boolean(arrow_type) or types.is_null(arrow_type):
        return "number"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return "text"
    return "date" if types.is_temporal(arrow_type) else "other"


class ArrowFile:
    """A Parquet, Feather or Arrow file: schema and number of rows at once, rows in batches."""

    def __init__(self, path: Path, format_name: str) -> None:
        self.path = path
        self.format = format_name
        try:
            self._open()
        except (pa.ArrowException, OSError) as error:
            detail = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"{path.name} cannot be read as {format_name}: {detail.rstrip('.')}.") from None

    def _open(self) -> None:
        if self.format == "parquet":
            import pyarrow.parquet as pq

            self._parquet = pq.ParquetFile(self.path, memory_map=True)
            self.schema = self._parquet.schema_arrow
            self.n_rows = self._parquet.metadata.num_rows
            return
        source = pa.memory_map(str(self.path))
        try:
            reader = pa.ipc.open_file(source)
            self._table = reader.read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            self._table = pa.ipc.open_stream(source).read_all()
        self.schema = self._table.schema
        self.n_rows = self._table.num_rows

    def batches(self, columns: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of some columns, in the given order."""
        names = [self.schema.names[index] for index in columns]
        try:
            if self.format == "parquet":
                yield from self._parquet.iter_batches(batch_size=batch_rows, columns=names, use_threads=False)
            else:
                yield from self._table.select(columns).to_batches(max_chunksize=batch_rows)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{self.path.name} is damaged: {str(error).splitlines()[0]}.") from None


def _numbers(column: pa.Array) -> np.ndarray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan, dtype=np.float32)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    column = column.cast(pa.float64())
    filled = column.fill_null(float("nan")) if column.null_count else column
    return filled.to_numpy()


def read_arrow(
    file: ArrowFile,
    *,
    wanted: np.ndarray,
    as_text: np.ndarray,
    target: int | None,
    budget: MemoryBudget,
    run_factor: float,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> Table:
    """Read a Parquet or Arrow file; the parameters are those of :func:`tamiz.cli.read_delimited.read_delimited`."""
    names = name_columns(file.schema.names)
    kinds = [kind_of(arrow_type) for arrow_type in file.schema.types]
    if file.n_rows == 0:
        raise UserError(f"{file.path.name} has no rows.")
    left_out = {}
    for index, kind in enumerate(kinds):
        if wanted[index] and index != target and kind in ("date", "other"):
            left_out[index] = "dates" if kind == "date" else f"values of type {file.schema.types[index]}"
    read = [i for i in range(len(names)) if (wanted[i] and i not in left_out) or i == target]
    is_text = [i for i in read if kinds[i] == "text" or as_text[i]]
    number_columns = np.array([i for i in read if i not in set(is_text) and i != target], dtype=np.int64)
    need = file.n_rows * (number_columns.size * 4 * run_factor + 8 * len(is_text)) + 12 * _BATCH_CELLS
    budget.require(need, f"{file.path.name} ({file.n_rows:,} rows, {len(names):,} columns and the run on it)")
    numbers = np.empty((file.n_rows, number_columns.size), dtype=np.float32)
    chunks: dict[int, list[Any]] = {index: [] for index in is_text}
    if target is not None:
        chunks.setdefault(target, [])
    place = {int(column): position for position, column in enumerate(number_columns)}
    row = 0
    for batch in file.batches(read, max(1, _BATCH_CELLS // max(1, len(read)))):
        stop = row + batch.num_rows
        with np.errstate(over="ignore"):  # numbers too large for float32 become infinite and are refused
            for position, index in enumerate(read):
                if index in place:
                    numbers[row:stop, place[index]] = _numbers(batch.column(position))
                else:
                    chunks[index].append(batch.column(position))
        row = stop
        on_rows(row, file.n_rows)
    table = Table(file.path, file.format, names, file.n_rows, numbers, number_columns, left_out=left_out)
    if target is not None:
        table.target_name = names[target]
        table.target = _target(pa.chunked_array(chunks.pop(target)), kinds[target], names[target])
    table.texts = {index: TextColumn.from_arrow(pa.chunked_array(parts)) for index, parts in chunks.items()}
    return table


def _target(column: pa.ChunkedArray, kind: str, name: str) -> np.ndarray | TextColumn:
    if kind in ("date", "other"):
        raise UserError(f"The target {name!r} holds {column.type}, neither classes nor numbers. Convert it first.")
    if kind == "text" or pa.types.is_boolean(column.type):
        return TextColumn.from_arrow(column)
    return np.concatenate([_numbers(chunk) for chunk in column.chunks]).astype(np.float64)
