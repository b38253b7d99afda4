"""Tables that pages work on: files in a folder of their own, read once per target."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import numpy as np

from tamiz.errors import TableError, TamizError
from tamiz.evaluation.alerts import find_row_alerts, find_target_alerts
from tamiz.evaluation.cross_validation import split_folds
from tamiz.tables import read_table
from tamiz.tables.load import load_rows
from tamiz.tables.names import find_column

#: Tables that are held at a time, and targets of each of them.
MOST_TABLES, MOST_TARGETS = 8, 2
N_FOLDS = 5
#: How the page may ask for a file to be read, and of which type each answer is.
_READING = {"delimiter": str, "decimal": str, "skip_rows": int, "header": bool, "encoding": str, "missing": str}
#: Names of columns that are taken for the target at first; otherwise it is the last column.
_TARGET_NAMES = ("target", "class", "label", "y", "outcome", "diagnosis", "response")


class LiveError(TamizError):
    """Raise if a request of the page cannot be answered; the message is shown on the page."""


def guess_target(names: list[str]) -> str | None:
    """Guess which column is the target: one of a usual name, or the last.

    Examples
    --------
    >>> guess_target(["id", "Class", "age"]), guess_target(["a", "b"])
    ('Class', 'b')
    """
    found = [name for wanted in _TARGET_NAMES for name in names if name.lower() == wanted]
    return found[0] if found else names[-1] if names else None


def last_part(name: str) -> str:
    """Take the last part of a file name that a browser sent, as it is shown and written into code.

    Examples
    --------
    >>> last_part("../../etc/data (1).csv"), last_part("C:\\\\my table.csv"), last_part("..")
    ('data (1).csv', 'my table.csv', 'table')
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    return last if last.strip(". ") else "table"


def read_options(record: Any) -> dict[str, Any]:
    """Take the arguments of :func:`tamiz.tables.read_table` that a page sends; the reader checks their values.

    Examples
    --------
    >>> read_options({"delimiter": ";", "decimal": None, "missing": "-, ?"})
    {'delimiter': ';', 'na_values': ['-', '?']}
    >>> read_options({"skip_rows": "two"})
    Traceback (most recent call last):
    tamiz.serve.tables.LiveError: The request is not understood.
    """
    if not isinstance(record, Mapping):
        raise LiveError("The request is not understood.")
    found = {name: record[name] for name in _READING if record.get(name) is not None}
    if not all(type(value) is _READING[name] for name, value in found.items()):
        raise LiveError("The request is not understood.")
    missing = found.pop("missing", None)
    return found if missing is None else {**found, "na_values": [word.strip() for word in missing.split(",")]}


class TargetData:
    """Rows of a table with one target, and what all fits on them share.

    Parameters
    ----------
    path : Path
        The file.
    target : str or None
        Column to predict; None for a file that has its own.
    options : mapping
        Arguments of :func:`tamiz.tables.read_table`.
    """

    def __init__(self, path: Path, target: str | None, options: Mapping[str, Any]) -> None:
        self.notes: list[str] = []
        reading = dict(options)
        task = reading.pop("task", None)
        self.rows, targets, self.task = load_rows(path, target, task=task, report=self.notes.append, reading=reading)
        self.target = targets[0]
        if not self.rows.names:
            raise TableError("There is no column to select from.")
        self.encoder, self.whole = self.rows.whole()
        about_rows = [*find_row_alerts(self.rows), *find_target_alerts(self.rows, self.task)]
        self.alerts = [*about_rows, *getattr(self.rows.source, "alerts", ())]
        #: Columns that alone predict the target, found with the first scores.
        self.leaks: list[Any] | None = None
        self.classes = [] if self.task == "regression" else [str(label) for label in np.unique(self.rows.y)]
        most = self.rows.used.size // 2
        if self.classes:
            most = int(np.unique(self.rows.y[self.rows.used], return_counts=True)[1].min())
        #: Folds; none if a class has one row only.
        self.folds = split_folds(self.rows, self.task, min(N_FOLDS, most))[0] if most >= 2 else []
        #: What was chosen on inner folds, by request.
        self.choices: dict[Any, dict[str, Any]] = {}
        self._prepared: Any = None

    def prepared(self, estimator: Any) -> Any:
        """Prepare all rows, once for all fits."""
        if self._prepared is None:
            self._prepared = estimator.prepare(self.whole.X, self.whole.y)
        return self._prepared


