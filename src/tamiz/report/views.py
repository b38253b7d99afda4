"""What every page says, and the content of those of a comparison and of a search for pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz._utils.extras import library_versions
from tamiz._utils.pictures import Grid, Lines, Series
from tamiz._utils.text import counted
from tamiz.evaluation.comparison import Comparison
from tamiz.report.charts import both_widths, legend, line_chart, square_chart
from tamiz.report.text import describe_score, format_number, format_score, shorten

if TYPE_CHECKING:  # a report of something else need not load the search
    from tamiz.pairs.result import PairSearch

#: The method that keeps everything: something to compare with, not a selection.
EVERY_FEATURE = "all"
#: The curves of more methods are drawn without whiskers.
MOST_WHISKERS = 8
#: Rows of the table of columns, and of that of pairs if fewer are significant.
N_COLUMNS, N_PAIRS = 200, 30
#: Pairs that are drawn; significant ones, and at least a few.
MOST_PICTURES, FEWEST_PICTURES = 12, 4


@dataclass(frozen=True, kw_only=True)
class About:
    """What every page says about its table and its run.

    Parameters
    ----------
    title : str
        Heading, usually the name of the table.
    task : str
        "classification" or "regression" (shown as it is).
    target : str or None, default=None
        Name of the target.
    targets : sequence of str, default=()
        Names of several targets.
    n_rows, n_features : int, default=0
        Shape of the table.
    notes : sequence of str, default=()
        What was decided automatically.
    settings, versions : mapping, default={}
        Shown as two small tables.
    seed : int or None, default=None
        Seed of the run.
    command : str or None, default=None
        Command that repeats the run.
    created : str or None, default=None
        Date and time in ISO format.
    """

    title: str = "Selection"
    task: str = "selection"
    target: str | None = None
    targets: Sequence[str] = ()
    n_rows: int = 0
    n_features: int = 0
    notes: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=library_versions)
    seed: int | None = None
    command: str | None = None
    created: str | None = None


def compare_view(found: Comparison, about: About) -> dict[str, Any]:
    """Collect what the template ``compare.html.j2`` uses."""
    sizes = range(len(found.m_values))
    intervals = "after Nadeau and Bengio, which allow for the training rows that splits share"
    if found.metric.shares is not None and found.parts is not None:
        intervals = "by the number of rows, and by what splits vary beyond it"
    methods = range(0 if found.supports is None else len(found.methods))
    agreement = agreement_grid(found)
    return {
        "headline": f"{counted(len(found.methods), 'method')}, {counted(len(found.m_values), 'number')} of features",
        "verdict": comparison_verdict(found, about),
        "found": found,
        "m_names": [f"M = {m:,}" for m in found.m_values],
        "best": [_best(found, column, found.references) for column in sizes],
        "legend_entries": legend(found.methods),
        "curves": both_widths(line_chart, method_curves(found), height=360),
        "whiskers": len(found.methods) <= MOST_WHISKERS,
        "intervals": "Student t over splits, as if they were independent" if found.test_share is None else intervals,
        "ranks": sorted(found.ranks, key=lambda rank: rank.mean_rank),
        "stability": [[found.stability(i, j) for j in sizes] for i in methods],
        "seconds": [] if found.seconds is None else np.asarray(found.seconds).tolist(),
        "agreement": agreement,
        "agreement_chart": None if agreement is None else square_chart(agreement),
        "payload": {
            "kind": "compare",
            "header": ["method", "n_features", "split", found.metric.name],
            "rows": [
                [found.methods[i], found.m_values[j], split, score]
                for (i, j, split), score in np.ndenumerate(found.scores)
            ],
        },
    }


def method_curves(found: Comparison) -> Lines:
    """Describe the score against M for every method; intervals where they can be told apart."""
    whiskers = len(found.methods) <= MOST_WHISKERS
    sizes = np.array(found.m_values, dtype=np.float64)
    series = []
    for position, (method, row) in enumerate(zip(found.methods, found.intervals, strict=True)):
        y, low, high = (np.array([getattr(score, end) for score in row]) for end in ("value", "low", "high"))
        tips = [f"{shorten(method, 40)}, M = {m:,}: {describe_score(s)}" for m, s in zip(found.m_values, row)]
        one = Series(str(position), sizes, y, low, high, colour=position, tips=tips)
        series.append(one if whiskers else replace(one, low=None, high=None))
    title = f"{found.metric.name} against the number of features kept, by method"
    wide = len(sizes) > 1 and sizes.max() / max(sizes.min(), 1) >= 20
    return Lines(title, "features kept (M)", found.metric.name, series, log_x=bool(wide), x_ticks=sizes.tolist())


def _best(found: Comparison, column: int, leave_out: Sequence[str] = ()) -> int | None:
    """Position of the method with the best mean score at one M."""
    known = [
        (found.metric.sign * row[column].value, -i)
        for i, row in enumerate(found.intervals)
        if found.methods[i] not in leave_out and row[column].is_known
    ]
    return -max(known)[1] if known else None


def comparison_verdict(found: Comparison, about: About) -> str:
    """Say which method is best at each M, and how many are significantly behind the best."""
    wins: dict[int, list[int]] = {}
    for column, m in enumerate(found.m_values):
        best = _best(found, column, leave_out=(EVERY_FEATURE, *found.references))
        if best is not None:
            wins.setdefault(best, []).append(m)
    said = []
    for best, sizes in sorted(wins.items(), key=lambda entry: -len(entry[1])):
        listed = ", ".join(f"{m:,}" for m in sizes)
        said.append(f"{found.methods[best]} has the best mean {found.metric.name} at M = {listed}.")
    if EVERY_FEATURE in found.methods and found.m_values:
        reference = found.intervals[found.methods.index(EVERY_FEATURE)][0]
        said.append(f"All {about.n_features:,} features together: {format_score(reference.value)}.")
    if found.ranks:
        first = min(found.ranks, key=lambda rank: rank.mean_rank)
        said.append(f"Best mean rank: {first.method} ({first.mean_rank:.2f}).")
        behind, others = sum(rank.significant for rank in found.ranks), len(found.ranks) - 1
        if others:
            are = "is" if behind == 1 else "are"
            said.append(f"{behind or 'None'} of the other {counted(others, 'method')} {are} significantly behind it.")
    return " ".join(said)


def agreement_grid(found: Comparison) -> Grid | None:
    """Describe the agreement between methods at the middle M; keeping everything is no choice, so it is left out."""
    middle = len(found.m_values) // 2
    table = found.agreement(middle)
    chosen = [i for i, method in enumerate(found.methods) if method != EVERY_FEATURE]
    if table is None or len(chosen) < 2:
        return None
    methods, values = [found.methods[i] for i in chosen], table[np.ix_(chosen, chosen)]
    labels = [[f"{100 * v:.0f}" if np.isfinite(v) else "–" for v in row] for row in values]
    at = f"M = {found.m_values[middle]:,}"
    return Grid(f"share of features in common at {at}", methods, methods, values, 0.0, 1.0, at, texts=labels)


def pairs_view(search: PairSearch, about: About) -> dict[str, Any]:
    """Collect what the template ``pairs.html.j2`` uses."""
    n_pairs, n_columns = len(search.significant_pairs()), len(search.significant_columns())
    drawn = search.pairs[: min(max(n_pairs, FEWEST_PICTURES), MOST_PICTURES)]
    cells = [search.cells(*pair.indices, digits=format_number) for pair in drawn]
    n_listed, table = max(N_PAIRS, n_pairs), search.pairs_to_dict()
    said = []
    if n_pairs:
        first, second = shorten(search.pairs[0].first, 40), shorten(search.pairs[0].second, 40)
        at_least = "At least " if n_pairs == len(search.pairs) < search.n_tests else ""
        tell, their = ("tells", "its") if n_pairs == 1 else ("tell", "their")
        said.append(
            f"{at_least}{counted(n_pairs, 'pair')} {tell} more about the target than {their} two columns alone; the strongest "
            f"is {first} with {second}."
        )
    elif search.n_tests:
        said.append("No pair is significant: none tells more about the target than its two columns alone.")
    said.append(f"In all, {n_columns:,} of {counted(len(search.names), 'column')} matter, on their own or in a pair.")
    colours = ""
    if cells:
        of = f"mean of {about.target or 'the target'}" if cells[0].label == "mean of y" else cells[0].label
        colours = f"The stronger the colour of a cell, the larger the {of}"
        if cells[0].codes is not None:
            colours = "Colour: the commonest class of each cell; the stronger, the larger its share"
    return {
        "headline": f"{counted(n_pairs, 'significant pair')} of {search.n_tests:,}",
        "verdict": " ".join([*said, search.note] if search.note else said),
        "search": search,
        "colours": colours,
        "pictures": [(pair, square_chart(grid)) for pair, grid in zip(drawn, cells, strict=True)],
        "pair_rows": search.pairs[:n_listed],
        "n_more_pairs": max(0, len(search.pairs) - n_listed),
        "column_rows": list(zip(*search.columns_to_dict().values(), strict=True))[:N_COLUMNS],
        "n_more_columns": max(0, len(search.names) - N_COLUMNS),
        "payload": {
            "kind": "pairs",
            "file": "pairs.csv",
            "header": list(table),
            "rows": [list(row) for row in zip(*table.values(), strict=True)],
        },
    }
