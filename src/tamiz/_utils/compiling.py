"""Compile functions with numba, and keep the compiled code on disk for as long as the sources stay the same.

numba compares the file of a function with its compiled code, not the files of the functions that it calls, so that code of
an earlier version would run after an upgrade. The cache here depends on all sources that compiled code may come from.

A wheel may bring code that was compiled beforehand for processors like the user's (``make wheel``): it is read where the
cache holds nothing for this very processor. ``TAMIZ_PREBUILT=0`` and ``tamiz warm-up`` do without.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
from llvmlite import binding
from numba.core import ccallback, event, sigutils
from numba.core.caching import FunctionCache, IndexDataCacheFile

from tamiz._utils.progress import ProgressBar

PACKAGE = Path(__file__).parents[1]
#: Where a wheel holds code that was compiled beforehand, in a folder for each architecture.
PREBUILT = PACKAGE / "_prebuilt"
#: Rooms whose functions are compiled into others.
ROOMS = ("core", "rows", "pairs", "engines")
#: For each architecture the processor that prebuilt code is for, and what a processor must offer to run it.
PROCESSORS = {
    "x86_64": ("x86-64-v3", {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}),
    "aarch64": ("generic", {"neon"}),
}


@functools.cache
def source_stamp() -> str:
    """Digest of all sources that compiled code may come from."""
    paths = sorted(path for room in ROOMS for path in (PACKAGE / room).glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


@functools.cache
def portable_processor() -> str | None:
    """Name of the processor whose prebuilt code runs here; None if there is no such code or it is not wanted."""
    name, needed = PROCESSORS.get(platform.machine(), ("", set()))
    if not name or os.environ.get("TAMIZ_PREBUILT") == "0" or not (PREBUILT / platform.machine()).is_dir():
        return None
    features = binding.get_host_cpu_features()
    return name if all(features.get(one) for one in needed) else None


class SourceCache(FunctionCache):
    """Compiled code of a function on disk, for one state of the sources."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        stamp = (self._impl.locator.get_source_stamp(), source_stamp())
        self._cache_file, self._prebuilt_file = (
            IndexDataCacheFile(str(folder), self._impl.filename_base, stamp)
            for folder in (self._cache_path, PREBUILT / platform.machine())
        )

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super()._load_overload(sig, target_context)
        if found is None and self._enabled and (processor := portable_processor()) is not None:
            signature, (triple, _, _), hashes = self._index_key(sig, target_context.codegen())
            found = self._prebuilt_file.load((signature, (triple, processor, ""), hashes))
            found = None if found is None else self._impl.rebuild(target_context, found)
        return found


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function by ``numba.njit`` when it is first called, and keep the compiled code on disk."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options)(function)
        if compiled is not function:  # NUMBA_DISABLE_JIT gives it back as it is
            compiled._cache = SourceCache(function)
        return compiled

    return decorate


def compile_argument(function: Callable[..., Any], signature: Any, **options: Any) -> Any:
    """Compile a function of plain Python that compiled code takes as an argument, as ``numba.cfunc`` does."""
    compiled: Any = ccallback.CFunc(function, sigutils.normalize_signature(signature), {}, {"_nrt": False, **options})
    compiled._cache = SourceCache(function)
    # numba tells its listeners of functions that njit compiles, not of these: signals must wait for them, too.
    with event.trigger_event("numba:compile", {"dispatcher": SimpleNamespace(py_func=function)}):
        compiled.compile()
    # A call of compiled code looks up type and address of such an argument. Kept here, they are found at once: numba
    # would compare signatures, of which each name is read, for every function in every call.
    compiled._numba_type_ = numba.typeof(compiled)
    compiled.__wrapper_address__ = lambda: compiled.address
    return compiled


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
    """
    try:
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
