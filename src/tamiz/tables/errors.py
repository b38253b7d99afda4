"""Exceptions of the tables: what is wrong with a file or an argument, and what to do.

Messages put names of arguments in backticks (```target```); the command line shows them as options (``--target``).
"""

from __future__ import annotations

from tamiz.errors import TamizError


class TableError(TamizError, ValueError):
    """Raise if a table cannot be read, or cannot be used as it is."""


class TableArgumentError(TableError):
    """Raise if an argument does not fit the table: an unknown column, format or task."""


class TableMemoryError(TableError):
    """Raise, before the memory is taken, if a table needs more of it than there is."""
