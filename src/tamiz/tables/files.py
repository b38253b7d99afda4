"""Open what a user names as a table: files, pipes, gzip and zstandard, text in other encodings.

Tables are read in several passes (a first look, the rows, the columns to write), and text as UTF-8 with ``\\n`` line ends.
Whatever is different is copied once into a temporary file, which is removed with the table.
"""

from __future__ import annotations

import gzip
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tamiz.errors import TableArgumentError, TableError, TableMemoryError

_CHUNK = 1024**2
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: Marks at the beginning of text, longest first: that of UTF-32 begins with that of UTF-16.
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
#: Beyond this size, unpacked text must not be longer than so many times the packed file: tables are 3 to 30 times.
_LARGE, _LARGEST_RATIO = 256 * 1024**2, 200


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


def open_file(path: Path) -> IO[bytes]:
    """Open a file for reading; raise TableArgumentError if that fails."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise TableArgumentError(f"{path} cannot be read: {error.strerror}.") from None


@contextmanager
def _new_copy(name: str) -> Iterator[tuple[IO[bytes], PlainFile]]:
    """Open a temporary file for writing; it has the name of its source, for messages."""
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


def _copy(chunks: Iterable[bytes], name: str, packed: int | None = None) -> PlainFile:
    """Copy a stream; raise TableMemoryError once it fills half of the disk, or unpacks to more than a table would."""
    limit = shutil.disk_usage(tempfile.gettempdir()).free // 2
    done = 0
    with _new_copy(name) as (target, plain):
        for chunk in chunks:
            done += len(chunk)
            if done > limit:
                raise TableMemoryError(
                    f"{name} is longer than {limit:,} bytes, half of the free space in {tempfile.gettempdir()}. "
                    "Set TMPDIR to a folder with more space, or write it to a file first."
                )
            if packed is not None and done > max(_LARGE, _LARGEST_RATIO * packed):
                raise TableMemoryError(
                    f"{name} unpacks to more than {_LARGEST_RATIO} times its size, which no table does. "
                    "Unpack it yourself if it is meant."
                )
            target.write(chunk)
    return plain


def _chunks(file: Any) -> Iterator[bytes]:
    return iter(lambda: file.read(_CHUNK), b"")


def _unpack_zstandard(path: Path) -> Iterator[bytes]:
    """Yield the lines of text in a zstandard file, which polars unpacks."""
    import polars as pl

    # A separator and a quote that no text holds: each line is one cell.
    lines = pl.scan_csv(
        str(path), has_header=False, separator="\x1f", quote_char=None, schema={"line": pl.String}, glob=False
    )
    try:
        for batch in lines.collect_batches(chunk_size=10_000):
            yield ("\n".join(batch.to_series().fill_null("")) + "\n").encode()
    except pl.exceptions.PolarsError as error:
        raise ValueError(error) from None


def copy_stream(path: Path) -> PlainFile:
    """Copy standard input or a pipe into a temporary file."""
    if str(path) != "-":
        with open_file(path) as source:
            return _copy(_chunks(source), str(path))
    if sys.stdin.isatty():
        raise TableArgumentError("Standard input is a terminal. Send a table to it, or name a file.")
    return _copy(_chunks(sys.stdin.buffer), "standard input")


def plain_file(path: Path, *, text: bool, encoding: str | None = None, stream: PlainFile | None = None) -> PlainFile:
    """Unpack and decode a file where needed, so that a reader can open it as often as it likes.

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
    plain = stream or PlainFile(path)
    with open_file(plain.path) as file:
        head = file.read(4)
    size = plain.path.stat().st_size
    try:
        if head[:2] == _GZIP:
            with gzip.open(plain.path) as unpacked:
                plain = _copy(_chunks(unpacked), path.name, size)
        elif head == _ZSTANDARD:
            plain = _copy(_unpack_zstandard(plain.path), path.name, size)
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{path.name} is damaged, it cannot be unpacked: {str(error).splitlines()[0]}.") from None
    try:
        str(plain.path).encode("utf-8")
    except UnicodeEncodeError:  # polars takes names in UTF-8 only
        with open_file(plain.path) as source:
            plain = _copy(_chunks(source), path.name.encode("utf-8", "replace").decode())
    return _decode(plain, path.name, encoding) if text else plain


def _decode(plain: PlainFile, name: str, encoding: str | None) -> PlainFile:
    r"""Copy a text into UTF-8 with ``\n`` line ends where it is in another encoding or has ``\r`` line ends only."""
    with open_file(plain.path) as source:
        head = source.read(_CHUNK)
    only_returns = b"\r" in head and b"\n" not in head and b"\0" not in head
    found = encoding or next((known for mark, known in _MARKS.items() if head.startswith(mark)), "utf-8")
    if found.lower() in ("utf-8", "utf8") and not only_returns:
        return plain
    try:
        "".encode(found)  # codecs such as hex are no encodings of text
    except (LookupError, ValueError, UnicodeError):
        raise TableArgumentError(
            f"`encoding`: there is no encoding {found!r:.40}; common ones are utf-8, utf-16, latin1 and cp1252."
        ) from None
    try:
        with _new_copy(name) as (file, decoded), open(plain.path, encoding=found, newline="") as text:
            while chunk := text.read(_CHUNK):
                file.write((chunk.replace("\r", "\n") if only_returns else chunk).encode("utf-8"))
    except UnicodeError as error:
        reason = getattr(error, "reason", None) or str(error)
        raise TableError(f"{name} cannot be read as {found}: {reason}. Name another `encoding`.") from None
    return decoded


def without_packing(path: Path) -> Path:
    """Strip the ending ``.gz`` or ``.zst`` from a path.

    Examples
    --------
    >>> without_packing(Path("genes.csv.gz")).name
    'genes.csv'
    """
    return path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
