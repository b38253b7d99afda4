"""Pictures of a selection: how the run went, its kept columns, and `Selection.plot` with matplotlib."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz._utils.pictures import Bars, Grid, Lines, Series, draw
from tamiz.core.rule import Phase
from tamiz.report.columns import Columns, check_report_table, fold_grid, group_rows, kept_grids
from tamiz.report.text import format_number
from tamiz.rows.targets import decide_task
from tamiz.selection import Selection

#: Points of a line: enough for the eye at any width; paths of gamma, of kept and of other features; curves of effects.
N_POINTS, N_PATHS, N_CURVES = 180, 40, 12
KINDS = ("sieve", "loss", "path", "importance", "heatmap", "correlation", "stability", "effects")


def plot_selection(
    selection: Selection, kind: str = "sieve", X: Any = None, y: Any = None, *, evaluation: Any = None, ax: Any = None
) -> Any:
    """Draw a selection, or how it came about.

    Parameters
    ----------
    selection : Selection
        What was kept.
    kind : {"sieve", "loss", "path", "importance", "heatmap", "correlation", "stability", "effects"}, default="sieve"
        "sieve": features alive by step; "loss": training loss; "path": gamma of single features; "importance": contribution
        of each kept column to the outputs of the model; "heatmap": kept columns by rows, clustered; "correlation": of the
        kept columns; "stability": columns by folds; "effects": the curve of each kept column of an additive network, at most
        twelve, the best first.
    X, y : table and target, default=None
        What the selector was fitted on, for "heatmap" and "correlation".
    evaluation : Evaluation, default=None
        Folds of "stability".
    ax : matplotlib axes, or an array of them for "effects", default=None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib axes, or an array of them for "effects"
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> history = {"step": np.array([0, 10]), "n_alive": np.array([3, 1])}
    >>> selection = Selection(np.array([True, False, False]), np.array([1, 2, 3]), history=history)
    >>> plot_selection(selection).get_ylabel()
    'features alive'
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
    if kind == "effects":
        return _plot_effects(selection, ax)
    found: Lines | Bars | Grid | None = None
    columns = Columns(selection)
    if kind in ("sieve", "loss"):
        found = history_lines(selection, "n_alive" if kind == "sieve" else "loss")
        need = "a recorded history, which this selection does not hold"
    elif kind == "path":
        found, need = gamma_lines(selection), "recorded paths of gamma, which this selection does not hold"
    elif kind == "importance":
        need = "a contribution of each column: a fit of E2E-FS records it"
        if selection.contribution is not None:
            sizes = columns.of_features(selection.contribution)[columns.kept].tolist()
            names = [columns.names[int(i)] for i in columns.kept]
            found = Bars("", names, sizes, "contribution to the outputs, on the training rows")
    elif kind == "stability":
        need = "evaluation= with two folds or more, as tamiz.evaluate returns it"
        grid = None if evaluation is None else fold_grid(columns, [f.support for f in evaluation.folds])
        found = None if grid is None else grid[0]
    else:
        need = "X, the table the selector was fitted on, with two kept columns and three rows at least"
        if X is not None:
            table = check_report_table(X, selection)
            task = "classification" if y is None else decide_task(y)
            groups = [("all rows", np.ones(table.shape[0], dtype=bool))] if y is None else group_rows(y, task)
            grids = kept_grids(columns, table, y, task, groups)
            found = None if grids is None else grids[0] if kind == "heatmap" else grids[2]
    if found is None:
        raise ValueError(f"kind={kind!r} needs {need}.")
    return draw(found, ax)


def history_lines(selection: Selection, column: str) -> Lines | None:
    """Describe one column of the history against the training step: ``n_alive`` (with M) or ``loss``; None without it."""
    steps = np.asarray(selection.history.get("step", ()), dtype=np.float64)
    values = np.asarray(selection.history.get(column, ()), dtype=np.float64)
    if steps.size < 2 or values.shape != steps.shape or not np.isfinite(values).any():
        return None
    alive = column == "n_alive"
    rows, phases = _shown_steps(selection, whole=not alive)
    tips = [f"step {steps[i]:,.0f}: {format_number(float(values[i]))}{' alive' if alive else ''}" for i in rows]
    label = "features alive" if alive else "loss"
    n_kept = selection.n_features_to_select
    return Lines(
        f"{label} against the training step",
        "training step",
        label,
        [Series("", steps[rows], values[rows], colour=int(not alive), style="line", tips=tips)],
        log_y=alive and selection.n_features / max(n_kept, 1) >= 20,
        levels=[(f"M = {n_kept:,}", float(n_kept))] if alive and n_kept else (),
        phases=phases,
        top=None if alive else _robust_top(values),
    )


