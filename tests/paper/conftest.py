"""A real HTTP server on loopback that misbehaves on request, small disks, and protocols that are quick to run."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from tamiz.paper import download
from tamiz.paper.datasets import REGISTRY, Dataset, DatasetEntry, write_cached
from tamiz.paper.ground_truth import GroundTruth
from tamiz.paper.protocol import PROTOCOLS
from tamiz.paper.recipes import load_checked


@dataclass
class Served:
    """A file and how the server mistreats it; a fault with a count lasts for that many requests."""

    body: bytes
    cut_after: int | None = None
    cut_times: int = 10**9
    cut_is_silent: bool = False  # no Content-Length, so that nothing but a checksum tells
    stall_after: int | None = None
    stall_times: int = 10**9
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    redirect: str | None = None
    delay: float = 0.0


class BadServer:
    """``files`` by path; ``requests`` is what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.requests: list[str] = []
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
        path = handler.path.lstrip("/")
        self.requests.append(path)
        handler.close_connection = True
        served = self.files.get(path)
        if served is None:
            return self.plain(handler, 404)
        if served.statuses:
            return self.plain(handler, served.statuses.pop(0), served.headers)
        if served.redirect is not None:
            return self.plain(handler, 302, {"Location": served.redirect})
        time.sleep(served.delay)
        return self.send(handler, served)

    @staticmethod
    def plain(handler: http.server.BaseHTTPRequestHandler, status: int, headers: dict[str, str] | None = None) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def send(self, handler: http.server.BaseHTTPRequestHandler, served: Served) -> None:
        body = served.body
        handler.send_response(200)
        if not served.cut_is_silent:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if served.cut_after is not None and served.cut_times > 0:
            served.cut_times -= 1
            handler.wfile.write(body[: served.cut_after])
            return
        if served.stall_after is not None and served.stall_times > 0:
            served.stall_times -= 1
            handler.wfile.write(body[: served.stall_after])
            handler.wfile.flush()
            self.stop_stalling.wait(30)
            return
        handler.wfile.write(body)
        return


@pytest.fixture
def server():
    bad = BadServer()
    yield bad
    bad.close()


@pytest.fixture(autouse=True)
def hasty(monkeypatch) -> None:
    """Little time between two tries, so that tests are quick; patience with a busy machine."""
    for name, value in (("TIMEOUT", 60), ("RETRIES", 2), ("BACKOFF", 0.01)):
        monkeypatch.setattr(download, name, value)


def _mount(path, options: str) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs root on Linux to mount a small disk")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")


def _disk(tmp_path, options):
    path = tmp_path / "disk"
    path.mkdir()
    _mount(path, options)
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 256 kB."""
    yield from _disk(tmp_path, "size=256k")


@pytest.fixture
def tiny_disk(tmp_path):
    """A folder on a disk of 32 kB: room for a few cells."""
    yield from _disk(tmp_path, "size=32k")


@pytest.fixture
def read_only_disk(tmp_path):
    """A folder that not even root may write to."""
    yield from _disk(tmp_path, "size=256k,ro")


@pytest.fixture(scope="session")
def data_home():
    """The folder with the data sets of the paper."""
    home = os.environ.get("TAMIZ_DATA_HOME")
    if not home:
        pytest.skip("needs TAMIZ_DATA_HOME")
    return home


@pytest.fixture(scope="session")
def quick_cells():
    """Some cells of the ground-truth protocol, a few milliseconds each."""
    return GroundTruth(problems=["xor"], methods=["relieff"], sizes=[8, 16], folds=6).make_cells()


@pytest.fixture
def table(monkeypatch, tmp_path):
    """A registered data set of two classes, 90 rows and 12 columns, in a data home of its own."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(90, 12)).astype(np.float32)
    y = (X[:, 2] - X[:, 7] + 0.3 * generator.normal(size=90) > 0).astype(np.int64)
    entry = DatasetEntry("toy", "TOY", X.shape, tuple(np.bincount(y).tolist()), "nobody")
    monkeypatch.setitem(REGISTRY, "toy", entry)
    home = tmp_path / "home"
    home.mkdir()
    write_cached(Dataset(entry, X, y), home)
    load_checked.cache_clear()
    yield str(home)
    load_checked.cache_clear()


TOY = """
from collections.abc import Sequence
from tamiz._utils.extras import require
from tamiz.paper.protocol import Cell, Protocol
from tamiz.paper.tables import ProtocolSummary, markdown_table


class Toy(Protocol):
    name = "toy"
    least = {"seed": 0, "numbers": 0}
    numbers: Sequence[int] = (1, 2, 3)

    def make_cells(self, data_home=None):
        return [Cell(self.name, f"square of {n}", {"n": n, "seed": self.seed}) for n in self.numbers]

    @staticmethod
    def run_cell(settings, data_home):
        if settings["n"] == 13:
            raise ArithmeticError("13 brings bad luck")
        return {"square": settings["n"] ** 2}

    def describe(self, cells, results):
        return "Squares", "", ""

    def summarise(self, cells, results, failures):
        found = {cell.settings["n"]: results[cell.key]["square"] for cell in cells if cell.key in results}
        table = markdown_table(["n", "square"], [[str(n), str(square)] for n, square in found.items()])
        content = {"protocol": self.name, "squares": list(found.values()), "failures": dict(failures)}
        return ProtocolSummary("Squares", table, [{"n": n, "square": square} for n, square in found.items()], content)

    def draw(self, summary, cells, results, folder):
        require("no_such_drawing_package", "plot", "The figure")
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A folder for runs of a protocol whose module and line in the registry are made here."""
    (tmp_path / "toy_protocol.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(PROTOCOLS, "toy", "toy_protocol:Toy")
    return tmp_path / "run"
