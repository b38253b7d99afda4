"""Tables of finished cells, the same for every protocol: rows, means, tests, published numbers, stability, times.

A cell says in its settings ``dataset``, ``method``, ``recipe`` (of its selection, or None), ``sizes`` (numbers of features, or of
columns) and ``unit`` (number of the split, fold or run). Its result holds ``scores``, a list of ``[detail, recipe, values]`` with
one value for each size; ``seconds`` and ``converged`` for each size; ``support`` (the columns kept for each size) where it is
known, and ``dead`` like ``scores`` where networks can give a constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from tamiz._utils.text import counted
from tamiz.baselines.registry import get_method
from tamiz.evaluation.intervals import corrected_t_tests, friedman_ranks, holm, wilcoxon_pairs
from tamiz.evaluation.results import nogueira_stability
from tamiz.paper.datasets import REGISTRY
from tamiz.paper.protocol import REFERENCES, Cell, Protocol

ALPHA = 0.05
#: Fewer splits cannot tell any two rows apart: a Wilcoxon test of n pairs has no p value below 2 / 2^n.
SPLITS_TO_TEST = 6
#: Differences to a published number above this get a sentence.
NOTABLE = 0.02


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """Write a table of Markdown; the first ``text_columns`` are text, the others are aligned to the right.

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


def format_cell(value: float | None, digits: int = 3) -> str:
    """Write a number for a table; a dash for None and NaN, and no minus before a zero.

    Examples
    --------
    >>> format_cell(0.5), format_cell(None), format_cell(float("nan")), format_cell(-0.0001)
    ('0.500', '–', '–', '0.000')
    """
    return "–" if value is None or math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def finite(value: float | None) -> float | None:
    """Round to six digits; None for NaN and infinity, which JSON does not have.

    Examples
    --------
    >>> finite(float("nan")), finite(1)
    (None, 1.0)
    """
    return None if value is None or not math.isfinite(value) else round(float(value), 6)


def display_name(dataset: str) -> str:
    """Title of a data set with its label: a stand-in is always called one.

    Examples
    --------
    >>> display_name("gina_rebuilt"), display_name("leukemia_3571"), display_name("ring+xor")
    ('GINA (REBUILT)', 'LEUKEMIA (3571 genes)', 'ring+xor')
    """
    return REGISTRY[dataset].display_name if dataset in REGISTRY else dataset


def with_recipe(text: str, recipe: str | None) -> str:
    """Write a name with its recipe in brackets, if it has one.

    Examples
    --------
    >>> with_recipe("E2E-FS", "paper"), with_recipe("Fisher", None)
    ('E2E-FS [paper]', 'Fisher')
    """
    return text if recipe is None else f"{text} [{recipe}]"


@dataclass(frozen=True, eq=False)
class TableRow:
    """One row of a table on one data set.

    Parameters
    ----------
    dataset, method, detail : str
        Where it belongs; the detail (learner or network) tells rows of one method apart.
    recipe : str or None
        Recipe of the networks.
    sizes : tuple of int
        Numbers of features, or of columns.
    scores : ndarray of shape (units, sizes)
        NaN where a cell failed.
    dead : ndarray of bool, shape (units, sizes)
        Networks that give the same output for every row.
    published : tuple of (float or None), default=()
        Published number for each size.
    published_mean : float or None, default=None
        Published mean over the sizes.
    """

    dataset: str
    method: str
    detail: str
    recipe: str | None
    sizes: tuple[int, ...]
    scores: np.ndarray
    dead: np.ndarray
    published: tuple[float | None, ...] = ()
    published_mean: float | None = None

    @property
    def place(self) -> tuple[str, str, str | None]:
        """Method, detail and recipe, which tell it from the other rows of its data set."""
        return self.method, self.detail, self.recipe

    @property
    def label(self) -> str:
        """Titles of method and detail, and the recipe."""
        return with_recipe(get_method(self.method).title + (f", {self.detail}" if self.detail else ""), self.recipe)

    @property
    def by_unit(self) -> np.ndarray:
        """Mean over the sizes for each split; NaN where a cell is missing."""
        return self.scores.mean(axis=1)

    @property
    def mean(self) -> float:
        """Mean of all splits and sizes."""
        return float(np.nanmean(self.scores)) if np.isfinite(self.scores).any() else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation over splits and sizes together, which the size of the paper's suggests."""
        return float(np.nanstd(self.scores)) if np.isfinite(self.scores).any() else math.nan