def gamma_lines(selection: Selection) -> Lines | None:
    """Describe gamma of some features against the training step: kept ones end at 1, the others at 0; None without it."""
    history = selection.history
    path, features = history.get("gamma_path"), history.get("gamma_path_features")
    steps = np.asarray(history.get("step", ()), dtype=np.float64)
    if path is None or features is None or steps.size < 2 or np.shape(path) != (steps.size, len(features)):
        return None
    path, features = np.asarray(path, dtype=np.float64), np.asarray(features, dtype=np.int64)
    rows, phases = _shown_steps(selection)
    order = np.argsort(selection.ranking[features], kind="stable")
    kept = selection.support[features[order]]
    columns, series = Columns(selection), []
    for places, style, name in ((order[~kept], "grey", "left out"), (order[kept], "thin", "kept")):
        for i in places[:N_PATHS][::-1]:
            column = int(features[i] if selection.groups is None else selection.groups[features[i]])
            tip = f"{columns.names[column]}: {name}, rank {columns.ranking[column]:,}"
            series.append(Series(name, steps[rows], path[rows, i], style=style, tips=[tip]))
    title = "gamma of single features against the training step"
    return Lines(title, "training step", "gamma", series, phases=phases)


def _shown_steps(selection: Selection, whole: bool = False) -> tuple[np.ndarray, list[tuple[str, float, float]]]:
    """Choose recorded steps to draw, and find the phases among them: by default a little more than the selection takes.

    Refinement often takes most of a run; drawn whole it would leave little room for the selection.
    """
    steps = np.asarray(selection.history["step"], dtype=np.float64)
    n_shown, closed_at = steps.size, selection.closed_at
    if 0 < closed_at < 0.7 * steps[-1] and not whole:
        n_shown = min(n_shown, max(2, int(np.searchsorted(steps, 1.3 * closed_at)) + 1))
    rows = np.unique(np.linspace(0, n_shown - 1, min(n_shown, N_POINTS)).round().astype(np.int64))
    recorded = np.asarray(selection.history.get("phase", ()), dtype=np.int64)[:n_shown]
    if recorded.size != n_shown:
        return rows, []
    borders = [0, *(np.flatnonzero(np.diff(recorded)) + 1).tolist(), n_shown - 1]
    return rows, [
        (Phase(int(recorded[first])).label, float(steps[first]), float(steps[last]))
        for first, last in itertools.pairwise(borders)
        if 0 <= recorded[first] < len(Phase)
    ]


def _robust_top(values: np.ndarray) -> float:
    """Return where an axis may end so that a few spikes do not flatten all else: the maximum, unless it is far away.

    Examples
    --------
    >>> _robust_top(np.array([1.0, 2.0, 3.0])), _robust_top(np.r_[np.ones(99), 500.0])
    (3.0, 1.375)
    """
    finite = values[np.isfinite(values)]
    usual, low, high = float(np.quantile(finite, 0.97)), float(finite.min()), float(finite.max())
    reach = max(usual - low, 0.25 * abs(usual))
    return high if high <= low + 3 * reach else low + 1.5 * reach


def _plot_effects(selection: Selection, axes: Any) -> Any:
    """Draw one small picture for each of the best kept columns, all of the same height."""
    effects = selection.effects
    if effects is None:
        raise ValueError("kind='effects' needs curves: fit with network='additive'.")
    pyplot = require("matplotlib.pyplot", "plot", "Drawing")
    n_curves = min(N_CURVES, len(effects["feature"]))
    if axes is None:
        shape = (-(-n_curves // 4), min(4, n_curves))
        size = (2.4 * shape[1] + 0.6, 2.1 * shape[0] + 0.4)
        axes = pyplot.subplots(*shape, figsize=size, layout="constrained", sharey=True, squeeze=False)[1]
    axes = np.atleast_1d(axes)
    if axes.size < n_curves:
        raise ValueError(f"There are {n_curves} curves to draw, and {axes.size} axes.")
    for ax in axes.flat[n_curves:]:
        ax.set_visible(False)
    for place, ax in enumerate(axes.flat[:n_curves]):
        grid, curves = effects["grid"][place], np.asarray(effects["curve"][place])
        outputs = [f"output {i}" for i in range(len(curves))] if len(curves) > 1 else [""]
        series = [Series(outputs[i], grid, curve, colour=i, style="line") for i, curve in enumerate(curves)]
        name = selection.name_of(int(effects["feature"][place]))
        draw(Lines("", name, "added to the score" if place == 0 else "", series, levels=[("", 0.0)]), ax)
    return axes
