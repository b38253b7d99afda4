"""The reduced table: some columns of a file, in the format of that file, with the values as they stand there."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tamiz.cli.table import Table

SUFFIXES = {
    "csv": ".csv",
    "tsv": ".tsv",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "npz": ".npz",
    "arff": ".arff",
    "svmlight": ".svm",
}


def write_reduced(table: Table, columns: Sequence[int], path: Path) -> None:
    """Write some columns of the file a table came from, and its target if it has one.

    The source is read again, a piece at a time: numbers keep all their digits, text its spelling.

    Parameters
    ----------
    table : Table
        The table that was read.
    columns : sequence of int
        Positions in the file.
    path : Path
        Where to write.
    """
    chosen = sorted(set(columns))
    if table.format in ("csv", "tsv", "arff"):
        _write_delimited(table, _with_target(table, chosen), path)
    elif table.format in ("parquet", "arrow"):
        _write_arrow(table, _with_target(table, chosen), path)
    elif table.format == "npz":
        _write_npz(table, chosen, path)
    else:
        _write_svmlight(table, chosen, path)


def _with_target(table: Table, chosen: list[int]) -> list[int]:
    if table.target is None or table.target_name is None:
        return chosen
    return sorted({*chosen, table.names.index(table.target_name)})


def arff_cell(cell: str) -> str:
    """A value as ARFF wants it: quoted where it holds anything but letters and digits; ``?`` where it is missing.

    Examples
    --------
    >>> arff_cell("1.5"), arff_cell("big one"), arff_cell("it's"), arff_cell("")
    ('1.5', "'big one'", "'it\\\\'s'", '?')
    """
    if not cell or cell == "?":
        return "?"
    if all(letter.isalnum() or letter in "._+-" for letter in cell):
        return cell
    return "'" + cell.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _write_delimited(table: Table, chosen: list[int], path: Path) -> None:
    from tamiz.cli.delimited import Layout, pieces

    layout: Layout = table.options["layout"]
    with open(path, "w", encoding="utf-8", newline="") as file:
        if table.format == "arff":
            lines = layout.header.split("\n")
            attributes = [line for line in lines if line.lower().startswith("@attribute")]
            relation = next((line for line in lines if line.lower().startswith("@relation")), "@relation reduced")
            file.write("\n".join([relation, *(attributes[index] for index in chosen), "@data\n"]))
            for cells in pieces(table.path, layout):
                for row in zip(*cells.raw_columns(chosen), strict=True):
                    file.write(",".join(arff_cell(cell.strip()) for cell in row) + "\n")
            return
        writer = csv.writer(file, delimiter=layout.delimiter, lineterminator="\n")
        writer.writerow([table.names[index] for index in chosen])
        for cells in pieces(table.path, layout):
            writer.writerows(zip(*cells.raw_columns(chosen), strict=True))


def _write_arrow(table: Table, chosen: list[int], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tamiz.cli.read_arrow import ArrowFile

    source = ArrowFile(table.path, table.format)
    schema = pa.schema([source.schema.field(index) for index in chosen])
    rows_at_once = max(1, 1_000_000 // len(chosen))
    if table.format == "parquet":
        with pq.ParquetWriter(path, schema) as writer:
            for batch in source.batches(chosen, rows_at_once):
                writer.write_batch(batch)
        return
    with pa.ipc.new_file(str(path), schema) as writer:
        for batch in source.batches(chosen, rows_at_once):
            writer.write_batch(batch)


def _write_npz(table: Table, chosen: list[int], path: Path) -> None:
    with np.load(table.path, allow_pickle=False) as source:
        arrays = {"X": source["X"][:, chosen], "names": np.array([table.names[index] for index in chosen])}
        if "y" in source:
            arrays["y"] = source["y"]
    np.savez(path, **arrays)


def _write_svmlight(table: Table, chosen: list[int], path: Path) -> None:
    """Entries keep their numbers, so that the model that was made from the whole file reads the reduced one too."""
    wanted = {table.names[index] for index in chosen}
    with open(table.path, encoding="utf-8") as source, open(path, "w", encoding="utf-8", newline="\n") as file:
        for line in source:
            words = line.partition("#")[0].split()
            if words:
                kept = [word for word in words[1:] if word.partition(":")[0] in wanted]
                file.write(" ".join([words[0], *kept]) + "\n")
