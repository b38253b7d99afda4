"""Charts of held-out predictions: ROC, precision and recall, calibration, scores by class, residuals, projections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tamiz.evaluation.results import HeldOut
from tamiz.report.evidence import Projection
from tamiz.report.svg import Frame, Scale, axes, element, marker, picture, polyline, series_class
from tamiz.report.text import format_number, format_score, shorten

#: What the curves are called, and the class of their colour; the kept columns are drawn last, on top.
COLUMN_SET_NAMES = {"kept": "kept", "all_features": "all", "random_features": "random"}
_COLOURS = {"kept": "s0", "all_features": "s1", "random_features": "s7"}
_N_POINTS = 120
_N_BINS = 20


@dataclass(frozen=True, eq=False)
class RankCurve:
    """Hold one curve of ROC or of precision and recall, with the area under it."""

    name: str
    x: np.ndarray
    y: np.ndarray
    area: float


def rank_curves(held: HeldOut, kind: str) -> list[RankCurve]:
    """Return ROC curves ("roc") or precision-recall curves ("precision-recall") of two classes, for each set of columns.

    Examples
    --------
    >>> y = np.array([0, 0, 1, 1])
    >>> held = HeldOut(np.arange(4), np.zeros(4, int), y, y, {"kept": np.array([0.1, 0.2, 0.3, 0.4])})
    >>> rank_curves(held, "roc")[0].area
    1.0
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    labels = np.unique(held.truth)
    if labels.size != 2:
        return []
    positive = held.truth == labels[1]
    found = []
    for name in COLUMN_SET_NAMES:
        output = held.outputs.get(name)
        if output is None or output.ndim != 1 or not np.isfinite(output).all():
            continue
        if kind == "roc":
            x, y, _ = roc_curve(positive, output)
            area = float(roc_auc_score(positive, output))
        else:
            precision, recall, _ = precision_recall_curve(positive, output)
            x, y, area = recall[::-1], precision[::-1], float(average_precision_score(positive, output))
        rows = np.unique(np.linspace(0, len(x) - 1, min(len(x), _N_POINTS)).round().astype(np.int64))
        found.append(RankCurve(name, x[rows], y[rows], area))
    return found


def rank_chart_of(curves: Sequence[RankCurve], kind: str, base: float, width: int = 360, height: int = 300) -> str:
    """Draw the curves of :func:`rank_curves`; ``base`` is the share of the second class."""
    frame = Frame(width, height, top=30, left=44)
    x = Scale(0.0, 1.0, *frame.x_range)
    y = Scale(0.0, 1.0, *frame.y_range)
    labels = ("false positives", "true positives") if kind == "roc" else ("recall", "precision")
    parts = [axes(frame, x, y, f"share of {labels[0]}" if kind == "roc" else labels[0], labels[1])]
    start = (0.0, 0.0) if kind == "roc" else (0.0, base)
    stop = (1.0, 1.0) if kind == "roc" else (1.0, base)
    parts.append(element("line", x1=x(start[0]), y1=y(start[1]), x2=x(stop[0]), y2=y(stop[1]), class_="chosen"))
    for curve in reversed(curves):
        drawn = [(x(a), y(b)) for a, b in zip(curve.x, curve.y, strict=True)]
        tip = f"{COLUMN_SET_NAMES[curve.name]}: area {format_score(curve.area)}"
        thin = "" if curve.name == "kept" else " thin"
        line = f"line {_COLOURS[curve.name]}{thin}"
        parts.append(polyline(drawn, class_=line, data_series=curve.name, data_tip=tip))
    title = "ROC" if kind == "roc" else "precision and recall"
    areas = ", ".join(f"{COLUMN_SET_NAMES[c.name]} {format_score(c.area)}" for c in curves)
    return picture(frame, f"{title} on held-out rows; areas: {areas}", *parts)


