"""Run the missing cells in processes on this machine or on a Dask cluster, and store each as it is finished."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.connection import wait as wait_for_processes
from typing import Any

from tamiz.evaluation.versions import library_versions
from tamiz.reproduce.cells import Cell
from tamiz.reproduce.dask_runner import run_on_cluster
from tamiz.reproduce.execution import Executed, execute
from tamiz.reproduce.registry import protocol_path
from tamiz.reproduce.store import CellStore

#: Called with (done, total, name of the cell).
CellProgress = Callable[[int, int, str], None]
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class CellResults:
    """Hold the results of a run.

    Attributes
    ----------
    results : dict of str to result
        Results by the key of the cell.
    failures : dict of str to str
        Messages by the name of the cell.
    n_computed, n_reused : int
        Numbers of cells computed now, and found finished.
    seconds : float
        Wall time of this run.
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
    progress: CellProgress = lambda done, total, note: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> CellResults:
    """Compute the cells that are not in the store; a cell that fails is reported and does not stop the rest.

    Parameters
    ----------
    cells : sequence of Cell
        All cells of the run; equal ones are computed once.
    store : CellStore
        Finished cells; new ones are added as they are finished.
    jobs : int, default=1
        Processes on this machine.
    dask : str or None, default=None
        Address of a Dask scheduler, to which the cells go instead.
    data_home : str or None, default=None
        Folder of the data sets.
    progress : callable, default=no-op
        Called with (done, total, name) after each cell.
    warn : callable, default=no-op
        Called with a sentence for each cell that fails.

    Returns
    -------
    CellResults
    """
    started = time.perf_counter()
    report = CellResults()
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
            executed = run_on_this_machine(todo, min(jobs, len(todo)), data_home)
        else:
            executed = run_on_cluster(todo, dask, data_home)
        with contextlib.closing(executed):
            for number, (cell, outcome) in enumerate(executed, start=1):
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


def _start_cell_worker() -> None:
    """End this worker with its parent: one that was killed cannot end its workers."""
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
    """Set the environment of the workers to one thread; libraries read it when they are loaded."""
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
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_cell_worker)


def run_on_this_machine(cells: Sequence[Cell], jobs: int, data_home: str | None) -> Executed:
    """Run cells in worker processes, a few at a time.

    A worker that dies (for want of memory, say) breaks the whole pool, and the cell it had is not known: those that were
    under way are then run one at a time, so that only the cell that ends its worker fails.
    """
    waiting = deque(cells)
    retried: deque[Cell] = deque()
    while waiting or retried:
        one_by_one = bool(retried)
        queue = retried if one_by_one else waiting
        with _one_thread_each():
            under_way: dict[Future[Any], Cell] = {}
            pool = _make_pool(1 if one_by_one else jobs)
            try:
                while queue or under_way:
                    while queue and len(under_way) < (1 if one_by_one else 2 * jobs):
                        cell = queue.popleft()
                        try:
                            under_way[pool.submit(execute, cell, data_home, protocol_path(cell.protocol))] = cell
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
                if one_by_one:
                    for cell in under_way.values():
                        yield cell, {"failure": "the process that computed it was killed (out of memory?)"}
                else:
                    retried.extend(under_way.values())
            finally:
                # Also when the caller is interrupted: nothing goes on in the background.
                for process in list((pool._processes or {}).values()):
                    if under_way:
                        process.terminate()
                pool.shutdown(wait=True, cancel_futures=True)
