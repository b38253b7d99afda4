"""Download one file over HTTP into a cache: resume, retry, try mirrors, check the hash, rename into place.

Why not pooch (measured with 1.9.0 on a server that cuts the connection): it does not resume. A 170 MB file that is cut once,
after 100 MB, costs 270 MB with its retries and 170 MB here; one that is cut every 100 MB never arrives; and the next
process cannot use what an interrupted one has received. A resuming ``downloader=`` for pooch would have to keep all of
this code but the hash and the renaming (some 30 lines), and pooch installs eight packages.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tamiz.datasets.errors import DownloadError, describe_disk_fault, is_disk_full
from tamiz.datasets.transfer import DownloadProgress, PartialFile, PermanentError, TransientError, transfer


@dataclass(frozen=True)
class DownloadSettings:
    """Timeouts and retries of a download.

    Parameters
    ----------
    timeout : float, default=30.0
        Seconds without a single byte after which a connection counts as stalled.
    retries : int, default=4
        Further attempts per address after the first; an attempt that received new bytes does not count.
    backoff : float, default=1.0
        Seconds before the first further attempt; doubled each time, up to ``max_backoff``, with some jitter.
    max_backoff : float, default=30.0
        Longest wait, also for what a server asks for in Retry-After.
    lock_timeout : float, default=3600.0
        Seconds to wait for another process that downloads the same dataset.
    """

    timeout: float = 30.0
    retries: int = 4
    backoff: float = 1.0
    max_backoff: float = 30.0
    lock_timeout: float = 3600.0


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file, in hexadecimal digits.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "empty"
    ...     _ = path.write_bytes(b"")
    ...     file_checksum(path, "md5")
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    with open(path, "rb") as stream:
        # usedforsecurity: md5 is what old archives publish; it guards against damage, not against an attacker.
        return hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def download(
    urls: str | Sequence[str],
    destination: Path,
    *,
    checksum: str | None = None,
    progress: DownloadProgress | None = None,
    settings: DownloadSettings | None = None,
) -> Path:
    """Download a file from the first of several addresses that has it.

    The bytes go to ``<destination>.part``; a later attempt, also of another process, resumes there. Only a complete
    file with the right checksum is renamed to ``destination``.

    Parameters
    ----------
    urls : str or sequence of str
        Addresses of the file (http or https), in order of preference.
    destination : Path
        File to write; an existing file is replaced.
    checksum : str or None, default=None
        ``"md5:<hex>"`` or ``"sha256:<hex>"``.
    progress : callable or None, default=None
        Called with the name of the file, the bytes received and the bytes in all.
    settings : DownloadSettings or None, default=None
        Timeouts and retries; None uses the defaults.

    Returns
    -------
    Path
        ``destination``.

    Raises
    ------
    DownloadError
        If no address has the file (the message says why for each), or it cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> download("ftp://example.org/colon.mat", Path("colon.mat"))
    Traceback (most recent call last):
    tamiz.datasets.errors.DownloadError: Could not download colon.mat:
      ftp://example.org/colon.mat: only http and https addresses are supported...
    """
    settings = settings or DownloadSettings()
    addresses = [urls] if isinstance(urls, str) else list(urls)
    reasons = []
    for url in addresses:
        try:
            return _download_one(url, destination, checksum, progress, settings)
        except PermanentError as fault:
            reasons.append(f"  {url}: {fault}")
        except OSError as fault:
            raise _disk_error(fault, destination) from fault
    raise DownloadError(
        f"Could not download {destination.name}:\n" + "\n".join(reasons) + "\nCheck the network (behind a proxy, set "
        "https_proxy) and try again: what has arrived is kept and resumed."
    )


def _disk_error(fault: OSError, destination: Path) -> DownloadError:
    """Return the error for a fault of the local disk; remove the part if the disk is full."""
    if is_disk_full(fault):
        with contextlib.suppress(OSError):
            PartialFile(_part_path(destination)).discard()
    return DownloadError(describe_disk_fault(fault, destination.name, destination.parent))


def _part_path(destination: Path) -> Path:
    return destination.with_name(destination.name + ".part")


def _download_one(
    url: str, destination: Path, checksum: str | None, progress: DownloadProgress | None, settings: DownloadSettings
) -> Path:
    """Try one address until the file is complete, a fault is permanent or the retries are used."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise PermanentError("only http and https addresses are supported")
    part = PartialFile(_part_path(destination))
    failures, altered, furthest = 0, False, part.size()
    # A process that died between the last byte and the renaming left a whole file behind.
    complete = furthest > 0 and checksum is not None and _mismatch(part.path, checksum) is None
    while True:
        try:
            if not complete:
                transfer(url, part, destination.name, checksum, progress, settings.timeout)
            found = _mismatch(part.path, checksum)
            if found is None:
                _put_in_place(part, destination)
                return destination
            part.discard()
            if altered:
                raise PermanentError(
                    f"the file there is damaged or was changed: its checksum is {found}, it should be {checksum}"
                )
            # A part of an older version, or bytes lost on the way: one fresh copy shows which.
            altered, furthest = True, 0
        except TransientError as fault:
            failures = 0 if part.size() > furthest else failures + 1
            furthest = max(furthest, part.size())
            if failures > settings.retries:
                raise PermanentError(f"{fault} (tried {failures} times)") from fault
            pause = min(settings.max_backoff, max(fault.wait, settings.backoff * 2 ** max(0, failures - 1)))
            time.sleep(pause * random.uniform(0.75, 1.0))


def _mismatch(path: Path, checksum: str | None) -> str | None:
    """Return the checksum of a file if it is not the expected one."""
    if checksum is None:
        return None
    algorithm, _, expected = checksum.partition(":")
    found = file_checksum(path, algorithm)
    return None if found == expected.lower() else f"{algorithm}:{found}"


def _put_in_place(part: PartialFile, destination: Path) -> None:
    with open(part.path, "rb+") as stream:
        os.fsync(stream.fileno())
    os.replace(part.path, destination)
    part.note_path.unlink(missing_ok=True)
