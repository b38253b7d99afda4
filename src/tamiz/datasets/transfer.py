"""Transfer a file, or what is missing of it, over one HTTP connection."""

from __future__ import annotations

import errno
import http.client
import json
import shutil
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from tamiz._progress import format_size
from tamiz._version import __version__
from tamiz.errors import TamizError

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
