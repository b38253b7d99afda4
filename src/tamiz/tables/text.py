"""Read CSV, TSV and ARFF files: find delimiter, header and types on the first rows, then let polars read the rows."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from tamiz._utils.text import counted
from tamiz.errors import TableError
from tamiz.tables.columns import is_number, needs_comma
from tamiz.tables.files import read_head
from tamiz.tables.formats import guess_format
from tamiz.tables.names import MISSING, ReadOptions, check_memory, choose_columns, clean_column_names
from tamiz.tables.table import DataTable, as_table, build_table, load_polars

_LONGEST_LINE = 256 * 1024**2
#: Rows below the first that are looked at to tell names from numbers.
_ROWS_BELOW = 10


@dataclass(frozen=True)
class Layout:
    """Where the rows of a delimited file begin and what its cells look like.

    Parameters
    ----------
    names : list of str
        Names of all columns.
    delimiter : str
        What separates the cells.
    skip_lines : int
        Lines above the rows.
    has_header : bool
        Whether the file holds the names.
    rows : list of list of str
        Cells of the first rows.
    comma : bool
        Whether numbers have a decimal comma.
    """

    names: list[str]
    delimiter: str
    skip_lines: int
    has_header: bool
    rows: list[list[str]] = field(repr=False)
    comma: bool


def check_is_text(path: Path) -> None:
    """Raise TableError if the first bytes of a file are not those of text; say what they look like."""
    head = read_head(path, 4096)
    guess = guess_format(head)
    if guess is not None and guess.binary:
        kind = "zip, xlsx or NPZ" if head.startswith(b"PK") else guess.title
        raise TableError(
            f"{path.name} is no text file: it looks like {kind}. Unpack it, or name the format with `format`."
        )
    if b"\0" in head:
        raise TableError(
            f"{path.name} is a binary file, or text in an encoding that nothing in it tells. "
            "Name its `format`, or its `encoding` (such as utf-16-le)."
        )


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    """Open a file in UTF-8; raise TableError for other bytes, and for what the csv module cannot split."""
    csv.field_size_limit(2**24)  # a header of 20,000 names is one long field to the wrong delimiter
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield file
    except csv.Error as error:
        raise TableError(f"{path.name} cannot be split into cells: {error}.") from None
    except UnicodeDecodeError as error:
        raise _not_utf8(path, f"{error.reason} at byte {error.start}") from None


def _not_utf8(path: Path, reason: str) -> TableError:
    return TableError(f"{path.name} is not UTF-8 text ({reason}). Name its `encoding`, such as latin1 or cp1252.")


def _read_cells(path: Path, skip: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a file as the csv module splits them, each with the number of the line that ends it."""
    with _open_text(path) as file:
        for _ in range(skip):
            if not file.readline(_LONGEST_LINE):
                raise TableError(f"{path.name} has fewer lines than the {skip:,} of `skip_rows`.")
        reader = csv.reader(iter(lambda: file.readline(_LONGEST_LINE), ""), delimiter=delimiter)
        for row in reader:
            yield skip + reader.line_num, row


def _first_rows(path: Path, delimiter: str, skip: int, n_rows: int) -> list[tuple[int, list[str]]]:
    rows = itertools.dropwhile(lambda row: not "".join(row[1]).strip(), _read_cells(path, skip, delimiter))
    return list(itertools.islice((row for row in rows if len(row[1]) > 1 or "".join(row[1]).strip()), n_rows))


def _find_delimiter(path: Path, skip: int) -> str:
    """Find the mark that splits the first line most; a blank if no other does and both lines agree on it."""
    first, second = {}, {}
    for mark in ",;\t| ":
        widths = [len(row) for _, row in _first_rows(path, mark, skip, 2)]
        first[mark], second[mark] = [*widths, 1, 1][:2]
    delimiter = max(",;\t|", key=first.__getitem__)
    if delimiter == "," and first[";"] > 1 and second[";"] == first[";"] != second[","]:
        return ";"  # the commas of the first line are decimal marks
    if first[delimiter] == 1 and first[" "] > 1 and second[" "] in (first[" "], first[" "] + 1):
        return " "
    return delimiter


