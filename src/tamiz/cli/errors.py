"""Errors that are the user's to mend: shown as one message, never as a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

#: What the command ends with; also in ``tamiz --help``.
EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_DATA, EXIT_OUTPUT, EXIT_MEMORY, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


class UserError(Exception):
    """Something about the input that the user can mend; the message says how.

    Parameters
    ----------
    message : str
        What is wrong and what to do.
    exit_code : int, default=EXIT_DATA
        What the command ends with.
    """

    def __init__(self, message: str, exit_code: int = EXIT_DATA) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def shorten(text: object, width: int = 60) -> str:
    """A value from the data, quoted, on one line, cut where it is too long for a message.

    Examples
    --------
    >>> shorten("a" * 100, width=8)
    "'aaaaaaa…'"
    """
    plain = str(text)
    return repr(plain if len(plain) <= width else plain[: width - 1] + "…")


def listed(values: Sequence[object], limit: int = 5) -> str:
    """Some values for a message, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(shorten(value) for value in values[:limit])
    return shown + (f" and {len(values) - limit:,} more" if len(values) > limit else "")


def did_you_mean(wrong: str, known: Sequence[str]) -> str:
    """A hint with the nearest known names, or nothing.

    Examples
    --------
    >>> did_you_mean("tumor", ["tumour", "age"])
    " Did you mean 'tumour'?"
    """
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.casefold().strip(), name)
    near = difflib.get_close_matches(wrong.casefold().strip(), list(folded), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(shorten(folded[name]) for name in near)}?" if near else ""
