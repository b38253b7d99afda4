"""CSV and TSV files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from tamiz.tables.formats import Format, OnRows, add_target
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions, choose_columns
from tamiz.tables.table import DataTable


def _first_line(head: bytes) -> bytes:
    """Return the first line of a text file; empty if it is no text, or of another format of text."""
    text = head.lstrip(b"\xef\xbb\xbf\r\n ")
    if b"\0" in head or text.startswith((b"@", b"%")):
        return b""
    return text.partition(b"\n")[0]


def _sniff_csv(head: bytes) -> bool:
    return any(mark in _first_line(head) for mark in (b",", b";", b"|"))


def _sniff_tsv(head: bytes) -> bool:
    return b"\t" in _first_line(head) and not _sniff_csv(head)


def read_text_table(
    path: Path,
    options: ReadOptions,
    budget: MemoryBudget,
    on_rows: OnRows,
    format_name: str,
    *,
    delimiter: str | None,
    skip_rows: int,
) -> DataTable:
    """Read a file of delimited text.

    Parameters
    ----------
    path : Path
        The file.
    options, budget, on_rows : object
        As a :class:`~tamiz.tables.Format` reader takes them.
    format_name : str
        Name of the format, for the record.
    delimiter : str or None
        What separates the cells; None finds it.
    skip_rows : int
        Lines above the table to skip.
    """
    from tamiz.tables.delimited import check_several_columns, detect_layout
    from tamiz.tables.delimited_reader import read_delimited

    layout = detect_layout(path, delimiter, options.header, skip_rows)
    check_several_columns(path, layout.names)
    choice = choose_columns(layout.names, options)
    left_out: dict[int, str] = {}
    if layout.names[0] == "column_1" and layout.has_header and choice.wanted[0] and options.columns is None:
        # R and pandas write the names of the rows there; as a feature they would only leak the order of the file.
        choice.wanted[0] = False
        left_out[0] = "row names (a first column without a name)"
    table = read_delimited(path, layout, choice, options, budget, on_rows, format_name)
    table.left_out.update(left_out)
    return table


def _read_csv(path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows) -> DataTable:
    found, skipped = options.delimiter, options.skip_rows
    return read_text_table(path, options, budget, on_rows, "csv", delimiter=found, skip_rows=skipped)


def _read_tsv(path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows) -> DataTable:
    tab = "\t" if options.delimiter is None else options.delimiter
    return read_text_table(path, options, budget, on_rows, "tsv", delimiter=tab, skip_rows=options.skip_rows)


def _write(table: DataTable, columns: Sequence[int], path: Path) -> None:
    from tamiz.tables.delimited_blocks import iterate_blocks

    chosen = add_target(table, columns)
    layout = table.source["layout"]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=layout.delimiter, lineterminator="\n")
        writer.writerow([table.names[index] for index in chosen])
        for cells in iterate_blocks(table.path, layout):
            writer.writerows(zip(*cells.raw_columns(chosen), strict=True))


CSV = Format("csv", "CSV", (".csv", ".txt"), _sniff_csv, _read_csv, _write, takes_skip_rows=True)
TSV = Format("tsv", "TSV", (".tsv", ".tab"), _sniff_tsv, _read_tsv, _write, takes_skip_rows=True)
