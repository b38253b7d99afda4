"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def open_atomic(path: str | os.PathLike[str], *, text: bool = False) -> Iterator[IO[Any]]:
    """Open a file for writing that replaces ``path`` only once it is written to the end.

    At any moment, also after a crash, a reader finds the old file or the new one, never a part. An exception inside the
    ``with`` block removes what was written. A symbolic link stays one: the file it points to is replaced. A device or a
    pipe, such as ``/dev/null``, cannot be replaced and is written to directly.

    Parameters
    ----------
    path : path
        The file to write; its folder must exist.
    text : bool, default=False
        Whether to open it as UTF-8 text with ``\\n`` line ends.

    Yields
    ------
    file object

    Raises
    ------
    OSError
        If the file cannot be written; it is named as ``path``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_atomic(Path(folder) / "a.txt", text=True) as file:
    ...         _ = file.write("hello")
    ...     os.listdir(folder)
    ['a.txt']
    """
    options: dict[str, Any] = {"encoding": "utf-8", "newline": "\n"} if text else {}
    kind = "" if text else "b"
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, f"w{kind}", **options) as file:  # a folder raises here
            yield file
        return
    target = Path(os.path.realpath(path))
    # 40 characters take at most 160 bytes, and a name may have 255.
    part = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.part")
    try:
        with open(part, f"x{kind}", **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException as fault:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(fault, OSError) and fault.filename == str(part):
            fault.filename = os.fspath(path)
        raise


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write text or bytes with :func:`open_atomic`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder) / "a.bin", b"123")
    ...     (Path(folder) / "a.bin").read_bytes()
    b'123'
    """
    with open_atomic(path, text=isinstance(content, str)) as file:
        file.write(content)
