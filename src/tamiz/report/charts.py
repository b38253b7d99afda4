"""Charts of the pages as SVG: lines, rows of marks, squares, rasters, distributions, marks of single columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tamiz._utils.pictures import Grid, Lines, Series
from tamiz.report.columns import NEAR_COPY, Distribution
from tamiz.report.svg import Frame, Scale, element, marker, number, png_address, polyline, series_class, text
from tamiz.report.text import format_value, shorten

WIDE, NARROW = 720, 400
#: Up to so many classes are drawn as overlaid histograms; more as one row of quantiles each.
N_OVERLAID = 3
N_GROUPS = 12
_REACH = 176.0


def both_widths(draw: Any, *arguments: Any, **more: Any) -> dict[str, str]:
    """Draw a chart for a wide and for a narrow screen, where a shrunken one could not be read."""
    return {"wide": draw(*arguments, WIDE, **more), "narrow": draw(*arguments, NARROW, **more)}


def line_chart(lines: Lines, width: int = 360, height: int = 300) -> str:
    """Draw a description of lines or points as SVG."""
    frame = Frame(width, height, top=30, left=52 if width > 380 else 46)
    numbers = [v for s in lines.series for part in (s.y, s.low, s.high) if part is not None for v in np.ravel(part)]
    numbers = [float(v) for v in [*numbers, *(value for _, value in lines.levels)] if np.isfinite(v)]
    if lines.top is not None:
        numbers = [min(v, lines.top) for v in numbers]
    across = [float(v) for s in lines.series for v in np.ravel(s.x)]
    across += [] if lines.chosen is None else [lines.chosen[1]]
    if lines.unit_square:
        x, y = Scale(0.0, 1.0, *frame.x_range), Scale(0.0, 1.0, *frame.y_range)
    else:
        if lines.diagonal:
            numbers = across = [*numbers, *across]
        pad = 0.0 if lines.phases else 0.04
        x = Scale.over(across, *frame.x_range, log=lines.log_x, pad=pad)
        y = Scale.over(numbers, *frame.y_range, log=lines.log_y, pad=0.06)
    parts = []
    (left, right), (bottom, top) = frame.x_range, frame.y_range
    for place, (name, start, stop) in enumerate(lines.phases):
        shape = {"x": x(start), "y": top, "width": max(0.0, x(stop) - x(start)), "height": bottom - top}
        parts.append(element("rect", **shape, class_=f"phase phase{place % 2}"))
        if shape["width"] > 6 * len(name):
            parts.append(text(name, (x(start) + x(stop)) / 2, top - 5, text_anchor="middle", class_="phase-name"))
    parts.append(frame.axes(x, y, lines.x_label, "" if lines.phases else lines.y_label, x_ticks=lines.x_ticks))
    last = -math.inf
    for name, value in sorted(lines.levels, key=lambda level: -level[1]):
        last = max(y(value) - 4, last + 13)  # names are moved apart where they would overlap
        parts.append(element("line", x1=left, x2=right, y1=y(value), y2=y(value), class_="reference"))
        parts.append(text(name, right, last, text_anchor="end", class_="reference-name"))
    if lines.diagonal:
        parts.append(element("line", x1=x(x.low), y1=y(x.low), x2=x(x.high), y2=y(x.high), class_="chosen"))
    if lines.chosen is not None:
        name, value = lines.chosen
        parts.append(element("line", x1=x(value), x2=x(value), y1=bottom, y2=top, class_="chosen"))
        side, anchor = (-6, "end") if x(value) > width * 0.7 else (6, "start")
        parts.append(text(name, x(value) + side, top + 10, text_anchor=anchor, class_="note"))
    shift = 0.0 if lines.band else min(5.0, 22.0 / max(len(lines.series), 1))
    marked = [s for s in lines.series if s.style == "marked"]
    for series in lines.series:
        apart = (marked.index(series) - (len(marked) - 1) / 2) * shift if series in marked else 0.0
        parts.append(_series(series, x, y, apart, lines))
    return frame.picture(lines.title, *parts)


def _series(series: Series, x: Scale, y: Scale, apart: float, lines: Lines) -> str:
    colour = series_class(series.colour)
    points = [
        (x(float(a)) + apart, y(float(b)) if np.isfinite(b) else math.nan)
        for a, b in zip(series.x, series.y, strict=True)
    ]
    parts = []
    if series.low is not None and series.high is not None:
        ends = [(p[0], y(float(a)), y(float(b))) for p, a, b in zip(points, series.low, series.high) if np.isfinite(a)]
        if lines.band and len(ends) > 1:
            around = [(at, high) for at, _, high in ends] + [(at, low) for at, low, _ in reversed(ends)]
            shape = "M" + "L".join(f"{number(a)} {number(b)}" for a, b in around) + "Z"
            parts.append(element("path", d=shape, class_=f"band {colour}"))
        elif not lines.band:
            parts += [element("line", x1=a, x2=a, y1=b, y2=c, class_=f"whisker {colour}") for a, b, c in ends]
    marks = series.style in ("marked", "points")
    by_point = len(series.tips) == len(points) and (len(points) > 1 or marks)
    if series.style != "points":
        look = {"thin": f"line {colour} thin", "grey": "path dropped"}.get(series.style, f"line {colour}")
        whole = series.tips[0] if series.tips and not by_point else None
        parts.append(polyline(points, class_=look, data_tip=whole))
    every = 1 if marks else max(1, len(points) // 60)
    for place in range(0, len(points) if by_point else 0, every):
        (at, value), tip = points[place], series.tips[place]
        if math.isnan(value):
            continue
        if series.style == "points":
            parts.append(element("circle", cx=at, cy=value, r=3, class_=f"dot {colour}", data_tip=tip))
            continue
        chosen = lines.chosen is not None and float(series.x[place]) == lines.chosen[1]
        key = f"{series.x[place]:g}" if lines.chosen is not None else None
        kind = f"mark {colour}{'' if marks else ' ghost'}{' ring' if chosen else ''}"
        parts.append(marker(series.colour, at, value, 5.0 if chosen else 3.4, class_=kind, data_tip=tip, data_m=key))
    return element("g", *parts, data_series=series.name)


def square_chart(grid: Grid) -> str:
    """Draw a table of squares, darker for a larger value, each with its text on it."""
    rows, columns = [shorten(name, 16) for name in grid.rows], [shorten(name, 16) for name in grid.columns]
    size = max(24, min(64 if len(columns) <= 4 else 48, (330 if grid.texts else 200) // max(1, len(columns))))
    side = shorten(grid.y_label, 14) if grid.y_label else ""
    left = max(min(130, 20 + 7 * max(map(len, rows), default=0)), 16 + 8 * len(side))
    longest = max(map(len, columns), default=0)
    slanted = 7 * longest > size and all(map(str.strip, columns))
    top = (26 + int(4.2 * longest) if slanted else 26) + 18 * bool(grid.x_label)
    frame = Frame(left + size * len(columns) + (44 if slanted else 8), top + size * len(rows) + 8)
    parts = [text(shorten(grid.x_label, 34), left, 12, class_="label")] if grid.x_label else []
    parts += [text(side, 2, top - 8, class_="label")] if side else []
    for j, column in enumerate(columns):
        at = left + size * (j + 0.5)
        turn = {"text_anchor": "middle"}
        if slanted:
            turn = {"text_anchor": "start", "transform": f"rotate(-38 {number(at)} {top - 8})"}
        parts.append(text(column, at, top - 8, **turn, class_="tick"))
    shares = (np.asarray(grid.values, dtype=np.float64) - grid.low) / ((grid.high - grid.low) or 1.0)
    for i, row in enumerate(rows):
        at = top + size * (i + 0.5)
        parts.append(text(row, left - 8, at + 4, text_anchor="end", class_="tick"))
        for j, share in enumerate(shares[i].tolist()):
            # Ten steps let the style sheet set colours for both themes.
            look = "hnone" if math.isnan(share) else f"h{round(10 * min(max(share, 0.0), 1.0))}"
            if grid.codes is not None:
                look += f" by-class {series_class(int(grid.codes[i, j]))}"
            place = {"x": left + size * j + 1.0, "y": top + size * i + 1.0, "width": size - 2.0, "height": size - 2.0}
            tip = grid.tips[i][j] if grid.tips else None
            parts.append(element("rect", **place, rx=3, class_=f"heat {look}", data_tip=tip))
            label, middle = grid.texts[i][j] if grid.texts else "", left + size * (j + 0.5)
            if label and (size >= 30 or len(label) < 3):
                parts.append(text(label, middle, at + 4, text_anchor="middle", class_=f"on-heat {look}"))
    return frame.picture(grid.title, *parts, class_="natural")


def raster_chart(grid: Grid, width: int, *, key: str, above: str = "", square: bool = False) -> str:
    """Draw many cells as one embedded picture with the names of its rows at the left.

    Parameters
    ----------
    grid : Grid
        Cells; square ones are correlations, of which those above ``NEAR_COPY`` are outlined.
    width : int
        Width of the drawing.
    key : str
        Which grid of the data block belongs to the picture.
    above : str, default=""
        Markup above the picture.
    square : bool, default=False
        Whether cells are as wide as they are high.
    """
    left, (n_rows, n_columns) = label_room(width), grid.values.shape
    high, outline = 14.0 if n_rows > 24 else 18.0, ""
    if square:
        high = min(22.0, (width - left - 8) / n_columns)
        near = np.argwhere((np.abs(grid.values) > NEAR_COPY) & ~np.eye(n_columns, dtype=bool))
        outline = "".join(f"M{j} {i}h1v1h-1z" for i, j in near.tolist())
    wide = high * n_columns if square else width - left - 4.0
    top = 24.0 if above else 6.0
    frame = Frame(round(left + wide + 4) if square else width, round(top + high * n_rows + 6))
    parts, limit, look = [above], max(6, int(left / 6.6)), "cell-name tight" if high < 11 else "cell-name"
    for i, row in enumerate(grid.rows):
        at = top + high * (i + 0.5) + min(12.0, high * 0.95) * 0.35
        parts.append(text(shorten(row, limit), left - 6, at, text_anchor="end", class_=look))
    place = {"x": left, "y": top, "width": wide, "height": high * n_rows}
    image = png_address(grid.values, grid.high)
    parts.append(element("image", **place, href=image, preserveAspectRatio="none", class_="diverging"))
    if outline:
        turn = f"translate({number(left)} {number(top)}) scale({wide / n_columns:.4f} {high:.4f})"
        parts.append(element("g", element("path", d=outline, class_="outline"), transform=turn, class_="over-cells"))
    parts.append(element("rect", x=left, y=top, width=1.0, height=1.0, class_="cursor", visibility="hidden"))
    parts.append(element("rect", **place, class_="cells", data_grid=key))
    return frame.picture(grid.title, *parts, class_="natural" if square else "")


def label_room(width: int) -> float:
    """Return the room for the names of the rows in a picture of some width."""
    return 150.0 if width > 500 else 96.0


def class_strip(groups: np.ndarray, wrong: np.ndarray | None, width: int) -> str:
    """Draw the classes of the columns of a raster above it, with a mark for each that was predicted wrongly."""
    left = label_room(width)
    wide = (width - left - 4.0) / len(groups)
    parts, borders = [], [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
    for start, stop in itertools.pairwise(borders):
        place = {"x": left + wide * start, "y": 12.0, "width": wide * (stop - start), "height": 9.0}
        parts.append(element("rect", **place, class_=f"strip {series_class(int(groups[start]))}"))
    rows = [] if wrong is None else np.flatnonzero(wrong).tolist()
    marks = "".join(f"M{number(left + wide * (i + 0.5) - 3)} 2h6l-3 7z" for i in rows)
    return "".join(parts) + (element("path", d=marks, class_="wrong") if marks else "")


def heat_charts(heat: Grid, codes: np.ndarray, wrong: np.ndarray | None = None) -> dict[str, str]:
    """Draw the heat map of kept columns for both widths, with the classes of its rows above it."""
    return both_widths(lambda width: raster_chart(heat, width, key="heat", above=class_strip(codes, wrong, width)))


def fold_chart(grid: Grid, n_kept: int, width: int) -> str:
    """Draw columns by folds: a filled cell where the fold kept the column; below a line those the fit did not keep."""
    left, cell = label_room(width), 15.0
    n_columns, n_folds = grid.values.shape
    side, gap = min(26.0, (width - left - 64.0) / n_folds), 10.0 if n_kept < n_columns else 0.0
    right, limit = left + side * n_folds, max(6, int(left / 6.6))
    parts = [text("fold", left - 6, 14, text_anchor="end", class_="label")]
    numbered = range(0, n_folds, max(1, math.ceil(20 / side)))
    parts += [text(grid.columns[f], left + side * (f + 0.5), 14, text_anchor="middle", class_="tick") for f in numbered]
    box = f"h{number(side - 2)}v{number(cell - 2)}h-{number(side - 2)}z"
    for i, name in enumerate(grid.rows):
        kept, chosen = i < n_kept, np.asarray(grid.values[i], dtype=bool)
        at, n_chosen = 20 + cell * i + (0.0 if kept else gap), int(chosen.sum())
        parts.append(text(shorten(name, limit), left - 6, at + 11.5, text_anchor="end", class_="cell-name"))
        for state, folds in (("chosen", np.flatnonzero(chosen)), ("not-chosen", np.flatnonzero(~chosen))):
            shape = "".join(f"M{number(left + side * f + 1)} {number(at + 1)}{box}" for f in folds)
            look = f"fold-cell {state}{'' if kept else ' left-out'}"
            look += " faint-bar" if state == "chosen" and n_chosen < n_folds / 2 else ""
            parts.append(element("path", d=shape, class_=look) if shape else "")
        tip = f"{shorten(name, 60)}: {n_chosen} of {n_folds} folds{'' if kept else '; not in the final fit'}"
        parts.append(element("rect", x=left, y=at, width=side * n_folds, height=cell, class_="hit", data_tip=tip))
        parts.append(text(f"{n_chosen}/{n_folds}", right + 8, at + 11.5, class_="tick"))
    if gap and n_kept:
        at = 20 + cell * n_kept + gap / 2
        parts.append(element("line", x1=2, x2=right, y1=at, y2=at, class_="chosen"))
    return Frame(width, round(26 + cell * n_columns + gap + 6)).picture(grid.title, *parts)


def distribution_chart(distribution: Distribution, name: str, width: int = 260) -> str:
    """Draw one column by class: overlaid histograms, quantile bars if there are many classes, or shares of levels.

    Missing values have a bar of their own at the right.
    """
    if distribution.levels:
        return _level_chart(distribution, name, width)
    groups = distribution.groups[:N_GROUPS]
    overlaid = len(groups) <= N_OVERLAID
    missing = overlaid and any(group.n_missing for group in groups)
    height = 128 if overlaid else 22 * len(groups) + 34
    frame = Frame(width, height, left=6 if overlaid else 76, right=58 if missing else 6, top=6, bottom=20)
    edges = np.array(distribution.edges)
    x = Scale(edges[0], edges[-1], *frame.x_range)
    bottom, top = frame.y_range
    parts = [element("line", x1=frame.left, x2=width - frame.right, y1=bottom, y2=bottom, class_="axis")]
    for value, at, anchor in zip(distribution.ends, frame.x_range, ("start", "end"), strict=True):
        parts.append(text(format_value(value), at, height - 4, text_anchor=anchor, class_="tick"))
    totals = [max(group.n_rows + group.n_missing, 1) for group in groups]
    widths = np.diff(edges)
    heights = [np.array(group.counts) / total * max(widths) / widths for group, total in zip(groups, totals)]
    lacking = [group.n_missing / total if missing else 0.0 for group, total in zip(groups, totals)]
    tallest = max([*np.ravel(heights).tolist(), *lacking], default=1.0) or 1.0
    for position, group in enumerate(groups):
        low, quarter, median, upper, high = group.quantiles
        label, colour, series = shorten(group.label, 40), series_class(position), {"data_series": str(position)}
        half = f"half of the rows from {format_value(quarter)} to {format_value(upper)}"
        tip = f"{label}: median {format_value(median)}, {half} ({group.n_rows:,} rows)"
        if missing:
            reach, wide = (bottom - top) * lacking[position] / tallest, 40.0 / len(groups)
            place = {"x": width - 46 + wide * position, "y": bottom - reach, "width": wide - 1.5, "height": reach}
            said = f"{label}: {group.n_missing:,} of {totals[position]:,} rows are missing"
            parts.append(element("rect", **place, class_=f"column missing {colour}", data_tip=said, **series))
        if not math.isfinite(median):
            continue
        if overlaid:
            shape = f"M{number(x(edges[0]))} {number(bottom)}"
            for a, b, share in zip(edges[:-1], edges[1:], heights[position], strict=True):
                shape += f"L{number(x(a))} {number(bottom - (bottom - top) * share / tallest)}H{number(x(b))}"
            outline = f"{shape}V{number(bottom)}Z"
            parts.append(element("path", d=outline, class_=f"histogram {colour}", data_tip=tip, **series))
            place = {"x1": x(median), "x2": x(median), "y1": bottom, "y2": bottom - 10.0}
            parts.append(element("line", **place, class_=f"median {colour}", **series))
        else:
            at = top + 12 + 22.0 * position
            parts.append(text(shorten(group.label, 10), frame.left - 8, at + 4, text_anchor="end", class_="tick"))
            parts.append(element("line", x1=x(low), x2=x(high), y1=at, y2=at, class_=f"whisker {colour}"))
            parts.append(element("line", x1=x(quarter), x2=x(upper), y1=at, y2=at, class_=f"box {colour}"))
            parts.append(element("circle", cx=x(median), cy=at, r=4, class_=f"mark {colour}", data_tip=tip))
    if missing:
        parts.append(element("line", x1=width - 48, x2=width - 4, y1=bottom, y2=bottom, class_="axis"))
        parts.append(text("missing", width - 26, height - 4, text_anchor="middle", class_="tick"))
    kind = "small overlaid" if overlaid else "small"
    return frame.picture(f"distribution of {shorten(name, 60)} by class", *parts, class_=kind)


def _level_chart(distribution: Distribution, name: str, width: int) -> str:
    """Draw the share of rows with each level, one bar per class."""
    groups = distribution.groups[: N_OVERLAID if len(distribution.groups) <= N_OVERLAID else 4]
    thick = 14.0 if len(groups) == 1 else 22.0 / len(groups)
    step = thick * len(groups) + 7
    left, reach = 92.0, width - 92.0 - 42.0
    parts = []
    shares = np.array([[c / max(1, g.n_rows + g.n_missing) for c in g.counts] for g in groups])
    largest = float(shares.max(initial=0.0)) or 1.0
    for i, level in enumerate(distribution.levels):
        at, middle, top = 3 + step * i, 3.5 + step * (i + 0.5), float(shares[:, i].max())
        parts.append(text(shorten(level, 13), left - 6, middle, text_anchor="end", class_="tick"))
        for position, group in enumerate(groups):
            share = float(shares[position, i])
            place = {"x": left, "y": at + thick * position, "width": max(0.6, reach * share / largest)}
            tip = f"{shorten(level, 40)}: {share:.0%} of {shorten(group.label, 40)} ({group.counts[i]:,} rows)"
            bar = {"height": thick - 1.0, "rx": 1, "class_": f"column {series_class(position)}", "data_tip": tip}
            parts.append(element("rect", **place, **bar, data_series=str(position)))
        parts.append(text(f"{top:.0%}", left + reach * top / largest + 5, middle, class_="value"))
    frame = Frame(width, round(step * len(distribution.levels)) + 6)
    return frame.picture(f"levels of {shorten(name, 60)} by class", *parts, class_="small shares")


def effect_bar(value: float | None, span: tuple[float, float], faint: bool = False, colour: int = -1) -> str:
    """Draw an effect from the zero line, which stands in one place for all bars of a range; -1 colours it by its sign."""
    low, high = span
    if value is None or not math.isfinite(value) or high <= low:
        return ""
    zero, at = (2 + _REACH * (v - low) / (high - low) for v in (0.0, value))
    look = series_class(int(value > 0) if colour < 0 else colour)
    place = {"x": min(zero, at), "width": max(abs(at - zero), 0.8), "y": 2.0, "height": 10.0}
    bar = element("rect", **place, rx=1.5, class_=f"column {look}")
    axis = element("line", x1=zero, x2=zero, y1=0, y2=14, class_="axis")
    kind = "bar effect faint-bar" if faint else "bar effect"
    return element("svg", bar, axis, viewBox=f"0 0 {number(_REACH + 4)} 14", class_=kind, aria_hidden="true")


def legend(names: Sequence[str], positions: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """Return the entries of a legend: the line and marker of each series with its name."""
    entries = []
    box = {"viewBox": "0 0 24 14", "width": 24, "height": 14, "class_": "swatch", "aria_hidden": "true"}
    for position, name in zip(range(len(names)) if positions is None else positions, names, strict=True):
        line = polyline([(1.0, 7.0), (23.0, 7.0)], class_=f"line {series_class(position)}")
        mark = marker(position, 12.0, 7.0, 3.4, class_=f"mark {series_class(position)}")
        entries.append({"name": name, "key": str(position), "swatch": element("svg", line, mark, **box)})
    return entries


def image_chart(mask: np.ndarray, mean: np.ndarray | None) -> str:
    """Draw the kept pixels of an image as outlined squares over the mean image (over an empty one if there is none)."""
    height, width = mask.shape
    side = 440 / max(height, width)
    frame = Frame(math.ceil(side * width), math.ceil(side * height))
    place: Mapping[str, Any] = {"x": 0, "y": 0, "width": frame.width, "height": frame.height}
    parts = [element("rect", **place, class_="image-ground")]
    if mean is not None:
        grey = np.nan_to_num(mean, nan=0.0, posinf=0.0, neginf=0.0)
        spread = float(np.ptp(grey))
        href = png_address((grey - grey.min()) / (spread if spread > 0 else 1.0) * 255)
        parts.append(element("image", **place, href=href, preserveAspectRatio="none", class_="pixels"))
    square = f"h{number(side)}v{number(side)}h-{number(side)}z"
    drawn = "".join(f"M{number(j * side)} {number(i * side)}{square}" for i, j in zip(*np.nonzero(mask), strict=True))
    parts.append(element("path", d=drawn, class_="kept-pixels"))
    label = f"{int(mask.sum()):,} kept pixels over the mean image of {height} by {width}"
    return frame.picture(label, *parts, class_="natural")
