"""Finished cells, the record of a run and its summaries on disk."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tamiz._utils.files import write_atomic
from tamiz._version import __version__
from tamiz.errors import TamizError


def canonical_json(value: Any) -> str:
    """Return JSON that is the same for equal values, to be hashed.

    Examples
    --------
    >>> canonical_json({"b": 1.5, "a": [1, None]})
    '{"a":[1,null],"b":1.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def seed_from(*parts: Any) -> int:
    """Return a seed of 31 bits that depends on all parts and is the same on every machine.

    Examples
    --------
    >>> seed_from("colon", 3, "fisher") == seed_from("colon", 3, "fisher") != seed_from("colon", 4, "fisher")
    True
    """
    digest = hashlib.sha256(canonical_json(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


@dataclass(frozen=True)
class Cell:
    """Describe one piece of work of a run.

    Parameters
    ----------
    protocol : str
        Name of the protocol, as in :mod:`tamiz.paper.protocol`.
    name : str
        Human-readable name: data set, split, method.
    settings : mapping
        Everything that decides the result, as JSON: data set and checksum of the data, split, method with all its
        parameters, numbers of features, learners, seed. A changed setting is another cell.
    version : str, default=the version of tamiz
        Version that computes it.

    Examples
    --------
    >>> one, two = Cell("microarray", "a", {"split": 1}), Cell("microarray", "a", {"split": 2})
    >>> one.key == Cell("microarray", "b", {"split": 1}).key, one.key == two.key
    (True, False)
    """

    protocol: str
    name: str
    settings: Mapping[str, Any]
    version: str = __version__

    @cached_property
    def key(self) -> str:
        """Hash of all that decides the result."""
        content = {"protocol": self.protocol, "settings": self.settings, "version": self.version}
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:40]


@dataclass(frozen=True)
class HeadlineScore:
    """Hold the score of one method on one data set.

    Parameters
    ----------
    dataset : str
        Name of the data set as tables show it.
    measure : str
        What is measured, such as "balanced accuracy"; more is better.
    basis : str
        Over what the value is a mean. Only scores of the same basis are compared.
    method : str
        Name of the method in the registry.
    title : str
        Name of the method as tables show it.
    value : float
        Score.
    detail : str, default=""
        Tells rows of one method apart, such as the learner.
    recipe : str or None, default=None
        Recipe of the networks; None if no network was trained, or if there is only one recipe.
    published : float or None, default=None
        Published number of the same row.

    Examples
    --------
    >>> HeadlineScore("COLON", "accuracy", "3 splits", "fisher", "Fisher", 0.8, "Naive").label
    'Fisher, Naive'
    """

    dataset: str
    measure: str
    basis: str
    method: str
    title: str
    value: float
    detail: str = ""
    recipe: str | None = None
    published: float | None = None

    @property
    def label(self) -> str:
        """Title of the method, with the detail."""
        return f"{self.title}, {self.detail}" if self.detail else self.title


def scores_to_json(scores: Iterable[HeadlineScore]) -> list[dict[str, Any]]:
    """Return scores as records for JSON; those without a value (every cell of the row failed) are left out.

    Examples
    --------
    >>> scores_to_json([HeadlineScore("a", "accuracy", "3 splits", "fisher", "Fisher", float("nan"))])
    []
    """
    return [asdict(score) for score in scores if math.isfinite(score.value)]


def scores_from_json(records: Iterable[Mapping[str, Any]]) -> list[HeadlineScore]:
    """Return the scores of the records that :func:`scores_to_json` made.

    Examples
    --------
    >>> score = HeadlineScore("a", "accuracy", "3 splits", "fisher", "Fisher", 0.5, published=0.6)
    >>> scores_from_json(scores_to_json([score])) == [score]
    True
    """
    return [HeadlineScore(**record) for record in records]


STORE_FORMAT = 1


class StoreError(TamizError):
    """Raise if the folder of a run cannot be used; the message says what to do."""


def store_error(fault: OSError, folder: Path) -> StoreError:
    """Return the error that tells the user what a fault of the disk means.

    Examples
    --------
    >>> str(store_error(OSError(errno.ENOSPC, "No space left on device"), Path("run")))
    'The disk of run is full. Make room and start again: finished cells are kept and not computed twice.'
    """
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"The disk of {folder} is full. Make room and start again: finished cells are kept and not computed twice."
        )
    return StoreError(f"{folder} cannot be used ({fault.strerror or fault}). Name another folder with --out.")


