"""Read CSV, TSV and ARFF files: find delimiter, header and types on the first rows, then let polars read the rows."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tamiz.errors import TableError, TamizError
from tamiz.tables.columns import is_number, needs_comma
from tamiz.tables.files import PlainFile, drop_empty_lines, open_file
from tamiz.tables.formats import guess_format
from tamiz.tables.frames import build_table
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import MISSING, ReadOptions, choose_columns, clean_column_names
from tamiz.tables.table import DataTable, load_polars

_LONGEST_LINE = 256 * 1024**2
#: Rows below the first that are looked at to tell names from numbers, and numbers from text.
_ROWS_BELOW = 10
#: Times that a file is read again because one more column turned out to be text; then all columns are read as text.
_RETRIES = 4


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
    comma : bool, default=False
        Whether numbers have a decimal comma.
    """

    names: list[str]
    delimiter: str
    skip_lines: int
    has_header: bool
    rows: list[list[str]] = field(repr=False)
    comma: bool = False


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


def _raise_not_utf8(path: Path, reason: str) -> NoReturn:
    raise TableError(
        f"{path.name} is not UTF-8 text ({reason}). Name its `encoding`, such as latin1 or cp1252."
    ) from None


def _first_lines(path: Path, skip: int) -> Iterator[str]:
    """Yield the lines of a text file; a line ends where its quotes are closed."""
    with open(path, "rb") as file:
        check_is_text(file.read(4096), path)
        file.seek(0)
        for _ in range(skip):
            file.readline(_LONGEST_LINE)
        while line := file.readline(_LONGEST_LINE):
            while line.count(b'"') % 2 and len(line) < _LONGEST_LINE and (more := file.readline(_LONGEST_LINE)):
                line += more
            if len(line) >= _LONGEST_LINE:
                raise TableError(f"{path.name} has no line end in its first {_LONGEST_LINE:,} bytes: is it a table?")
            try:
                yield line.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                _raise_not_utf8(path, f"{error.reason} at byte {error.start}")


def _split(line: str, delimiter: str) -> list[str]:
    csv.field_size_limit(2**24)  # a header of 20,000 names is one long field to the wrong delimiter
    try:
        return next(csv.reader(io.StringIO(line.strip("\r\n"), newline=""), delimiter=delimiter), [""])
    except csv.Error as error:
        raise TableError(f"The first lines cannot be split into cells: {error}.") from None


def _find_delimiter(first: str, second: str) -> str:
    """Return the mark that splits the first line most; a blank if no other does and both lines agree on it."""
    delimiter = max(",;\t|", key=lambda mark: len(_split(first, mark)))
    if len(_split(first, ";")) > 1 and len(_split(second, ";")) == len(_split(first, ";")) != len(_split(second, ",")):
        delimiter = ";" if delimiter == "," else delimiter  # the commas of the first line are decimal marks
    blanks = len(_split(first, " "))
    if len(_split(first, delimiter)) == 1 and blanks > 1 and len(_split(second, " ")) in (blanks, blanks + 1):
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


def find_layout(path: Path, delimiter: str | None = None, header: bool | None = None, skip: int = 0) -> Layout:
    """Find delimiter, header, names and decimal mark of a CSV or TSV file.

    Parameters
    ----------
    path : Path
        The file, without empty lines.
    delimiter : str or None, default=None
        What separates the cells; None takes the one of comma, semicolon, tab and bar that splits the first line most, or
        a blank if none of them does.
    header : bool or None, default=None
        Whether the first line holds names; None takes it as names unless its cells are numbers like those below.
    skip : int, default=0
        Lines above the table.
    """
    lines = list(itertools.islice(_first_lines(path, skip), _ROWS_BELOW + 1))
    if not lines or not lines[0].strip():
        raise TableError(f"{path.name} is empty.")
    delimiter = delimiter or _find_delimiter(lines[0], lines[1] if len(lines) > 1 else "")
    cells, *rows = [_split(line, delimiter) for line in lines]
    # A last cell that is always empty is a delimiter too many instead.
    one_short = bool(rows) and all(len(row) == len(cells) + 1 for row in rows) and any(row[-1] for row in rows)
    if header is None:
        header = one_short or is_header(cells, rows)
    if header:
        skip += lines[0].count("\n")
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
    comma = False
    if delimiter != ",":
        some = [cell.strip() for row in rows for cell in row[:1000]]
        points = any("." in cell and is_number(cell) for cell in some)
        comma = any(map(needs_comma, some)) or (delimiter == ";" and not points)
    return Layout(names, delimiter, skip, header, rows, comma)


