"""One page of Markdown from the folders of finished runs."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from tamiz.reproduce.summary import markdown_table

_INTRODUCTION = """# Results

Written by `tamiz reproduce page` from finished runs: the numbers of the paper (or of other publications, where that is said)
beside ours. Data sets that are not the paper's own are labelled: REBUILT (the same construction, other rows) or SUBSET.
"""

#: Sections come in this order, whatever the order of the folders.
_ORDER = ("microarray", "three-layer", "images", "ground-truth", "madelon", "surfaces")


class PageError(Exception):
    """A folder is not that of a finished run; the message says what to do."""


def build(folders: Sequence[Path]) -> str:
    """The text of the page.

    Examples
    --------
    >>> build([Path("no-such-folder")])
    Traceback (most recent call last):
    tamiz.reproduce.results_page.PageError: no-such-folder is not the folder of a finished run: it has no results.md...
    """
    sections = []
    for folder in folders:
        try:
            protocol = json.loads((folder / "results.json").read_text(encoding="utf-8"))["protocol"]
            text = (folder / "results.md").read_text(encoding="utf-8")
        except (OSError, ValueError, KeyError, TypeError):
            raise PageError(
                f"{folder} is not the folder of a finished run: it has no results.md and results.json that can be read. "
                "Run tamiz reproduce with --out there first."
            ) from None
        place = _ORDER.index(protocol) if protocol in _ORDER else len(_ORDER)
        shown = [f"![{path.stem} of the run]({target})" for target, path in pictures_of(folder, protocol).items()]
        sections.append((place, "\n\n".join([text.rstrip(), *shown]) + _timing(folder / "timing.csv")))
    ordered = [text for _, text in sorted(sections, key=lambda pair: pair[0])]
    page = _INTRODUCTION + "\n" + "\n\n".join(ordered) + "\n"
    # A narrow cell then breaks before the bracket, not beside the sign.
    return page.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def pictures_of(folder: Path, protocol: str) -> dict[str, Path]:
    """The pictures of a run: where the page looks for each, seen from its own folder, and where it is now.

    Examples
    --------
    >>> pictures_of(Path("no-such-folder"), "images")
    {}
    """
    return {f"images/{protocol}-{path.name}": path for path in sorted(folder.glob("*.png"))}


def all_pictures(folders: Sequence[Path]) -> dict[str, Path]:
    """Those of all runs of a page that :func:`build` could read.

    Examples
    --------
    >>> all_pictures([])
    {}
    """
    found = {}
    for folder in folders:
        protocol = json.loads((folder / "results.json").read_text(encoding="utf-8"))["protocol"]
        found.update(pictures_of(folder, protocol))
    return found


def _timing(path: Path) -> str:
    """The seconds of a run as a table, methods down and what else they depend on across; nothing if it has none."""
    if not path.exists():
        return ""
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    across = next((name for name in header[:-1] if name != "method"), None)
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        record = dict(zip(header, row, strict=True))
        column = header[-1] if across is None else f"{across} = {record[across]}" if across == "p" else record[across]
        found.setdefault(record["method"], {})[column] = f"{float(row[-1]):.3g}"
    columns = list(dict.fromkeys(column for line in found.values() for column in line))
    lines = [[method, *(line.get(column, "–") for column in columns)] for method, line in found.items()]
    said = "" if across is None else f"{header[-1].capitalize()}.\n\n"
    return f"\n\n### Seconds\n\n{said}" + markdown_table(["method", *columns], lines)
