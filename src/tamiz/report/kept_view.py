"""Content of the list of kept columns, of their distributions, and the data block of the page."""

from __future__ import annotations

import math
from typing import Any

from tamiz.report.columns import MOST_CELLS, class_cells, effect_bar, effect_range, share_dot
from tamiz.report.data import KeptFeature, SelectReport
from tamiz.report.marks import N_GROUPS, N_OVERLAID, distribution_chart, legend_swatch
from tamiz.report.svg import series_class
from tamiz.report.text import format_column
from tamiz.selection import Selection

#: Rows written into the page; the script makes the others from the data block when somebody looks for them.
N_ROWS = 200
N_RUNNERS_UP = 20
#: Characters of names the data block may hold: with all else this keeps 20,000 features under 1.5 MB.
NAME_BUDGET = 600_000


def kept_view(data: SelectReport) -> dict[str, Any]:
    """Return the rows of the list, which columns it has, and the legend of its colours."""
    by_class = any(kept.class_effects for kept in data.kept)
    return {
        "rows": kept_rows(data),
        "shows": {
            "effect": any(k.effect is not None for k in data.kept),
            "by_class": by_class,
            "whiskers": any(len(k.fold_effects) > 1 for k in data.kept),
            "fold_share": any(k.fold_share is not None for k in data.kept),
            "stand_ins": any(k.stand_ins for k in data.kept),
            "direction": any(direction(k, data) for k in data.kept),
        },
        "class_labels": data.classes[:MOST_CELLS] if by_class else (),
        "n_classes": len(data.classes),
    }


def direction(kept: KeptFeature, data: SelectReport) -> str:
    """Return which class a higher value speaks for, or which way it moves a numeric target."""
    if kept.effect is None or not math.isfinite(kept.effect) or kept.effect == 0:
        return ""
    if kept.class_effects and len(kept.class_effects) == len(data.classes):
        best = max(range(len(data.classes)), key=lambda i: kept.class_effects[i])
        return f"higher → {data.classes[best]}"
    if len(data.classes) == 2:
        return f"higher → {data.classes[kept.effect > 0]}"
    if data.task == "regression":
        return f"higher → {'more' if kept.effect > 0 else 'less'} {data.target or 'of the target'}"
    return ""


def effect_colour(effect: float | None) -> str:
    """Return the class of the colour of an effect: that of the class it speaks for."""
    return series_class(1 if effect is not None and effect > 0 else 0)


def kept_rows(data: SelectReport) -> list[dict[str, Any]]:
    """Return one row per kept feature that is written into the page."""
    written = data.kept[:N_ROWS]
    span = effect_range([e for k in data.kept for e in (k.effect, *k.fold_effects)])
    largest_class = max(map(abs, effect_range([e for k in data.kept for e in k.class_effects])))
    effects = format_column([k.effect for k in written], signed=not any(k.class_effects for k in written))
    rows = []
    for kept, effect in zip(written, effects, strict=True):
        share = kept.fold_share
        faint = share is not None and share < 0.5
        if kept.class_effects:
            bar = class_cells(kept.class_effects, largest_class, data.classes)
        else:
            bar = effect_bar(kept.effect, span, effect_colour(kept.effect), kept.fold_effects, faint)
        rows.append(
            {
                "feature": kept,
                "column": data.column_of(kept.index),
                "effect": effect,
                "bar": bar,
                "direction": direction(kept, data),
                "faint": faint,
                "share": "–" if share is None or not math.isfinite(share) else f"{share:.0%}",
                "dot": share_dot(share),
            }
        )
    return rows


def runners_up(data: SelectReport) -> list[tuple[int, str, int]]:
    """Return the features ranked next: rank, name, column."""
    selection = data.selection
    n_kept = selection.n_features_to_select
    order = selection.ranking.argsort(kind="stable")[n_kept : n_kept + N_RUNNERS_UP]
    return [(int(selection.ranking[i]), selection.name_of(int(i)), data.column_of(int(i))) for i in order]


def distribution_view(data: SelectReport) -> dict[str, Any]:
    """Return the pictures of the distributions and their legend; of images the mask is shown instead."""
    return {
        "distributions": [
            {"feature": k, "chart": distribution_chart(k.distribution, k.name)}
            for k in data.kept
            if k.distribution is not None and data.image is None
        ],
        "groups": group_legend(data),
        "n_groups": N_GROUPS,
    }


def group_legend(data: SelectReport) -> list[dict[str, Any]]:
    """Return the classes of the distributions with their colours; none where the pictures name the classes themselves."""
    shown = next((k.distribution for k in data.kept if k.distribution is not None), None)
    if shown is None or not 1 < len(shown.groups) <= N_OVERLAID:
        return []
    return [{"name": g.label, "key": str(i), "swatch": legend_swatch(i)} for i, g in enumerate(shown.groups[:N_GROUPS])]


def names_said(n_names: int, selection: Selection) -> str | None:
    """Return a sentence if the page does not hold every name."""
    if n_names == selection.n_features:
        return None
    held = f"To stay small, this page holds the names of the first {n_names:,} of {selection.n_features:,} features by rank"
    if n_names < selection.n_features_to_select:
        return f"{held}, not even of all that were kept: search, copy and CSV know only these."
    return f"{held}: the search knows only these, and there is no CSV of the full ranking."


def payload(data: SelectReport) -> dict[str, Any]:
    """Return the data block for the script: all kept features, and of the others as many by rank as the budget allows."""
    selection = data.selection
    order = selection.ranking.argsort(kind="stable")
    order[: len(data.kept)] = [kept.index for kept in data.kept]
    names: list[str] = []
    spent = 0
    for index in order:
        name = selection.name_of(int(index))
        spent += len(name.encode("utf-8", "replace")) + 3
        if spent > NAME_BUDGET:
            break
        names.append(name)
    kept = data.kept[: len(names)]
    numbers = order[: len(names)].tolist()
    place = {column: i for i, column in enumerate(numbers)}
    return {
        "kind": "select",
        "names": names,
        "columns": [data.column_of(i) for i in numbers],
        "nKept": selection.n_features_to_select,
        "nFeatures": selection.n_features,
        "effects": [_rounded(k.effect) for k in kept],
        "shares": [_rounded(k.fold_share) for k in kept],
        "standIns": [[[s.name, round(s.correlation, 3)] for s in k.stand_ins] for k in kept],
        "classes": list(data.classes) if len(data.classes) == 2 else [],
        "sets": {
            str(entry.n_features): [
                [place[c], _rounded(e)] for c, e in zip(entry.columns, entry.effects, strict=True) if c in place
            ]
            for entry in data.kept_sets
        },
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
