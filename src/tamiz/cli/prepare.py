"""What ``select`` and ``compare`` share: a table that is read, understood, and cut into folds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._validation import resolve_n_features_to_select
from tamiz.cli.columns import say_encoding, tidy
from tamiz.cli.console import Talk
from tamiz.cli.encode import Encoder, Feature, layout
from tamiz.cli.errors import EXIT_USAGE, UserError, shorten
from tamiz.cli.memory import MemoryBudget, available_memory
from tamiz.cli.read import ReadOptions, read_table
from tamiz.cli.table import Table
from tamiz.cli.target import Target, understand_target
from tamiz.evaluation.folds import Fold, make_folds

#: Copies of the table a run holds at a time: the table itself, and for each fold that runs its rows, prepared, and
#: two copies in the engine.
COPIES_PER_FOLD = 3
#: What a process takes that has loaded torch.
TORCH_BYTES = 400 * 1024**2


@dataclass(frozen=True)
class TableOptions:
    """What the user said about the table and the folds."""

    file: Path
    target: str | None = None
    task: str | None = None
    ignore: Sequence[str] = ()
    categorical: Sequence[str] = ()
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    max_categories: int = 50
    n_folds: int = 5
    n_repeats: int = 1
    seed: int = 0
    n_jobs: int | None = None


@dataclass
class Prepared:
    """A table ready for the folds."""

    table: Table
    target: Target
    features: list[Feature]
    folds: list[Fold]
    n_jobs: int
    seconds_reading: float = 0.0
    rows_in_file: int = 0

    @property
    def y(self) -> np.ndarray:
        """The target of the rows that have one."""
        return self.target.y

    def prepare(self, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        """The matrices of one fold; medians and categories come from the training rows."""
        encoder = Encoder(self.features).fit(self.table, train)
        return encoder.transform(self.table, train), encoder.transform(self.table, test)

    def whole(self) -> tuple[Encoder, Any]:
        """The encoder and the matrix of all rows, for the final model."""
        encoder = Encoder(self.features).fit(self.table)
        return encoder, encoder.transform(self.table)


def parse_k(text: str) -> int | float:
    """M as it is typed: a number, or a fraction below 1.

    Examples
    --------
    >>> parse_k("10"), parse_k("0.1")
    (10, 0.1)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise UserError(
            f"-k must be a number such as 10, or a fraction such as 0.1; got {text!r}.", EXIT_USAGE
        ) from None


def resolve_k(k: int | float, n_features: int) -> int:
    """M for a table with so many features."""
    try:
        return resolve_n_features_to_select(k, n_features)
    except ValueError as error:
        message = str(error).replace("n_features_to_select", "-k")
        raise UserError(message, EXIT_USAGE) from None


def in_percent(tick: Callable[[], None]) -> Callable[[int, int], None]:
    """From "so many of so many rows" to one call a percent.

    Examples
    --------
    >>> calls = []
    >>> told = in_percent(lambda: calls.append(1))
    >>> told(1, 50), told(50, 50), len(calls)
    (None, None, 100)
    """
    shown = 0

    def on_rows(done: int, total: int) -> None:
        nonlocal shown
        while shown < 100 * done // max(1, total):
            shown += 1
            tick()

    return on_rows


def load_table(
    options: TableOptions,
    talk: Talk,
    check: Callable[[int], None] = lambda n_features: None,
    processes: bool = False,
) -> Prepared:
    """Read a table, understand its columns and its target, say it aloud, and make the folds.

    Parameters
    ----------
    options : TableOptions
        What the user said.
    talk : Talk
        Where remarks go.
    check : callable
        Told the number of features as soon as it is known, to refuse a wrong M before anything slow.
    processes : bool, default=False
        Whether the folds will run in processes, which hold more than threads do.
    """
    started = time.perf_counter()
    read_options = ReadOptions(
        target=options.target,
        need_target=True,
        ignore=options.ignore,
        categorical=options.categorical,
        format=options.format,
        delimiter=options.delimiter,
        header=options.header,
        run_factor=1 + COPIES_PER_FOLD,
    )
    with talk.progress("reading", 100) as tick:
        table = read_table(options.file, read_options, MemoryBudget(talk.say), in_percent(tick))
    layout_found = table.options.get("layout")
    if layout_found is not None and not layout_found.has_header and options.header is None:
        talk.say(
            "The first row holds only numbers, so it is data; columns are called column_1, column_2, ... (--header)"
        )
    tidy(table, options.max_categories, talk.say)
    target = understand_target(table, options.task, talk.say)
    rows_in_file = table.n_rows
    if target.rows.size < table.n_rows:
        table = table.take(target.rows)
        # Columns whose only values stood in the rows that went are empty now.
        tidy(table, options.max_categories, lambda sentence: None)
    say_encoding(table, talk.say)
    features = layout(table)
    check(len(features))
    folds = _folds(target, options, talk)
    seconds = time.perf_counter() - started
    n_jobs = _jobs(options, table, len(features), len(folds), processes)
    return Prepared(table, target, features, folds, n_jobs, seconds, rows_in_file)


def _folds(target: Target, options: TableOptions, talk: Talk) -> list[Fold]:
    n_folds = options.n_folds
    if n_folds < 2 or options.n_repeats < 1:
        raise UserError("--folds must be at least 2 and --repeats at least 1.", EXIT_USAGE)
    most = target.y.size
    if target.task == "classification":
        labels, counts = np.unique(target.y, return_counts=True)
        most = int(counts.min())
        rare = labels[int(counts.argmin())]
        if most < 2:
            raise UserError(
                f"Class {shorten(rare)} of the target has one row only, which cannot be both learnt and tested. "
                "Leave that row out, or join the class with another."
            )
        if n_folds > most:
            talk.say(f"Folds: {most} instead of {n_folds}, since class {shorten(rare)} has {most} rows only.")
    elif most < 4:
        raise UserError(f"There are {most} rows with a target; at least 4 are needed.")
    elif n_folds > most:
        talk.say(f"Folds: {most} instead of {n_folds}, since there are {most} rows only.")
    return make_folds(target.y, target.task, min(n_folds, most), options.n_repeats, options.seed)


def _jobs(options: TableOptions, table: Table, n_features: int, n_folds: int, processes: bool) -> int:
    """Folds side by side: as many as there are cores, fewer where memory is short."""
    if options.n_jobs is not None:
        if options.n_jobs < 1:
            raise UserError("--jobs must be at least 1.", EXIT_USAGE)
        return min(options.n_jobs, n_folds)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    size = table.n_rows * n_features * 4 * COPIES_PER_FOLD
    if processes:  # each holds the table and, while it starts, what was sent to it
        size += 2 * table.n_rows * n_features * 4 + TORCH_BYTES
    available = available_memory()
    if available is not None and size:
        cores = min(cores, max(1, int(available / 2 / size)))
    return min(cores, n_folds)
