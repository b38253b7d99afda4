"""Memory that is not there."""

from __future__ import annotations

import numpy as np
import pytest

from tamiz._utils.memory import available_memory
from tamiz.tables import MemoryBudget, ReadOptions, TableMemoryError, read_file


def test_a_table_larger_than_memory_raises_from_the_header_alone(tmp_path, read):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.ones((2, 2)), y=np.ones(2))
    available = available_memory()
    assert available is not None
    with pytest.raises(TableMemoryError, match=r"needs about .* but only .* are available"):
        read(path, copies=available)


def test_large_needs_are_reported_before(write_csv):
    said = []
    path = write_csv("a,b\n" + "1,2\n" * 1000)
    read_file(path, ReadOptions(), MemoryBudget(said.append, report_from=1000))
    assert len(said) == 1
    assert "1,000 rows, 2 columns" in said[0]


def test_without_the_module_resource(monkeypatch):
    """Windows has none; what else is known still counts."""
    monkeypatch.setattr("tamiz._utils.memory.resource", None)
    available = available_memory()
    assert available is None or available > 0