def is_header(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Check whether the first row holds names: text, or numbers that only names can be.

    Parameters
    ----------
    cells : sequence of str
        First row.
    below : sequence of sequence of str
        Rows below it.
    """
    stripped = [cell.strip() for cell in cells]
    if not all(is_number(cell) or needs_comma(cell) or cell in MISSING for cell in stripped):
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


def find_layout(path: Path, options: ReadOptions, delimiter: str | None = None) -> Layout:
    """Find delimiter, header, names and decimal mark of a CSV or TSV file on its first rows.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        What the user knows about it.
    delimiter : str or None, default=None
        What separates the cells; None takes the one of comma, semicolon, tab and bar that splits the first line most, or
        a blank if none of them does.
    """
    check_is_text(path)
    delimiter = options.delimiter or delimiter or _find_delimiter(path, options.skip_rows)
    found = _first_rows(path, delimiter, options.skip_rows, _ROWS_BELOW + 1)
    if not found:
        raise TableError(f"{path.name} is empty.")
    cells, *rows = [row for _, row in found]
    header = options.header
    # A last cell that is always empty is a delimiter too many instead.
    one_short = bool(rows) and all(len(row) == len(cells) + 1 for row in rows) and any(row[-1] for row in rows)
    if header is None:
        header = one_short or is_header(cells, rows)
    if header:
        names = clean_column_names(["", *cells] if one_short else cells)  # R writes no name above the names of the rows
    else:
        rows = [cells, *rows]
        names = [f"column_{number}" for number in range(1, len(cells) + 1)]
    if len(names) == 1:
        raise TableError(
            f"{path.name} has one column only ({names[0]!r:.60}). Is the delimiter another? Name it with `delimiter`."
        )
    if not rows:
        raise TableError(f"{path.name} has a header, but no rows.")
    line, first = found[int(header)]
    skip = line - 1 - "".join(first).count("\n")  # the line at which the first row begins
    some = [cell.strip() for row in rows for cell in row[:1000]]
    points = any("." in cell and is_number(cell) for cell in some)
    comma = delimiter != "," and (any(map(needs_comma, some)) or (delimiter == ";" and not points))
    return Layout(names, delimiter, skip, header, rows, comma or options.decimal == ",")


def _read_rows(path: Path, layout: Layout, columns: Sequence[int], words: Sequence[str], numbers: set[int]) -> Any:
    """Read some columns with polars, null for some words; all as text if those of numbers hold anything else."""
    pl = load_polars()
    try:
        frame = pl.read_csv(
            path,
            has_header=False,
            columns=None if len(columns) == len(layout.names) else [f"column_{i}" for i in columns],
            schema={f"column_{i}": pl.Float64 if i in numbers else pl.String for i in range(len(layout.names))},
            separator=layout.delimiter,
            skip_lines=layout.skip_lines,
            null_values=list(words),
            glob=False,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if numbers:
            return _read_rows(path, layout, columns, words, set())
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "utf-8" in message.lower() or "utf8" in message.lower():
            raise _not_utf8(path, "an invalid byte") from None
        if "more fields" in message or "n_extra" in message or "n_missing" in message:
            _find_empty_lines(path, layout)
        raise TableError(f"{path.name} cannot be read: {message.rstrip('.')}.") from None
    frame.columns = [layout.names[i] for i in columns]
    return frame


def _drop_rows(frame: Any, rows: Sequence[int]) -> Any:
    return frame.filter(~np.isin(np.arange(frame.height), rows)) if rows else frame


def _find_empty_lines(path: Path, layout: Layout) -> list[int]:
    """List the rows that are empty lines; raise TableError for the first that has more or fewer cells than columns."""
    expected = len(layout.names)
    empty: list[int] = []
    for number, (_, row) in enumerate(_read_cells(path, layout.skip_lines, layout.delimiter)):
        if len(row) != expected:
            if "".join(row).strip():
                raise TableError(
                    f"{path.name}, data row {number + 1 - len(empty):,}: {counted(len(row), 'cell')}, but there are {expected:,} "
                    "columns. Fix that row (a delimiter inside text must be in quotes), or name the delimiter with `delimiter`."
                )
            empty.append(number)
    return empty


def read_text(path: Path, options: ReadOptions, format_name: str = "csv", delimiter: str | None = None) -> DataTable:
    """Read a CSV or TSV file; the delimiter is found unless the format has its own."""
    layout = find_layout(path, options, delimiter)
    positions, as_text, target = choose_columns(layout.names, options)
    left_out = {}
    if layout.names[0] == "column_1" and layout.has_header and options.columns is None and 0 in {*positions} - {target}:
        # R and pandas write the names of the rows there; as a feature they would only leak the order of the file.
        positions.remove(0)
        left_out[0] = "row names (a first column without a name)"
    size = path.stat().st_size
    n_rows = round(size / np.mean([sum(map(len, row)) + len(row) for row in layout.rows]))
    need = n_rows * len(positions) * (8 + 4 * options.copies) + size
    check_memory(need, f"{path.name} (about {n_rows:,} rows, {len(layout.names):,} columns, and the run on it)")
    # The last column is always read: where it is missing, a row may be too short or an empty line.
    last = layout.names[-1]
    columns, words, empty = sorted({*positions, len(layout.names) - 1}), options.missing_words, list[int]()
    # What is a number in all of the first rows is read as such: twice as fast as text that is cast.
    rows = [] if layout.comma or options.na_values is not None else layout.rows
    fits = (all(is_number(cell) or cell in words for cell in cells) for cells in zip(*rows, strict=False))
    texts = {i for i, name in enumerate(layout.names) if name in options.texts} | {*as_text, target}
    numbers = {i for i, fit in enumerate(fits) if fit} - texts
    frame = _read_rows(path, layout, columns, words, numbers)
    if target is not None and frame[layout.names[target]].null_count():
        frame = frame.with_columns(_read_rows(path, layout, [target], (), set()))  # the words are counted
    if frame[last].null_count():
        empty = _find_empty_lines(path, layout)
        frame = _drop_rows(frame, empty)
    if frame.height == 0:
        raise TableError(f"{path.name} has a header, but no rows.")
    frame = frame if len(columns) == len(positions) else frame.drop(last)
    choice = positions, as_text, target
    table = build_table(frame, layout.names, choice, options, path, format_name, layout.comma)
    table.left_out |= left_out
    table.source |= {"layout": layout, "empty": empty}
    return table


def load_text(table: DataTable, columns: Sequence[int]) -> Any:
    """Read some columns of a CSV or TSV file again, as the text that stands there."""
    frame = _read_rows(table.path, table.source["layout"], sorted(columns), (), set())
    return _drop_rows(frame, table.source["empty"])


_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+?))\s*(?=\s|\{)\s*(.+)$""", re.IGNORECASE
)


