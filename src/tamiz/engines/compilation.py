"""Watch numba compile and call the engine: show a progress line, defer Ctrl-C where it would be lost or do harm."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

from numba.core import event

from tamiz._utils.progress import ProgressBar


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


#: Signals that may raise KeyboardInterrupt. Windows has no SIGHUP.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class InterruptGuard(event.Listener):
    """Defer interrupts until a function of a package is compiled.

    An exception inside numba leaves its state unusable, and one inside a callback of LLVM is lost. A second signal is not
    deferred. Compilation in other threads is never interrupted and not touched.

    Parameters
    ----------
    package : str, default="tamiz"
        Name of the package.
    """

    def __init__(self, package: str = "tamiz") -> None:
        self.package = package
        self._depth = 0
        self._before: dict[int, Any] = {}
        self._waiting: tuple[Any, ...] | None = None

    def _concerns(self, event: Any) -> bool:
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        module = getattr(function, "__module__", None) or ""
        return threading.current_thread() is threading.main_thread() and (
            self._depth > 0 or module.partition(".")[0] == self.package
        )

    def on_start(self, event: Any) -> None:
        """Take over the signal at the outermost function."""
        if not self._concerns(event):
            return
        self._depth += 1
        if self._depth == 1:
            self._waiting = None
            self._before = {one: handler for one in _SIGNALS if callable(handler := signal.getsignal(one))}
            for one in self._before:
                signal.signal(one, self._remember)

    def _remember(self, *arguments: Any) -> None:
        if self._waiting is not None:
            self._before[arguments[0]](*arguments)
        self._waiting = arguments

    def on_end(self, event: Any) -> None:
        """Give the signal back after the outermost function, and deliver what has come."""
        if self._depth == 0 or not self._concerns(event):
            return
        self._depth -= 1
        if self._depth > 0:
            return
        before, waiting, self._before, self._waiting = self._before, self._waiting, {}, None
        for one, handler in before.items():
            signal.signal(one, handler)
        if waiting is not None:
            before[waiting[0]](*waiting)


event.register("numba:compile", InterruptGuard())


def call_loop(loop: Any, *arguments: Any) -> Any:
    """Call a compiled loop that takes functions; raise KeyboardInterrupt for a Ctrl-C while numba reads them.

    numba overwrites that exception with the TypeError of a call that it makes without the argument that it could not read.
    A cache on disk that an earlier version wrote may name types that are no longer there: it is emptied.
    """
    try:
        return loop(*arguments)
    except AttributeError as error:
        if "Can't get attribute" not in str(error):
            raise
        loop._cache.flush()
        return loop(*arguments)
    except TypeError as error:
        if "_get_wrapper_address() missing" in str(error):
            raise KeyboardInterrupt from None
        raise


def announce_compilation(dispatcher: Any, n_functions: int) -> None:
    """Show a progress line whenever this function is compiled from now on; loading it from the cache on disk shows none.

    Parameters
    ----------
    dispatcher : function compiled by ``numba.njit``
    n_functions : int
        How many functions are compiled with it, about.
    """
    event.register("numba:compile", _Notice(dispatcher, n_functions))
