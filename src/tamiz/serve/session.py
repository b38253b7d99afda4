"""Hold tables that pages work on: read once per target, encoded and normalised once, whole and in folds."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import numpy as np

from tamiz.errors import TableError, TamizError
from tamiz.evaluation.folds import Fold, make_folds
from tamiz.tables.encode import TableEncoder, list_features
from tamiz.tables.names import find_column
from tamiz.tables.read import read_table
from tamiz.tables.table import DataTable

#: Tables that are held at a time, and targets of each of them.
MOST_TABLES, MOST_TARGETS = 8, 2
N_FOLDS = 5
#: Folds are prepared anew for each fit if all of them together would take more bytes.
MOST_FOLD_BYTES = 1_000_000_000
#: Names of columns that are taken for the target at first; otherwise it is the last column.
_TARGET_NAMES = ("target", "class", "label", "y", "outcome", "diagnosis", "response")


class LiveError(TamizError):
    """Raise if a request of the page cannot be answered; the message is shown on the page."""


def guess_target(names: list[str]) -> str | None:
    """Return the column that is probably the target: one of a usual name, or the last.

    Examples
    --------
    >>> guess_target(["id", "Class", "age"]), guess_target(["a", "b"])
    ('Class', 'b')
    """
    for wanted in _TARGET_NAMES:
        for name in names:
            if name.lower() == wanted:
                return name
    return names[-1] if names else None


def safe_file_name(name: str) -> str:
    """Return the last part of a file name that a browser sent, without anything that a path could be made of.

    Examples
    --------
    >>> safe_file_name("../../etc/passwd"), safe_file_name("C:\\\\my table.csv"), safe_file_name("..")
    ('passwd', 'my table.csv', 'table')
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    cleaned = re.sub(r"[^\w. +-]", "_", last).strip(". -")
    return cleaned[-120:] or "table"


class TargetData:
    """Hold a table with its target, encoded, and what all fits on it share.

    Parameters
    ----------
    table : DataTable
        Read with a target.
    notes : list of str
        What was decided when it was read.
    """

    def __init__(self, table: DataTable, notes: list[str]) -> None:
        assert table.target is not None
        self.table = table
        self.notes = notes
        self.task: str = table.target.task
        self.target: str = table.target.name
        self.y: np.ndarray = table.target.y
        self.features = list_features(table)
        if not self.features:
            raise TableError("There is no column to select from.")
        self.encoder = TableEncoder(features=self.features).fit(table)
        self.X: Any = self.encoder.transform(table)
        #: The column of the file that each feature comes from: what is kept or left out.
        self.columns = [feature.column_name for feature in self.features]
        self.column_names = list(dict.fromkeys(self.columns))
        self._folds_prepared: dict[int, tuple[Any, Any]] = {}
        self._lock = threading.Lock()

    @property
    def is_grouped(self) -> bool:
        """Return whether a column of the file has several features, one for each category."""
        return len(self.column_names) < len(self.columns)

    @cached_property
    def classes(self) -> list[str]:
        """Return the classes, as text; none for numbers."""
        return [] if self.task == "regression" else [str(label) for label in np.unique(self.y)]

    @cached_property
    def folds(self) -> list[Fold]:
        """Return the folds; fewer than five if a class, or the table, has too few rows."""
        if self.task == "classification":
            most = int(np.unique(self.y, return_counts=True)[1].min())
        else:
            most = self.y.size // 2
        return make_folds(self.y, self.task, min(N_FOLDS, most)) if most >= 2 else []

    def find_features(self, names: tuple[str, ...], what: str) -> list[int]:
        """Return the features of some columns of the file."""
        unknown = set(names) - set(self.column_names)
        if unknown:
            raise LiveError(f"Cannot {what} {sorted(unknown)[0]!r}: it is not among the columns to select from.")
        wanted = set(names)
        return [i for i, name in enumerate(self.columns) if name in wanted]

    def whole(self, estimator: Any) -> Any:
        """Return all rows, prepared for fits."""
        with self._lock:
            if not hasattr(self, "_whole"):
                self._whole = estimator.prepare(self.X, self.y)
            return self._whole

    def fold(self, number: int, estimator: Any) -> tuple[Any, Any]:
        """Return the training rows of a fold, prepared for fits, and the matrix of its test rows."""
        with self._lock:
            if number in self._folds_prepared:
                return self._folds_prepared[number]
            train, test = self.folds[number]
            encoder = TableEncoder(features=self.features).fit(self.table, rows=train)
            matrix = encoder.transform(self.table, rows=train)
            found = estimator.prepare(matrix, self.y[train]), encoder.transform(self.table, rows=test)
            size = 2 * self.y.size * len(self.features) * 4 * len(self.folds)
            if size <= MOST_FOLD_BYTES:
                self._folds_prepared[number] = found
            return found


