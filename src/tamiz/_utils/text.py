"""Show values from the data in messages: quoted, short, on one line."""

from __future__ import annotations

from collections.abc import Sequence

#: What messages begin with that must not be overlooked.
WARNING = "Warning: "


def quote(value: object, width: int = 60) -> str:
    """Quote a value on one line, cut if it is too long for a message.

    Parameters
    ----------
    value : object
        A name or a cell.
    width : int, default=60
        Number of characters to show.

    Examples
    --------
    >>> quote("a" * 100, width=8)
    "'aaaaaaa…'"
    """
    text = str(value).encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot be printed
    return repr(text if len(text) <= width else text[: width - 1] + "…")


def list_some(values: Sequence[object], limit: int = 5) -> str:
    """List the first values in quotes, and how many more there are.

    Parameters
    ----------
    values : sequence
        Names or cells.
    limit : int, default=5
        Number of values to show.

    Examples
    --------
    >>> list_some(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(quote(value) for value in values[:limit])
    return shown + (f" and {len(values) - limit:,} more" if len(values) > limit else "")


def discard(message: str) -> None:
    """Drop a message; the default wherever a function reports what it does."""
