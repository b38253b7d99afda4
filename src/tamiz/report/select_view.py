"""Content of the page of one selection: alerts, answers, kept columns, pictures, scores and the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz._utils.pictures import Grid, Lines, Series
from tamiz.report.charts import (
    N_GROUPS,
    N_OVERLAID,
    NEAR_COPY,
    both_widths,
    class_strip,
    describe_score,
    distribution_chart,
    effect_bar,
    effect_range,
    fold_chart,
    image_chart,
    legend,
    line_chart,
    raster_chart,
    row_chart,
    share_dot,
    square_chart,
)
from tamiz.report.columns import (
    N_PICTURED,
    Columns,
    Distribution,
    describe_distribution,
    find_stand_ins,
    fold_grid,
    group_rows,
    image_planes,
    kept_grids,
)
from tamiz.report.compare_view import describe_ends
from tamiz.report.plots import gamma_lines, history_lines, shown_steps
from tamiz.report.raster import grid_payload
from tamiz.report.text import counted, format_column, format_number, format_score, format_seconds, shorten

if TYPE_CHECKING:
    from tamiz.report.page import About

#: Rows written into the page; the script makes the others from the data block when somebody looks for them.
N_ROWS, N_RUNNERS_UP = 200, 20
#: Characters of names the data block may hold: with all else this keeps 20,000 columns under 1.5 MB.
NAME_BUDGET = 600_000
#: A confusion matrix of more classes is a table; of more targets the first are drawn.
_MOST_DRAWN, _MOST_TARGETS, _MOST_POINTS = 24, 12, 500
_SETS = {"kept": ("kept", 0), "all_features": ("all", 1), "random_features": ("random", 7)}
_TITLES = {"network": "Network", "l2": "Weight decay", "n_features_to_select": "Columns to keep"}
_RULES = {
    "one_se": "the simplest within one standard error of the best mean",
    "unbeaten": "the simplest within one standard error of the best mean, or not clearly beaten by the best",
    "best": "the best mean",
    "guarded": "the default unless another is better by more than the standard error of the gain",
}


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of the kept columns, best first, and those of the levels of each; ``signed`` if they have a direction."""

    name: str
    values: list[float | None]
    levels: list[list[float | None]]
    signed: bool


@dataclass(frozen=True, eq=False)
class Shown:
    """What the page of a selection is made from.

    Parameters
    ----------
    columns : Columns
        Columns of the user's table, and which were kept.
    X, y : encoded matrix and target, default=None
        Rows to draw.
    model : fitted estimator, default=None
        Its weights are shown if the evaluation holds no effects.
    evaluation : Evaluation, default=None
        Scores, stability, held-out predictions and effects.
    kept_sets : sequence of (M, columns, effects), default=()
        What is kept with every M of the curve.
    alerts : sequence of (str, str), default=()
        What is wrong with the table, and what to do.
    verdict : str or None, default=None
        Sentence on the top.
    rows : ndarray of int, default=None
        Which of the evaluated rows X holds; None: all.
    """

    columns: Columns
    X: Any = None
    y: Any = None
    model: Any = None
    evaluation: Any = None
    kept_sets: Sequence[tuple[int, Sequence[int], Sequence[float | None]]] = ()
    alerts: Sequence[tuple[str, str]] = ()
    verdict: str | None = None
    rows: np.ndarray | None = None

    @property
    def selection(self) -> Any:
        """Selection of encoded features."""
        return self.columns.selection

    @property
    def shares(self) -> np.ndarray | None:
        """Share of the folds that kept each column; None if the folds did not count the same columns."""
        found = None if self.evaluation is None else np.asarray(self.evaluation.fold_share)
        return found if found is not None and len(found) == len(self.columns) else None

    @cached_property
    def effects(self) -> Effects | None:
        """Effects on held-out rows, else weights of the model, which are of the training rows."""
        if self.evaluation is not None and self.evaluation.effects:
            few = self.evaluation.task == "regression" or np.unique(self.evaluation.y).size == 2
            return _effects_of_features(self.columns, self.evaluation.effect_name, self.evaluation.effects, few)
        return _training_effects(self)


