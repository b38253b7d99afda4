"""Read a table of any format: leave out columns of no use, decide what the target is, report what was done."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.text import WARNING, counted, discard, list_some, quote
from tamiz.errors import TableArgumentError, TableError
from tamiz.rows.targets import MOST_CLASSES, TASKS, decide_task
from tamiz.tables.columns import (
    Alert,
    describe_spellings,
    describe_units,
    drop_unusable_columns,
    find_codes,
    is_number,
    is_running_number,
    parse_dates,
    spelt_numbers,
)
from tamiz.tables.formats import read_file
from tamiz.tables.names import ReadOptions
from tamiz.tables.table import DataTable, TextColumn, as_table


def read_table(
    source: Any,
    *,
    target: str | None = None,
    task: str | None = None,
    max_categories: int = 50,
    report: Callable[[str], None] = discard,
    **options: Any,
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
    max_categories : int, default=50
        Columns of text with more different values are left out.
    report : callable, default=discard
        Called with a message for each decision; ``print`` shows them.
    **options
        Further fields of :class:`ReadOptions`: ``ignore``, ``categorical``, ``delimiter``, ``encoding`` and so on.

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
    Imputed: 1 missing number in 1 column, by the median inside each fold.
    >>> table.shape, table.y.tolist()
    ((3, 3), ['no', 'yes', 'no'])
    >>> folder.cleanup()
    """
    how = ReadOptions(target=target, **options)
    is_path = isinstance(source, (str, os.PathLike))
    table = read_file(Path(source), how) if is_path else as_table(source, options=how)
    if how.columns is not None:
        return table
    layout = table.source.get("layout")
    if layout is not None and not layout.has_header and how.header is None:
        report(
            f"{WARNING}the first row holds only numbers, so it is data; columns are called column_1, column_2, ... "
            "If these numbers are names, say so with `header`."
        )
    drop_unusable_columns(table, max_categories)
    messages: list[str] = []
    if table.target_column is not None or how.need_target:
        task, y, rows = resolve_target(table, task, messages.append)
        if rows.size < table.n_rows:
            table = table.take(rows)
            # Columns whose only values stood in the rows that went are empty now.
            drop_unusable_columns(table, max_categories)
        table.task, table.y, table.rows = task, y, rows
    gaps = np.zeros(0, dtype=int) if sp.issparse(table.numbers) else np.isnan(table.numbers).sum(axis=0)
    for position in np.flatnonzero(gaps > 0.5 * table.n_rows)[:5]:
        name, share = table.names[table.number_columns[position]], gaps[position] / table.n_rows
        message = f"Column {quote(name)} has no value in {share:.0%} of the rows: consider `missing` indicator."
        table.alerts.append(Alert("gaps", (name,), message))
    if codes := find_codes(table):
        advice = f"set `categorical` {quote(codes[0])}" if len(codes) == 1 else "name them in `categorical`"
        message = f"{list_some(codes, limit=4)}: few whole numbers, far apart. If they are codes rather than amounts, {advice}."
        table.alerts.append(Alert("codes", tuple(codes), message))
    if table.task == "regression" and is_running_number(table.y):
        name = str(table.target_name)
        message = f"The target {quote(name)} is evenly spaced, as running numbers are: choose another one."
        table.alerts.append(Alert("running target", (name,), message))
    for alert in table.alerts:
        important = alert.kind in ("codes", "running target") or ("`" in alert.message and alert.kind == "categories")
        report((WARNING if important else "") + alert.message)
    if table.texts:
        names = [table.names[index] for index in table.texts]
        messages.append(f"Encoded: {list_some(names, limit=4)}: text, one-hot inside each fold.")
    if gaps.any():
        n_numbers, n_columns = counted(int(gaps.sum()), "missing number"), counted(int((gaps > 0).sum()), "column")
        messages.append(f"Imputed: {n_numbers} in {n_columns}, by the median inside each fold.")
    for message in messages:
        report(message)
    return table


