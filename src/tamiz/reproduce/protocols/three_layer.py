"""The paper's figure with the three-layer network: balanced accuracy against the number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.reproduce import selectors
from tamiz.reproduce.cells import Cell, seed_from
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.reproduce.protocols.microarray import N_FOLDS, N_REPEATS, SPLIT_SEED, split_rows
from tamiz.reproduce.protocols.microarray_table import display_name
from tamiz.reproduce.paper_numbers import THREE_LAYER_MADELON, THREE_LAYER_MADELON_SIZES
from tamiz.reproduce.sources import load_checked, nonzero_columns
from tamiz.reproduce.summary import Outcome, difference_lines, finite, markdown_table, number
from tamiz.datasets.registry import find_entry
from tamiz.estimators import E2EFSClassifier

DATASETS = ("madelon", "gina_rebuilt", "gisette_rebuilt", "dexter")
METHODS = ("fisher", "mim", "relieff", "e2efs", "e2efs-soft")
REFERENCES = ("random", "all")
NETWORK = "mlp"


def sizes_of(dataset: str) -> tuple[int, ...]:
    """The numbers of features: few for MADELON, of whose columns 20 matter.

    Examples
    --------
    >>> sizes_of("madelon"), sizes_of("dexter")
    ((5, 10, 15, 20), (10, 50, 100, 150, 200))
    """
    return THREE_LAYER_MADELON_SIZES if dataset == "madelon" else (10, 50, 100, 150, 200)


@dataclass(frozen=True)
class ThreeLayerPlan:
    """What is asked for; :func:`make_plan` checks it."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    n_repeats: int
    seed: int


def make_plan(
    datasets: Sequence[str] = DATASETS, methods: Sequence[str] = METHODS, n_repeats: int = N_REPEATS, seed: int = 0
) -> ThreeLayerPlan:
    """A plan with every name checked, and the rows for random and for all features added.

    Examples
    --------
    >>> make_plan(["Madelon"], ["fisher"], n_repeats=1)
    ThreeLayerPlan(datasets=('madelon',), methods=('fisher', 'random', 'all'), n_repeats=1, seed=0)
    """
    if n_repeats < 1:
        raise ValueError(f"At least one repeat is needed, got {n_repeats}.")
    names = [selectors.pick_method(name) for name in methods]
    return ThreeLayerPlan(
        tuple(dict.fromkeys(find_entry(name).name for name in datasets)),
        tuple(dict.fromkeys([*names, *REFERENCES])),
        n_repeats,
        seed,
    )


def make_cells(plan: ThreeLayerPlan, data_home: str | None = None) -> list[Cell]:
    """One cell a data set, split and method, for all numbers of features."""
    cells = []
    for name in plan.datasets:
        _, checksum = load_checked(name, data_home)
        for method in plan.methods:
            shared = {
                "dataset": name,
                "data": checksum,
                "method": method,
                "parameters": selectors.method_settings(method, NETWORK),
                "learner": selectors.method_settings("e2efs-soft", NETWORK),
                "m_values": list(sizes_of(name)),
                "folds": N_FOLDS,
                "split_seed": SPLIT_SEED,
                "seed": plan.seed,
            }
            cells += [
                Cell("three-layer", f"{name}, split {split + 1}, {method}", {**shared, "split": split})
                for split in range(N_FOLDS * plan.n_repeats)
            ]
    return cells


