"""A word on stderr when numba compiles the engine, which takes seconds and happens once on a machine."""

from __future__ import annotations

import sys
import threading
from typing import Any

from numba.core import event

_lock = threading.Lock()
_watched: list[Any] = []


class _Notice(event.Listener):
    """Numba tells of a compilation when it begins, after it has looked in its cache on disk."""

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    def on_start(self, event: Any) -> None:
        """Say it, if it is the engine."""
        if event.data.get("dispatcher") is self.dispatcher:
            print("tamiz: compiling the engine for this machine, once; about 20 s ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Nothing: the fit goes on."""


def announce_compilation(dispatcher: Any) -> None:
    """From now on, a compilation of this function is announced; one that comes from the cache on disk is not.

    Parameters
    ----------
    dispatcher : function compiled by ``numba.njit``
        Any number of calls with the same function count as one.

    Examples
    --------
    >>> from tamiz.engines import loop
    >>> announce_compilation(loop.run)
    """
    with _lock:
        if not any(known is dispatcher for known in _watched):
            _watched.append(dispatcher)
            event.register("numba:compile", _Notice(dispatcher))
