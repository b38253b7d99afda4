"""Split CSV, TSV and ARFF files into cells, a block of rows at a time, whatever the number of columns.

Readers that build one object per column are slow on 20,000 columns (``benchmarks/tables.py`` has the ratios). Here a block
of the file becomes one flat arrow array of all its cells, row after row, straight from the bytes; from the first quoted
cell on, Python's ``csv`` takes over.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa

from tamiz.errors import TableError
from tamiz.tables.cells import MISSING
from tamiz.tables.delimited import DelimitedLayout, decode

_BLOCK_BYTES = 16 * 1024**2
_BLOCK_CELLS = 1_000_000
_NEWLINE = ord("\n")


def count_lines(path: Path, offset: int) -> int:
    """Return an upper bound of the number of rows, at the speed of the disk."""
    lines = 0
    last = b"\n"
    with open(path, "rb") as file:
        file.seek(offset)
        while chunk := file.read(_BLOCK_BYTES):
            lines += chunk.count(b"\n") or chunk.count(b"\r")
            last = chunk[-1:]
    return lines + (last != b"\n")


def _ragged(row_number: int, cells: int, expected: int, path: Path) -> TableError:
    return TableError(
        f"{path.name}, data row {row_number:,}: {cells:,} cell(s), but there are {expected:,} columns. "
        "Fix that row (a delimiter inside text must be in quotes), or name the delimiter with `delimiter`."
    )


class CellBlock:
    """Hold the cells of some rows, row after row, as one flat arrow array of text.

    The buffers are shared between all views, so masking columns costs nothing.

    Parameters
    ----------
    offsets : ndarray of int32, shape (n_rows * n_columns + 1,)
        Where each cell begins in ``data``.
    data : pyarrow.Buffer
        The text of all cells.
    n_columns : int
        Number of columns.
    """

    def __init__(self, offsets: np.ndarray, data: Any, n_columns: int) -> None:
        self.offsets = offsets
        self.data = data
        self.n_columns = n_columns
        self.n_rows = (offsets.size - 1) // n_columns

    def flat(self, hidden: np.ndarray | None = None) -> pa.StringArray:
        """Return all cells; empty ones, and those of the ``hidden`` columns, are null."""
        present = np.diff(self.offsets) > 0
        if hidden is not None and hidden.any():
            present = (present.reshape(self.n_rows, self.n_columns) & ~hidden).ravel()
        validity = pa.py_buffer(np.packbits(present, bitorder="little"))
        return pa.StringArray.from_buffers(
            present.size, pa.py_buffer(self.offsets), self.data, validity, int(present.size - present.sum())
        )

    @functools.cached_property
    def _every(self) -> pa.StringArray:
        return self.flat()

    def some(self, columns: np.ndarray) -> pa.StringArray:
        """Return the cells of some columns, row after row, null where empty; costs as much as there are such cells."""
        places = np.arange(self.n_rows)[:, None] * self.n_columns + columns
        return self._every.take(pa.array(places.ravel()))

    def column(self, index: int, missing_words: Sequence[str] = MISSING) -> pa.StringArray:
        """Return the cells of one column without blanks around them; null where missing."""
        import pyarrow.compute as pc

        cells = pc.utf8_trim_whitespace(self.some(np.array([index])))
        missing = pc.is_in(cells, value_set=pa.array(missing_words))
        return pc.if_else(missing, pa.scalar(None, pa.string()), cells)

    def raw_columns(self, columns: Sequence[int]) -> list[list[str]]:
        """Return the cells of some columns as they stand in the file; an empty cell is an empty text."""
        return [self.some(np.array([index])).fill_null("").to_pylist() for index in columns]


def _from_bytes(block: bytes, layout: DelimitedLayout, path: Path, rows_before: int) -> CellBlock:
    """Return the cells of a block without quotes: separators are removed, their places become the offsets."""
    if not block.isascii():
        decode(block, path)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    while b"\n\n" in block:
        block = block.replace(b"\n\n", b"\n")
    block = block.lstrip(b"\n")
    if block and not block.endswith(b"\n"):
        block += b"\n"
    raw = np.frombuffer(block, dtype=np.uint8)
    is_separator = (raw == ord(layout.delimiter)) | (raw == _NEWLINE)
    separators = np.flatnonzero(is_separator)
    expected = len(layout.names)
    line_ends = np.flatnonzero(raw[separators] == _NEWLINE)
    widths = np.diff(line_ends, prepend=-1)
    if np.any(widths != expected):
        bad = int(np.argmax(widths != expected))
        raise _ragged(rows_before + bad + 1, int(widths[bad]), expected, path)
    offsets = np.zeros(separators.size + 1, dtype=np.int32)
    offsets[1:] = separators - np.arange(separators.size)
    return CellBlock(offsets, pa.py_buffer(raw[~is_separator]), expected)


def _from_rows(rows: list[list[str]], n_columns: int) -> CellBlock:
    array = pa.array([cell for row in rows for cell in row], type=pa.string())
    _, offsets, data = array.buffers()
    offsets = np.frombuffer(offsets, dtype=np.int32)[: len(array) + 1]
    return CellBlock(offsets, data if data is not None else pa.py_buffer(b""), n_columns)


def _quoted_rows(text: TextIO, layout: DelimitedLayout, quote: str) -> Iterator[list[str]]:
    # ARFF puts a backslash before a quote inside text, CSV doubles the quote.
    style: dict[str, Any] = {"escapechar": "\\", "skipinitialspace": True} if layout.comment else {}
    for row in csv.reader(text, delimiter=layout.delimiter, quotechar=quote, **style):
        if row and not (layout.comment and row[0].startswith(layout.comment)):
            yield row


def _quoted_blocks(path: Path, offset: int, layout: DelimitedLayout, quote: str, done: int) -> Iterator[CellBlock]:
    """Read the rest of the file with Python's csv module, which knows about quotes."""
    expected = len(layout.names)
    csv.field_size_limit(2**24)
    rows: list[list[str]] = []
    try:
        with open(path, "rb") as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            file.seek(offset)
            for row in _quoted_rows(text, layout, quote):
                if len(row) != expected:
                    raise _ragged(done + len(rows) + 1, len(row), expected, path)
                rows.append(row)
                if len(rows) * expected >= _BLOCK_CELLS:
                    yield _from_rows(rows, expected)
                    done += len(rows)
                    rows = []
    except UnicodeDecodeError as error:
        raise TableError(f"{path.name} is not UTF-8 text ({error.reason}). Name its `encoding`.") from None
    except csv.Error as error:
        raise TableError(f"{path.name}, near data row {done + len(rows) + 1:,}: {error}.") from None
    if rows:
        yield _from_rows(rows, expected)


