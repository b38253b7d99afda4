"""Register file formats: find the format of a file, read it, scan it lazily, write some of its columns.

Nothing heavy is loaded here: the command line lists the formats without numpy and polars.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamiz._utils.extras import require
from tamiz._utils.names import pick_name
from tamiz._utils.text import list_some, quote
from tamiz.errors import TableArgumentError, TableError, TableMemoryError, UnknownNameError
from tamiz.tables.files import check_not_device, is_stream, open_file, plain_file, spool_stream, without_packing

if TYPE_CHECKING:
    import polars

    from tamiz.tables.memory import MemoryBudget
    from tamiz.tables.names import ReadOptions
    from tamiz.tables.table import DataTable

_HEAD_BYTES = 4096
#: Rows x columns of an Excel sheet; one cell at the far end makes a sheet of 17,000 million.
_MOST_CELLS = 200_000_000
_ENTRY = re.compile(rb' r="([A-Z]{1,3})?(\d{1,7})"')
_SVMLIGHT_ROW = re.compile(rb"[-+.\deE,]+( \d+:\S+)+\s*(#.*)?")


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
    sniff : callable
        ``sniff(head) -> bool``: whether the first bytes of a file look like this format.
    read : callable
        ``read(path, options, budget) -> DataTable``; a reader that has a data frame returns
        ``as_table(frame, options=options, path=path, format=name, budget=budget)``.
    load : callable
        ``load(table, columns) -> polars.DataFrame``: some columns of the file that ``table`` was read from, as they stand
        there.
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
    sniff: Callable[[bytes], bool]
    read: Callable[[Path, ReadOptions, MemoryBudget], DataTable]
    load: Callable[[DataTable, Sequence[int]], polars.DataFrame]
    binary: bool = False
    takes_skip_rows: bool = False


def _first_line(head: bytes) -> bytes:
    """Return the first line of a text file; empty if it is no text, or of another format of text."""
    text = head.lstrip(b"\xef\xbb\xbf\r\n ")
    if b"\0" in head or text.startswith((b"@", b"%", b"{")):
        return b""
    return text.partition(b"\n")[0]


def _sniff_csv(head: bytes) -> bool:
    return any(mark in _first_line(head) for mark in (b",", b";", b"|"))


def _sniff_arff(head: bytes) -> bool:
    lines = [line.strip().lower() for line in head.splitlines()]
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first.startswith((b"@relation", b"@attribute"))


def _sniff_xlsx(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") and (b"[Content_Types].xml" in head or b"_rels/.rels" in head)


def _late(module: str, name: str) -> Callable[..., Any]:
    """Return a function that is imported when it is first called."""

    def call(*arguments: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(f"tamiz.tables.{module}"), name)(*arguments)

    return call


def scan_file(path: str, format_name: str) -> polars.LazyFrame:
    """Open a Parquet, Arrow or NDJSON file, or several by a pattern, as a lazy polars frame."""
    import polars as pl

    if format_name == "parquet":
        return pl.scan_parquet(path)
    return pl.scan_ipc(path) if format_name == "arrow" else pl.scan_ndjson(path, infer_schema_length=10_000)


def _read_frame(path: Path, format_name: str, columns: Sequence[int] | None = None) -> Any:
    """Read a Parquet, Arrow or NDJSON file, or some of its columns; raise TableError if it is damaged."""
    import polars as pl

    title = {"parquet": "parquet", "arrow": "arrow", "ndjson": "ndjson"}[format_name]
    try:
        if format_name == "arrow":
            # Bytes, not a path: a mapped file whose offsets point outside of it would end the process.
            content = path.read_bytes()
            read = pl.read_ipc if content.startswith(b"ARROW1") else pl.read_ipc_stream
            frame = read(io.BytesIO(content))
        elif format_name == "parquet":
            frame = pl.read_parquet(path, columns=None if columns is None else list(columns), glob=False)
            columns = None
        else:
            frame = pl.read_ndjson(path, infer_schema_length=None)
        return frame if columns is None else frame[:, list(columns)]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, OverflowError) as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{path.name} cannot be read as {title}: {detail.rstrip('.')[:200]}.") from None


def _frame_reader(format_name: str) -> Callable[[Path, ReadOptions, MemoryBudget], DataTable]:
    def read(path: Path, options: ReadOptions, budget: MemoryBudget) -> DataTable:
        from tamiz.tables.frames import as_table

        size = path.stat().st_size
        budget.require(size * 2.0, path.name)
        frame = _read_frame(path, format_name)
        return as_table(frame, options=options, path=path, format=format_name, budget=budget)

    return read


def _frame_loader(format_name: str) -> Callable[[DataTable, Sequence[int]], Any]:
    return lambda table, columns: _read_frame(table.path, format_name, columns)


def _check_sheet(path: Path, budget: MemoryBudget) -> None:
    """Raise before an Excel file is read whose sheets span more cells than memory can hold."""
    rows = columns = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.filename.startswith("xl/worksheets/"):
                    continue
                budget.require(member.file_size * 2.0, f"{path.name} ({member.filename}, unpacked)")
                with archive.open(member) as file:
                    tail = b""
                    while chunk := file.read(2**20):
                        for letters, number in _ENTRY.findall(tail + chunk):
                            rows = max(rows, int(number))
                            place = 0
                            for letter in letters:
                                place = place * 26 + letter - 64
                            columns = max(columns, place)
                        tail = chunk[-20:]
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        OSError,
        RuntimeError,
        NotImplementedError,
        ValueError,
        EOFError,
    ) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{path.name} cannot be read as xlsx: {str(error) or type(error).__name__}.") from None
    except Exception as error:  # zlib and lzma have errors of their own
        raise TableError(f"{path.name} cannot be read as xlsx: {str(error)[:100]}.") from None
    if rows * columns > _MOST_CELLS:
        raise TableMemoryError(
            f"{path.name} spans {rows:,} rows x {columns:,} columns, more than the {_MOST_CELLS:,} cells that are read. "
            "Delete the cells far away from the table, or save it as CSV."
        )
    budget.require(rows * columns * 60.0, f"{path.name} ({rows:,} rows, {columns:,} columns)")


def _load_sheet(path: Path, skip_rows: int, header: bool | None) -> tuple[Any, list[str], bool]:
    """Return the rows of the first sheet as a polars frame, the names of its columns, and whether they stand in the sheet."""
    import polars as pl

    from tamiz.tables.names import clean_column_names
    from tamiz.tables.text import is_header

    fastexcel = require("fastexcel", "xlsx", "Reading an Excel file")
    try:
        book = fastexcel.read_excel(path)
        text = book.load_sheet(0, header_row=None, skip_rows=skip_rows, dtypes="string").to_polars()
        filled = (
            text.select(~pl.all_horizontal(pl.all().is_null())).to_series()
            if text.width
            else pl.Series([], dtype=pl.Boolean)
        )
        if not filled.any():
            raise TableError(f"{path.name} is empty: its first sheet holds no cells.")
        first = int(filled.arg_max() or 0)
        rows = [["" if cell is None else cell for cell in row] for row in text.filter(filled).head(11).iter_rows()]
        has_header = is_header(rows[0], rows[1:]) if header is None else header
        typed = book.load_sheet(0, header_row=None, skip_rows=skip_rows + first + has_header, schema_sample_rows=None)
        frame = typed.to_polars() if text.height > first + has_header else text.head(0)
    except (TableError, OSError):
        raise
    except Exception as error:  # fastexcel raises anything from its own errors to panics for a damaged file
        detail = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise TableError(f"{path.name} cannot be read as xlsx: {detail.rstrip('.')}.") from None
    while rows[0] and not rows[0][-1] and frame.width and frame[:, len(rows[0]) - 1].null_count() == frame.height:
        rows[0].pop()  # columns without a name or a value, to the right of the table
        frame = frame[:, :-1]
    names = clean_column_names(rows[0]) if has_header else [f"column_{i}" for i in range(1, frame.width + 1)]
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame.rename(dict(zip(frame.columns, names, strict=True))), names, has_header


def _read_xlsx(path: Path, options: ReadOptions, budget: MemoryBudget) -> DataTable:
    from tamiz.tables.frames import as_table

    _check_sheet(path, budget)
    frame, _, has_header = _load_sheet(path, options.skip_rows, options.header)
    table = as_table(frame, options=options, path=path, format="xlsx", budget=budget)
    table.source["sheet"] = (options.skip_rows, has_header)
    return table


def _load_xlsx(table: DataTable, columns: Sequence[int]) -> Any:
    return _load_sheet(table.path, *table.source["sheet"])[0][:, list(columns)]


def _sniff_tsv(head: bytes) -> bool:
    return b"\t" in _first_line(head) and not _sniff_csv(head)


def _sniff_svmlight(head: bytes) -> bool:
    return _SVMLIGHT_ROW.fullmatch(head.partition(b"\n")[0].strip()) is not None


def _starts(*marks: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(marks)


_read_tsv, _read_csv, _load_text = _late("text", "read_tsv"), _late("text", "read_csv"), _late("text", "load_text")
_read_npz, _load_npz = _late("matrices", "read_npz"), _late("matrices", "load_npz")
_read_arff, _load_arff = _late("text", "read_arff"), _late("text", "load_arff")
_read_svmlight, _load_svmlight = _late("matrices", "read_svmlight"), _late("matrices", "load_svmlight")
_read_parquet, _load_parquet = _frame_reader("parquet"), _frame_loader("parquet")
_read_arrow, _load_arrow = _frame_reader("arrow"), _frame_loader("arrow")
_read_ndjson, _load_ndjson = _frame_reader("ndjson"), _frame_loader("ndjson")
_LIST = (
    Format("csv", "CSV", (".csv", ".txt"), _sniff_csv, _read_csv, _load_text, takes_skip_rows=True),
    Format("tsv", "TSV", (".tsv", ".tab"), _sniff_tsv, _read_tsv, _load_text, takes_skip_rows=True),
    Format("xlsx", "Excel (xlsx)", (".xlsx", ".xlsm"), _sniff_xlsx, _read_xlsx, _load_xlsx, True, takes_skip_rows=True),
    Format("parquet", "Parquet", (".parquet", ".pq"), _starts(b"PAR1"), _read_parquet, _load_parquet, True),
    Format(
        "arrow",
        "Arrow",
        (".arrow", ".feather", ".ipc"),
        _starts(b"ARROW1", b"\xff" * 4),
        _read_arrow,
        _load_arrow,
        True,
    ),
    Format("ndjson", "NDJSON", (".ndjson", ".jsonl"), _starts(b"{"), _read_ndjson, _load_ndjson),
    Format("npz", "NPZ", (".npz",), _starts(b"PK\x03\x04"), _read_npz, _load_npz, True),
    Format("arff", "ARFF", (".arff",), _sniff_arff, _read_arff, _load_arff),
    Format("svmlight", "svmlight", (".svm", ".svmlight", ".libsvm"), _sniff_svmlight, _read_svmlight, _load_svmlight),
)
#: Formats by name.
FORMATS: dict[str, Format] = {format.name: format for format in _LIST}


def register_format(format: Format) -> None:
    """Add a format, or replace the one of the same name.

    Parameters
    ----------
    format : Format
        Its suffixes and functions.
    """
    FORMATS[format.name] = format


def get_format(name: str) -> Format:
    """Return a format by its name.

    Examples
    --------
    >>> get_format("tsv").suffixes
    ('.tsv', '.tab')
    """
    try:
        return FORMATS[pick_name(name, FORMATS, "format")]
    except UnknownNameError as error:
        raise TableArgumentError(str(error)) from None


def guess_format(head: bytes) -> Format | None:
    """Return the format that the first bytes of a file look like, or None.

    Examples
    --------
    >>> guess_format(b"PAR1....").name, guess_format(b"a,b\\n1,2\\n").name, guess_format(b"@relation x\\n").name
    ('parquet', 'csv', 'arff')
    """
    return next((format for format in FORMATS.values() if format.sniff(head)), None)


def find_format(path: Path, name: str | None = None) -> Format:
    """Return the format of a file: by name, else by its suffix.

    Parameters
    ----------
    path : Path
        The file.
    name : str or None, default=None
        Name of the format; None looks at the suffix.

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
        return get_format(name)
    suffix = without_packing(path).suffix
    for format in FORMATS.values():
        if suffix.lower() in format.suffixes:
            return format
    guess = guess_format(_read_head(path)) if path.is_file() else None
    looks = f" It looks like {guess.name}." if guess else ""
    raise TableArgumentError(
        f"{path.name}: the ending {suffix!r} names no format. "
        f"Say which with `format`: {', '.join(sorted(FORMATS))}.{looks}"
    )


