"""Figure of the paper with the three-layer network: balanced accuracy against the number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import make_seeded
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.paper.numbers import THREE_LAYER_MADELON, THREE_LAYER_MADELON_SIZES
from tamiz.paper.protocol import (
    REFERENCES,
    SEED_OPTION,
    Cell,
    Protocol,
    datasets_option,
    methods_option,
    seed_from,
    units_option,
)
from tamiz.paper.recipes import (
    N_FOLDS,
    N_REPEATS,
    RECIPE_OPTION,
    SPLIT_SEED,
    load_checked,
    load_split,
    network_for,
    parameters_of,
    recipe_parameters,
    recipe_sentence,
    recipes_of,
    score_fitted,
    score_network,
    select_for_all,
)
from tamiz.paper.tables import ProtocolSummary, TableRow, display_name, summarise, with_recipe

_NETWORK = "mlp"
#: Networks of the rows: the one that selected (E2E-FS), and one trained anew on what was selected.
JOINT, ANEW = "joint", "anew"


def curve_sizes_of(dataset: str) -> tuple[int, ...]:
    """Return the numbers of features of a curve: few for MADELON, of whose columns 20 matter.

    Examples
    --------
    >>> curve_sizes_of("madelon"), curve_sizes_of("dexter")
    ((5, 10, 15, 20), (10, 50, 100, 150, 200))
    """
    return THREE_LAYER_MADELON_SIZES if dataset == "madelon" else (10, 50, 100, 150, 200)


class ThreeLayer(Protocol):
    """Train the three-layer network along with the selection, and anew on what each method selects."""

    name = "three-layer"
    headline = "The figure with the three-layer network."
    description = "The figure with the three-layer network: balanced accuracy against the number of features."
    example = "-d madelon --repeats 2"
    options = (
        datasets_option(("madelon", "gina_rebuilt", "gisette_rebuilt", "dexter")),
        methods_option(("fisher", "mim", "relieff", "inffs", "ilfs", "e2efs", "e2efs-soft")),
        units_option("n_repeats", "--repeats", "Repeats of the splits.", N_REPEATS),
        RECIPE_OPTION,
        SEED_OPTION,
    )

    def check_plan(self, plan: Any) -> None:
        """Raise ValueError for a method that the paper has no recipe for."""
        recipes_of(plan)

    def make_cells(self, plan: Any, data_home: str | None = None) -> list[Cell]:
        """Return one cell per data set, method, recipe and split, for all numbers of features."""
        cells = []
        for name in plan.datasets:
            _, checksum = load_checked(name, data_home)
            for method in plan.methods:
                for recipe in recipes_of(plan):
                    selected = recipe_parameters(recipe) if get_method(method).trains_model else {}
                    settings = {
                        "dataset": name,
                        "data": checksum,
                        "method": method,
                        "recipe": recipe,
                        "parameters": parameters_of(make_seeded(method, 1, 0, network=_NETWORK, **selected)),
                        "learner": parameters_of(network_for(1, recipe, 0, _NETWORK)),
                        "sizes": list(curve_sizes_of(name)),
                        "splits": [N_FOLDS, SPLIT_SEED],
                        "seed": plan.seed,
                    }
                    title = f"{name}, split {{}}, {with_recipe(method, recipe)}"
                    cells += self.repeat(title, settings, N_FOLDS * plan.n_repeats)
        return cells

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Score one method on one split: the network trained along with the selection (E2E-FS), and a new one (all)."""
        name, method, split, recipe, sizes = (settings[key] for key in ("dataset", "method", "unit", "recipe", "sizes"))
        parts = load_split(name, data_home, settings["data"], split)
        info = get_method(method)
        identity = ("three-layer", name, split, settings["seed"])
        selected = recipe_parameters(recipe) if info.trains_model else {}
        found = select_for_all(method, parts.train, parts.y_train, sizes, identity, _NETWORK, selected)
        joint = [score_fitted(picked.model, parts.test, parts.y_test) for picked in found if info.trains_model]
        anew: list[tuple[float, bool]] = []
        for m, picked in zip(sizes, found, strict=True):
            if info.keeps_all and anew:
                anew.append(anew[0])
                continue
            network = network_for(picked.columns.size, recipe, seed_from(*identity, method, m, "network"), _NETWORK)
            anew.append(score_network(parts, picked.columns, network))
        series = [(ANEW, anew), *([(JOINT, joint)] if joint else [])]
        return {
            "scores": [[detail, recipe, [value for value, _ in values]] for detail, values in series],
            "dead": [[detail, recipe, [dead for _, dead in values]] for detail, values in series],
            "seconds": [picked.seconds for picked in found],
            "converged": [picked.converged for picked in found],
        }

    def summarise(
        self, plan: Any, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Make the curves as tables; :meth:`draw` makes the figure of them."""

        def reasons(row: TableRow) -> list[str]:
            if get_method(row.method).trains_model and row.recipe == "paper":
                return ["the rate of 0.05 with a decay of 100 / N (docs/changes-to-the-paper.md)"]
            if row.method == "ilfs":
                return ["what the authors ran as ILFS is not known (docs/baselines.md)"]
            return [f"judged by networks of the recipe [{row.recipe}], which the authors' files may not have"]

        return summarise(
            self,
            plan,
            cells,
            results,
            failures,
            title="Three-layer network: " + ", ".join(map(display_name, plan.datasets)),
            introduction=f"Balanced accuracy of the three-layer network against the number of features, mean of "
            f"{N_FOLDS * plan.n_repeats} splits; {JOINT}: the network that selected, {ANEW}: trained anew on what was selected. "
            "A network is dead if it gives the same output for every test row (0.5). The paper's figure prints no numbers; in "
            "brackets those of the authors' published result files, where there are any (MADELON). "
            f"{recipe_sentence(recipes_of(plan))}",
            measure=BALANCED_ACCURACY.name,
            basis="of the network trained anew, mean over M = {sizes} and {n} splits",
            headline_detail=ANEW,
            published=_published,
            reasons=reasons,
            n_published=N_FOLDS * N_REPEATS,
            test_share=1 / N_FOLDS,
        )

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
            axes.set(title=display_name(dataset), xticks=curve_sizes_of(dataset))
            axes.set(xlabel="features", ylabel="balanced accuracy")
            axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        path = str(folder / "figure.png")
        figure.savefig(path, dpi=150)
        return {"figure": path}


def _published(dataset: str, method: str, detail: str, sizes: Sequence[int]) -> tuple[Any, float | None]:
    """Return the numbers of the authors' files for MADELON."""
    known = THREE_LAYER_MADELON.get(method) if dataset == "madelon" and detail == ANEW else None
    return ((), None) if known is None else (known, float(np.mean(known)))