def collect(protocol: Protocol, cells: Sequence[Cell], results: Mapping[str, Any]) -> list[TableRow]:
    """Gather the scores of finished cells as rows, in the order of the cells."""
    sizes: dict[str, set[int]] = {}
    n_units = 1 + max((cell.settings["unit"] for cell in cells), default=0)
    for cell in cells:
        sizes.setdefault(cell.settings["dataset"], set()).update(cell.settings["sizes"])
    rows: dict[Any, TableRow] = {}
    for cell in cells:
        result = results.get(cell.key) or {}
        dataset, method, unit = (cell.settings[name] for name in ("dataset", "method", "unit"))
        columns = tuple(sorted(sizes[dataset]))
        places = [columns.index(size) for size in cell.settings["sizes"]]
        for kind in ("scores", "dead"):
            for detail, recipe, values in result.get(kind, ()):
                shape = (n_units, len(columns))
                empty = (np.full(shape, np.nan), np.zeros(shape, dtype=bool))
                row = TableRow(dataset, method, detail, recipe, columns, *empty)
                getattr(rows.setdefault((dataset, *row.place), row), kind)[unit, places] = values
    numbers = [protocol.published(row) for row in rows.values()]
    return [
        replace(row, published=tuple(by_size), published_mean=mean)
        for row, (by_size, mean) in zip(rows.values(), numbers, strict=True)
    ]


def best_and_others(rows: Sequence[TableRow], left_out: Sequence[str]) -> tuple[TableRow | None, list[TableRow]]:
    """Find the row of a data set with the best mean and those to compare it with; None with too few splits for a test."""
    known = [row for row in rows if math.isfinite(row.mean) and row.method not in left_out]
    if not known or known[0].scores.shape[0] < SPLITS_TO_TEST:
        return None, []
    best = max(known, key=lambda row: row.mean)
    return best, [row for row in known if row is not best]


def bold_rows(rows: Sequence[TableRow]) -> set[Any]:
    """Find the best row of a data set and those that a Wilcoxon test over the splits does not tell from it.

    This is the paper's rule, without correction. The row of all features is no selection. With fewer splits than the test
    needs to tell any two rows apart, no row is bold.
    """
    best, others = best_and_others(rows, ("all",))
    if best is None:
        return set()
    tests = [wilcoxon_pairs({"best": best.by_unit, "row": row.by_unit}, ALPHA)[0] for row in others]
    return {best.place, *(row.place for row, test in zip(others, tests) if not test.significant)}


def behind_rows(rows: Sequence[TableRow], test_share: float | None) -> set[Any]:
    """Find the rows that the corrected resampled t test, after Holm over these tests, tells from the best row.

    Splits of several repeats share rows, so that the paper's own rule finds too much; all features and random ones are not
    tested.
    """
    best, others = best_and_others(rows, REFERENCES)
    if best is None:
        return set()
    tests = [corrected_t_tests({"best": best.by_unit, "row": row.by_unit}, test_share)[0] for row in others]
    return {row.place for row, p in zip(others, holm([test.p_value for test in tests]), strict=True) if p < ALPHA}


def difference_sentences(protocol: Protocol, rows: Sequence[TableRow]) -> str:
    """Say for each row whose mean differs from the published one by more than :data:`NOTABLE` what is known about it."""
    lines = []
    for row in rows:
        ours, theirs = row.mean, row.published_mean
        if theirs is None or not abs(ours - theirs) > NOTABLE:
            continue
        known = row.by_unit[np.isfinite(row.by_unit)]
        clauses = []
        label = REGISTRY[row.dataset].label if row.dataset in REGISTRY else ""
        if label:
            clauses.append(f"not the paper's rows ({label})")
        if protocol.n_published is not None and known.size < protocol.n_published:
            clauses.append(f"{counted(known.size, protocol.unit)} here, {protocol.n_published} there")
        if known.size > 2:
            scatter = float(known.std(ddof=1))
            more = "more" if abs(ours - theirs) > scatter else "less"
            clauses.append(f"{more} than the standard deviation over single {protocol.unit}s ({scatter:.3f})")
        if row.dead.any():
            clauses.append(f"{int(row.dead.sum())} of {row.dead.size} networks died")
        clauses += protocol.reasons(row)
        lines.append(
            f"- {display_name(row.dataset)}, {row.label}: {ours:.3f} here, {theirs:.3f} published ({ours - theirs:+.3f}); "
            f"{'; '.join(clauses)}."
        )
    return "\n".join(lines) or "None."


