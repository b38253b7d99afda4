"""How long the CSV reader and the encoder take against polars and scikit-learn, as ratios measured in one run.

    python benchmarks/tables.py [--small]

The readers get the same file of numbers with names and a column of text, and one thread. The encoders get the same data frame
of numbers with gaps, categories and dates. All take turns; printed are the median processor time of each, its ratio to ours,
and for the encoders the peak memory of ``fit_transform``. ``--small`` takes a tenth of the columns or rows, for a machine that
others are working on.
"""

from __future__ import annotations

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import argparse
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from tamiz.tables import TableEncoder, read_table

SIZES = ((60, 20_000), (600, 20_000), (20_000, 100))
TURNS = 3


def write_file(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a table of normal numbers with six digits and a target of two classes."""
    generator = np.random.default_rng(0)
    with open(path, "w") as file:
        file.write(",".join([*(f"gene {i}" for i in range(n_columns)), "kind"]) + "\n")
        for row in range(n_rows):
            values = (f"{value:.6g}" for value in generator.normal(size=n_columns))
            file.write(",".join([*values, "ab"[row % 2]]) + "\n")


def make_frame(n_rows: int) -> pandas.DataFrame:
    """Make a data frame of 40 numbers with gaps, ten categories of ten levels and two dates."""
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=(n_rows, 40))
    numbers[generator.random(numbers.shape) < 0.05] = np.nan
    frame = pandas.DataFrame(numbers, columns=[f"n{i}" for i in range(40)])
    for i in range(10):
        frame[f"c{i}"] = generator.choice([f"level {j}" for j in range(10)], n_rows)
    for i in range(2):
        frame[f"d{i}"] = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(generator.integers(0, 900, n_rows), "D")
    return frame


def as_days(frame: pandas.DataFrame) -> np.ndarray:
    """Turn dates into days."""
    return frame.to_numpy(dtype="datetime64[D]").astype(np.float64)


def column_transformer() -> Any:
    """Make what a user of scikit-learn writes for such a frame."""
    return make_column_transformer(
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include=np.number)),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_include=[object, "str"]),
        ),
        (FunctionTransformer(as_days), make_column_selector(dtype_include="datetime")),
    )


def measure(tasks: dict[str, Callable[[], object]], label: str, memory: bool = False) -> None:
    """Print the median processor seconds of each task, the tasks taking turns, and the ratio to the first."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(TURNS):
        for name, task in tasks.items():
            begin = time.process_time()
            task()
            times[name].append(time.process_time() - begin)
    seconds = {name: statistics.median(found) for name, found in times.items()}
    first = next(iter(seconds.values()))
    for name, task in tasks.items():
        peak = ""
        if memory:
            tracemalloc.start()
            task()
            peak = f"  peak {tracemalloc.get_traced_memory()[1] / 1e6:7.0f} MB"
            tracemalloc.stop()
        print(f"{label:>20} {name:>18} {seconds[name]:7.2f} s {seconds[name] / first:5.1f}x{peak}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="take a tenth of the columns or rows")
    part = 10 if parser.parse_args().small else 1
    with tempfile.TemporaryDirectory() as folder:
        for n_rows, n_columns in SIZES:
            path = Path(folder) / "table.csv"
            write_file(path, n_rows, n_columns // part)
            readers = {
                "read_table": lambda path=path: read_table(path, target="kind"),
                "polars.read_csv": lambda path=path: polars.read_csv(path),
            }
            measure(readers, f"{n_rows:,} x {n_columns // part:,}")
    frame = make_frame(100_000 // part)
    encoders = {
        "TableEncoder": lambda: TableEncoder().fit_transform(frame),
        "ColumnTransformer": lambda: column_transformer().fit_transform(frame),
    }
    measure(encoders, f"{len(frame):,} x 52", memory=True)
