"""Read a table of any format: leave out columns of no use, decide what the target is, report what was done."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tamiz._utils.text import WARNING, discard
from tamiz.errors import TableArgumentError
from tamiz.tables.columns import drop_unusable_columns, report_encoding
from tamiz.tables.formats import read_file
from tamiz.tables.memory import MemoryBudget
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import DataTable
from tamiz.tables.target import resolve_target


def _check_skip_rows(skip_rows: int) -> int:
    if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
        raise TableArgumentError(f"`skip_rows` must be a number of lines, at least 0; got {skip_rows!r}.")
    return skip_rows


def _check_decimal(decimal: str) -> str:
    if decimal not in (".", ","):
        raise TableArgumentError(f"`decimal` must be a point or a comma, got {decimal!r:.40}.")
    return decimal


def read_table(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    task: str | None = None,
    need_target: bool = False,
    ignore: Sequence[str] = (),
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
    """Read a table: CSV, TSV, Excel (xlsx), Parquet, Arrow, NPZ (arrays X, y, names), ARFF or svmlight.

    Files may be packed with gzip (``.csv.gz``), and text may be in any encoding. Pipes and ``-`` (standard input) are read
    to their end first; name their ``format``.

    Columns of dates, of free text and without any value are left out. Rows without a target are dropped. Missing numbers
    stay NaN and text stays text: :class:`TableEncoder` imputes and encodes inside folds.

    Parameters
    ----------
    path : path
        The file.
    target : str or None, default=None
        Column to predict: its name, or its number counted from 1 (-1 is the last). NPZ and svmlight files have their own.
    task : {"classification", "regression"} or None, default=None
        What the target is; None decides from its values.
    need_target : bool, default=False
        Raise if there is no target.
    ignore : sequence of str, default=()
        Columns to leave out: names, numbers, ranges ("3-7") or patterns ("id_*").
    categorical : sequence of str, default=()
        Columns of numbers that are names of categories.
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
        Decimal mark of a text file.
    na_values : sequence of str or None, default=None
        Cells of a text file that mean a missing value, besides empty ones; None takes the usual words (NA, null, ...).
    keep_na : bool, default=False
        Take only empty cells as missing: "none" or "NA" is a value. The same as ``na_values=()``.
    copies : float, default=1.0
        How many copies of the table the work that follows will hold; a table that does not fit raises TableMemoryError.
    report : callable, default=discard
        Called with a message for each decision; ``print`` shows them.
    on_rows : callable, default=no progress
        Called with the number of rows that are done, and of all rows.

    Returns
    -------
    DataTable
        ``y`` and ``task`` are those of the target.

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
    Left out: 'when' (dates).
    Task: classification of 'ill' (text; 2 classes, no: 2, yes: 1). Overrule with `task`.
    Encoded: 'colour': text, one-hot inside each fold.
    Imputed: 1 missing numbers in 1 column(s), by the median inside each fold.
    >>> table.shape, table.y.tolist()
    ((3, 2), ['no', 'yes', 'no'])
    >>> folder.cleanup()
    """
    options = ReadOptions(
        target=target,
        need_target=need_target,
        ignore=ignore,
        categorical=categorical,
        columns=columns,
        format=format,
        delimiter=delimiter,
        header=header,
        encoding=encoding,
        skip_rows=_check_skip_rows(skip_rows),
        decimal=_check_decimal(decimal),
        na_values=() if keep_na else na_values,
        copies=copies,
    )
    table = read_file(Path(path), options, MemoryBudget(report), on_rows)
    if columns is not None:
        return table
    layout = table.source.get("layout")
    if layout is not None and not layout.has_header and header is None:
        report(
            f"{WARNING}the first row holds only numbers, so it is data; columns are called column_1, column_2, ... "
            "If these numbers are names, say so with `header`."
        )
    drop_unusable_columns(table, max_categories, report)
    if table.target_column is not None or need_target:
        found = resolve_target(table, task, report)
        if found.rows.size < table.n_rows:
            table = table.take(found.rows)
            # Columns whose only values stood in the rows that went are empty now.
            drop_unusable_columns(table, max_categories)
        table.target = found
    report_encoding(table, report)
    return table
