"""What the cells of a column mean: numbers in any spelling, dates, categories; which columns are of no use."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from tamiz._utils.text import list_some, quote
from tamiz.errors import TableError

if TYPE_CHECKING:
    from tamiz.tables.table import DataTable, TextColumn

_CURRENCY = r"[A-Z]{0,2}[$€£¥₹₩₽]|USD|EUR|GBP|CHF|JPY|CAD|AUD|CNY|INR|SEK|NOK|DKK|PLN|BRL|MXN"
#: A number with a currency before it, or a currency, a percent sign or a unit behind it.
_SPELT = re.compile(
    rf"(?P<sign>[-+]?)(?P<before>{_CURRENCY})?\s*(?P<number>[-+]?[0-9.,][0-9.,'’ \u00a0\u202f]*(?:[eE][-+]?[0-9]+)?)"
    r"\s*(?P<after>[%‰°$€£¥₹₩₽]|[^\W\d_][\w/%°²³^.*-]{0,11}|[°%][\w/]{1,4})?"
)
#: Numbers of which the other mark separates thousands: groups of three digits, the first of which is not 0.
_POINT = re.compile(r"[-+]?(?:[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+)?(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_COMMA = re.compile(r"[-+]?(?:[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)?(?:,[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_BLANKS = re.compile(r"(?<=[0-9])['’ \u00a0\u202f](?=[0-9]{3}(?![0-9]))")
_DATE_FORMATS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y"),
    *("%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M"),
    *("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S"),
)
_EPOCH = datetime.datetime(1970, 1, 1)
#: Why a column that names the rows is left out of the selection.
IDENTIFIER = "a different text in nearly every row, as identifiers have"
CONSTANT = "the same value in every row"
#: Longer texts are remarks, not names.
_LONGEST_IDENTIFIER = 64
#: Fewer rows are too few to tell codes or running numbers from measurements.
_LEAST_ROWS = 20


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


def is_number(cell: str) -> bool:
    """Check whether a cell reads as a number.

    Examples
    --------
    >>> is_number(" 1.5e3"), is_number("high"), is_number(""), is_number("1_0")
    (True, False, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and cell.isascii()


def needs_comma(cell: str) -> bool:
    """Check whether a cell is a number only if its comma is a decimal mark.

    Examples
    --------
    >>> needs_comma("-0,064"), needs_comma("1,5"), needs_comma("1,500"), needs_comma("1.5")
    (True, True, False, False)
    """
    return bool(any(map(str.isdigit, cell)) and _COMMA.fullmatch(cell) and not _POINT.fullmatch(cell))


def spelt_numbers(cells: Sequence[str], comma: bool = False) -> tuple[list[float], str] | None:
    """Read cells as numbers in one spelling: decimal commas, thousands, a currency, percent signs or a unit.

    Parameters
    ----------
    cells : sequence of str
        Different values of a column of text.
    comma : bool, default=False
        Whether "1,500" has a decimal comma rather than thousands; other cells may decide.

    Returns
    -------
    numbers : list of float
    unit : str
        Currency, percent sign or unit; empty if there is none.

    None is returned unless all cells are numbers and their unit is the same; a currency may be left out, a unit only at 0.

    Examples
    --------
    >>> spelt_numbers(["12.34 EUR", "1,200.00 EUR"]), spelt_numbers(["12%", "0"])
    (([12.34, 1200.0], 'EUR'), ([12.0, 0.0], '%'))
    >>> spelt_numbers(["-0,064", "\\N{MINUS SIGN}1,234"]), spelt_numbers(["3 kg", "500 g"])
    (([-0.064, -1.234], ''), None)
    """
    texts, units = [], []
    for cell in cells:
        match = _SPELT.fullmatch(cell.replace("\u2212", "-"))
        if match is None or (match["before"] and match["after"]):
            return None
        texts.append(match["sign"] + _BLANKS.sub("", match["number"].strip()))
        units.append(match["before"] or match["after"] or "")
    unit = max(units, default="")
    if {*units} - {"", unit} or not all(any(map(str.isdigit, text)) for text in texts):
        return None
    without = [text for text, its in zip(texts, units, strict=True) if unit and not its]
    if not re.fullmatch(_CURRENCY, unit) and any(text.strip("-+0.,") for text in without):
        return None
    point, comma_fits = all(map(_POINT.fullmatch, texts)), all(map(_COMMA.fullmatch, texts))
    if not point and not comma_fits:
        return None
    if comma_fits and (not point or (comma and any("," in text for text in texts))):
        texts = [text.replace(".", "").replace(",", ".") for text in texts]
    else:
        texts = [text.replace(",", "") for text in texts]
    return [float(text) for text in texts], unit


def parse_dates(cells: Sequence[str]) -> tuple[list[float], bool] | None:
    """Read cells as dates or times: days since 1970, and whether day and month could be exchanged.

    None is returned unless all cells are dates of the same form.

    Examples
    --------
    >>> parse_dates(["1970-01-02", "1970-01-03T12:00:00Z"]), parse_dates(["02.01.1970"]), parse_dates(["20240229"])
    (([1.0, 2.5], False), ([1.0], False), None)
    """
    if not cells or not any(map(str.isdigit, cells[0])) or len(cells[0]) > 40 or any(map(str.isdigit, cells)):
        return None
    moment = datetime.datetime
    for form in (None, *_DATE_FORMATS):
        try:
            found = [moment.strptime(cell, form) if form else moment.fromisoformat(cell) for cell in cells]
            break
        except ValueError:
            continue
    else:
        return None
    plain = [day if day.tzinfo is None else day.astimezone(datetime.UTC).replace(tzinfo=None) for day in found]
    days = [(day - _EPOCH).total_seconds() / 86400 for day in plain]
    return days, "/" in cells[0] and all(day.day <= 12 for day in plain)


def read_cells(name: str, cells: Sequence[str], comma: bool = False) -> tuple[list[float] | None, Alert | None]:
    """Read the different cells of a column of text as booleans, numbers in any spelling or dates (days since 1970).

    Parameters
    ----------
    name : str
        Name of the column, for the alert.
    cells : sequence of str
        Its different values.
    comma : bool, default=False
        Whether "1,500" has a decimal comma.

    Returns
    -------
    values : list of float or None
        None if the cells are names.
    alert : Alert or None
        What a user should know about it.

    Examples
    --------
    >>> read_cells("old", ["TRUE", "false"]), read_cells("kind", ["a", "b"])
    (([1.0, 0.0], None), (None, None))
    """
    if {cell.lower() for cell in cells} <= {"true", "false"}:
        return [float(cell.lower() == "true") for cell in cells], None
    spelt = spelt_numbers(cells, comma)
    if spelt is not None:
        return spelt[0], describe_units(name, spelt[1], cells[0])
    dates = parse_dates(cells)
    return (None, None) if dates is None else (dates[0], describe_dates(name, min(dates[0]), dates[1]))


def describe_units(name: str, unit: str, cell: str, advice: str | None = None) -> Alert:
    """Tell of numbers in a foreign spelling; ``advice`` is what to set if they are names."""
    holds = f"numbers with {quote(unit)}, such as" if unit else "numbers such as"
    message = f"Column {quote(name)} holds {holds} {quote(cell, 20)}: read as numbers{' without it' if unit else ''}."
    return Alert("units", (name,), f"{message} If they are names, set {advice or f'`categorical` {quote(name)}'}.")


def describe_dates(name: str, first: float, ambiguous: bool = False) -> Alert:
    """Tell of a column of dates."""
    day = (_EPOCH + datetime.timedelta(days=first)).date()
    order = " The day is taken to come before the month." if ambiguous else ""
    return Alert("dates", (name,), f"Column {quote(name)} holds dates: read as days since the first, {day}.{order}")


def describe_spellings(name: str, text: TextColumn, merged: TextColumn, advice: str | None = None) -> Alert:
    """Tell of categories that were joined because they differ in case only; ``advice`` is what to do if they are not the same."""
    other = [value for value in text.categories if value not in {*merged.categories}]
    message = (
        f"Column {quote(name)}: {list_some(other, limit=3)} {'is' if len(other) == 1 else 'are'} taken as another spelling of "
        f"the same category. If not, {advice or f'set `categorical` {quote(name)}'}."
    )
    return Alert("spelling", (name,), message)


def _judge_text(column: TextColumn, max_categories: int) -> str | None:
    """Tell why a column of text is of no use; None if it is of use."""
    used = np.unique(column.codes[column.codes >= 0])  # categories may stand in rows that went
    if used.size == 0:
        return "no values at all"
    if used.size == 1 and np.all(column.codes >= 0):
        return CONSTANT
    all_differ = (
        used.size >= max(3, 0.95 * column.codes.size) and max(map(len, column.categories)) <= _LONGEST_IDENTIFIER
    )
    numbers = [is_number(value) for value in column.categories]
    if all_differ and np.mean(numbers) <= 0.5:
        return IDENTIFIER
    if len(column.categories) <= max_categories:
        return None
    if all(numbers):
        return f"named in `categorical`, but it holds more than {max_categories} different numbers"
    if np.mean(numbers) > 0.5:
        odd = int(np.argmin(numbers))
        row = int(np.argmax(column.codes == odd)) + 1
        return (
            f"numbers mixed with text, such as {quote(column.categories[odd], 20)} in data row {row:,}; correct it, or name "
            "it in `na_values` if it means a missing value"
        )
    return f"text with more than {max_categories} different values; raise `max_categories` to use it"


def identifier_columns(table: DataTable) -> list[int]:
    """List the columns that name the rows; they are left out of the selection and kept in the results."""
    return sorted(index for index, reason in table.left_out.items() if reason == IDENTIFIER)


def _judge_numbers(table: DataTable) -> tuple[np.ndarray, np.ndarray]:
    """Tell which numeric columns hold any value, and which the same everywhere; raise on an infinity."""
    numbers, largest = table.numbers, np.finfo(np.float32).max
    if sp.issparse(numbers):
        entries = numbers.tocoo()
        bad = np.flatnonzero(~(np.abs(entries.data) <= largest))[:1]
        filled, constant = np.ones(numbers.shape[1], dtype=bool), np.zeros(numbers.shape[1], dtype=bool)
        row, position, is_gap = entries.row[bad], entries.col[bad], np.isnan(entries.data[bad]).any()
    else:
        low, high = np.fmin.reduce(numbers, axis=0), np.fmax.reduce(numbers, axis=0)
        filled, constant, is_gap = ~np.isnan(low), (low == high) & (table.n_rows > 1), False
        constant[constant] = ~np.isnan(numbers[:, constant]).any(axis=0)
        position = np.flatnonzero(np.maximum(-low, high) > largest)[:1]
        row = np.argmax(np.abs(np.nan_to_num(numbers[:, position])), axis=0)
    if position.size:
        name = quote(table.names[int(table.number_columns[position[0]])])
        what, do = "an infinity or a number beyond 3.4e38 {}. ", "Fix it"
        if is_gap:
            what, do = "NaN {}, but sparse tables have no missing values. ", "Remove the entry"
        where = what.format(f"in data row {row[0] + 1:,}")
        raise TableError(f"Column {name} holds {where}{do}, or leave the column out: `ignore` {name}.")
    return filled, constant


def drop_unusable_columns(table: DataTable, max_categories: int = 50) -> DataTable:
    """Leave out empty and constant columns, identifiers and text of too many values; add an alert for each reason.

    Parameters
    ----------
    table : DataTable
        As it was read; changed in place.
    max_categories : int, default=50
        Columns of text with more different values than this are left out.

    Raises
    ------
    TableError
        If no column is left, or a column holds an infinity.
    """
    for index, text in list(table.texts.items()):
        if reason := _judge_text(text, max_categories):
            table.left_out[index] = reason
            del table.texts[index]
    filled, constant = _judge_numbers(table)
    useful = filled & ~constant
    if not useful.any() and not table.texts:  # in a few rows all columns may be constant
        useful = filled
    if not useful.all():
        for position in np.flatnonzero(~useful):
            reason = CONSTANT if filled[position] else "no values at all"
            table.left_out[int(table.number_columns[position])] = reason
        table.numbers, table.number_columns = table.numbers[:, useful], table.number_columns[useful]
    by_reason: dict[str, list[str]] = {}
    for index, reason in sorted(table.left_out.items()):
        by_reason.setdefault(reason, []).append(table.names[index])
    for reason, names in by_reason.items():
        other = "categories" if "`" in reason else "left out"
        kind = {CONSTANT: "constant", IDENTIFIER: "identifier"}.get(reason, other)
        alert = Alert(kind, tuple(names), f"Left out: {list_some(names, limit=4)} ({reason}).")
        table.alerts.extend([] if alert in table.alerts else [alert])
    if table.number_columns.size == 0 and not table.texts:
        raise TableError(f"{table.path.name} has no column left to select from.")
    return table


def find_codes(table: DataTable) -> list[str]:
    """Find columns of whole numbers that look like codes: few, far apart and at irregular distances.

    Examples are postcodes and article numbers.
    """
    if sp.issparse(table.numbers) or table.n_rows < _LEAST_ROWS:
        return []
    some = table.numbers[:2000]
    whole = np.all((some == np.rint(some)) | np.isnan(some), axis=0)
    found = []
    for position in np.flatnonzero(whole)[:1000]:
        column = table.numbers[:, position]
        values = np.unique(column[~np.isnan(column)])
        if int(table.number_columns[position]) in table.origins or not 3 <= values.size <= 100 or values[0] < 10:
            continue
        steps = np.diff(values)
        if (
            values.size <= 0.1 * table.n_rows
            and np.all(steps == np.rint(steps))
            and steps.min() < steps.max()
            and values[-1] - values[0] >= 4 * values.size
        ):
            found.append(table.names[int(table.number_columns[position])])
    return found


def is_running_number(values: np.ndarray) -> bool:
    """Check whether values follow each other by the same step, in any order, each of them once.

    Examples
    --------
    >>> is_running_number(5 + np.arange(30.0)[::-1] / 2), is_running_number(np.arange(30.0) ** 2)
    (True, False)
    """
    steps = np.diff(np.sort(values))
    return values.size >= _LEAST_ROWS and bool(np.all(np.abs(steps - steps[0]) < 1e-6 * steps[0]))
