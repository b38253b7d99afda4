"""Draw two columns and what they say about the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from tamiz._extras import require
from tamiz.pairs.columns import ColumnTable
from tamiz.pairs.target import PairTarget

_CELLS = 8


def _axis(
    table: ColumnTable, column: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Return positions for dots (jittered if there are ties), cell of each row, edges of the cells, whether these are ranks."""
    values = table.column(column)[:, 0]
    levels, codes = np.unique(values, return_inverse=True)
    if len(levels) <= _CELLS:
        jitter = random.uniform(-0.3, 0.3, len(values))
        return codes + jitter, codes, np.arange(len(levels) + 1) - 0.5, False
    ranks = (stats.rankdata(values) - 0.5) / len(values)
    return ranks, np.minimum((ranks * _CELLS).astype(int), _CELLS - 1), np.linspace(0, 1, _CELLS + 1), True


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
    x, column, x_edges, x_ranks = _axis(table, first, random)
    y, row, y_edges, y_ranks = _axis(table, second, random)
    n_classes = 0 if target.classes is None else len(target.classes)
    shape = (len(y_edges) - 1, len(x_edges) - 1)
    cell = row * shape[1] + column
    size = np.bincount(cell, weights=target.weights, minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore"):
        if n_classes > 2:
            counts = [
                np.bincount(cell, weights=target.weights * (target.values == c), minlength=len(size))
                for c in range(n_classes)
            ]
            mean = np.where(size > 0, np.argmax(counts, axis=0), np.nan)
            label = "commonest class"
        else:
            mean = np.bincount(cell, weights=target.weights * target.values, minlength=len(size)) / size
            label = "mean of y" if target.classes is None else f"share of {target.classes[1]}"
    colours = "viridis" if target.classes is None or n_classes > 2 else "RdBu_r"
    limits = {} if target.classes is None else {"vmin": 0, "vmax": max(1, n_classes - 1)}
    mesh = ax.pcolormesh(x_edges, y_edges, mean.reshape(shape), cmap=colours, alpha=0.6, **limits)
    shown = random.permutation(len(x))[:1000]
    ax.scatter(
        x[shown], y[shown], c=target.values[shown], cmap=colours, s=8, edgecolors="0.3", linewidths=0.3, **limits
    )
    bar = ax.figure.colorbar(mesh, ax=ax, label=label)
    if n_classes > 2 and target.classes is not None:
        bar.set_ticks(range(n_classes), labels=[str(name) for name in target.classes])
    ax.set_xlabel(table.names[first] + (" (rank)" if x_ranks else ""))
    ax.set_ylabel(table.names[second] + (" (rank)" if y_ranks else ""))
    return ax
