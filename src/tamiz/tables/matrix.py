"""Build tables from files of one matrix and its target (NPZ, svmlight)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tamiz.errors import TableArgumentError, TableError
from tamiz.tables.names import ReadOptions, choose_columns
from tamiz.tables.table import DataTable, TextColumn

#: Name of the target of these files; there is no other.
TARGET = "y"


def check_matrix_options(format_name: str, options: ReadOptions) -> None:
    """Raise TableArgumentError for options that mean nothing for a file of one matrix."""
    if options.columns is not None:
        return
    if options.target not in (None, TARGET):
        raise TableArgumentError(f"The target of a {format_name} file is called {TARGET!r}; leave `target` out.")
    if options.categorical:
        raise TableArgumentError(f"A {format_name} file holds numbers only: `categorical` does not apply.")


def _texts(path: Path, target: np.ndarray) -> list[str]:
    try:
        return [str(value) for value in target.astype(str)]
    except UnicodeDecodeError:
        raise TableError(f"y in {path.name} holds bytes that are no text. Save it as numbers or as text.") from None


def matrix_table(
    path: Path,
    format_name: str,
    numbers: Any,
    target: np.ndarray | None,
    names: list[str],
    options: ReadOptions,
    centres: np.ndarray | None = None,
) -> DataTable:
    """Build a table from a matrix and its target, with the columns that the options name.

    Parameters
    ----------
    path : Path
        The file.
    format_name : str
        Name of its format.
    numbers : ndarray or csr matrix of float32
        All columns of the file.
    target : ndarray or None
        The target of each row.
    names : list of str
        Names of all columns.
    options : ReadOptions
        Columns to ignore, or the columns to keep.
    centres : ndarray of float64 or None, default=None
        What was subtracted from each column; None stands for zeros.
    """
    if target is not None and target.shape == (numbers.shape[0], 1):
        target = target[:, 0]
    if target is not None and target.shape != (numbers.shape[0],):
        raise TableError(f"y in {path.name} has shape {target.shape}, but X has {numbers.shape[0]:,} rows.")
    if numbers.shape[0] == 0:
        raise TableError(f"{path.name} has no rows.")
    column: np.ndarray | TextColumn | None = None
    if target is not None:
        if target.dtype.kind in "US":
            column = TextColumn.from_values(
                [value.encode("utf-8", "replace").decode() for value in _texts(path, target)]
            )
        elif target.dtype.kind in "biuf":
            column = target.astype(np.float64)
        else:
            raise TableError(f"y in {path.name} holds {target.dtype}, neither classes nor numbers.")
    wanted = choose_columns(names, ReadOptions(ignore=options.ignore, columns=options.columns)).wanted
    kept = np.flatnonzero(wanted)
    if kept.size < len(names):
        numbers = numbers[:, kept]
    table = DataTable(
        path, format_name, names, numbers.shape[0], numbers, kept, target_column=column, target_name=TARGET
    )
    if centres is not None:
        table.centres = centres[kept]
    return table
