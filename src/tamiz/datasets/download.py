"""Fetch one file over HTTP into a cache: resumed, retried, checked, and only ever renamed into place whole."""

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
from typing import Any
from urllib.parse import urlsplit

from tamiz._version import __version__
from tamiz.datasets.errors import DownloadError
from tamiz.datasets.progress import Progress, format_size

_CHUNK = 1 << 16
#: Answers that may be another a moment later.
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class DownloadSettings:
    """How patient a download is.

    Parameters
    ----------
    timeout : float
        Seconds without a single byte after which a connection counts as stalled.
    retries : int
        Further tries of one address after the first; a try that brought new bytes does not count.
    backoff : float
        Seconds before the first further try; doubled each time, up to ``max_backoff``, with some jitter.
    max_backoff : float
        The longest wait, also for what a server asks for in Retry-After.
    lock_timeout : float
        Seconds to wait for another process that downloads the same dataset.
    """

    timeout: float = 30.0
    retries: int = 4
    backoff: float = 1.0
    max_backoff: float = 30.0
    lock_timeout: float = 3600.0


class _Passing(Exception):
    """A fault that another try may not meet; ``wait`` is what the server asked for."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class _Final(Exception):
    """A fault of this address that stays; another address may do."""


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from an encrypted address to a plain one."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise _Final(f"it redirects from https to the unprotected {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal digits.

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


@dataclass
class _Part:
    """The bytes that have arrived so far, and what the server said about the file they belong to."""

    path: Path

    @property
    def note_path(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def validator(self, url: str) -> str | None:
        """The ETag or date under which the part may be continued from this address, if there is one."""
        try:
            note = json.loads(self.note_path.read_text())
        except (OSError, ValueError):
            return None
        return note.get("validator") if isinstance(note, dict) and note.get("url") == url else None

    def note(self, url: str, headers: Any) -> None:
        tag = headers.get("ETag") or ""
        strong = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")
        self.note_path.write_text(json.dumps({"url": url, "validator": strong}))

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note_path.unlink(missing_ok=True)


def download(
    urls: str | Sequence[str],
    destination: Path,
    *,
    checksum: str | None = None,
    progress: Progress | None = None,
    settings: DownloadSettings | None = None,
) -> Path:
    """Fetch a file from the first of several addresses that has it.

    The bytes go to ``<destination>.part``; a later try, also of another process, goes on where the last one stopped.
    Only a complete file with the right checksum is renamed to ``destination``.

    Parameters
    ----------
    urls : str or sequence of str
        Where the file can be had (http or https), the best first.
    destination : Path
        Where it goes; an existing file is replaced.
    checksum : str or None
        ``"md5:<hex>"`` or ``"sha256:<hex>"``.
    progress : callable or None
        Called with the name, the bytes received and the bytes in all.
    settings : DownloadSettings or None
        How patient to be.

    Returns
    -------
    Path
        ``destination``.

    Raises
    ------
    DownloadError
        If no address gave the file; says why for each.

    Examples
    --------
    >>> from pathlib import Path
    >>> download("ftp://example.org/colon.mat", Path("colon.mat"))
    Traceback (most recent call last):
    tamiz.datasets.errors.DownloadError: Could not download colon.mat:
      ftp://example.org/colon.mat: only http and https addresses are fetched...
    """
    settings = settings or DownloadSettings()
    addresses = [urls] if isinstance(urls, str) else list(urls)
    reasons = []
    for url in addresses:
        try:
            return _download_one(url, destination, checksum, progress, settings)
        except _Final as fault:
            reasons.append(f"  {url}: {fault}")
        except OSError as fault:
            raise _local_fault(fault, destination) from fault
    raise DownloadError(
        f"Could not download {destination.name}:\n" + "\n".join(reasons) + "\nCheck the network (behind a proxy, set "
        "https_proxy) and try again: what has arrived is kept and resumed."
    )


def _local_fault(fault: OSError, destination: Path) -> DownloadError:
    """A fault of this machine's disk, in words that say what to do."""
    folder = destination.parent
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        with contextlib.suppress(OSError):
            _Part(_part_path(destination)).discard()  # a part on a full disk is in everybody's way
        return DownloadError(
            f"The disk is full: {destination.name} does not fit into {folder} ({fault.strerror}). Make room there, or "
            "set TAMIZ_DATA_HOME to a folder on a larger disk."
        )
    return DownloadError(
        f"Cannot write {destination.name} into {folder} ({fault.strerror or fault}). Set TAMIZ_DATA_HOME to a folder "
        "you may write to."
    )


def _part_path(destination: Path) -> Path:
    return destination.with_name(destination.name + ".part")


