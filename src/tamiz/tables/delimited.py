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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

import numpy as np
import pyarrow as pa

from tamiz.tables.cells import MISSING, is_number
from tamiz.tables.errors import TableError
from tamiz.tables.formats import guess_format
from tamiz.tables.names import clean_column_names

_BLOCK_BYTES = 16 * 1024**2
_BLOCK_CELLS = 1_000_000
_LONGEST_HEADER = 256 * 1024**2
_NEWLINE = ord("\n")
#: Rows below the first that are looked at to tell names from numbers.
_ROWS_BELOW = 10


@dataclass(frozen=True)
class DelimitedLayout:
    """Describe where the rows of a delimited file begin and what separates its cells.

    Parameters
    ----------
    names : list of str
        Names of all columns.
    delimiter : str
        What separates the cells.
    data_offset : int
        Byte at which the rows begin.
    has_header : bool
        Whether the file holds the names.
    quotes : str, default='"'
        Characters that quote a cell.
    comment : str or None, default=None
        What lines to skip begin with (ARFF).
    header : str, default=""
        Lines of the header that are needed to write another file (ARFF).
    """

    names: list[str]
    delimiter: str
    data_offset: int
    has_header: bool
    quotes: str = '"'
    comment: str | None = None
    header: str = ""


def check_is_text(head: bytes, path: Path) -> None:
    """Raise TableError if the first bytes of a file are not those of text; say what they look like."""
    guess = guess_format(head)
    kind = guess.title if guess is not None and guess.binary else None
    if head.startswith(b"PK\x03\x04"):
        kind = "zip, xlsx or NPZ"
    if kind is not None:
        raise TableError(
            f"{path.name} is no text file: it looks like {kind}. Unpack it, or name the format with `format`."
        )
    if b"\0" in head:
        raise TableError(
            f"{path.name} is a binary file, or text in an encoding that nothing in it tells. "
            "Name its `format`, or its `encoding` (such as utf-16-le)."
        )


class _HeaderLines:
    """Read the first lines of a text file; newlines in quotes belong to the line, empty lines are skipped."""

    def __init__(self, file: BinaryIO, path: Path, skip_rows: int = 0) -> None:
        self._file, self._path = file, path
        self._taken = bytearray()
        self._more()
        check_is_text(bytes(self._taken[:4096]), path)
        self.offset = 0
        for _ in range(skip_rows):
            end = self._find_end(self.offset)
            if end >= len(self._taken):
                raise TableError(f"{path.name} has fewer lines than the {skip_rows:,} of `skip_rows`.")
            self.offset = end + 1

    def _more(self) -> bool:
        chunk = self._file.read(1024**2)
        self._taken += chunk
        return bool(chunk)

    def _find_end(self, start: int) -> int:
        """Return where the line that begins at ``start`` ends; the end of the file if nothing does."""
        searched = start
        while (end := self._taken.find(b"\n", searched)) < 0:
            searched = len(self._taken)
            if searched > _LONGEST_HEADER:
                raise TableError(
                    f"{self._path.name} has no line end in its first {_LONGEST_HEADER:,} bytes: is it a table?"
                )
            if not self._more():
                return len(self._taken)
        return end

    def next_line(self) -> bytes:
        """Return the next line that is not empty; nothing at the end of the file. ``offset`` is then behind it."""
        begin = end = self.offset
        while True:
            end = self._find_end(end)
            line = bytes(self._taken[begin:end])
            at_end = end >= len(self._taken)
            if not line.strip(b"\r\n \t\xef\xbb\xbf"):
                begin = end + 1
            elif line.count(b'"') % 2 == 0 or at_end:
                self.begin, self.offset = begin, min(end + 1, len(self._taken))
                return line
            if at_end:
                return b""
            end += 1


