"""Pages of Markdown from the folders of finished runs: a summary with a chart, and a page for each run."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from tamiz._utils.extras import require
from tamiz._utils.files import write_atomic
from tamiz.errors import TamizError
from tamiz.paper.protocol import PROTOCOLS, REFERENCES
from tamiz.paper.runner import disk_faults
from tamiz.paper.tables import format_cell, markdown_table

#: Methods with a column of their own: title, and how the chart marks them.
VARIANTS_SHOWN = {"e2efs": ("E2E-FS", "o", "#00796b"), "e2efs-soft": ("E2E-FS-Soft", "^", "#3f7fd6")}
#: Methods that are not known from elsewhere: not what E2E-FS is compared with.
OWN_METHODS = {*VARIANTS_SHOWN, "e2efs-ranking", "pairs", "pair-search"}
#: Marks of the chart beside the variants.
_MARKS = {
    "other": ("best other method", "s", "#c75b12"),
    "own": ("E2E-FS-Pairs, pair search", "D", "#8e44ad"),
}

_INTRODUCTION = """# Results

Written by `tamiz reproduce page` from finished runs, whose tables stand on pages of their own (links in the first column). Each
number is that of a method's best row (its best learner, where there are several); in brackets the published number of that row,
where it was published: the paper's, or that of another publication where the page of the run says so. The best method is the best
of all that select; random features and all features stand on the pages of the runs. Data sets that are not the paper's own are
labelled: REBUILT (the same construction, other rows) or SUBSET. [paper] and [tamiz] are the recipes of the networks: the paper's,
and the defaults of tamiz. CIFAR-100 is not run: its file is not at hand.
"""


class PageError(TamizError):
    """Raise for a folder that is not that of a finished run; the message says what to do."""


@dataclass(frozen=True)
class HeadlineRow:
    """Best scores of one data set and recipe; scores are records of ``results.json``.

    Attributes
    ----------
    protocol, page : str
        Protocol, and page of the run that has the best row.
    recipe : str or None
        Recipe of the networks, None if there is only one.
    best : dict
        Best row of all methods that select.
    variants : dict of str to dict
        Best row of each variant of E2E-FS that was run.
    other : dict or None
        Best row of the methods that are known from elsewhere.
    """

    protocol: str
    page: str
    recipe: str | None
    best: Mapping[str, Any]
    variants: Mapping[str, Mapping[str, Any]]
    other: Mapping[str, Any] | None

    @property
    def label(self) -> str:
        """Name of the data set, with the recipe in brackets."""
        name: str = self.best["dataset"]
        return name if self.recipe is None else f"{name} [{self.recipe}]"

    def marks(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the marks of the chart; those drawn later lie above."""
        shown: list[tuple[str, Mapping[str, Any]]] = [] if self.other is None else [("other", self.other)]
        if self.best["method"] in OWN_METHODS - set(self.variants):
            shown.append(("own", self.best))
        return [*shown, *reversed(list(self.variants.items()))]


