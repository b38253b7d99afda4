"""Figure of the paper with the three-layer network: balanced accuracy against the number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import pick_methods
from tamiz.evaluation.metrics import BALANCED_ACCURACY, balanced_accuracy
from tamiz.paper.dataset_registry import find_entry
from tamiz.paper.numbers import THREE_LAYER_MADELON, THREE_LAYER_MADELON_SIZES
from tamiz.paper.protocol import (
    DATASETS_OPTION,
    METHODS_OPTION,
    REFERENCES,
    REPEATS_OPTION,
    SEED_OPTION,
    Protocol,
    with_references,
)
from tamiz.paper.recipes import (
    N_FOLDS,
    N_REPEATS,
    RECIPE_OPTION,
    SPLIT_SEED,
    display_name,
    load_checked,
    load_split,
    method_settings,
    naive_network,
    pick_datasets,
    pick_recipes,
    recipe_parameters,
    recipe_sentence,
    select_for_all,
    with_recipe,
)
from tamiz.paper.store import (
    Cell,
    HeadlineScore,
    ProtocolSummary,
    difference_lines,
    failure_section,
    finite,
    format_cell,
    markdown_table,
    seed_from,
)

_DATASETS = ("madelon", "gina_rebuilt", "gisette_rebuilt", "dexter")
_METHODS = ("fisher", "mim", "relieff", "inffs", "ilfs", "e2efs", "e2efs-soft")
_NETWORK = "mlp"


def curve_sizes_of(dataset: str) -> tuple[int, ...]:
    """Return the numbers of features of a curve: few for MADELON, of whose columns 20 matter.

    Examples
    --------
    >>> curve_sizes_of("madelon"), curve_sizes_of("dexter")
    ((5, 10, 15, 20), (10, 50, 100, 150, 200))
    """
    return THREE_LAYER_MADELON_SIZES if dataset == "madelon" else (10, 50, 100, 150, 200)


@dataclass(frozen=True)
class ThreeLayerPlan:
    """Hold the options of a run, checked."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    n_repeats: int
    seed: int
    recipes: tuple[str, ...] = ("paper",)


