"""Run the missing cells of a protocol in processes or on a Dask cluster, and store each as it is finished."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.connection import wait as wait_for_processes
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from tamiz.errors import MissingExtraError, TamizError
from tamiz.evaluation.stability import library_versions
from tamiz.paper.protocol import ComparisonPage, Protocol, load_protocol, protocol_path
from tamiz.paper.results import write_run_record
from tamiz.paper.store import Cell, CellStore, ProtocolSummary, check_run_folder

#: Cells with what :func:`execute` returned, in the order in which they are finished.
Executed = Generator[tuple[Cell, dict[str, Any]], None, None]


def execute(cell: Cell, data_home: str | None = None, path: str | None = None) -> dict[str, Any]:
    """Compute a cell on one thread: {"result": ...}, or {"failure": message} if the work itself raises.

    One thread, because sums over several may differ in their last digits, and because cells run in parallel.

    Parameters
    ----------
    cell : Cell
        What to compute.
    data_home : str or None, default=None
        Folder of the data sets; a machine that has no such folder looks in its own data home.
    path : str or None, default=None
        "module:class" of the protocol; None looks it up by its name. Sent along to workers, whose registry lacks protocols
        that were registered by the caller.
    """
    folder = data_home if data_home is not None and Path(data_home).is_dir() else None
    try:
        protocol = load_protocol(path or cell.protocol)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        else:
            os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch reads it when it is loaded
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a learner that stops at its limit of steps is part of the measurement
            return {"result": protocol.run_cell(cell.settings, folder)}
    except Exception as error:
        lines = str(error).strip().splitlines()
        return {"failure": f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__}


#: Seconds to wait for a scheduler to answer.
CONNECT_TIMEOUT = 10.0
#: How often a cell is tried again elsewhere when a worker that had it dies.
RETRIES = 3


class ClusterError(TamizError):
    """Raise if the cluster cannot be reached or was lost; the message says what to do."""


def _check_address(address: str) -> None:
    """Raise a ValueError for an address that no scheduler can have: a client made with it prints a traceback of its own."""
    from distributed.comm import registry
    from distributed.comm.addressing import parse_address, parse_host_port

    scheme, place = parse_address(address)
    registry.get_backend(scheme)
    if scheme in ("tcp", "tls"):
        parse_host_port(place)


def run_on_cluster(cells: Sequence[Cell], address: str, data_home: str | None) -> Executed:
    """Send all cells to the scheduler at ``address``; a worker that dies loses nothing, its cells go to another.

    Parameters
    ----------
    cells : sequence of Cell
        Cells to compute.
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.5:8786``.
    data_home : str or None
        Folder of the data sets on the workers; a worker that has no such folder looks in its own data home.
    """
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise ClusterError("--dask needs Dask: pip install 'dask[distributed]'.") from None
    from concurrent.futures import CancelledError

    try:
        _check_address(address)
        client = Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as fault:
        reason = f" ({fault})" if isinstance(fault, (ValueError, TypeError)) else ""
        raise ClusterError(
            f"No Dask scheduler answers at {address!r}{reason}. Start one (dask scheduler; dask worker {address}), or "
            "leave --dask out to run on this machine."
        ) from None
    with client:
        # Named by their keys: a second start on the same cluster never shares half-forgotten futures of the first.
        futures = {
            client.submit(
                execute,
                cell,
                data_home,
                protocol_path(cell.protocol),
                key=f"tamiz-{client.id}-{cell.key}",
                retries=RETRIES,
            ): cell
            for cell in cells
        }
        for future in as_completed(list(futures), loop=client.loop):
            cell = futures[future]
            try:
                outcome = future.result()
            except KilledWorker:
                outcome = {"failure": "every worker that computed it died (out of memory?)"}
            except CancelledError:
                raise ClusterError(
                    f"The connection to {address!r} was lost. Start again: finished cells are kept."
                ) from None
            except Exception as fault:  # a worker that cannot load this package, for one
                outcome = {"failure": f"{type(fault).__name__}: {fault}"}
            future.release()
            yield cell, outcome


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


@dataclass(frozen=True)
class ProtocolRun:
    """Hold what a run gave.

    Attributes
    ----------
    summary : ProtocolSummary
        Tables.
    cells : CellResults or None
        Results and failures; None for a protocol without cells.
    files : dict of str to str
        Files that were written, by kind.
    pages : list of ComparisonPage
        Comparisons that can be written as report pages.
    """

    summary: ProtocolSummary
    cells: CellResults | None
    files: dict[str, str]
    pages: list[ComparisonPage] = field(default_factory=list)


def run_protocol(
    protocol: Protocol,
    plan: Any,
    folder: Path,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    data_home: str | None = None,
    command: str | None = None,
    progress: CellProgress = lambda done, total, note: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> ProtocolRun:
    """Compute the missing cells of a plan, and write tables and pictures.

    A run that is killed and started again with the same plan and folder goes on where it was.

    Parameters
    ----------
    protocol : Protocol
        From :func:`~tamiz.paper.protocol.load_protocol`.
    plan : object
        From its ``make_plan``.
    folder : Path
        Folder of the run, created if it is missing.
    jobs : int or None, default=None
        Processes on this machine; None is one per core.
    dask : str or None, default=None
        Address of a Dask scheduler, to which the cells go instead.
    data_home : str or None, default=None
        Folder of the data sets.
    command : str or None, default=None
        Command that made the plan, for ``run.json``.
    progress : callable, default=no-op
        Called with (done, total, name) after each cell.
    warn : callable, default=no-op
        Called with a sentence for whatever should be seen.

    Returns
    -------
    ProtocolRun

    Examples
    --------
    >>> import tempfile
    >>> from tamiz.paper.protocol import load_protocol
    >>> surfaces = load_protocol("surfaces")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = run_protocol(surfaces, surfaces.make_plan(n_points=3), Path(folder))
    >>> sorted(run.files)[:3], run.summary.title
    (['csv', 'figure', 'json'], 'Figure 1: the penalties')
    """
    check_run_folder(folder)
    cells = protocol.make_cells(plan, data_home)
    done = None
    if cells:
        store = CellStore(folder / "cells", warn)
        jobs = jobs or os.cpu_count() or 1
        done = run_cells(cells, store, jobs=jobs, dask=dask, data_home=data_home, progress=progress, warn=warn)
    results, failures = (done.results, done.failures) if done else ({}, {})
    summary = protocol.summarise(plan, cells, results, failures)
    files = summary.write(folder)
    files["run"] = str(write_run_record(folder, command))
    try:
        files.update(protocol.draw(summary, cells, results, folder))
    except MissingExtraError:
        warn("No figure: matplotlib is not installed (pip install 'tamiz[plot]').")
    return ProtocolRun(summary, done, files, protocol.comparisons(plan, cells, results))
