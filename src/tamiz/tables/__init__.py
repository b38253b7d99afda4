"""Read tables of any format, encode columns inside folds, write some columns back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamiz.errors import TableArgumentError, TableError, TableMemoryError
    from tamiz.tables.columns import Alert
    from tamiz.tables.encode import Feature, TableEncoder, list_features
    from tamiz.tables.formats import Format, register_format, write_columns
    from tamiz.tables.names import ReadOptions
    from tamiz.tables.read import read_table
    from tamiz.tables.table import DataTable, TextColumn, as_table

__all__ = [
    "Alert", "DataTable", "Feature", "Format", "ReadOptions", "TableArgumentError", "TableEncoder", "TableError",
    "TableMemoryError", "TextColumn", "as_table", "list_features", "read_table", "register_format", "write_columns",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Names are loaded when they are first used: the command line looks at a file without loading numpy, with the first two.
    for module in ("formats", "names", "read", "encode") if name in __all__ else ():
        found = getattr(import_module(f"tamiz.tables.{module}"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'tamiz.tables' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
