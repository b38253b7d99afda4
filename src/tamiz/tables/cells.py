"""Tell numbers and missing values in cells of text."""

from __future__ import annotations

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
    return "_" not in cell