def _fits(cell: str, words: Collection[str], comma: bool) -> bool:
    """Check whether a cell may stand in a column of numbers."""
    return is_number(cell) or cell.strip() in words or (comma and is_number(cell.replace(",", ".", 1)))


def polars_options(layout: Layout, words: Sequence[str], text: Sequence[int] = ()) -> dict[str, Any]:
    """Return the arguments of ``polars.read_csv`` and ``scan_csv`` for a file.

    Parameters
    ----------
    layout : Layout
        Of the file.
    words : sequence of str
        Cells that mean a missing value.
    text : sequence of int, default=()
        Columns that are read as text, besides those that hold text in the first rows.
    """
    pl = load_polars()
    known = set(words)
    open_columns = sorted(set(range(len(layout.names))).difference(text))
    for row in layout.rows:
        try:  # quick where all cells are numbers; nan and inf are, too
            list(map(float, [row[i] for i in open_columns]))
            odd = any("_" in cell for cell in row)
        except (ValueError, IndexError):
            odd = True
        if odd:
            open_columns = [i for i in open_columns if i >= len(row) or _fits(row[i], known, layout.comma)]
    schema = dict.fromkeys((f"column_{i + 1}" for i in range(len(layout.names))), pl.String)
    schema.update(dict.fromkeys((f"column_{i + 1}" for i in open_columns), pl.Float64))
    return {
        "has_header": False,
        "separator": layout.delimiter,
        "skip_lines": layout.skip_lines,
        "schema": schema,
        "decimal_comma": layout.comma,
        "glob": False,
    }


def _read_frame(path: Path, layout: Layout, positions: Sequence[int], text: Sequence[int], words: Sequence[str]) -> Any:
    """Read some columns and the last; those that turn out not to be numbers are read again as text."""
    pl = load_polars()
    options = polars_options(layout, words, text)
    schema, last = options["schema"], len(layout.names) - 1
    # The last column is always read: where it is missing, a row may be too short.
    names = [f"column_{i + 1}" for i in sorted({*positions, last})]
    taken = None if len(names) == len(schema) else names
    nulls: list[str] | None = None if tuple(words) == MISSING else list(words)
    for attempt in itertools.count():  # ends: at last every column is text
        try:
            frame = pl.read_csv(path, columns=taken, null_values=nulls, **options)
            break
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            fault = re.search(r"could not parse .* as dtype .* at column '(column_\d+)'", str(error), re.DOTALL)
            if fault is None:
                _explain(error, path, layout)
            if nulls is None:  # words such as NA are looked for only once they are met, which is quicker
                nulls = list(words)
            elif attempt < _RETRIES:
                schema[fault[1]] = pl.String
            else:
                schema.update(dict.fromkeys(schema, pl.String))
    if frame.height == 0:
        raise TableError(f"{path.name} has a header, but no rows.")
    return frame


def _explain(error: BaseException, path: Path, layout: Layout) -> NoReturn:
    """Raise the TableError for what polars says about a file."""
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "utf-8" in message.lower() or "utf8" in message.lower():
        _raise_not_utf8(path, "an invalid byte")
    if "more fields" in message or "n_extra" in message:
        _check_widths(path, layout)
    raise TableError(f"{path.name} cannot be read: {message.rstrip('.')}.") from None


def _check_widths(path: Path, layout: Layout) -> None:
    """Raise TableError for the first row with more or fewer cells than there are columns."""
    expected = len(layout.names)
    with open(path, encoding="utf-8-sig", newline="", errors="replace") as file:
        for _ in range(layout.skip_lines):
            file.readline()
        try:
            for number, row in enumerate(csv.reader(file, delimiter=layout.delimiter), start=1):
                if row and len(row) != expected:
                    raise TableError(
                        f"{path.name}, data row {number:,}: {len(row):,} cell(s), but there are {expected:,} columns. Fix "
                        "that row (a delimiter inside text must be in quotes), or name the delimiter with `delimiter`."
                    )
        except csv.Error as error:
            raise TableError(f"{path.name} cannot be split into cells: {error}.") from None


def read_csv(path: Path, options: ReadOptions, budget: MemoryBudget) -> DataTable:
    """Read a CSV file; the delimiter is found."""
    return _read_text(path, options, budget, "csv", options.delimiter)


def read_tsv(path: Path, options: ReadOptions, budget: MemoryBudget) -> DataTable:
    """Read a TSV file."""
    return _read_text(path, options, budget, "tsv", options.delimiter or "\t")


