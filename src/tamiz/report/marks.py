"""Charts made of single marks: intervals, tables of squares, residuals, distributions, ranks, times."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from tamiz.evaluation.intervals import Interval, MethodRank
from tamiz.report.data import Distribution, Residuals
from tamiz.report.lines import describe_score, interval_numbers
from tamiz.report.svg import Frame, Scale, axes, element, marker, number, picture, polyline, series_class, spread, text
from tamiz.report.text import format_number, format_p_value, format_score, format_seconds, format_value, shorten

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
    """Draw one feature by class: shares of a category, overlaid histograms, or quantile bars if there are many classes.

    Missing values have a bar of their own at the right.
    """
    if distribution.is_share:
        return _share_chart(distribution, label, width)
    groups = distribution.groups[:N_GROUPS]
    overlaid = len(groups) <= N_OVERLAID
    missing = overlaid and distribution.n_missing > 0
    if not overlaid:
        height = 22 * len(groups) + 34
    frame = Frame(width, height, left=6 if overlaid else 76, right=58 if missing else 6, top=6, bottom=20)
    x = Scale(distribution.edges[0], distribution.edges[-1], *frame.x_range)
    bottom, top = frame.y_range
    parts = [element("line", x1=frame.left, x2=width - frame.right, y1=bottom, y2=bottom, class_="axis")]
    for value, anchor in ((x.low, "start"), (x.high, "end")):
        parts.append(text(format_value(value), x(value), height - 4, text_anchor=anchor, class_="tick"))
    totals = [max(g.n_rows + g.n_missing, 1) for g in groups]
    shares = [c / n for g, n in zip(groups, totals, strict=True) for c in (*g.counts, g.n_missing if missing else 0)]
    tallest = max(shares, default=1.0) or 1.0
    for position, (group, total) in enumerate(zip(groups, totals, strict=True)):
        low, quarter, median, upper, high = group.quantiles
        tip = (
            f"{shorten(group.label, 40)}: median {format_value(median)}, half of the rows from "
            f"{format_value(quarter)} to {format_value(upper)} ({group.n_rows:,} rows)"
        )
        colour, series = series_class(position), {"data_series": str(position)}
        if missing:
            reach = (bottom - top) * group.n_missing / total / tallest
            wide = 40.0 / len(groups)
            place = {"x": width - 46 + wide * position, "y": bottom - reach, "width": wide - 1.5, "height": reach}
            said = f"{shorten(group.label, 40)}: {group.n_missing:,} of {total:,} rows are missing"
            parts.append(element("rect", **place, class_=f"column missing {colour}", data_tip=said, **series))
        if not math.isfinite(median):
            continue
        if overlaid:
            shape = _steps(distribution.edges, [c / total / tallest for c in group.counts], x, bottom, top)
            parts.append(element("path", d=shape, class_=f"histogram {colour}", data_tip=tip, **series))
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
    return picture(frame, f"distribution of {shorten(label, 60)} by class", *parts, class_=kind)


def _share_chart(distribution: Distribution, label: str, width: int) -> str:
    """Draw the share of rows with a category, and the share of missing ones, one bar per class."""
    groups = distribution.groups[:N_GROUPS]
    frame = Frame(width, 24 * len(groups) + 8)
    left, reach = 90.0, width - 90.0 - 46.0
    parts = []
    for position, group in enumerate(groups):
        total = max(group.n_rows + group.n_missing, 1)
        share, lacking = group.counts[-1] / total, group.n_missing / total
        at = 4 + 24.0 * position
        tip = f"{shorten(group.label, 40)}: {group.counts[-1]:,} of {total:,} rows"
        tip += f", {group.n_missing:,} missing" if group.n_missing else ""
        colour = f"{series_class(position)}"
        inner = [
            text(shorten(group.label, 13), left - 6, at + 13, text_anchor="end", class_="tick"),
            element("rect", x=left, y=at, width=reach, height=16.0, rx=2, class_="track"),
            element(
                "rect", x=left, y=at, width=reach * share, height=16.0, rx=2, class_=f"column {colour}", data_tip=tip
            ),
            text(f"{share:.0%}", left + reach + 6, at + 13, class_="value"),
        ]
        if lacking:
            place = {"x": left + reach * (1 - lacking), "y": at, "width": reach * lacking, "height": 16.0}
            inner.append(element("rect", **place, class_=f"column missing {colour}"))
        parts.append(element("g", *inner, data_series=str(position)))
    return picture(frame, f"share of rows with {shorten(label, 60)} by class", *parts, class_="small shares")


def _steps(edges: Sequence[float], heights: Sequence[float], x: Scale, bottom: float, top: float) -> str:
    """Return the outline of a histogram as one path."""
    parts = [f"M{number(x(edges[0]))} {number(bottom)}"]
    for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True):
        at = number(bottom - (bottom - top) * height)
        parts.append(f"L{number(x(left))} {at}H{number(x(right))}")
    return "".join(parts) + f"V{number(bottom)}Z"


def time_chart(entries: Sequence[tuple[str, float | None]], positions: Sequence[int], width: int = 400) -> str:
    """Mean seconds of each method on a logarithmic axis; ``positions`` give the colours."""
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
    for row, (position, (method, seconds)) in enumerate(zip(positions, entries, strict=True)):
        at, colour = 20.0 + 28 * row, series_class(position)
        inner = [text(shorten(method, 17), 2, at + 4, class_="row-label")]
        if seconds is not None and seconds > 0:
            inner.append(element("line", x1=x.start, x2=x(seconds), y1=at, y2=at, class_=f"whisker thick {colour}"))
            inner.append(
                marker(
                    position,
                    x(seconds),
                    at,
                    4.6,
                    class_=f"mark {colour}",
                    data_tip=f"{shorten(method, 40)}: {format_seconds(seconds)}",
                )
            )
        inner.append(text(format_seconds(seconds), width - 2, at + 4, text_anchor="end", class_="value"))
        parts.append(element("g", *inner, data_series=str(position)))
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
