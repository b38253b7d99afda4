"""Parquet files."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from tamiz.tables import TableError


def test_a_parquet_file_that_is_cut_off(tmp_path, arrow_table, read):
    path = tmp_path / "t.parquet"
    pq.write_table(arrow_table, path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TableError, match="cannot be read as parquet"):
        read(path)
