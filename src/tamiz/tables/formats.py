"""Register file formats: find the format of a file, read it, write some of its columns.

Nothing heavy is loaded here: the command line looks at files without numpy and polars.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamiz._utils.extras import require
from tamiz._utils.text import list_some, pick_name, quote
from tamiz.errors import TableArgumentError, TableError, TableMemoryError, UnknownNameError
from tamiz.tables.files import PlainFile, copy_stream, decode, is_stream, read_head, unpack, without_packing

if TYPE_CHECKING:
    from tamiz.tables.names import ReadOptions
    from tamiz.tables.table import DataTable

#: Rows x columns of an Excel sheet; one cell at the far end makes a sheet of 17,000 million.
_MOST_CELLS = 200_000_000
_ENTRY = re.compile(rb' r="([A-Z]{1,3})?(\d{1,7})"')


@dataclass(frozen=True)
class Format:
    """A file format.

    Parameters
    ----------
    name : str
        What ``read_table(format=...)`` calls it.
    title : str
        How it is spelt in messages.
    suffixes : tuple of str
        Endings of file names in lower case.
    read : callable
        ``read(path, options)``: a data frame of any library, or a DataTable.
    load : callable or None, default=None
        ``load(table, columns)``: some columns of the file that ``table`` was read from, as a polars frame; None takes them
        from the data frame that ``read`` returns.
    starts : tuple of bytes, default=()
        First bytes of its files.
    binary : bool, default=False
        Whether its files are no text.
    takes_skip_rows : bool, default=False
        Whether lines above the table can be skipped.

    See Also
    --------
    register_format : Add a format.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadOptions], Any]
    load: Callable[[DataTable, Sequence[int]], Any] | None = None
    starts: tuple[bytes, ...] = ()
    binary: bool = False
    takes_skip_rows: bool = False


def _late(module: str, name: str, *more: Any) -> Callable[..., Any]:
    """Make a function that is imported when it is first called."""
    return lambda *arguments: getattr(import_module(f"tamiz.tables.{module}"), name)(*arguments, *more)


def unreadable(path: Path, kind: str, error: BaseException) -> TableError:
    """Build the error for a file that a library cannot read."""
    detail = str(error).splitlines()[0] if str(error) else type(error).__name__
    return TableError(f"{path.name} cannot be read as {kind}: {detail.rstrip('.')[:200]}.")


def _read_frame(kind: str, path: Path, options: ReadOptions) -> Any:
    """Read a format that polars reads."""
    import polars as pl

    from tamiz.tables.names import check_memory

    check_memory(path.stat().st_size * 2.0, path.name)
    try:
        if kind == "parquet":
            return pl.read_parquet(path, glob=False)
        if kind == "ndjson":
            return pl.read_ndjson(path, infer_schema_length=None)
        # Bytes, not a path: a mapped file whose offsets point outside of it would end the process.
        content = path.read_bytes()
        return (pl.read_ipc if content.startswith(b"ARROW1") else pl.read_ipc_stream)(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, OverflowError) as error:
        raise unreadable(path, kind, error) from None


def _check_sheet(path: Path) -> None:
    """Raise before an Excel file is read whose sheets span more cells than memory can hold."""
    from tamiz.tables.names import check_memory

    rows = columns = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.filename.startswith("xl/worksheets/"):
                    check_memory(member.file_size * 2.0, f"{path.name} ({member.filename}, unpacked)")
                    for cell in _ENTRY.finditer(archive.read(member)):
                        rows = max(rows, int(cell[2]))
                        place = reduce(lambda place, letter: place * 26 + letter - 64, cell[1] or b"", 0)
                        columns = max(columns, place)
    except TableError:
        raise
    except Exception as error:  # zipfile, zlib and lzma have errors of their own
        raise unreadable(path, "xlsx", error) from None
    if rows * columns > _MOST_CELLS:
        raise TableMemoryError(
            f"{path.name} spans {rows:,} rows x {columns:,} columns, more than the {_MOST_CELLS:,} cells that are read. "
            "Delete the cells far away from the table, or save it as CSV."
        )
    check_memory(rows * columns * 60.0, f"{path.name} ({rows:,} rows, {columns:,} columns)")


