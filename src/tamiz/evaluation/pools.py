"""Run pieces of work in parallel: in threads for compiled code, in processes for torch."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from tamiz._utils.memory import available_memory

#: A piece of work; it calls what it is handed between its steps, and is stopped there when another piece has failed.
Work = Callable[[Callable[[], None]], Any]


class _Stopped(Exception):
    """Raise inside a piece of work after another piece has failed."""


def run_in_threads(pieces: Iterable[Work], n_jobs: int, tick: Callable[[], None] = lambda: None) -> list[Any]:
    """Run pieces of work in threads (compiled engines release the GIL); return their results in order.

    After an error or an interrupt, pieces that wait never start, and those that run stop at their next step.

    Examples
    --------
    >>> run_in_threads([lambda tick: 1, lambda tick: 2], n_jobs=2)
    [1, 2]
    """
    if n_jobs <= 1:
        return [piece(tick) for piece in pieces]
    stopped = threading.Event()

    def step() -> None:
        if stopped.is_set():
            raise _Stopped
        tick()

    pool = ThreadPoolExecutor(n_jobs)
    try:
        results = [future.result() for future in [pool.submit(piece, step) for piece in pieces]]
    except BaseException as error:
        stopped.set()
        # A piece may be compiling the engine, for half a minute: Ctrl-C does not wait for it.
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()
    return results


def count_jobs(n_jobs: int | None, n_pieces: int, memory: float) -> int:
    """Decide how many pieces of work run at a time: as many as there are cores, fewer if each takes much memory.

    Examples
    --------
    >>> count_jobs(3, 2, 1e6), count_jobs(None, 5, 1e15)
    (2, 1)
    """
    if n_jobs is not None:
        if n_jobs < 1:
            raise ValueError(f"n_jobs must be at least 1, got {n_jobs}.")
        return min(n_jobs, n_pieces)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    available = available_memory()
    if available is not None and memory:
        cores = min(cores, max(1, int(available / 2 / memory)))
    return min(cores, n_pieces)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread: faster for small networks, and the result does not depend on the machine's cores.

    Examples
    --------
    >>> with one_torch_thread():
    ...     import torch
    ...     torch.get_num_threads()
    1
    """
    if find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_in_processes(
    function: Callable[..., Any],
    shared: Any,
    pieces: Sequence[tuple[Any, ...]],
    n_jobs: int,
    done: Callable[[int], None] = lambda number: None,
) -> list[Any]:
    """Call ``function(shared, *piece)`` for every piece in processes with one torch thread each; return results in order.

    A network is trained by many short calls that hold the GIL, and torch has one random generator: threads would neither
    be faster nor give reproducible results. With one job no process is started.

    Parameters
    ----------
    function : callable
        A function of a module, so that other processes can import it.
    shared : object
        First argument of all calls; sent to each process once.
    pieces : sequence of tuple
        Further arguments of each call, begun in this order: the longest first keeps all processes busy to the end.
    n_jobs : int
        Number of processes.
    done : callable, default=no-op
        Called with the number of each piece that is done.

    Examples
    --------
    >>> run_in_processes(pow, 2, [(3,), (5,)], n_jobs=1)
    [8, 32]
    """
    if n_jobs <= 1:
        with one_torch_thread():
            return [_run_here(function, shared, piece, done, number) for number, piece in enumerate(pieces)]
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(n_jobs, len(pieces)),
        # Not fork: threads of other libraries run already, and a forked child would inherit the locks they hold.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_evaluation_worker,
        initargs=(function, shared),
    )
    try:
        with _no_interrupt():  # the processes start here and inherit it
            numbers = {pool.submit(_run_piece, piece): number for number, piece in enumerate(pieces)}
        results: list[Any] = [None] * len(pieces)
        for future in as_completed(numbers):
            results[numbers[future]] = future.result()
            done(numbers[future])
    except BaseException as error:
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        pool.shutdown(cancel_futures=True)
        del pool  # frees its semaphores, also where the process is about to end without its exit handlers
        if isinstance(error, BrokenProcessPool):
            raise MemoryError(
                "A process that trained a fold was ended from outside, most often for want of memory."
            ) from None
        raise
    pool.shutdown()
    return results


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Block Ctrl-C for processes started inside: it reaches every process of a terminal, the first one ends the others."""
    if not hasattr(
        signal, "pthread_sigmask"
    ):  # Windows: a worker ignores the signal once it runs, see _start_evaluation_worker
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_here(
    function: Callable[..., Any], shared: Any, piece: tuple[Any, ...], done: Callable[[int], None], number: int
) -> Any:
    result = function(shared, *piece)
    done(number)
    return result


#: Function and first argument of this worker process; set when it starts.
_work: tuple[Callable[..., Any], Any] | None = None


def _start_evaluation_worker(function: Callable[..., Any], shared: Any) -> None:
    global _work
    warnings.simplefilter("ignore")  # the process that reads the results reports what matters
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:  # a parent that is killed cannot end its children
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
    _work = function, shared


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _run_piece(piece: tuple[Any, ...]) -> Any:
    assert _work is not None
    function, shared = _work
    return function(shared, *piece)
