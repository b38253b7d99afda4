"""Look up names that users type, with a suggestion when there is no such name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from tamiz.errors import UnknownNameError

Value = TypeVar("Value")


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
