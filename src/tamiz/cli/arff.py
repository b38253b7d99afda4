"""The header of ARFF files; the rows below it are comma-separated and read as such."""

from __future__ import annotations

import re
from pathlib import Path

from tamiz.cli.delimited import Layout, decode, refuse_binary
from tamiz.cli.errors import UserError, shorten
from tamiz.cli.table import name_columns

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+?))\s*(?=\s|\{)\s*(.+)$""", re.IGNORECASE
)
_NUMERIC = ("numeric", "real", "integer")


def parse_attribute(line: str) -> tuple[str, str]:
    """Name and kind ("numeric", "text" or "date") of an attribute.

    Examples
    --------
    >>> parse_attribute("@ATTRIBUTE 'cell size' REAL"), parse_attribute("@attribute kind {a, b}")
    (('cell size', 'numeric'), ('kind', 'text'))
    """
    match = _ATTRIBUTE.match(line.strip())
    if match is None:
        raise UserError(f"This line of the ARFF header cannot be understood: {shorten(line.strip())}.")
    name = next(part for part in match.groups()[:3] if part is not None)
    kind = match.group(4).strip().lower()
    if kind.startswith("date"):
        return re.sub(r"\\(.)", r"\1", name), "date"
    return re.sub(r"\\(.)", r"\1", name), "numeric" if kind.split()[0] in _NUMERIC else "text"


def sniff_arff(path: Path) -> tuple[Layout, list[str]]:
    """Layout of an ARFF file and the kind of each attribute ("numeric", "text", "date")."""
    names: list[str] = []
    kinds: list[str] = []
    header: list[str] = []
    with open(path, "rb") as file:
        refuse_binary(file.read(4096), path)
        file.seek(0)
        for number, raw in enumerate(file, start=1):
            line = decode(raw, path).strip()
            lowered = line.lower()
            if lowered.startswith("@attribute"):
                name, kind = parse_attribute(line)
                names.append(name)
                kinds.append(kind)
                header.append(line)
            elif lowered.startswith("@relation"):
                header.insert(0, line)
            elif lowered.startswith("@data"):
                if not names:
                    raise UserError(f"{path.name} has no @attribute line before @data: no column is named.")
                offset = file.tell()
                _refuse_sparse(file.readline(), path)
                return (
                    Layout(name_columns(names), ",", offset, number + 1, True, "'\"", "%", "\n".join(header)),
                    kinds,
                )
            elif line and not line.startswith("%"):
                raise UserError(f"{path.name}, line {number}: {shorten(line)} is no part of an ARFF header.")
    raise UserError(f"{path.name} has no @data line: it is empty, cut off, or no ARFF file.")


def _refuse_sparse(first_row: bytes, path: Path) -> None:
    if first_row.lstrip().startswith(b"{"):
        raise UserError(f"{path.name} is sparse ARFF, which is not read. Convert it to svmlight or plain ARFF.")
