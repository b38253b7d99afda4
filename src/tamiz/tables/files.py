"""Open what a user names as a table: files, pipes, gzip and zstandard, text in other encodings.

Tables are read in several passes (a first look, the rows, the columns to write), and text as UTF-8 with ``\\n`` line ends
and without empty lines. Whatever is different is copied once into a temporary file, which is removed with the table.
"""

from __future__ import annotations

import codecs
import gzip
import mmap
import os
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tamiz.errors import TableArgumentError, TableError, TableMemoryError

_CHUNK = 1024**2
#: Marks at the beginning of text, longest first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
#: Beyond this size, unpacked text must not be longer than so many times the packed file: tables are 3 to 30 times.
_LARGE, _LARGEST_RATIO = 256 * 1024**2, 200
_EMPTY_LINES = (b"\n\n", b"\n\r\n", b"\n \n", b"\n \r\n")
PACKED_SUFFIXES = (".gz", ".zst")


class PlainFile:
    """A file that can be read as often as needed; a temporary one is removed when nobody holds it any more.

    Parameters
    ----------
    path : Path
        The file.
    folder : str or None, default=None
        Temporary folder that is removed with this record.
    """

    def __init__(self, path: Path, folder: str | None = None) -> None:
        self.path = path
        if folder is not None:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __reduce__(self) -> Any:
        """Send the path to another process; the folder stays with this one."""
        return PlainFile, (self.path,)


def is_stream(path: Path) -> bool:
    """Check whether a path can be read only once: ``-`` (standard input), a pipe or a socket."""
    if str(path) == "-":
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def check_not_device(path: Path) -> None:
    """Raise TableArgumentError for a terminal, a disk or another device, which may never end."""
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise TableArgumentError(f"{path} is a device, not a table. Name a file or a pipe.")


@contextmanager
def new_spool(name: str) -> Iterator[tuple[IO[bytes], PlainFile]]:
    """Yield a temporary file to write to, and its record; the file has the name of its source, for messages."""
    folder = tempfile.mkdtemp(prefix="tamiz-")
    plain = PlainFile(Path(folder) / (Path(name).name[:100] or "table"), folder)
    try:
        with open(plain.path, "wb") as file:
            yield file, plain
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(plain.path)):
            raise
        raise TableError(
            f"{name} cannot be copied to {tempfile.gettempdir()}: {error.strerror}. "
            "Set TMPDIR to a folder with more space."
        ) from None


def _copy_bounded(chunks: Iterator[bytes], target: IO[bytes], name: str, packed: int | None = None) -> None:
    """Copy a stream; raise TableMemoryError once it fills half of the disk, or unpacks to more than a table would."""
    limit = shutil.disk_usage(tempfile.gettempdir()).free // 2
    done = 0
    for chunk in chunks:
        done += len(chunk)
        if done > limit:
            raise TableMemoryError(
                f"{name} is longer than {limit:,} bytes, half of the free space in {tempfile.gettempdir()}. "
                "Set TMPDIR to a folder with more space, or write it to a file first."
            )
        if packed is not None and done > max(_LARGE, _LARGEST_RATIO * packed):
            raise TableMemoryError(
                f"{name} is more than {_LARGEST_RATIO} times as long as the packed file, which no table is. "
                "Unpack it yourself if it is meant."
            )
        target.write(chunk)


def _read_chunks(source: Any) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def spool_stream(path: Path) -> PlainFile:
    """Copy standard input or a pipe into a temporary file."""
    if str(path) == "-" and sys.stdin.isatty():
        raise TableArgumentError("Standard input is a terminal. Send a table to it, or name a file.")
    with new_spool("standard input" if str(path) == "-" else str(path)) as (file, plain):
        if str(path) == "-":
            _copy_bounded(_read_chunks(sys.stdin.buffer), file, "standard input")
        else:
            with open_file(path) as source:
                _copy_bounded(_read_chunks(source), file, str(path))
    return plain


