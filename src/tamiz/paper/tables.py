"""Tables of finished cells, the same for every protocol: rows, means, tests, published numbers, stability, times.

A cell says in its settings ``dataset``, ``method``, ``recipe`` (of its selection, or None), ``sizes`` (numbers of features, or of
columns) and ``unit`` (number of the split, fold or run). Its result holds ``scores``, a list of ``[detail, recipe, values]`` with
one value for each size; ``seconds`` and ``converged`` for each size; ``support`` (the columns kept for each size) where it is
known, and ``dead`` like ``scores`` where networks can give a constant.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamiz.baselines.registry import get_method
from tamiz.evaluation.intervals import corrected_t_tests, friedman_ranks, holm, wilcoxon_pairs
from tamiz.evaluation.stability import nogueira_stability
from tamiz.paper.dataset_registry import REGISTRY
from tamiz.paper.protocol import REFERENCES, Cell, Protocol

ALPHA = 0.05
#: Fewer splits cannot tell any two rows apart: a Wilcoxon test of n pairs has no p value below 2 / 2^n.
SPLITS_TO_TEST = 6
#: Differences to a published number above this get a sentence.
NOTABLE = 0.02


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


def format_cell(value: float | None, digits: int = 3) -> str:
    """Return a number as text for a table; a dash for None and NaN, and no minus before a zero.

    Examples
    --------
    >>> format_cell(0.5), format_cell(None), format_cell(float("nan")), format_cell(-0.0001)
    ('0.500', '–', '–', '0.000')
    """
    return "–" if value is None or math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def finite(value: float | None) -> float | None:
    """Return a float of six digits, or None for NaN and infinity, which JSON does not have.

    Examples
    --------
    >>> finite(float("nan")), finite(1)
    (None, 1.0)
    """
    return None if value is None or not math.isfinite(value) else round(float(value), 6)


def display_name(dataset: str) -> str:
    """Return the title of a data set with its label: a stand-in is always called one.

    Examples
    --------
    >>> display_name("gina_rebuilt"), display_name("leukemia_3571"), display_name("ring+xor")
    ('GINA (REBUILT)', 'LEUKEMIA (3571 genes)', 'ring+xor')
    """
    if dataset == "leukemia_3571":
        return "LEUKEMIA (3571 genes)"
    return REGISTRY[dataset].display_name if dataset in REGISTRY else dataset


def with_recipe(text: str, recipe: str | None) -> str:
    """Return a name with its recipe in brackets, if it has one.

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


def collect(
    protocol: Protocol, plan: Any, cells: Sequence[Cell], results: Mapping[str, Any], published: Any = None
) -> list[TableRow]:
    """Gather the scores of finished cells as rows, by data set in the order of the plan.

    Parameters
    ----------
    protocol, plan, cells, results
        As in :meth:`~tamiz.paper.protocol.Protocol.summarise`.
    published : callable or None, default=None
        ``published(dataset, method, detail, sizes)``: the published numbers for each size, and their mean.
    """
    sizes: dict[str, set[int]] = {}
    n_units = 1 + max((cell.settings["unit"] for cell in cells), default=0)
    for cell in cells:
        sizes.setdefault(cell.settings["dataset"], set()).update(cell.settings["sizes"])
    tables: dict[tuple[str, str, str, str | None], tuple[np.ndarray, np.ndarray]] = {}
    for cell in cells:
        result = results.get(cell.key)
        dataset, method, unit = (cell.settings[name] for name in ("dataset", "method", "unit"))
        columns = sorted(sizes[dataset])
        places = [columns.index(size) for size in cell.settings["sizes"]]
        for detail, recipe, values in result["scores"] if result else ():
            shape = (n_units, len(columns))
            empty = (np.full(shape, np.nan), np.zeros(shape, dtype=bool))
            tables.setdefault((dataset, method, detail, recipe), empty)[0][unit, places] = values
        for detail, recipe, values in result.get("dead", ()) if result else ():
            tables[dataset, method, detail, recipe][1][unit, places] = values
    rows = []
    for (dataset, method, detail, recipe), (scores, dead) in tables.items():
        known = tuple(sorted(sizes[dataset]))
        numbers, mean = published(dataset, method, detail, known) if published else ((), None)
        rows.append(TableRow(dataset, method, detail, recipe, known, scores, dead, tuple(numbers or ()), mean))
    order = list(dict.fromkeys(cell.settings["dataset"] for cell in cells))
    datasets = [name for name in getattr(plan, "datasets", order) if name in order]
    methods = list(plan.methods)
    return sorted(rows, key=lambda row: (datasets.index(row.dataset), methods.index(row.method)))


