"""Run pieces of work in parallel: in threads for compiled code, in processes for torch, or on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor

from tamiz._utils.extras import active_client
from tamiz._utils.memory import available_memory, one_blas_thread


def run_parallel(
    function: Callable[..., Any],
    pieces: Sequence[tuple[Any, ...]],
    n_jobs: int,
    done: Callable[[int], None] = lambda n_done: None,
    *,
    in_threads: bool = True,
) -> list[Any]:
    """Call a function with each piece; return the results in order.

    Compiled engines release the GIL and run in threads. Networks of torch are trained in processes: their Python code holds the
    GIL, and torch has one random generator, which threads would share. While a Dask client is active, its workers run the
    pieces instead. After an error, pieces that wait never start.

    Parameters
    ----------
    function : callable
        What to call.
    pieces : sequence of tuple
        Arguments of each call.
    n_jobs : int
        Calls that run at a time; with one, everything runs in this thread.
    done : callable, default=no-op
        Called after each piece, in order, with the number of pieces that are done.
    in_threads : bool, default=True
        Whether to use threads, not processes.

    Examples
    --------
    >>> run_parallel(pow, [(2, 3), (2, 5)], n_jobs=2)
    [8, 32]
    """
    if not isinstance(n_jobs, int) or n_jobs < 1:
        raise ValueError(f"n_jobs must be at least 1, got {n_jobs!r}.")
    results: list[Any] = []

    def collect(calls: Iterable[Any]) -> list[Any]:
        for result in calls:
            results.append(result)
            done(len(results))
        return results

    client = active_client()
    if client is not None:
        work = client.scatter((function, list(pieces), in_threads), broadcast=True, hash=False)  # once to each worker
        futures = client.map(_run_piece, range(len(pieces)), work=work, pure=False)
        return collect(future.result() for future in futures)
    with one_torch_thread(not in_threads):
        if n_jobs == 1:
            return collect(function(*piece) for piece in pieces)
        # loky starts processes anew, without the locks of this one, and can run functions that are not part of a module.
        limits = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        pool = ThreadPoolExecutor(n_jobs) if in_threads else ProcessPoolExecutor(n_jobs, env=limits)
        try:
            with one_blas_thread():  # the pieces fill the cores
                futures = [pool.submit(function, *piece) for piece in pieces]
                collect(future.result() for future in futures)
        except BaseException as error:
            # A piece may be compiling the engine, for half a minute: Ctrl-C does not wait for it.
            how = {"cancel_futures": True} if in_threads else {"kill_workers": True}
            pool.shutdown(wait=isinstance(error, Exception), **how)
            raise
        pool.shutdown()
    return results


def _run_piece(number: int, work: tuple[Any, ...]) -> Any:
    function, pieces, in_threads = work
    with one_torch_thread(not in_threads):
        return function(*pieces[number])


def count_jobs(n_jobs: int | None, n_pieces: int, memory: float) -> int:
    """Decide how many pieces of work run at a time: as many as there are cores, fewer if each takes much memory.

    Examples
    --------
    >>> count_jobs(3, 2, 1e6), count_jobs(None, 5, 1e15)
    (2, 1)
    """
    if n_jobs is not None and n_jobs < 1:
        raise ValueError(f"n_jobs must be at least 1, got {n_jobs}.")
    available = available_memory()
    if n_jobs is None:
        n_jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if available is not None and memory:
            n_jobs = min(n_jobs, max(1, int(available / 2 / memory)))
    return min(n_jobs, n_pieces)


@contextmanager
def one_torch_thread(wanted: bool = True) -> Iterator[None]:
    """Limit torch to one thread: faster for small networks, and the result does not depend on the machine's cores.

    Examples
    --------
    >>> with one_torch_thread():
    ...     import torch
    ...     torch.get_num_threads()
    1
    """
    if not wanted or find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
