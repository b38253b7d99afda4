"""Summaries of protocols as Markdown, CSV and JSON. They depend on the finished cells alone: no dates, no times of a run."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tamiz._files import write_atomic
from tamiz.reproduce.scores import HeadlineScore, scores_to_json
from tamiz.reproduce.store import store_error


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
