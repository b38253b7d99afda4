"""A lock between processes, held by the operating system: it dies with its owner, so it can never be stale."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamiz.datasets.errors import DatasetError

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _is_still_there(descriptor: int, path: Path) -> bool:
    """Whether the open file is the one the name points to: the last owner may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _acquire(path: Path, deadline: float, poll: float) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise DatasetError(
                        f"Another process has held the lock {path} for too long. Wait until it has finished its "
                        "download, or end it; the lock goes with it."
                    )
                time.sleep(poll)
            if _is_still_there(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


@contextmanager
def file_lock(path: Path, timeout: float = 3600.0, poll: float = 0.05) -> Iterator[None]:
    """Hold an exclusive lock on a file, created if need be and removed at the end.

    Parameters
    ----------
    path : Path
        The lock file; its folder must exist and be writable.
    timeout : float
        Seconds to wait for another owner.
    poll : float
        Seconds between two tries.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with file_lock(Path(folder) / "colon.lock"):
    ...         held = [path.name for path in Path(folder).iterdir()]
    ...     left = list(Path(folder).iterdir())
    >>> held, left
    (['colon.lock'], [])
    """
    descriptor = _acquire(path, time.monotonic() + timeout, poll)
    try:
        yield
    finally:
        if sys.platform != "win32":  # an open file cannot be removed there; it is empty and does no harm
            path.unlink(missing_ok=True)
        os.close(descriptor)
