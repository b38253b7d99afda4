"""Content of the page of a search for pairs: sentences, rows and pictures, made from a `PairSearch`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamiz.report.charts import heat_step, share_bar
from tamiz.report.svg import Frame, element, picture, series_class, text
from tamiz.report.text import counted, format_number, format_p_value, shorten

if TYPE_CHECKING:  # a report of something else need not load the search
    from tamiz.pairs.result import CellAxis, PairCells, PairSearch
    from tamiz.report.page import About

#: Rows of the table of columns, and of that of pairs if fewer are significant.
N_COLUMNS, N_PAIRS = 200, 30
#: Pairs that are drawn; significant ones, and at least a few.
MOST_PICTURES, FEWEST_PICTURES = 12, 4


def pairs_view(search: PairSearch, about: About) -> dict[str, Any]:
    """Return everything the template ``pairs.html.j2`` uses."""
    n_pairs, n_columns = len(search.significant_pairs()), len(search.significant_columns())
    drawn = search.pairs[: min(max(n_pairs, FEWEST_PICTURES), MOST_PICTURES)]
    cells = [search.cells(*pair.indices) for pair in drawn]
    table = search.pairs_to_dict()
    columns = list(zip(*search.columns_to_dict().values(), strict=True))
    correction = "for the number of pairs (Bonferroni)"
    if search.n_permutations:
        correction = f"by {search.n_permutations} permutations"
    return {
        "headline": f"{counted(n_pairs, 'significant pair')} of {search.n_tests:,}",
        "verdict": pairs_verdict(search, n_pairs, n_columns),
        "facts": [
            ("Table", f"{search.n_samples:,} rows, {len(search.names):,} columns"),
            ("Task", f"{about.task} of {about.target}" if about.target else about.task),
            ("Search", "all pairs" if search.method == "full" else "sketch"),
            ("P values corrected", correction),
        ],
        "note": search.note,
        "pictures": [
            {
                "chart": pair_chart(one, about.level_names),
                "caption": f"{shorten(pair.first, 30)} × {shorten(pair.second, 30)}",
                "said": f"strength {pair.strength:.2f}, p {format_p_value(pair.p_value)}, {pair.shape}",
            }
            for pair, one in zip(drawn, cells, strict=True)
        ],
        "pictures_said": pictures_said(cells[0], about.target) if cells else "",
        "pair_rows": [
            {
                "pair": pair,
                "bar": share_bar(pair.strength),
                "strength": f"{pair.strength:.2f}",
                "p_value": format_p_value(pair.p_value),
                "significant": pair.p_value < 0.05,
            }
            for pair in search.pairs[: max(N_PAIRS, n_pairs)]
        ],
        "n_more_pairs": max(0, len(search.pairs) - max(N_PAIRS, n_pairs)),
        "column_rows": [
            {
                "name": name,
                "score": f"{score:.1f}",
                "score_value": score,
                "p_value": format_p_value(p),
                "significant": p < 0.05,
                "alone": format_p_value(alone),
                "partner": partner,
                "pair": format_p_value(pair_p),
            }
            for name, score, p, alone, partner, pair_p in columns[:N_COLUMNS]
        ],
        "n_more_columns": max(0, len(search.names) - N_COLUMNS),
        "payload": {
            "kind": "pairs",
            "file": "pairs.csv",
            "header": list(table),
            "rows": [list(row) for row in zip(*table.values(), strict=True)],
        },
    }


def pairs_verdict(search: PairSearch, n_pairs: int, n_columns: int) -> str:
    """Say what was found, and what the search can miss."""
    said = []
    if n_pairs:
        pair = search.pairs[0]
        at_least = "At least " if n_pairs == len(search.pairs) < search.n_tests else ""
        said.append(
            f"{at_least}{n_pairs:,} pair{' tells' if n_pairs == 1 else 's tell'} more about the target than "
            f"{'its' if n_pairs == 1 else 'their'} two columns alone; the strongest is {shorten(pair.first, 40)} with "
            f"{shorten(pair.second, 40)}."
        )
    elif search.n_tests:
        said.append("No pair is significant: none tells more about the target than its two columns alone.")
    said.append(f"In all, {n_columns:,} of {len(search.names):,} columns matter, on their own or in a pair.")
    return " ".join([*said, search.note] if search.note else said)


def pictures_said(cells: PairCells, target: str | None) -> str:
    """Say what the pictures show."""
    if len(cells.classes) > 2:
        what = "Colour: the commonest class of each cell; the stronger, the larger its share"
    else:
        of = cells.label if cells.classes else f"mean of {target or 'the target'}"
        what = f"The darker a cell, the larger the {of}"
    return f"{what}. Cells hold equally many rows by rank, or one value each. Empty cells hold no row."


def pair_chart(cells: PairCells, level_names: Mapping[str, Mapping[float, str]], size: int = 280) -> str:
    """Draw the cells of two columns, coloured by the target.

    Parameters
    ----------
    cells : PairCells
        Target in the cells of two columns.
    level_names : mapping
        Names of categories by column and code.
    size : int, default=280
        Width of the picture.
    """
    labels = _cell_labels(cells.first, level_names), _cell_labels(cells.second, level_names)
    frame = Frame(size, size - 24, left=58, right=6, top=22, bottom=40)
    (left, right), (bottom, top) = frame.x_range, frame.y_range
    width, height = (right - left) / cells.first.n_cells, (bottom - top) / cells.second.n_cells
    parts = [text(shorten(cells.second.name, 34), 2, 12, class_="label")]
    for row in range(cells.second.n_cells):
        for column in range(cells.first.n_cells):
            mean, share = float(cells.means[row, column]), float(cells.shares[row, column])
            if math.isnan(share):  # no row: the paper shows
                continue
            kind, said = f"heat {heat_step(share)}", format_number(mean)
            if len(cells.classes) > 2:
                kind += f" by-class {series_class(int(mean))}"
                said = f"{share:.0%} {shorten(cells.classes[int(mean)], 30)}"
            elif cells.classes:
                said = f"{mean:.0%} {shorten(cells.classes[1], 30)}"
            where = f"{cells.first.name} {labels[0][column]}, {cells.second.name} {labels[1][row]}"
            tip = f"{where}: {said} ({counted(int(cells.counts[row, column]), 'row')})"
            place = {"x": left + width * column + 0.5, "y": bottom - height * (row + 1) + 0.5}
            parts.append(element("rect", **place, width=width - 1, height=height - 1, class_=kind, data_tip=tip))
    for shown, along, anchor in _ends(cells.first, labels[0], width < 44):
        parts.append(text(shown, left + width * along, bottom + 15, text_anchor=anchor, class_="tick"))
    lower = {"start": 0.0, "middle": 4.0, "end": 9.0}
    for shown, along, anchor in _ends(cells.second, labels[1], False):
        at = bottom - height * along + lower[anchor]
        parts.append(text(shown, left - 6, at, text_anchor="end", class_="tick"))
    parts.append(text(shorten(cells.first.name, 34), right, frame.height - 5, text_anchor="end", class_="label"))
    title = f"{cells.label} over {shorten(cells.first.name, 60)} and {shorten(cells.second.name, 60)}"
    return picture(frame, title, *parts, class_="small")


def _cell_labels(axis: CellAxis, level_names: Mapping[str, Mapping[float, str]]) -> list[str]:
    names = level_names.get(axis.name, {})
    return [
        names.get(float(low), format_number(float(low)))
        if low == high
        else f"{format_number(float(low))} to {format_number(float(high))}"
        for low, high in zip(axis.lower, axis.upper, strict=True)
    ]


def _ends(axis: CellAxis, labels: list[str], tight: bool) -> list[tuple[str, float, str]]:
    """Return tick labels with their places: the outermost values of a number, or each category where there is room."""
    if axis.by_rank:
        low, high = format_number(float(axis.lower[0])), format_number(float(axis.upper[-1]))
        return [(low, 0.0, "start"), (high, float(axis.n_cells), "end")]
    shown = [(shorten(label, 7), place + 0.5, "middle") for place, label in enumerate(labels)]
    return [shown[0], shown[-1]] if tight else shown
