"""Exceptions of the data sets, and the wording of disk faults."""

from __future__ import annotations

import errno
from pathlib import Path

from tamiz.errors import TamizError, UnknownNameError


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
