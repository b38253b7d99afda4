"""CSV, TSV and ARFF into a :class:`~tamiz.cli.table.Table`: a first look, a sentence about memory, one pass."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamiz.cli.delimited import MISSING, Cells, Layout, count_lines, pieces
from tamiz.cli.errors import UserError
from tamiz.cli.memory import MemoryBudget
from tamiz.cli.table import Table, TextColumn

#: Rows of the first look; enough to tell text from numbers in nearly all tables. Later surprises cost a second pass.
_SAMPLE_BYTES = 2 * 1024**2


@dataclass
class _Columns:
    """Which columns are read, and as what."""

    wanted: np.ndarray
    text: np.ndarray
    numeric_order: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def _cast(flat: pa.StringArray) -> pa.FloatArray | None:
    """Cells as float32, null where missing; None where one is no number."""
    try:
        return flat.cast(pa.float32())
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim_whitespace(flat)
        missing = pc.is_in(trimmed, value_set=pa.array(MISSING))
        try:
            return pc.if_else(missing, pa.scalar(None, pa.string()), trimmed).cast(pa.float32())
        except pa.ArrowInvalid:
            return None


def _as_numbers(cells: Cells, hidden: np.ndarray) -> np.ndarray | None:
    """All visible cells as float32, shape (rows, columns), NaN where missing or hidden; None where one is no number."""
    numbers = _cast(cells.flat(hidden))
    if numbers is None:
        return None
    # Without nulls there is a way to numpy that copies nothing and does not load pandas.
    filled = numbers.fill_null(float("nan")) if numbers.null_count else numbers
    return filled.to_numpy().reshape(cells.n_rows, cells.n_columns)


def _reads_as_number(cell: str | None) -> bool:
    """Whether a cell may stand in a column of numbers."""
    if cell is None or cell.strip() in MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _find_text(cells: Cells, hidden: np.ndarray) -> np.ndarray:
    """The visible columns that hold something other than numbers, dividing the set until each culprit is alone."""
    # Most columns of text show it in the first row, where Python's test is quick; it takes all that arrow takes.
    first = cells.flat()[: cells.n_columns].to_pylist()
    found = ~hidden & np.array([not _reads_as_number(cell) for cell in first])
    visible = np.flatnonzero(~hidden & ~found)
    stack = [visible] if visible.size else []
    while stack:
        group = stack.pop()
        if _cast(cells.some(group)) is not None:
            continue
        if group.size == 1:
            found[group] = True
        else:
            stack.extend(np.array_split(group, min(4, group.size)))
    return found


def _fill(
    path: Path, layout: Layout, columns: _Columns, numbers: np.ndarray, on_rows: Callable[[int], None]
) -> tuple[int, dict[int, list[pa.Array]], np.ndarray]:
    """One pass: numbers into the block, text into chunks. Also returns columns that turned out to be text late."""
    hidden = ~columns.wanted | columns.text
    late = np.zeros_like(hidden)
    chunks: dict[int, list[pa.Array]] = {int(i): [] for i in np.flatnonzero(columns.wanted & columns.text)}
    row = 0
    every = columns.numeric_order.size == len(layout.names)
    for cells in pieces(path, layout):
        stop = row + cells.n_rows
        if columns.numeric_order.size:
            found = _as_numbers(cells, hidden | late)
            if found is None:
                late |= _find_text(cells, hidden | late)
                found = _as_numbers(cells, hidden | late)
                if found is None:
                    raise UserError(f"{path.name}: some cells after data row {row:,} cannot be read as numbers.")
            numbers[row:stop] = found if every else found[:, columns.numeric_order]
        for index, parts in chunks.items():
            parts.append(cells.column(index).dictionary_encode())
        row = stop
        on_rows(row)
    return row, chunks, late


def _read_text(path: Path, layout: Layout, wanted: np.ndarray) -> dict[int, list[pa.Array]]:
    chunks: dict[int, list[pa.Array]] = {int(i): [] for i in np.flatnonzero(wanted)}
    for cells in pieces(path, layout):
        for index, parts in chunks.items():
            parts.append(cells.column(index).dictionary_encode())
    return chunks


def _text_column(chunks: list[pa.Array]) -> TextColumn:
    return TextColumn.from_arrow(pa.chunked_array(chunks, type=pa.dictionary(pa.int32(), pa.string())))


def _first_look(path: Path, layout: Layout, columns: _Columns) -> None:
    """Tell text from numbers on the first rows."""
    with closing(pieces(path, layout, _SAMPLE_BYTES)) as some:
        cells = next(some, None)
    if cells is None:
        raise UserError(f"{path.name} has a header, but no rows.")
    columns.text |= _find_text(cells, ~columns.wanted | columns.text)


def read_delimited(
    path: Path,
    layout: Layout,
    *,
    format_name: str,
    wanted: np.ndarray,
    as_text: np.ndarray,
    target: int | None,
    budget: MemoryBudget,
    run_factor: float,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> Table:
    """Read a delimited file.

    Parameters
    ----------
    path : Path
        The file.
    layout : Layout
        Its names, delimiter and where the rows begin.
    format_name : str
        "csv", "tsv" or "arff", for the record.
    wanted, as_text : ndarray of bool, shape (n_columns,)
        Which columns to read (without the target), and which are text whatever they look like.
    target : int or None
        The target, which is read as text first and understood later.
    budget : MemoryBudget
        Hears of the need before the memory is taken.
    run_factor : float
        How many copies of the table the work that follows needs; checked now, so that a refusal comes at
        once.
    on_rows : callable
        Told how many rows are done, and of how many.
    """
    n_columns = len(layout.names)
    columns = _Columns(wanted.copy(), as_text.copy())
    if target is not None:
        columns.wanted[target] = columns.text[target] = True
    _first_look(path, layout, columns)
    columns.numeric_order = np.flatnonzero(columns.wanted & ~columns.text)
    total = count_lines(path, layout.data_offset)
    text_cells = int((columns.wanted & columns.text).sum()) * total
    need = (
        total * columns.numeric_order.size * 4 * run_factor
        + text_cells * 8
        + 6 * min(path.stat().st_size, 16 * 1024**2)
    )
    budget.require(need, f"{path.name} ({total:,} rows, {n_columns:,} columns as float32, and the run on it)")
    numbers = np.empty((total, columns.numeric_order.size), dtype=np.float32)
    n_rows, chunks, late = _fill(path, layout, columns, numbers, lambda done: on_rows(done, total))
    numbers = numbers[:n_rows]
    if late.any():
        chunks.update(_read_text(path, layout, late))
        numbers = numbers[:, ~late[columns.numeric_order]]
        columns.numeric_order = columns.numeric_order[~late[columns.numeric_order]]
    texts = {index: _text_column(parts) for index, parts in sorted(chunks.items())}
    table = Table(path, format_name, layout.names, n_rows, numbers, columns.numeric_order, texts)
    table.options = {"layout": layout}
    if target is not None:
        table.target, table.target_name = texts.pop(target), layout.names[target]
    return table
