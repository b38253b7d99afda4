"""A running server and a real browser for the tests of the live page."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")


@pytest.fixture(scope="session")
def csv_of(tmp_path_factory):
    """Writes a table of two classes, two columns of which tell them apart, and gives its path."""

    def write(n_rows: int = 60, n_columns: int = 12, name: str = "small.csv", extra: bool = False) -> Path:
        generator = np.random.default_rng(0)
        y = np.arange(n_rows) % 2
        X = generator.normal(size=(n_rows, n_columns))
        X[:, 2] += 2.5 * y
        X[:, 5] -= 2.5 * y
        names = [f"gene {i}" for i in range(n_columns)] + (["colour"] if extra else []) + ["ill"]
        lines = [",".join(names)]
        for i, row in enumerate(X):
            colour = [["red", "blue", "green"][i % 3]] if extra else []
            lines.append(",".join([*(f"{value:.4g}" for value in row), *colour, "yes" if y[i] else "no"]))
        path = tmp_path_factory.mktemp("tables") / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture(scope="session")
def small_file(csv_of) -> Path:
    """60 rows, 12 genes; 2 and 5 tell the classes of ``ill`` apart."""
    return csv_of()


@pytest.fixture(scope="session")
def server():
    """A server on a free port of this machine, without a table, with an upload limit of 20 MB."""
    from tamiz.serve.server import LiveServer

    running = LiveServer(upload_limit=20_000_000)
    thread = threading.Thread(target=running.run)
    thread.start()
    yield running
    running.stop()
    thread.join(300)
    assert not thread.is_alive()
