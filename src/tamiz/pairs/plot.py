"""Draw two columns and what they say about the target."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamiz._extras import require
from tamiz.pairs.cells import CellAxis, describe_cells
from tamiz.pairs.columns import ColumnTable
from tamiz.pairs.target import PairTarget


def _layout(axis: CellAxis, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return where the dots lie (jittered where values are few) and the edges of the cells."""
    if axis.by_rank:
        starts = [axis.positions[axis.codes == cell].min() for cell in range(1, axis.n_cells)]
        return axis.positions, np.array([0.0, *starts, 1.0])
    return axis.positions + random.uniform(-0.3, 0.3, len(axis.positions)), np.arange(axis.n_cells + 1) - 0.5


def draw_pair(table: ColumnTable, target: PairTarget, first: int, second: int, *, ax: Any = None) -> Any:
    """Draw the mean of the target in cells of two columns, and the rows as dots.

    Parameters
    ----------
    table : ColumnTable
        The columns.
    target : PairTarget
        The target; for more than two classes the commonest class of each cell is drawn.
    first, second : int
        Which columns.
    ax : matplotlib axes or None, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes
    """
    pyplot = require("matplotlib.pyplot", "plot", "Drawing a pair")
    if ax is None:
        ax = pyplot.figure(figsize=(5, 4), layout="constrained").add_subplot()
    random = np.random.default_rng(0)
    cells = describe_cells(table, target, first, second)
    (x, x_edges), (y, y_edges) = _layout(cells.first, random), _layout(cells.second, random)
    n_classes = len(cells.classes)
    colours = "RdBu_r" if n_classes == 2 else "viridis"
    limits = {"vmin": 0, "vmax": max(1, n_classes - 1)} if n_classes else {}
    mesh = ax.pcolormesh(x_edges, y_edges, cells.means, cmap=colours, alpha=0.6, **limits)
    shown = random.permutation(len(x))[:1000]
    ax.scatter(
        x[shown], y[shown], c=target.values[shown], cmap=colours, s=8, edgecolors="0.3", linewidths=0.3, **limits
    )
    bar = ax.figure.colorbar(mesh, ax=ax, label=cells.label)
    if n_classes > 2:
        bar.set_ticks(range(n_classes), labels=list(cells.classes))
    ax.set_xlabel(cells.first.name + (" (rank)" if cells.first.by_rank else ""))
    ax.set_ylabel(cells.second.name + (" (rank)" if cells.second.by_rank else ""))
    return ax