def _read_text(
    path: Path, options: ReadOptions, budget: MemoryBudget, format_name: str, delimiter: str | None
) -> DataTable:
    plain, skip = PlainFile(path), options.skip_rows
    with open_file(path) as file:
        head = file.read(2**16)
    if skip or re.search(rb"^(?:\xef\xbb\xbf)?\s*\n|\n\s*\n", head):
        plain, skip = drop_empty_lines(plain, path.name, skip)
    layout = find_layout(plain.path, delimiter, options.header, skip)
    comma = layout.comma or options.decimal == ","
    layout = replace(layout, comma=comma and layout.delimiter != ",")
    choice = choose_columns(layout.names, options)
    left_out = {}
    if layout.names[0] == "column_1" and layout.has_header and choice.wanted[0] and options.columns is None:
        # R and pandas write the names of the rows there; as a feature they would only leak the order of the file.
        choice.wanted[0] = False
        left_out[0] = "row names (a first column without a name)"
    positions, size = choice.positions, plain.path.stat().st_size
    n_rows = round(size / np.mean([sum(map(len, row)) + len(row) for row in layout.rows]))
    need = n_rows * len(positions) * (8 + 4 * options.copies) + size
    budget.require(need, f"{path.name} (about {n_rows:,} rows, {len(layout.names):,} columns, and the run on it)")
    text = [*np.flatnonzero(choice.as_text).tolist(), *([] if choice.target is None else [choice.target])]
    frame = _read_frame(plain.path, layout, positions, text, options.missing_words)
    if frame[frame.columns[-1]].null_count():  # an empty line or a row that is too short lacks the last column
        cleaned, _ = drop_empty_lines(plain, path.name, layout.skip_lines)
        if cleaned is not plain:
            plain, layout = cleaned, replace(layout, skip_lines=0)
            frame = _read_frame(plain.path, layout, positions, text, options.missing_words)
        _check_widths(plain.path, layout)
    if len(layout.names) - 1 not in positions:
        frame = frame.drop(frame.columns[-1])
    table = build_table(frame, layout.names, choice, options, path, format_name, comma)
    table.left_out.update(left_out)
    table.source.update(layout=replace(layout, rows=layout.rows[:1]), cleaned=plain)
    _count_missing_words(table, options.missing_words)
    return table


def _count_missing_words(table: DataTable, words: Sequence[str]) -> None:
    """Record the words of the target that were taken as missing values, and how many rows have each."""
    codes = getattr(table.target_column, "codes", None)
    if codes is None or not np.any(codes < 0) or table.target_name is None:
        return
    cells = load_text(table, [table.names.index(table.target_name)]).to_series().str.strip_chars()
    found = cells.filter(cells.is_in([word for word in words if word])).value_counts()
    table.source["missing_words"] = dict(found.iter_rows())


def load_text(table: DataTable, columns: Sequence[int]) -> Any:
    """Read some columns of a CSV or TSV file again, as the text that stands there."""
    pl = load_polars()
    layout, path = table.source["layout"], table.source["cleaned"].path
    options = polars_options(layout, (), range(len(layout.names)))
    frame = pl.read_csv(path, columns=[f"column_{i + 1}" for i in columns], **options | {"decimal_comma": False})
    return frame.rename({f"column_{i + 1}": table.names[i] for i in columns})


def scan_text(files: Sequence[Path], format_name: str) -> Any:
    """Open CSV or TSV files of the same layout as a lazy polars frame; the first one decides on names and types."""
    pl = load_polars()
    layout = find_layout(files[0], "\t" if format_name == "tsv" else None)
    options = polars_options(layout, MISSING) | {"null_values": list(MISSING)}
    frame = pl.scan_csv(list(files), **options)
    return frame.rename({f"column_{i + 1}": name for i, name in enumerate(layout.names)})