def run_cell(settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
    """One method on one split: the network trained along with the selection (ours), and trained anew on it (all)."""
    name, method, split = settings["dataset"], settings["method"], settings["split"]
    dataset, _ = load_checked(name, data_home, settings["data"])
    train_rows, test_rows = split_rows(dataset.target, split)
    alive = nonzero_columns(dataset.data[train_rows])
    train, test = dataset.data[train_rows][:, alive], dataset.data[test_rows][:, alive]
    y_train, y_test = dataset.target[train_rows], dataset.target[test_rows]
    identity = ("three-layer", name, split, settings["seed"])
    found = selectors.select_for_all(method, train, y_train, settings["m_values"], identity, NETWORK)
    joint: list[float] = []
    anew: list[float] = []
    for m, picked in zip(settings["m_values"], found, strict=True):
        if selectors.is_own(method):
            joint.append(balanced_accuracy(y_test, picked.model.predict(test)))
        if method == "all" and anew:
            anew.append(anew[0])
            continue
        model = E2EFSClassifier(
            picked.columns.size, network=NETWORK, random_state=seed_from(*identity, method, m, "network")
        )
        model.fit(train[:, picked.columns], y_train)
        anew.append(balanced_accuracy(y_test, model.predict(test[:, picked.columns])))
    return {"joint": joint or None, "network": anew, "seconds": [picked.seconds for picked in found]}


def summarise(
    plan: ThreeLayerPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
) -> Outcome:
    """Curves as records and tables; :func:`draw` makes the figure of them."""
    series: dict[tuple[str, str, str], list[list[float]]] = {}
    timing: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        result = results.get(cell.key)
        if not result:
            continue
        dataset, method = cell.settings["dataset"], cell.settings["method"]
        for kind in ("joint", "network"):
            if result[kind] is not None:
                series.setdefault((dataset, method, kind), []).append(result[kind])
        timing.setdefault((dataset, method), []).append(float(np.mean(result["seconds"])))
    records: list[dict[str, Any]] = []
    for (dataset, method, kind), rows in series.items():
        table = np.asarray(rows)
        for position, m in enumerate(sizes_of(dataset)):
            records.append(
                {
                    "dataset": dataset,
                    "label": find_entry(dataset).label,
                    "method": method,
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
        "no numbers; in brackets those of the authors' published result files, where there are any (MADELON)."
    ]
    parts += [f"### {display_name(dataset)}\n\n{_curves(plan, dataset, series)}" for dataset in plan.datasets]
    if "madelon" in plan.datasets:
        pairs = (
            (
                f"MADELON, {selectors.TITLES[record['method']]}, {record['n_features']} features",
                record["balanced_accuracy"],
                _published(record["method"], record["n_features"]),
            )
            for record in records
            if record["dataset"] == "madelon" and record["network"] == "network"
        )
        reason = "the network here is trained by Adam at the estimator's own rates, theirs at the paper's"
        parts += ["### Differences to the authors' files above 0.02", difference_lines(pairs, reason)]
    if failures:
        parts += ["### Cells that failed", "\n".join(f"- {name}: {text}" for name, text in sorted(failures.items()))]
    content = {"protocol": "three-layer", "curves": records, "failures": dict(sorted(failures.items()))}
    seconds = [
        {"dataset": dataset, "method": method, "median seconds of one selection": float(np.median(values))}
        for (dataset, method), values in timing.items()
    ]
    return Outcome("Three-layer network", "\n\n".join(parts), records, content, seconds)


def _published(method: str, m: int) -> float | None:
    row = THREE_LAYER_MADELON.get(method)
    return None if row is None else row[THREE_LAYER_MADELON_SIZES.index(m)]


def _curves(plan: ThreeLayerPlan, dataset: str, series: Mapping[Any, Any]) -> str:
    lines = []
    for method in plan.methods:
        for kind, word in (("joint", "joint"), ("network", "anew")):
            rows = series.get((dataset, method, kind))
            if rows is None:
                continue
            published = THREE_LAYER_MADELON.get(method) if dataset == "madelon" and kind == "network" else None
            means = np.asarray(rows).mean(axis=0)
            lines.append(
                [f"{selectors.TITLES[method]} ({word})"]
                + [number(v) + (f" ({published[i]:.3f})" if published else "") for i, v in enumerate(means)]
            )
    return markdown_table(["method", *map(str, sizes_of(dataset))], lines)


def draw(records: Sequence[Mapping[str, Any]], path: str) -> None:
    """The figure: one panel a data set. Needs matplotlib."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(record["dataset"] for record in records))
    figure = Figure(figsize=(4.2 * len(datasets), 3.6), layout="constrained")
    for place, dataset in enumerate(datasets, start=1):
        axes = figure.add_subplot(1, len(datasets), place)
        rows = [record for record in records if record["dataset"] == dataset and record["network"] == "network"]
        for method in dict.fromkeys(record["method"] for record in rows):
            line = [record for record in rows if record["method"] == method]
            style = "--" if method in REFERENCES else "-"
            sizes = [record["n_features"] for record in line]
            values = [record["balanced_accuracy"] for record in line]
            axes.plot(sizes, values, style, marker="o", markersize=3, label=selectors.TITLES[method])
        axes.set_title(display_name(dataset))
        axes.set_xticks(sizes_of(dataset))
        axes.set_xlabel("features")
        axes.set_ylabel("balanced accuracy")
        axes.grid(alpha=0.3)
    if datasets:
        axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)