def bold_rows(rows: Sequence[TableRow]) -> set[Any]:
    """Return the best row of a data set and those that a Wilcoxon test over the splits does not tell from it.

    This is the paper's rule, without correction. The row of all features is no selection. With fewer splits than the test
    needs to tell any two rows apart, no row is bold.
    """
    known = [row for row in rows if math.isfinite(row.mean) and not get_method(row.method).keeps_all]
    if not known or known[0].scores.shape[0] < SPLITS_TO_TEST:
        return set()
    best = max(known, key=lambda row: row.mean)
    tests = {
        row.place: wilcoxon_pairs({"best": best.by_unit, "row": row.by_unit}, ALPHA)[0]
        for row in known
        if row is not best
    }
    return {best.place, *(place for place, test in tests.items() if not test.significant)}


def behind_rows(rows: Sequence[TableRow], test_share: float | None) -> set[Any]:
    """Return the rows that the corrected resampled t test, after Holm over these tests, tells from the best row.

    Splits of several repeats share rows, so that the paper's own rule finds too much; all features and random ones are not
    tested.
    """
    known = [row for row in rows if math.isfinite(row.mean) and row.method not in REFERENCES]
    if len(known) < 2 or known[0].scores.shape[0] < SPLITS_TO_TEST:
        return set()
    best = max(known, key=lambda row: row.mean)
    others = [row for row in known if row is not best]
    tests = [corrected_t_tests({"best": best.by_unit, "row": row.by_unit}, test_share)[0] for row in others]
    return {row.place for row, p in zip(others, holm([test.p_value for test in tests]), strict=True) if p < ALPHA}


def difference_sentences(
    rows: Sequence[TableRow], reasons: Any, n_published: int | None = None, unit: str = "splits"
) -> str:
    """Return a line for each row whose mean differs from the published one by more than :data:`NOTABLE`.

    Parameters
    ----------
    rows : sequence of TableRow
        Rows of all data sets.
    reasons : callable
        ``reasons(row)``: what is known to differ, as clauses.
    n_published : int or None, default=None
        Splits of the published number, where it has more.
    unit : str, default="splits"
        What is repeated.
    """
    lines = []
    for row in rows:
        ours, theirs = row.mean, row.published_mean
        if theirs is None or not abs(ours - theirs) > NOTABLE:
            continue
        known = row.by_unit[np.isfinite(row.by_unit)]
        clauses = []
        label = REGISTRY[row.dataset].label if row.dataset in REGISTRY else ""
        if label:
            clauses.append(f"the data are {label.lower()}, not the paper's rows")
        if n_published is not None and known.size < n_published:
            clauses.append(f"{known.size} {unit} here, {n_published} there")
        if known.size > 2:
            scatter = float(known.std(ddof=1))
            more = "more" if abs(ours - theirs) > scatter else "less"
            clauses.append(f"{more} than the standard deviation over single {unit} ({scatter:.3f})")
        if row.dead.any():
            clauses.append(f"{int(row.dead.sum())} of {row.dead.size} networks died")
        clauses += reasons(row)
        lines.append(
            f"- {display_name(row.dataset)}, {row.label}: {ours:.3f} here, {theirs:.3f} published ({ours - theirs:+.3f}); "
            f"{'; '.join(clauses)}."
        )
    return "\n".join(lines) or "None."


