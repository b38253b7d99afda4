"""Read the header of ARFF files; the rows below it are comma-separated.

The only ARFF reader there is: ``datasets`` and ``tables``, which may not import each other's insides, both use it.
``scipy.io.arff`` is not enough: it reads no attributes of type string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tamiz.errors import TamizError

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
