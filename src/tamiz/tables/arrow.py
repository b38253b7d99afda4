"""Arrow files (Feather), in the file or the stream layout."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tamiz.tables.formats import Format, OnRows, add_target
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import DataTable

if TYPE_CHECKING:
    from tamiz.tables.arrow_reader import ArrowSource


def _sniff(head: bytes) -> bool:
    return head.startswith((b"ARROW1", b"\xff\xff\xff\xff"))


def _open(path: Path) -> ArrowSource:
    import pyarrow as pa

    from tamiz.tables.arrow_reader import ArrowSource, iterate_table, translate_errors

    with translate_errors(path, "arrow"):
        source = pa.memory_map(os.fsencode(path))
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
    return ArrowSource(path, "arrow", table.schema, table.num_rows, iterate_table(table))


def _read(path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows) -> DataTable:
    from tamiz.tables.arrow_reader import read_arrow

    return read_arrow(_open(path), options, budget, on_rows)


def _write(table: DataTable, columns: Sequence[int], path: Path) -> None:
    import pyarrow as pa

    schema, batches = _open(table.path).batches_to_write(add_target(table, columns))
    with open(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


ARROW = Format("arrow", "Arrow", (".arrow", ".feather", ".ipc"), _sniff, _read, _write, binary=True)
