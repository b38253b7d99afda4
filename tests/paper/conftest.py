"""A real HTTP server on loopback that misbehaves on request, small disks, and protocols that are quick to run."""

from __future__ import annotations

import http.server
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tamiz.paper import download
from tamiz.paper.datasets import REGISTRY, Dataset, DatasetEntry, write_cached
from tamiz.paper.protocol import PROTOCOLS
from tamiz.paper.recipes import load_checked


class BadServer:
    """Serve ``files``: for each path the answers in order, the last again and again; ``requests`` is what was asked for.

    An answer may say ``status``, ``headers``, ``cut`` (bytes that are sent) and ``stall`` (send no more and wait).
    """

    def __init__(self) -> None:
        self.files: dict[str, list[dict]] = {}
        self.requests: list[str] = []
        self.stop_stalling = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.lstrip("/")
                outer.requests.append(path)
                self.close_connection = True
                answers = outer.files.get(path, [{"status": 404, "body": b""}])
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                body = b"" if "status" in answer else answer["body"]
                self.send_response(answer.get("status", 200))
                for name, value in {"Content-Length": str(len(body)), **answer.get("headers", {})}.items():
                    if value:
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body[: answer.get("cut")])
                if "stall" in answer:
                    self.wfile.flush()
                    outer.stop_stalling.wait(30)

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

    def put(self, path: str, body: bytes, *answers: dict) -> str:
        """Serve a file after some bad answers."""
        self.files[path] = [{"body": body, **answer} for answer in (*answers, {})]
        return self.url(path)

    def close(self) -> None:
        self.stop_stalling.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


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


def _disk(name, options, about):
    """Make a fixture: a folder on a disk of its own."""

    def mounted(tmp_path):
        if sys.platform != "linux" or os.geteuid() != 0:
            pytest.skip("needs root on Linux to mount a small disk")
        path = tmp_path / "disk"
        path.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
        yield path
        subprocess.run(["umount", str(path)], check=True)

    mounted.__doc__ = about
    return pytest.fixture(mounted, name=name)


small_disk = _disk("small_disk", "size=256k", "A folder on a disk of 256 kB.")
tiny_disk = _disk("tiny_disk", "size=32k", "A folder on a disk of 32 kB: room for a few cells.")
read_only_disk = _disk("read_only_disk", "size=256k,ro", "A folder that not even root may write to.")


@pytest.fixture(scope="session")
def data_home():
    """The folder with the data sets of the paper."""
    home = os.environ.get("TAMIZ_DATA_HOME")
    if not home:
        pytest.skip("needs TAMIZ_DATA_HOME")
    return home


@pytest.fixture
def script():
    """Import a script of the benchmarks by its name."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "benchmarks" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


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
import time
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

    @classmethod
    def run_cell(cls, settings, data_home):
        if settings["n"] == 13:
            raise ArithmeticError("13 brings bad luck")
        time.sleep(0.01 if settings["n"] > 99 else 0)
        return {"square": settings["n"] ** 2}

    def describe(self, cells, results):
        return "Squares", "", ""

    def summarise(self, cells, results, failures):
        found = {cell.settings["n"]: results[cell.key]["square"] for cell in cells if cell.key in results}
        table = markdown_table(["n", "square"], [[str(n), str(square)] for n, square in found.items()])
        content = {"protocol": self.name, "squares": list(found.values()), "failures": dict(failures)}
        return ProtocolSummary("Squares", table, content)

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
