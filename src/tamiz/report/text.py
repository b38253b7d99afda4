"""Format text and numbers safely for HTML, for JSON inside HTML, and for CSV that a spreadsheet opens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tamiz._utils.text import to_plain

# Half of a surrogate pair cannot be written as UTF-8, and HTML forbids most control characters.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
#: What a spreadsheet may take for the beginning of a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def clean_text(value: Any) -> str:
    """Make text that every encoder accepts; what cannot be written becomes U+FFFD.

    Examples
    --------
    >>> clean_text("gene\\x00\\ud800 1").count("\\ufffd")
    2
    """
    return _UNPRINTABLE.sub("\ufffd", str(value))


def shorten(value: Any, n_characters: int) -> str:
    """Shorten a text to ``n_characters``, cut in the middle, where two long names are most often alike.

    Examples
    --------
    >>> shorten("a_rather_long_column_name_of_1987", 16)
    'a_rather…of_1987'
    """
    text = " ".join(clean_text(value).split()) or " "
    if len(text) <= n_characters:
        return text
    head = n_characters // 2
    return f"{text[:head]}…{text[head + 1 - n_characters :]}"


def format_number(value: float | None, digits: int = 3, signed: bool = False) -> str:
    """Format a number: ``digits`` significant digits, thousands set apart, a dash for none.

    Examples
    --------
    >>> format_number(12345.6), format_number(0.012345), format_number(-1.5, signed=True), format_number(None)
    ('12,346', '0.0123', '-1.50', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size == 0:
        text = "0"
    elif size >= 1e7 or size < 1e-4:
        text = f"{size:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    elif float(size).is_integer() and size < 1e7:
        text = f"{size:,.0f}"
    else:
        text = f"{size:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"
    return _with_sign(value, text, signed)


def format_value(value: float | None) -> str:
    """Format a value of a column as its file would: years without a comma, no zeros that say nothing.

    Examples
    --------
    >>> format_value(1987.0), format_value(0.5), format_value(12345.678), format_value(-2.25)
    ('1987', '0.5', '12,346', '-2.25')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if float(value).is_integer() and abs(value) < 10_000:
        return f"{value:.0f}"
    text = format_number(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def format_score(value: float | None, signed: bool = False) -> str:
    """Format a score: three decimals while it is small, so that scores align in a column.

    Examples
    --------
    >>> format_score(0.9), format_score(-0.004, signed=True), format_score(-0.0001), format_score(1234.5)
    ('0.900', '-0.004', '0.000', '1,234')
    """
    if value is None or not abs(value) < 10:
        return format_number(value, digits=4, signed=signed)
    return _with_sign(value, f"{abs(value):.3f}", signed)


def _with_sign(value: float, shown: str, signed: bool) -> str:
    """Put the sign before a number, unless it is shown as zero."""
    if not shown.strip("0.,"):
        return shown
    return f"-{shown}" if value < 0 else f"+{shown}" if signed else shown


def describe_score(score: Any, signed: bool = False) -> str:
    """Format a score, or a difference, with its interval.

    Examples
    --------
    >>> from tamiz.evaluation.intervals import Interval
    >>> describe_score(Interval(0.91, 0.88, 0.94))
    '0.910 (0.880 to 0.940)'
    """
    ends = f" ({describe_ends(score, signed)})" if score.has_ends else ""
    return format_score(score.value, signed) + ends


def describe_ends(gap: Any, signed: bool = True) -> str:
    """Format the ends of an interval, by default of a difference; a dash if they are not known."""
    return f"{format_score(gap.low, signed)} to {format_score(gap.high, signed)}" if math.isfinite(gap.low) else "–"


def format_column(values: Sequence[float | None], signed: bool = False) -> list[str]:
    """Format numbers that align in a column: as many decimals for all as give the largest three digits.

    Examples
    --------
    >>> format_column([1.426, -0.07, None], signed=True)
    ['+1.43', '-0.07', '–']
    """
    largest = max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0.0)
    if largest == 0 or not 1e-3 <= largest < 1e7:
        return [format_number(v, signed=signed) for v in values]
    decimals = max(0, 2 - math.floor(math.log10(largest)))
    return [
        "–" if v is None or not math.isfinite(v) else _with_sign(v, f"{abs(v):,.{decimals}f}", signed) for v in values
    ]


def format_seconds(value: float | None) -> str:
    r"""Format a duration in the unit that suits it.

    Examples
    --------
    >>> [format_seconds(s).replace("\u00a0", " ") for s in (0.0123, 4.2, 300)]
    ['12 ms', '4.20 s', '5.0 min']
    """
    if value is None or not math.isfinite(value):
        return "–"
    # The space before a unit does not break.
    if value < 0.9995:
        return f"{value * 1000:.{0 if value >= 0.00995 else 1}f}\u00a0ms"
    if value < 120:
        return f"{value:.{2 if value < 9.995 else 1}f}\u00a0s"
    return f"{value / 60:.1f}\u00a0min" if value < 7200 else f"{value / 3600:.1f}\u00a0h"


def format_p_value(value: float | None) -> str:
    """Format a p-value; very small ones as a bound.

    Examples
    --------
    >>> format_p_value(0.034), format_p_value(1e-9)
    ('0.034', '< 0.001')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def json_for_script(value: Any) -> str:
    r"""Write JSON that can stand inside a ``<script>`` element: nothing in it can end the element or the line.

    Examples
    --------
    >>> json_for_script({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(_clean(to_plain(value)), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): _clean(entry) for key, entry in value.items()}
    return [_clean(entry) for entry in value] if isinstance(value, list) else value


def csv_cell(value: Any, spreadsheet_safe: bool = True) -> str:
    """Format one cell of a CSV file (RFC 4180).

    Parameters
    ----------
    value : object
        Content of the cell; None is an empty cell.
    spreadsheet_safe : bool, default=True
        Put an apostrophe before text that a spreadsheet could run as a formula. Plain numbers stay as they are.

    Examples
    --------
    >>> csv_cell("=1+1"), csv_cell(-1.5), csv_cell("-1.5"), csv_cell("-gene"), csv_cell("=1+1", spreadsheet_safe=False)
    ("'=1+1", '-1.5', '-1.5', "'-gene", '=1+1')
    """
    text = "" if value is None else clean_text(value)
    if spreadsheet_safe and text.startswith(FORMULA_STARTS) and not _PLAIN_NUMBER.fullmatch(text):
        text = f"'{text}"
    if any(character in text for character in '",\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_text(header: Iterable[Any], rows: Iterable[Iterable[Any]], spreadsheet_safe: bool = True) -> str:
    r"""Write a whole CSV file as text.

    Examples
    --------
    >>> csv_text(["rank", "name"], [[1, "@home"], [2, "a, b"]])
    'rank,name\r\n1,\'@home\r\n2,"a, b"\r\n'
    """
    lines = [",".join(csv_cell(cell, spreadsheet_safe) for cell in row) for row in (header, *rows)]
    return "\r\n".join(lines) + "\r\n"
