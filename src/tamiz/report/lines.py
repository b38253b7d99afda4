"""Line charts: score against M, features alive and loss by step, paths of gamma, several methods against M."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tamiz.core.rule import Phase
from tamiz.evaluation.intervals import Interval
from tamiz.report.data import CompareReport, Curve
from tamiz.report.svg import Frame, Scale, axes, element, marker, picture, polyline, series_class, text
from tamiz.report.text import format_number, format_score, shorten
from tamiz.selection import Selection

#: Enough for the eye at any width a page has; keeps long runs small.
N_POINTS = 180
N_PATHS = 40


def describe_score(score: Interval) -> str:
    """Return a score and its interval as text.

    Examples
    --------
    >>> describe_score(Interval(0.91, 0.88, 0.94))
    '0.910 (0.880 to 0.940)'
    """
    if not score.has_ends:
        return format_score(score.value)
    return f"{format_score(score.value)} ({format_score(score.low)} to {format_score(score.high)})"


def interval_numbers(scores: Iterable[Interval]) -> list[float]:
    """Return every known number of some intervals, for the scale that has to hold them.

    Examples
    --------
    >>> interval_numbers([Interval(0.5), Interval(0.5, 0.4, 0.6)])
    [0.5, 0.5, 0.4, 0.6]
    """
    return [v for score in scores for v in (score.value, score.low, score.high) if math.isfinite(v)]


def _is_wide_range(values: Sequence[float]) -> bool:
    """Check whether numbers of features span so much that only a logarithmic axis shows them all."""
    return len(values) > 1 and max(values) / max(min(values), 1) >= 20


def score_curve(curve: Curve, references: Sequence[tuple[str, float]], width: int, height: int = 320) -> str:
    """Draw the score against M with its interval as a band, the chosen M marked, and lines to compare with."""
    points = sorted(curve.points, key=lambda point: point.n_features)
    frame = Frame(width, height, top=30)
    sizes = [float(point.n_features) for point in points]
    held = sizes if curve.chosen is None else [*sizes, float(curve.chosen)]
    x = Scale.over(held, *frame.x_range, log=_is_wide_range(held), pad=0.04)
    levels = [(name, value) for name, value in references if math.isfinite(value)]
    numbers = [*interval_numbers(point.score for point in points), *(value for _, value in levels)]
    y = Scale.over(numbers, *frame.y_range, pad=0.06)
    parts = [axes(frame, x, y, "features kept (M)", curve.metric, x_ticks=sizes)]
    parts.append(_reference_lines(frame, y, levels))
    banded = [p for p in points if p.score.has_ends]
    if len(banded) > 1:
        upper = [f"{x(p.n_features):.1f} {y(p.score.high):.1f}" for p in banded]
        lower = [f"{x(p.n_features):.1f} {y(p.score.low):.1f}" for p in reversed(banded)]
        parts.append(element("path", d=f"M{'L'.join(upper + lower)}Z", class_="band s0"))
    if curve.chosen is not None:
        at = x(curve.chosen)
        bottom, top = frame.y_range
        parts.append(element("line", x1=at, x2=at, y1=bottom, y2=top, class_="chosen"))
        anchor = "end" if at > width * 0.7 else "start"
        parts.append(
            text(
                f"M = {curve.chosen:,}",
                at + (-6 if anchor == "end" else 6),
                top + 10,
                text_anchor=anchor,
                class_="note",
            )
        )
    drawn = [(x(p.n_features), y(p.score.value)) for p in points if p.score.is_known]
    parts.append(polyline(drawn, class_="line s0"))
    for point in points:
        if point.score.is_known:
            tip = f"M = {point.n_features:,}: {describe_score(point.score)}"
            chosen = " ring" if point.n_features == curve.chosen else ""
            size = 5.0 if chosen else 3.4
            parts.append(
                marker(
                    0,
                    x(point.n_features),
                    y(point.score.value),
                    size,
                    class_=f"mark s0{chosen}",
                    data_tip=tip,
                    data_m=str(point.n_features),
                )
            )
    return picture(frame, f"{curve.metric} against the number of features kept", *parts)


def _reference_lines(frame: Frame, y: Scale, levels: Sequence[tuple[str, float]]) -> str:
    """Draw horizontal lines with their names at the right, moved apart where they would overlap."""
    left, right = frame.x_range
    parts = []
    last = -math.inf
    for name, value in sorted(levels, key=lambda level: -level[1]):
        at = y(value)
        parts.append(element("line", x1=left, x2=right, y1=at, y2=at, class_="reference"))
        place = max(at - 4, last + 13)
        last = place
        said = f"{name} {format_score(value)}"
        parts.append(text(said, right, place, text_anchor="end", class_="reference-name"))
    return "".join(parts)


def robust_top(values: np.ndarray) -> float:
    """Return where an axis may end so that a few spikes do not flatten all else: the maximum, unless it is far away.

    Examples
    --------
    >>> robust_top(np.array([1.0, 2.0, 3.0])), robust_top(np.r_[np.ones(99), 500.0])
    (3.0, 1.375)
    """
    finite = values[np.isfinite(values)]
    usual = float(np.quantile(finite, 0.97))
    low, high = float(finite.min()), float(finite.max())
    reach = max(usual - low, 0.25 * abs(usual))
    return high if high <= low + 3 * reach else low + 1.5 * reach


def _thin(n_rows: int) -> np.ndarray:
    """Return the indices of at most ``N_POINTS`` rows, first and last among them."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, N_POINTS)).round().astype(np.int64))


