"""MADELON with 20 features kept: the AUROC of a forest on them, trained on the training part, scored on the validation part."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import make_seeded, pick_methods
from tamiz.paper.numbers import MADELON_AUROC
from tamiz.paper.protocol import METHODS_OPTION, SEED_OPTION, Protocol, ProtocolOption, with_references
from tamiz.paper.recipes import load_checked, method_settings
from tamiz.paper.store import (
    Cell,
    HeadlineScore,
    ProtocolSummary,
    difference_lines,
    failure_section,
    format_cell,
    markdown_table,
    seed_from,
)

_METHODS = ("e2efs-soft", "e2efs", "random-forest", "relieff", "mim", "fisher", "pair-search")
N_KEPT = 20
N_TREES = 500
N_RUNS = 5
#: Network of E2E-FS: no column of MADELON tells the classes apart alone.
_NETWORK = "mlp"
#: Ours -> the name of the same method in the publication.
_PUBLISHED = {"random": "random", "mim": "mutual information", "relieff": "ReliefF", "random-forest": "random forest"}


@dataclass(frozen=True)
class MadelonPlan:
    """Hold the options of a run, checked."""

    methods: tuple[str, ...]
    k: int
    n_runs: int
    seed: int


class Madelon(Protocol):
    """Score 20 selected features of MADELON by a random forest."""

    name = "madelon"
    headline = "MADELON with 20 features."
    description = "MADELON with 20 features: the AUROC of a forest on what each method keeps."
    options = (
        METHODS_OPTION,
        ProtocolOption("k", ("-k",), "How many features are kept.", "integer", N_KEPT, minimum=1),
        ProtocolOption("n_runs", ("--runs",), "Runs with other seeds.", "integer", shown_default="5", minimum=1),
        SEED_OPTION,
    )

    def make_plan(
        self, methods: Sequence[str] = _METHODS, k: int = N_KEPT, n_runs: int = N_RUNS, seed: int = 0
    ) -> MadelonPlan:
        """Return a plan with every name checked, and the rows for random and for all features added.

        Examples
        --------
        >>> Madelon().make_plan(["relieff"]).methods
        ('relieff', 'random', 'all')
        """
        if k < 1 or n_runs < 1:
            raise ValueError(f"k and the number of runs are at least 1, got {k} and {n_runs}.")
        return MadelonPlan(with_references(pick_methods(methods)), k, n_runs, seed)

    def make_cells(self, plan: MadelonPlan, data_home: str | None = None) -> list[Cell]:
        """Return one cell per method and run."""
        _, checksum = load_checked("madelon", data_home)
        cells = []
        for method in plan.methods:
            shared = {
                "data": checksum,
                "method": method,
                "parameters": method_settings(method, _NETWORK),
                "k": plan.k,
                "trees": N_TREES,
                "seed": plan.seed,
            }
            cells += [
                Cell(self.name, f"madelon, run {i + 1}, {method}", {**shared, "run": i}) for i in range(plan.n_runs)
            ]
        return cells

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Select on the training part, train a forest on the selection, and score it on the validation part."""
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.metrics import roc_auc_score

        dataset, _ = load_checked("madelon", data_home, settings["data"])
        method, k = settings["method"], settings["k"]
        seed = seed_from("madelon", method, k, settings["run"], settings["seed"])
        X, y = dataset.data, dataset.target
        train, test = dataset.train, dataset.test
        selector = make_seeded(method, k, seed, task="classification", network=_NETWORK)
        started = time.perf_counter()
        selector.fit(X[train], y[train])
        seconds = time.perf_counter() - started
        columns = selector.get_support(indices=True)
        forest = RandomForestClassifier(settings["trees"], random_state=seed, n_jobs=1)
        forest.fit(X[train][:, columns], y[train])
        auroc = roc_auc_score(y[test], forest.predict_proba(X[test][:, columns])[:, 1])
        return {"auroc": float(auroc), "columns": columns.tolist(), "seconds": seconds}

    def summarise(
        self, plan: MadelonPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Make the table of AUROC by method, beside the published ones."""
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
        lines = [
            [f"{get_method(r['method']).title} (here)", f"{format_cell(r['auroc'])} ± {format_cell(r['sd'])}"]
            for r in records
        ]
        lines += [[f"{name} (published)", format_cell(value)] for name, value in MADELON_AUROC.items()]
        parts = [
            f"AUROC on the 600 validation rows of a random forest ({N_TREES} trees) trained on the {plan.k} columns that each "
            f"method keeps of the 2000 training rows; mean of {plan.n_runs} run(s). Published: Passemiers et al. 2023.",
            markdown_table(["method", "AUROC"], lines),
            "### Differences to the published numbers above 0.02",
            difference_lines(
                (
                    (get_method(r["method"]).title, r["auroc"], MADELON_AUROC.get(_PUBLISHED.get(r["method"], "")))
                    for r in records
                ),
                f"one training and validation part, {plan.n_runs} run(s), and the forest's size is not published",
            ),
        ]
        parts += failure_section(failures)
        content = {
            "protocol": self.name,
            "k": plan.k,
            "rows": [{"method": method, "auroc": values} for method, values in found.items()],
            "failures": dict(sorted(failures.items())),
        }
        timing = [
            {"method": method, "median seconds of one selection": float(np.median(values))}
            for method, values in seconds.items()
        ]
        scores = [
            HeadlineScore(
                "MADELON",
                "AUROC",
                f"of a random forest on {plan.k} features, mean of {plan.n_runs} run(s)",
                r["method"],
                get_method(r["method"]).title,
                r["auroc"],
                published=MADELON_AUROC.get(_PUBLISHED.get(r["method"], "")) if plan.k == N_KEPT else None,
            )
            for r in records
            if r["auroc"] is not None
        ]
        return ProtocolSummary(f"MADELON, {plan.k} features", "\n\n".join(parts), records, content, timing, scores)
