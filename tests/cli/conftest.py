"""Tables that the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def small_table() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """60 rows, 8 columns, two of which tell the classes apart."""
    generator = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = generator.normal(size=(60, 8)).astype(np.float32)
    X[:, 2] += 2.5 * y
    X[:, 5] -= 2.5 * y
    return X, y, [f"gene {i}" for i in range(8)]


@pytest.fixture
def write_csv(tmp_path: Path):
    """Writes text to a file and gives its path."""

    def write(text: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def small_csv(small_table, write_csv) -> Path:
    """The small table as CSV, its target called ``ill``."""
    X, y, names = small_table
    lines = [",".join([*names, "ill"])]
    lines += [",".join([*(f"{value:.6g}" for value in row), "yes" if label else "no"]) for row, label in zip(X, y)]
    return write_csv("\n".join(lines) + "\n", "small.csv")


@pytest.fixture
def tamiz(tmp_path: Path, monkeypatch):
    """Runs the command in an empty folder, in this process; gives the result with stdout, stderr and exit_code."""
    from typer.testing import CliRunner

    from tamiz.cli.main import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: object):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
