"""Protocol against known truth: the share of true features found, beside the numbers of Passemiers et al. 2023."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tamiz.baselines.registry import get_method, make_selector
from tamiz.paper.generators import PROBLEMS, make_ground_truth
from tamiz.paper.numbers import GROUND_TRUTH
from tamiz.paper.protocol import Cell, Protocol, seed_from
from tamiz.paper.recipes import checksum, parameters_of
from tamiz.paper.tables import TableRow, format_cell, markdown_table

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
N_ROWS = 1000
#: Network of the variants of E2E-FS: no single column tells the classes apart.
_NETWORK = "mlp"
#: What a method needs for these problems: the F statistic, the default of mRMR, sees no ring whatever its rows.
PARAMETERS: dict[str, dict[str, Any]] = {"mrmr": {"relevance": "mutual_info"}}
#: Ours -> the name of the same method in the publication.
PUBLISHED = {"relieff": "ReliefF", "random-forest": "random forest", "mrmr": "mRMR"}


@lru_cache(maxsize=8)
def make_truth_table(problem: str, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Make the table of a problem and a number of columns: one per seed, shared by all methods and folds."""
    seed = seed_from("ground-truth", problem, n_features, seed)
    return make_ground_truth(problem, N_ROWS, n_features, random_state=seed)


def _selector(method: str, m: int, seed: int) -> Any:
    more = PARAMETERS.get(method, {})
    return make_selector(method, m, task="classification", random_state=seed, network=_NETWORK, **more)


class GroundTruth(Protocol):
    """The share of true features found on tables whose truth is known: rings, xors and their mixtures.

    Examples
    --------
    >>> GroundTruth(problems=["XOR"], methods=["relieff"], sizes=[8]).methods
    ('relieff', 'random')
    """

    name = "ground-truth"
    measure = "share of the true features found"
    unit, digits = "fold", 2
    references = ("random",)
    choices: ClassVar = {"problems": PROBLEMS}
    least: ClassVar = {**Protocol.least, "folds": 2}

    problems: Sequence[str] = PROBLEMS
    methods: Sequence[str] = ("pairs", "pair-search", "e2efs-soft", "e2efs", "random-forest", "mrmr", "relieff")
    sizes: Sequence[int] = SIZES
    folds: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(get_method(method).keeps_all for method in self.methods):
            raise ValueError("Keeping all features finds every true one: leave 'all' out of this table.")
        least = 8 if "ring+xor+sum" in self.problems else 4
        if min(self.sizes) < least:
            raise ValueError(f"The numbers of columns p must be at least {least}, got {list(self.sizes)}.")

    @property
    def test_share(self) -> float:  # type: ignore[override]
        """Share of the rows that a fold tests on."""
        return 1 / self.folds

    def make_cells(self, data_home: str | None = None) -> list[Cell]:
        """Make one cell per table, method and fold, the widest tables first."""
        parameters = {method: parameters_of(_selector(method, 1, 0)) for method in self.methods}
        cells = []
        for size in reversed(self.sizes):
            for problem in self.problems:
                data = checksum(*make_truth_table(problem, size, self.seed)[:2])
                for method in self.methods:
                    settings = {
                        "dataset": problem,
                        "sizes": [size],
                        "data": data,
                        "method": method,
                        "parameters": parameters[method],
                        "folds": self.folds,
                    }
                    cells += self.repeat(f"{problem}, p = {size}, fold {{}}, {method}", settings, self.folds)
        return cells

    @classmethod
    def run_cell(cls, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Select as many features as are true on the training rows of one fold; return the share of true ones."""
        from sklearn.model_selection import StratifiedKFold

        problem, method, fold, seed = (settings[name] for name in ("dataset", "method", "unit", "seed"))
        (size,) = settings["sizes"]
        X, y, truth = make_truth_table(problem, size, seed)
        if checksum(X, y) != settings["data"]:
            raise ValueError(f"the table of {problem}, p = {size}, is not the one that the run was planned with.")
        folds = StratifiedKFold(settings["folds"], shuffle=True, random_state=seed_from("folds", problem, size, seed))
        rows = list(folds.split(X, y))[fold][0]
        selector = _selector(method, truth.relevant.size, seed_from("ground-truth", problem, size, fold, seed, method))
        started = time.perf_counter()
        selector.fit(X[rows], y[rows])
        seconds = time.perf_counter() - started
        share = truth.share_found(selector.get_support(indices=True))
        converged = bool(selector.selection_.converged)
        return {"scores": [["", None, [share]]], "seconds": [seconds], "converged": [converged]}

    def describe(self, cells: Sequence[Cell], results: Mapping[str, Any]) -> tuple[str, str, str]:
        """Title, introduction, and what the scores are means of."""
        return (
            "Ground truth",
            f"Share of the true features among the best k, where k is how many there are: mean of {self.folds} "
            f"folds of {N_ROWS:,} rows (each selection sees {N_ROWS - N_ROWS // self.folds} of them) and of p = "
            f"{', '.join(map(str, self.sizes))} columns. E2E-FS and E2E-FS-Soft train the three-layer network, E2E-FS-Pairs "
            "curves and products of pairs, all at their defaults; mRMR measures relevance by mutual information. Published "
            "numbers are means over p = 8 to 2048 on other files: compare trends, not digits. There is no row for all "
            "features, which hold every true one.",
            "mean over p = {sizes} and {units}",
        )

    def published(self, row: TableRow) -> tuple[Sequence[float | None], float | None]:
        """Published means, which are over all sizes."""
        known = GROUND_TRUTH.get(PUBLISHED.get(row.method, "")) if row.sizes == SIZES else None
        return (), None if known is None else known[row.dataset]

    def reasons(self, row: TableRow) -> list[str]:
        """Known differences to the publication."""
        return ["tables, folds and settings of the method are not theirs"]

    def sections(self, rows: Sequence[TableRow]) -> list[str]:
        """Add the published table."""
        lines = [
            [name, *(format_cell(row[problem]) for problem in self.problems)] for name, row in GROUND_TRUTH.items()
        ]
        return ["### Published (Passemiers et al. 2023)", markdown_table(["method", *self.problems], lines)]
