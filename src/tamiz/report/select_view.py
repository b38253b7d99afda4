"""Content of the page of one selection: verdict, tiles, scores and the run, made from a `SelectReport`."""

from __future__ import annotations

from typing import Any

from tamiz.evaluation.intervals import Interval
from tamiz.report.choices_view import choice_tables
from tamiz.report.data import Scores, SelectReport
from tamiz.report.evidence_view import (
    fold_grid_view,
    heat_map_view,
    prediction_view,
    together_view,
)
from tamiz.report.heat_sets import heat_sets_payload
from tamiz.report.image import class_image_charts, image_chart
from tamiz.report.kept_view import N_ROWS, distribution_view, kept_view, names_said, payload, runners_up
from tamiz.report.lines import (
    describe_score,
    gamma_chart,
    has_gamma,
    has_history,
    history_chart,
    score_curve,
    shown_steps,
)
from tamiz.report.marks import score_intervals
from tamiz.report.text import format_p_value, format_score, format_seconds
from tamiz.selection import Selection

WIDE, NARROW = 720, 400


def both_widths(draw: Any, *arguments: Any) -> dict[str, str]:
    """Draw a chart for a wide and for a narrow screen, where a shrunken one could not be read."""
    return {"wide": draw(*arguments, WIDE), "narrow": draw(*arguments, NARROW)}


def select_view(data: SelectReport) -> dict[str, Any]:
    """Return everything the template ``select.html.j2`` uses."""
    selection = data.selection
    block = payload(data)
    heat = heat_map_view(data, both_widths)
    together = together_view(data)
    block["grids"] = {part["key"]: part["grid"] for part in (heat, together) if part and part.get("grid")}
    if data.heat_sets is not None:
        block["heatSets"] = heat_sets_payload(data.heat_sets)
    return {
        "selection": selection,
        "headline": f"{selection.n_features_to_select:,} of {selection.n_features:,} features kept",
        "subline": subline(data),
        "verdict": data.verdict or (verdict(data.scores, selection) if data.scores else None),
        "tiles": tiles(data),
        "facts": [],
        "score_chart": score_intervals(score_rows(data.scores, selection), data.scores.metric) if data.scores else None,
        "score_rows": [(label, describe_score(score)) for label, score in score_rows(data.scores, selection)],
        "differences": difference_rows(data.scores),
        **kept_view(data),
        "n_rows_written": min(N_ROWS, len(data.kept)),
        "runners_up": runners_up(data),
        **distribution_view(data),
        "heat": heat,
        "together": together,
        "folds": fold_grid_view(data, both_widths),
        "predictions": prediction_view(data),
        "choices": choice_tables(selection),
        "run": run_view(data),
        "curve_chart": both_widths(score_curve, data.curve, references(data))
        if data.curve and data.curve.points
        else None,
        "curve_rows": curve_rows(data),
        "slider": slider_view(data),
        "image": image_chart(selection, data.image),
        "class_images": class_image_charts(selection, data.class_images),
        "payload": block,
        "names_said": names_said(len(block["names"]), selection),
        "names_cover_kept": len(block["names"]) >= selection.n_features_to_select,
    }


def subline(data: SelectReport) -> str:
    """Return the table and the task in a few words."""
    rows = f"{data.n_rows:,} rows; " if data.n_rows else ""
    return rows + (f"{data.task} of {data.target}" if data.target else data.task)


def tiles(data: SelectReport) -> list[dict[str, str]]:
    """Return the four answers on the top: score, against all, against random, stability; those that were measured."""
    scores, selection = data.scores, data.selection
    found = []
    if scores is not None:
        notes = [_range(scores.kept)] if scores.kept.has_ends else []
        if scores.chance is not None:
            notes.append(f"chance {format_score(scores.chance)}")
        if scores.p_value is not None:
            notes.append(f"p = {format_p_value(scores.p_value)}")
        found.append(_tile(scores.metric.capitalize(), format_score(scores.kept.value), "; ".join(notes)))
        for difference, other in (
            (scores.difference, f"Against all {selection.n_features:,}"),
            (scores.difference_random, f"Against {selection.n_features_to_select:,} random"),
        ):
            if difference is not None:
                found.append(_difference_tile(other, difference, scores.higher_is_better))
    if data.stability is not None:
        notes = ["1 is always the same set"]
        if data.stability.null is not None:
            notes.append(f"without a signal below {data.stability.null:.2f}")
        if data.stability.p_value is not None:
            notes.append(f"p = {format_p_value(data.stability.p_value)}")
        found.append(_tile("Stability", f"{data.stability.value:.2f}", "; ".join(notes)))
    return found


