"""Open what a user names as a table: files, pipes, gzip and zstandard, text in other encodings.

Tables are read in several passes (a first look, the rows, the columns to write), and text as UTF-8 with ``\\n`` line ends.
Whatever is different is copied once into a temporary file, which is removed with the table.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

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
    try:
        return str(path) == "-" or path.is_fifo() or path.is_socket()
    except OSError:  # a name that is too long
        return False


def read_head(path: Path, n_bytes: int) -> bytes:
    """Read the first bytes of a file; raise TableArgumentError if that fails."""
    try:
        with open(path, "rb") as file:
            return file.read(n_bytes)
    except OSError as error:
        raise TableArgumentError(f"{path} cannot be read: {error.strerror}.") from None


def _copy(chunks: Iterable[bytes], name: str, packed: int | None = None) -> PlainFile:
    """Copy a stream into a temporary file, which has the name of its source, for messages.

    TableMemoryError is raised once it fills half of the disk, or unpacks to more than a table would.
    """
    place, done = tempfile.gettempdir(), 0
    limit, folder = shutil.disk_usage(place).free // 2, tempfile.mkdtemp(prefix="tamiz-")
    # polars takes names in UTF-8 only
    plain = PlainFile(Path(folder) / (Path(name).name.encode("utf-8", "replace").decode()[:100] or "table"), folder)
    try:
        with open(plain.path, "wb") as target:
            for chunk in chunks:
                done += len(chunk)
                if done > limit:
                    raise TableMemoryError(
                        f"{name} is longer than {limit:,} bytes, half of the free space in {place}. "
                        "Set TMPDIR to a folder with more space, or write it to a file first."
                    )
                if packed is not None and done > max(_LARGE, _LARGEST_RATIO * packed):
                    raise TableMemoryError(
                        f"{name} unpacks to more than {_LARGEST_RATIO} times its size, which no table does. "
                        "Unpack it yourself if it is meant."
                    )
                target.write(chunk)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(plain.path)):
            raise
        reason = f"{error.strerror}. Set TMPDIR to a folder with more space."
        raise TableError(f"{name} cannot be copied to {place}: {reason}") from None
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
        try:
            with open(path, "rb") as source:
                return _copy(_chunks(source), str(path))
        except OSError as error:
            raise TableArgumentError(f"{path} cannot be read: {error.strerror}.") from None
    if sys.stdin.isatty():
        raise TableArgumentError("Standard input is a terminal. Send a table to it, or name a file.")
    return _copy(_chunks(sys.stdin.buffer), "standard input")


def unpack(plain: PlainFile) -> PlainFile:
    """Copy a file that is packed, or whose name polars cannot take, as plain bytes."""
    path = plain.path
    head = read_head(path, 4)
    try:
        if head == _ZSTANDARD:
            return _copy(_unpack_zstandard(path), path.name, path.stat().st_size)
        if head[:2] == _GZIP:
            with gzip.open(path) as unpacked:
                return _copy(_chunks(unpacked), path.name, path.stat().st_size)
        if str(path).encode("utf-8", "replace").decode() == str(path):
            return plain
        with open(path, "rb") as file:
            return _copy(_chunks(file), path.name)
    except TableError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise TableError(f"{path.name} is damaged, it cannot be unpacked: {str(error).splitlines()[0]}.") from None


def decode(plain: PlainFile, encoding: str | None) -> PlainFile:
    r"""Copy a text into UTF-8 with ``\n`` line ends where it is in another encoding or has ``\r`` line ends only.

    Without the name of an encoding, a mark at the beginning tells it.
    """
    head = read_head(plain.path, _CHUNK)
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
        with open(plain.path, encoding=found, newline="") as text:
            chunks = iter(lambda: text.read(_CHUNK), "")
            lines = (chunk.replace("\r", "\n") if only_returns else chunk for chunk in chunks)
            return _copy((part.encode() for part in lines), plain.path.name)
    except UnicodeError as error:
        reason = getattr(error, "reason", None) or str(error)
        raise TableError(f"{plain.path.name} cannot be read as {found}: {reason}. Name another `encoding`.") from None


def without_packing(path: Path) -> Path:
    """Strip the ending ``.gz`` or ``.zst`` from a path.

    Examples
    --------
    >>> without_packing(Path("genes.csv.gz")).name
    'genes.csv'
    """
    return path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