class LiveTable:
    """Hold a file that a page works on.

    Parameters
    ----------
    path : Path
        The file.
    name : str or None, default=None
        Its name as it is shown.
    target : str or None, default=None
        Column that is proposed as the target.
    reading : mapping or None, default=None
        Options of :func:`tamiz.tables.read_table`.
    """

    def __init__(
        self,
        path: Path,
        name: str | None = None,
        target: str | None = None,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.name = name or path.name
        self.reading = dict(reading or {})
        first = read_table(path, **self.reading)
        self.has_target = first.target is not None
        self.n_rows, self.names = first.n_rows, first.names
        self.target: str | None = None
        if not self.has_target:
            named = None if target is None else first.names[find_column(target, first.names, "target")]
            self.target = named or guess_target(first.names)
        self._by_target: OrderedDict[str | None, TargetData] = OrderedDict()
        self._lock = threading.Lock()

    def describe(self, key: str) -> dict[str, Any]:
        """Return what the page shows of the table."""
        return {
            "table": key,
            "name": self.name,
            "rows": self.n_rows,
            "columns": self.names,
            "hasTarget": self.has_target,
            "target": self.target,
        }

    def with_target(self, target: str | None) -> TargetData:
        """Return the table with one of its columns as the target, read when it is first asked for."""
        target = None if self.has_target else target
        with self._lock:
            if target in self._by_target:
                self._by_target.move_to_end(target)
                return self._by_target[target]
            notes: list[str] = []
            need = not self.has_target
            table = read_table(
                self.path, target=target, need_target=need, copies=4, report=notes.append, **self.reading
            )
            found = self._by_target[target] = TargetData(table, notes)
            while len(self._by_target) > MOST_TARGETS:
                self._by_target.popitem(last=False)
            return found


class LiveTables:
    """Hold the tables of all pages; what was not used for longest goes first.

    Parameters
    ----------
    file : Path or None, default=None
        A table that every page starts with.
    target : str or None, default=None
        Its target.
    reading : mapping or None, default=None
        Options of :func:`tamiz.tables.read_table` for it.
    """

    def __init__(
        self, file: Path | None = None, target: str | None = None, reading: Mapping[str, Any] | None = None
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tamiz-serve-"))
        self._tables: OrderedDict[str, LiveTable] = OrderedDict()
        self._lock = threading.Lock()
        self.first = "first" if file is not None else None
        self._first = None if file is None else LiveTable(file, target=target, reading=reading)
        if self._first is not None:
            self._first.with_target(self._first.target)  # a wrong file or target is told before the page is opened

    def new_file(self, name: str) -> Path:
        """Return a path for an upload, in a folder of its own."""
        folder = self._folder / uuid4().hex
        folder.mkdir()
        return folder / safe_file_name(name)

    def add(self, path: Path, reading: Mapping[str, Any] | None = None) -> tuple[str, LiveTable]:
        """Read an uploaded file; it is removed again if it is no table."""
        try:
            table = LiveTable(path, reading=reading)
        except BaseException:
            self.discard(path)
            raise
        key = path.parent.name
        with self._lock:
            self._tables[key] = table
            gone = [self._tables.popitem(last=False)[1] for _ in range(len(self._tables) - MOST_TABLES)]
        for old in gone:
            self.discard(old.path)
        return key, table

    def get(self, key: str) -> LiveTable:
        """Return a table by its key; raise LiveError if it is not held any more."""
        with self._lock:
            if key == self.first and self._first is not None:
                return self._first
            if key not in self._tables:
                raise LiveError("The table is not there any more. Open the file again.")
            self._tables.move_to_end(key)
            return self._tables[key]

    def read_again(self, key: str, reading: Mapping[str, Any]) -> LiveTable:
        """Read a table anew with other options; it stays as it was if that fails."""
        old = self.get(key)
        target = old.target if old.target in old.names else None
        try:
            table = LiveTable(old.path, old.name, target, reading)
        except TableError:
            table = LiveTable(old.path, old.name, None, reading)  # the target has another name now
        with self._lock:
            if key == self.first:
                self._first = table
            else:
                self._tables[key] = table
        return table

    def discard(self, path: Path) -> None:
        """Remove an uploaded file."""
        shutil.rmtree(path.parent, ignore_errors=True)

    def close(self) -> None:
        """Remove all uploads."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def plain_message(self, error: Exception) -> str:
        """Return the message of an error for the page: no folders of this machine, no marks for options."""
        text = re.sub(re.escape(str(self._folder)) + r"/[0-9a-f]*/?", "", str(error))
        return text.replace("`", "")
