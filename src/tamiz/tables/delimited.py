"""Find delimiter, header and names of CSV and TSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from tamiz.errors import TableError
from tamiz.tables.cells import MISSING, is_number
from tamiz.tables.formats import guess_format
from tamiz.tables.names import clean_column_names

_LONGEST_HEADER = 256 * 1024**2
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