def _effects_of_features(columns: Columns, name: str, found: Mapping[int, float], signed: bool) -> Effects:
    """Return the effects of columns from those of encoded features; of a column with levels the largest counts."""
    values: list[float | None] = []
    levels: list[list[float | None]] = []
    for column in columns.kept:
        mine = [found.get(int(feature)) for feature in columns.members[int(column)]]
        known = [v for v in mine if v is not None and math.isfinite(v)]
        largest = max(known, key=abs, default=None)
        values.append(largest if len(mine) == 1 or largest is None else abs(largest))
        levels.append(mine if len(mine) > 1 else [])
    return Effects(name, values, levels, signed)


def _training_effects(shown: Shown) -> Effects | None:
    """Return the weights of a linear model, or what each column contributes to the outputs of another."""
    columns, selection = shown.columns, shown.selection
    weights = getattr(shown.model, "coef_", None)
    weights = None if weights is None else np.atleast_2d(np.asarray(weights, dtype=np.float64))
    if weights is not None and weights.ndim == 2 and weights.shape[1] == selection.n_features:
        weights = weights[:, selection.indices]
    if weights is not None and weights.shape[1:] == (selection.n_features_to_select,):
        name = "weight of the standardised column in the model, from the training rows: expect less on new rows"
        weights = weights[1:] - weights[:1] if len(weights) == 2 else weights
        sizes = weights[0] if len(weights) == 1 else np.linalg.norm(weights, axis=0)
        found = dict(zip(selection.indices.tolist(), sizes.tolist(), strict=True))
        return _effects_of_features(columns, name, found, len(weights) == 1)
    if selection.contribution is None:
        return None
    name = "contribution to the outputs of the model, on the training rows"
    found = {int(i): float(selection.contribution[i]) for i in selection.indices}
    return _effects_of_features(columns, name, found, False)


def select_view(shown: Shown, about: About) -> dict[str, Any]:
    """Return everything the template ``select.html.j2`` uses."""
    columns, selection, evaluation = shown.columns, shown.selection, shown.evaluation
    groups: list[tuple[str, np.ndarray]] = []
    if shown.X is not None:
        everything = [("all rows", np.ones(shown.X.shape[0], dtype=bool))]
        groups = everything if shown.y is None else group_rows(shown.y, about.task, about.target)
    classes = [label for label, _ in groups] if about.task == "classification" and shown.y is not None else []
    image = image_planes(selection, shown.X)
    stand_ins: list[list[tuple[str, float]]] = []
    distributions: list[tuple[int, Distribution]] = []
    grids = None
    if shown.X is not None and shown.y is not None and columns.n_kept:
        stand_ins = find_stand_ins(columns, shown.X, shown.y, about.task)
        grids = kept_grids(columns, shown.X, shown.y, about.task, groups)
        if image is None:
            for column in columns.kept[:N_PICTURED].tolist():
                values, levels = columns.read(shown.X, column)
                found = describe_distribution(values, groups, levels)
                if found is not None:
                    distributions.append((column, found))
    folds = None if shown.shares is None else fold_grid(columns, [fold.support for fold in evaluation.folds])
    block = _payload(shown, about, classes, stand_ins)
    heat = None if grids is None else _heat(shown, grids[0], grids[1], groups, block)
    together = _together(columns, None if grids is None else grids[2], stand_ins, block)
    curve = [] if evaluation is None else evaluation.curve()
    return {
        "headline": f"{columns.n_kept:,} of {counted(len(columns), 'column')} kept",
        "subline": _subline(about),
        "verdict": shown.verdict,
        "alerts": shown.alerts,
        "facts": [],
        "tiles": _tiles(shown),
        "converged": selection.converged,
        **_kept(shown, about, classes, block),
        "image": None if image is None else image_chart(*image),
        "heat": heat,
        "together": together,
        "folds": None if folds is None else _folds(*folds),
        "predictions": _predictions(shown, about, classes),
        "curve_chart": both_widths(lambda width: line_chart(score_curve(shown), width, 320)) if curve else None,
        "curve_rows": [(f"M = {m:,}", describe_score(score)) for m, score in curve],
        "slider": _slider(shown),
        "distributions": [
            {"rank": rank + 1, "name": columns.names[c], "chart": distribution_chart(d, columns.names[c]), "shown": d}
            for rank, (c, d) in enumerate(distributions)
        ],
        "groups": legend([label for label, _ in groups]) if 1 < len(groups) <= N_OVERLAID else [],
        "n_groups": N_GROUPS,
        "choices": [_choice(_TITLES.get(name, name), choice) for name, choice in selection.choices.items()],
        "run": _run(selection),
        "payload": block,
    }