def _read_xlsx(path: Path, options: ReadOptions) -> Any:
    """Read the first sheet of an Excel file as a polars frame with the names of its columns."""
    import polars as pl

    from tamiz.tables.names import clean_column_names
    from tamiz.tables.text import is_header

    _check_sheet(path)
    fastexcel = require("fastexcel", "xlsx", "Reading an Excel file")
    try:
        book = fastexcel.read_excel(path)
        text = book.load_sheet(0, header_row=None, skip_rows=options.skip_rows, dtypes="string").to_polars()
        filled = text.select(~pl.all_horizontal(pl.all().is_null())).to_series() if text.width else pl.Series([False])
        if not filled.any():
            raise TableError(f"{path.name} is empty: its first sheet holds no cells.")
        rows = [["" if cell is None else cell for cell in row] for row in text.filter(filled).head(11).iter_rows()]
        has_header = is_header(rows[0], rows[1:]) if options.header is None else options.header
        above = int(filled.arg_max() or 0) + has_header
        # As text numbers would lose digits; types are those of all rows below the names.
        typed = book.load_sheet(0, header_row=None, skip_rows=options.skip_rows + above, schema_sample_rows=None)
        frame = typed.to_polars() if text.height > above else text.head(0)
    except (TableError, OSError):
        raise
    except Exception as error:  # fastexcel raises anything from its own errors to panics for a damaged file
        raise unreadable(path, "xlsx", error) from None
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    while rows[0] and not rows[0][-1] and frame[:, len(rows[0]) - 1].null_count() == frame.height:
        rows[0].pop()  # columns without a name or a value, to the right of the table
    names = clean_column_names(rows[0]) if has_header else [f"column_{i + 1}" for i in range(len(rows[0]))]
    return frame[:, : len(names)].rename(dict(zip(frame.columns, names, strict=False)))


_LOAD_TEXT, _LOAD_MATRIX = _late("text", "load_text"), _late("matrices", "load_matrix")
_SVMLIGHT, _ARROW = (".svm", ".svmlight", ".libsvm"), (".arrow", ".feather", ".ipc")
_LIST = (
    Format("csv", "CSV", (".csv", ".txt"), _late("text", "read_text"), _LOAD_TEXT, takes_skip_rows=True),
    Format("tsv", "TSV", (".tsv", ".tab"), _late("text", "read_text", "tsv", "\t"), _LOAD_TEXT, takes_skip_rows=True),
    Format("xlsx", "Excel (xlsx)", (".xlsx", ".xlsm"), _read_xlsx, None, (b"PK\3\4",), True, takes_skip_rows=True),
    Format("parquet", "Parquet", (".parquet", ".pq"), partial(_read_frame, "parquet"), None, (b"PAR1",), True),
    Format("arrow", "Arrow", _ARROW, partial(_read_frame, "arrow"), None, (b"ARROW1", b"\xff" * 4), binary=True),
    Format("ndjson", "NDJSON", (".ndjson", ".jsonl"), partial(_read_frame, "ndjson"), starts=(b"{",)),
    Format("npz", "NPZ", (".npz",), _late("matrices", "read_npz"), _LOAD_MATRIX, binary=True),
    Format("arff", "ARFF", (".arff",), _late("text", "read_arff"), starts=(b"@relation", b"@RELATION")),
    Format("svmlight", "svmlight", _SVMLIGHT, _late("matrices", "read_svmlight"), _LOAD_MATRIX),
)
#: Formats by name.
FORMATS: dict[str, Format] = {format.name: format for format in _LIST}


def register_format(format: Format) -> None:
    """Add a format, or replace the one of the same name."""
    FORMATS[format.name] = format


def guess_format(head: bytes) -> Format | None:
    """Find the format whose files begin with these bytes.

    Examples
    --------
    >>> guess_format(b"PAR1....").name, guess_format(b"a,b\\n1,2\\n")
    ('parquet', None)
    """
    return next((format for format in FORMATS.values() if format.starts and head.startswith(format.starts)), None)


