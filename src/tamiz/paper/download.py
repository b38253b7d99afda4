"""Download files over HTTP: mirrors, retries, checksums, and never a part of a file in the cache."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import os
import random
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from tamiz._utils.progress import format_size
from tamiz._version import __version__
from tamiz.errors import DownloadError, TamizError, describe_disk_fault

#: Status codes of faults that may be gone a moment later.
_TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadProgress(Protocol):
    """Signature of the ``progress`` argument of a download."""

    def __call__(self, name: str, received: int, total: int | None) -> None:
        """Report that ``received`` of ``total`` bytes (None if not known) of the file ``name`` have arrived."""


class TransientError(TamizError):
    """Raise for a fault that another attempt may not meet; ``wait`` is what the server asked for."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class PermanentError(TamizError):
    """Raise for a fault of this address that stays; another address may do."""


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but never from https to http."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise PermanentError(f"it redirects from https to the unprotected {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@dataclass(frozen=True)
class DownloadSettings:
    """Timeouts and retries of a download.

    Parameters
    ----------
    timeout : float, default=30.0
        Seconds without a single byte after which a connection counts as stalled.
    retries : int, default=4
        Further attempts per address after the first.
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


def _open(url: str, timeout: float) -> Any:
    """Open an address; sort faults into transient and permanent ones."""
    headers = {"User-Agent": f"tamiz/{__version__}", "Accept-Encoding": "identity"}
    try:
        opener = urllib.request.build_opener(_SafeRedirects)
        return opener.open(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as fault:
        with fault:
            reason = str(fault.reason).partition("\n")[0]  # may be empty: servers need not send any
            message = f"the server answered {fault.code} {reason}".rstrip()
            if fault.code not in _TRANSIENT_STATUS:
                raise PermanentError(message) from fault
            wait = str(fault.headers.get("Retry-After", ""))  # of a date the usual backoff will do
            raise TransientError(message, float(wait) if wait.replace(".", "", 1).isdigit() else 0.0) from fault
    except urllib.error.URLError as fault:
        if isinstance(fault.reason, ssl.SSLCertVerificationError):
            raise PermanentError(f"its certificate could not be verified ({fault.reason.verify_message})") from fault
        raise TransientError(f"no connection ({fault.reason})") from fault
    except (http.client.HTTPException, OSError) as fault:
        raise TransientError(f"the connection broke ({str(fault) or type(fault).__name__})") from fault


def _transfer(url: str, part: Path, name: str, progress: DownloadProgress | None, timeout: float) -> None:
    """Write what an address sends to ``part``."""
    with _open(url, timeout) as response, open(part, "wb") as stream:
        length = response.headers.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        free = shutil.disk_usage(part.parent).free
        if total is not None and total > free:  # before the disk is filled
            raise OSError(errno.ENOSPC, f"{name} needs {format_size(total)}, free are {format_size(free)}")
        received = 0
        while True:
            try:
                chunk = response.read1(1 << 16)  # read1: a slow line shows progress, and a stall is noticed at once
            except (TimeoutError, http.client.HTTPException, OSError) as fault:
                word = "stalled" if isinstance(fault, TimeoutError) else "broke"
                raise TransientError(f"the connection {word} after {received} bytes") from fault
            if not chunk:
                break
            stream.write(chunk)
            received += len(chunk)
            if progress is not None:
                progress(name, received, total)
        stream.flush()
        os.fsync(stream.fileno())
    if total is not None and received < total:
        raise TransientError(f"the connection was cut after {received} of {total} bytes")


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file, in hexadecimal digits.

    Examples
    --------
    >>> import tempfile
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

    Only a complete file with the right checksum gets the name ``destination``.

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
    >>> download("ftp://example.org/colon.mat", Path("colon.mat"))
    Traceback (most recent call last):
    tamiz.errors.DownloadError: Could not download colon.mat:
      ftp://example.org/colon.mat: only http and https addresses are supported...
    """
    settings = settings or DownloadSettings()
    part = destination.with_name(destination.name + ".part")
    reasons = []
    try:
        for url in [urls] if isinstance(urls, str) else urls:
            try:
                _download_one(url, part, destination.name, checksum, progress, settings)
                os.replace(part, destination)
                return destination
            except PermanentError as fault:
                reasons.append(f"  {url}: {fault}")
    except OSError as fault:
        raise DownloadError(describe_disk_fault(fault, destination.name, destination.parent)) from fault
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    raise DownloadError(
        f"Could not download {destination.name}:\n" + "\n".join(reasons) + "\nCheck the network (behind a proxy, set "
        "https_proxy) and try again."
    )


def _download_one(
    url: str,
    part: Path,
    name: str,
    checksum: str | None,
    progress: DownloadProgress | None,
    settings: DownloadSettings,
) -> None:
    """Try one address until the file is complete, a fault is permanent or the retries are used."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise PermanentError("only http and https addresses are supported")
    for attempt in range(settings.retries + 1):
        try:
            _transfer(url, part, name, progress, settings.timeout)
            break
        except TransientError as fault:
            if attempt == settings.retries:
                raise PermanentError(f"{fault} (tried {attempt + 1} times)") from fault
            pause = min(settings.max_backoff, max(fault.wait, settings.backoff * 2**attempt))
            time.sleep(pause * random.uniform(0.75, 1.0))
    if checksum is not None:
        algorithm, _, expected = checksum.partition(":")
        found = file_checksum(part, algorithm)
        if found != expected.lower():
            raise PermanentError(
                f"the file there is damaged or was changed: its checksum is {algorithm}:{found}, it should be {checksum}"
            )
