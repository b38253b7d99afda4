"""Turn what cannot be read twice, or not as it is, into a plain file: pipes, gzip, text in other encodings.

Tables are read in several passes (a first look, the rows, the columns to write), and text as UTF-8 with ``\\n`` line ends.
Whatever is different is copied once into a temporary file, which is removed with the table.
"""

from __future__ import annotations

import codecs
import gzip
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
    """Yield a temporary file to write to, and its record; the file has the name of its source, for messages.

    Parameters
    ----------
    name : str
        Name of the source.
    """
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


def copy_bounded(source: Any, target: IO[bytes], name: str) -> None:
    """Copy a stream; raise TableMemoryError once it takes half of the free space of the temporary folder."""
    limit = shutil.disk_usage(tempfile.gettempdir()).free // 2
    done = 0
    while chunk := source.read(_CHUNK):
        done += len(chunk)
        if done > limit:
            raise TableMemoryError(
                f"{name} is longer than {limit:,} bytes, half of the free space in {tempfile.gettempdir()}. "
                "Set TMPDIR to a folder with more space, or write it to a file first."
            )
        target.write(chunk)


def spool_stream(path: Path) -> PlainFile:
    """Copy standard input or a pipe into a temporary file."""
    if str(path) == "-" and sys.stdin.isatty():
        raise TableArgumentError("Standard input is a terminal. Send a table to it, or name a file.")
    with new_spool("standard input" if str(path) == "-" else str(path)) as (file, plain):
        if str(path) == "-":
            copy_bounded(sys.stdin.buffer, file, "standard input")
        else:
            with _open(path) as source:
                copy_bounded(source, file, str(path))
    return plain


def _open(path: Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise TableArgumentError(f"{path} cannot be read: {error.strerror}.") from None


def unpack_gzip(plain: PlainFile, name: str) -> PlainFile:
    """Unpack a gzip file into a temporary one; return other files as they are.

    Parameters
    ----------
    plain : PlainFile
        Any file.
    name : str
        How messages call it.
    """
    with _open(plain.path) as source:
        if source.read(2) != b"\x1f\x8b":
            return plain
    with new_spool(name) as (file, unpacked):
        try:
            with gzip.open(plain.path) as packed:
                copy_bounded(packed, file, f"{name}, unpacked,")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TableError(f"{name} is damaged, it cannot be unpacked: {error}.") from None
    return unpacked


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
    with _open(plain.path) as source:
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


def plain_file(path: Path, *, text: bool, encoding: str | None = None, stream: PlainFile | None = None) -> PlainFile:
    """Return a file that a reader of a format can open.

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
    plain = unpack_gzip(stream or PlainFile(path), path.name)
    return transcode(plain, path.name, encoding) if text else plain


def without_gzip(path: Path) -> Path:
    """Return a path without the ending ``.gz``.

    Examples
    --------
    >>> without_gzip(Path("genes.csv.gz")).name
    'genes.csv'
    """
    return path.with_suffix("") if os.fspath(path).lower().endswith(".gz") else path
