"""Protocols against known truth: the share of true features found, and MADELON with 20 features.

Both stand beside the numbers of Passemiers et al. 2023.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import make_seeded
from tamiz.paper.generators import make_ring, make_ring_xor, make_ring_xor_sum, make_xor
from tamiz.paper.numbers import GROUND_TRUTH, MADELON_AUROC
from tamiz.paper.protocol import Cell, Protocol, seed_from
from tamiz.paper.recipes import checksum, load_checked, parameters_of
from tamiz.paper.tables import TableRow, format_cell, markdown_table

#: Problems with the fewest columns that they can have.
PROBLEMS: dict[str, tuple[Callable[..., Any], int]] = {
    "ring": (make_ring, 4),
    "xor": (make_xor, 4),
    "ring+xor": (make_ring_xor, 4),
    "ring+xor+sum": (make_ring_xor_sum, 8),
}
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
N_ROWS = 1000
#: Network of the variants of E2E-FS: no single column tells the classes apart.
_NETWORK = "mlp"
#: What a method needs for these problems: the F statistic, the default of mRMR, sees no ring whatever its rows.
PARAMETERS: dict[str, dict[str, Any]] = {"mrmr": {"relevance": "mutual_info"}}
#: Ours -> the name of the same method in the publication.
PUBLISHED = {
    "random": "random",
    "mim": "mutual information",
    "relieff": "ReliefF",
    "random-forest": "random forest",
    "mrmr": "mRMR",
}


@lru_cache(maxsize=8)
def make_truth_table(problem: str, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Make the table of a problem and a number of columns: one per seed, shared by all methods and folds."""
    return PROBLEMS[problem][0](N_ROWS, n_features, random_state=seed_from("ground-truth", problem, n_features, seed))


