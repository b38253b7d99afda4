"""ARFF files: a header of attributes, then comma-separated rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tamiz.errors import TableError, TamizError
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


_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+?))\s*(?=\s|\{)\s*(.+)$""", re.IGNORECASE
)
_NUMERIC = ("numeric", "real", "integer")


class ArffError(TamizError, ValueError):
    """Raise if the header of an ARFF file cannot be understood."""


@dataclass
class ArffHeader:
    """Hold what stands above the rows.

    Parameters
    ----------
    names : list of str
        Names of the attributes.
    kinds : list of str
        "numeric", "text" or "date" for each.
    lines : list of str
        The @relation line, if there is one, and the @attribute lines.
    data_offset : int, default=0
        Byte at which the rows begin.
    """

    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    data_offset: int = 0


def parse_attribute(line: str) -> tuple[str, str]:
    """Return name and kind ("numeric", "text" or "date") of an attribute.

    Examples
    --------
    >>> parse_attribute("@ATTRIBUTE 'cell size' REAL"), parse_attribute("@attribute kind {a, b}")
    (('cell size', 'numeric'), ('kind', 'text'))
    """
    match = _ATTRIBUTE.match(line.strip())
    if match is None:
        raise ArffError(f"This line of the ARFF header cannot be understood: {line.strip()!r:.60}.")
    name = re.sub(r"\\(.)", r"\1", next(part for part in match.groups()[:3] if part is not None))
    kind = match.group(4).strip().lower()
    if kind.startswith("date"):
        return name, "date"
    return name, "numeric" if kind.split()[0] in _NUMERIC else "text"


def read_arff_header(path: Path) -> ArffHeader:
    """Read the header of a dense ARFF file.

    Parameters
    ----------
    path : Path
        The file, UTF-8.

    Raises
    ------
    ArffError
        If the header cannot be understood, or the rows are sparse.
    UnicodeDecodeError
        If the header is not UTF-8.
    """
    header = ArffHeader()
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            line = raw.decode("utf-8-sig").strip()
            lowered = line.lower()
            if lowered.startswith("@attribute"):
                name, kind = parse_attribute(line)
                header.names.append(name)
                header.kinds.append(kind)
                header.lines.append(line)
            elif lowered.startswith("@relation"):
                header.lines.insert(0, line)
            elif lowered.startswith("@data"):
                if not header.names:
                    raise ArffError(f"{path.name} has no @attribute line before @data: no column is named.")
                header.data_offset = file.tell()
                rows = (row.strip() for row in file)
                first = next((row for row in rows if row and not row.startswith(b"%")), b"")
                if first.startswith(b"{"):
                    raise ArffError(
                        f"{path.name} is sparse ARFF, which is not read. Convert it to svmlight or plain ARFF."
                    )
                return header
            elif line and not line.startswith("%"):
                raise ArffError(f"{path.name}, line {number}: {line!r:.60} is no part of an ARFF header.")
    raise ArffError(f"{path.name} has no @data line: it is empty, cut off, or no ARFF file.")