def decode(data: bytes, path: Path) -> str:
    """Decode UTF-8 text and drop a byte-order mark; raise TableError if it is in another encoding."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise_not_utf8(error, path)


def raise_not_utf8(error: UnicodeDecodeError, path: Path) -> NoReturn:
    """Raise TableError that asks for the encoding."""
    raise TableError(
        f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}). "
        "Name its `encoding`, such as latin1 or cp1252."
    ) from None


def _split(line: str, delimiter: str) -> list[str]:
    csv.field_size_limit(2**24)  # a header of 20,000 names is one long field to the wrong delimiter
    return next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter), [""])


def _split_plainly(line: str, delimiter: str) -> list[str]:
    try:
        return _split(line, delimiter)
    except csv.Error as error:
        raise TableError(f"The first lines cannot be split into cells: {error}.") from None


def _find_delimiter(first: str, second: str) -> str:
    """Return the mark that splits the first line most; a blank if no other does and both lines agree on it."""
    delimiter = max(",;\t|", key=lambda mark: len(_split_plainly(first, mark)))
    n_cells = len(_split_plainly(first, delimiter))
    blanks = len(_split_plainly(first, " "))
    if n_cells == 1 and blanks > 1 and len(_split_plainly(second, " ")) in (blanks, blanks + 1):
        return " "
    return delimiter


def _is_header(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Decide whether the first row holds names: text, or numbers that only names can be."""
    stripped = [cell.strip() for cell in cells]
    if not all(is_number(cell) or cell in MISSING for cell in stripped):
        return True
    below = [row for row in below if len(row) == len(cells)]
    rest = stripped[1:]
    if below and not stripped[0] and rest and "" not in rest and len(set(rest)) == len(rest):
        # The corner above the names of the rows, as pandas and R write it.
        return all(row[0].strip() for row in below)
    if not below or len(set(stripped)) < len(stripped) or not all(cell.isdigit() for cell in stripped):
        return False
    # Distinct whole numbers above decimals: numbers of genes, or columns that pandas numbered.
    decimal = [
        any(is_number(row[i]) and not row[i].strip().lstrip("+-").isdigit() for row in below) for i in range(len(cells))
    ]
    return 2 * sum(decimal) >= len(cells)


def detect_layout(
    path: Path, delimiter: str | None = None, header: bool | None = None, skip_rows: int = 0
) -> DelimitedLayout:
    """Find delimiter, header and names of a CSV or TSV file.

    Parameters
    ----------
    path : Path
        The file.
    delimiter : str or None, default=None
        What separates the cells; None takes the one of comma, semicolon, tab and bar that splits the first line most, or
        a blank if none of them does.
    header : bool or None, default=None
        Whether the first line holds names; None takes it as names unless its cells are numbers like those below.
    skip_rows : int, default=0
        Lines above the table to skip.
    """
    with open(path, "rb") as file:
        lines = _HeaderLines(file, path, skip_rows)
        first = lines.next_line()
        if not first:
            raise TableError(f"{path.name} is empty.")
        begin, offset = lines.begin, lines.offset
        below = [decode(lines.next_line(), path).strip("\r\n") for _ in range(_ROWS_BELOW)]
    text = decode(first, path).strip("\r\n")
    if delimiter is None:
        delimiter = _find_delimiter(text, below[0])
    cells = _split_plainly(text, delimiter)
    rows = [_split_plainly(line, delimiter) for line in below if line]
    # A last cell that is always empty is a delimiter too many instead.
    one_short = bool(rows) and all(len(row) == len(cells) + 1 for row in rows) and any(row[-1] for row in rows)
    if header is None:
        header = one_short or _is_header(cells, rows)
    if not header:
        blanks = len(first) - len(first.lstrip(b"\r\n \xef\xbb\xbf"))
        names = [f"column_{number}" for number in range(1, len(cells) + 1)]
        return DelimitedLayout(names, delimiter, begin + blanks, has_header=False)
    if one_short:  # R writes no name above the names of the rows
        cells = ["", *cells]
    return DelimitedLayout(clean_column_names(cells), delimiter, offset, has_header=True)


def check_several_columns(path: Path, names: Sequence[str]) -> None:
    """Raise TableError for a single column, which most often means another delimiter."""
    if len(names) == 1:
        raise TableError(
            f"{path.name} has one column only ({names[0]!r:.60}). Is the delimiter another? Name it with `delimiter`."
        )


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
