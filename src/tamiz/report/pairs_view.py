"""Content of the page of a search for pairs: sentences, rows and pictures, made from a `PairsReport`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamiz.report.pairs_data import PairPicture, PairsReport
from tamiz.report.svg import Frame, element, picture, series_class, text
from tamiz.report.text import format_number, format_p_value, shorten

if TYPE_CHECKING:
    from tamiz.pairs.result import CellAxis

#: Rows of the table of columns, and of that of pairs if fewer are significant.
N_COLUMNS, N_PAIRS = 200, 30


def pairs_view(data: PairsReport) -> dict[str, Any]:
    """Return everything the template ``pairs.html.j2`` uses."""
    search = data.search
    n_pairs, n_columns = len(search.significant_pairs()), len(search.significant_columns())
    table = search.pairs_to_dict()
    return {
        "headline": f"{n_pairs:,} significant pair{'' if n_pairs == 1 else 's'} of {search.n_tests:,}",
        "verdict": pairs_verdict(data, n_pairs, n_columns),
        "facts": pairs_facts(data),
        "pictures": [picture_view(one, data) for one in data.pictures],
        "pictures_said": pictures_said(data),
        "pair_rows": [
            {
                "pair": pair,
                "bar": _share_bar(pair.strength),
                "strength": f"{pair.strength:.2f}",
                "p_value": format_p_value(pair.p_value),
                "significant": pair.p_value < 0.05,
            }
            for pair in search.pairs[: max(N_PAIRS, n_pairs)]
        ],
        "n_more_pairs": max(0, len(search.pairs) - max(N_PAIRS, n_pairs)),
        "column_rows": column_rows(data),
        "n_more_columns": max(0, len(search.names) - N_COLUMNS),
        "payload": {
            "kind": "pairs",
            "file": "pairs.csv",
            "header": list(table),
            "rows": [list(row) for row in zip(*table.values(), strict=True)],
        },
    }


def pairs_verdict(data: PairsReport, n_pairs: int, n_columns: int) -> str:
    """Return sentences on what was found, and what the search can miss."""
    search = data.search
    said = []
    if n_pairs:
        pair = search.pairs[0]
        at_least = "at least " if n_pairs == len(search.pairs) < search.n_tests else ""
        said.append(
            f"{at_least}{n_pairs:,} pair{' says' if n_pairs == 1 else 's say'} more about the target than "
            f"{'its' if n_pairs == 1 else 'their'} two columns alone; the strongest is {shorten(pair.first, 40)} with "
            f"{shorten(pair.second, 40)}."
        )
    elif search.n_tests:
        said.append("No pair says more about the target than its two columns alone, as far as these rows can tell.")
    said.append(f"In all, {n_columns:,} of {len(search.names):,} columns matter, on their own or in a pair.")
    if search.note:
        said.append(search.note)
    sentences = " ".join(said)
    return sentences[:1].upper() + sentences[1:]


def pairs_facts(data: PairsReport) -> list[tuple[str, str]]:
    """Return the key figures at the top of the page."""
    search = data.search
    correction = (
        f"by {search.n_permutations} permutations" if search.n_permutations else "for the number of pairs (Bonferroni)"
    )
    return [
        ("Table", f"{search.n_samples:,} rows, {len(search.names):,} columns"),
        ("Task", f"{data.task} of {data.target}" if data.target else data.task),
        ("Search", "all pairs" if search.method == "full" else "sketch"),
        ("P values corrected", correction),
    ]


def pictures_said(data: PairsReport) -> str:
    """Return the sentence that says what the pictures show."""
    if not data.pictures:
        return ""
    cells = data.pictures[0].cells
    if len(cells.classes) > 2:
        what = "Colour: the commonest class of each cell; the stronger, the larger its share"
    else:
        of = cells.label if cells.classes else f"mean of {data.target or 'the target'}"
        what = f"The darker a cell, the larger the {of}"
    return f"{what}. Cells hold equally many rows by rank, or one value each. Empty cells hold no row."


def picture_view(one: PairPicture, data: PairsReport) -> dict[str, Any]:
    """Return the picture of one pair with its caption."""
    pair = one.pair
    caption = f"{shorten(pair.first, 30)} × {shorten(pair.second, 30)}"
    return {
        "chart": pair_chart(one, data.level_names),
        "caption": caption,
        "said": f"strength {pair.strength:.2f}, p {format_p_value(pair.p_value)}, {pair.shape}",
    }


def _cell_labels(axis: CellAxis, level_names: Mapping[str, Mapping[float, str]]) -> list[str]:
    names = level_names.get(axis.name, {})
    return [
        names.get(float(low), format_number(float(low)))
        if low == high
        else f"{format_number(float(low))} to {format_number(float(high))}"
        for low, high in zip(axis.lower, axis.upper, strict=True)
    ]


def pair_chart(one: PairPicture, level_names: Mapping[str, Mapping[float, str]], size: int = 280) -> str:
    """Draw the cells of two columns, coloured by the target.

    Parameters
    ----------
    one : PairPicture
        The pair.
    level_names : mapping
        Names of categories by column and code.
    size : int, default=280
        Width of the picture.
    """
    cells = one.cells
    labels = _cell_labels(cells.first, level_names), _cell_labels(cells.second, level_names)
    frame = Frame(size, size - 24, left=58, right=6, top=22, bottom=40)
    (left, right), (bottom, top) = frame.x_range, frame.y_range
    width, height = (right - left) / cells.first.n_cells, (bottom - top) / cells.second.n_cells
    parts = [text(shorten(cells.second.name, 34), 2, 12, class_="label")]
    for row in range(cells.second.n_cells):
        for column in range(cells.first.n_cells):
            share = float(cells.shares[row, column])
            if math.isnan(share):  # no row: the paper shows
                continue
            kind = f"heat h{round(10 * min(max(share, 0.0), 1.0))}"
            if len(cells.classes) > 2:
                kind += f" by-class {series_class(int(cells.means[row, column]))}"
            where = f"{cells.first.name} {labels[0][column]}, {cells.second.name} {labels[1][row]}"
            parts.append(
                element(
                    "rect",
                    x=left + width * column + 0.5,
                    y=bottom - height * (row + 1) + 0.5,
                    width=width - 1.0,
                    height=height - 1.0,
                    class_=kind,
                    data_tip=f"{where}: {_said(one, row, column)}",
                )
            )
    parts.extend(_ends(cells.first, labels[0], left, width, bottom + 15, along_x=True))
    parts.extend(_ends(cells.second, labels[1], bottom, height, left - 6, along_x=False))
    parts.append(text(shorten(cells.first.name, 34), right, frame.height - 5, text_anchor="end", class_="label"))
    title = f"{cells.label} over {shorten(cells.first.name, 60)} and {shorten(cells.second.name, 60)}"
    return picture(frame, title, *parts, class_="small")


def _said(one: PairPicture, row: int, column: int) -> str:
    """Return what one cell holds."""
    cells = one.cells
    count = int(cells.counts[row, column])
    mean, share = float(cells.means[row, column]), float(cells.shares[row, column])
    rows = f"({count:,} row{'' if count == 1 else 's'})"
    if len(cells.classes) > 2:
        return f"{share:.0%} {shorten(cells.classes[int(mean)], 30)} {rows}"
    return f"{mean:.0%} {shorten(cells.classes[1], 30)} {rows}" if cells.classes else f"{format_number(mean)} {rows}"


def _ends(axis: CellAxis, labels: list[str], start: float, step: float, at: float, *, along_x: bool) -> list[str]:
    """Return tick labels: those of the outermost values of a number, or of each category where there is room."""
    if axis.by_rank:
        shown = [
            (0.0, format_number(float(axis.lower[0])), "start"),
            (axis.n_cells, format_number(float(axis.upper[-1])), "end"),
        ]
    else:
        shown = [(place + 0.5, shorten(label, 7), "middle") for place, label in enumerate(labels)]
        if along_x and step < 44:
            shown = [shown[0], shown[-1]]
    if along_x:
        return [
            text(label, start + step * place, at, text_anchor=anchor, class_="tick") for place, label, anchor in shown
        ]
    shift = {"start": 0.0, "middle": 4.0, "end": 9.0}
    return [
        text(label, at, start - step * place + shift[anchor], text_anchor="end", class_="tick")
        for place, label, anchor in shown
    ]


def column_rows(data: PairsReport) -> list[dict[str, Any]]:
    """Return the rows of the table of columns, strongest first."""
    search = data.search
    table = search.columns_to_dict()
    rows = []
    for name, score, p, alone, partner, pair_p in list(zip(*table.values(), strict=True))[:N_COLUMNS]:
        rows.append(
            {
                "name": name,
                "score": format_number(score),
                "score_value": score,
                "p_value": format_p_value(p),
                "significant": p < 0.05,
                "alone": format_p_value(alone),
                "partner": partner,
                "pair": format_p_value(pair_p),
            }
        )
    return rows


def _share_bar(value: float | None) -> str:
    """Draw a share as a bar, for a table cell."""
    if value is None or not math.isfinite(value):
        return ""
    track = element("rect", x=0, y=2.0, width=60.0, height=8.0, rx=4, class_="track")
    bar = element("rect", x=0, y=2.0, width=60.0 * min(max(value, 0.0), 1.0), height=8.0, rx=4, class_="fill")
    return element("svg", track, bar, viewBox="0 0 60 12", width=60, height=12, class_="bar", aria_hidden="true")