def iterate_blocks(path: Path, layout: DelimitedLayout, block_bytes: int = _BLOCK_BYTES) -> Generator[CellBlock]:
    """Read the rows of a file, a block at a time.

    Parameters
    ----------
    path : Path
        The file.
    layout : DelimitedLayout
        As :func:`detect_layout` found it.
    block_bytes : int, default=16 * 1024**2
        How much is read at a time; a row longer than that is still read whole.
    """
    rows_before = 0
    with open(path, "rb") as file:
        file.seek(layout.data_offset)
        offset, rest = layout.data_offset, b""
        while True:
            chunk = file.read(block_bytes)
            block = rest + chunk
            if not block:
                return
            used = [quote for quote in layout.quotes if quote.encode() in chunk]
            if used or (layout.comment and layout.comment.encode() in chunk):
                quote = used[0] if used else layout.quotes[0]
                yield from _quoted_blocks(path, offset, layout, quote, rows_before)
                return
            cut = len(block) if not chunk else max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
            if cut == 0:
                rest = block
                continue
            whole, rest = block[:cut], block[cut:]
            if whole.strip(b"\r\n"):
                cells = _from_bytes(whole, layout, path, rows_before)
                rows_before += cells.n_rows
                yield cells
            offset += cut
            if not chunk:
                return