def _fit(method: str, m: int, seed: int, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """Fit a selector; return it and the seconds."""
    more = PARAMETERS.get(method, {})
    selector = make_seeded(method, m, seed, task="classification", network=_NETWORK, **more)
    started = time.perf_counter()
    selector.fit(X, y)
    return selector, time.perf_counter() - started


def _parameters(method: str) -> dict[str, str]:
    return parameters_of(make_seeded(method, 1, 0, network=_NETWORK, **PARAMETERS.get(method, {})))


def _published_table(rows: Mapping[str, Mapping[str, float]], columns: Sequence[str]) -> str:
    lines = [[name, *(format_cell(row[column], 3) for column in columns)] for name, row in rows.items()]
    return "### Published (Passemiers et al. 2023)\n\n" + markdown_table(["method", *columns], lines)


class GroundTruth(Protocol):
    """The share of true features found on tables whose truth is known: rings, xors and their mixtures.

    Examples
    --------
    >>> GroundTruth(problems=["XOR"], methods=["relieff"], sizes=[8]).methods
    ('relieff', 'random')
    """

    name = "ground-truth"
    measure = "share of the true features found"
    unit, digits = "folds", 2
    references = ("random",)
    choices: ClassVar = {"problems": tuple(PROBLEMS)}
    least: ClassVar = {**Protocol.least, "folds": 2}

    problems: Sequence[str] = tuple(PROBLEMS)
    methods: Sequence[str] = ("pairs", "pair-search", "e2efs-soft", "e2efs", "random-forest", "mrmr", "relieff")
    sizes: Sequence[int] = SIZES
    folds: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(get_method(method).keeps_all for method in self.methods):
            raise ValueError("Keeping all features finds every true one: leave 'all' out of this table.")
        least = max(PROBLEMS[name][1] for name in self.problems)
        if min(self.sizes) < least:
            raise ValueError(f"The numbers of columns p must be at least {least}, got {list(self.sizes)}.")

    @property
    def test_share(self) -> float:  # type: ignore[override]
        """Share of the rows that a fold tests on."""
        return 1 / self.folds

    def make_cells(self, data_home: str | None = None) -> list[Cell]:
        """Make one cell per table, method and fold, the widest tables first."""
        parameters = {method: _parameters(method) for method in self.methods}
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
                        "seed": self.seed,
                    }
                    cells += self.repeat(f"{problem}, p = {size}, fold {{}}, {method}", settings, self.folds)
        return cells

    @staticmethod
    def run_cell(settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Select as many features as are true on the training rows of one fold; return the share of true ones."""
        from sklearn.model_selection import StratifiedKFold

        problem, method, fold, seed = (settings[name] for name in ("dataset", "method", "unit", "seed"))
        (size,) = settings["sizes"]
        X, y, truth = make_truth_table(problem, size, seed)
        if checksum(X, y) != settings["data"]:
            raise ValueError(f"the table of {problem}, p = {size}, is not the one that the run was planned with.")
        folds = StratifiedKFold(settings["folds"], shuffle=True, random_state=seed_from("folds", problem, size, seed))
        rows = list(folds.split(X, y))[fold][0]
        own_seed = seed_from("ground-truth", problem, size, fold, seed, method)
        selector, seconds = _fit(method, truth.relevant.size, own_seed, X[rows], y[rows])
        share = truth.share_found(selector.get_support(indices=True))
        converged = bool(selector.selection_.converged)
        return {"scores": [["", None, [share]]], "seconds": [seconds], "converged": [converged]}

    def describe(self, cells: Sequence[Cell], results: Mapping[str, Any]) -> tuple[str, str, str]:
        """Title, introduction, and what the scores are means of."""
        return (
            "Ground truth",
            f"Share of the true features among the best k, where k is how many there are: mean of {self.folds} "
            f"folds of {N_ROWS} rows (each selection sees {N_ROWS - N_ROWS // self.folds} of them) and of p = "
            f"{', '.join(map(str, self.sizes))} columns. E2E-FS and E2E-FS-Soft train the three-layer network, E2E-FS-Pairs "
            "curves and products of pairs, all at their defaults; mRMR measures relevance by mutual information. Published "
            "numbers are means over p = 8 to 2048 on other files: compare trends, not digits. There is no row for all "
            "features, which hold every true one.",
            "mean over p = {sizes} and {n} folds",
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
        return [_published_table(GROUND_TRUTH, self.problems)]


class Madelon(Protocol):
    """MADELON with 20 features: the AUROC of a random forest on what each method keeps."""

    name = "madelon"
    measure = "AUROC"
    unit = "runs"
    n_trees = 500

    methods: Sequence[str] = ("e2efs-soft", "e2efs", "random-forest", "relieff", "mim", "fisher", "pair-search")
    k: int = 20
    runs: int = 5

    def make_cells(self, data_home: str | None = None) -> list[Cell]:
        """Make one cell per method and run."""
        _, data = load_checked("madelon", data_home)
        cells = []
        for method in self.methods:
            about = {"dataset": "madelon", "data": data, "method": method, "parameters": _parameters(method)}
            settings = {**about, "sizes": [self.k], "trees": self.n_trees, "seed": self.seed}
            cells += self.repeat(f"madelon, run {{}}, {method}", settings, self.runs)
        return cells

    @staticmethod
    def run_cell(settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Select on the training part, train a forest on the selection, and score it on the validation part."""
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.metrics import roc_auc_score

        dataset, _ = load_checked("madelon", data_home, settings["data"])
        method, (k,) = settings["method"], settings["sizes"]
        seed = seed_from("madelon", method, k, settings["unit"], settings["seed"])
        X, y, train, test = dataset.data, dataset.target, dataset.train, dataset.test
        selector, seconds = _fit(method, k, seed, X[train], y[train])
        columns = selector.get_support(indices=True)
        forest = RandomForestClassifier(settings["trees"], random_state=seed, n_jobs=1)
        forest.fit(X[train][:, columns], y[train])
        auroc = roc_auc_score(y[test], forest.predict_proba(X[test][:, columns])[:, 1])
        return {
            "scores": [["", None, [float(auroc)]]],
            "support": None if get_method(method).keeps_all else [columns.tolist()],
            "n_features": int(X.shape[1]),
            "seconds": [seconds],
            "converged": [bool(selector.selection_.converged)],
        }

    def describe(self, cells: Sequence[Cell], results: Mapping[str, Any]) -> tuple[str, str, str]:
        """Title, introduction, and what the scores are means of."""
        return (
            f"MADELON, {self.k} features",
            f"AUROC on the 600 validation rows of a random forest ({self.n_trees} trees) trained on the {self.k} "
            f"columns that each method keeps of the 2000 training rows; mean of {self.runs} run(s).",
            "of a random forest on {sizes} features, mean of {n} run(s)",
        )

    def published(self, row: TableRow) -> tuple[Sequence[float | None], float | None]:
        """Published AUROC with 20 features."""
        return (), MADELON_AUROC.get(PUBLISHED.get(row.method, "")) if self.k == 20 else None

    def reasons(self, row: TableRow) -> list[str]:
        """Known differences to the publication."""
        return ["one training and validation part, and the forest's size is not published"]

    def sections(self, rows: Sequence[TableRow]) -> list[str]:
        """Add the published table."""
        return [_published_table({name: {"AUROC": value} for name, value in MADELON_AUROC.items()}, ["AUROC"])]