class LiveTable:
    """A file that a page works on.

    Parameters
    ----------
    path : Path
        The file.
    name : str or None, default=None
        Its name as the user knows it.
    target : str or None, default=None
        Column that is proposed as the target.
    options : mapping or None, default=None
        Arguments of :func:`tamiz.tables.read_table`.
    """

    def __init__(
        self, path: Path, name: str | None = None, target: str | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.path, self.name, self.options = path, name or path.name, dict(options or {})
        first = read_table(path, **self.options)
        self.has_target = first.task is not None
        self.n_rows, self.names = first.n_rows, first.names
        self.target: str | None = None
        if not self.has_target:
            named = None if target is None else first.names[find_column(target, first.names, "target")]
            self.target = named or guess_target(first.names)
        self._read = lru_cache(maxsize=MOST_TARGETS)(lambda named: TargetData(path, named, self.options))

    def describe(self, key: str) -> dict[str, Any]:
        """Describe the table to the page."""
        return {
            "table": key,
            "name": self.name,
            "rows": self.n_rows,
            "columns": self.names,
            "hasTarget": self.has_target,
            "target": self.target,
            "reading": {**self.options, "missing": ", ".join(self.options.get("na_values", ()))},
        }

    def with_target(self, target: str | None) -> TargetData:
        """Take one of the columns as the target; the table is read when it is first asked for."""
        return self._read(None if self.has_target else target)


class LiveTables:
    """Hold the tables of all pages; what was not used for longest goes first.

    Parameters
    ----------
    file : Path or None, default=None
        A table that every page starts with.
    target : str or None, default=None
        Its target.
    options : mapping or None, default=None
        Arguments of :func:`tamiz.tables.read_table` for it.
    """

    def __init__(
        self, file: Path | None = None, target: str | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tamiz-serve-"))
        self._tables: OrderedDict[str, LiveTable] = OrderedDict()
        self._lock = threading.Lock()
        self.first = None if file is None else "first"
        if file is not None:
            first = self._tables["first"] = LiveTable(file, target=target, options=options)
            first.with_target(first.target)  # a wrong file or target is told before the page is opened

    def new_file(self, name: str) -> Path:
        """Make a path for an upload: a folder of its own, a name without anything that a path could be made of."""
        folder = self.folder / uuid4().hex
        folder.mkdir()
        return folder / (re.sub(r"[^\w. +-]", "_", last_part(name)).strip(". -")[-120:] or "table")

    def add(self, path: Path, name: str, options: Mapping[str, Any] | None = None) -> tuple[str, LiveTable]:
        """Read an uploaded file; it is removed again if it is no table."""
        try:
            table = LiveTable(path, last_part(name), options=options)
        except BaseException:
            self.discard(path)
            raise
        key = path.parent.name
        with self._lock:
            self._tables[key] = table
            held = [one for one in self._tables if one != self.first]
            for old in held[: max(0, len(held) - MOST_TABLES)]:
                self.discard(self._tables.pop(old).path)
        return key, table

    def find(self, key: str) -> tuple[str, LiveTable]:
        """Look a table up by its key; raise LiveError if it is not held any more."""
        with self._lock:
            if key not in self._tables:
                raise LiveError("The table is not there any more. Open the file again.")
            self._tables.move_to_end(key)
            return key, self._tables[key]

    def read_again(self, key: str, options: Mapping[str, Any]) -> tuple[str, LiveTable]:
        """Read a table with other options; it stays as it was if that fails, and for other pages in any case."""
        _, old = self.find(key)
        table = LiveTable(old.path, old.name, options=options)
        if old.target in table.names:
            table.target = old.target
        with self._lock:
            if key == self.first:  # other pages start with the file as the command read it
                key = uuid4().hex
            self._tables[key] = table
        return key, table

    def discard(self, path: Path) -> None:
        """Remove an uploaded file; that of the command is no upload."""
        if self.folder in path.parents:
            shutil.rmtree(path.parent, ignore_errors=True)

    def close(self) -> None:
        """Remove all uploads."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def plain_message(self, error: Exception) -> str:
        """Write the message of an error for the page: no folders of this machine, no marks for options."""
        text = re.sub(re.escape(str(self.folder)) + r"/[0-9a-f]*/?", "", str(error))
        return text.replace("`", "")
