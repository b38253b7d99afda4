"""Download files over HTTP into a cache: resume, retry, mirrors, checksums."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import json
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
from tamiz.errors import DownloadError, TamizError, describe_disk_fault, is_disk_full

_CHUNK = 1 << 16
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


@dataclass
class PartialFile:
    """Bytes that have arrived so far, with a note on the file they belong to.

    Parameters
    ----------
    path : Path
        File of the bytes; the note is ``<path>.json``.
    """

    path: Path

    @property
    def note_path(self) -> Path:
        """File of the note."""
        return self.path.with_name(self.path.name + ".json")

    def size(self) -> int:
        """Return the number of bytes that have arrived."""
        return self.path.stat().st_size if self.path.exists() else 0

    def validator(self, url: str) -> str | None:
        """Return the ETag or date under which the part may be continued from this address, if there is one."""
        try:
            note = json.loads(self.note_path.read_text())
        except (OSError, ValueError):
            return None
        return note.get("validator") if isinstance(note, dict) and note.get("url") == url else None

    def note(self, url: str, headers: Any) -> None:
        """Write down the address and the ETag or date of the response that the bytes come from."""
        tag = headers.get("ETag") or ""
        strong = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")
        self.note_path.write_text(json.dumps({"url": url, "validator": strong}))

    def discard(self) -> None:
        """Remove the bytes and the note."""
        self.path.unlink(missing_ok=True)
        self.note_path.unlink(missing_ok=True)


def transfer(
    url: str,
    part: PartialFile,
    name: str,
    checksum: str | None,
    progress: DownloadProgress | None,
    timeout: float,
) -> None:
    """Request what is missing over one connection, and append what arrives.

    Parameters
    ----------
    url : str
        Address of the file.
    part : PartialFile
        Bytes so far; is appended to, or begun anew if the server cannot continue it.
    name : str
        Name of the file for ``progress``.
    checksum : str or None
        Checksum that the caller will check; without one, and without a validator, a part is not continued.
    progress : callable or None
        Called with the name, the bytes received and the bytes in all.
    timeout : float
        Seconds without a single byte after which the connection counts as stalled.

    Raises
    ------
    TransientError
        If another attempt may succeed.
    PermanentError
        If this address will not serve the file.
    OSError
        If the bytes cannot be written.
    """
    offset = part.size()
    validator = part.validator(url)
    if offset and validator is None and checksum is None:
        part.discard()  # nothing would tell whether the rest belongs to the same file
        offset = 0
    request = urllib.request.Request(url, headers={"User-Agent": f"tamiz/{__version__}", "Accept-Encoding": "identity"})
    if offset:
        request.add_header("Range", f"bytes={offset}-")
        if validator:
            request.add_header("If-Range", validator)
    with _open(request, part, timeout) as response:
        offset, total = _response_range(response, offset)
        _check_free_space(part.path.parent, name, offset, total)
        with open(part.path, "ab" if offset else "wb") as stream:
            part.note(url, response.headers)
            received = _copy(response, stream, offset, total, name, progress)
    if total is not None and received < total:
        raise TransientError(f"the connection was cut after {received} of {total} bytes")


def _open(request: urllib.request.Request, part: PartialFile, timeout: float) -> Any:
    """Return the response to a request; sort faults into transient and permanent ones."""
    opener = urllib.request.build_opener(_SafeRedirects)
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as fault:
        with fault:
            if fault.code == 416:  # the part does not fit the file (any more): start afresh
                part.discard()
                raise TransientError("the server could not continue the partial file") from fault
            reason = str(fault.reason).partition("\n")[0]  # may be empty: servers need not send any
            message = f"the server answered {fault.code} {reason}".rstrip()
            if fault.code in _TRANSIENT_STATUS:
                raise TransientError(message, _retry_after(fault.headers)) from fault
            raise PermanentError(message) from fault
    except urllib.error.URLError as fault:
        if isinstance(fault.reason, ssl.SSLCertVerificationError):
            raise PermanentError(f"its certificate could not be verified ({fault.reason.verify_message})") from fault
        raise TransientError(f"no connection ({fault.reason})") from fault
    except TimeoutError as fault:
        raise TransientError(f"no answer for {timeout:g} s") from fault
    except (http.client.HTTPException, OSError) as fault:
        raise TransientError(f"the connection broke ({str(fault) or type(fault).__name__})") from fault


def _retry_after(headers: Any) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", 0)))
    except (TypeError, ValueError):  # a date: the usual backoff will do
        return 0.0


def _response_range(response: Any, asked: int) -> tuple[int, int | None]:
    """Return the offset at which the response starts (0 if the server sends all again) and the size of the whole file."""
    length = response.headers.get("Content-Length")
    if response.status == 206:
        unit, _, rest = (response.headers.get("Content-Range") or "").partition(" ")
        span, _, size = rest.partition("/")
        if unit != "bytes" or span.partition("-")[0] != str(asked):
            raise PermanentError(
                f"the server sent another part than asked for ({response.headers.get('Content-Range')})"
            )
        if size.isdigit():
            return asked, int(size)
        return asked, asked + int(length) if length else None
    return 0, int(length) if length and length.isdigit() else None


def _check_free_space(folder: Path, name: str, offset: int, total: int | None) -> None:
    """Raise OSError if the disk is too small, before it is filled."""
    if total is None:
        return
    free = shutil.disk_usage(folder).free
    if total - offset > free:
        raise OSError(errno.ENOSPC, f"{name} needs {format_size(total - offset)}, free are {format_size(free)}")


def _copy(
    response: Any, stream: Any, offset: int, total: int | None, name: str, progress: DownloadProgress | None
) -> int:
    """Append the response to the stream; return the number of bytes the file then has."""
    received = offset
    while True:
        try:
            chunk = response.read1(_CHUNK)  # read1: a slow line shows progress, and a stall is noticed at once
        except TimeoutError as fault:
            raise TransientError(f"the connection stalled after {received} bytes") from fault
        except (http.client.HTTPException, OSError) as fault:
            reason = str(fault) or type(fault).__name__
            raise TransientError(f"the connection broke after {received} bytes ({reason})") from fault
        if not chunk:
            return received
        stream.write(chunk)
        received += len(chunk)
        if progress is not None:
            progress(name, received, total)


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
    tamiz.errors.DownloadError: Could not download colon.mat:
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
