"""Download files over HTTP: mirrors, retries, checksums, and never a part of a file in the cache."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import os
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tamiz._utils.progress import format_size
from tamiz._version import __version__
from tamiz.errors import DownloadError, TamizError, describe_disk_fault

#: Seconds without a single byte after which a connection counts as stalled; further attempts per address; seconds before the
#: first of them, doubled each time.
TIMEOUT, RETRIES, BACKOFF = 30.0, 4, 1.0
#: Status codes of faults that may be gone a moment later.
_TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class TransferError(TamizError):
    """Raise if a transfer fails; another attempt may do if it is ``transient``."""

    def __init__(self, message: str, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but never from https to http."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise TransferError(f"it redirects from https to the unprotected {newurl}", transient=False)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str) -> Any:
    """Open an address; sort faults into transient and permanent ones."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise TransferError("only http and https addresses are supported", transient=False)
    headers = {"User-Agent": f"tamiz/{__version__}", "Accept-Encoding": "identity"}
    try:
        opener = urllib.request.build_opener(_SafeRedirects)
        return opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as fault:
        with fault:
            reason = str(fault.reason).partition("\n")[0]  # may be empty: servers need not send any
            message = f"the server answered {fault.code} {reason}".rstrip()
            raise TransferError(message, fault.code in _TRANSIENT_STATUS) from fault
    except urllib.error.URLError as fault:
        if isinstance(fault.reason, ssl.SSLCertVerificationError):
            why = fault.reason.verify_message
            raise TransferError(f"its certificate could not be verified ({why})", transient=False) from fault
        raise TransferError(f"no connection ({fault.reason})") from fault
    except (http.client.HTTPException, OSError) as fault:
        raise TransferError(f"the connection broke ({str(fault) or type(fault).__name__})") from fault


def _transfer(url: str, part: Path, name: str, checksum: str | None, progress: Any) -> None:
    """Write what an address sends to ``part``, and check it."""
    with _open(url) as response, open(part, "wb") as stream:
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
                raise TransferError(f"the connection {word} after {received} bytes") from fault
            if not chunk:
                break
            stream.write(chunk)
            received += len(chunk)
            if progress is not None:
                progress(name, received, total)
    if total is not None and received < total:
        raise TransferError(f"the connection was cut after {received} of {total} bytes")
    if checksum is not None:
        algorithm, _, expected = checksum.partition(":")
        with open(part, "rb") as stream:
            # md5 is what old archives publish; it guards against damage, not against an attacker.
            found = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
        if found != expected.lower():
            said = f"its checksum is {algorithm}:{found}, it should be {checksum}"
            raise TransferError(f"the file there is damaged or was changed: {said}", transient=False)


def download(
    urls: str | Sequence[str], destination: Path, *, checksum: str | None = None, progress: Any = None
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
    part = destination.with_name(destination.name + ".part")
    reasons = []
    try:
        for url in [urls] if isinstance(urls, str) else urls:
            for attempt in range(RETRIES + 1):
                try:
                    _transfer(url, part, destination.name, checksum, progress)
                    os.replace(part, destination)
                    return destination
                except TransferError as fault:
                    if not fault.transient or attempt == RETRIES:
                        tried = f" (tried {attempt + 1} times)" if fault.transient else ""
                        reasons.append(f"  {url}: {fault}{tried}")
                        break
                    time.sleep(BACKOFF * 2**attempt)
    except OSError as fault:
        raise DownloadError(describe_disk_fault(fault, destination.name, destination.parent)) from fault
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    raise DownloadError(
        f"Could not download {destination.name}:\n" + "\n".join(reasons) + "\nCheck the network (behind a proxy, set "
        "https_proxy) and try again."
    )
