"""Ways to make and read tables that the tests of the tables share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from tamiz.tables import DataTable, ReadOptions, TextColumn
from tamiz.tables.formats import read_file


@pytest.fixture
def write_csv(tmp_path: Path):
    """Writes text to a file and gives its path."""

    def write(text: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def read():
    """Reads a file as it is, with the options given by name."""
    return lambda path, **options: read_file(path, ReadOptions(**options))


@pytest.fixture
def table_of():
    """Makes a table of numbers n0, n1, ..., texts t0, t1, ... and a target."""

    def make(numbers, texts=None, target=None):
        numbers = numbers if sp.issparse(numbers) else np.asarray(numbers, dtype=np.float32)
        texts = {numbers.shape[1] + i: TextColumn.from_values(values) for i, values in enumerate(texts or [])}
        names = [f"n{i}" for i in range(numbers.shape[1])] + [f"t{i}" for i in range(len(texts))]
        table = DataTable(Path("t.csv"), "csv", names, numbers.shape[0], numbers, np.arange(numbers.shape[1]), texts)
        table.target_column, table.target_name = target, "goal"
        return table

    return make
