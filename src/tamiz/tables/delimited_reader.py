"""Read CSV, TSV and ARFF files into a table: look at the first rows, check the memory, then one pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamiz.errors import TableError
from tamiz.tables.cells import MISSING, CellStyle, is_number
from tamiz.tables.centring import CentredBlock
from tamiz.tables.delimited import DelimitedLayout
from tamiz.tables.delimited_blocks import CellBlock, count_lines, iterate_blocks
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ColumnChoice, ReadOptions
from tamiz.tables.table import DataTable, TextColumn

#: Bytes of the first look; enough to tell text from numbers in nearly all tables. Text found later costs a second pass.
_SAMPLE_BYTES = 2 * 1024**2


@dataclass
class _Columns:
    """Hold which columns are read, and as what."""

    wanted: np.ndarray
    text: np.ndarray
    numeric_order: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def _cast(flat: pa.StringArray, style: CellStyle) -> pa.FloatArray | None:
    """Convert cells to float64, null where missing; return None if one is not a number."""
    if style.decimal != ".":
        flat = pc.replace_substring(flat, style.decimal, ".", max_replacements=1)
    if style.missing is MISSING:  # all of these words raise in the plain cast
        with contextlib.suppress(pa.ArrowInvalid):
            return flat.cast(pa.float64())
    trimmed = pc.utf8_trim_whitespace(flat)
    missing = pc.is_in(trimmed, value_set=pa.array(style.missing))
    try:
        return pc.if_else(missing, pa.scalar(None, pa.string()), trimmed).cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _as_numbers(cells: CellBlock, hidden: np.ndarray, style: CellStyle) -> np.ndarray | None:
    """Convert all visible cells to float64, NaN where missing or hidden; return None if one is not a number."""
    numbers = _cast(cells.flat(hidden), style)
    if numbers is None:
        return None
    # Without nulls there is a way to numpy that copies nothing and does not load pandas.
    filled = numbers.fill_null(float("nan")) if numbers.null_count else numbers
    return filled.to_numpy().reshape(cells.n_rows, cells.n_columns)


def _reads_as_number(cell: str | None, style: CellStyle) -> bool:
    """Check whether a cell may stand in a column of numbers."""
    return cell is None or cell.strip() in style.missing or is_number(cell.replace(style.decimal, ".", 1))


def _find_text(cells: CellBlock, hidden: np.ndarray, style: CellStyle) -> np.ndarray:
    """Find the visible columns that hold text, by dividing the set until each of them is alone."""
    # Most columns of text show it in the first row, where Python's test is quick; it takes all that arrow takes.
    first = cells.flat()[: cells.n_columns].to_pylist()
    found = ~hidden & np.array([not _reads_as_number(cell, style) for cell in first])
    visible = np.flatnonzero(~hidden & ~found)
    stack = [visible] if visible.size else []
    while stack:
        group = stack.pop()
        if _cast(cells.some(group), style) is not None:
            continue
        if group.size == 1:
            found[group] = True
        else:
            stack.extend(np.array_split(group, min(4, group.size)))
    return found


@dataclass(frozen=True)
class _Source:
    """Hold what a pass over the rows of a file needs."""

    path: Path
    layout: DelimitedLayout
    style: CellStyle


def _fill(
    source: _Source, columns: _Columns, numbers: CentredBlock, on_rows: Callable[[int], None]
) -> tuple[int, dict[int, list[pa.Array]], np.ndarray]:
    """Read numbers into the block and text into chunks; also return columns that turned out to be text late."""
    style = source.style
    hidden = ~columns.wanted | columns.text
    late = np.zeros_like(hidden)
    chunks: dict[int, list[pa.Array]] = {int(i): [] for i in np.flatnonzero(columns.wanted & columns.text)}
    row = 0
    every = columns.numeric_order.size == len(source.layout.names)
    for cells in iterate_blocks(source.path, source.layout):
        stop = row + cells.n_rows
        if columns.numeric_order.size:
            found = _as_numbers(cells, hidden | late, style)
            if found is None:
                late |= _find_text(cells, hidden | late, style)
                found = _as_numbers(cells, hidden | late, style)
                if found is None:
                    raise TableError(
                        f"{source.path.name}: some cells after data row {row:,} cannot be read as numbers."
                    )
            numbers.write(row, found if every else found[:, columns.numeric_order])
        for index, parts in chunks.items():
            parts.append(cells.column(index, style.missing).dictionary_encode())
        row = stop
        on_rows(row)
    return row, chunks, late


def _read_text(source: _Source, wanted: np.ndarray) -> dict[int, list[pa.Array]]:
    chunks: dict[int, list[pa.Array]] = {int(i): [] for i in np.flatnonzero(wanted)}
    for cells in iterate_blocks(source.path, source.layout):
        for index, parts in chunks.items():
            parts.append(cells.column(index, source.style.missing).dictionary_encode())
    return chunks


def _count_missing_words(source: _Source, column: int) -> dict[str, int]:
    """Return the words of a column that were taken as missing values, and how many rows have each."""
    words = [word for word in source.style.missing if word]
    counts: dict[str, int] = {}
    for cells in iterate_blocks(source.path, source.layout):
        found = cells.column(column, ("",)).value_counts().to_pylist()
        for entry in found:
            if entry["values"] in words:
                counts[entry["values"]] = counts.get(entry["values"], 0) + entry["counts"]
    return counts


def _text_column(chunks: list[pa.Array]) -> TextColumn:
    return TextColumn.from_arrow(pa.chunked_array(chunks, type=pa.dictionary(pa.int32(), pa.string())))


def _first_look(source: _Source, columns: _Columns) -> None:
    """Tell text from numbers on the first rows."""
    with closing(iterate_blocks(source.path, source.layout, _SAMPLE_BYTES)) as some:
        cells = next(some, None)
    if cells is None:
        raise TableError(f"{source.path.name} has a header, but no rows.")
    columns.text |= _find_text(cells, ~columns.wanted | columns.text, source.style)


def read_delimited(
    path: Path,
    layout: DelimitedLayout,
    choice: ColumnChoice,
    options: ReadOptions,
    budget: MemoryBudget,
    on_rows: Callable[[int, int], None],
    format_name: str,
) -> DataTable:
    """Read the chosen columns of a delimited file.

    Parameters
    ----------
    path : Path
        The file.
    layout : DelimitedLayout
        Its names, delimiter and where the rows begin.
    choice : ColumnChoice
        Which columns to read. The target is read as text; :func:`~tamiz.tables.target.resolve_target` decides what it is.
    options : ReadOptions
        How many copies of the table will be needed; checked now, so that an error comes before the work.
    budget : MemoryBudget
        Asked before the memory is taken.
    on_rows : callable
        Called with the number of rows that are done, and of all rows.
    format_name : str
        Name of the format, for the record.
    """
    columns = _Columns(choice.wanted.copy(), choice.as_text.copy())
    if choice.target is not None:
        columns.wanted[choice.target] = columns.text[choice.target] = True
    source = _Source(path, layout, options.cell_style)
    _first_look(source, columns)
    columns.numeric_order = np.flatnonzero(columns.wanted & ~columns.text)
    total = count_lines(path, layout.data_offset)
    _require_memory(path, columns, total, options.copies, budget)
    block = CentredBlock(total, columns.numeric_order.size)
    n_rows, chunks, late = _fill(source, columns, block, lambda done: on_rows(done, total))
    numbers, centres = block.numbers[:n_rows], block.centres
    if late.any():
        chunks.update(_read_text(source, late))
        kept = ~late[columns.numeric_order]
        numbers, centres, columns.numeric_order = numbers[:, kept], centres[kept], columns.numeric_order[kept]
    texts = {index: _text_column(parts) for index, parts in sorted(chunks.items())}
    table = DataTable(path, format_name, layout.names, n_rows, numbers, columns.numeric_order, centres=centres)
    table.source = {"layout": layout}
    if choice.target is not None:
        target = texts.pop(choice.target)
        if options.decimal != ".":
            points = [value.replace(options.decimal, ".", 1) for value in target.categories]
            target.categories = points if all(map(is_number, points)) else target.categories
        table.target_column, table.target_name = target, layout.names[choice.target]
        if np.any(target.codes < 0):
            table.source["missing_words"] = _count_missing_words(source, choice.target)
    table.texts = {index: text.canonical() for index, text in texts.items()}
    return table


def _require_memory(path: Path, columns: _Columns, n_rows: int, copies: float, budget: MemoryBudget) -> None:
    """Check that the numbers, the codes of text and the blocks of the file fit into the memory."""
    numbers = n_rows * columns.numeric_order.size * 4 * copies
    texts = int((columns.wanted & columns.text).sum()) * n_rows * 8
    blocks = 10 * min(path.stat().st_size, 16 * 1024**2)
    what = f"{path.name} ({n_rows:,} rows, {columns.wanted.size:,} columns as float32, and the run on it)"
    budget.require(numbers + texts + blocks, what)
