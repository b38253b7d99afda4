"""Content of the page of one selection: alerts, answers, kept columns, pictures, scores and the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tamiz._utils.pictures import Grid, Lines, Series
from tamiz._utils.text import counted
from tamiz.report import charts
from tamiz.report import columns as descriptions
from tamiz.report.columns import N_PICTURED, NEAR_COPY, Columns, Groups, find_clusters, fold_grid
from tamiz.report.plots import gamma_lines, history_lines
from tamiz.report.svg import grid_payload
from tamiz.report.text import describe_score, format_column, format_number, format_score, shorten
from tamiz.report.views import About

#: Rows written into the page; the script makes the others from the data block when somebody looks for them.
N_ROWS, N_RUNNERS_UP = 200, 20
#: Characters of names the data block may hold: with all else this keeps 20,000 columns under 1.5 MB.
NAME_BUDGET = 600_000
#: A confusion matrix of more classes is a table; of more targets the first are drawn.
_MOST_DRAWN, _MOST_TARGETS, _MOST_POINTS = 24, 12, 500
_SETS = {"kept": ("kept", 0), "all_features": ("all", 1), "random_features": ("random", 7)}
_RULES = {
    "one_se": "the simplest within one standard error of the best mean",
    "unbeaten": "the simplest within one standard error of the best mean, or not clearly beaten by the best",
    "best": "the best mean",
    "guarded": "the simplest that no other clearly beats row by row",
}
#: Effects of the kept columns, best first: name, one for each column, those of its levels, whether they have a direction.
Effects = tuple[str, list[float | None], list[list[float | None]], bool]


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
    q_values : ndarray of float, default=None
        Smallest false discovery rate at which each column would be kept.
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
    q_values: np.ndarray | None = None

    @property
    def shares(self) -> np.ndarray | None:
        """Share of the folds that kept each column; None if the folds did not count the same columns."""
        found = None if self.evaluation is None else np.asarray(self.evaluation.fold_share)
        return found if found is not None and len(found) == len(self.columns) else None

    def clusters(self, task: str) -> list[list[tuple[int, float]]]:
        """Cluster kept columns with all that carry the same information, see :func:`tamiz.report.columns.find_clusters`."""
        return [] if self.X is None or self.y is None else find_clusters(self.columns, self.X, self.y, task)

    @cached_property
    def effects(self) -> Effects:
        """Effects on held-out rows, else weights or contributions in the model, which are of the training rows."""
        evaluation, selection = self.evaluation, self.columns.selection
        if evaluation is not None and evaluation.effects:
            few = evaluation.task == "regression" or np.unique(evaluation.y).size == 2
            return self._by_column(evaluation.effect_name, evaluation.effects, few)
        weights = np.atleast_2d(np.asarray(getattr(self.model, "coef_", np.zeros((0, 0))), dtype=np.float64))
        if weights.ndim == 2 and weights.shape[1] == selection.n_features:
            weights = weights[:, selection.indices]
        if weights.size and weights.shape[1:] == (selection.n_features_to_select,):
            name = "weight of the standardised column in the model, from the training rows: expect less on new rows"
            weights = weights[1:] - weights[:1] if len(weights) == 2 else weights
            sizes = weights[0] if len(weights) == 1 else np.linalg.norm(weights, axis=0)
            return self._by_column(name, dict(zip(selection.indices.tolist(), sizes.tolist())), len(weights) == 1)
        known = {} if selection.contribution is None else dict(enumerate(selection.contribution.tolist()))
        return self._by_column("contribution to the outputs of the model, on the training rows", known, False)

    def _by_column(self, name: str, found: Mapping[int, float], signed: bool) -> Effects:
        """Collect the effects of columns from those of encoded features; of a column with levels the largest counts."""
        values: list[float | None] = []
        levels: list[list[float | None]] = []
        for column in self.columns.kept:
            mine = [found.get(int(feature)) for feature in self.columns.members[int(column)]]
            largest = max((v for v in mine if v is not None and math.isfinite(v)), key=abs, default=None)
            values.append(largest if len(mine) == 1 or largest is None else abs(largest))
            levels.append(mine if len(mine) > 1 else [])
        return name, values, levels, signed


def select_view(shown: Shown, about: About) -> dict[str, Any]:
    """Collect what the template ``select.html.j2`` uses."""
    columns, selection, evaluation = shown.columns, shown.columns.selection, shown.evaluation
    X, y, task, names = shown.X, shown.y, about.task, shown.columns.names
    groups = [] if X is None or y is None else descriptions.group_rows(y, task, about.target)
    classes = [label for label, _ in groups] if task == "classification" else []
    image, grids, distributions, clusters = descriptions.image_planes(selection, X), None, [], shown.clusters(task)
    if X is not None and y is not None and columns.n_kept:
        grids = descriptions.kept_grids(columns, X, y, task, groups)
        for rank, column in enumerate(columns.kept[: N_PICTURED if image is None else 0].tolist(), start=1):
            values, levels = columns.read(X, column)
            found = descriptions.describe_distribution(values, groups, levels)
            if found is not None:
                distributions.append((rank, names[column], found, charts.distribution_chart(found, names[column])))
    folds = None if shown.shares is None else fold_grid(columns, [fold.support for fold in evaluation.folds])
    block, heat = _payload(shown, classes, clusters), None
    if grids is not None:
        heat = _heat(shown, grids[0], grids[1], groups, block)
        block["grids"]["correlations"] = grid_payload(grids[2], grids[2].rows, "with")
    history = history_lines(selection, "n_alive"), history_lines(selection, "loss")
    gamma, curve = gamma_lines(selection), [] if evaluation is None else evaluation.curve()
    following = columns.order[columns.n_kept : columns.n_kept + N_RUNNERS_UP].tolist()
    return {
        "headline": f"{columns.n_kept:,} of {counted(len(columns), 'column')} kept",
        "shown": shown,
        "columns": columns,
        "selection": selection,
        "evaluation": evaluation,
        "verdict": shown.verdict,
        **_kept(shown, about, classes),
        "n_names": len(block["names"]),
        "runners_up": [(int(columns.ranking[i]), names[i], columns.numbers[i]) for i in following],
        "image": None if image is None else charts.image_chart(*image),
        "heat": heat,
        "correlations": None if grids is None else charts.raster_chart(grids[2], 400, key="correlations", square=True),
        "clusters": [[(names[c], bool(columns.support[c]), f"{r:+.2f}") for c, r in cluster] for cluster in clusters],
        "near_copy": NEAR_COPY,
        "folds": folds,
        "fold_sizes": [] if evaluation is None else [int(fold.support.sum()) for fold in evaluation.folds],
        "fold_charts": None if folds is None else charts.both_widths(charts.fold_chart, *folds),
        "predictions": None if evaluation is None else _predictions(shown, about, classes),
        "curve_chart": charts.both_widths(charts.line_chart, score_curve(shown), height=320) if curve else None,
        "curve_rows": [(f"M = {m:,}", describe_score(score)) for m, score in curve],
        "sizes": sorted({columns.n_kept, *(entry[0] for entry in shown.kept_sets)}) if shown.kept_sets else [],
        "distributions": distributions,
        "groups": charts.legend([label for label, _ in groups]) if 1 < len(groups) <= charts.N_OVERLAID else [],
        "n_groups": charts.N_GROUPS,
        "rules": _RULES,
        "run": [(lines.y_label, charts.line_chart(lines, 400, 240)) for lines in history if lines is not None],
        "gamma": None if gamma is None else charts.both_widths(charts.line_chart, gamma, height=300),
        "payload": block,
    }


def _kept(shown: Shown, about: About, classes: Sequence[str]) -> dict[str, Any]:
    """List the kept columns with their effects and shares, and say which cells the list has."""
    columns, shares = shown.columns, shown.shares
    name, values, levels_of, signed = shown.effects
    known = [0.0, *(v for v in values if v is not None and math.isfinite(v))]
    span, n_written = (min(known), max(known)), min(N_ROWS, columns.n_kept)
    written, rows = format_column(values[:n_written], signed=signed), []
    for place, column in enumerate(columns.kept[:n_written].tolist()):
        share, value = None if shares is None else float(shares[column]), values[place]
        level_names, levels, direction = columns.levels_of(column), [], ""
        if len(level_names) > 1:
            sizes = levels_of[place] or [None] * len(level_names)
            levels = list(zip(level_names, format_column(sizes, signed=signed), strict=True))
        elif signed and value:
            toward = f"{'more' if value > 0 else 'less'} {about.target or 'of the target'}"
            direction = f"higher → {classes[int(value > 0)] if len(classes) == 2 else toward}"
        plain, faint = signed and not levels, share is not None and share < 0.5
        row = {
            "name": columns.names[column],
            "number": columns.numbers[column],
            "levels": levels,
            "value": value,
            "effect": written[place] if plain else written[place].removeprefix("+"),
            "bar": charts.effect_bar(value, span, faint, -1 if plain else 0),
            "direction": direction,
            "share": share,
            "q_value": None if shown.q_values is None else f"{shown.q_values[column]:.3g}",
        }
        rows.append(row)
    parts = ("value", "share", "q_value", "levels", "direction")
    shows = {part: any(row[part] not in (None, "", []) for row in rows) for part in parts}
    return {"rows": rows, "effect_name": name, "shows": shows}


def _payload(shown: Shown, classes: Sequence[str], clusters: Sequence[Sequence[tuple[int, float]]]) -> dict[str, Any]:
    """Collect the data block for the script: all kept columns, and of the others as many by rank as the budget allows."""
    columns, shares = shown.columns, shown.shares
    _, effects, _, signed = shown.effects
    sizes = np.cumsum([len(columns.names[i].encode("utf-8", "replace")) + 3 for i in columns.order.tolist()])
    held = columns.order[: int(np.searchsorted(sizes, NAME_BUDGET, side="right"))].tolist()
    n_kept = min(columns.n_kept, len(held))
    place = {column: i for i, column in enumerate(held)}
    alike: dict[int, list[str]] = {}
    for cluster in clusters:
        for column, _ in cluster[:12]:
            alike[column] = [shorten(columns.names[other], 60) for other, _ in cluster[:12] if other != column]
    return {
        "kind": "select",
        "names": [columns.names[i] for i in held],
        "columns": [columns.numbers[i] for i in held],
        "nKept": columns.n_kept,
        "nFeatures": len(columns),
        "effects": [_rounded(effect) for effect in effects[:n_kept]],
        "shares": [_rounded(float(shares[c])) for c in held[:n_kept]] if shares is not None else [],
        "qValues": [] if shown.q_values is None else [_rounded(float(shown.q_values[c])) for c in held[:n_kept]],
        "clusters": [alike.get(c, []) for c in held[:n_kept]] if alike else [],
        "classes": list(classes) if len(classes) == 2 else [],
        "signed": signed,
        "sets": {
            str(m): [[place[int(c)], _rounded(e)] for c, e in zip(set_, sizes, strict=True) if int(c) in place]
            for m, set_, sizes in shown.kept_sets
        },
        "grids": {},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _heat(shown: Shown, heat: Grid, rows: np.ndarray, groups: Groups, block: dict[str, Any]) -> dict[str, Any]:
    """Describe the heat map with its legend; rows that were predicted wrongly while held out are marked."""
    labels = [label for label, _ in groups]
    codes = np.argmax([members[rows] for _, members in groups], axis=0)
    held, wrong = None if shown.evaluation is None else shown.evaluation.held_out, None
    if held is not None and held.truth.ndim == 1 and held.truth.dtype.kind != "f":
        numbers = rows if shown.rows is None else shown.rows[rows]
        wrong = np.isin(numbers, held.rows[held.truth != held.predicted])
    marks = [""] * rows.size if wrong is None else np.where(wrong, ", predicted wrongly", "").tolist()
    said = [f"row {row + 1:,}, {labels[code]}{mark}" for row, code, mark in zip(rows.tolist(), codes, marks)]
    block["grids"]["heat"] = grid_payload(heat, said)
    sampled = f"A sample of {rows.size:,} of {shown.X.shape[0]:,} rows." if rows.size < shown.X.shape[0] else ""
    return {
        "chart": charts.heat_charts(heat, codes, wrong),
        "legend": charts.legend(labels)[:18],
        "wrong": None if wrong is None else int(wrong.sum()),
        "said": sampled,
        "placed": any(shown.columns.levels_of(int(c)) for c in shown.columns.kept),
        "n_columns": len(heat.rows),
    }


def score_curve(shown: Shown) -> Lines:
    """Describe the score against M with its interval, the chosen M, and the levels to compare with."""
    evaluation = shown.evaluation
    points = evaluation.curve()
    sizes = np.array([m for m, _ in points], dtype=np.float64)
    y, low, high = (np.array([getattr(score, end) for _, score in points]) for end in ("value", "low", "high"))
    tips = [f"M = {m:,}: {describe_score(score)}" for m, score in points]
    chosen = shown.columns.n_kept
    # With every column kept, all of them and random ones are the point itself: their labels would cover each other.
    others = () if chosen == len(shown.columns) else [what for what in _SETS if what != "kept"]
    levels = [(_SETS[what][0], evaluation.interval(what).value) for what in others]
    levels.append(("chance", math.nan if evaluation.chance is None else evaluation.chance))
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


def _predictions(shown: Shown, about: About, classes: Sequence[str]) -> dict[str, Any]:
    """Collect scores, and the charts of held-out predictions: ROC and confusion, or predicted against actual."""
    from sklearn.metrics import mean_absolute_error, root_mean_squared_error

    evaluation, n_kept = shown.evaluation, shown.columns.n_kept
    labels = (f"{n_kept:,} kept", f"all {len(shown.columns):,}", f"{n_kept:,} at random")
    scores = zip(labels, map(evaluation.interval, _SETS), strict=True)
    listed = [(label, describe_score(score)) for label, score in scores if score.is_known]
    for what in ("all_features", "random_features"):
        gap = evaluation.difference(what)
        if math.isfinite(gap.value):
            listed.append((f"kept minus {_SETS[what][0]}", describe_score(gap, signed=True)))
    if evaluation.test_score is not None:
        listed.append(("rows of the test file", describe_score(evaluation.test_score)))
    held, pictures, curves = evaluation.held_out, list[tuple[str, str, str]](), list[Series]()
    roc = roc_lines(held) if len(classes) == 2 else None
    if roc is not None:
        curves = list(reversed(roc.series))
        pictures.append(("ROC", charts.line_chart(roc), "Areas: " + ", ".join(s.tips[0] for s in curves) + "."))
    elif about.task == "regression":
        truth, predicted = np.atleast_2d(held.truth.T).astype(float), np.atleast_2d(held.predicted.T).astype(float)
        targets = [about.target] if len(truth) == 1 else list(about.targets)
        targets = targets if len(targets) == len(truth) else [f"target {i + 1}" for i in range(len(truth))]
        for target, actual, guess in zip(targets, truth, predicted, strict=True):
            known = np.isfinite(actual) & np.isfinite(guess)
            actual, guess, of = actual[known], guess[known], f" ({target})" if target else ""
            if known.any():
                absolute, squared = mean_absolute_error(actual, guess), root_mean_squared_error(actual, guess)
                listed.append(("mean absolute error", f"{format_number(float(absolute))}{of}"))
                listed.append(("root mean squared error", f"{format_number(float(squared))}{of}"))
            if len(pictures) < _MOST_TARGETS:
                title = "Predicted against actual" + (f", {target}" if len(truth) > 1 else "")
                pictures.append((title, charts.line_chart(residual_lines(actual, guess)), ""))
    confusion, counts = confusion_grid(held) if about.task == "classification" else (None, [])
    entries = charts.legend([one.name for one in curves], [one.colour for one in curves])
    return {
        "rows": listed,
        "charts": pictures,
        "legend": [entry | {"key": entry["name"]} for entry in entries],
        "confusion": confusion,
        "confusion_chart": charts.square_chart(confusion) if confusion and len(confusion.rows) <= _MOST_DRAWN else None,
        "counts": counts,
        "n_right": sum(row[i] for i, row in enumerate(counts)),
    }


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


def confusion_grid(held: Any) -> tuple[Grid, list[list[int]]]:
    """Describe the confusion matrix of held-out rows, in shares of the actual classes and in numbers."""
    from sklearn.metrics import confusion_matrix

    counts = confusion_matrix(held.truth, held.predicted)
    labels = [str(label) for label in np.unique(np.concatenate([held.truth, held.predicted]))]
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, counts / np.maximum(totals, 1), np.nan)
    percent = "%" if len(labels) <= 8 else ""
    texts = [["–" if np.isnan(share) else f"{100 * share:.0f}{percent}" for share in row] for row in shares]
    tips = [
        [f"{label} predicted as {other}: {counts[i, j]:,} of {totals[i, 0]:,}" for j, other in enumerate(labels)]
        for i, label in enumerate(labels)
    ]
    axes = ("", "predicted", "actual")
    return Grid("confusion matrix", labels, labels, shares, 0.0, 1.0, *axes, texts, tips), counts.tolist()