def _phase_bands(frame: Frame, x: Scale, steps: np.ndarray, phases: np.ndarray | None) -> str:
    """Shade the phases behind a chart, with their names where there is room."""
    if phases is None or len(phases) != len(steps):
        return ""
    bottom, top = frame.y_range
    borders = np.flatnonzero(np.diff(phases)) + 1
    parts = []
    for first, last in zip([0, *borders], [*borders, len(steps) - 1], strict=True):
        phase = int(phases[first])
        left, right = x(float(steps[first])), x(float(steps[last]))
        if right <= left or not 0 <= phase < len(Phase):
            continue
        parts.append(
            element("rect", x=left, y=top, width=right - left, height=bottom - top, class_=f"phase phase{phase % 2}")
        )
        if right - left > 6 * len(Phase(phase).label):
            middle = (left + right) / 2
            parts.append(text(Phase(phase).label, middle, top - 5, text_anchor="middle", class_="phase-name"))
    return "".join(parts)


def has_history(selection: Selection, column: str) -> bool:
    """Check whether a run recorded a column at two steps or more, with a finite number among them."""
    history = selection.history
    if "step" not in history or column not in history or len(history["step"]) < 2:
        return False
    values = np.asarray(history[column], dtype=np.float64)
    return len(values) == len(history["step"]) and bool(np.isfinite(values).any())


def shown_steps(selection: Selection, column: str) -> int:
    """Return how many recorded steps a chart of a column shows: a little more than the selection takes, unless it is the loss.

    Refinement often takes most of a run; drawn whole it would leave little room for the selection.
    """
    steps = np.asarray(selection.history["step"], dtype=np.float64)
    if column == "loss" or not 0 < selection.closed_at < 0.7 * steps[-1]:
        return len(steps)
    return min(len(steps), max(2, int(np.searchsorted(steps, 1.3 * selection.closed_at)) + 1))


