"""Pages of Markdown from the folders of finished runs: a summary with a chart, and a page for each run."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tamiz._files import write_atomic
from tamiz.errors import TamizError
from tamiz.reproduce.registry import protocol_names
from tamiz.reproduce.results_chart import draw_summary
from tamiz.reproduce.results_summary import HeadlineRow, headline_rows, summary_table
from tamiz.reproduce.run_record import read_run_record
from tamiz.reproduce.scores import HeadlineScore, scores_from_json
from tamiz.reproduce.store import store_error
from tamiz.reproduce.summary import markdown_table

_INTRODUCTION = """# Results

Written by `tamiz reproduce page` from finished runs, whose tables stand on pages of their own (links in the first column). Each
number is that of a method's best row (its best learner, where there are several); in brackets the published number of the same
row: the paper's, or that of another publication where the page of the run says so. The best method is the best of all that
select; random features and all features stand on the pages of the runs. Data sets that are not the paper's own are labelled:
REBUILT (the same construction, other rows) or SUBSET. [paper] and [tamiz] are the recipes of the networks: the paper's, and the
defaults of tamiz.
"""


class PageError(TamizError):
    """Raise for a folder that is not that of a finished run; the message says what to do."""


@dataclass(frozen=True)
class FinishedRun:
    """Hold what the page needs of a run.

    Attributes
    ----------
    folder : Path
        Folder of the run.
    protocol : str
        Name of the protocol.
    name : str
        Name of its page: the protocol's, with a number if it is not the first run of it.
    title : str
        Title of its tables.
    text : str
        Tables, as Markdown.
    scores : tuple of HeadlineScore
        What the summary shows of it.
    """

    folder: Path
    protocol: str
    name: str
    title: str
    text: str
    scores: tuple[HeadlineScore, ...]

    @property
    def pictures(self) -> dict[str, Path]:
        """Pictures of the run: the name of each beside the pages, and the file it is in now."""
        return {f"{self.name}-{path.name}": path for path in sorted(self.folder.glob("*.png"))}

    @property
    def made_by(self) -> str:
        """Sentence on the command that made the run."""
        record = read_run_record(self.folder)
        return "The command of this run is not stored." if record is None else record.sentence

    def page(self) -> str:
        """Return the page of the run, to be put one folder below the summary."""
        # The tables were written as a section of a page; here they are all of it.
        text = re.sub(r"^#(?=##)", "", self.text, flags=re.MULTILINE)
        shown = [f"![{path.stem} of the run](../images/{name})" for name, path in self.pictures.items()]
        parts = [f"# {self.title}", self.made_by, text, *shown, _timing(self.folder / "timing.csv")]
        return _without_breaks("\n\n".join(part.strip() for part in parts if part.strip()) + "\n")


def read_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """Return the runs of some folders, in the order of the protocols.

    Raises
    ------
    PageError
        If a folder is not that of a finished run.

    Examples
    --------
    >>> read_runs([Path("no-such-folder")])
    Traceback (most recent call last):
    tamiz.reproduce.results_page.PageError: no-such-folder is not the folder of a finished run: it has no results.md...
    """
    order = protocol_names()
    found = []
    for folder in folders:
        try:
            content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
            text = (folder / "results.md").read_text(encoding="utf-8")
            protocol, scores = str(content["protocol"]), tuple(scores_from_json(content.get("scores", [])))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise PageError(
                f"{folder} is not the folder of a finished run: it has no results.md and results.json that can be read. "
                "Run tamiz reproduce with --out there first."
            ) from None
        heading, _, rest = text.strip().partition("\n")
        found.append((folder, protocol, heading.lstrip("# ").strip(), rest.strip(), scores))
    found.sort(key=lambda run: order.index(run[1]) if run[1] in order else len(order))
    runs: list[FinishedRun] = []
    for folder, protocol, title, text, scores in found:
        number = 1 + sum(run.protocol == protocol for run in runs)
        name = protocol if number == 1 else f"{protocol}-{number}"
        runs.append(FinishedRun(folder, protocol, name, title, text, scores))
    return runs


def build_page(runs: Sequence[FinishedRun], pages: str = "results") -> str:
    """Return the text of the summary: the chart, the table, and links to the pages of the runs.

    Parameters
    ----------
    runs : sequence of FinishedRun
        From :func:`read_runs`.
    pages : str, default="results"
        Folder of the pages of the runs, beside the summary.

    Examples
    --------
    >>> run = FinishedRun(Path("surfaces"), "surfaces", "surfaces", "Figure 1", "Text.", ())
    >>> print(build_page([run]).splitlines()[-1])
    - [Figure 1](results/surfaces.md). The command of this run is not stored.
    """
    parts = [_INTRODUCTION.strip()]
    rows = _rows(runs, pages)
    if rows:
        parts += [
            f"![Scores of each data set: the numbers are those of the table](images/{chart_name(pages)})",
            summary_table(rows),
            "\n".join(_basis_lines(rows)),
        ]
    parts += ["## Runs", "\n".join(f"- [{run.title}]({pages}/{run.name}.md). {run.made_by}" for run in runs)]
    return _without_breaks("\n\n".join(parts) + "\n")


def chart_name(pages: str) -> str:
    """Return the file name of the chart of a page.

    Examples
    --------
    >>> chart_name("results")
    'results-chart.svg'
    """
    return f"{pages}-chart.svg"


def write_page(folders: Sequence[Path], target: Path) -> list[Path]:
    """Write the summary of several runs to a file, and the pages of the runs and their pictures beside it.

    Parameters
    ----------
    folders : sequence of Path
        Folders of finished runs.
    target : Path
        File of the summary. The pages of the runs are written to the folder of the same name without its suffix, pictures
        and the chart to the folder ``images`` beside it.

    Returns
    -------
    list of Path
        All files that were written, the summary first.

    Raises
    ------
    PageError
        If a folder is not that of a finished run; nothing is written then.
    StoreError
        If a page cannot be written.
    """
    runs = read_runs(folders)
    pages, images = target.with_suffix(""), target.parent / "images"
    if pages == target:
        raise PageError(
            f"{target} has no suffix, and its name is that of the folder of the other pages: use {target}.md."
        )
    texts = {target: build_page(runs, pages.name)}
    texts |= {pages / f"{run.name}.md": run.page() for run in runs}
    rows = _rows(runs, pages.name)
    if rows:
        texts[images / chart_name(pages.name)] = draw_summary(rows)
    pictures = {images / name: path for run in runs for name, path in run.pictures.items()}
    try:
        for place, text in texts.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(place, text)
        for place, picture in pictures.items():
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(picture, place)
    except OSError as fault:
        raise store_error(fault, target) from None
    return [*texts, *pictures]


def _rows(runs: Sequence[FinishedRun], pages: str) -> list[HeadlineRow]:
    return headline_rows((run.protocol, f"{pages}/{run.name}.md", score) for run in runs for score in run.scores)


def _basis_lines(rows: Sequence[HeadlineRow]) -> list[str]:
    """Return what is measured in each protocol; data sets are named where they differ in it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        names = found.setdefault((row.protocol, row.measure, row.basis), [])
        if row.dataset not in names:
            names.append(row.dataset)
    protocols = [protocol for protocol, _, _ in found]
    lines = []
    for (protocol, measure, basis), names in found.items():
        where = f" ({', '.join(names)})" if protocols.count(protocol) > 1 else ""
        lines.append(f"- {protocol}{where}: {measure}, {basis}.")
    return lines


def _without_breaks(text: str) -> str:
    """Return the text with signs of deviations that stay with their numbers: a narrow cell breaks before the bracket."""
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


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
    return f"## Seconds\n\n{said}" + markdown_table(["method", *columns], lines)
