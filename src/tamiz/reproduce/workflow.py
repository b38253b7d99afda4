"""Run a protocol from its plan to its files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tamiz.errors import MissingExtraError
from tamiz.reproduce.protocol import ComparisonPage, Protocol
from tamiz.reproduce.run_record import write_run_record
from tamiz.reproduce.runner import CellProgress, CellResults, run_cells
from tamiz.reproduce.store import CellStore, check_run_folder
from tamiz.reproduce.summary import ProtocolSummary


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
        From :func:`~tamiz.reproduce.registry.load_protocol`.
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
    >>> from tamiz.reproduce.registry import load_protocol
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