def mean_table(rows: Sequence[TableRow], bold: Any, behind: Any, digits: int = 3) -> tuple[str, Any]:
    """Return the table of means, data sets across, with mean ranks where there are several, and the test of the ranks."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    places = {row.place: row.label for row in rows}
    found = {(row.dataset, row.place): row for row in rows}
    means = {
        label: [found[name, place].mean if (name, place) in found else math.nan for name in datasets]
        for place, label in places.items()
    }
    ranks = friedman_ranks(means)
    lines = []
    for place, label in places.items():
        line = [label]
        for name in datasets:
            row = found.get((name, place))
            if row is None or math.isnan(row.mean):
                line.append("–")
                continue
            text = f"{format_cell(row.mean, digits)} ± {format_cell(row.deviation, 2)}"
            text = f"**{text}**" if place in bold[name] else text
            text += " ↓" if place in behind[name] else ""
            line.append(text + ("" if row.published_mean is None else f" ({format_cell(row.published_mean, digits)})"))
        lines.append([*line, format_cell(ranks.mean_ranks[label], 2)] if len(datasets) > 1 else line)
    header = ["method", *map(display_name, datasets), *(["mean rank"] if len(datasets) > 1 else [])]
    return markdown_table(header, lines), ranks


def rank_sentence(ranks: Any, n_datasets: int) -> str:
    """Say what the Friedman test finds, and which mean ranks can be told apart."""
    if n_datasets < 2 or not math.isfinite(ranks.p_value):
        return ""
    said = f"Friedman test over {n_datasets} data sets: p = {ranks.p_value:.3g}"
    if not ranks.can_differ:
        return f"{said}; so few data sets tell no two rows apart by their mean ranks (Nemenyi, 0.05)."
    return f"{said}; mean ranks that differ by less than {ranks.critical_difference:.2f} (Nemenyi, 0.05) are not told apart."


def size_table(rows: Sequence[TableRow], unit: str, digits: int = 3) -> str:
    """Return the table of one data set by number of features; medians and dead networks follow where networks died."""
    sizes = rows[0].sizes
    lines = []
    for row in rows:
        with np.errstate(all="ignore"):
            means = [float(np.nanmean(column)) if np.isfinite(column).any() else math.nan for column in row.scores.T]
        lines.append([row.label, *(_with_published(row, i, mean, digits) for i, mean in enumerate(means))])
        if row.dead.any():
            medians = [
                float(np.nanmedian(column)) if np.isfinite(column).any() else math.nan for column in row.scores.T
            ]
            counts = row.dead.sum(axis=0)
            lines.append([f"*{row.label}: median*", *(format_cell(value, digits) for value in medians)])
            total = row.scores.shape[0]
            lines.append([f"*{row.label}: dead networks of {total} {unit}*", *map(str, counts)])
    return markdown_table(["method", *map(str, sizes)], lines)


def _with_published(row: TableRow, place: int, mean: float, digits: int) -> str:
    known = row.published[place] if row.published else None
    return format_cell(mean, digits) + ("" if known is None else f" ({format_cell(known, digits)})")


def _selections(cells: Sequence[Cell], results: Mapping[str, Any]) -> dict[tuple[str, str], list[tuple[Cell, Any]]]:
    """Group the finished cells by data set and title of the method with the recipe of its selection."""
    found: dict[tuple[str, str], list[tuple[Cell, Any]]] = {}
    for cell in cells:
        if cell.key in results:
            title = with_recipe(get_method(cell.settings["method"]).title, cell.settings.get("recipe"))
            found.setdefault((cell.settings["dataset"], title), []).append((cell, results[cell.key]))
    return found


def pivot(values: Mapping[tuple[str, str], str], corner: str = "method") -> str:
    """Return a table of (column, line) -> text, methods down."""
    columns = list(dict.fromkeys(column for column, _ in values))
    lines = [
        [line, *(values.get((column, line), "–") for column in columns)]
        for line in dict.fromkeys(line for _, line in values)
    ]
    return markdown_table([corner, *map(display_name, columns)], lines)


def stability_table(cells: Sequence[Cell], results: Mapping[str, Any]) -> str:
    """Return Nogueira's index of each selection, mean over the sizes; empty without two selections of a kind."""
    texts = {}
    for place, found in _selections(cells, results).items():
        known = [result for _, result in found if result.get("support") is not None]
        if len(known) > 1:
            values = []
            for size in range(len(known[0]["support"])):
                chosen = np.zeros((len(known), known[0]["n_features"]), dtype=bool)
                for number, result in enumerate(known):
                    chosen[number, result["support"][size]] = True
                values.append(nogueira_stability(chosen))
            texts[place] = format_cell(float(np.mean(values)), 2)
    return pivot(texts) if texts else ""


