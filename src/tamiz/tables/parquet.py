"""Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamiz.tables.formats import Format, OnRows, add_target
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import DataTable

if TYPE_CHECKING:
    from tamiz.tables.arrow_reader import ArrowSource


def _sniff(head: bytes) -> bool:
    return head.startswith(b"PAR1")


def _open(path: Path) -> ArrowSource:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tamiz.tables.arrow_reader import ArrowSource, translate_errors

    with translate_errors(path, "parquet"):
        file = pq.ParquetFile(pa.memory_map(os.fsencode(path)))
    schema = file.schema_arrow

    def iterate(columns: list[int], n_rows: int) -> Iterator[Any]:
        names = [schema.names[index] for index in columns]
        return file.iter_batches(batch_size=n_rows, columns=names, use_threads=False)

    return ArrowSource(path, "parquet", schema, file.metadata.num_rows, iterate)


def _read(path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows) -> DataTable:
    from tamiz.tables.arrow_reader import read_arrow

    return read_arrow(_open(path), options, budget, on_rows)


def _write(table: DataTable, columns: Sequence[int], path: Path) -> None:
    import pyarrow.parquet as pq

    schema, batches = _open(table.path).batches_to_write(add_target(table, columns))
    with open(path, "wb") as file, pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


PARQUET = Format("parquet", "Parquet", (".parquet", ".pq"), _sniff, _read, _write, binary=True)
