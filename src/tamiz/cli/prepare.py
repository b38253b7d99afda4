"""Read the table of ``select`` and ``compare``, and cut it into folds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz._utils.memory import available_memory
from tamiz._utils.text import quote
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.fold_options import RowRoles, named_columns, read_row_roles
from tamiz.cli.options import TableOptions
from tamiz.cli.several_targets import read_with_targets
from tamiz.errors import TableError
from tamiz.evaluation.folds import Fold, make_folds

if TYPE_CHECKING:  # what loads scikit-learn is imported by the functions that need it, so that `parse_k` is quick
    from tamiz.cli.console import Terminal
    from tamiz.rows.rows import Rows
    from tamiz.tables.encode import Feature, TableEncoder
    from tamiz.tables.table import DataTable
    from tamiz.tables.target import Target

#: Copies of the table a run holds at a time: the table itself, and for each fold that runs its rows, prepared, and
#: two copies in the engine.
COPIES_PER_FOLD = 3
#: Memory that a process takes that has loaded torch.
TORCH_BYTES = 400 * 1024**2


@dataclass
class Prepared:
    """Hold a table that is ready for the folds.

    Parameters
    ----------
    table : DataTable
        The rows that have a target.
    features : list of Feature
        Columns of the encoded matrix, the same in every fold.
    folds : list of Fold
        Training and test rows.
    n_jobs : int
        Folds to run side by side.
    seconds_reading : float, default=0.0
        Time it took to read the file.
    impute : bool, default=True
        Whether missing numbers are replaced by medians; otherwise they are left to the model.
    roles : RowRoles, default=none
        Groups, time and weights of the rows.
    targets : list of str, default=[]
        Names of the targets; more than one for several columns of numbers.
    """

    table: DataTable
    features: list[Feature]
    folds: list[Fold]
    n_jobs: int
    seconds_reading: float = 0.0
    impute: bool = True
    roles: RowRoles = field(default_factory=RowRoles)
    targets: list[str] = field(default_factory=list)

    @property
    def target(self) -> Target:
        """Return the target, as classes or numbers."""
        assert self.table.target is not None  # read with need_target
        return self.table.target

    @property
    def y(self) -> np.ndarray:
        """Class labels or numbers, one per row; a column for each of several targets."""
        return self.target.y

    def as_rows(self, split_categories: bool = False) -> Rows:
        """Return the rows, encoded inside each fold."""
        from tamiz.rows.rows import Rows
        from tamiz.tables.encode import TableEncoder

        labels = [feature.name if split_categories else feature.column_name for feature in self.features]
        names = list(dict.fromkeys(labels))
        return Rows(
            self.table,
            self.y,
            sample_weight=self.roles.weights,
            groups=self.roles.groups,
            time=self.roles.time,
            encoder=TableEncoder(features=self.features, impute=self.impute),
            columns=[names.index(label) for label in labels],
            names=names,
        )

    def whole(self) -> tuple[TableEncoder, Any]:
        """Return the encoder and the matrix of all rows, for the final model."""
        encoder, part = self.as_rows().whole()
        return encoder, part.X


def parse_k(text: str) -> int | float:
    """Parse M as it is typed: a number, or a fraction below 1.

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
        raise CommandError(
            f"-k must be a number such as 10, or a fraction such as 0.1; got {text!r}.", EXIT_USAGE
        ) from None


def resolve_k(k: int | float, n_features: int) -> int:
    """Return M for a table with ``n_features`` features."""
    from tamiz._utils.validation import resolve_n_features_to_select

    try:
        return resolve_n_features_to_select(k, n_features)
    except ValueError as error:
        message = str(error).replace("n_features_to_select", "-k")
        raise CommandError(message, EXIT_USAGE) from None