def _subline(about: About) -> str:
    rows = f"{counted(about.n_rows, 'row')}; " if about.n_rows else ""
    return rows + (f"{about.task} of {about.target}" if about.target else about.task)


def _tile(label: str, value: str, *notes: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": "; ".join(note for note in notes if note)}


def _tiles(shown: Shown) -> list[dict[str, str]]:
    """Return the four answers on the top: score, against all, against random, stability; those that were measured."""
    evaluation, columns = shown.evaluation, shown.columns
    if evaluation is None:
        return []
    score = evaluation.interval("kept")
    ends = f"{format_score(score.low)} to {format_score(score.high)}" if score.has_ends else ""
    chance = evaluation.chance
    chance = "" if chance is None else f"chance {format_score(chance)}"
    name = evaluation.metric.name
    tiles = [
        _tile(
            name[:1].upper() + name[1:],
            format_score(score.value),
            ends,
            chance,
            "" if evaluation.null is None else evaluation.null.p_text.replace(" ", "\u00a0"),
        )
    ]
    against = [
        ("all_features", f"Against all {len(columns):,}"),
        ("random_features", f"Against {columns.n_kept:,} random"),
    ]
    for what, label in against:
        gap = evaluation.difference(what)
        if not math.isfinite(gap.value):
            continue
        word = ""
        if gap.has_ends:
            word = "better" if gap.value * evaluation.metric.sign > 0 else "worse"
            word = "no clear difference" if gap.low <= 0 <= gap.high else word
        ends = describe_ends(gap.low, gap.high) if gap.has_ends else ""
        tiles.append(_tile(label, format_score(gap.value, signed=True), word, ends))
    if math.isfinite(evaluation.stability):
        null = evaluation.null
        without = "" if null is None else f"without a signal below {null.highest_stability:.2f}"
        tiles.append(_tile("Stability", f"{evaluation.stability:.2f}", "1 is always the same set", without))
    return tiles


def _direction(effect: float | None, effects: Effects | None, classes: Sequence[str], about: About) -> str:
    """Say which class, or which way of a numeric target, a higher value of a column goes with."""
    if effects is None or not effects.signed or effect is None or effect == 0:
        return ""
    if len(classes) == 2:
        return f"higher → {classes[int(effect > 0)]}"
    return f"higher → {'more' if effect > 0 else 'less'} {about.target or 'of the target'}"


def _kept(shown: Shown, about: About, classes: Sequence[str], block: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of the list, which cells it has, and the columns that came next."""
    columns, effects = shown.columns, shown.effects
    n_written = min(N_ROWS, columns.n_kept)
    shares = shown.shares
    values: list[float | None] = [None] * columns.n_kept if effects is None else effects.values
    span = effect_range(values)
    signed = effects is not None and effects.signed
    written = format_column(values[:n_written], signed=signed)
    rows = []
    for place in range(n_written):
        column = int(columns.kept[place])
        share = None if shares is None else float(shares[column])
        faint = share is not None and share < 0.5
        names = columns.levels_of(column)
        levels: list[tuple[str, str]] = []
        if len(names) > 1:
            sizes = effects.levels[place] if effects is not None else [None] * len(names)
            levels = list(zip(names, format_column(sizes, signed=signed), strict=True))
        plain = not levels and signed
        rows.append(
            {
                "rank": place + 1,
                "name": columns.names[column],
                "number": columns.numbers[column],
                "levels": levels,
                "value": values[place],
                "effect": written[place] if plain else written[place].removeprefix("+"),
                "bar": effect_bar(values[place], span, faint, -1 if plain else 0),
                "direction": "" if levels else _direction(values[place], effects, classes, about),
                "faint": faint,
                "share": share,
                "share_shown": "–" if share is None else f"{share:.0%}",
                "dot": share_dot(share),
            }
        )
    n_names, following = len(block["names"]), columns.order[columns.n_kept : columns.n_kept + N_RUNNERS_UP]
    held = None
    if n_names < len(columns):
        held = f"To stay small, this page holds the names of the first {n_names:,} of {len(columns):,} columns by rank"
        kept = "not even of all that were kept: search, copy and CSV know only these."
        held += f", {kept}" if n_names < columns.n_kept else ": there is no CSV of the full ranking."
    return {
        "rows": rows,
        "n_kept": columns.n_kept,
        "n_rows_written": n_written,
        "effect_name": "" if effects is None else effects.name,
        "shows": {
            "effect": any(v is not None for v in values),
            "levels": any(row["levels"] for row in rows),
            "fold_share": shares is not None,
            "direction": any(row["direction"] for row in rows),
        },
        "runners_up": [(int(columns.ranking[i]), columns.names[i], columns.numbers[i]) for i in following.tolist()],
        "names_said": held,
        "names_cover_kept": n_names >= columns.n_kept,
    }


def _payload(
    shown: Shown, about: About, classes: Sequence[str], stand_ins: Sequence[Sequence[tuple[str, float]]]
) -> dict[str, Any]:
    """Return the data block for the script: all kept columns, and of the others as many by rank as the budget allows."""
    columns, effects = shown.columns, shown.effects
    names: list[str] = []
    spent = 0
    for index in columns.order.tolist():
        spent += len(columns.names[index].encode("utf-8", "replace")) + 3
        if spent > NAME_BUDGET:
            break
        names.append(columns.names[index])
    n_kept = min(columns.n_kept, len(names))
    place = {column: i for i, column in enumerate(columns.order[: len(names)].tolist())}
    shares = shown.shares
    return {
        "kind": "select",
        "names": names,
        "columns": [columns.numbers[i] for i in columns.order[: len(names)].tolist()],
        "nKept": columns.n_kept,
        "nFeatures": len(columns),
        "effects": [_rounded(None if effects is None else effects.values[i]) for i in range(n_kept)],
        "shares": [_rounded(float(shares[c])) for c in columns.kept[:n_kept].tolist()] if shares is not None else [],
        "standIns": [[[shorten(name, 60), round(r, 3)] for name, r in entry] for entry in stand_ins[:n_kept]],
        "classes": list(classes) if len(classes) == 2 else [],
        "signed": effects is not None and effects.signed,
        "sets": {
            str(m): [[place[int(c)], _rounded(e)] for c, e in zip(set_, sizes, strict=True) if int(c) in place]
            for m, set_, sizes in shown.kept_sets
        },
        "grids": {},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _heat(shown: Shown, heat: Grid, rows: np.ndarray, groups: Any, block: dict[str, Any]) -> dict[str, Any]:
    """Return the heat map with its legend; rows that were predicted wrongly while held out are marked."""
    labels = [label for label, _ in groups]
    codes = np.zeros(shown.X.shape[0], dtype=np.int64)
    for code, (_, members) in enumerate(groups):
        codes[members] = code
    held = None if shown.evaluation is None else shown.evaluation.held_out
    wrong = None
    if held is not None and held.truth.ndim == 1 and held.truth.dtype.kind != "f":
        numbers = rows if shown.rows is None else shown.rows[rows]
        missed = set(held.rows[held.truth != held.predicted].tolist())
        wrong = np.array([int(row) in missed for row in numbers])
    said = [
        f"row {row + 1:,}, {labels[codes[row]]}{', predicted wrongly' if wrong is not None and wrong[i] else ''}"
        for i, row in enumerate(rows.tolist())
    ]
    block["grids"]["heat"] = grid_payload(heat, said)

    def chart(width: int) -> str:
        return raster_chart(heat, width, key="heat", above=class_strip(codes[rows], wrong, width))

    sampled = f"A sample of {rows.size:,} of {shown.X.shape[0]:,} rows." if rows.size < shown.X.shape[0] else ""
    return {
        "chart": both_widths(chart),
        "legend": legend(labels)[:18],
        "wrong": None if wrong is None else int(wrong.sum()),
        "said": sampled,
        "placed": any(shown.columns.levels_of(int(c)) for c in shown.columns.kept),
        "n_columns": len(heat.rows),
    }


def _together(
    columns: Columns, grid: Grid | None, stand_ins: Sequence[Sequence[tuple[str, float]]], block: dict[str, Any]
) -> dict[str, Any] | None:
    """Return correlations, near copies and stand-ins."""
    listed = [
        (columns.names[int(column)], [(name, f"{r:+.2f}") for name, r in entry])
        for column, entry in zip(columns.kept, stand_ins)
        if entry
    ]
    if grid is None and not listed:
        return None
    copies: list[tuple[str, str, float]] = []
    if grid is not None:
        block["grids"]["correlations"] = grid_payload(grid, grid.rows, "with")
        near = np.argwhere(np.triu(np.abs(grid.values) > NEAR_COPY, 1)).tolist()
        copies = [(grid.rows[i], grid.rows[j], float(grid.values[i, j])) for i, j in near]
        copies.sort(key=lambda pair: -abs(pair[2]))
    return {
        "chart": None if grid is None else raster_chart(grid, 400, key="correlations", square=True),
        "copies": [(a, b, f"{r:+.2f}") for a, b, r in copies[:20]],
        "n_copies": len(copies),
        "stand_ins": listed[:50],
    }


def _folds(grid: Grid, n_kept: int) -> dict[str, Any]:
    """Return the grid of columns by folds."""
    every = int(np.asarray(grid.values, dtype=bool)[:n_kept].all(axis=1).sum())
    were = "was" if every == 1 else "were"
    of = "The column shown was" if n_kept == every == 1 else f"{every} of the {counted(n_kept, 'column')} shown {were}"
    counts = np.asarray(grid.values, dtype=int).sum(axis=1)
    return {
        "chart": both_widths(lambda width: fold_chart(grid, n_kept, width)),
        "others": len(grid.rows) > n_kept,
        "said": f"{of} kept in every one of the {grid.values.shape[1]} folds.",
        "rows": [
            (name, f"{counts[i]} of {grid.values.shape[1]}", "yes" if i < n_kept else "no")
            for i, name in enumerate(grid.rows)
        ],
    }


def score_curve(shown: Shown) -> Lines:
    """Describe the score against M with its interval, the chosen M, and the levels to compare with."""
    evaluation = shown.evaluation
    points = evaluation.curve()
    sizes = np.array([m for m, _ in points], dtype=np.float64)
    y, low, high = (np.array([getattr(score, end) for _, score in points]) for end in ("value", "low", "high"))
    tips = [f"M = {m:,}: {describe_score(score)}" for m, score in points]
    levels = [(name, evaluation.interval(what).value) for what, (name, _) in _SETS.items() if what != "kept"]
    levels.append(("chance", math.nan if evaluation.chance is None else evaluation.chance))
    chosen = shown.columns.n_kept
    name = evaluation.metric.name
    return Lines(
        f"{name} against the number of columns kept",
        "columns kept (M)",
        name,
        [Series("", sizes, y, low, high, tips=tips)],
        log_x=bool(max(sizes.max(), chosen) / max(sizes.min(), 1) >= 20),
        x_ticks=sizes.tolist(),
        levels=[(f"{label} {format_score(value)}", value) for label, value in levels if math.isfinite(value)],
        chosen=(f"M = {chosen:,}", float(chosen)),
        band=True,
    )


def _slider(shown: Shown) -> dict[str, Any] | None:
    """Return the numbers of columns between which the slider moves; None where the page holds one set only."""
    if not shown.kept_sets:
        return None
    chosen = shown.columns.n_kept
    sizes = sorted({chosen, *(entry[0] for entry in shown.kept_sets)})
    return {"sizes": sizes, "at": sizes.index(chosen), "chosen": chosen}


def _predictions(shown: Shown, about: About, classes: Sequence[str]) -> dict[str, Any] | None:
    """Return scores, and the charts of held-out predictions: ROC and confusion, or predicted against actual."""
    evaluation, columns = shown.evaluation, shown.columns
    if evaluation is None:
        return None
    names = {"kept": f"the {columns.n_kept:,} kept", "all_features": f"all {len(columns):,}"}
    names["random_features"] = f"{columns.n_kept:,} at random"
    scores = [(what, evaluation.interval(what)) for what in _SETS]
    rows = [(names[what], score, _SETS[what][1], False) for what, score in scores if score.is_known]
    listed = [(label, describe_score(score)) for label, score, _, _ in rows]
    for what in ("all_features", "random_features"):
        gap = evaluation.difference(what)
        if math.isfinite(gap.value):
            ends = f" ({describe_ends(gap.low, gap.high)})" if gap.has_ends else ""
            listed.append((f"kept minus {_SETS[what][0]}", format_score(gap.value, signed=True) + ends))
    test = getattr(evaluation, "test_score", None)
    if test is not None:
        listed.append(("rows of the test file", describe_score(test)))
    metric = evaluation.metric.name
    held = evaluation.held_out
    charts: list[dict[str, str]] = []
    curves: list[str] = []
    if held is not None and len(classes) == 2:
        roc = roc_lines(held)
        if roc is not None:
            charts.append(
                {
                    "title": "ROC",
                    "chart": line_chart(roc),
                    "said": "Areas: " + ", ".join(s.tips[0] for s in reversed(roc.series)),
                }
            )
            curves = [series.name for series in reversed(roc.series)]
    elif held is not None and about.task == "regression":
        truth, predicted = np.atleast_2d(held.truth.T).astype(float), np.atleast_2d(held.predicted.T).astype(float)
        targets = [about.target] if len(truth) == 1 else list(about.targets)
        targets = targets if len(targets) == len(truth) else [f"target {i + 1}" for i in range(len(truth))]
        for target, actual, guess in zip(targets, truth, predicted, strict=True):
            absolute, squared = error_sizes(actual, guess)
            of = f" ({target})" if target else ""
            listed.append(("mean absolute error", f"{format_number(absolute)}{of}"))
            listed.append(("root mean squared error", f"{format_number(squared)}{of}"))
            if len(charts) < _MOST_TARGETS:
                which = f", {target}" if len(truth) > 1 else ""
                drawn = line_chart(residual_lines(actual, guess))
                charts.append({"title": f"Predicted against actual{which}", "chart": drawn, "said": ""})
    return {
        "score_chart": row_chart(rows, f"{metric}, with intervals", metric) if rows else None,
        "rows": listed,
        "metric": metric,
        "charts": charts,
        "legend": [e | {"key": e["name"]} for e in legend(curves, [c for n, c in _SETS.values() if n in curves])],
        "confusion": _confusion(held) if held is not None and about.task == "classification" else None,
    }  # fmt: skip


def roc_lines(held: Any) -> Lines | None:
    """Describe the ROC curves of two classes for each set of columns, from the outputs on held-out rows."""
    from sklearn.metrics import roc_auc_score, roc_curve

    labels = np.unique(held.truth)
    if labels.size != 2:
        return None
    series = []
    for what, (name, colour) in reversed(_SETS.items()):
        output = held.outputs.get(what)
        if output is None or output.ndim != 1 or not np.isfinite(output).all():
            continue
        x, y, _ = roc_curve(held.truth == labels[1], output)
        rows = np.unique(np.linspace(0, len(x) - 1, min(len(x), 120)).round().astype(np.int64))
        area = format_score(float(roc_auc_score(held.truth == labels[1], output)))
        style = "line" if what == "kept" else "thin"
        series.append(Series(name, x[rows], y[rows], colour=colour, style=style, tips=[f"{name} {area}"]))
    if not series:
        return None
    title = "ROC on held-out rows; areas: " + ", ".join(one.tips[0] for one in reversed(series))
    return Lines(title, "share of false positives", "true positives", series, unit_square=True, diagonal=True)


def residual_lines(actual: np.ndarray, predicted: np.ndarray) -> Lines:
    """Describe predicted against actual values of held-out rows; on the line the prediction is right."""
    rows = np.flatnonzero(np.isfinite(actual) & np.isfinite(predicted))
    if rows.size > _MOST_POINTS:
        rows = rows[np.linspace(0, rows.size - 1, _MOST_POINTS).astype(np.int64)]
    tips = [
        f"actual {format_number(a)}, predicted {format_number(p)}, residual {format_number(p - a, signed=True)}"
        for a, p in zip(actual[rows].tolist(), predicted[rows].tolist(), strict=True)
    ]
    series = Series("", actual[rows], predicted[rows], style="points", tips=tips)
    return Lines("predicted against actual values of held-out rows", "actual", "predicted", [series], diagonal=True)


def error_sizes(actual: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """Return the mean absolute error and the root of the mean squared error.

    Examples
    --------
    >>> error_sizes(np.array([0.0, 0.0]), np.array([3.0, -4.0]))
    (3.5, 3.5355339059327378)
    """
    difference = predicted - actual
    difference = difference[np.isfinite(difference)]
    if difference.size == 0:
        return math.nan, math.nan
    return float(np.abs(difference).mean()), float(np.sqrt((difference**2).mean()))


def _confusion(held: Any) -> dict[str, Any] | None:
    """Return the confusion matrix of held-out rows as a chart and as a table."""
    found = np.unique(np.concatenate([held.truth, held.predicted]))
    counts = np.zeros((found.size, found.size), dtype=int)
    np.add.at(counts, (np.searchsorted(found, held.truth), np.searchsorted(found, held.predicted)), 1)
    labels, totals = [str(label) for label in found], counts.sum(axis=1)
    shares = [[c / t if t else None for c in row] for row, t in zip(counts.tolist(), totals.tolist(), strict=True)]
    percent = "%" if len(labels) <= 8 else ""
    texts = [["–" if share is None else f"{100 * share:.0f}{percent}" for share in row] for row in shares]
    tips = [
        [f"{label} predicted as {other}: {counts[i, j]:,} of {totals[i]:,}" for j, other in enumerate(labels)]
        for i, label in enumerate(labels)
    ]
    chart = None
    if len(labels) <= _MOST_DRAWN:
        chart = square_chart(labels, labels, shares, texts, tips, "confusion matrix", ("actual", "predicted"))
    right = f"{int(np.trace(counts)):,} of {counted(int(counts.sum()), 'held-out row')}"
    return {
        "chart": chart,
        "labels": labels,
        "rows": list(zip(labels, counts.tolist(), strict=True)),
        "said": f"{right} were put in the right class.",
    }


def _choice(title: str, choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was tried on inner folds for one parameter, and what was taken."""
    rule = choice["rule"]
    taken = _RULES.get(rule) or f"the simplest within {format_number(float(rule))} of the best mean"
    reasons = choice.get("reasons") or {}
    rows = [
        {
            "candidate": format_number(candidate) if isinstance(candidate, float) else f"{candidate}",
            "mean": format_score(mean),
            "error": format_score(error),
            "taken": candidate == choice["chosen"],
            "reason": reasons.get(str(candidate), ""),
        }
        for candidate, mean, error in zip(choice["candidates"], choice["mean"], choice["standard_error"])
    ]
    note = f"Means over {len(choice['scores'][0])} inner folds of all rows; taken: {taken}."
    return {"title": title, "scoring": choice["scoring"], "note": note, "rows": rows}


def _run(selection: Any) -> dict[str, Any] | None:
    """Return how the method ran: its name, steps and charts; None where nothing was recorded."""
    pictures = [
        ("Features alive", history_lines(selection, "n_alive")),
        ("Training loss", history_lines(selection, "loss")),
    ]
    charts = [{"title": title, "chart": line_chart(lines, 400, 240)} for title, lines in pictures if lines is not None]
    gamma = gamma_lines(selection)
    if not (charts or gamma or selection.n_steps):
        return None
    rows = [("Method", f"{selection.variant}, {selection.engine} engine")]
    if selection.n_steps:
        rows.append(("Steps", f"{selection.n_steps:,}"))
    rows.append(("Time", format_seconds(selection.seconds)))
    if selection.closed_at:
        rows.append(("Mask closed", f"at step {selection.closed_at:,}"))
    cut = None
    if charts:
        steps = np.asarray(selection.history["step"])
        last = int(steps[shown_steps(selection) - 1])
        if last < int(steps[-1]):
            cut = f"the chart of features alive ends at step {last:,}, the run at {int(steps[-1]):,}."
    drawn = None if gamma is None else both_widths(lambda width: line_chart(gamma, width, 300))
    return {"rows": rows, "charts": charts, "gamma": drawn, "cut": cut}
