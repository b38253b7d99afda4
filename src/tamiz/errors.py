"""Base classes of the exceptions that tamiz raises."""

from __future__ import annotations

import errno
from pathlib import Path


class TamizError(Exception):
    """Base class of every exception that tamiz defines; the message says what to do.

    Exceptions about an argument also derive from ``ValueError``, those about a missing package from ``ImportError``, so
    that ``except ValueError`` keeps working.
    """


class UnknownNameError(TamizError, ValueError):
    """Raise for a name that is not in a registry; the message suggests the nearest one."""


class DivergenceError(TamizError, FloatingPointError, ValueError):
    """Raise if numbers become infinite or NaN in training or scoring; the message says which setting to change."""


class MissingExtraError(TamizError, ImportError):
    """Raise if an optional dependency is not installed; the message holds the command that installs it."""


class DatasetError(TamizError):
    """Raise if a dataset is not available or not what the registry says; the message says what to do."""


class DownloadError(DatasetError):
    """Raise if a file could not be downloaded; what has arrived is kept for a later call."""


class UnknownDatasetError(DatasetError, UnknownNameError):
    """Raise if no dataset has that name; the message suggests the nearest one."""


def is_disk_full(fault: OSError) -> bool:
    """Check whether a write failed for lack of space.

    Examples
    --------
    >>> is_disk_full(OSError(errno.ENOSPC, "No space left on device")), is_disk_full(OSError(errno.EACCES, "denied"))
    (True, False)
    """
    return fault.errno in (errno.ENOSPC, errno.EDQUOT)


def describe_disk_fault(fault: OSError, what: str, folder: Path) -> str:
    """Return the message for a failed write: what did not fit or could not be written, and what to do.

    Examples
    --------
    >>> describe_disk_fault(OSError(errno.EROFS, "Read-only file system"), "colon.mat", Path("data"))
    'Cannot write colon.mat into data (Read-only file system). Set TAMIZ_DATA_HOME to a folder you may write to.'
    """
    if is_disk_full(fault):
        return (
            f"The disk is full: {what} does not fit into {folder} ({fault.strerror or fault}). Make room there, or set "
            "TAMIZ_DATA_HOME to a folder on a larger disk."
        )
    return (
        f"Cannot write {what} into {folder} ({fault.strerror or fault}). Set TAMIZ_DATA_HOME to a folder you may "
        "write to."
    )


class TableError(TamizError, ValueError):
    """Raise if a table cannot be read, or cannot be used as it is."""


class TableArgumentError(TableError):
    """Raise if an argument does not fit the table: an unknown column, format or task."""


class TableMemoryError(TableError):
    """Raise, before the memory is taken, if a table needs more of it than there is."""


class SourceError(TamizError, ValueError):
    """Raise if a table that is read in blocks cannot be read, or changes while it is read."""
