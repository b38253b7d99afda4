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
