"""Content of the sections on what the kept columns show together, over folds, and on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tamiz.report.columns import correlation_chart, fold_grid_chart, heat_map_chart, near_copies
from tamiz.report.data import SelectReport
from tamiz.report.marks import heat_map, legend_swatch, residual_chart
from tamiz.report.predictions import (
    COLUMN_SET_NAMES,
    calibration_chart,
    error_sizes,
    projection_chart,
    rank_chart_of,
    rank_curves,
    residual_histogram,
    score_histogram,
)
from tamiz.report.raster import grid_payload, quantise
from tamiz.report.text import format_number, format_p_value, format_score

BothWidths = Callable[..., dict[str, str]]
_CURVE_COLOURS = {"kept": 0, "all_features": 1, "random_features": 7}
#: A confusion matrix of more classes is a table, not a picture.
_MOST_DRAWN = 24
_MOST_PAIRS = 15
#: Of more targets than these the errors are listed, and the first are drawn.
_MOST_TARGETS = 12


def _class_legend(labels: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"name": label, "key": str(i), "swatch": legend_swatch(i)} for i, label in enumerate(labels)]


def heat_map_view(data: SelectReport, both_widths: BothWidths) -> dict[str, Any] | None:
    """Return the clustered heat map, its legend, and its cells for the script."""
    heat = data.heat_map
    if heat is None:
        return None
    wrong = np.zeros(len(heat.rows), dtype=bool) if heat.wrong is None else heat.wrong
    rows = [
        f"row {row + 1:,}, {heat.labels[group]}" + (", predicted wrongly" if bad else "")
        for row, group, bad in zip(heat.rows.tolist(), heat.groups.tolist(), wrong.tolist(), strict=True)
    ]
    sampled = len(heat.rows) < heat.n_rows
    return {
        "key": "heat",
        "chart": both_widths(heat_map_chart, heat),
        "legend": _class_legend(heat.labels)[:18],
        "n_wrong": None if heat.wrong is None else int(wrong.sum()),
        "said": f"A sample of {len(heat.rows):,} of {heat.n_rows:,} rows." if sampled else "",
        "n_columns": len(heat.names),
        "grid": grid_payload(quantise(heat.z, 3.0), 3.0, heat.names, rows, "z"),
    }


def together_view(data: SelectReport) -> dict[str, Any] | None:
    """Return correlations, near copies, stand-ins and pairs."""
    stand_ins = [
        (
            kept.name,
            [(s.name, format_number(s.correlation, digits=2, signed=True)) for s in kept.stand_ins],
        )
        for kept in data.kept
        if kept.stand_ins
    ]
    correlations = data.correlations
    if correlations is None and not stand_ins and (data.pairs is None or not data.pairs.found):
        return None
    copies = near_copies(correlations) if correlations is not None else []
    found: dict[str, Any] = {
        "key": "correlations",
        "chart": correlation_chart(correlations, 400) if correlations is not None else None,
        "copies": [(a, b, format_number(r, digits=2, signed=True)) for a, b, r in copies[:20]],
        "n_copies": len(copies),
        "stand_ins": stand_ins[:50],
        "pairs": partners_view(data),
    }
    if correlations is not None:
        codes = quantise(correlations.values, 1.0)
        found["grid"] = grid_payload(codes, 1.0, correlations.names, correlations.names, "r", "with")
    return found


def partners_view(data: SelectReport) -> dict[str, Any] | None:
    """Return the pairs that act together, or why there are none."""
    pairs = data.pairs
    if pairs is None:
        return None
    said = pairs.note
    if not said and not pairs.found:
        said = (
            f"No kept column acts together with another: none of the pairs among {pairs.n_searched} columns says more "
            "than its two columns alone (p < 0.05, corrected for all pairs)."
        )
    strongest = {pair.name: pair for pair in reversed(pairs.found)}  # of each kept column, the pairs are sorted
    shown = [pair for pair in pairs.found if strongest[pair.name] is pair][:_MOST_PAIRS]
    if len(pairs.found) > len(shown):
        said = f"{len(pairs.found):,} pairs in all; of each kept column its strongest partner is listed."
    return {
        "rows": [
            (p.name, p.partner, "kept" if p.partner_kept else "left out", p.shape, format_p_value(p.p_value))
            for p in shown
        ],
        "said": said,
        "n_searched": pairs.n_searched,
    }


def fold_grid_view(data: SelectReport, both_widths: BothWidths) -> dict[str, Any] | None:
    """Return the grid of columns by folds, and the columns that half of the folds chose and the fit did not."""
    grid = data.fold_grid
    if grid is None:
        return None
    others = [name for name, kept in zip(grid.names, grid.kept, strict=True) if not kept]
    every = int(sum(kept and row.all() for kept, row in zip(grid.kept, grid.chosen, strict=True)))
    shown = int(sum(grid.kept))
    return {
        "chart": both_widths(fold_grid_chart, grid),
        "others": others,
        "said": f"{every} of the {shown} columns shown were kept in every one of the {grid.chosen.shape[1]} folds.",
        "rows": [
            (name, f"{int(row.sum())} of {row.size}", "yes" if kept else "no")
            for name, kept, row in zip(grid.names, grid.kept, grid.chosen, strict=True)
        ],
    }


def prediction_view(data: SelectReport) -> dict[str, Any] | None:
    """Return all charts of held-out predictions."""
    charts: list[dict[str, Any]] = []
    held = data.held_out
    legend: list[dict[str, Any]] = []
    areas: list[tuple[str, str]] = []
    if held is not None and len(data.classes) == 2:
        base = float(np.mean(held.truth == np.unique(held.truth)[-1]))
        for kind, title in (("roc", "ROC"), ("precision-recall", "Precision and recall")):
            curves = rank_curves(held, kind)
            if curves:
                said = ", ".join(f"{COLUMN_SET_NAMES[c.name]} {format_score(c.area)}" for c in curves)
                areas.append((f"Area, {title}", said))
                charts.append({"title": f"{title}: {said}", "chart": rank_chart_of(curves, kind, base), "curves": True})
                legend = [
                    {"name": COLUMN_SET_NAMES[c.name], "key": c.name, "swatch": legend_swatch(_CURVE_COLOURS[c.name])}
                    for c in curves
                ]
        for title, chart in (("Scores by class", score_histogram(held)), ("Calibration", calibration_chart(held))):
            if chart:
                charts.append({"title": title, "chart": chart, "curves": False})
    for projection in data.projections:
        chart = projection_chart(projection)
        charts.append({"title": f"{projection.title}, two components", "chart": chart, "curves": False})
    confusion = confusion_view(data)
    errors: list[tuple[str, str]] = []
    by_target = [] if data.residuals is None else [(data.target, data.residuals)]
    of_targets: list[dict[str, Any]] = []
    for target, residuals in data.residuals_by_target or by_target:
        if not residuals.actual:
            continue
        actual, predicted = np.array(residuals.actual), np.array(residuals.predicted)
        absolute, squared = error_sizes(actual, predicted)
        unit = f" ({target})" if target else ""
        errors.append(("Mean absolute error", f"{format_number(absolute)}{unit}"))
        errors.append(("Root mean squared error", f"{format_number(squared)}{unit}"))
        which = f", {target}" if data.residuals_by_target else ""
        name = f"predicted minus actual {target}" if target else "predicted minus actual"
        if len(of_targets) == 2 * _MOST_TARGETS:
            continue
        of_targets += [
            {"title": f"Predicted against actual{which}", "chart": residual_chart(residuals), "curves": False},
            {"title": f"Residuals{which}", "chart": residual_histogram(actual, predicted, name), "curves": False},
        ]
    charts[:0] = of_targets
    if not (charts or confusion or data.scores):
        return None
    return {
        "charts": charts,
        "legend": legend,
        "classes": _class_legend(data.classes) if 2 <= len(data.classes) <= 18 and held is not None else [],
        "confusion": confusion,
        "errors": errors,
        "projected": bool(data.projections),
    }


def confusion_view(data: SelectReport) -> dict[str, Any] | None:
    """Return the confusion matrix as a chart and as a table."""
    confusion = data.confusion
    if confusion is None or not confusion.labels:
        return None
    totals = [sum(row) for row in confusion.counts]
    shares = [[c / t if t else None for c in row] for row, t in zip(confusion.counts, totals, strict=True)]
    tips = [
        [f"{label} predicted as {other}: {c:,} of {t:,}" for other, c in zip(confusion.labels, row, strict=True)]
        for label, row, t in zip(confusion.labels, confusion.counts, totals, strict=True)
    ]
    few = len(confusion.labels) <= 8
    labels = [
        [("–" if share is None else f"{share:.0%}" if few else f"{100 * share:.0f}") for share in row] for row in shares
    ]
    right = sum(confusion.counts[i][i] for i in range(len(totals)))
    drawn = len(confusion.labels) <= _MOST_DRAWN
    return {
        "chart": heat_map(
            confusion.labels, confusion.labels, shares, labels, tips, "confusion matrix", "actual", "predicted"
        )
        if drawn
        else None,
        "labels": confusion.labels,
        "rows": list(zip(confusion.labels, confusion.counts, strict=True)),
        "said": f"{right:,} of {sum(totals):,} held-out rows were put in the right class.",
    }
