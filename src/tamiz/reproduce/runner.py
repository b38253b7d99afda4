"""Run the cells that are missing: in processes on this machine, or on a Dask cluster; keep each as it is finished."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib import metadata
from multiprocessing.connection import wait as wait_for_processes
from typing import Any

from tamiz.reproduce.cells import Cell, execute
from tamiz.reproduce.store import CellStore

#: (done, all, note)
Progress = Callable[[int, int, str], None]
#: Cell -> what :func:`execute` returned, in the order in which they are finished.
Outcomes = Generator[tuple[Cell, dict[str, Any]], None, None]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class RunReport:
    """What a run did.

    Attributes
    ----------
    results : dict of str to result
        By the key of the cell.
    failures : dict of str to str
        By the name of the cell, with the message.
    n_computed, n_reused : int
        Cells computed now, and found finished.
    seconds : float
        Wall time of this start.
    """

    results: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    n_computed: int = 0
    n_reused: int = 0
    seconds: float = 0.0


def run_cells(
    cells: Sequence[Cell],
    store: CellStore,
    *,
    jobs: int = 1,
    dask: str | None = None,
    data_home: str | None = None,
    progress: Progress = lambda done, total, note: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> RunReport:
    """Compute what is missing; a cell that fails is reported and does not stop the rest.

    Parameters
    ----------
    cells : sequence of Cell
        All cells of the run; equal ones are computed once.
    store : CellStore
        Where finished cells are, and go.
    jobs : int
        Processes on this machine.
    dask : str or None
        The address of a Dask scheduler, to which the cells go instead.
    data_home : str or None
        Where the data sets are.
    progress, warn : callable
        Told how far it is, and what failed.
    """
    started = time.perf_counter()
    report = RunReport()
    missing: dict[str, Cell] = {}
    for cell in cells:
        if cell.key in report.results or cell.key in missing:
            continue
        known = store.read(cell)
        if known is None:
            missing[cell.key] = cell
        else:
            report.results[cell.key] = known
    report.n_reused = len(report.results)
    versions = library_versions()
    if missing:
        todo = list(missing.values())
        if dask is None:
            outcomes = run_in_processes(todo, min(jobs, len(todo)), data_home)
        else:
            from tamiz.reproduce.dask_runner import run_on_cluster

            outcomes = run_on_cluster(todo, dask, data_home)
        with contextlib.closing(outcomes):
            for number, (cell, outcome) in enumerate(outcomes, start=1):
                if "failure" in outcome:
                    report.failures[cell.name] = outcome["failure"]
                    warn(f"{cell.name} failed: {outcome['failure']}")
                else:
                    store.write(cell, outcome["result"], versions)
                    report.results[cell.key] = outcome["result"]
                    report.n_computed += 1
                progress(number, len(todo), cell.name)
    report.seconds = time.perf_counter() - started
    return report


def library_versions() -> dict[str, str]:
    """Versions of the packages that decide the numbers, as far as they are installed.

    Examples
    --------
    >>> "numpy" in library_versions()
    True
    """
    found = {}
    for package in ("tamiz", "numpy", "scipy", "scikit-learn", "numba", "torch"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _start_worker() -> None:
    """A worker whose parent was killed ends too, rather than waiting for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait_for_processes([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """The environment of the workers: libraries read it when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _make_pool(jobs: int) -> ProcessPoolExecutor:
    # Not forked: a fork of a process with threads (BLAS, torch, a test's) may hang.
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker)


def run_in_processes(cells: Sequence[Cell], jobs: int, data_home: str | None) -> Outcomes:
    """Cells in worker processes, a few at a time.

    A worker that dies (killed for want of memory, say) takes the whole pool with it, and does not tell which cell it
    had: those that were under way are then run one at a time, so that only the guilty one fails.
    """
    waiting = deque(cells)
    suspects: deque[Cell] = deque()
    while waiting or suspects:
        alone = bool(suspects)
        queue = suspects if alone else waiting
        with _one_thread_each():
            under_way: dict[Future[Any], Cell] = {}
            pool = _make_pool(1 if alone else jobs)
            try:
                while queue or under_way:
                    while queue and len(under_way) < (1 if alone else 2 * jobs):
                        cell = queue.popleft()
                        try:
                            under_way[pool.submit(execute, cell, data_home)] = cell
                        except (BrokenProcessPool, OSError) as fault:
                            queue.appendleft(cell)
                            # A pool that breaks while it starts a process finds its own pipes closed.
                            if isinstance(fault, OSError) and pool._broken:
                                raise BrokenProcessPool(str(fault)) from fault
                            raise
                    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                    for future in done:
                        outcome = future.result()
                        yield under_way.pop(future), outcome
            except BrokenProcessPool:
                if alone:
                    for cell in under_way.values():
                        yield cell, {"failure": "the process that computed it was killed (out of memory?)"}
                else:
                    suspects.extend(under_way.values())
            finally:
                # Also when the caller is interrupted: nothing goes on in the background.
                for process in list((pool._processes or {}).values()):
                    if under_way:
                        process.terminate()
                pool.shutdown(wait=True, cancel_futures=True)
