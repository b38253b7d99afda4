"""Draw a selection with matplotlib, which is loaded only when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz.core.rule import Phase
from tamiz.evaluation.results import Evaluation
from tamiz.report.describe import check_report_table, find_task, group_rows
from tamiz.report.evidence import Correlations, HeatMap
from tamiz.report.lines import gamma_paths, has_gamma, has_history, shown_steps
from tamiz.report.together import make_correlations, make_fold_grid, make_heat_map
from tamiz.report.write import select_report
from tamiz.selection import Selection

_KEPT, _DROPPED, _LOSS = "#0b6e70", "#8a8f96", "#b5511d"
#: Curves that are drawn at most.
_MOST_CURVES = 12


def plot_selection(
    selection: Selection,
    kind: str = "sieve",
    X: Any = None,
    y: Any = None,
    *,
    estimator: Any = None,
    evaluation: Evaluation | None = None,
    ax: Any = None,
) -> Any:
    """Draw a selection, or how it came about.

    Parameters
    ----------
    selection : Selection
        What was kept.
    kind : {"sieve", "path", "importance", "heatmap", "correlation", "stability", "effects"}, default="sieve"
        "sieve": features alive, and the loss on a second axis; "path": gamma of single features by step; "importance": a bar
        per kept column; "heatmap": kept columns by rows, clustered; "correlation": of the kept columns; "stability": columns
        by folds; "effects": the curve of each kept column of an additive network, at most twelve, the best first.
    X, y : table and target, default=None
        What the selector was fitted on, for "importance" (unless the estimator is linear), "heatmap" and "correlation".
    estimator : fitted estimator, default=None
        Gives the effects of "importance" where it is linear.
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
    if kind not in (*PLOTS, "effects"):
        raise ValueError(f"kind must be one of {', '.join(map(repr, (*PLOTS, 'effects')))}, got {kind!r}.")
    if kind == "effects":
        return _plot_effects(selection, ax)
    if kind == "sieve" and not has_history(selection, "n_alive"):
        raise ValueError("This selection holds no history of features alive, so there is no sieve to draw.")
    if kind == "path" and not has_gamma(selection):
        raise ValueError("This selection holds no paths of gamma; try kind='sieve'.")
    require("matplotlib", "plot", "Drawing")
    from matplotlib import pyplot

    draw = PLOTS[kind](selection, X, y, estimator, evaluation)
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 4), layout="constrained")
    draw(ax)
    return ax


def _steps(draw: Callable[[Any, Selection, int], None], column: str, selection: Selection) -> Callable[[Any], None]:
    """Return what draws against the training step, with the phases behind it."""
    n_shown = shown_steps(selection, column)

    def on(ax: Any) -> None:
        _shade_phases(ax, selection, n_shown)
        draw(ax, selection, n_shown)
        ax.set_xlabel("training step")

    return on


def _importance(selection: Selection, X: Any, y: Any, estimator: Any, evaluation: Any) -> Callable[[Any], None]:
    if estimator is None and (X is None or y is None):
        raise ValueError("kind='importance' needs estimator= (a fitted linear model), or X and y.")
    data = select_report(selection if estimator is None else estimator, X, y)
    if all(kept.effect is None for kept in data.kept):
        raise ValueError("This model has no weights to draw; give X and y, and leave out the estimator.")

    def draw(ax: Any) -> None:
        effects = [0.0 if kept.effect is None else kept.effect for kept in data.kept]
        colours = [_LOSS if effect > 0 else _KEPT for effect in effects]
        ax.barh(range(len(effects)), effects, color=colours)
        ax.set_yticks(range(len(effects)), [kept.name for kept in data.kept])
        ax.invert_yaxis()
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel(data.effect_name)

    return draw