def mean_table(by_dataset: Mapping[str, Sequence[TableRow]], test_share: float | None, digits: int) -> list[str]:
    """Make the table of means, data sets across, with mean ranks where there are several, and what their test finds."""
    bold = {name: bold_rows(rows) for name, rows in by_dataset.items()}
    behind = {name: behind_rows(rows, test_share) for name, rows in by_dataset.items()}
    found = {(name, row.place): row for name, rows in by_dataset.items() for row in rows}
    places = {place: row.label for (_, place), row in found.items()}
    means = {
        label: [found[name, place].mean if (name, place) in found else math.nan for name in by_dataset]
        for place, label in places.items()
    }
    ranks, p_value, critical = friedman_ranks(means)
    lines = []
    for place, label in places.items():
        line = [label]
        for name in by_dataset:
            row = found.get((name, place))
            if row is None or math.isnan(row.mean):
                line.append("–")
                continue
            text = f"{format_cell(row.mean, digits)} ± {format_cell(row.deviation, 2)}"
            text = f"**{text}**" if place in bold[name] else text
            text += " ↓" if place in behind[name] else ""
            line.append(text + ("" if row.published_mean is None else f" ({format_cell(row.published_mean, digits)})"))
        lines.append(line)
    header = ["method", *map(display_name, by_dataset)]
    if len(by_dataset) < 2:
        return [markdown_table(header, lines)]
    for line in lines:
        line.append(format_cell(ranks[line[0]], 2))
    said = f"Friedman test over {len(by_dataset)} data sets: p = {p_value:.3g}"
    if not math.isfinite(p_value):
        said = ""
    elif critical <= len(ranks) - 1:
        said += f"; mean ranks that differ by less than {critical:.2f} (Nemenyi, 0.05) are not told apart."
    else:
        said += "; so few data sets tell no two rows apart by their mean ranks (Nemenyi, 0.05)."
    return [markdown_table([*header, "mean rank"], lines), said]


def size_table(rows: Sequence[TableRow], unit: str, digits: int = 3) -> str:
    """Make the table of one data set by number of features; medians and dead networks follow where networks died."""
    lines = []
    for row in rows:
        columns = [column[np.isfinite(column)] for column in row.scores.T]
        means = [float(column.mean()) if column.size else math.nan for column in columns]
        known = [f" ({format_cell(value, digits)})" if value is not None else "" for value in row.published]
        texts = [format_cell(mean, digits) for mean in means]
        lines.append([row.label, *(a + b for a, b in zip(texts, known or [""] * len(texts), strict=True))])
        if row.dead.any():
            medians = [float(np.median(column)) if column.size else math.nan for column in columns]
            lines.append([f"*{row.label}: median*", *(format_cell(value, digits) for value in medians)])
            died = f"*{row.label}: dead networks of {counted(len(row.scores), unit)}*"
            lines.append([died, *map(str, row.dead.sum(axis=0))])
    return markdown_table(["method", *map(str, rows[0].sizes)], lines)


#: (data set, title of the method with its recipe) -> the method and its results.
Selections: TypeAlias = dict[tuple[str, str], tuple[str, list[Any]]]


def group_selections(cells: Sequence[Cell], results: Mapping[str, Any]) -> Selections:
    """Group the results by data set, method and recipe of the selection."""
    found: Selections = {}
    for cell in cells:
        if cell.key in results:
            method = cell.settings["method"]
            title = with_recipe(get_method(method).title, cell.settings.get("recipe"))
            found.setdefault((display_name(cell.settings["dataset"]), title), (method, []))[1].append(results[cell.key])
    return found


def selection_table(selections: Selections, write: Callable[[str, list[Any]], str]) -> str:
    """Write a table of what a function makes of each method and its results, methods down; empty texts are left out."""
    texts = {place: text for place, found in selections.items() if (text := write(*found))}
    columns, lines = (list(dict.fromkeys(place[axis] for place in texts)) for axis in (0, 1))
    table = [[line, *(texts.get((column, line), "–") for column in columns)] for line in lines]
    return markdown_table(["method", *columns], table) if table else ""


def closed_masks(method: str, results: Sequence[Any]) -> str:
    """Count how many masks of E2E-FS were closed by the penalty, not by the step limit."""
    closed = [value for result in results for value in result["converged"]]
    return f"{sum(closed)} of {len(closed)}" if get_method(method).trains_model else ""


def stability(method: str, results: Sequence[Any]) -> str:
    """Compute Nogueira's index of the selections, mean over the sizes; empty without two of them."""
    known = [result for result in results if result.get("support") is not None]
    values = []
    for size in range(len(known[0]["support"]) if len(known) > 1 else 0):
        chosen = np.zeros((len(known), known[0]["n_features"]), dtype=bool)
        for number, result in enumerate(known):
            chosen[number, result["support"][size]] = True
        values.append(nogueira_stability(chosen))
    return format_cell(float(np.mean(values)), 2) if values else ""


