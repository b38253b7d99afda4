"""A real HTTP server on loopback that misbehaves on request, and a small disk."""

from __future__ import annotations

import hashlib
import http.server
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

import pytest

from tamiz.paper.download import DownloadSettings


@dataclass
class Served:
    """A file and how the server mistreats it; a fault with a count lasts for that many requests."""

    body: bytes
    cut_after: int | None = None
    cut_times: int = 10**9
    cut_is_silent: bool = False  # no Content-Length, so that nothing but a checksum tells
    stall_after: int | None = None
    stall_times: int = 10**9
    ranges: bool = True
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    redirect: str | None = None
    delay: float = 0.0
    wrong_range: bool = False
    always_416: bool = False


class BadServer:
    """``files`` by path; ``requests`` is what was asked for, with the Range header."""

    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.stop_stalling = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """A client that hangs up is part of the game."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/{path}"

    def put(self, path: str, body: bytes, **faults: object) -> str:
        self.files[path] = Served(body, **faults)
        return self.url(path)

    def close(self) -> None:
        self.stop_stalling.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        path, asked = handler.path.lstrip("/"), handler.headers.get("Range")
        self.requests.append((path, asked))
        handler.close_connection = True
        served = self.files.get(path)
        if served is None:
            return self.plain(handler, 404)
        if served.statuses:
            return self.plain(handler, served.statuses.pop(0), served.headers)
        if served.redirect is not None:
            return self.plain(handler, 302, {"Location": served.redirect})
        time.sleep(served.delay)
        return self.send(handler, served, asked)

    @staticmethod
    def plain(handler: http.server.BaseHTTPRequestHandler, status: int, headers: dict[str, str] | None = None) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def send(self, handler: http.server.BaseHTTPRequestHandler, served: Served, asked: str | None) -> None:
        tag = '"' + hashlib.sha256(served.body).hexdigest()[:16] + '"'
        same = handler.headers.get("If-Range") in (None, tag)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and served.ranges and same else 0
        if start and (start >= len(served.body) or served.always_416):
            return self.plain(handler, 416, {"Content-Range": f"bytes */{len(served.body)}"})
        body = served.body[start:]
        handler.send_response(206 if start else 200)
        handler.send_header("ETag", tag)
        if start:
            first = 0 if served.wrong_range else start
            handler.send_header("Content-Range", f"bytes {first}-{len(served.body) - 1}/{len(served.body)}")
        if not served.cut_is_silent:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if served.cut_after is not None and served.cut_times > 0:
            served.cut_times -= 1
            handler.wfile.write(body[: served.cut_after])
            return None
        if served.stall_after is not None and served.stall_times > 0:
            served.stall_times -= 1
            handler.wfile.write(body[: served.stall_after])
            handler.wfile.flush()
            self.stop_stalling.wait(30)
            return None
        handler.wfile.write(body)
        return None


@pytest.fixture
def server():
    bad = BadServer()
    yield bad
    bad.close()


@pytest.fixture
def hasty() -> DownloadSettings:
    """Little time between two tries, so that tests are quick; patience with a busy machine."""
    return DownloadSettings(timeout=60, retries=2, backoff=0.01, max_backoff=0.05, lock_timeout=300)


def _mount(path, options: str) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs root on Linux to mount a small disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 256 kB."""
    path = tmp_path / "small"
    path.mkdir()
    _mount(path, "size=256k")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def read_only_disk(tmp_path):
    """A folder that not even root may write to."""
    path = tmp_path / "readonly"
    path.mkdir()
    _mount(path, "size=256k,ro")
    yield path
    subprocess.run(["umount", str(path)], check=True)
