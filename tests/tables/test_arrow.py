"""Arrow files."""

from __future__ import annotations

import pyarrow.feather
import pytest

from tamiz.tables import TableError


def test_an_arrow_file_that_is_cut_off(tmp_path, arrow_table, read):
    path = tmp_path / "t.arrow"
    pyarrow.feather.write_feather(arrow_table, path, compression="uncompressed")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TableError, match="cannot be read as arrow"):
        read(path)