def history_chart(selection: Selection, column: str, width: int, height: int = 240) -> str:
    """Draw one column of the history against the training step: ``n_alive`` (logarithmic, with M marked) or ``loss``."""
    n_shown = shown_steps(selection, column)
    steps = np.asarray(selection.history["step"], dtype=np.float64)[:n_shown]
    values = np.asarray(selection.history[column], dtype=np.float64)[:n_shown]
    phases = np.asarray(selection.history["phase"])[:n_shown] if "phase" in selection.history else None
    frame = Frame(width, height, top=20)
    alive = column == "n_alive"
    n_kept = selection.n_features_to_select
    top = robust_top(values)
    held = [*values, float(n_kept)] if alive else [v for v in values if v <= top] + [top]
    x = Scale.over(list(steps), *frame.x_range)
    y = Scale.over(held, *frame.y_range, log=alive and _is_wide_range([n_kept, selection.n_features]), pad=0.06)
    label = "features alive" if alive else column
    parts = [_phase_bands(frame, x, steps, phases), axes(frame, x, y, "training step", "")]
    if alive:
        at = y(n_kept)
        parts.append(element("line", x1=frame.left, x2=width - frame.right, y1=at, y2=at, class_="chosen"))
        parts.append(text(f"M = {n_kept:,}", frame.left + 6, at - 6, class_="note"))
    rows = _thin(len(steps))
    series = "s0" if alive else "s1"
    parts.append(
        polyline(
            [(x(steps[i]), y(values[i]) if math.isfinite(values[i]) else math.nan) for i in rows],
            class_=f"line {series}",
        )
    )
    parts.extend(
        marker(
            0,
            x(steps[i]),
            y(values[i]),
            2.5,
            class_=f"mark ghost {series}",
            data_tip=f"step {int(steps[i]):,}: {format_number(values[i])}{' alive' if alive else ''}",
        )
        for i in rows[:: max(1, len(rows) // 60)]
        if math.isfinite(values[i])
    )
    return picture(frame, f"{label} against the training step", *parts)


def has_gamma(selection: Selection) -> bool:
    """Check whether a run recorded paths of gamma."""
    path = selection.history.get("gamma_path")
    features = selection.history.get("gamma_path_features")
    if path is None or features is None or "step" not in selection.history:
        return False
    return (
        np.ndim(path) == 2 and np.shape(path) == (len(selection.history["step"]), len(features)) and np.size(path) > 1
    )


def gamma_paths(selection: Selection) -> list[tuple[int, bool, np.ndarray]]:
    """Return the paths to draw, the dropped first so that the kept lie on top: column, kept or not, gamma by step."""
    features = np.asarray(selection.history["gamma_path_features"], dtype=np.int64)
    path = np.asarray(selection.history["gamma_path"], dtype=np.float64)
    order = np.argsort(selection.ranking[features], kind="stable")
    kept = [i for i in order if selection.support[features[i]]][:N_PATHS]
    dropped = [i for i in order if not selection.support[features[i]]][:N_PATHS]
    return [(int(features[i]), bool(selection.support[features[i]]), path[:, i]) for i in [*dropped[::-1], *kept[::-1]]]


def gamma_chart(selection: Selection, width: int, height: int = 300) -> str:
    """Draw gamma of some features against the training step; kept ones end at 1, the others at 0."""
    n_shown = shown_steps(selection, "gamma_path")
    steps = np.asarray(selection.history["step"], dtype=np.float64)[:n_shown]
    phases = np.asarray(selection.history["phase"])[:n_shown] if "phase" in selection.history else None
    paths = gamma_paths(selection)
    frame = Frame(width, height, top=20)
    x = Scale.over(list(steps), *frame.x_range)
    y = Scale.over([0.0, 1.0, *(float(v) for _, _, path in paths for v in path)], *frame.y_range, pad=0.04)
    parts = [_phase_bands(frame, x, steps, phases), axes(frame, x, y, "training step", "")]
    rows = _thin(len(steps))
    for column, kept, path in paths:
        drawn = [(x(steps[i]), y(path[i]) if math.isfinite(path[i]) else math.nan) for i in rows]
        tip = f"{selection.name_of(column)}: {'kept' if kept else 'left out'}, rank {selection.ranking[column]:,}"
        state = "kept" if kept else "dropped"
        parts.append(polyline(drawn, class_=f"path {state}", data_series=state, data_tip=tip))
    return picture(frame, "gamma of single features against the training step", *parts)


#: The curves of more methods are drawn without whiskers.
MOST_WHISKERS = 8


def method_curves(data: CompareReport, positions: Sequence[int], width: int, height: int = 360) -> str:
    """Draw the score against M for every method, set a little apart; intervals as whiskers where they can be told apart.

    ``positions`` give the colours of the methods.
    """
    scores = data.comparison.intervals
    whiskers = len(data.methods) <= MOST_WHISKERS
    frame = Frame(width, height, top=30)
    sizes = [float(m) for m in data.m_values]
    x = Scale.over(sizes, *frame.x_range, log=_is_wide_range(sizes), pad=0.06)
    shown = [score if whiskers else Interval(score.value) for row in scores for score in row]
    y = Scale.over(interval_numbers(shown), *frame.y_range, pad=0.05)
    parts = [axes(frame, x, y, "features kept (M)", data.metric, x_ticks=sizes)]
    n_methods = len(data.methods)
    apart = min(5.0, 22.0 / max(n_methods, 1))
    for place, (position, method, row) in enumerate(zip(positions, data.methods, scores, strict=True)):
        shift = (place - (n_methods - 1) / 2) * apart
        colour = series_class(position)
        inner = []
        drawn = [(x(m) + shift, y(s.value)) for m, s in zip(sizes, row, strict=True) if s.is_known]
        for m, score in zip(sizes, row, strict=True):
            if whiskers and score.has_ends:
                at = x(m) + shift
                inner.append(
                    element("line", x1=at, x2=at, y1=y(score.low), y2=y(score.high), class_=f"whisker {colour}")
                )
        inner.append(polyline(drawn, class_=f"line {colour}"))
        for m, score in zip(sizes, row, strict=True):
            if score.is_known:
                tip = f"{shorten(method, 40)}, M = {int(m):,}: {describe_score(score)}"
                inner.append(marker(position, x(m) + shift, y(score.value), class_=f"mark {colour}", data_tip=tip))
        parts.append(element("g", *inner, data_series=str(position)))
    return picture(frame, f"{data.metric} against the number of features kept, by method", *parts)
