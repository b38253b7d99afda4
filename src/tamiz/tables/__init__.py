"""Read tables of any format, encode columns inside folds, write some columns back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamiz.errors import TableArgumentError, TableError, TableMemoryError
    from tamiz.tables.columns import Alert
    from tamiz.tables.encode import Feature, TableEncoder, list_features
    from tamiz.tables.formats import Format, read_file, register_format, scan_table, write_columns
    from tamiz.tables.frames import as_table
    from tamiz.tables.memory import MemoryBudget
    from tamiz.tables.names import ReadOptions, choose_columns
    from tamiz.tables.read import read_table
    from tamiz.tables.table import DataTable, TextColumn

__all__ = [
    "Alert",
    "DataTable",
    "Feature",
    "Format",
    "MemoryBudget",
    "ReadOptions",
    "TableArgumentError",
    "TableEncoder",
    "TableError",
    "TableMemoryError",
    "TextColumn",
    "as_table",
    "choose_columns",
    "list_features",
    "read_file",
    "read_table",
    "register_format",
    "scan_table",
    "write_columns",
]

_HOMES = {
    "Alert": "tamiz.tables.columns",
    "DataTable": "tamiz.tables.table",
    "Feature": "tamiz.tables.encode",
    "Format": "tamiz.tables.formats",
    "MemoryBudget": "tamiz.tables.memory",
    "ReadOptions": "tamiz.tables.names",
    "TableArgumentError": "tamiz.errors",
    "TableEncoder": "tamiz.tables.encode",
    "TableError": "tamiz.errors",
    "TableMemoryError": "tamiz.errors",
    "TextColumn": "tamiz.tables.table",
    "as_table": "tamiz.tables.frames",
    "choose_columns": "tamiz.tables.names",
    "list_features": "tamiz.tables.encode",
    "read_file": "tamiz.tables.formats",
    "read_table": "tamiz.tables.read",
    "register_format": "tamiz.tables.formats",
    "scan_table": "tamiz.tables.formats",
    "write_columns": "tamiz.tables.formats",
}


def __getattr__(name: str) -> Any:
    # Names are loaded when they are first used: the command line lists the formats without loading numpy.
    if name not in _HOMES:
        raise AttributeError(f"module 'tamiz.tables' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
