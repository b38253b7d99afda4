"""Leave out columns of no use (empty ones, dates, free text), report which, and raise on infinities."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from tamiz._utils.text import WARNING, discard, list_some, quote
from tamiz.errors import TableError
from tamiz.tables.cells import describe_foreign_numbers, is_number
from tamiz.tables.table import DataTable, TextColumn

_DATE_FORMATS = (
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%Y/%m/%d",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d %b %Y",
    "%b %d, %Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
)
_ROWS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Alert:
    """Something about columns that a user should know.

    Parameters
    ----------
    kind : str
        "constant", "identifier", "codes", "units", "dates", "spelling", "categories", "running target", ...
    columns : tuple of str
        Names of the columns.
    message : str
        What was found and what to do.
    """

    kind: str
    columns: tuple[str, ...]
    message: str


def is_date(text: str) -> bool:
    """Check whether a text is a date, with or without a time.

    Examples
    --------
    >>> is_date("2024-02-29"), is_date("29.02.2024"), is_date("2024-02-29T10:00:00Z"), is_date("20240229")
    (True, True, True, False)
    """
    if text.isdigit():
        return False
    try:
        datetime.datetime.fromisoformat(text)
        return True
    except ValueError:
        pass
    for form in _DATE_FORMATS:
        try:
            datetime.datetime.strptime(text, form)
            return True
        except ValueError:
            continue
    return False


def holds_dates(column: TextColumn) -> bool:
    """Check whether all values of a column (or the first hundred of them) are dates."""
    return bool(column.categories) and all(is_date(value) for value in column.categories[:100])


#: Why a column that names the rows is left out of the selection.
IDENTIFIER = "a different text in every row, as identifiers have"
#: Longer texts are remarks, not names.
_LONGEST_IDENTIFIER = 64


def _judge_text(column: TextColumn, max_categories: int) -> str | None:
    """Return why a column of text is of no use, or None."""
    if not column.categories:
        return "no values at all"
    if holds_dates(column):
        return "dates"
    foreign = describe_foreign_numbers(column.categories)
    if foreign is not None:
        return foreign
    if len(column.categories) > max_categories:
        numbers = [is_number(value) for value in column.categories]
        if all(numbers):
            return f"named in `categorical`, but it holds more than {max_categories} different numbers"
        if np.mean(numbers) > 0.5:
            odd = column.categories[int(np.argmin(numbers))]
            row = int(np.argmax(column.codes == int(np.argmin(numbers)))) + 1
            return f"numbers mixed with text (such as {quote(odd, 20)} in data row {row:,})"
        return IDENTIFIER if _is_identifier(column) else f"text with more than {max_categories} different values"
    return IDENTIFIER if _is_identifier(column) else None


def _is_identifier(column: TextColumn) -> bool:
    """Check whether a column holds a different, short text in every row."""
    # Counted in the rows that are left: categories may stand in rows that went.
    if column.codes.size <= 2 or np.unique(column.codes[column.codes >= 0]).size != column.codes.size:
        return False
    return max(map(len, column.categories)) <= _LONGEST_IDENTIFIER


def identifier_columns(table: DataTable) -> list[int]:
    """Return the positions of columns that name the rows; they are left out of the selection and kept in the results."""
    return sorted(index for index, reason in table.left_out.items() if reason == IDENTIFIER)


def _judge_numbers(table: DataTable) -> np.ndarray:
    """Return which numeric columns hold any value; raise on an infinity."""
    numbers = table.numbers
    if sp.issparse(numbers):
        coordinates = numbers.tocoo()
        bad = ~np.isfinite(coordinates.data)
        if bad.any():
            row, position = int(coordinates.row[bad][0]), int(coordinates.col[bad][0])
            if np.isnan(coordinates.data[bad][0]):
                name = table.names[int(table.number_columns[position])]
                raise TableError(
                    f"Column {quote(name)} holds NaN in data row {row + 1:,}, but sparse tables have no missing values. "
                    f"Remove the entry, or leave the column out: `ignore` {quote(name)}."
                )
            _raise_infinity(table, row, position)
        return np.ones(numbers.shape[1], dtype=bool)
    seen = np.zeros(numbers.shape[1], dtype=bool)
    step = max(1, _ROWS_AT_ONCE // max(1, numbers.shape[1]))
    for start in range(0, numbers.shape[0], step):
        piece = numbers[start : start + step]
        finite = np.isfinite(piece)
        if not finite.all():
            infinite = np.isinf(piece)
            if infinite.any():
                row, column = np.argwhere(infinite)[0]
                _raise_infinity(table, start + int(row), int(column))
        seen |= finite.any(axis=0)
    return seen


def _raise_infinity(table: DataTable, row: int, position: int) -> None:
    name = table.names[int(table.number_columns[position])]
    raise TableError(
        f"Column {quote(name)} holds an infinity or a number beyond 3.4e38 in data row {row + 1:,}. "
        f"Fix it, or leave the column out: `ignore` {quote(name)}."
    )


def drop_unusable_columns(
    table: DataTable, max_categories: int = 50, report: Callable[[str], None] = discard
) -> DataTable:
    """Leave out columns that are of no use, and report which and why.

    Parameters
    ----------
    table : DataTable
        As it was read; changed in place.
    max_categories : int, default=50
        Columns of text with more different values than this are left out.
    report : callable, default=discard
        Called with each message.

    Raises
    ------
    TableError
        If no column is left, or a column holds an infinity.
    """
    for index in list(table.texts):
        reason = _judge_text(table.texts[index], max_categories)
        if reason is not None:
            table.left_out[index] = reason
            del table.texts[index]
    useful = _judge_numbers(table)
    if not useful.all():
        for column in table.number_columns[~useful]:
            table.left_out[int(column)] = "no values at all"
        table.numbers = table.numbers[:, useful]
        table.centres = table.centres[useful]
        table.number_columns = table.number_columns[useful]
    by_reason: dict[str, list[str]] = {}
    for index, reason in sorted(table.left_out.items()):
        by_reason.setdefault(reason, []).append(table.names[index])
    for reason, names in by_reason.items():
        mark = WARNING if "`" in reason or "remove" in reason else ""
        report(f"{mark}Left out: {list_some(names, limit=4)} ({reason}).")
    if table.number_columns.size == 0 and not table.texts:
        raise TableError(f"{table.path.name} has no column left to select from.")
    return table


def report_encoding(table: DataTable, report: Callable[[str], None]) -> None:
    """Report what will be one-hot encoded and what will be imputed (both inside each fold)."""
    if table.texts:
        names = [table.names[index] for index in table.texts]
        report(f"Encoded: {list_some(names, limit=4)}: text, one-hot inside each fold.")
    if not sp.issparse(table.numbers):
        missing = np.zeros(table.numbers.shape[1], dtype=np.int64)
        step = max(1, _ROWS_AT_ONCE // max(1, table.numbers.shape[1]))
        for start in range(0, table.n_rows, step):
            missing += np.isnan(table.numbers[start : start + step]).sum(axis=0)
        if missing.any():
            n_columns = int((missing > 0).sum())
            report(
                f"Imputed: {int(missing.sum()):,} missing numbers in {n_columns:,} column(s), "
                "by the median inside each fold."
            )
