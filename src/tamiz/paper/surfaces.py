"""First figure of the paper: the penalties as surfaces over two features, for M = 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz.core import binary_penalty, penalty
from tamiz.paper.protocol import Cell, Protocol, ProtocolOption
from tamiz.paper.tables import ProtocolSummary, format_cell, markdown_table


def surface(n_points: int = 41, target: float = 1.0, mu: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute both penalties, L12 and L12 + LM, on a grid over [0, 1]; return the grid's axis too.

    Examples
    --------
    >>> axis, binary, both = surface(3)
    >>> binary.tolist()
    [[0.0, 0.25, 0.0], [0.25, 0.5, 0.25], [0.0, 0.25, 0.0]]
    >>> both.tolist()
    [[2.0, 1.25, 0.0], [1.25, 0.5, 1.25], [0.0, 1.25, 2.0]]
    """
    axis = np.linspace(0.0, 1.0, n_points)
    pairs = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.array([[float(binary_penalty(pair)), float(penalty(pair, target, mu))] for pair in pairs])
    binary, both = values.T.reshape(2, n_points, n_points)
    return axis, binary, both


class Surfaces(Protocol):
    """Evaluate the penalties on a grid, without any cells."""

    name = "surfaces"
    headline = "The first figure: the penalties as surfaces."
    description = "The paper's first figure: the penalties as surfaces over two features."
    options = (ProtocolOption("n_points", ("--points",), "Points of each axis.", "integer", 41, minimum=2),)

    def summarise(
        self, plan: Any, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Return the surfaces as records, and their corners as a table."""
        axis, binary, both = surface(plan.n_points)
        records = [
            {"gamma_1": float(a), "gamma_2": float(b), "L12": float(binary[i, j]), "L12+LM": float(both[i, j])}
            for i, a in enumerate(axis)
            for j, b in enumerate(axis)
        ]
        corners = [(0, 0), (0, -1), (-1, 0), (-1, -1)]
        lines = [
            [f"({axis[i]:.0f}, {axis[j]:.0f})", format_cell(binary[i, j]), format_cell(both[i, j])] for i, j in corners
        ]
        text = (
            "Two features, M = 1, mu = 1. L12 alone is zero in every corner, also where no feature or both are kept; with LM "
            "only the two corners with one feature are left.\n\n"
            + markdown_table(["corner (gamma 1, gamma 2)", "L12", "L12 + LM"], lines)
        )
        content = {"protocol": self.name, "axis": axis.tolist(), "L12": binary.tolist(), "L12+LM": both.tolist()}
        return ProtocolSummary("Figure 1: the penalties", text, records, content)

    def draw(self, summary: Any, cells: Sequence[Cell], results: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Draw both surfaces side by side."""
        figures = require("matplotlib.figure", "plot", "The figure")
        axis = np.asarray(summary.content["axis"])
        first, second = np.meshgrid(axis, axis, indexing="ij")
        figure = figures.Figure(figsize=(9, 4), layout="constrained")
        for place, (name, title) in enumerate((("L12", r"$L_{1-2}$"), ("L12+LM", r"$L_{1-2} + L_M$")), start=1):
            axes: Any = figure.add_subplot(1, 2, place, projection="3d")
            axes.plot_surface(first, second, np.asarray(summary.content[name]), cmap="viridis", linewidth=0)
            axes.set(xlabel=r"$\gamma_1$", ylabel=r"$\gamma_2$", title=title)
        path = str(folder / "figure.png")
        figure.savefig(path, dpi=110)
        return {"figure": path}
