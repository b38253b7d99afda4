"""Figures of the paper: the penalties as surfaces, and the accuracy of the three-layer network by number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tamiz._utils.extras import require
from tamiz.baselines.registry import get_method
from tamiz.core.step import binary_penalty, penalty
from tamiz.paper import recipes
from tamiz.paper.microarray import ANEW, CURVES, JOINT, M_VALUES, SplitProtocol
from tamiz.paper.numbers import THREE_LAYER_MADELON, THREE_LAYER_MADELON_SIZES
from tamiz.paper.protocol import REFERENCES, Cell, Protocol
from tamiz.paper.tables import ProtocolSummary, TableRow, display_name, format_cell, markdown_table, with_recipe


class ThreeLayer(SplitProtocol):
    """The figure with the three-layer network: balanced accuracy against the number of features."""

    name = "three-layer"
    network = "mlp"
    headline_detail = ANEW
    choices: ClassVar = {**SplitProtocol.choices, "learners": CURVES}

    datasets: Sequence[str] = ("madelon", "gina_rebuilt", "gisette_rebuilt", "dexter")
    learners: Sequence[str] = CURVES

    def sizes_of(self, dataset: str) -> Sequence[int]:
        """Numbers of features of a curve: few for MADELON, of whose columns 20 matter.

        Examples
        --------
        >>> ThreeLayer().sizes_of("madelon"), ThreeLayer().sizes_of("dexter")
        ((5, 10, 15, 20), (10, 50, 100, 150, 200))
        """
        return THREE_LAYER_MADELON_SIZES if dataset == "madelon" else M_VALUES

    def describe(self, cells: Sequence[Cell], results: Mapping[str, Any]) -> tuple[str, str, str]:
        """Title, introduction, and what the scores are means of."""
        return (
            "Three-layer network: " + ", ".join(map(display_name, self.datasets)),
            f"Balanced accuracy of the three-layer network against the number of features, mean of "
            f"{recipes.N_FOLDS * self.repeats} splits; {JOINT}: the network that selected, {ANEW}: trained anew on what was "
            "selected. A network is dead if it gives the same output for every test row (0.5). The paper's figure prints no "
            "numbers; in brackets those of the authors' published result files, where there are any (MADELON). "
            f"{recipes.recipe_sentence(recipes.recipes_of(self))}",
            "of the network trained anew, mean over M = {sizes} and {units}",
        )

    def published(self, row: TableRow) -> tuple[Sequence[float | None], float | None]:
        """Numbers of the authors' files for MADELON."""
        known = THREE_LAYER_MADELON.get(row.method) if row.dataset == "madelon" and row.detail == ANEW else None
        return ((), None) if known is None else (known, float(np.mean(known)))

    def reasons(self, row: TableRow) -> list[str]:
        """Known differences to the authors' files."""
        if get_method(row.method).trains_model and row.recipe == "paper":
            return ["the rate of 0.05 with a decay of 100 / N (docs/changes-to-the-paper.md)"]
        if row.method == "ilfs":
            return ["what the authors ran as ILFS is not known (docs/baselines.md)"]
        return [f"networks trained by the recipe [{row.recipe}], the authors' perhaps by another"]

    def draw(self, summary: Any, cells: Sequence[Cell], results: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Draw the figure: one panel per data set."""
        rows = [row for row in summary.rows if row.detail == ANEW]
        if not rows:
            return {}
        figures = require("matplotlib.figure", "plot", "The figure")
        datasets = list(dict.fromkeys(row.dataset for row in rows))
        figure = figures.Figure(figsize=(4.2 * len(datasets), 3.6), layout="constrained")
        for axes, dataset in zip(figure.subplots(1, len(datasets), squeeze=False)[0], datasets, strict=True):
            for row in rows:
                if row.dataset == dataset:
                    style = "--" if row.method in REFERENCES else "-" if row.recipe == "paper" else ":"
                    values = np.nanmean(row.scores, axis=0)
                    label = with_recipe(get_method(row.method).title, row.recipe)
                    axes.plot(row.sizes, values, style, marker="o", markersize=3, label=label)
            axes.set(title=display_name(dataset), xticks=self.sizes_of(dataset))
            axes.set(xlabel="features", ylabel="balanced accuracy")
            axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        path = str(folder / "figure.png")
        figure.savefig(path, dpi=150)
        return {"figure": path}


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
    """The paper's first figure: the penalties as surfaces over two features, for M = 1."""

    name = "surfaces"
    least: ClassVar = {**Protocol.least, "points": 2}

    points: int = 41

    def describe(self, cells: Sequence[Cell], results: Mapping[str, Any]) -> tuple[str, str, str]:
        """Title and introduction; there are no scores."""
        text = (
            "Two features, M = 1, mu = 1. L12 alone is zero in every corner, also where no feature or both are kept; with LM "
            "only the two corners with one feature are left."
        )
        return "Figure 1: the penalties", text, ""

    def summarise(
        self, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Write the surfaces, and their corners as a table."""
        axis, binary, both = surface(self.points)
        corners = [(0, 0), (0, -1), (-1, 0), (-1, -1)]
        lines = [
            [f"({axis[i]:.0f}, {axis[j]:.0f})", format_cell(binary[i, j]), format_cell(both[i, j])] for i, j in corners
        ]
        title, text, _ = self.describe(cells, results)
        text += "\n\n" + markdown_table(["corner (gamma 1, gamma 2)", "L12", "L12 + LM"], lines)
        content = {"protocol": self.name, "axis": axis.tolist(), "L12": binary.tolist(), "L12+LM": both.tolist()}
        return ProtocolSummary(title, text, content)

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