def resolve_target(
    table: DataTable, task: str | None = None, report: Callable[[str], None] = discard
) -> tuple[str, np.ndarray, np.ndarray]:
    """Decide between classification and regression, and report the decision.

    Text means classes; :func:`tamiz.rows.targets.decide_task` decides what numbers mean.

    Parameters
    ----------
    table : DataTable
        With its target column.
    task : {"classification", "regression"} or None, default=None
        Overrules the decision.
    report : callable, default=discard
        Called with each message.

    Returns
    -------
    task : str
    y : ndarray
        Class labels as text, or float64 numbers.
    rows : ndarray of int
        Rows that have a target.
    """
    if task not in (None, *TASKS[1:]):
        raise TableArgumentError(f"Unknown task {task!r}. There are: {', '.join(TASKS[1:])}.")
    target, name = table.target_column, table.target_name or "y"
    if target is None:
        raise TableError(f"{table.path.name} holds no target. An NPZ file must hold arrays X and y.")
    numbers = target if isinstance(target, np.ndarray) else _read_numbers(table, target, name, task)
    if numbers is not None and np.isinf(numbers).any():
        raise TableError(f"The target {quote(name)} holds an infinity. Fix it or drop the row.")
    rows = np.flatnonzero(target.codes >= 0 if isinstance(target, TextColumn) else ~np.isnan(target))
    if rows.size == 0:
        raise TableError(f"The target {quote(name)} has no values at all.")
    if lacking := table.n_rows - rows.size:
        report(f"Left out: {counted(lacking, 'row')} without a value of the target {quote(name)}.")
        if words := table.source.get("missing_words"):
            counts = ", ".join(f"{quote(word)} in {counted(count, 'row')}" for word, count in sorted(words.items()))
            report(
                f"{WARNING}the target {quote(name)} holds {counts}, taken as missing. "
                "If that is the name of a class, list what is missing, or nothing, with `na_values`."
            )
    if isinstance(target, TextColumn) and numbers is None:
        merged = target.merge_spellings()
        if len(merged.categories) < len(target.categories):
            table.alerts.append(describe_spellings(name, target, merged, "give the classes other names"))
        y, found, reason = np.array(merged.categories, dtype=str)[merged.codes[rows]], "classification", "text"
        if task == "regression":
            raise TableArgumentError(f"The target {quote(name)} holds text, which no regression can predict.")
    else:
        assert numbers is not None
        y = numbers[rows]
        found, reason = decide_task(y), f"{np.unique(y).size:,} different numbers"
        if (task or found) == "classification":
            y = np.array([str(int(value)) if value.is_integer() else repr(value) for value in y.tolist()])
    reason = reason if task is None else "asked for"
    if (task or found) == "classification":
        sentence = _check_classes(name, y, reason)
    elif np.ptp(y) == 0:
        raise TableError(f"The target {quote(name)} is constant ({y[0]:g}): there is nothing to predict.")
    else:
        sentence = f"Task: regression on {quote(name)} ({reason})."
    report(sentence + ("" if task else " Overrule with `task`."))
    return task or found, y, rows


def _read_numbers(table: DataTable, target: TextColumn, name: str, task: str | None) -> np.ndarray | None:
    """Read a target of text as numbers; None if it holds classes."""
    texts = [value for value in target.categories if not is_number(value)]
    numbers: Sequence[float] = []
    if not texts:
        numbers = [float(value) for value in target.categories]
    elif task != "classification" and (spelt := spelt_numbers(target.categories, bool(table.source.get("comma")))):
        numbers = spelt[0]
        if spelt[1] or not table.source.get("comma"):  # that a file has decimal commas is no news
            table.alerts.append(describe_units(name, spelt[1], target.categories[0], "`task` classification"))
    elif task is None and len(texts) < len(target.categories):
        raise TableError(
            f"The target {quote(name)} mixes numbers and text (such as {list_some(texts, limit=3)}). "
            "Fix it; or, if each value is the name of a class, set `task` classification."
        )
    elif task is None and parse_dates(target.categories) is not None:
        raise TableError(f"The target {quote(name)} holds dates. Turn it into numbers or classes first.")
    else:
        return None
    return np.array([*numbers, np.nan])[target.codes]


def _check_classes(name: str, y: np.ndarray, reason: str) -> str:
    classes, counts = np.unique(y, return_counts=True)
    if classes.size < 2:
        raise TableError(f"The target {quote(name)} is constant ({classes[0]}): there is nothing to predict.")
    if classes.size > max(MOST_CLASSES, y.size // 2):
        raise TableError(
            f"The target {quote(name)} has {classes.size:,} classes for {y.size:,} rows: is it a name or an identifier? "
            "Choose another target, or `task` regression if it is a number."
        )
    shown = ", ".join(f"{label}: {count}" for label, count in zip(classes[:6], counts[:6], strict=True))
    more = f" and {classes.size - 6} more" if classes.size > 6 else ""
    return f"Task: classification of {quote(name)} ({reason}; {classes.size} classes, {shown}{more})."