@dataclass(frozen=True)
class ProtocolSummary:
    """Tables of a run.

    Attributes
    ----------
    title : str
        Title of the section.
    markdown : str
        Section without its title.
    content : dict
        Content of the JSON file: ``protocol``, every score (``rows``), and the ``scores`` of the results page.
    seconds : dict of str to dict
        Median seconds of one selection by data set and method, kept apart: they differ from run to run, the rest does not.
    rows : list of TableRow
        Rows of the tables.
    """

    title: str
    markdown: str
    content: dict[str, Any]
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    rows: list[TableRow] = field(default_factory=list)


def summarise(
    protocol: Protocol, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
) -> ProtocolSummary:
    """Make all tables of a protocol; parameters are those of :meth:`~tamiz.paper.protocol.Protocol.summarise`."""
    known = vars(protocol)
    names = [*(known.get("problems") or known["datasets"]), *known["methods"]]
    cells = sorted(cells, key=lambda cell: [names.index(cell.settings[kind]) for kind in ("dataset", "method")])
    title, introduction, basis = protocol.describe(cells, results)
    rows, unit, share = collect(protocol, cells, results), protocol.unit, protocol.test_share
    by_dataset: dict[str, list[TableRow]] = {}
    for row in rows:
        by_dataset.setdefault(row.dataset, []).append(row)
    parts = [introduction]
    if rows:
        parts += [_test_sentence(len(rows[0].scores), unit, share), *mean_table(by_dataset, share, protocol.digits)]
    for name, found in by_dataset.items():
        if len(found[0].sizes) > 1:
            parts += [f"### {display_name(name)}, by size", size_table(found, unit, protocol.digits)]
    if any(row.published_mean is not None for row in rows):
        parts += [f"### Differences of more than {NOTABLE} from published means", difference_sentences(protocol, rows)]
    selections = group_selections(cells, results)
    about_masks = "The others kept their M largest entries at the step limit."
    about_stability = (
        f"Nogueira's index over the {unit}s, mean over the sizes; 1 is the same features every time. Training rows are shared, "
        "so that even labels without meaning give more than 0."
    )
    for heading, about, write in (
        ("### Masks closed by the penalty", about_masks, closed_masks),
        ("### Stability of the selection", about_stability, stability),
    ):
        table = selection_table(selections, write)
        parts += [heading, about, table] if table else []
    parts += protocol.sections(rows)
    if failures:
        parts += ["### Cells that failed", "\n".join(f"- {name}: {text}" for name, text in sorted(failures.items()))]
    shown = [row for row in rows if math.isfinite(row.mean) and protocol.headline_detail in (None, row.detail)]
    content = {
        "protocol": protocol.name,
        "options": vars(protocol),
        "rows": [_row_content(row) for row in rows],
        "scores": [_headline(row, protocol, basis) for row in shown],
        "failures": dict(sorted(failures.items())),
    }
    text = "\n\n".join(part for part in parts if part)
    seconds: dict[str, dict[str, float]] = {}
    for (dataset, method), (_, found_results) in selections.items():
        value = float(np.median([np.mean(result["seconds"]) for result in found_results]))
        seconds.setdefault(dataset, {})[method] = value
    return ProtocolSummary(title, text, content, seconds, rows)


def _test_sentence(n_units: int, unit: str, test_share: float | None) -> str:
    if n_units < SPLITS_TO_TEST:
        return (
            f"No row is bold: {counted(n_units, unit)} cannot tell any two rows apart (a Wilcoxon test needs {SPLITS_TO_TEST} "
            "for p < 0.05)."
        )
    shared = f"The {unit}s share rows, which that test does not know: " if test_share else ""
    return (
        f"**Bold**, by the paper's rule: the best row of a column and those that a Wilcoxon test over the {unit}s (0.05) does "
        f"not tell from it. {shared}↓ marks rows that the {'corrected resampled ' if test_share else ''}t test (Holm over the "
        "rows, 0.05) tells from the best."
    )


def _headline(row: TableRow, protocol: Protocol, basis: str) -> dict[str, Any]:
    units = counted(row.scores.shape[0], protocol.unit)
    return {
        "dataset": display_name(row.dataset),
        "measure": protocol.measure,
        "basis": basis.format(sizes=", ".join(map(str, row.sizes)), units=units),
        "method": row.method,
        "label": get_method(row.method).title + (f", {row.detail}" if row.detail else ""),
        "value": finite(row.mean),
        "recipe": row.recipe,
        "published": finite(row.published_mean),
    }


def _row_content(row: TableRow) -> dict[str, Any]:
    scores = [[finite(value) for value in split] for split in row.scores.tolist()]
    about = {"dataset": row.dataset, "method": row.method, "detail": row.detail, "recipe": row.recipe}
    dead = {"dead": row.dead.astype(int).tolist()} if row.dead.any() else {}
    return {**about, "sizes": list(row.sizes), "scores": scores, **dead}
