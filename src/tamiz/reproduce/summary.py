"""Tables as Markdown, CSV and JSON. What is written depends on the finished cells alone: no dates, no times of this run."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tamiz.reproduce.store import store_error, write_whole


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; the first column is text, the others are aligned to the right.

    Examples
    --------
    >>> print(markdown_table(["method", "COLON"], [["Fisher", "0.83"]]))
    | method | COLON |
    |---|---:|
    | Fisher | 0.83 |
    """
    lines = [header, *rows]
    texts = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    rule = "|---|" + "---:|" * (len(header) - 1)
    return "\n".join([texts[0], rule, *texts[1:]])


def csv_lines(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV with the union of their columns, in the order in which they come; None is empty.

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


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table; a dash where there is none, and no minus before a zero.

    Examples
    --------
    >>> number(0.5), number(None), number(float("nan")), number(-0.0001)
    ('0.500', '–', '–', '0.000')
    """
    return "–" if value is None or math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def finite(value: float) -> float | None:
    """None for NaN, which JSON does not know.

    Examples
    --------
    >>> finite(float("nan")), finite(1)
    (None, 1.0)
    """
    return None if value is None or not math.isfinite(value) else float(value)


def difference_lines(
    pairs: Iterable[tuple[str, float | None, float | None]], reason: str, notable: float = 0.02, digits: int = 3
) -> str:
    """A sentence on each published number from which ours is further than ``notable``.

    Parameters
    ----------
    pairs : iterable of (name, ours, published)
        Pairs in which either is missing are left out.
    reason : str
        What is known to differ, for the end of each sentence.
    notable : float
        The smallest difference that gets a sentence.
    digits : int
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


@dataclass(frozen=True)
class Outcome:
    """What a protocol has to show.

    Attributes
    ----------
    title : str
        Of the section.
    markdown : str
        The section without its title.
    records : list of dict
        The rows of the CSV file.
    content : dict
        For JSON.
    timing : list of dict
        Seconds, kept apart: they differ from run to run, the rest does not.
    """

    title: str
    markdown: str
    records: list[dict[str, Any]]
    content: dict[str, Any]
    timing: list[dict[str, Any]] = field(default_factory=list)


def write_outcome(outcome: Outcome, folder: Path) -> dict[str, str]:
    """Write ``results.md``, ``results.csv``, ``results.json`` and ``timing.csv``; their paths by kind."""
    files = {
        "results.md": f"## {outcome.title}\n\n{outcome.markdown.rstrip()}\n",
        "results.csv": csv_lines(outcome.records),
        "results.json": json.dumps(outcome.content, ensure_ascii=False, allow_nan=False, indent=1) + "\n",
    }
    if outcome.timing:
        files["timing.csv"] = csv_lines(outcome.timing)
    try:
        for name, text in files.items():
            write_whole(folder / name, text)
    except OSError as fault:
        raise store_error(fault, folder) from None
    return {name.partition(".")[2] if name.startswith("results") else "timing": str(folder / name) for name in files}