def _tile(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def _range(score: Interval, signed: bool = False) -> str:
    return f"{format_score(score.low, signed=signed)} to {format_score(score.high, signed=signed)}"


def _difference_tile(label: str, difference: Interval, higher_is_better: bool) -> dict[str, str]:
    note = ""
    if difference.has_ends:
        unclear = difference.low <= 0 <= difference.high
        word = "no clear difference" if unclear else "better" if (difference.value > 0) == higher_is_better else "worse"
        note = f"{word}; {_range(difference, signed=True)}"
    return _tile(label, format_score(difference.value, signed=True), note)


def references(data: SelectReport) -> list[tuple[str, float]]:
    """Return the levels that the curve is compared with."""
    scores = data.scores
    if scores is None:
        return []
    levels = [
        ("all", scores.all_features.value if scores.all_features else None),
        ("random", scores.random_features.value if scores.random_features else None),
        ("chance", scores.chance),
    ]
    return [(name, value) for name, value in levels if value is not None]


def slider_view(data: SelectReport) -> dict[str, Any] | None:
    """Return the numbers of features between which the slider moves; None where the page holds one set only."""
    if not data.kept_sets:
        return None
    chosen = data.selection.n_features_to_select
    sizes = sorted({chosen, *(entry.n_features for entry in data.kept_sets)})
    return {"sizes": sizes, "at": sizes.index(chosen), "chosen": chosen}


def curve_rows(data: SelectReport) -> list[tuple[str, str]]:
    """Return the points of the curve as text, by M."""
    points = sorted(data.curve.points, key=lambda point: point.n_features) if data.curve else []
    return [(f"M = {p.n_features:,}", describe_score(p.score)) for p in points]


def score_rows(scores: Scores | None, selection: Selection) -> list[tuple[str, Interval]]:
    """Return the scores that were measured, with their names."""
    if scores is None:
        return []
    n_kept = selection.n_features_to_select
    rows = [
        (f"the {n_kept:,} kept", scores.kept),
        (f"all {selection.n_features:,}", scores.all_features),
        (f"{n_kept:,} at random", scores.random_features),
    ]
    return [(label, score) for label, score in rows if score is not None]


def difference_rows(scores: Scores | None) -> list[tuple[str, str]]:
    """Return the two paired differences as text."""
    if scores is None:
        return []
    named = [("kept minus all", scores.difference), ("kept minus random", scores.difference_random)]
    rows = []
    for label, score in named:
        if score is None:
            continue
        shown = format_score(score.value, signed=True)
        if score.has_ends:
            shown += f" ({_range(score, signed=True)})"
        rows.append((label, shown))
    return rows


def verdict(scores: Scores, selection: Selection) -> str:
    """Return sentences on the scores; a difference counts if its interval leaves out zero."""
    n_kept, n_features = selection.n_features_to_select, selection.n_features
    kept = "the kept feature" if n_kept == 1 else f"the {n_kept:,} kept features"
    said = f"With {kept}, {scores.metric} is {describe_score(scores.kept)}"
    said += f" over {scores.n_folds} held-out folds." if scores.n_folds else "."
    unclear = []
    for score, other in (
        (scores.difference, f"all {n_features:,} features"),
        (scores.difference_random, "a random feature" if n_kept == 1 else f"{n_kept:,} random features"),
    ):
        if score is None or not score.has_ends:
            continue
        if score.low <= 0 <= score.high:
            unclear.append(other)
        else:
            better = (score.value > 0) == scores.higher_is_better
            said += f" It is {'better' if better else 'worse'} than with {other} by {format_score(abs(score.value))}."
    if unclear:
        reason = "both intervals include" if len(unclear) == 2 else "the interval of the difference includes"
        said += f" There is no clear difference from {' or from '.join(unclear)}: {reason} zero."
    return said


def run_view(data: SelectReport) -> dict[str, Any] | None:
    """Return how the method ran: its name, steps and charts; None where nothing was recorded."""
    selection = data.selection
    charts = sieve_charts(selection)
    gamma = both_widths(gamma_chart, selection) if has_gamma(selection) else None
    if not (charts or gamma or selection.n_steps):
        return None
    rows = [("Method", f"{selection.variant}, {selection.engine} engine")]
    if selection.n_steps:
        rows.append(("Steps", f"{selection.n_steps:,}"))
    rows.append(("Time", format_seconds(selection.seconds)))
    if selection.closed_at:
        rows.append(("Mask closed", f"at step {selection.closed_at:,}"))
    return {"rows": rows, "charts": charts, "gamma": gamma, "cut": sieve_cut(selection)}


def sieve_charts(selection: Selection) -> list[dict[str, Any]]:
    """Return the charts of the run that its history has numbers for."""
    charts: list[dict[str, Any]] = []
    if has_history(selection, "n_alive"):
        charts.append({"title": "Features alive", "chart": history_chart(selection, "n_alive", NARROW)})
    if has_history(selection, "loss"):
        charts.append({"title": "Training loss", "chart": history_chart(selection, "loss", NARROW)})
    return charts


def sieve_cut(selection: Selection) -> str | None:
    """Return a sentence if the charts of the selection end before the run does."""
    if not has_history(selection, "n_alive"):
        return None
    steps = selection.history["step"]
    last = int(steps[shown_steps(selection, "n_alive") - 1])
    return (
        None
        if last >= int(steps[-1])
        else f"the charts of the sieve end at step {last:,}, the run at {int(steps[-1]):,}."
    )
