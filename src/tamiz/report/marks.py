"""Charts made of single marks: intervals, heat maps, residuals, distributions, ranks, times, bars in tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from tamiz.evaluation.intervals import Interval
from tamiz.evaluation.significance import MethodRank
from tamiz.report.data import Distribution, Residuals
from tamiz.report.lines import describe_score, interval_numbers
from tamiz.report.svg import Frame, Scale, axes, element, marker, number, picture, polyline, series_class, spread, text
from tamiz.report.text import format_number, format_p_value, format_score, format_seconds, shorten

N_RESIDUALS = 500
#: Up to so many classes are drawn as overlaid histograms; more as one row of quantiles each.
N_OVERLAID = 3
N_GROUPS = 12


def score_intervals(entries: Sequence[tuple[str, Interval]], metric: str, width: int = 400) -> str:
    """Draw one row per score: a dot, its interval, the number at the right."""
    frame = Frame(width, 34 * len(entries) + 46, left=12, right=12, top=8)
    bounds = interval_numbers(score for _, score in entries)
    x = Scale.over(bounds, 110.0, width - 62.0, pad=0.06)
    bottom = frame.height - 36
    parts = []
    ticks = x.ticks(4)
    for tick, shown in zip(ticks, x.labels(ticks), strict=True):
        parts.append(element("line", x1=x(tick), x2=x(tick), y1=8.0, y2=bottom, class_="grid"))
        parts.append(text(shown, x(tick), bottom + 16, text_anchor="middle", class_="tick"))
    parts.append(text(metric, x.stop, frame.height - 4, text_anchor="end", class_="label"))
    for row, (label, score) in enumerate(entries):
        at = 26.0 + 34 * row
        parts.append(text(label, 2, at + 4, class_="row-label strong" if row == 0 else "row-label"))
        if score.has_ends:
            parts.append(
                element("line", x1=x(score.low), x2=x(score.high), y1=at, y2=at, class_=f"whisker thick s{row}")
            )
        if score.is_known:
            parts.append(
                marker(
                    row, x(score.value), at, 5.0, class_=f"mark s{row}", data_tip=f"{label}: {describe_score(score)}"
                )
            )
        parts.append(text(format_score(score.value), width - 2, at + 4, text_anchor="end", class_="value"))
    return picture(frame, f"{metric}, with intervals", *parts)


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    shares: Sequence[Sequence[float | None]],
    labels: Sequence[Sequence[str]],
    tips: Sequence[Sequence[str]],
    title: str,
    row_title: str = "",
    column_title: str = "",
) -> str:
    """Draw a table of squares, darker for a larger share (0 to 1), each with its number written on it."""
    size = 64 if len(columns) <= 4 else max(24, min(48, 330 // len(columns)))
    left = min(130, 20 + 7 * max((len(shorten(r, 16)) for r in rows), default=0))
    slanted = 7 * max((len(shorten(c, 16)) for c in columns), default=0) > size
    top = (26 + int(4.2 * max(len(shorten(c, 16)) for c in columns)) if slanted else 26) + (18 if column_title else 0)
    frame = Frame(left + size * len(columns) + (44 if slanted else 8), top + size * len(rows) + 8)
    parts = []
    if column_title:
        parts.append(text(column_title, left, 12, class_="label"))
    if row_title:
        parts.append(text(row_title, 2, top - 6, class_="label"))
    for j, column in enumerate(columns):
        at, turn = left + size * (j + 0.5), {}
        if slanted:
            turn = {"transform": f"rotate(-38 {number(at)} {top - 8})"}
        anchor = "start" if slanted else "middle"
        parts.append(text(shorten(column, 16), at, top - 8, text_anchor=anchor, class_="tick", **turn))
    for i, row in enumerate(rows):
        at = top + size * (i + 0.5)
        parts.append(text(shorten(row, 16), left - 8, at + 4, text_anchor="end", class_="tick"))
        for j in range(len(columns)):
            share = shares[i][j]
            # Ten steps are more than the eye tells apart, and let the style sheet set colours for both themes.
            step = "none" if share is None else str(round(10 * min(max(share, 0.0), 1.0)))
            cell = element(
                "rect",
                x=left + size * j + 1.0,
                y=top + size * i + 1.0,
                width=size - 2.0,
                height=size - 2.0,
                rx=3,
                class_=f"heat h{step}",
                data_tip=tips[i][j],
            )
            parts.append(cell)
            if size >= 30 or len(labels[i][j]) < 3:
                inside = text(
                    labels[i][j], left + size * (j + 0.5), at + 4, text_anchor="middle", class_=f"on-heat h{step}"
                )
                parts.append(inside)
    return picture(frame, title, *parts, class_="natural")


def residual_chart(residuals: Residuals, width: int = 440, height: int = 320) -> str:
    """Predicted against actual values; on the line the prediction is right."""
    actual = np.asarray(residuals.actual, dtype=np.float64)
    predicted = np.asarray(residuals.predicted, dtype=np.float64)
    fine = np.isfinite(actual) & np.isfinite(predicted)
    rows = np.flatnonzero(fine)
    if rows.size > N_RESIDUALS:
        rows = rows[np.linspace(0, rows.size - 1, N_RESIDUALS).astype(np.int64)]
    frame = Frame(width, height, top=30)
    held = [*actual[rows], *predicted[rows]]
    x = Scale.over(held, *frame.x_range, pad=0.04)
    y = Scale.over(held, *frame.y_range, pad=0.04)
    parts = [axes(frame, x, y, "actual", "predicted")]
    parts.append(element("line", x1=x(x.low), y1=y(x.low), x2=x(x.high), y2=y(x.high), class_="chosen"))
    parts.extend(
        element(
            "circle",
            cx=x(actual[i]),
            cy=y(predicted[i]),
            r=3,
            class_="dot s0",
            data_tip=f"actual {format_number(actual[i])}, predicted {format_number(predicted[i])}, "
            f"residual {format_number(predicted[i] - actual[i], signed=True)}",
        )
        for i in rows
    )
    return picture(frame, "predicted against actual values", *parts)


def distribution_chart(distribution: Distribution, label: str, width: int = 260, height: int = 128) -> str:
    """Draw one feature by class: overlaid histograms, or quantile bars if there are many classes."""
    groups = distribution.groups[:N_GROUPS]
    overlaid = len(groups) <= N_OVERLAID
    if not overlaid:
        height = 22 * len(groups) + 34
    frame = Frame(width, height, left=6 if overlaid else 76, right=6, top=6, bottom=20)
    x = Scale(distribution.edges[0], distribution.edges[-1], *frame.x_range)
    bottom, top = frame.y_range
    parts = [element("line", x1=frame.left, x2=width - frame.right, y1=bottom, y2=bottom, class_="axis")]
    for value, anchor in ((x.low, "start"), (x.high, "end")):
        parts.append(text(format_number(value), x(value), height - 4, text_anchor=anchor, class_="tick"))
    tallest = max((c / max(g.n_rows, 1) for g in groups for c in g.counts), default=1.0) or 1.0
    for position, group in enumerate(groups):
        low, quarter, median, upper, high = group.quantiles
        tip = (
            f"{shorten(group.label, 40)}: median {format_number(median)}, half of the rows from "
            f"{format_number(quarter)} to {format_number(upper)} ({group.n_rows:,} rows)"
        )
        colour = series_class(position)
        if not math.isfinite(median):
            continue
        if overlaid:
            shape = _steps(
                distribution.edges, [c / max(group.n_rows, 1) / tallest for c in group.counts], x, bottom, top
            )
            parts.append(
                element("path", d=shape, class_=f"histogram {colour}", data_series=str(position), data_tip=tip)
            )
            parts.append(
                element(
                    "line",
                    x1=x(median),
                    x2=x(median),
                    y1=bottom,
                    y2=bottom - 10.0,
                    class_=f"median {colour}",
                    data_series=str(position),
                )
            )
        else:
            at = top + 12 + 22.0 * position
            parts.append(text(shorten(group.label, 10), frame.left - 8, at + 4, text_anchor="end", class_="tick"))
            parts.append(element("line", x1=x(low), x2=x(high), y1=at, y2=at, class_=f"whisker {colour}"))
            parts.append(element("line", x1=x(quarter), x2=x(upper), y1=at, y2=at, class_=f"box {colour}"))
            parts.append(element("circle", cx=x(median), cy=at, r=4, class_=f"mark {colour}", data_tip=tip))
    kind = "small overlaid" if overlaid else "small"
    return picture(frame, f"distribution of {shorten(label, 60)} by class", *parts, class_=kind)


def _steps(edges: Sequence[float], heights: Sequence[float], x: Scale, bottom: float, top: float) -> str:
    """Return the outline of a histogram as one path."""
    parts = [f"M{number(x(edges[0]))} {number(bottom)}"]
    for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True):
        at = number(bottom - (bottom - top) * height)
        parts.append(f"L{number(x(left))} {at}H{number(x(right))}")
    return "".join(parts) + f"V{number(bottom)}Z"


def effect_bar(value: float | None, largest: float) -> str:
    """Draw a bar to the left (negative) or right (positive) of a middle line, for a table cell."""
    if value is None or not math.isfinite(value) or largest <= 0:
        return ""
    reach = 38 * abs(value) / largest
    side = "negative" if value < 0 else "positive"
    bar = element(
        "rect", x=40.0 - (reach if value < 0 else 0), y=2.0, width=max(reach, 0.8), height=8.0, rx=1.5, class_=side
    )
    middle = element("line", x1=40, x2=40, y1=0, y2=12, class_="axis")
    return element("svg", bar, middle, viewBox="0 0 80 12", width=80, height=12, class_="bar", aria_hidden="true")


def share_bar(value: float | None) -> str:
    """Draw a share as a bar, for a table cell."""
    if value is None or not math.isfinite(value):
        return ""
    track = element("rect", x=0, y=2.0, width=60.0, height=8.0, rx=4, class_="track")
    bar = element("rect", x=0, y=2.0, width=60.0 * min(max(value, 0.0), 1.0), height=8.0, rx=4, class_="fill")
    return element("svg", track, bar, viewBox="0 0 60 12", width=60, height=12, class_="bar", aria_hidden="true")


def time_chart(entries: Sequence[tuple[str, float | None]], width: int = 400) -> str:
    """Mean seconds of each method on a logarithmic axis."""
    frame = Frame(width, 28 * len(entries) + 46, top=8)
    values = [s for _, s in entries if s is not None and s > 0]
    x = Scale.over(values, 130.0, width - 78.0, log=True, pad=0.05)
    bottom = frame.height - 36
    parts = []
    for tick in spread(x.ticks(3), x, 58):
        parts.append(element("line", x1=x(tick), x2=x(tick), y1=4.0, y2=bottom, class_="grid"))
        parts.append(
            text(re.sub(r"\.0+\b", "", format_seconds(tick)), x(tick), bottom + 16, text_anchor="middle", class_="tick")
        )
    parts.append(text("time of one selection", x.stop, frame.height - 4, text_anchor="end", class_="label"))
    for row, (method, seconds) in enumerate(entries):
        at, colour = 20.0 + 28 * row, series_class(row)
        inner = [text(shorten(method, 17), 2, at + 4, class_="row-label")]
        if seconds is not None and seconds > 0:
            inner.append(element("line", x1=x.start, x2=x(seconds), y1=at, y2=at, class_=f"whisker thick {colour}"))
            inner.append(
                marker(
                    row,
                    x(seconds),
                    at,
                    4.6,
                    class_=f"mark {colour}",
                    data_tip=f"{shorten(method, 40)}: {format_seconds(seconds)}",
                )
            )
        inner.append(text(format_seconds(seconds), width - 2, at + 4, text_anchor="end", class_="value"))
        parts.append(element("g", *inner, data_series=str(row)))
    return picture(frame, "time of one selection by method", *parts)


def rank_chart(ranks: Sequence[MethodRank], positions: Sequence[int], width: int = 400) -> str:
    """Mean rank of each method, best first; those significantly behind the best are hollow and starred."""
    frame = Frame(width, 28 * len(ranks) + 46, top=8)
    x = Scale.over([1.0, float(len(ranks)), *(r.mean_rank for r in ranks)], 140.0, width - 62.0)
    bottom = frame.height - 36
    parts = []
    for tick in x.ticks(min(6, max(2, len(ranks)))):
        if float(tick).is_integer():
            parts.append(element("line", x1=x(tick), x2=x(tick), y1=4.0, y2=bottom, class_="grid"))
            parts.append(text(format_number(tick), x(tick), bottom + 16, text_anchor="middle", class_="tick"))
    parts.append(text("mean rank (1 is best)", x.stop, frame.height - 4, text_anchor="end", class_="label"))
    for row, (rank, position) in enumerate(zip(ranks, positions, strict=True)):
        at, colour = 20.0 + 28 * row, series_class(position)
        tip = f"{shorten(rank.method, 40)}: mean rank {format_number(rank.mean_rank)}"
        if rank.p_value is not None:
            tip += f", p = {format_p_value(rank.p_value)} against the best"
        inner = [
            text(shorten(rank.method, 17), 2, at + 4, class_="row-label"),
            element("line", x1=x.start, x2=x(rank.mean_rank), y1=at, y2=at, class_=f"whisker {colour}"),
            marker(
                position,
                x(rank.mean_rank),
                at,
                5.0,
                class_=f"mark {colour}" + (" hollow" if rank.significant else ""),
                data_tip=tip,
            ),
            text(
                format_number(rank.mean_rank) + (" *" if rank.significant else ""),
                width - 2,
                at + 4,
                text_anchor="end",
                class_="value",
            ),
        ]
        parts.append(element("g", *inner, data_series=str(position)))
    return picture(frame, "mean rank by method", *parts)


def legend_swatch(position: int) -> str:
    """Draw the line and marker of a series, for its legend."""
    colour = series_class(position)
    line = polyline([(1.0, 7.0), (23.0, 7.0)], class_=f"line {colour}")
    return element(
        "svg",
        line,
        marker(position, 12.0, 7.0, 3.4, class_=f"mark {colour}"),
        viewBox="0 0 24 14",
        width=24,
        height=14,
        class_="swatch",
        aria_hidden="true",
    )
