"""Run the missing cells of a protocol in processes, store each result, and write the tables."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from tamiz._utils.extras import library_versions
from tamiz._utils.files import write_atomic
from tamiz.errors import MissingExtraError, TamizError, is_disk_full
from tamiz.paper.protocol import PROTOCOLS, Cell, Protocol, canonical_json, load_protocol

STORE_FORMAT = 2
#: Called with (done, total, name of the cell).
CellProgress = Callable[[int, int, str], None]


class StoreError(TamizError):
    """Raise if the folder of a run cannot be used; the message says what to do."""


@contextlib.contextmanager
def disk_faults(folder: Path) -> Generator[None, None, None]:
    """Turn faults of the disk into a :class:`StoreError` that says what to do.

    Examples
    --------
    >>> with disk_faults(Path("run")):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    tamiz.paper.runner.StoreError: The disk of run is full. Make room and start again: finished cells are kept ...
    """
    try:
        yield
    except OSError as fault:
        text = f"{folder} cannot be used ({fault.strerror or fault}). Name another folder with --out."
        if is_disk_full(fault):
            text = f"The disk of {folder} is full. Make room and start again: finished cells are kept and not computed twice."
        raise StoreError(text) from None


class CellStore:
    """Finished cells of a run in a folder, one file each.

    Parameters
    ----------
    folder : Path
        Created if it is missing.
    warn : callable, default=no-op
        Called with a sentence if a cell fails, or if a file is damaged; its cell is computed again.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = CellStore(Path(folder))
    ...     cell = Cell("microarray", "toy", {"unit": 0})
    ...     store.write(cell, {"score": 0.1})
    ...     store.read(cell)["result"], store.read(Cell("microarray", "toy", {"unit": 1}))
    ({'score': 0.1}, None)
    """

    def __init__(self, folder: Path, warn: Callable[[str], None] = lambda sentence: None) -> None:
        self.folder, self.warn = folder, warn
        with disk_faults(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):  # a folder that cannot be written fails before any work
                pass

    def path_of(self, cell: Cell) -> Path:
        """Path of a cell; two letters of its key name a folder, so that none gets too large."""
        return self.folder / cell.key[:2] / f"{cell.key}.json"

    def read(self, cell: Cell) -> Any:
        """Read the record of a cell (``result``, ``versions``, ``settings``), or None if it is missing or damaged."""
        path = self.path_of(cell)
        with disk_faults(path):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                return None
        try:
            record = json.loads(content)
            checksum = record.pop("checksum")
            if (record["format"], record["key"], _checksum(record)) != (STORE_FORMAT, cell.key, checksum):
                raise ValueError
            return record if "result" in record else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.warn(f"{path} is damaged; {cell.name} is computed again.")
            return None

    def write(self, cell: Cell, result: Any, versions: dict[str, str] | None = None) -> None:
        """Write the result of a cell, with its settings and the versions of what ran."""
        about = {"protocol": cell.protocol, "name": cell.name, "tamiz": cell.version, "settings": dict(cell.settings)}
        record = {"format": STORE_FORMAT, "key": cell.key, **about, "versions": versions or {}, "result": result}
        record["checksum"] = _checksum(record)
        path = self.path_of(cell)
        with disk_faults(self.folder):
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, canonical_json(record) + "\n")


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(record).encode()).hexdigest()


def execute(cell: Cell, data_home: str | None = None, path: str | None = None) -> dict[str, Any]:
    """Compute a cell on one thread: {"result": ...}, or {"failure": message} if the work itself raises.

    One thread, because sums over several may differ in their last digits, and because cells run in parallel.

    Parameters
    ----------
    cell : Cell
        What to compute.
    data_home : str or None, default=None
        Folder of the data sets.
    path : str or None, default=None
        "module:class" of the protocol; None looks it up by its name. Sent along to workers, whose registry lacks protocols
        that were registered by the caller.
    """
    try:
        protocol = load_protocol(path or cell.protocol)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        else:
            os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch reads it when it is loaded
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a learner that stops at its limit of steps is part of the measurement
            return {"result": protocol.run_cell(cell.settings, data_home)}
    except Exception as error:
        lines = str(error).strip().splitlines()
        return {"failure": f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__}


def _start_cell_worker() -> None:
    """End this worker with its parent: one that was killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_on_this_machine(
    cells: Sequence[Cell], jobs: int, data_home: str | None
) -> Generator[tuple[Cell, dict[str, Any]], None, None]:
    """Run cells in worker processes; yield each with what :func:`execute` returned, in the order in which they are finished.

    A worker that dies (for want of memory, say) breaks the whole pool, and the cell it had is not known. The cells that are
    left are then run by one process in their order, so that the next one that breaks it is known and counted as failed.
    """
    waiting = {cell.key: cell for cell in cells}
    n_workers = jobs
    while waiting:
        # Not forked: a fork of a process with threads (BLAS, torch, a test's) may hang.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(n_workers, mp_context=context, initializer=_start_cell_worker)
        try:
            futures = {
                pool.submit(execute, cell, data_home, PROTOCOLS.get(cell.protocol)): key
                for key, cell in waiting.items()
            }
            for future in as_completed(futures):
                outcome = future.result()
                yield waiting.pop(futures[future]), outcome
        except (BrokenProcessPool, OSError):
            if n_workers == 1:
                lost = waiting.pop(next(iter(waiting)))
                yield lost, {"failure": "the process that computed it was killed (out of memory?)"}
            n_workers = 1
        finally:  # also when the caller is interrupted: nothing goes on in the background
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass
class ProtocolRun:
    """Results of a run.

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
    sources : set of str
        Sources of the package that computed the cells, see :func:`source_of_package`.
    summary : ProtocolSummary or None
        Tables.
    files : dict of str to str
        Files that were written, by kind.
    """

    results: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    n_computed: int = 0
    n_reused: int = 0
    seconds: float = 0.0
    sources: set[str] = field(default_factory=set)
    summary: Any = None
    files: dict[str, str] = field(default_factory=dict)


