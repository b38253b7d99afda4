"""A word on stderr when numba compiles the engine, which takes seconds and happens once on a machine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_said = threading.Event()


class _Notice(event.Listener):
    """Numba tells of a compilation when it begins, after it has looked in its cache on disk."""

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    def on_start(self, event: Any) -> None:
        """Say it once a process."""
        if event.data.get("dispatcher") is self.dispatcher and not _said.is_set():
            _said.set()
            print("tamiz: compiling the engine for this machine, once; about 20 s ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Nothing: the fit goes on."""


@contextmanager
def compile_notice() -> Iterator[None]:
    """While this is open, the first compilation of the engine is announced; one that comes from the cache is not.

    Examples
    --------
    >>> with compile_notice():
    ...     pass
    """
    from tamiz.linear import engine

    with event.install_listener("numba:compile", _Notice(engine.run)):
        yield
