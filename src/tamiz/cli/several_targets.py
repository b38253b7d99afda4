"""Read a table with several numeric targets: ``tamiz select --target height,mass``, or the option repeated."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamiz.cli.errors import EXIT_USAGE, CommandError

if TYPE_CHECKING:
    import numpy as np

    from tamiz.tables.table import DataTable

#: Arguments of ``read_table`` that say how the cells of a file are spelt.
_OF_FILE = ("format", "delimiter", "header", "encoding", "skip_rows", "decimal", "na_values")


def read_with_targets(
    file: Path, target: Sequence[str] | None, ignore: Sequence[str] = (), task: str | None = None, **reading: Any
) -> tuple[DataTable, list[str]]:
    """Read a table whose target is one column, or several columns of numbers.

    Parameters
    ----------
    file : Path
        The table.
    target : sequence of str or None
        As they were typed. One text may hold several columns with commas between them, unless there is a column with exactly
        that name; several texts are a column each.
    ignore : sequence of str, default=()
        Columns to leave out.
    task : str or None, default=None
        What the target is; None decides from its values. Several targets are always numbers.
    **reading
        Further arguments of :func:`tamiz.tables.read_table`.

    Returns
    -------
    DataTable
        ``target.y`` has a column for each of several targets.
    list of str
        Names of the targets.

    Raises
    ------
    CommandError
        If a target is named twice, or if several are to be classes.
    TableError
        If one of several targets is not a column of numbers.
    """
    from tamiz._utils.text import quote
    from tamiz.errors import TableArgumentError, TableError
    from tamiz.tables.read import read_table

    def read(name: str | None, others: Sequence[str], its_task: str | None) -> DataTable:
        return read_table(file, target=name, task=its_task, need_target=True, ignore=[*ignore, *others], **reading)

    parts = list(target or ())
    if len(parts) < 2:
        try:
            table = read(parts[0] if parts else None, (), task)
        except TableArgumentError:
            parts = [part.strip() for text in parts for part in text.split(",") if part.strip()]
            if len(parts) < 2:
                raise
        else:
            assert table.target is not None
            return table, [table.target.name]
    for name in parts:
        if parts.count(name) > 1:
            raise CommandError(f"--target names {name!r} twice; name every target once.", EXIT_USAGE)
    if task == "classification":
        raise CommandError("Several targets are numbers: leave --task out, or name one target.", EXIT_USAGE)
    try:
        table = read(parts[0], parts[1:], "regression")
    except TableArgumentError as error:  # further targets are no features, hence the word
        message = str(error)
        if "cannot be ignored" in message and not ignore:  # once by name, once by number
            raise CommandError(f"--target names {parts[0]!r} twice; name every target once.", EXIT_USAGE) from None
        if "holds text" in message:
            raise TableError(f"The target {quote(parts[0])} holds text; several targets must be numbers.") from None
        for name in parts[1:]:
            message = message.replace(f"column to ignore {name!r}", f"target {name!r}")
        raise TableArgumentError(message) from None
    return _add_targets(table, parts[1:], file, reading)


def _add_targets(
    table: DataTable, others: Sequence[str], file: Path, reading: dict[str, Any]
) -> tuple[DataTable, list[str]]:
    """Read further targets, for the rows of a table that have the first one."""
    import numpy as np

    from tamiz._utils.text import discard
    from tamiz.tables.names import find_column
    from tamiz.tables.read import read_table

    assert table.target is not None
    names = [table.names[find_column(name, table.names, "target")] for name in others]
    for name in names:
        if [str(table.target_name), *names].count(name) > 1:  # once by name, once by number
            raise CommandError(f"--target names {name!r} twice; name every target once.", EXIT_USAGE)
    of_file = {key: value for key, value in reading.items() if key in _OF_FILE}
    report = reading.get("report", discard)
    read = read_table(file, columns=names, categorical=names, **of_file)
    columns = [_numbers(read, name, table.target.rows, reading.get("decimal", ".")) for name in names]
    y = np.column_stack([table.target.y, *columns])
    table.target = dataclasses.replace(table.target, name=", ".join([table.target.name, *names]), y=y)
    report(f"Targets: {len(names) + 1} columns of numbers, predicted together.")
    return table, [str(table.target_name), *names]


def _numbers(read: DataTable, name: str, rows: np.ndarray, decimal: str) -> np.ndarray:
    """Return a column as numbers; raise if it holds anything else."""
    import numpy as np

    from tamiz._utils.text import quote
    from tamiz.errors import TableError

    try:
        found = read.column_values(name)[rows]
        cells = [cell.replace(decimal, ".") if isinstance(cell, str) else cell for cell in found.tolist()]
        values = np.array([np.nan if cell is None else float(cell) for cell in cells])
    except ValueError:
        raise TableError(f"The target {quote(name)} holds text; several targets must be numbers.") from None
    missing = int((~np.isfinite(values)).sum())
    if missing:
        raise TableError(
            f"The target {quote(name)} has no finite value in {missing:,} of {values.size:,} rows. "
            "Fill them in, or leave these rows out."
        )
    if np.ptp(values) == 0:
        raise TableError(f"The target {quote(name)} is constant ({values[0]:g}): there is nothing to predict.")
    return values
