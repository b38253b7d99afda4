"""Ground truth: the share of the true features that a method finds, on tables whose truth is known."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tamiz._utils.names import pick_name
from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import make_seeded, pick_methods
from tamiz.paper import make_ring, make_ring_xor, make_ring_xor_sum, make_xor
from tamiz.paper.numbers import GROUND_TRUTH
from tamiz.paper.protocol import METHODS_OPTION, SEED_OPTION, Protocol, ProtocolOption, with_references
from tamiz.paper.recipes import checksum, method_settings
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


@dataclass(frozen=True)
class TruthProblem:
    """Describe a problem whose true features are known: how its table is made, and the fewest columns it can have."""

    make: Callable[..., Any]
    fewest_columns: int = 4


PROBLEMS = {
    "ring": TruthProblem(make_ring),
    "xor": TruthProblem(make_xor),
    "ring+xor": TruthProblem(make_ring_xor),
    "ring+xor+sum": TruthProblem(make_ring_xor_sum, fewest_columns=8),
}
_METHODS = ("pairs", "pair-search", "e2efs-soft", "e2efs", "random-forest", "mrmr", "relieff")
REFERENCE = "random"
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
N_ROWS, N_FOLDS = 1000, 6
#: Network of the variants of E2E-FS: a linear model sees neither a ring nor a xor.
_NETWORK = "mlp"
#: What a method needs for these problems: the F statistic, the default of mRMR, sees no ring whatever its rows.
PARAMETERS: dict[str, dict[str, Any]] = {"mrmr": {"relevance": "mutual_info"}}
#: Ours -> the name of the same method in the publication.
_PUBLISHED = {"random-forest": "random forest", "mrmr": "mRMR", "relieff": "ReliefF"}


@dataclass(frozen=True)
class GroundTruthPlan:
    """Hold the options of a run, checked."""

    problems: tuple[str, ...]
    methods: tuple[str, ...]
    sizes: tuple[int, ...]
    n_folds: int
    seed: int


@lru_cache(maxsize=8)
def make_truth_table(problem: str, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the table of a problem and a number of columns: one per seed, shared by all methods and folds."""
    return PROBLEMS[problem].make(N_ROWS, n_features, random_state=seed_from("ground-truth", problem, n_features, seed))


class GroundTruth(Protocol):
    """Count the true features among the best, on rings, xors and their mixtures."""

    name = "ground-truth"
    headline = "True features found, on tables with a known truth."
    description = "The share of true features found on tables whose truth is known. Needs no data set."
    example = "--problems xor --sizes 8,64"
    options = (
        ProtocolOption(
            "problems", ("--problems",), f"Separated by commas: {', '.join(PROBLEMS)}.", "words", shown_default="all"
        ),
        METHODS_OPTION,
        ProtocolOption(
            "sizes", ("--sizes",), "Numbers of columns p, separated by commas.", "integers", shown_default="8 to 2048"
        ),
        ProtocolOption("n_folds", ("--folds",), "Folds of each table.", "integer", shown_default="6", minimum=2),
        SEED_OPTION,
    )

    def make_plan(
        self,
        problems: Sequence[str] = tuple(PROBLEMS),
        methods: Sequence[str] = _METHODS,
        sizes: Sequence[int] = SIZES,
        n_folds: int = N_FOLDS,
        seed: int = 0,
    ) -> GroundTruthPlan:
        """Return a plan with every name checked, and a row for random features.

        Examples
        --------
        >>> GroundTruth().make_plan(["XOR"], ["relieff"], [8]).methods
        ('relieff', 'random')
        """
        names = [pick_name(name, PROBLEMS, "problem") for name in problems]
        chosen = pick_methods(methods)
        if any(get_method(method).keeps_all for method in chosen):
            raise ValueError("Keeping all features finds every true one: leave 'all' out of this table.")
        least = max(PROBLEMS[name].fewest_columns for name in names)
        if not sizes or min(sizes) < least:
            raise ValueError(f"The numbers of columns p must be at least {least}, got {list(sizes)}.")
        if n_folds < 2:
            raise ValueError(f"At least 2 folds are needed, got {n_folds}.")
        return GroundTruthPlan(
            tuple(dict.fromkeys(names)),
            with_references(chosen, [REFERENCE]),
            tuple(sorted(set(sizes))),
            n_folds,
            seed,
        )

    def make_cells(self, plan: GroundTruthPlan, data_home: str | None = None) -> list[Cell]:
        """Return one cell per table, method and fold, the widest tables first."""
        parameters = {
            method: method_settings(method, _NETWORK, **PARAMETERS.get(method, {})) for method in plan.methods
        }
        cells = []
        for size in reversed(plan.sizes):
            for problem in plan.problems:
                X, y, _ = make_truth_table(problem, size, plan.seed)
                data = checksum(X, y)
                for method in plan.methods:
                    shared = {
                        "problem": problem,
                        "n_features": size,
                        "data": data,
                        "method": method,
                        "parameters": parameters[method],
                        "folds": plan.n_folds,
                        "seed": plan.seed,
                    }
                    cells += [
                        Cell(self.name, f"{problem}, p = {size}, fold {fold + 1}, {method}", {**shared, "fold": fold})
                        for fold in range(plan.n_folds)
                    ]
        return cells

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Select as many features as are true on the training rows of one fold; return the share of true ones."""
        from sklearn.model_selection import StratifiedKFold

        problem, size, method, seed = (settings[name] for name in ("problem", "n_features", "method", "seed"))
        X, y, truth = make_truth_table(problem, size, seed)
        if checksum(X, y) != settings["data"]:
            raise ValueError(f"the table of {problem}, p = {size}, is not the one that the run was planned with.")
        folds = StratifiedKFold(settings["folds"], shuffle=True, random_state=seed_from("folds", problem, size, seed))
        rows = list(folds.split(X, y))[settings["fold"]][0]
        own_seed = seed_from("ground-truth", problem, size, settings["fold"], seed, method)
        more = PARAMETERS.get(method, {})
        selector = make_seeded(method, truth.relevant.size, own_seed, task="classification", network=_NETWORK, **more)
        started = time.perf_counter()
        selector.fit(X[rows], y[rows])
        return {
            "share": truth.share_found(selector.get_support(indices=True)),
            "seconds": time.perf_counter() - started,
            "converged": bool(selector.selection_.converged),
        }

    def summarise(
        self, plan: GroundTruthPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Make tables of the shares by problem, method and p, and of their means beside the published ones."""
        shares: dict[tuple[str, str, int], list[float]] = {}
        seconds: dict[tuple[str, int], list[float]] = {}
        for cell in cells:
            result = results.get(cell.key)
            if result:
                problem, method, size = (cell.settings[name] for name in ("problem", "method", "n_features"))
                shares.setdefault((problem, method, size), []).append(result["share"])
                seconds.setdefault((method, size), []).append(result["seconds"])
        means = {place: float(np.mean(values)) for place, values in shares.items()}
        parts = [
            f"Share of the true features among the best k, where k is how many there are: mean of {plan.n_folds} folds of "
            f"{N_ROWS} rows (each selection sees {N_ROWS - N_ROWS // plan.n_folds} of them). "
            "E2E-FS and E2E-FS-Soft train the three-layer network, E2E-FS-Pairs curves and products of pairs, all at their "
            "defaults; mRMR measures relevance by mutual information. The "
            "published rows (Passemiers et al. 2023) are the mean over p = 8 to 2048 on their own files: compare trends, not "
            "digits. There is no row for all features, which hold every true one.",
            _mean_table(plan, means),
        ]
        if plan.sizes == SIZES:  # the published means are over all of them
            reason = "tables, folds and settings of the method are not theirs"
            parts += [
                "### Differences to the published numbers above 0.02",
                difference_lines(_pairs(plan, means), reason, digits=2),
            ]
        for problem in plan.problems:
            parts += [f"### {problem}, by the number of columns p", _size_table(plan, problem, means)]
        parts += failure_section(failures)
        records = [
            {
                "problem": problem,
                "method": method,
                "p": size,
                "share": mean,
                "folds": len(shares[problem, method, size]),
            }
            for (problem, method, size), mean in means.items()
        ]
        content = {
            "protocol": self.name,
            "sizes": list(plan.sizes),
            "folds": plan.n_folds,
            "seed": plan.seed,
            "rows": [
                {"problem": problem, "method": method, "p": size, "shares": values}
                for (problem, method, size), values in shares.items()
            ],
            "failures": dict(sorted(failures.items())),
        }
        timing = [
            {"method": method, "p": size, "median seconds of one selection": float(np.median(values))}
            for (method, size), values in seconds.items()
        ]
        return ProtocolSummary("Ground truth", "\n\n".join(parts), records, content, timing, _headlines(plan, means))


