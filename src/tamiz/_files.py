"""Write files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def open_atomic(path: str | os.PathLike[str], *, text: bool = False) -> Iterator[IO[Any]]:
    """Open a file for writing that replaces ``path`` only once it is written to the end.

    At any moment, also after a crash, a reader finds the old file or the new one, never a part. An exception inside the
    ``with`` block removes what was written.

    Parameters
    ----------
    path : path
        The file to write; its folder must exist.
    text : bool, default=False
        Whether to open it as UTF-8 text with ``\\n`` line ends.

    Yields
    ------
    file object

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_atomic(Path(folder) / "a.txt", text=True) as file:
    ...         _ = file.write("hello")
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = Path(path)
    handle, part = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
    try:
        options: dict[str, Any] = {"encoding": "utf-8", "newline": "\n"} if text else {}
        with os.fdopen(handle, "w" if text else "wb", **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(part, 0o666 & ~umask)  # mkstemp makes files that only their owner reads
        os.replace(part, target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write text or bytes with :func:`open_atomic`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder) / "a.bin", b"123")
    ...     (Path(folder) / "a.bin").read_bytes()
    b'123'
    """
    with open_atomic(path, text=isinstance(content, str)) as file:
        file.write(content)