def headline_rows(scores: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[HeadlineRow]:
    """Choose the rows of the summary, in the order of the scores.

    Parameters
    ----------
    scores : sequence of (protocol, page, score)
        Scores of all runs. Runs of one protocol may share a data set: their scores are compared if the basis is the same.
        Random features and all features are no selections and are left out.
    """
    groups: dict[Any, list[tuple[str, Mapping[str, Any]]]] = {}
    for protocol, page, score in scores:
        if score["method"] not in REFERENCES:
            place = (protocol, score["dataset"], score["measure"], score["basis"])
            groups.setdefault(place, []).append((page, score))
    rows = []
    for (protocol, *_), found in groups.items():
        recipes = sorted({score["recipe"] for _, score in found if score["recipe"]}) or [None]
        for recipe in recipes:
            # What trains no network is the same whatever the recipe.
            pool = [(page, score) for page, score in found if score["recipe"] in (recipe, None)]

            def best(methods: Any, pool: Any = pool) -> Any:
                chosen = [(page, score) for page, score in pool if score["method"] in methods]
                return max(chosen, key=lambda pair: pair[1]["value"], default=(None, None))

            page, first = best({score["method"] for _, score in pool})
            variants = {name: best({name})[1] for name in VARIANTS_SHOWN if best({name})[1] is not None}
            other = best({score["method"] for _, score in pool} - OWN_METHODS)[1]
            rows.append(HeadlineRow(protocol, page, recipe, first, variants, other))
    return rows


def _cell(score: Mapping[str, Any] | None, label: str = "") -> str:
    if score is None:
        return "–"
    published = "" if score["published"] is None else f" ({format_cell(score['published'])})"
    return (f"{label}: " if label else "") + format_cell(score["value"]) + published


def summary_table(rows: Sequence[HeadlineRow]) -> str:
    """Return the table of the summary as Markdown; the name of a protocol is a link to the page of the run."""
    lines = [
        [
            f"[{row.protocol}]({row.page})",
            row.label,
            _cell(row.best, row.best["label"]),
            *(_cell(row.variants.get(name), _detail(row.variants.get(name))) for name in VARIANTS_SHOWN),
            _cell(row.other, "" if row.other is None else row.other["label"]),
        ]
        for row in rows
    ]
    titles = [title for title, _, _ in VARIANTS_SHOWN.values()]
    return markdown_table(["run", "data set", "best method", *titles, "best other method"], lines, 2)


def _detail(score: Mapping[str, Any] | None) -> str:
    return "" if score is None else str(score["label"]).partition(", ")[2]


def draw_summary(rows: Sequence[HeadlineRow]) -> str:
    """Draw the chart as SVG: one panel per protocol and measure, one line per data set, one mark per method."""
    require("matplotlib", "plot", "The chart")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = [list(found) for _, found in groupby(rows, key=lambda row: (row.protocol, row.best["measure"]))]
    heights = [0.3 * len(panel) + 0.9 for panel in panels]
    # A salt and no date: the same scores give the same file.
    with rc_context({"svg.hashsalt": "tamiz", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, sum(heights)), layout="constrained")
        grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
        for axes, panel in zip(grid[:, 0], panels, strict=True):
            for height, row in enumerate(panel):
                for kind, score in row.marks():
                    title, marker, colour = VARIANTS_SHOWN.get(kind) or _MARKS[kind]
                    axes.plot(score["value"], height, marker, color=colour, label=title, markersize=6)
                known = [score["published"] for score in row.variants.values() if score["published"] is not None]
                axes.plot(known[:1], [height] * len(known[:1]), "d", color="0.2", fillstyle="none", label="published")
            axes.set_yticks(range(len(panel)), [row.label for row in panel])
            axes.invert_yaxis()
            axes.grid(axis="x", alpha=0.3)
            axes.set_title(f"{panel[0].protocol}: {panel[0].best['measure']}", loc="left", fontsize="medium")
        shown = {
            label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(shown.values(), shown.keys(), loc="outside upper center", ncols=5, fontsize="small")
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


@dataclass(frozen=True)
class FinishedRun:
    """What a page needs of a run.

    Attributes
    ----------
    folder : Path
        Folder of the run.
    name : str
        Name of its page: the protocol's, with a number if it is not the first run of it.
    content : dict
        Content of ``results.json``.
    title, text : str
        Title and tables, as Markdown.
    record : dict
        Content of ``run.json``.
    """

    folder: Path
    name: str
    content: Mapping[str, Any]
    title: str
    text: str
    record: Mapping[str, Any]

    @property
    def pictures(self) -> dict[str, Path]:
        """Pictures of the run: the name of each beside the pages, and the file it is in now."""
        return {f"{self.name}-{path.name}": path for path in sorted(self.folder.glob("*.png"))}

    @property
    def made_by(self) -> str:
        """Sentence on how the run was made."""
        about = self.record
        versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
        sources = " and ".join(about["sources"])
        return f"Made by `{about['command']}` on {about['date']} ({sources}; {versions}; {about['processor']})."

    def raw(self) -> bytes:
        """Return every score of the run and how it was made, as compressed JSON that is the same for equal runs."""
        text = json.dumps({"run": self.record, **self.content}, ensure_ascii=False, separators=(",", ":"))
        return gzip.compress(text.encode(), mtime=0)

    def page(self) -> str:
        """Return the page of the run, to be put one folder below the summary."""
        # The tables were written as a section of a page; here they are all of it.
        text = re.sub(r"^#(?=##)", "", self.text, flags=re.MULTILINE)
        shown = [f"![{path.stem} of the run](../images/{name})" for name, path in self.pictures.items()]
        link = f"Every score: [{self.name}.json.gz]({self.name}.json.gz)."
        parts = [f"# {self.title}", f"{self.made_by} {link}", text, *shown, _timing(self.folder / "timing.csv")]
        return _without_breaks("\n\n".join(part.strip() for part in parts if part.strip()) + "\n")


def read_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """Read the runs of some folders, in the order of the protocols.

    Raises
    ------
    PageError
        If a folder is not that of a finished run.

    Examples
    --------
    >>> read_runs([Path("no-such-folder")])
    Traceback (most recent call last):
    tamiz.paper.results.PageError: no-such-folder is not the folder of a finished run: ...
    """
    order, found = list(PROTOCOLS), []
    for folder in folders:
        try:
            content, record = (
                json.loads((folder / name).read_text(encoding="utf-8")) for name in ("results.json", "run.json")
            )
            heading, _, rest = (folder / "results.md").read_text(encoding="utf-8").strip().partition("\n")
            run = FinishedRun(folder, content["protocol"], content, heading.lstrip("# "), rest.strip(), record)
            found.append((order.index(run.name) if run.name in order else len(order), run))
            run.made_by  # noqa: B018 (raises KeyError for a record of another version)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise PageError(
                f"{folder} is not the folder of a finished run: its results.md, results.json and run.json cannot be read. "
                "Run tamiz reproduce with --out there first."
            ) from None
    runs: list[FinishedRun] = []
    for _, run in sorted(found, key=lambda pair: pair[0]):
        number = 1 + sum(other.content["protocol"] == run.name for other in runs)
        name = run.name if number == 1 else f"{run.name}-{number}"
        runs.append(FinishedRun(run.folder, name, run.content, run.title, run.text, run.record))
    return runs


def write_page(folders: Sequence[Path], target: Path) -> list[Path]:
    """Write the summary of several runs to a file, and the pages of the runs, their scores and pictures beside it.

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
    scores = [
        (run.content["protocol"], f"{pages.name}/{run.name}.md", score)
        for run in runs
        for score in run.content.get("scores", ())
    ]
    rows = headline_rows(scores)
    parts = [_INTRODUCTION.strip()]
    contents: dict[Path, str | bytes] = {target: ""}
    if rows:
        chart = f"{pages.name}-chart.svg"
        contents[images / chart] = draw_summary(rows)
        alt = "Scores of each data set: the numbers are those of the table"
        parts += [f"![{alt}](images/{chart})", summary_table(rows), _basis_lines(rows)]
    parts += ["## Runs", "\n".join(f"- [{run.title}]({pages.name}/{run.name}.md). {run.made_by}" for run in runs)]
    contents[target] = _without_breaks("\n\n".join(parts) + "\n")
    for run in runs:
        contents |= {pages / f"{run.name}.md": run.page(), pages / f"{run.name}.json.gz": run.raw()}
    pictures = {images / name: path for run in runs for name, path in run.pictures.items()}
    with disk_faults(target):
        for place, content in contents.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(place, content)
        for place, picture in pictures.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(picture, place)
    return [*contents, *pictures]


def _basis_lines(rows: Sequence[HeadlineRow]) -> str:
    """Say what is measured in each protocol; data sets are named where they differ in it."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in rows:
        place = (row.protocol, row.best["measure"], row.best["basis"])
        found.setdefault(place, {})[row.best["dataset"]] = None
    protocols = [protocol for protocol, _, _ in found]
    lines = []
    for (protocol, measure, basis), names in found.items():
        where = f" ({', '.join(names)})" if protocols.count(protocol) > 1 else ""
        lines.append(f"- {protocol}{where}: {measure}, {basis}.")
    return "\n".join(lines)


def _without_breaks(text: str) -> str:
    """Keep deviations with their numbers: a narrow cell would break before the sign."""
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def _timing(path: Path) -> str:
    """Return the seconds of a run as a table, methods down and data sets across."""
    if not path.exists():
        return ""
    with open(path, encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    measure = list(records[0])[-1]
    columns = list(dict.fromkeys(record["dataset"] for record in records))
    found = {(record["method"], record["dataset"]): f"{float(record[measure]):.3g}" for record in records}
    methods = dict.fromkeys(method for method, _ in found)
    lines = [[method, *(found.get((method, column), "–") for column in columns)] for method in methods]
    return f"## Seconds\n\n{measure.capitalize()}.\n\n" + markdown_table(["method", *columns], lines)