def open_file(path: Path) -> IO[bytes]:
    """Open a file for reading; raise TableArgumentError if that fails."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise TableArgumentError(f"{path} cannot be read: {error.strerror}.") from None


def unpack(plain: PlainFile, name: str) -> PlainFile:
    """Unpack a gzip or zstandard file into a temporary one; other files are returned as they are."""
    with open_file(plain.path) as source:
        head = source.read(4)
    if head[:2] != b"\x1f\x8b" and head != b"\x28\xb5\x2f\xfd":
        return plain
    size = plain.path.stat().st_size
    with new_spool(name) as (file, unpacked):
        if head == b"\x28\xb5\x2f\xfd":
            _copy_bounded(_unpack_zstd(plain.path, name), file, f"{name}, unpacked,", size)
        else:
            try:
                with gzip.open(plain.path) as packed:
                    _copy_bounded(_read_chunks(packed), file, f"{name}, unpacked,", size)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise TableError(f"{name} is damaged, it cannot be unpacked: {error}.") from None
    return unpacked


def _unpack_zstd(path: Path, name: str) -> Iterator[bytes]:
    """Yield the lines of text in a zstandard file, which polars unpacks."""
    from tamiz.tables.table import load_polars

    pl = load_polars()
    try:
        # A separator and a quote that no text holds: each line is one cell.
        lines = pl.scan_csv(
            str(path), has_header=False, separator="\x1f", quote_char=None, schema={"line": pl.String}, glob=False
        )
        for batch in lines.collect_batches(chunk_size=10_000):
            yield ("\n".join(batch.to_series().fill_null("")) + "\n").encode()
    except pl.exceptions.PolarsError as error:
        raise TableError(f"{name} is damaged, it cannot be unpacked: {str(error).splitlines()[0]}.") from None


def find_encoding(head: bytes) -> str | None:
    """Return the encoding that the mark at the beginning of a text names, or None for UTF-8.

    Examples
    --------
    >>> find_encoding("a,b".encode("utf-16")), find_encoding("a,b".encode("utf-32")), find_encoding(b"a,b")
    ('utf-16', 'utf-32', None)
    """
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), None)


def check_encoding(encoding: str) -> str:
    """Return the name of an encoding of text as Python spells it; raise TableArgumentError for others.

    Examples
    --------
    >>> check_encoding("Latin1")
    'iso8859-1'
    """
    try:
        "".encode(encoding)  # codecs such as hex are no encodings of text
        return codecs.lookup(encoding).name
    except (LookupError, ValueError, UnicodeError):
        raise TableArgumentError(
            f"`encoding`: there is no encoding {encoding!r:.40}; common ones are utf-8, utf-16, latin1 and cp1252."
        ) from None


def transcode(plain: PlainFile, name: str, encoding: str | None = None) -> PlainFile:
    r"""Copy a text into UTF-8 with ``\n`` line ends where it is in another encoding or has ``\r`` line ends only.

    Parameters
    ----------
    plain : PlainFile
        A text file.
    name : str
        How messages call it.
    encoding : str or None, default=None
        Its encoding; None looks for a mark at its beginning, else takes UTF-8.
    """
    with open_file(plain.path) as source:
        head = source.read(_CHUNK)
    encoding = find_encoding(head) if encoding is None else check_encoding(encoding)
    only_returns = b"\r" in head and b"\n" not in head and b"\0" not in head
    if encoding in (None, "utf-8") and not only_returns:
        return plain
    try:
        with new_spool(name) as (file, decoded), open(plain.path, encoding=encoding or "utf-8", newline="") as text:
            while chunk := text.read(_CHUNK):
                file.write((chunk.replace("\r", "\n") if only_returns else chunk).encode("utf-8"))
    except UnicodeError as error:
        reason = getattr(error, "reason", None) or str(error)
        raise TableError(
            f"{name} cannot be read as {encoding or 'utf-8'}: {reason}. Name another `encoding`."
        ) from None
    return decoded


def drop_empty_lines(plain: PlainFile, name: str, skip_rows: int = 0) -> tuple[PlainFile, int]:
    """Copy a text without the lines to skip and without empty lines, which a reader would take as rows.

    Parameters
    ----------
    plain : PlainFile
        A text file.
    name : str
        How messages call it.
    skip_rows : int, default=0
        Lines above the table.

    Returns
    -------
    PlainFile
        The file itself if there are no empty lines.
    int
        Lines that are still to be skipped.
    """
    with open_file(plain.path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        begin = 0
        for _ in range(skip_rows):
            begin = content.find(b"\n", begin) + 1
            if begin == 0:
                raise TableError(f"{name} has fewer lines than the {skip_rows:,} of `skip_rows`.")
        head = content[begin : begin + 100].removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r")
        if not head.startswith(b"\n") and all(content.find(pair, begin) < 0 for pair in _EMPTY_LINES):
            return plain, skip_rows
        rest = content[begin:].removeprefix(codecs.BOM_UTF8)
    with new_spool(name) as (target, cleaned):
        quoted = False  # an empty line inside quotes belongs to its cell
        for line in rest.split(b"\n"):
            if quoted or line.strip():
                target.write(line + b"\n")
            quoted ^= line.count(b'"') % 2 == 1
    return cleaned, 0


def plain_file(path: Path, *, text: bool, encoding: str | None = None, stream: PlainFile | None = None) -> PlainFile:
    """Return a file that a reader of a format can open as often as it likes.

    Parameters
    ----------
    path : Path
        What the user named.
    text : bool
        Whether the format is text.
    encoding : str or None, default=None
        Encoding of the text; None finds it.
    stream : PlainFile or None, default=None
        The content, if the path could be read only once.
    """
    if encoding is not None and not text:
        raise TableArgumentError("`encoding` applies to formats of text only.")
    plain = unpack(stream or PlainFile(path), path.name)
    try:
        str(plain.path).encode("utf-8")
    except UnicodeEncodeError:  # polars takes names in UTF-8 only
        name = path.name.encode("utf-8", "replace").decode()
        with open_file(plain.path) as source, new_spool(name) as (file, copied):
            _copy_bounded(_read_chunks(source), file, name)
        plain = copied
    return transcode(plain, path.name, encoding) if text else plain


def without_packing(path: Path) -> Path:
    """Return a path without the ending ``.gz`` or ``.zst``.

    Examples
    --------
    >>> without_packing(Path("genes.csv.gz")).name
    'genes.csv'
    """
    return path.with_suffix("") if os.fspath(path).lower().endswith(PACKED_SUFFIXES) else path