class ThreeLayer(Protocol):
    """Train the three-layer network along with the selection, and anew on what each method selects."""

    name = "three-layer"
    headline = "The figure with the three-layer network."
    description = "The figure with the three-layer network: balanced accuracy against the number of features."
    example = "-d madelon --repeats 2"
    options = (DATASETS_OPTION, METHODS_OPTION, REPEATS_OPTION, RECIPE_OPTION, SEED_OPTION)

    def make_plan(
        self,
        datasets: Sequence[str] = _DATASETS,
        methods: Sequence[str] = _METHODS,
        n_repeats: int = N_REPEATS,
        seed: int = 0,
        recipe: str = "paper",
    ) -> ThreeLayerPlan:
        """Return a plan with every name checked, and the rows for random and for all features added.

        Examples
        --------
        >>> ThreeLayer().make_plan(["Madelon"], ["fisher"], recipe="both").recipes
        ('paper', 'tamiz')
        """
        if n_repeats < 1:
            raise ValueError(f"At least one repeat is needed, got {n_repeats}.")
        names = pick_methods(methods)
        recipes = pick_recipes(recipe, names)
        return ThreeLayerPlan(pick_datasets(datasets), with_references(names), n_repeats, seed, recipes)

    def make_cells(self, plan: ThreeLayerPlan, data_home: str | None = None) -> list[Cell]:
        """Return one cell per data set, method, recipe and split, for all numbers of features."""
        cells = []
        for name in plan.datasets:
            _, checksum = load_checked(name, data_home)
            for method, recipe in product(plan.methods, plan.recipes):
                trained = recipe_parameters(recipe)
                selected = trained if get_method(method).trains_model else {}
                shared = {
                    "dataset": name,
                    "data": checksum,
                    "method": method,
                    "recipe": recipe,
                    "parameters": method_settings(method, _NETWORK, **selected),
                    "learner": method_settings("e2efs-soft", _NETWORK, **trained),
                    "m_values": list(curve_sizes_of(name)),
                    "folds": N_FOLDS,
                    "split_seed": SPLIT_SEED,
                    "seed": plan.seed,
                }
                cells += [
                    Cell(
                        self.name,
                        f"{name}, split {split + 1}, {with_recipe(method, recipe)}",
                        {**shared, "split": split},
                    )
                    for split in range(N_FOLDS * plan.n_repeats)
                ]
        return cells

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Score one method on one split: the network trained along with the selection (E2E-FS), and a new one (all)."""
        name, method, split, recipe = (settings[key] for key in ("dataset", "method", "split", "recipe"))
        parts = load_split(name, data_home, settings["data"], split)
        info = get_method(method)
        identity = ("three-layer", name, split, settings["seed"])
        selected = recipe_parameters(recipe) if info.trains_model else {}
        found = select_for_all(method, parts.train, parts.y_train, settings["m_values"], identity, _NETWORK, selected)
        joint: list[float] = []
        anew: list[float] = []
        for m, picked in zip(settings["m_values"], found, strict=True):
            if info.trains_model:
                joint.append(balanced_accuracy(parts.y_test, picked.model.predict(parts.test)))
            if info.keeps_all and anew:
                anew.append(anew[0])
                continue
            seed = seed_from(*identity, method, m, "network")
            model = naive_network(picked.columns.size, recipe, seed).set_params(network=_NETWORK)
            model.fit(parts.train[:, picked.columns], parts.y_train)
            anew.append(balanced_accuracy(parts.y_test, model.predict(parts.test[:, picked.columns])))
        return {"joint": joint or None, "network": anew, "seconds": [picked.seconds for picked in found]}

    def summarise(
        self, plan: ThreeLayerPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Make the curves as records and tables; :meth:`draw` makes the figure of them."""
        series: dict[tuple[str, str, str, str], list[list[float]]] = {}
        timing: dict[tuple[str, str], list[float]] = {}
        for cell in cells:
            result = results.get(cell.key)
            if not result:
                continue
            dataset, method, recipe = (cell.settings[key] for key in ("dataset", "method", "recipe"))
            for kind in ("joint", "network"):
                if result[kind] is not None:
                    series.setdefault((dataset, method, recipe, kind), []).append(result[kind])
            timing.setdefault((dataset, with_recipe(method, recipe)), []).append(float(np.mean(result["seconds"])))
        records: list[dict[str, Any]] = []
        for (dataset, method, recipe, kind), rows in series.items():
            table = np.asarray(rows)
            for position, m in enumerate(curve_sizes_of(dataset)):
                records.append(
                    {
                        "dataset": dataset,
                        "label": find_entry(dataset).label,
                        "method": method,
                        "recipe": recipe,
                        "network": kind,
                        "n_features": m,
                        "balanced_accuracy": finite(table[:, position].mean()),
                        "sd": finite(table[:, position].std()),
                        "splits": len(rows),
                    }
                )
        parts = [
            f"Balanced accuracy of the three-layer network against the number of features, mean of {N_FOLDS * plan.n_repeats} "
            "splits; (joint): the network that selected, (anew): trained anew on what was selected. The paper's figure prints "
            "no numbers; in brackets those of the authors' published result files, where there are any (MADELON). "
            f"{recipe_sentence(plan.recipes)}"
        ]
        parts += [f"### {display_name(dataset)}\n\n{_curves(plan, dataset, series)}" for dataset in plan.datasets]
        if "madelon" in plan.datasets:
            pairs = (
                (
                    f"MADELON, {_title(record)}, {record['n_features']} features",
                    record["balanced_accuracy"],
                    _published(record["method"], record["n_features"]),
                )
                for record in records
                if record["dataset"] == "madelon" and record["network"] == "network"
            )
            reason = "the start of the weights and gamma's own Adam are not in the paper"
            parts += ["### Differences to the authors' files above 0.02", difference_lines(pairs, reason)]
        parts += failure_section(failures)
        content = {"protocol": self.name, "curves": records, "failures": dict(sorted(failures.items()))}
        seconds = [
            {"dataset": dataset, "method": method, "median seconds of one selection": float(np.median(values))}
            for (dataset, method), values in timing.items()
        ]
        title = "Three-layer network: " + ", ".join(map(display_name, plan.datasets))
        return ProtocolSummary(title, "\n\n".join(parts), records, content, seconds, _headlines(plan, series))

    def draw(
        self, summary: ProtocolSummary, cells: Sequence[Cell], results: Mapping[str, Any], folder: Path
    ) -> dict[str, str]:
        """Draw the figure: one panel per data set."""
        records = summary.records
        if not records:
            return {}
        figures = require("matplotlib.figure", "plot", "The figure")

        datasets = list(dict.fromkeys(record["dataset"] for record in records))
        figure = figures.Figure(figsize=(4.2 * len(datasets), 3.6), layout="constrained")
        for place, dataset in enumerate(datasets, start=1):
            axes = figure.add_subplot(1, len(datasets), place)
            rows = [record for record in records if record["dataset"] == dataset and record["network"] == "network"]
            for title in dict.fromkeys(map(_title, rows)):
                line = [record for record in rows if _title(record) == title]
                style = "--" if line[0]["method"] in REFERENCES else "-" if line[0]["recipe"] == "paper" else ":"
                sizes = [record["n_features"] for record in line]
                values = [record["balanced_accuracy"] for record in line]
                axes.plot(sizes, values, style, marker="o", markersize=3, label=title)
            axes.set_title(display_name(dataset))
            axes.set_xticks(curve_sizes_of(dataset))
            axes.set_xlabel("features")
            axes.set_ylabel("balanced accuracy")
            axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        path = str(folder / "figure.png")
        figure.savefig(path, dpi=150)
        return {"figure": path}


