"""Content of the page of a comparison: sentences, rows and charts, made from a `CompareReport`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tamiz.evaluation.intervals import Interval
from tamiz.report.colours import method_positions
from tamiz.report.data import CompareReport
from tamiz.report.lines import MOST_WHISKERS, describe_score, method_curves
from tamiz.report.marks import heat_map, legend_swatch, rank_chart, time_chart
from tamiz.report.select_view import both_widths
from tamiz.report.text import format_number, format_p_value, format_score, format_seconds

#: The method that keeps everything: something to compare with, not a selection.
EVERY_FEATURE = "all"


def compare_view(data: CompareReport) -> dict[str, Any]:
    """Return everything the template ``compare.html.j2`` uses."""
    scores = data.comparison.intervals
    seconds = [] if data.comparison.seconds is None else data.comparison.seconds.tolist()
    times = [_mean(row) for row in seconds]
    positions = method_positions(data.methods)
    return {
        "headline": f"{len(data.methods)} methods, {len(data.m_values)} numbers of features",
        "verdict": comparison_verdict(data, scores),
        "facts": comparison_facts(data),
        "legend_entries": [
            {"name": m, "key": str(i), "swatch": legend_swatch(i)} for i, m in zip(positions, data.methods, strict=True)
        ],
        "curves": both_widths(method_curves, data, positions),
        "curves_said": curves_said(data),
        "intervals_said": intervals_said(data),
        "score_rows": comparison_rows(data, scores),
        "time_chart": time_chart(list(zip(data.methods, times, strict=True)), positions) if seconds else None,
        "time_rows": [
            (method, [(s if math.isfinite(s) else None, format_seconds(s)) for s in row])
            for method, row in zip(data.methods, seconds, strict=True)
        ]
        if seconds
        else [],
        "agreement": agreement_view(data),
        "rank_chart": _ranks(data),
        "ranks": [(r.method, f"{r.mean_rank:.2f}", format_p_value(r.p_value), r.significant) for r in data.ranks],
        "stability_rows": stability_rows(data),
        "visible": format_score(data.comparison.smallest_visible_difference) if data.tests else None,
        "tests": [
            {
                "test": t,
                "difference": format_score(t.difference, signed=True),
                "interval": f"{format_score(t.low, signed=True)} to {format_score(t.high, signed=True)}"
                if math.isfinite(t.low)
                else "–",
                "p_value": format_p_value(t.p_value),
                "m": "all" if t.n_features is None else f"{t.n_features:,}",
            }
            for t in data.tests
        ],
        "payload": comparison_payload(data),
    }


def _mean(values: Sequence[float]) -> float | None:
    known = [v for v in values if math.isfinite(v)]
    return sum(known) / len(known) if known else None


def stability_rows(data: CompareReport) -> list[tuple[str, list[tuple[float | None, str]]]]:
    """Return the stability of each method at each M; empty where the features are not known."""
    found = data.comparison
    if found.supports is None:
        return []
    rows: list[tuple[str, list[tuple[float | None, str]]]] = []
    for i, method in enumerate(found.methods):
        values = [found.stability(i, j) for j in range(len(found.m_values))]
        if any(math.isfinite(value) for value in values):
            rows.append((method, [(v, f"{v:.2f}") if math.isfinite(v) else (None, "–") for v in values]))
    return rows


def intervals_said(data: CompareReport) -> str:
    """Return the text that says which intervals the page shows."""
    if data.comparison.test_share is None:
        return "Student t over splits, as if they were independent"
    return "after Nadeau and Bengio, which allow for the training rows that splits share"


def curves_said(data: CompareReport) -> str:
    """Return the text that says what the curves show of the intervals."""
    if len(data.methods) <= MOST_WHISKERS:
        return f"Whiskers: 95 % intervals {intervals_said(data)}."
    return "So many methods are drawn without intervals; the table below has them."


def _best(
    data: CompareReport, scores: Sequence[Sequence[Interval]], column: int, leave_out: Sequence[str] = ()
) -> int | None:
    """Return the position of the method with the best mean score at one M."""
    known = [
        (row[column].value, i)
        for i, row in enumerate(scores)
        if data.methods[i] not in leave_out and row[column].is_known
    ]
    if not known:
        return None
    return (max if data.comparison.metric.greater_is_better else min)(known, key=lambda entry: entry[0])[1]


def comparison_verdict(data: CompareReport, scores: Sequence[Sequence[Interval]]) -> str:
    """Return sentences on which method is best at each M, and how many are significantly behind the best."""
    wins: dict[int, list[int]] = {}
    for column, m in enumerate(data.m_values):
        best = _best(data, scores, column, leave_out=(EVERY_FEATURE, *data.comparison.references))
        if best is not None:
            wins.setdefault(best, []).append(m)
    said = []
    for best, sizes in sorted(wins.items(), key=lambda entry: -len(entry[1])):
        listed = ", ".join(f"{m:,}" for m in sizes)
        said.append(f"{data.methods[best]} has the best mean {data.metric} at M = {listed}.")
    if EVERY_FEATURE in data.methods and data.m_values:
        reference = scores[data.methods.index(EVERY_FEATURE)][0]
        said.append(f"All {data.n_features:,} features together: {format_score(reference.value)}.")
    if data.ranks:
        first = min(data.ranks, key=lambda rank: rank.mean_rank)
        said.append(f"Best mean rank: {first.method} ({format_number(first.mean_rank)}).")
        behind = sum(rank.significant for rank in data.ranks)
        if len(data.ranks) > 1:
            said.append(f"{behind} of the other {len(data.ranks) - 1} methods are significantly behind it.")
    return " ".join(said)


def comparison_facts(data: CompareReport) -> list[tuple[str, str]]:
    """Return the key figures at the top of the page."""
    return [
        ("Table", f"{data.n_rows:,} rows, {data.n_features:,} features"),
        ("Task", f"{data.task} of {data.target}" if data.target else data.task),
        ("Splits", f"{data.comparison.scores.shape[2]:,}, the same for all methods"),
        ("Score", data.metric + ("" if data.comparison.metric.greater_is_better else " (lower is better)")),
    ]


def comparison_rows(data: CompareReport, scores: Sequence[Sequence[Interval]]) -> list[dict[str, Any]]:
    """Return one row per method; the best of each column is marked."""
    best = [_best(data, scores, column, data.comparison.references) for column in range(len(data.m_values))]
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
        for i, (method, row) in enumerate(zip(data.methods, scores, strict=True))
    ]


def agreement_view(data: CompareReport) -> dict[str, Any] | None:
    """Return the agreement between methods as a chart and as a table; keeping everything is no choice, so it is left out."""
    if data.agreement is None:
        return None
    chosen = [i for i, method in enumerate(data.methods) if method != EVERY_FEATURE]
    if len(chosen) < 2:
        return None
    methods = [data.methods[i] for i in chosen]
    table = np.asarray(data.agreement)[np.ix_(chosen, chosen)].tolist()
    shares = [[v if math.isfinite(v) else None for v in row] for row in table]
    labels = [["–" if v is None else f"{100 * v:.0f}" for v in row] for row in shares]
    at = f" at M = {data.agreement_at:,}" if data.agreement_at is not None else ""
    tips = [
        [f"{first} and {second} share {labels[i][j]} %{at}" for j, second in enumerate(methods)]
        for i, first in enumerate(methods)
    ]
    chart = heat_map(methods, methods, shares, labels, tips, f"share of features in common{at}")
    return {"chart": chart, "at": at, "methods": methods, "rows": list(zip(methods, labels, strict=True))}


def _ranks(data: CompareReport) -> str | None:
    if not data.ranks:
        return None
    ordered = sorted(data.ranks, key=lambda rank: rank.mean_rank)
    # A method keeps the colour it has in the other charts; one that is only ranked gets the next free one.
    names = [*data.methods, *(rank.method for rank in ordered if rank.method not in data.methods)]
    known = dict(zip(names, method_positions(names), strict=True))
    return rank_chart(ordered, [known[rank.method] for rank in ordered])


def comparison_payload(data: CompareReport) -> dict[str, Any]:
    """Return the data block for the script: one row per method, M and split."""
    rows = [
        [method, m, split, score]
        for method, by_m in zip(data.methods, data.comparison.scores.tolist(), strict=True)
        for m, splits in zip(data.m_values, by_m, strict=True)
        for split, score in enumerate(splits)
    ]
    return {"kind": "compare", "header": ["method", "n_features", "split", data.metric], "rows": rows}