def calibration_chart(held: HeldOut, width: int = 360, height: int = 300) -> str | None:
    """Draw the share of the second class against its probability, in bins of equal size; None without probabilities."""
    labels = np.unique(held.truth)
    if held.probabilities is None or labels.size != 2 or held.probabilities.shape[1] != 2:
        return None
    probability, positive = held.probabilities[:, 1], held.truth == labels[1]
    if not np.isfinite(probability).all() or len(probability) < 20:
        return None
    order = np.argsort(probability, kind="stable")
    bins = np.array_split(order, min(10, max(3, len(order) // 20)))
    frame = Frame(width, height, top=30, left=44)
    x, y = Scale(0.0, 1.0, *frame.x_range), Scale(0.0, 1.0, *frame.y_range)
    parts = [axes(frame, x, y, "probability said", f"share that was {shorten(labels[1], 24)}")]
    parts.append(element("line", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0), class_="chosen"))
    points = [(float(probability[rows].mean()), float(positive[rows].mean()), len(rows)) for rows in bins]
    parts.append(polyline([(x(a), y(b)) for a, b, _ in points], class_="line s0 thin"))
    for a, b, n_rows in points:
        tip = f"{n_rows:,} rows with a mean probability of {a:.2f}: {b:.0%} were {labels[1]}"
        parts.append(marker(0, x(a), y(b), 4.0, class_="mark s0", data_tip=tip))
    return picture(frame, "calibration of the probabilities on held-out rows", *parts)


def score_histogram(held: HeldOut, width: int = 360, height: int = 300) -> str | None:
    """Draw the decision values of the kept columns by class (two classes)."""
    labels = np.unique(held.truth)
    output = held.outputs.get("kept")
    if labels.size != 2 or output is None or output.ndim != 1 or not np.isfinite(output).all():
        return None
    low, high = np.quantile(output, [0.005, 0.995])
    if low == high:
        return None
    n_bins = int(np.clip(np.sqrt(len(output)) * 1.4, 8, _N_BINS))
    edges = np.linspace(low, high, n_bins + 1)
    counts = [np.histogram(np.clip(output[held.truth == label], low, high), bins=edges)[0] for label in labels]
    frame = Frame(width, height, top=30, left=44)
    x = Scale(float(low), float(high), *frame.x_range)
    y = Scale(0.0, float(max(c.max() for c in counts)) or 1.0, *frame.y_range)
    parts = [axes(frame, x, y, "score of the model", "rows", counts=True)]
    bottom = frame.y_range[0]
    for position, (label, count) in enumerate(zip(labels, counts, strict=True)):
        shape = f"M{x(edges[0]):.1f} {bottom:.1f}" + "".join(
            f"L{x(a):.1f} {y(float(c)):.1f}H{x(b):.1f}" for a, b, c in zip(edges[:-1], edges[1:], count, strict=True)
        )
        tip = f"{shorten(label, 40)}: {int((held.truth == label).sum()):,} held-out rows"
        parts.append(
            element("path", d=f"{shape}V{bottom:.1f}Z", class_=f"histogram {series_class(position)}", data_tip=tip)
        )
    if low < 0 < high:
        parts.append(element("line", x1=x(0.0), x2=x(0.0), y1=bottom, y2=frame.y_range[1], class_="chosen"))
    return picture(frame, "scores of held-out rows by class", *parts)


def residual_histogram(
    actual: np.ndarray, predicted: np.ndarray, unit: str, width: int = 360, height: int = 300
) -> str:
    """Draw how residuals (predicted minus actual) are spread."""
    residuals = predicted - actual
    residuals = residuals[np.isfinite(residuals)]
    reach = float(np.quantile(np.abs(residuals), 0.995)) if residuals.size else 1.0
    reach = reach or 1.0
    edges = np.linspace(-reach, reach, int(np.clip(np.sqrt(residuals.size) * 1.4, 8, 30)) + 1)
    counts, _ = np.histogram(np.clip(residuals, -reach, reach), bins=edges)
    frame = Frame(width, height, top=30, left=44)
    x = Scale(-reach, reach, *frame.x_range)
    y = Scale(0.0, float(counts.max(initial=1)), *frame.y_range)
    parts = [axes(frame, x, y, shorten(unit, 40), "rows", counts=True)]
    bottom = frame.y_range[0]
    for left, right, count in zip(edges[:-1], edges[1:], counts.tolist(), strict=True):
        tip = f"{format_number(left, signed=True)} to {format_number(right, signed=True)}: {count:,} rows"
        size = {"x": x(left) + 0.5, "y": y(float(count)), "width": max(0.5, x(right) - x(left) - 1)}
        parts.append(element("rect", **size, height=bottom - y(float(count)), class_="column s0", data_tip=tip))
    parts.append(element("line", x1=x(0.0), x2=x(0.0), y1=bottom, y2=frame.y_range[1], class_="chosen"))
    return picture(frame, "residuals of held-out rows", *parts)


def error_sizes(actual: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """Return the mean absolute error and the root of the mean squared error.

    Examples
    --------
    >>> error_sizes(np.array([0.0, 0.0]), np.array([3.0, -4.0]))
    (3.5, 3.5355339059327378)
    """
    difference = np.asarray(predicted, dtype=np.float64) - np.asarray(actual, dtype=np.float64)
    difference = difference[np.isfinite(difference)]
    if difference.size == 0:
        return math.nan, math.nan
    return float(np.abs(difference).mean()), float(np.sqrt((difference**2).mean()))


def projection_chart(projection: Projection, width: int = 360, height: int = 300) -> str:
    """Draw two principal components: training rows faint, held-out rows full."""
    frame = Frame(width, height, top=30, left=44)
    x = Scale.over(projection.points[:, 0].tolist(), *frame.x_range, pad=0.05)
    y = Scale.over(projection.points[:, 1].tolist(), *frame.y_range, pad=0.05)
    first, second = projection.explained
    parts = [axes(frame, x, y, f"component 1 ({first:.0%})", f"component 2 ({second:.0%})")]
    for held_out in (False, True):
        for row in np.flatnonzero(projection.held_out == held_out):
            group = int(projection.groups[row])
            at = x(float(projection.points[row, 0])), y(float(projection.points[row, 1]))
            if held_out:
                tip = f"held out: {shorten(projection.labels[group], 40)}"
                parts.append(marker(group, *at, 4.0, class_=f"mark {series_class(group)}", data_tip=tip))
            else:
                parts.append(element("circle", cx=at[0], cy=at[1], r=2, class_=f"faint {series_class(group)}"))
    return picture(frame, f"{projection.title}: two principal components", *parts)
