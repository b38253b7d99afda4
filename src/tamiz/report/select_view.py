"""Content of the page of one selection: sentences, rows and charts, made from a `SelectReport`."""

from __future__ import annotations

import math
from typing import Any

from tamiz.evaluation.intervals import Interval
from tamiz.report.data import Scores, SelectReport
from tamiz.report.image import image_chart
from tamiz.report.lines import (
    describe_score,
    gamma_chart,
    has_gamma,
    has_history,
    history_chart,
    score_curve,
    shown_steps,
)
from tamiz.report.marks import (
    N_GROUPS,
    N_OVERLAID,
    distribution_chart,
    effect_bar,
    heat_map,
    legend_swatch,
    residual_chart,
    score_intervals,
    share_bar,
)
from tamiz.report.text import format_column, format_number, format_score, format_seconds
from tamiz.selection import Selection

#: Rows written into the page; the script makes the others from the data block when somebody looks for them.
N_ROWS = 200
N_RUNNERS_UP = 20
#: Characters of names the data block may hold: with all else this keeps 20,000 features under 1.5 MB.
NAME_BUDGET = 600_000
WIDE, NARROW = 720, 400


def both_widths(draw: Any, *arguments: Any) -> dict[str, str]:
    """Draw a chart for a wide and for a narrow screen, where a shrunken one could not be read."""
    return {"wide": draw(*arguments, WIDE), "narrow": draw(*arguments, NARROW)}


def select_view(data: SelectReport) -> dict[str, Any]:
    """Return everything the template ``select.html.j2`` uses."""
    selection = data.selection
    distributions = [
        {"feature": k, "chart": distribution_chart(k.distribution, k.name)}
        for k in data.kept
        if k.distribution is not None
    ]
    block = payload(data)
    return {
        "selection": selection,
        "headline": f"{selection.n_features_to_select:,} of {selection.n_features:,} features kept",
        "verdict": verdict(data.scores, selection) if data.scores else None,
        "facts": facts(data),
        "score_chart": score_intervals(score_rows(data.scores, selection), data.scores.metric) if data.scores else None,
        "score_rows": [(label, describe_score(score)) for label, score in score_rows(data.scores, selection)],
        "differences": difference_rows(data.scores),
        "rows": kept_rows(data)[:N_ROWS],
        "n_rows_written": min(N_ROWS, len(data.kept)),
        "shows": {
            "effect": any(k.effect is not None for k in data.kept),
            "fold_share": any(k.fold_share is not None for k in data.kept),
            "stand_ins": any(k.stand_ins for k in data.kept),
        },
        "runners_up": runners_up(selection),
        "distributions": distributions,
        "groups": group_legend(data),
        "n_groups": N_GROUPS,
        "sieve": sieve_charts(selection),
        "sieve_cut": sieve_cut(selection),
        "gamma": both_widths(gamma_chart, selection) if has_gamma(selection) else None,
        "curve_chart": both_widths(score_curve, data.curve) if data.curve and data.curve.points else None,
        "curve_rows": curve_rows(data),
        "confusion": confusion_view(data),
        "residuals": residual_chart(data.residuals) if data.residuals and data.residuals.actual else None,
        "image": image_chart(selection, data.image),
        "payload": block,
        "names_said": names_said(len(block["names"]), selection),
        "names_cover_kept": len(block["names"]) >= selection.n_features_to_select,
    }


def names_said(n_names: int, selection: Selection) -> str | None:
    """Return a sentence if the page does not hold every name."""
    if n_names == selection.n_features:
        return None
    held = f"To stay small, this page holds the names of the first {n_names:,} of {selection.n_features:,} features by rank"
    if n_names < selection.n_features_to_select:
        return f"{held}, not even of all that were kept: search, copy and CSV know only these."
    return f"{held}: the search knows only these, and there is no CSV of the full ranking."


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
            shown += f" ({format_score(score.low, signed=True)} to {format_score(score.high, signed=True)})"
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


def facts(data: SelectReport) -> list[tuple[str, str]]:
    """Return the key figures at the top of the page."""
    selection = data.selection
    shape = f"{data.n_rows:,} rows, {data.n_features:,} features" if data.n_rows else f"{data.n_features:,} features"
    rows = [("Table", shape), ("Task", f"{data.task} of {data.target}" if data.target else data.task)]
    rows.append(("Method", f"{selection.variant}, {selection.engine} engine"))
    run = f"{selection.n_steps:,} steps in {format_seconds(selection.seconds)}"
    rows.append(("Run", run if selection.n_steps else format_seconds(selection.seconds)))
    if selection.closed_at:
        rows.append(("Mask closed", f"at step {selection.closed_at:,}"))
    return rows


def kept_rows(data: SelectReport) -> list[dict[str, Any]]:
    """Return one table row per kept feature; only those that are written have bars."""
    largest = max((abs(k.effect) for k in data.kept if k.effect is not None and math.isfinite(k.effect)), default=0.0)
    effects = format_column([k.effect for k in data.kept[:N_ROWS]], signed=True)
    rows = []
    for kept, effect in zip(data.kept[:N_ROWS], effects, strict=True):
        share = kept.fold_share
        rows.append(
            {
                "feature": kept,
                "effect": effect,
                "effect_bar": effect_bar(kept.effect, largest),
                "share": "–" if share is None or not math.isfinite(share) else f"{share:.0%}",
                "share_bar": share_bar(share),
                "stand_ins": [(s.name, format_number(s.correlation, digits=2, signed=True)) for s in kept.stand_ins],
            }
        )
    return rows


def runners_up(selection: Selection) -> list[tuple[int, str, int]]:
    """Return the features ranked next: rank, name, column."""
    n_kept = selection.n_features_to_select
    order = selection.ranking.argsort(kind="stable")[n_kept : n_kept + N_RUNNERS_UP]
    return [(int(selection.ranking[i]), selection.name_of(int(i)), int(i)) for i in order]


def group_legend(data: SelectReport) -> list[dict[str, Any]]:
    """Return the classes of the distributions with their colours; none where the pictures name the classes themselves."""
    shown = next((k.distribution for k in data.kept if k.distribution is not None), None)
    if shown is None or not 1 < len(shown.groups) <= N_OVERLAID:
        return []
    return [{"name": g.label, "key": str(i), "swatch": legend_swatch(i)} for i, g in enumerate(shown.groups[:N_GROUPS])]


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
    labels = [[f"{c:,}" for c in row] for row in confusion.counts]
    right = sum(confusion.counts[i][i] for i in range(len(totals)))
    drawn = len(confusion.labels) <= 24
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


def payload(data: SelectReport) -> dict[str, Any]:
    """Return the data block for the script: all kept features, and of the others as many by rank as the budget allows."""
    selection = data.selection
    order = selection.ranking.argsort(kind="stable")
    names: list[str] = []
    spent = 0
    for index in order:
        name = selection.name_of(int(index))
        spent += len(name.encode("utf-8", "replace")) + 3
        if spent > NAME_BUDGET:
            break
        names.append(name)
    kept = data.kept[: len(names)]
    return {
        "kind": "select",
        "names": names,
        "columns": order[: len(names)].tolist(),
        "nKept": selection.n_features_to_select,
        "nFeatures": selection.n_features,
        "effects": [_rounded(k.effect) for k in kept],
        "shares": [_rounded(k.fold_share) for k in kept],
        "standIns": [[[s.name, round(s.correlation, 3)] for s in k.stand_ins] for k in kept],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