def read_arff(path: Path, options: ReadOptions) -> DataTable:
    """Read a dense ARFF file; nominal attributes and strings are text, whatever they hold."""
    check_is_text(path)
    names: list[str] = []
    texts: list[int] = []
    rows: list[list[str | None]] = []
    with _open_text(path) as file:
        for number, line in enumerate(map(str.strip, file), start=1):
            lowered = line.lower()
            if lowered.startswith("@data"):
                break
            if lowered.startswith("@attribute"):
                match = _ATTRIBUTE.match(line)
                if match is None:
                    raise TableError(f"This line of the ARFF header cannot be understood: {line!r:.60}.")
                if match[4].lower().split()[0] not in ("numeric", "real", "integer", "date"):
                    texts.append(len(names))
                names.append(re.sub(r"\\(.)", r"\1", next(part for part in match.groups()[:3] if part is not None)))
            elif line and not line.startswith("%") and not lowered.startswith("@relation"):
                raise TableError(f"{path.name}, line {number}: {line!r:.60} is no part of an ARFF header.")
        else:
            raise TableError(f"{path.name} has no @data line: it is empty, cut off, or no ARFF file.")
        if len(names) < 2:
            raise TableError(
                f"{path.name} has {counted(len(names), '@attribute line')} before @data; two are the least."
            )
        names = clean_column_names(names)
        # Cells of Python take some 60 bytes each until they are numbers.
        check_memory(path.stat().st_size * 20.0, path.name)
        lines = [line for line in file if line[:1] != "%"]
        if next(filter(None, map(str.strip, lines)), "").startswith("{"):
            raise TableError(f"{path.name} is sparse ARFF, which is not read. Convert it to svmlight or plain ARFF.")
        quote = "'" if any("'" in line for line in lines) else '"'
        for row in csv.reader(lines, quotechar=quote, escapechar="\\", skipinitialspace=True):
            if len(row) == len(names):
                rows.append([None if cell == "?" else cell for cell in row])
            elif "".join(row).strip():
                raise TableError(
                    f"{path.name}, data row {len(rows) + 1:,}: {counted(len(row), 'cell')}, but there are {len(names):,} columns."
                    " Fix that row (a comma inside text must be in quotes)."
                )
    if not rows:
        raise TableError(f"{path.name} has a header, but no rows.")
    pl = load_polars()
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    options = replace(options, texts=[*options.texts, *(names[i] for i in texts)])
    table = as_table(frame, options=options, path=path, format="arff")
    table.source["frame"] = frame
    return table