def check_run_folder(folder: Path) -> None:
    """Create the folder of a run if it is missing, and check that it can be written.

    Raises
    ------
    StoreError
        If it cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        raise store_error(fault, folder) from None


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(record).encode()).hexdigest()


class CellStore:
    """Keep the finished cells of a run in a folder.

    Parameters
    ----------
    folder : Path
        Created if it is missing.
    warn : callable, default=no-op
        Called with a sentence if a damaged file is moved aside.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = CellStore(Path(folder))
    ...     cell = Cell("microarray", "toy", {"split": 0})
    ...     store.write(cell, {"score": 0.1})
    ...     store.read(cell), store.read(Cell("microarray", "toy", {"split": 1}))
    ({'score': 0.1}, None)
    """

    def __init__(self, folder: Path, warn: Callable[[str], None] = lambda sentence: None) -> None:
        self.folder = folder
        self.warn = warn
        check_run_folder(folder)

    def path_of(self, cell: Cell) -> Path:
        """Return the file of a cell; two letters of its key name a folder, so that none gets too large."""
        return self.folder / cell.key[:2] / f"{cell.key}.json"

    def read(self, cell: Cell) -> Any:
        """Return the result of a cell, or None if it is missing or damaged (the file is then moved aside)."""
        path = self.path_of(cell)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise store_error(fault, path) from None
        try:
            record = json.loads(content)
            checksum = record.pop("checksum")
            if record["format"] != STORE_FORMAT or record["key"] != cell.key or checksum != _checksum(record):
                raise ValueError
            return record["result"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._move_aside(path, cell)
            return None

    def _move_aside(self, path: Path, cell: Cell) -> None:
        target = path.with_suffix(".damaged")
        number = 1
        while target.exists():
            number += 1
            target = path.with_suffix(f".damaged{number}")
        try:
            os.replace(path, target)
        except OSError as fault:
            raise store_error(fault, path) from None
        self.warn(f"{path} is damaged: moved to {target.name}; {cell.name} is computed again.")

    def write(self, cell: Cell, result: Any, versions: dict[str, str] | None = None) -> None:
        """Write the result of a cell, with its settings and the versions of what ran."""
        record = {
            "format": STORE_FORMAT,
            "key": cell.key,
            "protocol": cell.protocol,
            "name": cell.name,
            "tamiz": cell.version,
            "settings": dict(cell.settings),
            "versions": versions or {},
            "result": result,
        }
        record["checksum"] = _checksum(record)
        path = self.path_of(cell)
        try:
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, canonical_json(record) + "\n")
        except OSError as fault:
            raise store_error(fault, self.folder) from None


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """Return a table of Markdown; the first ``text_columns`` are text, the others are aligned to the right.

    Examples
    --------
    >>> print(markdown_table(["method", "COLON"], [["Fisher", "0.83"]]))
    | method | COLON |
    |---|---:|
    | Fisher | 0.83 |
    """
    lines = [header, *rows]
    texts = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    rule = "|" + "---|" * text_columns + "---:|" * (len(header) - text_columns)
    return "\n".join([texts[0], rule, *texts[1:]])


def csv_lines(records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV with the union of their columns, in order of appearance; None is empty.

    Examples
    --------
    >>> print(csv_lines([{"a": 1, "b": 0.5}, {"a": 2, "b": None}]).strip())
    a,b
    1,0.5
    2,
    """
    columns = list(dict.fromkeys(name for record in records for name in record))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for record in records:
        writer.writerow(["" if record.get(name) is None else record[name] for name in columns])
    return stream.getvalue()


