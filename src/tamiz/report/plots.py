"""Draw a run with matplotlib, which is loaded only when it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamiz._extras import require
from tamiz.core.state import Phase
from tamiz.report.lines import gamma_paths, has_gamma, has_history, shown_steps
from tamiz.selection import Selection

_KEPT, _DROPPED, _LOSS = "#0b6e70", "#8a8f96", "#b5511d"
#: Curves that are drawn at most.
_MOST_CURVES = 12


def plot_selection(selection: Selection, kind: str = "sieve", ax: Any = None) -> Any:
    """Draw how a selection came about.

    Parameters
    ----------
    selection : Selection
        With a history, as the engines record it.
    kind : {"sieve", "gamma", "effects"}, default="sieve"
        "sieve": features alive, and the loss on a second axis; "gamma": paths of gamma of single features; "effects": the
        curve of each kept column of an additive network, at most twelve, the best first.
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
    if kind not in ("sieve", "gamma", "effects"):
        raise ValueError(f"kind must be 'sieve', 'gamma' or 'effects', got {kind!r}.")
    if kind == "effects":
        return _plot_effects(selection, ax)
    if kind == "sieve" and not has_history(selection, "n_alive"):
        raise ValueError("This selection holds no history of features alive, so there is no sieve to draw.")
    if kind == "gamma" and not has_gamma(selection):
        raise ValueError("This selection holds no paths of gamma; try kind='sieve'.")
    require("matplotlib", "plot", "Drawing")
    from matplotlib import pyplot

    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 4), layout="constrained")
    # The loss of the sieve is worth seeing to the end; gamma stands still once the mask is closed.
    n_shown = shown_steps(selection, "loss" if kind == "sieve" else "gamma_path")
    _shade_phases(ax, selection, n_shown)
    _draw_sieve(ax, selection) if kind == "sieve" else _draw_gamma(ax, selection, n_shown)
    ax.set_xlabel("training step")
    return ax


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


def _draw_sieve(ax: Any, selection: Selection) -> None:
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


def _draw_gamma(ax: Any, selection: Selection, n_shown: int) -> None:
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