def _published(method: str, m: int) -> float | None:
    """Return the number of the authors' files for MADELON, if there is one."""
    row = THREE_LAYER_MADELON.get(method)
    return None if row is None else row[THREE_LAYER_MADELON_SIZES.index(m)]


def _headlines(plan: ThreeLayerPlan, series: Mapping[Any, Any]) -> list[HeadlineScore]:
    """Return the mean of each curve of networks that were trained anew, which every method has."""
    scores = []
    for (dataset, method, recipe, kind), rows in series.items():
        if kind == "network":
            sizes = ", ".join(map(str, curve_sizes_of(dataset)))
            published = THREE_LAYER_MADELON.get(method) if dataset == "madelon" else None
            scores.append(
                HeadlineScore(
                    display_name(dataset),
                    BALANCED_ACCURACY.name,
                    f"of the network trained anew, mean over M = {sizes} and {N_FOLDS * plan.n_repeats} splits",
                    method,
                    get_method(method).title,
                    float(np.mean(rows)),
                    recipe=recipe,
                    published=None if published is None else float(np.mean(published)),
                )
            )
    return scores


def _title(record: Mapping[str, Any]) -> str:
    return with_recipe(get_method(record["method"]).title, record["recipe"])


def _curves(plan: ThreeLayerPlan, dataset: str, series: Mapping[Any, Any]) -> str:
    lines = []
    for method, recipe in product(plan.methods, plan.recipes):
        for kind, word in (("joint", "joint"), ("network", "anew")):
            rows = series.get((dataset, method, recipe, kind))
            if rows is None:
                continue
            published = THREE_LAYER_MADELON.get(method) if dataset == "madelon" and kind == "network" else None
            means = np.asarray(rows).mean(axis=0)
            lines.append(
                [with_recipe(f"{get_method(method).title} ({word})", recipe)]
                + [format_cell(v) + (f" ({published[i]:.3f})" if published else "") for i, v in enumerate(means)]
            )
    return markdown_table(["method", *map(str, curve_sizes_of(dataset))], lines)
