"""Text that users type or read: names looked up with a suggestion, values quoted in messages, records as plain JSON."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from tamiz.errors import UnknownNameError

Value = TypeVar("Value")
#: What messages begin with that must not be overlooked.
WARNING = "Warning: "


def plain(name: str) -> str:
    """Reduce a name to what counts when two spellings are compared: letters, digits and ``+``, in lower case.

    Examples
    --------
    >>> plain("E2E-FS Soft"), plain("SFS+DFS")
    ('e2efssoft', 'sfs+dfs')
    """
    return "".join(letter for letter in name.casefold() if letter.isalnum() or letter == "+")


def suggest(name: str, known: Iterable[str], n: int = 1) -> str:
    """Suggest the known names nearest to ``name``: " Did you mean ...?", or an empty string.

    Parameters
    ----------
    name : str
        What the user gave.
    known : iterable of str
        The names there are.
    n : int, default=1
        Largest number of names to suggest.

    Examples
    --------
    >>> suggest("tumor", ["tumour", "age"])
    " Did you mean 'tumour'?"
    >>> suggest("zzz", ["tumour", "age"])
    ''
    """
    spellings = {plain(one): one for one in reversed(list(known))}  # of two with the same spelling, the first
    near = difflib.get_close_matches(plain(name), spellings, n=n, cutoff=0.5)
    return f" Did you mean {' or '.join(repr(spellings[one]) for one in near)}?" if near else ""


def pick_name(name: object, known: Iterable[str], kind: str) -> str:
    """Find the member of ``known`` that ``name`` spells; case, blanks, ``-`` and ``_`` do not count.

    Parameters
    ----------
    name : object
        What the user gave.
    known : iterable of str
        The names there are.
    kind : str
        What they name, for the message.

    Raises
    ------
    UnknownNameError
        If there is no such name; the message suggests the nearest and lists all.

    Examples
    --------
    >>> pick_name("SVM", ["naivef", "svm"], "learner")
    'svm'
    >>> pick_name("smv", ["naivef", "svm"], "learner")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown learner 'smv'. Did you mean 'svm'? There are: naivef, svm.
    """
    names = list(known)
    if isinstance(name, str):
        for one in (*(one for one in names if one == name), *names):
            if plain(one) == plain(name):
                return one
    raise UnknownNameError(f"Unknown {kind} {name!r}.{suggest(str(name), names)} There are: {', '.join(names)}.")


def pick(name: object, registry: Mapping[str, Value], kind: str) -> Value:
    """Look up an entry of a registry by its name, or raise as :func:`pick_name` does.

    Examples
    --------
    >>> pick("Huber", {"huber": 1, "squared_error": 2}, "loss")
    1
    """
    return registry[pick_name(name, registry, kind)]


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


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, in the plural unless it is one.

    Examples
    --------
    >>> counted(1, "column"), counted(1200, "column")
    ('1 column', '1,200 columns')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def discard(message: str) -> None:
    """Drop a message; the default wherever a function reports what it does."""


def to_plain(value: Any) -> Any:
    """Convert a record to dictionaries, lists and numbers; NaN and infinity, which JSON does not have, become None.

    Examples
    --------
    >>> import numpy
    >>> to_plain({"score": numpy.float64(0.5), "low": float("nan")})
    {'score': 0.5, 'low': None}
    """
    import numpy as np  # the command line looks at files without it

    if hasattr(value, "to_dict") and not isinstance(value, type):
        value = value.to_dict()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    elif isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
