"""Build one page of Markdown from the folders of finished runs."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from tamiz._files import write_atomic
from tamiz.errors import TamizError
from tamiz.reproduce.registry import protocol_names
from tamiz.reproduce.store import store_error
from tamiz.reproduce.summary import markdown_table

_INTRODUCTION = """# Results

Written by `tamiz reproduce page` from finished runs: the numbers of the paper (or of other publications, where that is said)
beside ours. Data sets that are not the paper's own are labelled: REBUILT (the same construction, other rows) or SUBSET.
"""


class PageError(TamizError):
    """Raise for a folder that is not that of a finished run; the message says what to do."""


def build_page(folders: Sequence[Path]) -> str:
    """Return the text of the page; its sections come in the order of the protocols.

    Examples
    --------
    >>> build_page([Path("no-such-folder")])
    Traceback (most recent call last):
    tamiz.reproduce.results_page.PageError: no-such-folder is not the folder of a finished run: it has no results.md...
    """
    order = protocol_names()
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
        place = order.index(protocol) if protocol in order else len(order)
        shown = [f"![{path.stem} of the run]({target})" for target, path in pictures_of(folder, protocol).items()]
        sections.append((place, "\n\n".join([text.rstrip(), *shown]) + _timing(folder / "timing.csv")))
    ordered = [text for _, text in sorted(sections, key=lambda pair: pair[0])]
    page = _INTRODUCTION + "\n" + "\n\n".join(ordered) + "\n"
    # A narrow cell then breaks before the bracket, not beside the sign.
    return page.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def pictures_of(folder: Path, protocol: str) -> dict[str, Path]:
    """Return the pictures of a run: the place of each beside the page, and the file it is in now.

    Examples
    --------
    >>> pictures_of(Path("no-such-folder"), "images")
    {}
    """
    return {f"images/{protocol}-{path.name}": path for path in sorted(folder.glob("*.png"))}


def all_pictures(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the pictures of all runs of a page.

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


def write_page(folders: Sequence[Path], target: Path) -> None:
    """Write the page of several runs to a file, and their pictures to the folder ``images`` beside it.

    Raises
    ------
    PageError
        If a folder is not that of a finished run.
    StoreError
        If the page cannot be written.
    """
    text = build_page(folders)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for name, picture in all_pictures(folders).items():
            (target.parent / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(picture, target.parent / name)
        write_atomic(target, text)
    except OSError as fault:
        raise store_error(fault, target) from None


def _timing(path: Path) -> str:
    """Return the seconds of a run as a table, methods down and what else they depend on across."""
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