def convergence_table(cells: Sequence[Cell], results: Mapping[str, Any]) -> str:
    """Return how many masks of E2E-FS were closed by the penalty, not by the step limit, for each data set."""
    texts = {}
    for place, found in _selections(cells, results).items():
        if get_method(found[0][0].settings["method"]).trains_model:
            closed = [value for _, result in found for value in result["converged"]]
            texts[place] = f"{sum(closed)} of {len(closed)}"
    return pivot(texts) if texts else ""


def seconds_table(cells: Sequence[Cell], results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the median seconds of one selection, by data set and method."""
    return [
        {
            "dataset": display_name(dataset),
            "method": title,
            "median seconds of one selection": float(np.median([np.mean(result["seconds"]) for _, result in found])),
        }
        for (dataset, title), found in _selections(cells, results).items()
    ]


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
    writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue()


@dataclass(frozen=True)
class ProtocolSummary:
    """Tables of a run.

    Attributes
    ----------
    title : str
        Title of the section.
    markdown : str
        Section without its title.
    records : list of dict
        Rows of the CSV file.
    content : dict
        Content of the JSON file: ``protocol``, every score (``rows``), and the ``scores`` of the results page.
    timing : list of dict
        Seconds, kept apart: they differ from run to run, the rest does not.
    rows : list of TableRow
        Rows of the tables.
    """

    title: str
    markdown: str
    records: list[dict[str, Any]]
    content: dict[str, Any]
    timing: list[dict[str, Any]] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)

    def texts(self) -> dict[str, tuple[str, str]]:
        """Return names and contents of the files, by kind."""
        texts = {
            "md": ("results.md", f"## {self.title}\n\n{self.markdown.rstrip()}\n"),
            "csv": ("results.csv", csv_lines(self.records)),
            "json": ("results.json", json.dumps(self.content, ensure_ascii=False, allow_nan=False) + "\n"),
        }
        return {**texts, "timing": ("timing.csv", csv_lines(self.timing))} if self.timing else texts


def summarise(
    protocol: Protocol,
    plan: Any,
    cells: Sequence[Cell],
    results: Mapping[str, Any],
    failures: Mapping[str, str],
    *,
    title: str,
    introduction: str,
    measure: str,
    basis: str,
    headline_detail: str | None = None,
    published: Any = None,
    reasons: Any = lambda row: [],
    n_published: int | None = None,
    unit: str = "splits",
    test_share: float | None = None,
    digits: int = 3,
    sections: Sequence[str] = (),
) -> ProtocolSummary:
    """Make all tables of a protocol.

    Parameters
    ----------
    protocol, plan, cells, results, failures
        As in :meth:`~tamiz.paper.protocol.Protocol.summarise`.
    title, introduction : str
        Title, and what is measured on what.
    measure, basis : str
        What the results page says of a score: its name, and over what it is a mean.
    headline_detail : str or None, default=None
        Detail of the rows that the results page shows; None: all.
    published : callable or None, default=None
        See :func:`collect`.
    reasons, n_published, unit
        See :func:`difference_sentences`.
    test_share : float or None, default=None
        Share of the rows that a split tests on; None: units are independent.
    digits : int, default=3
        Digits of scores.
    sections : sequence of str, default=()
        Further parts of the page.
    """
    rows = collect(protocol, plan, cells, results, published)
    by_dataset: dict[str, list[TableRow]] = {}
    for row in rows:
        by_dataset.setdefault(row.dataset, []).append(row)
    bold = {name: bold_rows(found) for name, found in by_dataset.items()}
    behind = {name: behind_rows(found, test_share) for name, found in by_dataset.items()}
    parts = [introduction]
    if rows:
        table, ranks = mean_table(rows, bold, behind, digits)
        parts += [
            _test_sentence(rows[0].scores.shape[0], unit, test_share),
            table,
            rank_sentence(ranks, len(by_dataset)),
        ]
    for name, found in by_dataset.items():
        if len(found[0].sizes) > 1:
            parts += [f"### {display_name(name)}, by size", size_table(found, unit, digits)]
    if any(row.published_mean is not None for row in rows):
        parts += [
            f"### Differences to published means above {NOTABLE}",
            difference_sentences(rows, reasons, n_published, unit),
        ]
    closed = convergence_table(cells, results)
    if closed:
        parts += [
            "### Masks closed by the penalty",
            "The others kept their M largest entries at the step limit.",
            closed,
        ]
    stable = stability_table(cells, results)
    if stable:
        parts += [
            "### Stability of the selection",
            f"Nogueira's index over {unit}, mean over the sizes; 1 is the same features every time. Training rows are shared, "
            "so that even labels without meaning give more than 0.",
            stable,
        ]
    parts += sections
    if failures:
        parts += ["### Cells that failed", "\n".join(f"- {name}: {text}" for name, text in sorted(failures.items()))]
    shown = [row for row in rows if math.isfinite(row.mean) and headline_detail in (None, row.detail)]
    content = {
        "protocol": protocol.name,
        "options": vars(plan),
        "rows": [_row_content(row) for row in rows],
        "scores": [_headline(row, measure, basis) for row in shown],
        "failures": dict(sorted(failures.items())),
    }
    records = [record for row in rows for record in _records(row, row.place in bold[row.dataset])]
    text = "\n\n".join(part for part in parts if part)
    return ProtocolSummary(title, text, records, content, seconds_table(cells, results), rows)


def _test_sentence(n_units: int, unit: str, test_share: float | None) -> str:
    if n_units < SPLITS_TO_TEST:
        return (
            f"No row is bold: {n_units} {unit} cannot tell any two rows apart (a Wilcoxon test needs {SPLITS_TO_TEST} for "
            "p < 0.05)."
        )
    shared = "The splits share rows, which that test does not know: " if test_share else ""
    return (
        f"**Bold**, by the paper's rule: the best row of a column and those that a Wilcoxon test over the {unit} (0.05) does "
        f"not tell from it. {shared}↓ marks rows that the {'corrected resampled ' if test_share else ''}t test (Holm over the "
        "rows, 0.05) tells from the best."
    )


def _headline(row: TableRow, measure: str, basis: str) -> dict[str, Any]:
    return {
        "dataset": display_name(row.dataset),
        "measure": measure,
        "basis": basis.format(sizes=", ".join(map(str, row.sizes)), n=row.scores.shape[0]),
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


def _records(row: TableRow, bold: bool) -> list[dict[str, Any]]:
    about = {"dataset": row.dataset, "method": row.method, "detail": row.detail, "recipe": row.recipe}
    count = int(np.isfinite(row.by_unit).sum())
    shared = {"mean": finite(row.mean), "sd": finite(row.deviation), "n": count}
    records = [{**about, "size": "mean", **shared, "published": row.published_mean, "bold": bold}]
    for place, size in enumerate(row.sizes):
        column = row.scores[np.isfinite(row.scores[:, place]), place]
        records.append(
            {
                **about,
                "size": size,
                "mean": finite(column.mean()) if column.size else None,
                "sd": finite(column.std()) if column.size else None,
                "n": column.size,
                "published": row.published[place] if row.published else None,
                "dead": int(row.dead[:, place].sum()),
            }
        )
    return records
