"""Tell numbers and missing values in cells of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tamiz._utils.text import quote

#: Cells that mean a missing value, besides an empty one.
MISSING = (
    "",
    "NA",
    "N/A",
    "n/a",
    "na",
    "NaN",
    "nan",
    "NAN",
    "-nan",
    "NULL",
    "null",
    "None",
    "none",
    "?",
    "#N/A",
    "<NA>",
)


#: Numbers with a decimal comma ("1,5" but not "1,500"), and with separators of thousands.
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,(?!\d{3}$)\d+([eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}([,.' ]\d{3})+([.,]\d+)?")


@dataclass(frozen=True)
class CellStyle:
    """Say how cells of text spell missing values and numbers.

    Parameters
    ----------
    missing : tuple of str, default=MISSING
        Cells that mean a missing value.
    decimal : str, default="."
        Decimal mark, a point or a comma.
    """

    missing: tuple[str, ...] = MISSING
    decimal: str = "."


def describe_foreign_numbers(cells: Sequence[str]) -> str | None:
    """Return in which foreign spelling most cells are numbers, with what to do about it; None if they are not.

    Parameters
    ----------
    cells : sequence of str
        Different values of a column of text.

    Examples
    --------
    >>> describe_foreign_numbers(["1,5", "2,75"])
    "numbers with a decimal comma, such as '1,5'; say `decimal` ','"
    >>> describe_foreign_numbers(["1,500", "2,750.5"])
    "numbers with separators of thousands, such as '1,500'; remove these"
    >>> describe_foreign_numbers(["low", "high"])
    """
    some = cells[:100]
    commas = [cell for cell in some if _DECIMAL_COMMA.fullmatch(cell)]
    thousands = [cell for cell in some if _THOUSANDS.fullmatch(cell)]
    plain = sum(is_number(cell) for cell in some)
    if (not commas and not thousands) or len({*commas, *thousands}) + plain < 0.9 * len(some):
        return None
    if commas:
        return f"numbers with a decimal comma, such as {quote(commas[0], 20)}; say `decimal` ','"
    return f"numbers with separators of thousands, such as {quote(thousands[0], 20)}; remove these"


def is_number(cell: str) -> bool:
    """Check whether a cell reads as a number.

    Examples
    --------
    >>> is_number(" 1.5e3"), is_number("high"), is_number("")
    (True, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and cell.isascii()
