"""Register file formats: find the format of a file, read it, write some of its columns.

A new format is one file with a :class:`Format` record and one line in ``FORMATS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tamiz._utils.extras import require
from tamiz._utils.names import pick_name
from tamiz._utils.text import list_some, quote
from tamiz.errors import TableArgumentError, TableError, UnknownNameError
from tamiz.tables.spool import check_not_device, is_stream, plain_file, spool_stream, without_gzip

if TYPE_CHECKING:  # the command line lists the formats and need not load numpy for that
    from tamiz.tables.memory import MemoryBudget
    from tamiz.tables.names import ReadOptions
    from tamiz.tables.table import DataTable

#: Called with the number of rows that are done, and of all rows.
OnRows = Callable[[int, int], None]
_HEAD_BYTES = 4096


@dataclass(frozen=True)
class Format:
    """Describe a file format.

    Parameters
    ----------
    name : str
        What ``read_table(format=...)`` and ``--format`` call it.
    title : str
        How it is spelt in messages.
    suffixes : tuple of str
        Endings of file names in lower case; files are written with the first.
    sniff : callable
        ``sniff(head) -> bool``: check whether the first bytes of a file look like this format.
    read : callable
        ``read(path, options, budget, on_rows) -> DataTable``: read the columns that the options name, see
        :func:`~tamiz.tables.names.choose_columns`; call ``budget.require`` before memory is taken.
    write : callable
        ``write(table, columns, path)``: write some columns of the file that ``table`` was read from, and its target.
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
    read: Callable[[Path, ReadOptions, MemoryBudget, OnRows], DataTable]
    write: Callable[[DataTable, Sequence[int], Path], None]
    binary: bool = False
    takes_skip_rows: bool = False


#: Where each format is defined; loaded when a file is read.
FORMATS: dict[str, str | Format] = {
    "csv": "tamiz.tables.csv:CSV",
    "tsv": "tamiz.tables.csv:TSV",
    "xlsx": "tamiz.tables.xlsx:XLSX",
    "parquet": "tamiz.tables.parquet:PARQUET",
    "arrow": "tamiz.tables.arrow:ARROW",
    "npz": "tamiz.tables.npz:NPZ",
    "arff": "tamiz.tables.arff:ARFF",
    "svmlight": "tamiz.tables.svmlight:SVMLIGHT",
}


def register_format(format: Format) -> None:
    """Add a format, or replace the one of the same name.

    Parameters
    ----------
    format : Format
        Its suffixes and functions.
    """
    FORMATS[format.name] = format


def list_formats() -> list[Format]:
    """Return all formats, loading those that were not used yet."""
    for name, format in FORMATS.items():
        if isinstance(format, str):
            module, _, attribute = format.partition(":")
            FORMATS[name] = getattr(import_module(module), attribute)
    return [format for format in FORMATS.values() if isinstance(format, Format)]


def get_format(name: str) -> Format:
    """Return a format by its name.

    Examples
    --------
    >>> get_format("tsv").suffixes
    ('.tsv', '.tab')
    """
    formats = {format.name: format for format in list_formats()}
    try:
        return formats[pick_name(name, formats, "format")]
    except UnknownNameError as error:
        raise TableArgumentError(str(error)) from None


def guess_format(head: bytes) -> Format | None:
    """Return the format that the first bytes of a file look like, or None.

    Examples
    --------
    >>> guess_format(b"PAR1....").name, guess_format(b"a,b\\n1,2\\n").name, guess_format(b"@relation x\\n").name
    ('parquet', 'csv', 'arff')
    """
    return next((format for format in list_formats() if format.sniff(head)), None)


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
    suffix = without_gzip(path).suffix
    for format in list_formats():
        if suffix.lower() in format.suffixes:
            return format
    guess = guess_format(_read_head(path)) if path.is_file() else None
    looks = f" It looks like {guess.name}." if guess else ""
    raise TableArgumentError(
        f"{path.name}: the ending {suffix!r} names no format. "
        f"Say which with `format`: {', '.join(sorted(FORMATS))}.{looks}"
    )


def _read_head(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        raise TableArgumentError(f"{path} cannot be read: {error.strerror}.") from None


def check_file(path: Path) -> None:
    """Raise if there is no file, or an empty one."""
    try:
        there = path.exists()
    except (OSError, ValueError) as error:  # a name that is too long, or holds a zero byte
        reason = getattr(error, "strerror", None) or str(error)
        raise TableArgumentError(f"{quote(path)} cannot be read: {reason}.") from None
    if not there:
        suffixes = {suffix for format in list_formats() for suffix in format.suffixes}
        near = sorted(p.name for p in path.parent.glob("*") if without_gzip(p).suffix.lower() in suffixes)
        hint = f" There are {list_some(near)} in that folder." if near else ""
        raise TableArgumentError(f"There is no file {path}.{hint}")
    if path.is_dir():
        raise TableArgumentError(f"{path} is a folder; name a file in it.")
    check_not_device(path)
    if not _read_head(path):
        raise TableError(f"{path.name} is empty.")


def read_file(
    path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows = lambda done, total: None
) -> DataTable:
    """Read a file of any format as it is: no column is judged, the target is not yet understood.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Target, columns to ignore, format and so on.
    budget : MemoryBudget
        Asked before the memory is taken.
    on_rows : callable, default=no progress
        Called with the number of rows that are done, and of all rows.

    Returns
    -------
    DataTable

    See Also
    --------
    tamiz.tables.read_table : Read a file, leave out columns of no use and resolve the target.
    """
    require("pyarrow", "cli", "Reading a table")
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
    table = format.read(plain.path, options, budget, on_rows)
    table.source.setdefault("file", plain)  # a temporary file stays as long as the table
    return table


def write_columns(table: DataTable, columns: Sequence[int], path: Path) -> None:
    """Write some columns of the file a table was read from, and its target if it has one, in the same format.

    The file is read again, a block at a time: numbers keep all their digits, text its spelling.

    Parameters
    ----------
    table : DataTable
        The table that was read.
    columns : sequence of int
        Positions in the file.
    path : Path
        File to write.
    """
    get_format(table.format).write(table, sorted(set(columns)), path)


def add_target(table: DataTable, columns: Sequence[int]) -> list[int]:
    """Return the positions of some columns and of the target, in the order of the file."""
    if table.target_column is None or table.target_name is None:
        return list(columns)
    return sorted({*columns, table.names.index(table.target_name)})
