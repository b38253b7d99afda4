"""Tables that the tests of the command line share, and the command itself."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas
import pytest


@pytest.fixture(scope="session")
def small_frame() -> pandas.DataFrame:
    """60 rows, 8 genes, of which 2 and 5 tell the classes of ``ill`` apart."""
    y = np.repeat([0, 1], 30)
    X = np.random.default_rng(0).normal(size=(60, 8))
    X[:, 2] += 2.5 * y
    X[:, 5] -= 2.5 * y
    frame = pandas.DataFrame(X.round(5), columns=[f"gene {i}" for i in range(8)])
    return frame.assign(ill=np.where(y, "yes", "no"))


@pytest.fixture
def write_csv(tmp_path: Path):
    """Writes text, a frame or columns to a file and gives its path."""

    def write(content, name: str = "table.csv", **options) -> Path:
        path = tmp_path / name
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8", newline="")
        else:
            pandas.DataFrame(content).to_csv(path, index=False, **options)
        return path

    return write


@pytest.fixture
def small_csv(small_frame, write_csv) -> Path:
    """The small table as CSV."""
    return write_csv(small_frame, "small.csv")


@pytest.fixture
def tamiz(tmp_path: Path, monkeypatch):
    """Runs a command line in an empty folder, in this process.

    Checks the exit code; ``words`` is standard error on one line, ``record`` what ``--json`` printed.
    """
    from typer.testing import CliRunner

    from tamiz.cli.main import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(line: str, *more: object, code: int = 0):
        result = CliRunner().invoke(app, [*shlex.split(line), *map(str, more)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.stderr
        assert "Traceback" not in result.stderr
        result.words = " ".join(result.stderr.split())
        result.record = json.loads(result.stdout) if "--json" in line and code == 0 else None
        return result

    return run
