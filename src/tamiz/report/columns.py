"""Marks of single columns: effect bars with whiskers, dots for folds, cells by class, the grid of folds, heat maps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tamiz.report.evidence import Correlations, FoldGrid, HeatMap
from tamiz.report.raster import label_room, quantise, raster_chart
from tamiz.report.svg import Frame, element, number, picture, series_class, text
from tamiz.report.text import format_number, shorten

#: Correlations above this size are outlined.
NEAR_COPY = 0.8
#: Classes drawn as cells beside a column; the effects of more are in the table of classes alone.
MOST_CELLS = 12
_REACH = 176.0


def effect_range(effects: Sequence[float | None]) -> tuple[float, float]:
    """Return the smallest and the largest of some effects, with 0 between them.

    Examples
    --------
    >>> effect_range([0.5, None, 2.0]), effect_range([-1.0])
    ((0.0, 2.0), (-1.0, 0.0))
    """
    finite = _finite(effects)
    return min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)


def effect_bar(
    value: float | None, span: tuple[float, float], colour: str, folds: Sequence[float | None] = (), faint: bool = False
) -> str:
    """Draw an effect from the zero line, which stands in one place for all bars of a range, with the range of the folds."""
    low, high = span
    if value is None or not math.isfinite(value) or high <= low:
        return ""
    middle = 2 - _REACH * low / (high - low)
    at = [2 + _REACH * (max(low, min(high, v)) - low) / (high - low) for v in (value, *_finite(folds))]
    bar = element(
        "rect",
        x=min(middle, at[0]),
        y=2.0,
        width=max(abs(at[0] - middle), 0.8),
        height=10.0,
        rx=1.5,
        class_=f"column {colour}",
    )
    parts = [bar]
    if len(at) > 1:
        low, high = min(at[1:]), max(at[1:])
        parts.append(element("path", d=f"M{number(low)} 7H{number(high)}M{number(low)} 4V10M{number(high)} 4V10"))
    parts.append(element("line", x1=middle, x2=middle, y1=0, y2=14, class_="axis"))
    size = _REACH + 4
    class_ = "bar effect faint-bar" if faint else "bar effect"
    return element("svg", *parts, viewBox=f"0 0 {number(size)} 14", class_=class_, aria_hidden="true")


def _finite(values: Sequence[float | None]) -> list[float]:
    return [v for v in values if v is not None and math.isfinite(v)]


def class_cells(effects: Sequence[float], largest: float, labels: Sequence[str]) -> str:
    """Draw the effects of one column on more than two classes as cells, blue below zero and red above."""
    cells = []
    for i, (effect, label) in enumerate(zip(effects[:MOST_CELLS], labels, strict=False)):
        step = round(5 * max(-1.0, min(1.0, effect / largest))) if largest > 0 else 0
        tip = f"{shorten(label, 40)}: {format_number(effect, signed=True)}"
        side = "up" if step > 0 else "down"
        place = {"x": 18.0 * i + 1, "y": 1.0, "width": 16.0, "height": 12.0, "rx": 2}
        cells.append(element("rect", **place, class_=f"class-cell {side}{abs(step)}", data_tip=tip))
    size = 18 * min(len(effects), MOST_CELLS)
    return element(
        "svg", *cells, viewBox=f"0 0 {size} 14", width=size, height=14, class_="bar cells", aria_hidden="true"
    )


def share_dot(share: float | None) -> str:
    """Draw the share of folds as a dot in a ring; faint below one half."""
    if share is None or not math.isfinite(share):
        return ""
    share = min(max(share, 0.0), 1.0)
    parts = [element("circle", cx=7, cy=7, r=5.6, class_="ring"), element("circle", cx=7, cy=7, r=5.2 * share**0.5)]
    class_ = "bar dot-share faint-bar" if share < 0.5 else "bar dot-share"
    return element("svg", *parts, viewBox="0 0 14 14", width=14, height=14, class_=class_, aria_hidden="true")


def fold_grid_chart(grid: FoldGrid, width: int) -> str:
    """Draw columns by folds: a filled cell where the fold kept the column; below a line those that the fit did not keep."""
    left, cell = label_room(width), 15.0
    n_columns, n_folds = grid.chosen.shape
    side = min(26.0, (width - left - 64.0) / n_folds)
    gap = 10.0 if not all(grid.kept) else 0.0
    frame = Frame(width, round(26 + cell * n_columns + gap + 6))
    every = max(1, math.ceil(20 / side))
    parts = [text("fold", left - 6, 14, text_anchor="end", class_="label")]
    parts += [
        text(str(fold + 1), left + side * (fold + 0.5), 14, text_anchor="middle", class_="tick")
        for fold in range(0, n_folds, every)
    ]
    limit = max(6, int(left / 6.6))
    for i, name in enumerate(grid.names):
        at = 20 + cell * i + (0.0 if grid.kept[i] else gap)
        parts.append(text(shorten(name, limit), left - 6, at + 11.5, text_anchor="end", class_="cell-name"))
        n_chosen = int(grid.chosen[i].sum())
        for state, wanted in (("chosen", True), ("not-chosen", False)):
            shape = "".join(
                f"M{number(left + side * f + 1)} {number(at + 1)}h{number(side - 2)}v{number(cell - 2)}h-{number(side - 2)}z"
                for f in np.flatnonzero(grid.chosen[i] == wanted)
            )
            if shape:
                faint = " faint-bar" if wanted and n_chosen < n_folds / 2 else ""
                kind = "" if grid.kept[i] else " left-out"
                parts.append(element("path", d=shape, class_=f"fold-cell {state}{kind}{faint}"))
        tip = f"{shorten(name, 60)}: {n_chosen} of {n_folds} folds" + ("" if grid.kept[i] else "; not in the final fit")
        place = {"x": left, "y": at, "width": side * n_folds, "height": cell}
        parts.append(element("rect", **place, class_="hit", data_tip=tip))
        parts.append(text(f"{n_chosen}/{n_folds}", left + side * n_folds + 8, at + 11.5, class_="tick"))
    if gap and any(grid.kept):
        at = 20 + cell * sum(grid.kept) + gap / 2
        parts.append(element("line", x1=2, x2=left + side * n_folds, y1=at, y2=at, class_="chosen"))
    return picture(frame, "columns that each fold kept", *parts)


def heat_map_chart(heat: HeatMap, width: int) -> str:
    """Draw z scores as one picture, with a strip of classes and marks of held-out errors on top."""
    left = label_room(width)
    wide = (width - left - 4.0) / len(heat.rows)
    parts, start = [], 0
    borders = [*(np.flatnonzero(np.diff(heat.groups)) + 1).tolist(), len(heat.groups)]
    for stop in borders:
        group = int(heat.groups[start])
        place = {"x": left + wide * start, "y": 12.0, "width": wide * (stop - start), "height": 9.0}
        parts.append(element("rect", **place, class_=f"strip {series_class(group)}"))
        start = stop
    if heat.wrong is not None:
        marks = "".join(
            f"M{number(left + wide * (i + 0.5) - 3)} 2h6l-3 7z" for i in np.flatnonzero(np.asarray(heat.wrong))
        )
        parts.append(element("path", d=marks, class_="wrong") if marks else "")
    height = 14.0 if len(heat.names) > 24 else 18.0
    title = f"z scores of {len(heat.names)} kept columns in {len(heat.rows)} rows, clustered"
    return raster_chart(
        quantise(heat.z, 3.0),
        heat.names,
        title,
        key="heat",
        width=width,
        cell_height=height,
        top=24.0,
        above="".join(parts),
    )


def correlation_chart(correlations: Correlations, width: int) -> str:
    """Draw the correlations of kept columns; pairs above ``NEAR_COPY`` are outlined."""
    n_columns = len(correlations.names)
    cell = min(22.0, (width - label_room(width) - 8) / n_columns)
    near = np.argwhere((np.abs(correlations.values) > NEAR_COPY) & ~np.eye(n_columns, dtype=bool))
    outline = "".join(f"M{j} {i}h1v1h-1z" for i, j in near.tolist())
    return raster_chart(
        quantise(correlations.values, 1.0),
        correlations.names,
        f"correlations of {n_columns} kept columns",
        key="correlations",
        width=width,
        cell_height=cell,
        over=element("path", d=outline, class_="outline") if outline else "",
        square=True,
    )


def near_copies(correlations: Correlations) -> list[tuple[str, str, float]]:
    """Return the pairs of kept columns that correlate above ``NEAR_COPY``, closest first.

    Examples
    --------
    >>> near_copies(Correlations(("a", "b"), np.array([[1.0, -0.9], [-0.9, 1.0]])))
    [('a', 'b', -0.9)]
    """
    found = [
        (correlations.names[i], correlations.names[j], float(correlations.values[i, j]))
        for i in range(len(correlations.names))
        for j in range(i + 1, len(correlations.names))
        if abs(correlations.values[i, j]) > NEAR_COPY
    ]
    return sorted(found, key=lambda pair: -abs(pair[2]))
