"""MADELON with 20 features kept: the AUROC of a forest on them, trained on the training part, tested on the validation part."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.reproduce import selectors
from tamiz.reproduce.cells import Cell, seed_from
from tamiz.reproduce.protocols.ground_truth import NETWORK
from tamiz.reproduce.paper_numbers import MADELON_AUROC
from tamiz.reproduce.sources import load_checked
from tamiz.reproduce.summary import Outcome, difference_lines, markdown_table, number

METHODS = ("e2efs-soft", "e2efs", "random-forest", "relieff", "mim", "fisher")
REFERENCES = ("random", "all")
K = 20
N_TREES = 500
N_RUNS = 5
#: Ours -> the name of the same method in the publication.
_PUBLISHED = {"random": "random", "mim": "mutual information", "relieff": "ReliefF", "random-forest": "random forest"}


@dataclass(frozen=True)
class MadelonPlan:
    """What is asked for; :func:`make_plan` checks it."""

    methods: tuple[str, ...]
    k: int
    n_runs: int
    seed: int


def make_plan(methods: Sequence[str] = METHODS, k: int = K, n_runs: int = N_RUNS, seed: int = 0) -> MadelonPlan:
    """A plan with every name checked, and the rows for random and for all features added.

    Examples
    --------
    >>> make_plan(["relieff"]).methods
    ('relieff', 'random', 'all')
    """
    if k < 1 or n_runs < 1:
        raise ValueError(f"k and the number of runs are at least 1, got {k} and {n_runs}.")
    names = [selectors.pick_method(name) for name in methods]
    return MadelonPlan(tuple(dict.fromkeys([*names, *REFERENCES])), k, n_runs, seed)


def make_cells(plan: MadelonPlan, data_home: str | None = None) -> list[Cell]:
    """One cell a method and run."""
    _, checksum = load_checked("madelon", data_home)
    cells = []
    for method in plan.methods:
        shared = {
            "data": checksum,
            "method": method,
            "parameters": selectors.method_settings(method, NETWORK),
            "k": plan.k,
            "trees": N_TREES,
            "seed": plan.seed,
        }
        cells += [Cell("madelon", f"madelon, run {i + 1}, {method}", {**shared, "run": i}) for i in range(plan.n_runs)]
    return cells


def run_cell(settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
    """Select, train the forest, score."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    dataset, _ = load_checked("madelon", data_home, settings["data"])
    method, k = settings["method"], settings["k"]
    seed = seed_from("madelon", method, k, settings["run"], settings["seed"])
    X, y = dataset.data, dataset.target
    train, test = dataset.train, dataset.test
    selector = selectors.make_selector(method, k, seed, NETWORK)
    started = time.perf_counter()
    selector.fit(X[train], y[train])
    seconds = time.perf_counter() - started
    columns = selector.get_support(indices=True)
    forest = RandomForestClassifier(settings["trees"], random_state=seed, n_jobs=1)
    forest.fit(X[train][:, columns], y[train])
    auroc = roc_auc_score(y[test], forest.predict_proba(X[test][:, columns])[:, 1])
    return {"auroc": float(auroc), "columns": columns.tolist(), "seconds": seconds}


def summarise(
    plan: MadelonPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
) -> Outcome:
    """AUROC by method, beside the published ones."""
    found: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result:
            found.setdefault(cell.settings["method"], []).append(result["auroc"])
            seconds.setdefault(cell.settings["method"], []).append(result["seconds"])
    records: list[dict[str, Any]] = []
    for method in plan.methods:
        values = found.get(method, [])
        mean, sd = (float(np.mean(values)), float(np.std(values))) if values else (None, None)
        records.append({"method": method, "auroc": mean, "sd": sd, "runs": len(values)})
    lines = [[f"{selectors.TITLES[r['method']]} (here)", f"{number(r['auroc'])} ± {number(r['sd'])}"] for r in records]
    lines += [[f"{name} (published)", number(value)] for name, value in MADELON_AUROC.items()]
    parts = [
        f"AUROC on the 600 validation rows of a random forest ({N_TREES} trees) trained on the {plan.k} columns that each "
        f"method keeps of the 2000 training rows; mean of {plan.n_runs} run(s). Published: Passemiers et al. 2023.",
        markdown_table(["method", "AUROC"], lines),
        "### Differences to the published numbers above 0.02",
        difference_lines(
            (
                (selectors.TITLES[r["method"]], r["auroc"], MADELON_AUROC.get(_PUBLISHED.get(r["method"], "")))
                for r in records
            ),
            f"one training and validation part, {plan.n_runs} run(s), and the forest's size is not published",
        ),
    ]
    if failures:
        parts += ["### Cells that failed", "\n".join(f"- {name}: {text}" for name, text in sorted(failures.items()))]
    content = {
        "protocol": "madelon",
        "k": plan.k,
        "rows": [{"method": method, "auroc": values} for method, values in found.items()],
        "failures": dict(sorted(failures.items())),
    }
    timing = [
        {"method": method, "median seconds of one selection": float(np.median(values))}
        for method, values in seconds.items()
    ]
    return Outcome(f"MADELON, {plan.k} features", "\n\n".join(parts), records, content, timing)
