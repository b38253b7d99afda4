"""Draw a run with matplotlib, which is loaded only when it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamiz._extras import require
from tamiz.report.lines import PHASE_NAMES, gamma_paths, has_gamma, has_history, shown_steps
from tamiz.selection import Selection

_KEPT, _DROPPED, _LOSS = "#0b6e70", "#8a8f96", "#b5511d"


def plot_selection(selection: Selection, kind: str = "sieve", ax: Any = None) -> Any:
    """Draw how a selection came about.

    Parameters
    ----------
    selection : Selection
        With a history, as the engines record it.
    kind : {"sieve", "gamma"}, default="sieve"
        "sieve": features alive, and the loss on a second axis; "gamma": paths of gamma of single features.
    ax : matplotlib axes, default=None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib axes
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
    if kind not in ("sieve", "gamma"):
        raise ValueError(f"kind must be 'sieve' or 'gamma', got {kind!r}.")
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
        if 0 <= phases[first] < len(PHASE_NAMES) and steps[last] - steps[first] > 0.08 * np.ptp(steps):
            middle = (steps[first] + steps[last]) / 2
            place = ax.get_xaxis_transform()
            ax.text(
                middle, 1.01, PHASE_NAMES[int(phases[first])], transform=place, ha="center", va="bottom", fontsize=8
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