def format_cell(value: float | None, digits: int = 3) -> str:
    """Return a number as text for a table; a dash for None and NaN, and no minus before a zero.

    Examples
    --------
    >>> format_cell(0.5), format_cell(None), format_cell(float("nan")), format_cell(-0.0001)
    ('0.500', '–', '–', '0.000')
    """
    return "–" if value is None or math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def finite(value: float | None) -> float | None:
    """Return a float, or None for NaN and infinity, which JSON does not have.

    Examples
    --------
    >>> finite(float("nan")), finite(1)
    (None, 1.0)
    """
    return None if value is None or not math.isfinite(value) else float(value)


def difference_lines(
    pairs: Iterable[tuple[str, float | None, float | None]], reason: str, notable: float = 0.02, digits: int = 3
) -> str:
    """Return a line for each published number that differs from ours by more than ``notable``.

    Parameters
    ----------
    pairs : iterable of (name, ours, published)
        Pairs in which either is None are left out.
    reason : str
        What is known to differ, for the end of each line.
    notable : float, default=0.02
        Largest difference that gets no line.
    digits : int, default=3
        Digits shown.

    Examples
    --------
    >>> print(difference_lines([("a", 0.5, 0.6), ("b", 0.5, 0.51), ("c", None, 1.0)], "other data"))
    - a: 0.500 here, 0.600 published (-0.100); other data.
    """
    lines = [
        f"- {name}: {ours:.{digits}f} here, {theirs:.{digits}f} published ({ours - theirs:+.{digits}f}); {reason}."
        for name, ours, theirs in pairs
        if ours is not None and theirs is not None and abs(ours - theirs) > notable
    ]
    return "\n".join(lines) or "None."


def failure_section(failures: Mapping[str, str]) -> list[str]:
    """Return heading and list of the cells that failed, as parts of a Markdown text; nothing if none did.

    Examples
    --------
    >>> failure_section({"colon, split 1": "ValueError: no"})
    ['### Cells that failed', '- colon, split 1: ValueError: no']
    """
    if not failures:
        return []
    return ["### Cells that failed", "\n".join(f"- {name}: {text}" for name, text in sorted(failures.items()))]


@dataclass(frozen=True)
class ProtocolSummary:
    """Hold the tables of a protocol.

    Attributes
    ----------
    title : str
        Title of the section.
    markdown : str
        Section without its title.
    records : list of dict
        Rows of the CSV file.
    content : dict
        Content of the JSON file; ``content["protocol"]`` is the name of the protocol.
    timing : list of dict
        Seconds, kept apart: they differ from run to run, the rest does not.
    scores : list of HeadlineScore
        What the page of all results shows of the run; ``scores`` of the JSON file.
    """

    title: str
    markdown: str
    records: list[dict[str, Any]]
    content: dict[str, Any]
    timing: list[dict[str, Any]] = field(default_factory=list)
    scores: list[HeadlineScore] = field(default_factory=list)

    def write(self, folder: Path) -> dict[str, str]:
        """Write ``results.md``, ``results.csv``, ``results.json`` and ``timing.csv``; return their paths by kind."""
        content = {**self.content, "scores": scores_to_json(self.scores)} if self.scores else self.content
        files = {
            "md": ("results.md", f"## {self.title}\n\n{self.markdown.rstrip()}\n"),
            "csv": ("results.csv", csv_lines(self.records)),
            "json": ("results.json", json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"),
        }
        if self.timing:
            files["timing"] = ("timing.csv", csv_lines(self.timing))
        try:
            for name, text in files.values():
                write_atomic(folder / name, text)
        except OSError as fault:
            raise store_error(fault, folder) from None
        return {kind: str(folder / name) for kind, (name, _) in files.items()}