def _over_sizes(plan: GroundTruthPlan, means: Mapping[Any, float], problem: str, method: str) -> float:
    values = [means.get((problem, method, size), math.nan) for size in plan.sizes]
    return float(np.mean(values))


def _headlines(plan: GroundTruthPlan, means: Mapping[Any, float]) -> list[HeadlineScore]:
    """Return the mean share over the numbers of columns; published means are over all of :data:`SIZES`."""
    sizes = ", ".join(map(str, plan.sizes))
    published = _PUBLISHED if plan.sizes == SIZES else {}
    return [
        HeadlineScore(
            problem,
            "share of the true features found",
            f"mean over p = {sizes} and {plan.n_folds} folds",
            method,
            get_method(method).title,
            _over_sizes(plan, means, problem, method),
            published=GROUND_TRUTH[published[method]][problem] if method in published else None,
        )
        for problem in plan.problems
        for method in plan.methods
    ]


def _pairs(plan: GroundTruthPlan, means: Mapping[Any, float]) -> Iterator[tuple[str, float | None, float | None]]:
    """Return name, share here and published share of the methods that are in both."""
    for problem in plan.problems:
        for method, name in _PUBLISHED.items():
            if method in plan.methods:
                share = finite(_over_sizes(plan, means, problem, method))
                yield f"{problem}, {get_method(method).title}", share, GROUND_TRUTH[name][problem]


def _mean_table(plan: GroundTruthPlan, means: Mapping[Any, float]) -> str:
    sizes = f"{plan.sizes[0]} to {plan.sizes[-1]}" if len(plan.sizes) > 1 else str(plan.sizes[0])
    lines = [
        [f"{get_method(method).title} (here, p = {sizes})"]
        + [format_cell(finite(_over_sizes(plan, means, problem, method)), 2) for problem in plan.problems]
        for method in plan.methods
    ]
    lines += [
        [f"{name} (published)", *(format_cell(row[problem], 2) for problem in plan.problems)]
        for name, row in GROUND_TRUTH.items()
    ]
    return markdown_table(["method", *plan.problems], lines)


def _size_table(plan: GroundTruthPlan, problem: str, means: Mapping[Any, float]) -> str:
    lines = [
        [get_method(method).title, *(format_cell(means.get((problem, method, size)), 2) for size in plan.sizes)]
        for method in plan.methods
    ]
    return markdown_table(["method", *map(str, plan.sizes)], lines)
