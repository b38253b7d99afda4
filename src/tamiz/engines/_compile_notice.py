"""Show a progress line on stderr while numba compiles the engine, which takes seconds and happens once on a machine."""

from __future__ import annotations

import sys
import threading
from typing import Any

from numba.core import event

from tamiz._progress import ProgressBar

#: Functions that the loop of the linear engine calls; how far the compilation is, is told by how many are done.
N_FUNCTIONS = 29

_lock = threading.Lock()
_watched: list[Any] = []


class _Notice(event.Listener):
    """Follow the compilation of one function and of those it calls; numba reports it after a look into its cache on disk."""

    def __init__(self, dispatcher: Any, n_functions: int) -> None:
        self.dispatcher = dispatcher
        self.n_functions = n_functions
        self.n_done = 0
        self.bar: ProgressBar | None = None

    def on_start(self, event: Any) -> None:
        """Announce the compilation of the function."""
        if event.data.get("dispatcher") is self.dispatcher:
            print("tamiz: compiling the engine for this machine, once", file=sys.stderr, flush=True)
            self.n_done, self.bar = 0, ProgressBar("compiling", delay=0.2)

    def on_end(self, event: Any) -> None:
        """Advance the bar by one function; end it with the function itself."""
        if self.bar is None:
            return
        self.n_done += 1
        self.bar.update(min(self.n_done, self.n_functions - 1), self.n_functions)
        if event.data.get("dispatcher") is self.dispatcher:
            self.bar.close()
            self.bar = None


def announce_compilation(dispatcher: Any, n_functions: int = N_FUNCTIONS) -> None:
    """Show a progress line whenever this function is compiled from now on; loading it from the cache on disk shows none.

    Parameters
    ----------
    dispatcher : function compiled by ``numba.njit``
        Any number of calls with the same function count as one.
    n_functions : int, default=26
        How many functions are compiled with it, about.

    Examples
    --------
    >>> from tamiz.engines import loop
    >>> announce_compilation(loop.run)
    """
    with _lock:
        if not any(known is dispatcher for known in _watched):
            _watched.append(dispatcher)
            event.register("numba:compile", _Notice(dispatcher, n_functions))
