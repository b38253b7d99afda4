"""Content of the page of a comparison: sentences, rows and charts, made from a `Comparison`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz._utils.pictures import Lines, Series
from tamiz.baselines import registry
from tamiz.errors import UnknownNameError
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.intervals import Interval
from tamiz.report.charts import both_widths, describe_score, legend, line_chart, row_chart, square_chart
from tamiz.report.text import counted, format_p_value, format_score, format_seconds, shorten

if TYPE_CHECKING:
    from tamiz.report.page import About

#: The method that keeps everything: something to compare with, not a selection.
EVERY_FEATURE = "all"
#: The curves of more methods are drawn without whiskers.
MOST_WHISKERS = 8


def compare_view(found: Comparison, about: About) -> dict[str, Any]:
    """Return everything the template ``compare.html.j2`` uses."""
    positions = method_positions(found.methods)
    ranks = sorted(found.ranks, key=lambda rank: rank.mean_rank)
    colours = dict(zip(found.methods, positions, strict=True))
    whiskers = len(found.methods) <= MOST_WHISKERS
    said = "Student t over splits, as if they were independent"
    if found.test_share is not None:
        said = "after Nadeau and Bengio, which allow for the training rows that splits share"
    m_names = [f"M = {m:,}" for m in found.m_values]
    few = "So many methods are drawn without intervals; the table below has them."
    return {
        "headline": f"{counted(len(found.methods), 'method')}, {counted(len(found.m_values), 'number')} of features",
        "verdict": comparison_verdict(found, about),
        "facts": [
            ("Table", f"{about.n_rows:,} rows, {about.n_features:,} features"),
            ("Task", f"{about.task} of {about.target}" if about.target else about.task),
            ("Splits", f"{found.scores.shape[2]:,}, the same for all methods"),
            ("Score", found.metric.name + ("" if found.metric.greater_is_better else " (lower is better)")),
        ],
        "metric": found.metric.name,
        "alpha": found.alpha,
        "m_names": m_names,
        "legend_entries": legend(found.methods, positions),
        "curves": both_widths(lambda width: line_chart(method_curves(found, positions), width, 360)),
        "curves_said": f"Whiskers: 95 % intervals {said}." if whiskers else few,
        "intervals_said": said,
        "score_rows": comparison_rows(found),
        "tables": _tables(found),
        "agreement": agreement_view(found),
        "rank_chart": row_chart(
            [(r.method, Interval(r.mean_rank), colours[r.method], r.significant) for r in ranks],
            "mean rank by method", "mean rank (1 is best)", least=(1.0, float(len(ranks))), digits="{:.2f}".format,
        ) if ranks else None,
        "ranks": [(r.method, f"{r.mean_rank:.2f}", format_p_value(r.p_value), r.significant) for r in ranks],
        "visible": format_score(found.smallest_visible_difference) if found.tests else None,
        "tests": [
            {
                "test": t,
                "difference": format_score(t.difference, signed=True),
                "interval": describe_ends(t.low, t.high),
                "p_value": format_p_value(t.p_value),
            }
            for t in found.tests
        ],
        "payload": comparison_payload(found),
    }  # fmt: skip


def describe_ends(low: float, high: float) -> str:
    """Format the ends of an interval of a difference; a dash if they are not known."""
    return f"{format_score(low, signed=True)} to {format_score(high, signed=True)}" if math.isfinite(low) else "–"


def method_positions(methods: Sequence[str]) -> list[int]:
    """Return the colour of each method, the same on every page: that of the registry; other names take later places.

    Examples
    --------
    >>> method_positions(["fisher", "e2efs"]) == method_positions(["all", "fisher", "mine", "e2efs"])[1::2]
    True
    """
    known = {name: place for place, name in enumerate(registry.available())}
    free = len(known)
    positions: list[int] = []
    for method in methods:
        try:
            place = known[registry.canonical_name(method)]
        except UnknownNameError:
            place = -1
        if place < 0 or place in positions:
            place, free = free, free + 1
        positions.append(place)
    return positions


def method_curves(found: Comparison, positions: Sequence[int]) -> Lines:
    """Describe the score against M for every method; intervals where they can be told apart."""
    whiskers = len(found.methods) <= MOST_WHISKERS
    sizes = np.array(found.m_values, dtype=np.float64)
    series = []
    for position, method, row in zip(positions, found.methods, found.intervals, strict=True):
        y, low, high = (np.array([getattr(score, end) for score in row]) for end in ("value", "low", "high"))
        tips = [f"{shorten(method, 40)}, M = {m:,}: {describe_score(s)}" for m, s in zip(found.m_values, row)]
        one = Series(str(position), sizes, y, low, high, colour=position, tips=tips)
        series.append(one if whiskers else replace(one, low=None, high=None))
    title = f"{found.metric.name} against the number of features kept, by method"
    wide = len(sizes) > 1 and sizes.max() / max(sizes.min(), 1) >= 20
    return Lines(title, "features kept (M)", found.metric.name, series, log_x=bool(wide), x_ticks=sizes.tolist())


def _tables(found: Comparison) -> list[dict[str, Any]]:
    """Return stability and time by method and M, where they are known."""
    tables: list[tuple[str, str, str, list[list[float]], Callable[[float], str]]] = []
    if found.supports is not None:
        values = [[found.stability(i, j) for j in range(len(found.m_values))] for i in range(len(found.methods))]
        lead = (
            "How alike the sets are that a method keeps in the splits (Nogueira): 1 is the same set. Splits share training "
            "rows, so pure noise gives more than 0."
        )
        tables.append(("stability", "Stability", lead, values, "{:.2f}".format))
    if found.seconds is not None:
        lead = "Mean wall time of one selection."
        tables.append(("time", "Time", lead, np.asarray(found.seconds).tolist(), format_seconds))
    return [
        {
            "id": name,
            "title": title,
            "lead": lead,
            "rows": [
                (method, [(v, digits(v)) if math.isfinite(v) else (None, "–") for v in row])
                for method, row in zip(found.methods, values, strict=True)
                if any(map(math.isfinite, row))
            ],
        }
        for name, title, lead, values, digits in tables
    ]


def _best(found: Comparison, column: int, leave_out: Sequence[str] = ()) -> int | None:
    """Return the position of the method with the best mean score at one M."""
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


def comparison_rows(found: Comparison) -> list[dict[str, Any]]:
    """Return one row per method; the best of each column is marked."""
    best = [_best(found, column, found.references) for column in range(len(found.m_values))]
    return [
        {
            "method": method,
            "cells": [
                {
                    "value": s.value if s.is_known else None,
                    "shown": format_score(s.value),
                    "interval": describe_score(s),
                    "best": best[j] == i,
                }
                for j, s in enumerate(row)
            ],
        }
        for i, (method, row) in enumerate(zip(found.methods, found.intervals, strict=True))
    ]


def agreement_view(found: Comparison) -> dict[str, Any] | None:
    """Return the agreement between methods at the middle M; keeping everything is no choice, so it is left out."""
    middle = len(found.m_values) // 2
    table = found.agreement(middle)
    chosen = [i for i, method in enumerate(found.methods) if method != EVERY_FEATURE]
    if table is None or len(chosen) < 2:
        return None
    methods = [found.methods[i] for i in chosen]
    shares = [[v if math.isfinite(v) else None for v in row] for row in table[np.ix_(chosen, chosen)].tolist()]
    labels = [["–" if v is None else f"{100 * v:.0f}" for v in row] for row in shares]
    at = f" at M = {found.m_values[middle]:,}"
    tips = [
        [f"{first} and {second} share {labels[i][j]} %{at}" for j, second in enumerate(methods)]
        for i, first in enumerate(methods)
    ]
    chart = square_chart(methods, methods, shares, labels, tips, f"share of features in common{at}")
    return {"chart": chart, "at": at, "methods": methods, "rows": list(zip(methods, labels, strict=True))}


def comparison_payload(found: Comparison) -> dict[str, Any]:
    """Return the data block for the script: one row per method, M and split."""
    rows = [
        [method, m, split, score]
        for method, by_m in zip(found.methods, found.scores.tolist(), strict=True)
        for m, splits in zip(found.m_values, by_m, strict=True)
        for split, score in enumerate(splits)
    ]
    return {"kind": "compare", "header": ["method", "n_features", "split", found.metric.name], "rows": rows}
