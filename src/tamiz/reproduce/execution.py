"""Compute one cell, wherever it runs."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from tamiz.reproduce.cells import Cell
from tamiz.reproduce.registry import load_protocol

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