def find_format(path: Path, name: str | None = None) -> Format:
    """Find the format of a file: by name, else by its suffix.

    Raises
    ------
    TableArgumentError
        If the suffix belongs to no format; the message says what the content looks like.

    Examples
    --------
    >>> find_format(Path("genes.TSV")).name, find_format(Path("genes.dat"), "csv").name
    ('tsv', 'csv')
    """
    if name is not None:
        try:
            return FORMATS[pick_name(name, FORMATS, "format")]
        except UnknownNameError as error:
            raise TableArgumentError(str(error)) from None
    suffix = without_packing(path).suffix
    for format in FORMATS.values():
        if suffix.lower() in format.suffixes:
            return format
    guess = guess_format(read_head(path, 64)) if path.is_file() else None
    looks = f" It looks like {guess.name}." if guess else ""
    known = ", ".join(sorted(FORMATS))
    raise TableArgumentError(
        f"{path.name}: {f'the ending {suffix!r}' if suffix else 'a name without an ending'} names no format. "
        f"Say which with `format`: {known}.{looks}"
    )


def check_file(path: Path) -> None:
    """Raise if there is no file, or an empty one."""
    try:
        there = path.exists()
    except (OSError, ValueError) as error:  # a name that is too long, or holds a zero byte
        reason = getattr(error, "strerror", None) or str(error)
        raise TableArgumentError(f"{quote(path)} cannot be read: {reason}.") from None
    if not there:
        suffixes = {suffix for format in FORMATS.values() for suffix in format.suffixes}
        near = sorted(p.name for p in path.parent.glob("*") if without_packing(p).suffix.lower() in suffixes)
        hint = f" There are {list_some(near)} in that folder." if near else ""
        raise TableArgumentError(f"There is no file {path}.{hint}")
    if path.is_dir():
        raise TableArgumentError(f"{path} is a folder; name a file in it.")
    if path.is_char_device() or path.is_block_device():  # which may never end
        raise TableArgumentError(f"{path} is a device, not a table. Name a file or a pipe.")
    if not read_head(path, 1):
        raise TableError(f"{path.name} is empty.")


def read_file(path: Path, options: ReadOptions) -> DataTable:
    """Read a file of any format as it is: no column is judged, the target is not yet understood."""
    require("polars", "cli", "Reading a table")
    from tamiz.tables.table import as_table

    if is_stream(path) and options.format is None:
        raise TableArgumentError(f"{path} has no ending that tells its format: name it with `format`.")
    plain = copy_stream(path) if is_stream(path) else PlainFile(path)
    check_file(plain.path)
    format = find_format(plain.path, options.format)
    if options.skip_rows and not format.takes_skip_rows:
        raise TableArgumentError(f"`skip_rows` does not apply to {format.title}.")
    if options.encoding is not None and format.binary:
        raise TableArgumentError("`encoding` applies to formats of text only.")
    plain = unpack(plain) if format.binary else decode(unpack(plain), options.encoding)
    found = format.read(plain.path, options)
    table = as_table(found, options=options, path=plain.path, format=format.name)
    table.source |= {"file": plain, "options": options}  # a temporary file stays as long as the table
    return table


def output_suffix(table: DataTable) -> str:
    """Choose the ending of files that hold some columns of a table: Parquet for Parquet and Arrow, else CSV."""
    return ".parquet" if table.format in ("parquet", "arrow") else ".csv"


def write_columns(table: DataTable, columns: Sequence[int], path: Path) -> None:
    """Write some columns of the file a table was read from, and its target if it has one, as CSV or Parquet.

    The file is read again: numbers keep all their digits, text its spelling.

    Parameters
    ----------
    table : DataTable
        The table that was read.
    columns : sequence of int
        Positions in the file.
    path : Path
        File to write; ``.parquet`` gives Parquet, any other ending CSV.
    """
    from tamiz.tables.table import columns_of_frame

    chosen = sorted({*columns, *(i for i, name in enumerate(table.names) if name == table.target_name)})
    format, source = FORMATS.get(table.format), table.source.get("frame")
    if source is None and format is not None and format.load is not None:
        frame = format.load(table, chosen)
    else:
        if source is None and format is not None:
            source = format.read(table.path, table.source["options"])
        frame = columns_of_frame(source, chosen, table.names)
    with open(path, "wb") as file:  # polars takes names of files in UTF-8 only
        if path.suffix == ".parquet":
            frame.write_parquet(file)
        else:
            frame.write_csv(file)
