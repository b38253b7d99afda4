"""ARFF files: a header of attributes, then comma-separated rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tamiz._arff import ArffError, read_arff_header
from tamiz.tables.errors import TableError
from tamiz.tables.formats import Format, OnRows, add_target
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions, choose_columns, clean_column_names
from tamiz.tables.table import DataTable


def _sniff(head: bytes) -> bool:
    lines = [line.strip().lower() for line in head.splitlines()]
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first.startswith((b"@relation", b"@attribute"))


def _read(path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows) -> DataTable:
    from tamiz.tables.delimited import DelimitedLayout, check_is_text, check_several_columns, raise_not_utf8
    from tamiz.tables.delimited_reader import read_delimited

    with open(path, "rb") as file:
        check_is_text(file.read(4096), path)
    try:
        header = read_arff_header(path)
    except ArffError as error:
        raise TableError(str(error)) from None
    except UnicodeDecodeError as error:
        raise_not_utf8(error, path)
    names = clean_column_names(header.names)
    layout = DelimitedLayout(names, ",", header.data_offset, True, "'\"", "%", "\n".join(header.lines))
    check_several_columns(path, names)
    choice = choose_columns(names, options)
    left_out: dict[int, str] = {}
    for index, kind in enumerate(header.kinds):
        if kind == "date" and choice.wanted[index]:
            choice.wanted[index] = False
            left_out[index] = "dates"
        choice.as_text[index] |= kind == "text"
    table = read_delimited(path, layout, choice, options, budget, on_rows, "arff")
    table.left_out.update(left_out)
    return table


def format_arff_cell(cell: str) -> str:
    """Return a value as ARFF spells it: in quotes unless it is plain, ``?`` if it is missing.

    Examples
    --------
    >>> format_arff_cell("1.5"), format_arff_cell("big one"), format_arff_cell("it's"), format_arff_cell("")
    ('1.5', "'big one'", "'it\\\\'s'", '?')
    """
    if not cell or cell == "?":
        return "?"
    if all(letter.isalnum() or letter in "._+-" for letter in cell):
        return cell
    return "'" + cell.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _write(table: DataTable, columns: Sequence[int], path: Path) -> None:
    from tamiz.tables.delimited_blocks import iterate_blocks

    chosen = add_target(table, columns)
    layout = table.source["layout"]
    lines = layout.header.split("\n")
    attributes = [line for line in lines if line.lower().startswith("@attribute")]
    relation = next((line for line in lines if line.lower().startswith("@relation")), "@relation reduced")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write("\n".join([relation, *(attributes[index] for index in chosen), "@data\n"]))
        for cells in iterate_blocks(table.path, layout):
            for row in zip(*cells.raw_columns(chosen), strict=True):
                file.write(",".join(format_arff_cell(cell.strip()) for cell in row) + "\n")


ARFF = Format("arff", "ARFF", (".arff",), _sniff, _read, _write)