def run_cells(
    cells: Sequence[Cell],
    store: CellStore,
    *,
    jobs: int = 1,
    data_home: str | None = None,
    progress: CellProgress = lambda done, total, note: None,
) -> ProtocolRun:
    """Compute the cells that are not in the store; a cell that fails is reported and does not stop the rest.

    Parameters are those of :func:`run_protocol`; equal cells are computed once.
    """
    started = time.perf_counter()
    run = ProtocolRun()
    missing: dict[str, Cell] = {}
    for cell in {cell.key: cell for cell in cells}.values():
        known = store.read(cell)
        if known is None:
            missing[cell.key] = cell
        else:
            run.results[cell.key] = known["result"]
            run.sources.add(known["versions"].get("source", "unknown"))
    run.n_reused = len(run.results)
    todo, versions = list(missing.values()), {**library_versions(), "source": source_of_package()}
    if todo:
        run.sources.add(versions["source"])
        with contextlib.closing(run_on_this_machine(todo, min(jobs, len(todo)), data_home)) as executed:
            for number, (cell, outcome) in enumerate(executed, start=1):
                if "failure" in outcome:
                    run.failures[cell.name] = outcome["failure"]
                    store.warn(f"{cell.name} failed: {outcome['failure']}")
                else:
                    store.write(cell, outcome["result"], versions)
                    run.results[cell.key] = outcome["result"]
                    run.n_computed += 1
                progress(number, len(todo), cell.name)
    run.seconds = time.perf_counter() - started
    return run


def source_of_package() -> str:
    """Hash the package's source files, the same for equal sources wherever they lie.

    Examples
    --------
    >>> source_of_package() == source_of_package() and source_of_package().startswith("source ")
    True
    """
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for kind in ("*.py", "*.json") for path in folder.rglob(kind)):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return f"source {digest.hexdigest()[:12]}"


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def run_protocol(
    protocol: Protocol,
    folder: Path,
    *,
    jobs: int | None = None,
    data_home: str | None = None,
    progress: CellProgress = lambda done, total, note: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> ProtocolRun:
    """Compute the missing cells of a protocol, and write tables and pictures.

    A run that is killed and started again with the same options and folder goes on where it was.

    Parameters
    ----------
    protocol : Protocol
        With its options, such as ``load_protocol("microarray")(datasets=["colon"])``.
    folder : Path
        Folder of the run, created if it is missing.
    jobs : int or None, default=None
        Processes on this machine; None is one per core.
    data_home : str or None, default=None
        Folder of the data sets.
    progress : callable, default=no-op
        Called with (done, total, name) after each cell.
    warn : callable, default=no-op
        Called with a sentence for whatever should be seen.

    Returns
    -------
    ProtocolRun

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = run_protocol(load_protocol("surfaces")(points=3), Path(folder))
    >>> sorted(run.files)[:3], run.summary.title
    (['figure', 'json', 'md'], 'Figure 1: the penalties')
    """
    store = CellStore(folder / "cells", warn)
    cells = protocol.make_cells(data_home)
    jobs = jobs or os.cpu_count() or 1
    run = run_cells(cells, store, jobs=jobs, data_home=data_home, progress=progress)
    run.summary = protocol.summarise(cells, run.results, run.failures)
    record = {
        "command": protocol.command,
        "options": vars(protocol),
        "sources": sorted(run.sources) or [source_of_package()],
        "versions": library_versions(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": run.summary.seconds,
    }
    texts = {
        "run": ("run.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n"),
        "md": ("results.md", f"## {run.summary.title}\n\n{run.summary.markdown.rstrip()}\n"),
        "json": ("results.json", json.dumps(run.summary.content, ensure_ascii=False, allow_nan=False) + "\n"),
    }
    with disk_faults(folder):
        for kind, (name, text) in texts.items():
            write_atomic(folder / name, text)
            run.files[kind] = str(folder / name)
    try:
        run.files.update(protocol.draw(run.summary, cells, run.results, folder))
    except MissingExtraError:
        warn("No figure: matplotlib is not installed (pip install 'tamiz[plot]').")
    return run
