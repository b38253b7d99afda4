"""Read tables of any format, encode columns inside folds, write some columns back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamiz._utils.extras import load_names

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

# The command line looks at a file without loading numpy, with the first three.
_HOMES = {
    ".errors": ("TableArgumentError", "TableError", "TableMemoryError"),
    "formats": ("Format", "register_format", "write_columns"),
    "names": ("ReadOptions",),
    "read": ("read_table",),
    "columns": ("Alert",),
    "table": ("DataTable", "TextColumn", "as_table"),
    "encode": ("Feature", "TableEncoder", "list_features"),
}
__getattr__, __dir__ = load_names(__name__, _HOMES)
