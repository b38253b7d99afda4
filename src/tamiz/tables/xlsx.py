"""Excel files (xlsx): the first sheet, through openpyxl."""

from __future__ import annotations

import csv
import datetime
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tamiz._utils.extras import require
from tamiz._utils.text import list_some
from tamiz.errors import TableError
from tamiz.tables.cells import is_number
from tamiz.tables.formats import Format, OnRows, add_target
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions
from tamiz.tables.spool import PlainFile, new_spool
from tamiz.tables.table import DataTable

_LARGEST_CELL = 32_767  # characters, a limit of Excel


def _sniff(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") and (b"[Content_Types].xml" in head or b"_rels/.rels" in head)


def _spell(value: Any) -> str:
    """Return the value of a cell as a CSV file has it."""
    if value is None:
        return ""
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of the first sheet as text."""
    openpyxl = require("openpyxl", "xlsx", "Reading an Excel file")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            for row in book.worksheets[0].iter_rows(values_only=True):
                yield [_spell(value) for value in row]
        finally:
            book.close()
    except (TableError, OSError, MemoryError):
        raise
    except (zipfile.BadZipFile, IndexError, zipfile.LargeZipFile) as error:
        raise TableError(f"{path.name} cannot be read as xlsx: {str(error) or 'it holds no sheet'}.") from None
    except Exception as error:  # openpyxl raises anything from KeyError to its own for a damaged file
        raise TableError(f"{path.name} cannot be read as xlsx: {type(error).__name__}: {str(error)[:100]}.") from None


def _as_csv(path: Path, skip_rows: int) -> PlainFile:
    """Write the first sheet as CSV into a temporary file; rows are filled up to the same width, empty ones skipped."""
    with new_spool(path.name) as (file, plain):
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", errors="backslashreplace", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        width = 0
        for number, row in enumerate(_rows(path)):
            if number < skip_rows:
                continue
            while row and not row[-1] and len(row) > width:
                row.pop()
            if not any(row):
                continue
            width = width or len(row)
            writer.writerow(row + [""] * (width - len(row)))
        text.flush()
        text.detach()
    if width == 0:
        raise TableError(f"{path.name} is empty: its first sheet holds no cells.")
    return plain


def _read(path: Path, options: ReadOptions, budget: MemoryBudget, on_rows: OnRows) -> DataTable:
    from tamiz.tables.csv import read_text_table

    plain = _as_csv(path, options.skip_rows)
    table = read_text_table(plain.path, options, budget, on_rows, "xlsx", delimiter=",", skip_rows=0)
    table.source["file"] = plain
    return table


def _write(table: DataTable, columns: Sequence[int], path: Path) -> None:
    openpyxl = require("openpyxl", "xlsx", "Writing an Excel file")
    from tamiz.tables.delimited_blocks import iterate_blocks

    chosen = add_target(table, columns)
    names = [table.names[index] for index in chosen]
    long = [name for name in names if len(name) > _LARGEST_CELL]
    if long:
        raise TableError(f"Excel cannot hold names as long as {list_some(long, limit=1)}.")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("reduced")
    sheet.append(names)
    for cells in iterate_blocks(table.path, table.source["layout"]):
        for row in zip(*cells.raw_columns(chosen), strict=True):
            sheet.append([float(cell) if is_number(cell) else cell or None for cell in row])
    book.save(path)


XLSX = Format("xlsx", "Excel (xlsx)", (".xlsx", ".xlsm"), _sniff, _read, _write, binary=True, takes_skip_rows=True)
