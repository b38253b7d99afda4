"""Read a table of any format: leave out columns of no use, decide what the target is, report what was done."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tamiz._utils.text import WARNING, discard, list_some, quote
from tamiz.errors import TableArgumentError
from tamiz.tables.columns import Alert, drop_unusable_columns, find_codes, is_running_number, report_encoding
from tamiz.tables.formats import read_file
from tamiz.tables.frames import as_table
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import DataTable
from tamiz.tables.target import resolve_target


def read_table(
    source: Any,
    *,
    target: str | None = None,
    task: str | None = None,
    need_target: bool = False,
    ignore: Sequence[str] = (),
    roles: Sequence[tuple[str, str]] = (),
    categorical: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    max_categories: int = 50,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    skip_rows: int = 0,
    decimal: str = ".",
    na_values: Sequence[str] | None = None,
    keep_na: bool = False,
    copies: float = 1.0,
    report: Callable[[str], None] = discard,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> DataTable:
    """Read a table: CSV, TSV, Excel, Parquet, Arrow, NDJSON, NPZ (arrays X, y, names), ARFF, svmlight or a data frame.

    Files may be packed with gzip or zstandard (``.csv.gz``), and text may be in any encoding. Pipes and ``-`` (standard
    input) are read to their end first; name their ``format``.

    Text that can only mean numbers becomes numbers: decimal commas, thousands, currencies, percent signs and units; dates
    become days since the first one, true and false 1 and 0. Constant columns, identifiers and text of many values are left
    out. Each of these has an entry in ``alerts``. Rows without a target are dropped. Missing numbers stay NaN and text stays
    text: :class:`TableEncoder` imputes and encodes inside folds.

    Parameters
    ----------
    source : path or data frame
        The file, or a data frame of polars (also lazy), pandas or pyarrow.
    target : str or None, default=None
        Column to predict: its name, or its number counted from 1 (-1 is the last). NPZ and svmlight files have their own.
    task : {"classification", "regression"} or None, default=None
        What the target is; None decides from its values.
    need_target : bool, default=False
        Raise if there is no target.
    ignore : sequence of str, default=()
        Columns to leave out: names, numbers, ranges ("3-7") or patterns ("id_*").
    roles : sequence of (str, str), default=()
        Columns that are no features, after what they are: "target" (a further one), "groups", "time" or "weights".
    categorical : sequence of str, default=()
        Columns of numbers that are names of categories; their values are taken as they are spelt.
    columns : sequence of str or None, default=None
        The only columns to read, each of which must be there; none of them is left out, and no target is read.
    max_categories : int, default=50
        Columns of text with more different values are left out.
    format : str or None, default=None
        Name of the format; None finds it from the suffix.
    delimiter : str or None, default=None
        What separates the cells of a CSV file; None finds it.
    header : bool or None, default=None
        Whether the first row of a CSV file holds names; None finds it.
    encoding : str or None, default=None
        Encoding of a text file, such as "latin1"; None takes UTF-8, or what a mark at its beginning says.
    skip_rows : int, default=0
        Lines above the table to skip (CSV, TSV and xlsx).
    decimal : {".", ","}, default="."
        Decimal mark of a text file; columns that only a decimal comma explains are found without it.
    na_values : sequence of str or None, default=None
        Cells of a text file that mean a missing value, besides empty ones; None takes the usual words (NA, null, ...).
    keep_na : bool, default=False
        Take only empty cells as missing: "none" or "NA" is a value. The same as ``na_values=()``.
    copies : float, default=1.0
        How many copies of the table the work that follows will hold; a table that does not fit raises TableMemoryError.
    report : callable, default=discard
        Called with a message for each decision; ``print`` shows them.
    on_rows : callable, default=no progress
        Called with the number of rows, twice, when they are read.

    Returns
    -------
    DataTable
        ``y`` and ``task`` are those of the target, ``alerts`` what a user should know about the columns.

    Raises
    ------
    TableError
        If the file cannot be read or holds nothing to use; a TableArgumentError if an argument does not fit it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "patients.csv"
    >>> _ = path.write_text("age,colour,when,ill\\n50,red,2024-01-01,no\\n,blue,2024-01-02,yes\\n70,red,2024-01-03,no\\n")
    >>> table = read_table(path, target="ill", report=print)
    Column 'when' holds dates: read as days since the first, 2024-01-01.
    Task: classification of 'ill' (text; 2 classes, no: 2, yes: 1). Overrule with `task`.
    Encoded: 'colour': text, one-hot inside each fold.
    Imputed: 1 missing numbers in 1 column(s), by the median inside each fold.
    >>> table.shape, table.y.tolist()
    ((3, 3), ['no', 'yes', 'no'])
    >>> folder.cleanup()
    """
    if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
        raise TableArgumentError(f"`skip_rows` must be a number of lines, at least 0; got {skip_rows!r}.")
    if decimal not in (".", ","):
        raise TableArgumentError(f"`decimal` must be a point or a comma, got {decimal!r:.40}.")
    if delimiter is not None and len(delimiter) != 1:
        raise TableArgumentError(f"`delimiter` must be one character, got {delimiter!r:.40}.")
    options = ReadOptions(
        target=target,
        need_target=need_target,
        ignore=ignore,
        roles=roles,
        categorical=categorical,
        columns=columns,
        format=format,
        delimiter=delimiter,
        header=header,
        encoding=encoding,
        skip_rows=skip_rows,
        decimal=decimal,
        na_values=() if keep_na else na_values,
        copies=copies,
    )
    if isinstance(source, (str, os.PathLike)):
        table = read_file(Path(source), options, MemoryBudget(report))
    else:
        table = as_table(source, options=options, budget=MemoryBudget(report))
    on_rows(table.n_rows, table.n_rows)
    if columns is not None:
        return table
    layout = table.source.get("layout")
    if layout is not None and not layout.has_header and header is None:
        report(
            f"{WARNING}the first row holds only numbers, so it is data; columns are called column_1, column_2, ... "
            "If these numbers are names, say so with `header`."
        )
    drop_unusable_columns(table, max_categories)
    messages: list[str] = []
    if table.target_column is not None or need_target:
        found = resolve_target(table, task, messages.append)
        if found.rows.size < table.n_rows:
            table = table.take(found.rows)
            # Columns whose only values stood in the rows that went are empty now.
            drop_unusable_columns(table, max_categories)
        table.target = found
    _add_alerts(table)
    for alert in table.alerts:
        important = alert.kind in ("codes", "running target") or ("`" in alert.message and alert.kind == "categories")
        report((WARNING if important else "") + alert.message)
    for message in messages:
        report(message)
    report_encoding(table, report)
    return table


def _add_alerts(table: DataTable) -> None:
    """Add the alerts about codes that were read as numbers and about a target that is a running number."""
    codes = find_codes(table)
    if codes:
        table.alerts.append(
            Alert(
                "codes",
                tuple(codes),
                f"{list_some(codes, limit=4)}: few whole numbers, far apart. If they are codes rather than amounts, set "
                f"`categorical` {quote(codes[0])}.",
            )
        )
    if table.target is not None and table.task == "regression" and is_running_number(table.target.y):
        name = table.target.name
        message = (
            f"The target {quote(name)} is a running number: it counts rows and measures nothing. Choose another target."
        )
        table.alerts.append(Alert("running target", (name,), message))