_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+?))\s*(?=\s|\{)\s*(.+)$""", re.IGNORECASE
)
_NUMERIC = ("numeric", "real", "integer")


class ArffError(TamizError, ValueError):
    """Raise if the header of an ARFF file cannot be understood."""


@dataclass
class ArffHeader:
    """What stands above the rows of an ARFF file.

    Parameters
    ----------
    names : list of str
        Names of the attributes.
    kinds : list of str
        "numeric", "text" or "date" for each.
    data_offset : int, default=0
        Byte at which the rows begin.
    """

    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    data_offset: int = 0


def parse_attribute(line: str) -> tuple[str, str]:
    """Return name and kind ("numeric", "text" or "date") of an attribute.

    Examples
    --------
    >>> parse_attribute("@ATTRIBUTE 'cell size' REAL"), parse_attribute("@attribute kind {a, b}")
    (('cell size', 'numeric'), ('kind', 'text'))
    """
    match = _ATTRIBUTE.match(line.strip())
    if match is None:
        raise ArffError(f"This line of the ARFF header cannot be understood: {line.strip()!r:.60}.")
    name = re.sub(r"\\(.)", r"\1", next(part for part in match.groups()[:3] if part is not None))
    kind = match.group(4).strip().lower()
    if kind.startswith("date"):
        return name, "date"
    return name, "numeric" if kind.split()[0] in _NUMERIC else "text"


def read_arff_header(path: Path) -> ArffHeader:
    """Read the header of a dense ARFF file.

    Parameters
    ----------
    path : Path
        The file, UTF-8.

    Raises
    ------
    ArffError
        If the header cannot be understood, or the rows are sparse.
    UnicodeDecodeError
        If the header is not UTF-8.
    """
    header = ArffHeader()
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            line = raw.decode("utf-8-sig").strip()
            lowered = line.lower()
            if lowered.startswith("@attribute"):
                name, kind = parse_attribute(line)
                header.names.append(name)
                header.kinds.append(kind)
            elif lowered.startswith("@data"):
                if not header.names:
                    raise ArffError(f"{path.name} has no @attribute line before @data: no column is named.")
                header.data_offset = file.tell()
                rows = (row.strip() for row in file)
                first = next((row for row in rows if row and not row.startswith(b"%")), b"")
                if first.startswith(b"{"):
                    raise ArffError(
                        f"{path.name} is sparse ARFF, which is not read. Convert it to svmlight or plain ARFF."
                    )
                return header
            elif line and not line.startswith("%") and not lowered.startswith("@relation"):
                raise ArffError(f"{path.name}, line {number}: {line!r:.60} is no part of an ARFF header.")
    raise ArffError(f"{path.name} has no @data line: it is empty, cut off, or no ARFF file.")


def read_arff(path: Path, options: ReadOptions, budget: MemoryBudget) -> DataTable:
    """Read an ARFF file; nominal attributes and strings are text, whatever they hold.

    Parameters
    ----------
    path : Path
        The file, UTF-8 text.
    options : ReadOptions
        Target, columns to ignore and so on.
    budget : MemoryBudget
        Asked before the memory is taken.
    """
    with open(path, "rb") as file:
        check_is_text(file.read(4096), path)
    try:
        header = read_arff_header(path)
        names = clean_column_names(header.names)
        if len(names) == 1:
            raise TableError(f"{path.name} has one column only ({names[0]!r:.60}).")
        choice = choose_columns(names, options)
        choice.as_text |= np.array([kind == "text" for kind in header.kinds])
        # Cells of Python take some 60 bytes each until they are numbers.
        budget.require(path.stat().st_size * 20.0, path.name)
        columns = _arff_columns(path, header)
    except ArffError as error:
        raise TableError(str(error)) from None
    except UnicodeDecodeError as error:
        _raise_not_utf8(path, f"{error.reason} at byte {error.start}")
    table = build_table(_arff_frame(columns, choice.positions), names, choice, options, path, "arff")
    table.source["columns"] = (header, path)
    return table


def _arff_frame(
    columns: Sequence[Sequence[str | None]], positions: Sequence[int], names: Sequence[str] | None = None
) -> Any:
    pl = load_polars()
    return pl.DataFrame(
        [pl.Series(str(i) if names is None else names[i], columns[i], dtype=pl.String) for i in positions]
    )


def _arff_columns(path: Path, header: ArffHeader) -> list[tuple[str, ...]]:
    """Return the cells of an ARFF file by columns."""
    csv.field_size_limit(2**24)
    rows: list[list[str]] = []
    with open(path, "rb") as file:
        file.seek(header.data_offset)
        content = file.read()
    quote = next((mark for mark in "'\"" if mark.encode() in content), '"')
    lines = (line for line in io.StringIO(content.decode("utf-8"), newline=None) if line.strip() and line[0] != "%")
    try:
        for row in csv.reader(lines, quotechar=quote, escapechar="\\", skipinitialspace=True):
            if len(row) != len(header.names):
                raise TableError(
                    f"{path.name}, data row {len(rows) + 1:,}: {len(row):,} cell(s), but there are "
                    f"{len(header.names):,} columns. Fix that row (a comma inside text must be in quotes)."
                )
            rows.append(row)
    except csv.Error as error:
        raise TableError(f"{path.name}, near data row {len(rows) + 1:,}: {error}.") from None
    if not rows:
        raise TableError(f"{path.name} has a header, but no rows.")
    return list(zip(*rows, strict=True))


def load_arff(table: DataTable, columns: Sequence[int]) -> Any:
    """Read some columns of an ARFF file again, as the text that stands there; nothing where it is missing."""
    header, path = table.source["columns"]
    cells = [[None if cell == "?" else cell for cell in column] for column in _arff_columns(path, header)]
    return _arff_frame(cells, columns, table.names)