def _read_head(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read(_HEAD_BYTES)


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
    check_not_device(path)
    if not _read_head(path):
        raise TableError(f"{path.name} is empty.")


def read_file(path: Path, options: ReadOptions, budget: MemoryBudget) -> DataTable:
    """Read a file of any format as it is: no column is judged, the target is not yet understood.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Target, columns to ignore, format and so on.
    budget : MemoryBudget
        Asked before the memory is taken.

    Returns
    -------
    DataTable

    See Also
    --------
    tamiz.tables.read_table : Read a file, leave out columns of no use and resolve the target.
    """
    require("polars", "cli", "Reading a table")
    stream = None
    if is_stream(path):
        if options.format is None:
            raise TableArgumentError(f"{path} has no ending that tells its format: name it with `format`.")
        format = get_format(options.format)
        stream = spool_stream(path)
        path = stream.path
        check_file(path)
    else:
        check_file(path)
        format = find_format(path, options.format)
    if options.skip_rows and not format.takes_skip_rows:
        raise TableArgumentError(f"`skip_rows` does not apply to {format.title}.")
    plain = plain_file(path, text=not format.binary, encoding=options.encoding, stream=stream)
    table = format.read(plain.path, options, budget)
    table.source.setdefault("file", plain)  # a temporary file stays as long as the table
    return table


def scan_table(path: str | Path, format: str | None = None) -> polars.LazyFrame:
    """Open a CSV, TSV, Parquet, Arrow or NDJSON file, or several by a pattern, without reading the rows.

    Columns have the names and types that :func:`tamiz.tables.read_table` gives them: numbers are float64 with the usual words
    for missing values as null, also with decimal commas. Text with units and dates stays text. Project columns and read
    batches with the methods of the frame.

    Parameters
    ----------
    path : path
        A file, or a pattern such as ``"part-*.parquet"``; the first file decides on delimiter, header and types.
    format : str or None, default=None
        Name of the format; None finds it from the suffix.

    Returns
    -------
    polars.LazyFrame

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = (Path(folder.name) / "a.csv").write_text("size;kind\\n1,5;x\\nNA;y\\n")
    >>> scan_table(Path(folder.name) / "*.csv").select("size").collect().to_series().to_list()
    [1.5, None]
    >>> folder.cleanup()
    """
    require("polars", "cli", "Reading a table")
    path = Path(path)
    files = sorted(path.parent.glob(path.name)) if any(mark in path.name for mark in "*?[") else [path]
    if not files:
        raise TableArgumentError(f"No file matches {path}.")
    check_file(files[0])
    found = find_format(files[0], format)
    if found.name in ("csv", "tsv"):
        from tamiz.tables.text import scan_text

        return scan_text(files, found.name)
    if found.name not in ("parquet", "arrow", "ndjson"):
        raise TableArgumentError(f"{found.title} files cannot be read in parts. Convert the file to Parquet or CSV.")
    return scan_file(str(path), found.name)


def output_suffix(table: DataTable) -> str:
    """Return the ending of files that hold some columns of a table: Parquet for Parquet and Arrow, else CSV."""
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
    chosen = set(columns)
    if table.target_column is not None and table.target_name in table.names:
        chosen.add(table.names.index(table.target_name))
    if table.format == "frame":
        from tamiz.tables.frames import columns_of_frame

        frame = columns_of_frame(table.source["frame"], sorted(chosen), table.names)
    else:
        frame = get_format(table.format).load(table, sorted(chosen))
    with open(path, "wb") as file:  # polars takes names of files in UTF-8 only
        if path.suffix == ".parquet":
            frame.write_parquet(file)
        else:
            frame.write_csv(file)