def _image(ax: Any, values: np.ndarray, largest: float, names: Sequence[str], label: str) -> None:
    drawn = ax.imshow(values, aspect="auto", cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest")
    ax.set_yticks(range(len(names)), names)
    ax.figure.colorbar(drawn, ax=ax, label=label)


def _heatmap(selection: Selection, X: Any, y: Any, estimator: Any, evaluation: Any) -> Callable[[Any], None]:
    heat = _of_table("heatmap", selection, X, y)[0]

    def draw(ax: Any) -> None:
        _image(ax, heat.z, 3.0, heat.names, "z")
        ax.set_xlabel("rows, clustered")
        ax.set_xticks([])

    return draw


def _correlation(selection: Selection, X: Any, y: Any, estimator: Any, evaluation: Any) -> Callable[[Any], None]:
    found = _of_table("correlation", selection, X, y)[1]

    def draw(ax: Any) -> None:
        _image(ax, found.values, 1.0, found.names, "r")
        ax.set_xticks(range(len(found.names)), found.names, rotation=90)

    return draw


def _of_table(kind: str, selection: Selection, X: Any, y: Any) -> tuple[HeatMap, Correlations]:
    """Return the heat map and the correlations of the kept columns."""
    if X is None:
        raise ValueError(f"kind={kind!r} needs X, the table the selector was fitted on.")
    table = check_report_table(X, selection)
    order = selection.ordered.tolist()
    names = [selection.name_of(i) for i in order]
    groups = [("all rows", np.ones(table.shape[0], dtype=bool))] if y is None else group_rows(y, find_task(y))
    heat = make_heat_map(table, order, names, groups)
    if heat is None:
        raise ValueError(f"kind={kind!r} needs two kept columns and three rows at least.")
    found = make_correlations(table, order, names, heat.names)
    assert found is not None
    return heat, found


def _stability(selection: Selection, X: Any, y: Any, estimator: Any, evaluation: Any) -> Callable[[Any], None]:
    if evaluation is None:
        raise ValueError("kind='stability' needs evaluation=, as tamiz.evaluation.cross_validation returns it.")
    grid = make_fold_grid(selection, selection.ordered.tolist(), [fold.support for fold in evaluation.folds])
    if grid is None:
        raise ValueError("kind='stability' needs two folds at least.")

    def draw(ax: Any) -> None:
        ax.imshow(grid.chosen, aspect="auto", cmap="Greens", vmin=0, vmax=1.4, interpolation="nearest")
        ax.set_yticks(
            range(len(grid.names)), [n + ("" if k else " *") for n, k in zip(grid.names, grid.kept, strict=True)]
        )
        ax.set_xticks(range(grid.chosen.shape[1]), [str(i + 1) for i in range(grid.chosen.shape[1])])
        ax.set_xlabel("fold" + ("" if all(grid.kept) else " (*: not in the final fit)"))

    return draw


def _plot_effects(selection: Selection, axes: Any) -> Any:
    """Draw one small picture for each of the best kept columns, all of the same height."""
    if selection.effects is None:
        raise ValueError("This selection holds no curves; fit with network='additive'.")
    require("matplotlib", "plot", "Drawing")
    from matplotlib import pyplot

    effects = selection.effects
    n_curves = min(_MOST_CURVES, len(effects["feature"]))
    if axes is None:
        n_wide = min(4, n_curves)
        shape = (-(-n_curves // n_wide), n_wide)
        size = (2.4 * shape[1] + 0.6, 2.1 * shape[0] + 0.4)
        _, axes = pyplot.subplots(*shape, figsize=size, layout="constrained", sharey=True, squeeze=False)
    axes = np.atleast_1d(axes)
    if axes.size < n_curves:
        raise ValueError(f"There are {n_curves} curves to draw, and {axes.size} axes.")
    for place, ax in enumerate(axes.flat):
        if place >= n_curves:
            ax.set_visible(False)
            continue
        curves = np.asarray(effects["curve"][place])
        for number, curve in enumerate(curves):
            color = _KEPT if len(curves) == 1 else None
            ax.plot(effects["grid"][place], curve, color=color, linewidth=1.6, label=f"output {number}")
        ax.axhline(0.0, color="black", linewidth=0.6, alpha=0.5)
        ax.set_xlabel(selection.name_of(int(effects["feature"][place])), fontsize=8)
        ax.tick_params(labelsize=7)
    if len(effects["curve"][0]) > 1:
        axes.flat[0].legend(frameon=False, fontsize=7)
    axes.flat[0].set_ylabel("added to the score")
    return axes


def _shade_phases(ax: Any, selection: Selection, n_shown: int) -> None:
    """Shade every second phase, and write the names of the phases above."""
    steps, phases = np.asarray(selection.history["step"]), np.asarray(selection.history.get("phase", ()))
    if phases.shape != steps.shape:
        return
    steps, phases = steps[:n_shown], phases[:n_shown]
    borders = np.flatnonzero(np.diff(phases)) + 1
    for first, last in zip([0, *borders], [*borders, len(steps) - 1], strict=True):
        if phases[first] % 2:
            ax.axvspan(steps[first], steps[last], color="black", alpha=0.045, linewidth=0)
        if 0 <= phases[first] < len(Phase) and steps[last] - steps[first] > 0.08 * np.ptp(steps):
            middle = (steps[first] + steps[last]) / 2
            place = ax.get_xaxis_transform()
            ax.text(
                middle, 1.01, Phase(int(phases[first])).label, transform=place, ha="center", va="bottom", fontsize=8
            )


def _draw_sieve(ax: Any, selection: Selection, n_shown: int) -> None:
    history, n_kept = selection.history, selection.n_features_to_select
    ax.plot(history["step"], history["n_alive"], color=_KEPT, linewidth=2, label="features alive")
    ax.axhline(n_kept, color="black", linewidth=0.8, linestyle="--", label=f"M = {n_kept}")
    if selection.n_features / max(n_kept, 1) >= 20:
        ax.set_yscale("log")
    ax.set_ylabel("features alive")
    drawn, labels = ax.get_legend_handles_labels()
    if has_history(selection, "loss"):
        other = ax.twinx()
        other.plot(history["step"], history["loss"], color=_LOSS, linewidth=1, alpha=0.8, label="loss")
        other.set_ylabel("loss")
        more, names = other.get_legend_handles_labels()
        drawn, labels = drawn + more, labels + names
    ax.legend(drawn, labels, loc="upper right", frameon=False)


def _draw_path(ax: Any, selection: Selection, n_shown: int) -> None:
    named: set[bool] = set()
    for _, kept, path in gamma_paths(selection):
        label = None if kept in named else "kept" if kept else "left out"
        named.add(kept)
        color, width = (_KEPT, 1.4) if kept else (_DROPPED, 0.8)
        ax.plot(
            selection.history["step"][:n_shown], path[:n_shown], color=color, linewidth=width, alpha=0.8, label=label
        )
    ax.set_ylabel("gamma")
    ax.legend(loc="center right", frameon=False)


#: What draws each kind: selection, X, y, estimator and evaluation in, a function of the axes out.
PLOTS: dict[str, Callable[..., Callable[[Any], None]]] = {
    # The loss of the sieve is worth seeing to the end; gamma stands still once the mask is closed.
    "sieve": lambda selection, *_: _steps(_draw_sieve, "loss", selection),
    "path": lambda selection, *_: _steps(_draw_path, "gamma_path", selection),
    "importance": _importance,
    "heatmap": _heatmap,
    "correlation": _correlation,
    "stability": _stability,
}
