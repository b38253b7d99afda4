"""Pages of Markdown from the folders of finished runs: a summary with a chart, and a page for each run."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from tamiz._utils.files import write_atomic
from tamiz._version import __version__
from tamiz.errors import TamizError
from tamiz.paper.protocol import REFERENCES, Protocol, protocol_names
from tamiz.paper.store import HeadlineScore, format_cell, markdown_table, scores_from_json, store_error

_FILE = "run.json"


@dataclass(frozen=True)
class RunRecord:
    """Hold what a run was made by.

    Parameters
    ----------
    command : str or None
        Command of ``tamiz reproduce``, without the folder and the number of processes; None if it was run from Python.
    version : str
        Version of tamiz.
    date : str
        Day on which the tables were written, as YYYY-MM-DD, UTC.

    Examples
    --------
    >>> RunRecord("tamiz reproduce surfaces", "1.0", "2026-01-31").sentence
    'Made by `tamiz reproduce surfaces`, tamiz 1.0, on 2026-01-31.'
    """

    command: str | None
    version: str
    date: str

    @property
    def sentence(self) -> str:
        """Sentence that a page says of the run."""
        made_by = "from Python" if self.command is None else f"by `{self.command}`"
        return f"Made {made_by}, tamiz {self.version}, on {self.date}."


def command_of(protocol: Protocol, options: Mapping[str, Any]) -> str:
    """Return the command that makes a plan of these options; those at their default are left out.

    Parameters
    ----------
    protocol : Protocol
        Protocol of the run.
    options : mapping
        Arguments of its ``make_plan``.

    Examples
    --------
    >>> from tamiz.paper.protocol import load_protocol
    >>> command_of(load_protocol("madelon"), {"methods": ["fisher", "mim"], "n_runs": 2, "seed": 0})
    'tamiz reproduce madelon --methods fisher,mim --runs 2'
    """
    words = ["tamiz", "reproduce", protocol.name]
    for option in protocol.options:
        value = options.get(option.name)
        if value is not None and value != option.default:
            typed = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words += [option.flags[0], typed]
    return shlex.join(words)


def write_run_record(folder: Path, command: str | None) -> Path:
    """Write ``run.json`` for a run that ends now; return its path."""
    record = RunRecord(command, __version__, datetime.now(UTC).date().isoformat())
    path = folder / _FILE
    try:
        write_atomic(path, json.dumps(asdict(record), ensure_ascii=False, indent=1) + "\n")
    except OSError as fault:
        raise store_error(fault, folder) from None
    return path


def read_run_record(folder: Path) -> RunRecord | None:
    """Return the record of a run; None if it has none that can be read.

    Examples
    --------
    >>> read_run_record(Path("no-such-folder")) is None
    True
    """
    try:
        content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return RunRecord(content["command"], str(content["version"]), str(content["date"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


#: Methods with a column of their own.
VARIANTS_SHOWN = {"e2efs": "E2E-FS", "e2efs-soft": "E2E-FS-Soft"}
#: Methods that are not known from elsewhere: not what E2E-FS is compared with.
OWN_METHODS = {*VARIANTS_SHOWN, "e2efs-ranking", "pairs", "pair-search"}


@dataclass(frozen=True)
class HeadlineRow:
    """Hold the scores of one data set and recipe, of a protocol.

    Attributes
    ----------
    protocol, dataset, measure, basis : str
        Where the scores are from; see :class:`~tamiz.paper.store.HeadlineScore`.
    page : str
        Page of the run that has the best row.
    recipe : str or None
        Recipe of the networks, None if there is only one.
    best : HeadlineScore
        Best row of all methods that select.
    variants : dict of str to HeadlineScore
        Best row of each variant of E2E-FS that was run.
    other : HeadlineScore or None
        Best row of the methods that are known from elsewhere.
    """

    protocol: str
    page: str
    dataset: str
    measure: str
    basis: str
    recipe: str | None
    best: HeadlineScore
    variants: Mapping[str, HeadlineScore]
    other: HeadlineScore | None

    @property
    def label(self) -> str:
        """Name of the data set, with the recipe in brackets."""
        return self.dataset if self.recipe is None else f"{self.dataset} [{self.recipe}]"


def headline_rows(scores: Iterable[tuple[str, str, HeadlineScore]]) -> list[HeadlineRow]:
    """Return the rows of the summary, in the order of the scores.

    Parameters
    ----------
    scores : iterable of (protocol, page, score)
        Scores of all runs. Runs of one protocol may share a data set: their scores are compared if the basis is the same.
        Random features and all features are no selections and are left out.

    Examples
    --------
    >>> made = [
    ...     HeadlineScore("COLON", "accuracy", "3 splits", method, method.title(), value)
    ...     for method, value in (("fisher", 0.8), ("mim", 0.7), ("e2efs", 0.9), ("all", 1.0))
    ... ]
    >>> (row,) = headline_rows(("microarray", "microarray.md", score) for score in made)
    >>> row.best.value, row.variants["e2efs"].value, row.other.label
    (0.9, 0.9, 'Fisher')
    """
    groups: dict[tuple[str, str, str, str], list[HeadlineScore]] = {}
    pages: dict[HeadlineScore, str] = {}
    for protocol, page, score in scores:
        if score.method not in REFERENCES:
            pages.setdefault(score, page)
            groups.setdefault((protocol, score.dataset, score.measure, score.basis), []).append(score)
    rows = []
    for (protocol, dataset, measure, basis), found in groups.items():
        recipes: list[str | None] = list(dict.fromkeys(sorted(score.recipe for score in found if score.recipe)))
        for recipe in recipes or [None]:
            # What trains no network is the same whatever the recipe.
            pool = [score for score in found if score.recipe in (recipe, None)]
            variants = {name: _best(pool, {name}) for name in VARIANTS_SHOWN}
            best = max(pool, key=lambda score: score.value)
            other = _best(pool, {score.method for score in pool} - OWN_METHODS)
            known = {name: score for name, score in variants.items() if score is not None}
            rows.append(HeadlineRow(protocol, pages[best], dataset, measure, basis, recipe, best, known, other))
    return rows


def _best(scores: Sequence[HeadlineScore], methods: set[str]) -> HeadlineScore | None:
    return max((score for score in scores if score.method in methods), key=lambda score: score.value, default=None)


def summary_table(rows: Sequence[HeadlineRow]) -> str:
    """Return the table of the summary as Markdown; the name of a protocol is a link to the page of the run.

    Examples
    --------
    >>> score = HeadlineScore("ring", "share", "6 folds", "e2efs", "E2E-FS", 0.5, published=0.25)
    >>> print(summary_table(headline_rows([("ground-truth", "results/ground-truth.md", score)])))
    | run | data set | best method | E2E-FS | E2E-FS-Soft | best other method |
    |---|---|---:|---:|---:|---:|
    | [ground-truth](results/ground-truth.md) | ring | E2E-FS: 0.500 (0.250) | 0.500 (0.250) | – | – |
    """
    lines = [
        [
            f"[{row.protocol}]({row.page})",
            row.label,
            _cell(row.best, row.best.label),
            *(_cell(row.variants.get(name), _detail(row.variants.get(name))) for name in VARIANTS_SHOWN),
            _cell(row.other, "" if row.other is None else row.other.label),
        ]
        for row in rows
    ]
    return markdown_table(["run", "data set", "best method", *VARIANTS_SHOWN.values(), "best other method"], lines, 2)


def _detail(score: HeadlineScore | None) -> str:
    return "" if score is None else score.detail


def _cell(score: HeadlineScore | None, label: str) -> str:
    if score is None:
        return "–"
    published = "" if score.published is None else f" ({format_cell(score.published)})"
    return (f"{label}: " if label else "") + format_cell(score.value) + published


_WIDTH, _LEFT, _RIGHT = 760, 240, 30
_ROW, _PANEL_HEAD, _PANEL_FOOT, _LEGEND = 24, 30, 34, 34
#: Marks of one line are set apart a little, so that equal scores do not hide each other.
_OFFSETS = {"e2efs": -4, "e2efs-soft": 1, "own": 0, "other": 5}
#: Where the entries of the legend begin.
_LEGEND_STEPS = (0, 90, 215, 425, 575)
# The picture has a ground of its own: it then does not matter which colours the page around it has.
_STYLE = """
.ground { fill: #ffffff } .ink { fill: #1f2933 } .faint { fill: #52606d } .line { stroke: #d2d8de }
.e2efs { fill: #00796b } .e2efs-soft { fill: #3f7fd6 } .other { fill: #c75b12 } .own { fill: #8e44ad }
.published { fill: none; stroke: #1f2933; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  .ground { fill: #1e2129 } .ink { fill: #e6e9ee } .faint { fill: #a5b0bd } .line { stroke: #454b57 }
  .e2efs { fill: #3ecfbd } .e2efs-soft { fill: #86b4ff } .other { fill: #ff9f5a } .own { fill: #d59bf6 }
  .published { stroke: #e6e9ee }
}
"""


def draw_summary(rows: Sequence[HeadlineRow]) -> str:
    """Return the chart: one panel per protocol, one line per data set, one mark per method.

    Parameters
    ----------
    rows : sequence of HeadlineRow
        Rows of the summary; each panel has an axis that spans its own scores.

    Examples
    --------
    >>> from tamiz.paper.results import headline_rows
    >>> score = HeadlineScore("COLON", "accuracy", "3 splits", "e2efs", "E2E-FS", 0.85)
    >>> "<title>E2E-FS: 0.850</title>" in draw_summary(headline_rows([("microarray", "", score)]))
    True
    """
    parts = list(_legend())
    top = float(_LEGEND)
    for (protocol, measure), panel in groupby(rows, key=lambda row: (row.protocol, row.measure)):
        shown = list(panel)
        parts += _panel(f"{protocol}: {measure}", shown, top)
        top += _PANEL_HEAD + _ROW * len(shown) + _PANEL_FOOT
    words = "Scores of E2E-FS, E2E-FS-Soft and the best other method on each data set"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top:g}" width="{_WIDTH}" height="{top:g}" '
        f'role="img" aria-label="{words}" font-family="sans-serif" font-size="12">\n<style>{_STYLE}</style>\n'
        f'<rect class="ground" width="{_WIDTH}" height="{top:g}" rx="6"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def axis_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers that enclose a range of scores, which are at least 0 and at most 1.

    Examples
    --------
    >>> axis_ticks(0.81, 0.97)
    [0.8, 0.85, 0.9, 0.95, 1.0]
    >>> axis_ticks(0.5, 0.5)
    [0.49, 0.5, 0.51]
    """
    low, high = (low - 0.01, high + 0.01) if high - low < 0.01 else (low, high)
    step = next(size for size in (0.01, 0.02, 0.05, 0.1, 0.2) if (high - low) / size <= 6 or size == 0.2)
    first, last = max(math.floor(low / step + 1e-9), 0), min(math.ceil(high / step - 1e-9), round(1 / step))
    return [round(number * step, 2) for number in range(first, max(last, first + 1) + 1)]


def _marks(row: HeadlineRow) -> Iterator[tuple[str, HeadlineScore]]:
    """Return the marks of a line; those drawn later lie above."""
    if row.other is not None:
        yield "other", row.other
    if row.best.method in OWN_METHODS - set(row.variants):
        yield "own", row.best
    yield from reversed(list(row.variants.items()))


def _published(row: HeadlineRow) -> HeadlineScore | None:
    """Return the first variant of E2E-FS that has a published number."""
    return next((score for score in row.variants.values() if score.published is not None), None)


def _panel(title: str, rows: Sequence[HeadlineRow], top: float) -> Iterator[str]:
    values = [score.value for row in rows for _, score in _marks(row)]
    values += [float(score.published or 0.0) for row in rows if (score := _published(row)) is not None]
    ticks = axis_ticks(min(values), max(values))
    bottom = top + _PANEL_HEAD + _ROW * len(rows)

    def across(value: float) -> float:
        return _LEFT + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (_WIDTH - _LEFT - _RIGHT)

    yield f'<text class="ink" x="12" y="{top + 18:g}" font-weight="bold">{escape(title)}</text>'
    for tick in ticks:
        x = across(tick)
        yield f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{top + _PANEL_HEAD:g}" y2="{bottom:g}"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{bottom + 16:g}" text-anchor="middle">{tick:g}</text>'
    for place, row in enumerate(rows):
        y = top + _PANEL_HEAD + _ROW * (place + 0.5)
        yield f'<text class="ink" x="{_LEFT - 12}" y="{y + 4:g}" text-anchor="end">{escape(row.label)}</text>'
        for kind, score in _marks(row):
            yield _mark(kind, across(score.value), y + _OFFSETS[kind], f"{score.label}: {score.value:.3f}")
        if (score := _published(row)) is not None:
            words = f"{score.label}, published: {score.published:.3f}"
            yield _mark("published", across(float(score.published or 0.0)), y, words)


def _mark(kind: str, x: float, y: float, words: str) -> str:
    title = f"<title>{escape(words)}</title>"
    if kind == "other":
        return f'<rect class="other" x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9">{title}</rect>'
    if kind == "own":
        return f'<path class="own" d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z">{title}</path>'
    if kind == "published":
        return f'<path class="published" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z">{title}</path>'
    if kind == "e2efs-soft":
        return f'<path class="e2efs-soft" d="M{x:.1f} {y - 6:.1f}l6 10h-12z">{title}</path>'
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">{title}</circle>'


def _legend() -> Iterator[str]:
    entries = {
        **VARIANTS_SHOWN,
        "own": "E2E-FS-Pairs, pair search",
        "other": "best other method",
        "published": "E2E-FS, published",
    }
    for place, (kind, words) in enumerate(entries.items()):
        x = 20 + _LEGEND_STEPS[place]
        yield _mark(kind, x, 18, words)
        yield f'<text class="ink" x="{x + 12}" y="22">{escape(words)}</text>'


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
    tamiz.paper.results.PageError: no-such-folder is not the folder of a finished run: it has no results.md...
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