def _download_one(
    url: str, destination: Path, checksum: str | None, progress: Progress | None, settings: DownloadSettings
) -> Path:
    """Try one address until it gives the file, or a fault that stays, or patience is out."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise _Final("only http and https addresses are fetched")
    part = _Part(_part_path(destination))
    failures, altered, furthest = 0, False, part.size()
    # A process that died between the last byte and the renaming left a whole file behind.
    complete = furthest > 0 and checksum is not None and _mismatch(part.path, checksum) is None
    while True:
        try:
            if not complete:
                _transfer(url, part, destination.name, checksum, progress, settings)
            found = _mismatch(part.path, checksum)
            if found is None:
                _put_in_place(part, destination)
                return destination
            part.discard()
            if altered:
                raise _Final(
                    f"the file there is damaged or was changed: its checksum is {found}, it should be {checksum}"
                )
            # A part of an older version, or bytes lost on the way: one fresh copy shows which.
            altered, furthest = True, 0
        except _Passing as fault:
            failures = 0 if part.size() > furthest else failures + 1
            furthest = max(furthest, part.size())
            if failures > settings.retries:
                raise _Final(f"{fault} (tried {failures} times)") from fault
            pause = min(settings.max_backoff, max(fault.wait, settings.backoff * 2 ** max(0, failures - 1)))
            time.sleep(pause * random.uniform(0.75, 1.0))


def _mismatch(path: Path, checksum: str | None) -> str | None:
    """The checksum a file has, if it is not the one it should have."""
    if checksum is None:
        return None
    algorithm, _, expected = checksum.partition(":")
    found = file_checksum(path, algorithm)
    return None if found == expected.lower() else f"{algorithm}:{found}"


def _put_in_place(part: _Part, destination: Path) -> None:
    with open(part.path, "rb+") as stream:
        os.fsync(stream.fileno())
    os.replace(part.path, destination)
    part.note_path.unlink(missing_ok=True)


def _transfer(
    url: str,
    part: _Part,
    name: str,
    checksum: str | None,
    progress: Progress | None,
    settings: DownloadSettings,
) -> None:
    """One connection: ask for what is missing, and append what comes."""
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
    with _open(request, part, settings) as response:
        offset, total = _where_it_starts(response, offset)
        _check_room(part.path.parent, name, offset, total)
        with open(part.path, "ab" if offset else "wb") as stream:
            part.note(url, response.headers)
            received = _copy(response, stream, offset, total, name, progress)
    if total is not None and received < total:
        raise _Passing(f"the connection was cut after {received} of {total} bytes")


def _open(request: urllib.request.Request, part: _Part, settings: DownloadSettings) -> Any:
    """The answer to a request; faults are sorted into those that pass and those that stay."""
    opener = urllib.request.build_opener(_SafeRedirects)
    try:
        return opener.open(request, timeout=settings.timeout)
    except urllib.error.HTTPError as fault:
        with fault:
            if fault.code == 416:  # the part does not fit the file (any more): start afresh
                part.discard()
                raise _Passing("the server could not continue the partial file") from fault
            words = f"the server answered {fault.code} {str(fault.reason).splitlines()[0]}"
            if fault.code in _PASSING_STATUS:
                raise _Passing(words, _retry_after(fault.headers)) from fault
            raise _Final(words) from fault
    except urllib.error.URLError as fault:
        if isinstance(fault.reason, ssl.SSLCertVerificationError):
            raise _Final(f"its certificate could not be verified ({fault.reason.verify_message})") from fault
        raise _Passing(f"no connection ({fault.reason})") from fault
    except TimeoutError as fault:
        raise _Passing(f"no answer for {settings.timeout:g} s") from fault
    except (http.client.HTTPException, OSError) as fault:
        raise _Passing(f"the connection broke ({str(fault) or type(fault).__name__})") from fault


def _retry_after(headers: Any) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", 0)))
    except (TypeError, ValueError):  # a date: the usual backoff will do
        return 0.0


def _where_it_starts(response: Any, asked: int) -> tuple[int, int | None]:
    """The offset at which the answer starts (0 if the server sends all again), and the size of the whole file."""
    length = response.headers.get("Content-Length")
    if response.status == 206:
        unit, _, rest = (response.headers.get("Content-Range") or "").partition(" ")
        span, _, size = rest.partition("/")
        if unit != "bytes" or span.partition("-")[0] != str(asked):
            raise _Final(f"the server sent another part than asked for ({response.headers.get('Content-Range')})")
        if size.isdigit():
            return asked, int(size)
        return asked, asked + int(length) if length else None
    return 0, int(length) if length and length.isdigit() else None


def _check_room(folder: Path, name: str, offset: int, total: int | None) -> None:
    """Say that the disk is too small before filling it."""
    if total is None:
        return
    free = shutil.disk_usage(folder).free
    if total - offset > free:
        raise OSError(errno.ENOSPC, f"{name} needs {format_size(total - offset)}, free are {format_size(free)}")


def _copy(response: Any, stream: Any, offset: int, total: int | None, name: str, progress: Progress | None) -> int:
    """Append what comes to the stream; the number of bytes the file then has."""
    received = offset
    while True:
        try:
            chunk = response.read1(_CHUNK)  # read1: a slow line shows progress, and a stall is noticed at once
        except TimeoutError as fault:
            raise _Passing(f"the connection stalled after {received} bytes") from fault
        except (http.client.HTTPException, OSError) as fault:
            words = str(fault) or type(fault).__name__
            raise _Passing(f"the connection broke after {received} bytes ({words})") from fault
        if not chunk:
            return received
        stream.write(chunk)
        received += len(chunk)
        if progress is not None:
            progress(name, received, total)