def in_percent(tick: Callable[[], None]) -> Callable[[int, int], None]:
    """Return a function of (rows done, all rows) that calls ``tick`` once per percent.

    Examples
    --------
    >>> calls = []
    >>> on_rows = in_percent(lambda: calls.append(1))
    >>> on_rows(1, 50), on_rows(50, 50), len(calls)
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
    terminal: Terminal,
    check: Callable[[int], None] = lambda n_features: None,
    processes: bool = False,
) -> Prepared:
    """Read a table, report what was decided about it, and make the folds.

    Parameters
    ----------
    options : TableOptions
        What the user said.
    terminal : Terminal
        Where messages go.
    check : callable, default=no check
        Called with the number of features as soon as it is known, to raise on a wrong M before anything slow.
    processes : bool, default=False
        Whether the folds will run in processes, which hold more than threads do.
    """
    from tamiz.tables.encode import list_features

    started = time.perf_counter()
    with terminal.progress("reading", 100) as tick:
        table, targets = read_with_targets(
            options.file,
            options.target,
            task=options.task,
            ignore=[*(options.ignore or ()), *named_columns(options).values()],
            categorical=options.categorical or (),
            max_categories=options.max_categories,
            **options.reading(),
            copies=1 + COPIES_PER_FOLD,
            report=terminal.say,
            on_rows=in_percent(tick),
        )
    features = list_features(table)
    check(len(features))
    assert table.target is not None
    for name, column in named_columns(options).items():
        if column in targets:
            raise CommandError(f"--{name} names the target {column!r} itself; name another column.", EXIT_USAGE)
    roles = read_row_roles(options, table)
    folds = _make_folds(table.target, options, terminal, roles)
    seconds = time.perf_counter() - started
    n_jobs = _count_jobs(options, table, len(features), len(folds), processes)
    return Prepared(table, features, folds, n_jobs, seconds, roles=roles, targets=targets)


def _make_folds(target: Target, options: TableOptions, terminal: Terminal, roles: RowRoles) -> list[Fold]:
    """Draw the folds; fewer than asked for if a class, or the table, has too few rows."""
    n_folds = options.n_folds
    if n_folds < 2 or options.n_repeats < 1:
        raise CommandError("--folds must be at least 2 and --repeats at least 1.", EXIT_USAGE)
    if roles.groups is None and roles.time is None:
        n_folds = _most_folds(target, n_folds, terminal)
    try:
        return make_folds(
            target.y, target.task, n_folds, options.n_repeats, options.seed, groups=roles.groups, time=roles.time
        )
    except ValueError as error:
        raise TableError(str(error)) from None


def _most_folds(target: Target, n_folds: int, terminal: Terminal) -> int:
    """Return the number of folds that the rows allow."""
    n_rows = len(target.y)
    if target.task == "classification":
        labels, counts = np.unique(target.y, return_counts=True)
        most = int(counts.min())
        rare = labels[int(counts.argmin())]
        if most < 2:
            raise TableError(
                f"Class {quote(rare)} of the target has one row only, which cannot be both learnt and tested. "
                "Leave that row out, or join the class with another."
            )
        if n_folds > most:
            terminal.say(f"Folds: {most} instead of {n_folds}, since class {quote(rare)} has {most} rows only.")
        return min(n_folds, most)
    if n_rows < 4:
        raise TableError(f"There are {n_rows} rows with a target; at least 4 are needed.")
    if n_folds > n_rows // 2:
        terminal.say(f"Folds: {n_rows // 2} instead of {n_folds}, for two rows in each of them.")
    return min(n_folds, n_rows // 2)


def _count_jobs(options: TableOptions, table: DataTable, n_features: int, n_folds: int, processes: bool) -> int:
    """Return how many folds to run side by side: as many as there are cores, fewer if memory is short."""
    if options.n_jobs is not None:
        if options.n_jobs < 1:
            raise CommandError("--jobs must be at least 1.", EXIT_USAGE)
        return min(options.n_jobs, n_folds)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    size = table.n_rows * n_features * 4 * COPIES_PER_FOLD
    if processes:  # each holds the table and, while it starts, what was sent to it
        size += 2 * table.n_rows * n_features * 4 + TORCH_BYTES
    available = available_memory()
    if available is not None and size:
        cores = min(cores, max(1, int(available / 2 / size)))
    return min(cores, n_folds)
