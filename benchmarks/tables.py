"""How long the CSV reader takes against pyarrow.csv and polars, as ratios measured in one run.

    python benchmarks/tables.py [--small]

Each reader gets the same file of numbers with names and a column of text, and one thread. The readers take turns; printed is
the median processor time of each and its ratio to ours. ``--small`` reads a tenth of the columns, for a machine that others
are working on.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pyarrow.csv

from tamiz.tables import MemoryBudget, ReadOptions, read_file

SIZES = ((60, 20_000), (600, 20_000), (20_000, 100))
TURNS = 3


def write_file(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a table of normal numbers with six digits and a target of two classes."""
    generator = np.random.default_rng(0)
    with open(path, "w") as file:
        file.write(",".join([*(f"gene {i}" for i in range(n_columns)), "kind"]) + "\n")
        for row in range(n_rows):
            file.write(
                ",".join([*(f"{value:.6g}" for value in generator.normal(size=n_columns)), "ab"[row % 2]]) + "\n"
            )


def read_ours(path: Path) -> object:
    """Read with tamiz."""
    return read_file(path, ReadOptions(target="kind"), MemoryBudget())


def read_pyarrow(path: Path) -> object:
    """Read with pyarrow, one thread."""
    return pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(use_threads=False))


def read_polars(path: Path) -> object:
    """Read with polars, one thread."""
    return polars.read_csv(path)


def measure(readers: dict[str, Callable[[Path], object]], path: Path) -> dict[str, float]:
    """Return the median processor seconds of each reader, the readers taking turns."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(TURNS):
        for name, read in readers.items():
            begin = time.process_time()
            read(path)
            times[name].append(time.process_time() - begin)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="read a tenth of the columns")
    small = parser.parse_args().small
    pa.set_cpu_count(1)
    readers = {"tamiz": read_ours, "pyarrow": read_pyarrow, "polars": read_polars}
    print(f"{'rows x columns':>20} {'tamiz':>9} {'pyarrow':>16} {'polars':>16}")
    with tempfile.TemporaryDirectory() as folder:
        for n_rows, n_columns in SIZES:
            n_columns = n_columns // 10 if small else n_columns
            path = Path(folder) / "table.csv"
            write_file(path, n_rows, n_columns)
            seconds = measure(readers, path)
            ratios = [
                f"{seconds[name]:7.2f} s {seconds[name] / seconds['tamiz']:5.1f}x" for name in ("pyarrow", "polars")
            ]
            print(
                f"{n_rows:>9,} x {n_columns:>8,} {seconds['tamiz']:7.2f} s {ratios[0]:>16} {ratios[1]:>16}", flush=True
            )
