"""The paper's table "Microarray and FS challenge": 3-fold x 20, five numbers of features, mean balanced accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.reproduce import learners as judges
from tamiz.reproduce import selectors
from tamiz.reproduce.cells import Cell, seed_from
from tamiz.reproduce.sources import load_checked, nonzero_columns, pick_name
from tamiz.datasets.registry import find_entry

#: The table's columns here, in the paper's order; stand-ins are labelled in every output.
DATASETS = ("lymphoma", "colon", "leukemia_3571", "lung", "dexter", "gina_rebuilt", "gisette_rebuilt")
METHODS = ("mim", "fisher", "relieff", "inffs", "ilfs", "e2efs", "e2efs-soft")
#: Rows that every table has: what chance and no selection give.
REFERENCES = ("random", "all")
M_VALUES = (10, 50, 100, 150, 200)
N_FOLDS, N_REPEATS, SPLIT_SEED = 3, 20, 42


@dataclass(frozen=True)
class MicroarrayPlan:
    """What is asked for; :func:`make_plan` checks it."""

    datasets: tuple[str, ...] = DATASETS
    methods: tuple[str, ...] = (*METHODS, *REFERENCES)
    learners: tuple[str, ...] = judges.LEARNERS
    m_values: tuple[int, ...] = M_VALUES
    n_repeats: int = N_REPEATS
    grid: str = "small"
    seed: int = 0

    @property
    def n_splits(self) -> int:
        """Splits of each data set."""
        return N_FOLDS * self.n_repeats


def make_plan(
    datasets: Sequence[str] = DATASETS,
    methods: Sequence[str] = METHODS,
    learners: Sequence[str] = judges.LEARNERS,
    m_values: Sequence[int] = M_VALUES,
    n_repeats: int = N_REPEATS,
    grid: str = "small",
    seed: int = 0,
) -> MicroarrayPlan:
    """A plan with every name checked, and the rows for random and for all features added.

    Examples
    --------
    >>> make_plan(["COLON"], ["Fisher"]).methods
    ('fisher', 'random', 'all')
    >>> make_plan(["colon"], ["fischer"])
    Traceback (most recent call last):
    tamiz.reproduce.sources.UnknownNameError: Unknown method 'fischer'. Did you mean 'fisher'? ...
    """
    names = [selectors.pick_method(name) for name in methods]
    if n_repeats < 1:
        raise ValueError(f"At least one repeat is needed, got {n_repeats}.")
    if not m_values or min(m_values) < 1:
        raise ValueError(f"Numbers of features are integers from 1, got {list(m_values)}.")
    return MicroarrayPlan(
        tuple(dict.fromkeys(find_entry(name).name for name in datasets)),
        tuple(dict.fromkeys([*names, *REFERENCES])),
        tuple(dict.fromkeys(pick_name(name, judges.LEARNERS, "learner") for name in learners)),
        tuple(sorted(set(m_values))),
        n_repeats,
        pick_name(grid, list(judges.GRIDS), "grid"),
        seed,
    )


def make_cells(plan: MicroarrayPlan, data_home: str | None = None) -> list[Cell]:
    """All cells of a plan, the longest data sets first, so that none is left over at the end."""
    cells = []
    for name in sorted(plan.datasets, key=lambda name: -np.prod(find_entry(name).shape)):
        _, checksum = load_checked(name, data_home)
        for method in plan.methods:
            chosen = judges.learners_of(selectors.is_own(method), plan.learners)
            shared = {
                "dataset": name,
                "data": checksum,
                "method": method,
                "parameters": selectors.method_settings(method),
                "m_values": list(plan.m_values),
                "learners": {learner: judges.learner_settings(learner, plan.grid) for learner in chosen},
                "grid": plan.grid,
                "folds": N_FOLDS,
                "split_seed": SPLIT_SEED,
                "seed": plan.seed,
            }
            cells += [
                Cell("microarray", f"{name}, split {split + 1}, {method}", {**shared, "split": split})
                for split in range(plan.n_splits)
            ]
    return cells


def split_rows(y: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of one split: later repeats do not change earlier ones.

    Examples
    --------
    >>> train, test = split_rows(np.array([0, 0, 0, 1, 1, 1]), 4)
    >>> train.size, test.size
    (4, 2)
    """
    from sklearn.model_selection import RepeatedStratifiedKFold

    splitter = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=split // N_FOLDS + 1, random_state=SPLIT_SEED)
    return list(splitter.split(np.zeros((y.size, 1)), y))[split]


def run_cell(settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
    """One method on one split, for every M and learner.

    Returns
    -------
    dict
        ``scores[learner]``: one number for each M; ``support``: the columns kept for each M (None for the method that
        keeps all); ``seconds``: of each selection; ``converged``; ``n_features``.
    """
    name, method, split = settings["dataset"], settings["method"], settings["split"]
    dataset, _ = load_checked(name, data_home, settings["data"])
    train_rows, test_rows = split_rows(dataset.target, split)
    alive = nonzero_columns(dataset.data[train_rows])
    train, test = dataset.data[train_rows][:, alive], dataset.data[test_rows][:, alive]
    y_train, y_test = dataset.target[train_rows], dataset.target[test_rows]
    m_values = settings["m_values"]
    identity = ("microarray", name, split, settings["seed"])
    found = selectors.select_for_all(method, train, y_train, m_values, identity)
    scores: dict[str, list[float]] = {learner: [] for learner in settings["learners"]}
    for learner, series in scores.items():
        for m, picked in zip(m_values, found, strict=True):
            if method == "all" and series:  # the same columns for every M
                series.append(series[0])
                continue
            seed = seed_from(*identity, method, m, learner)
            series.append(judges.judge(learner, picked, train, y_train, test, y_test, settings["grid"], seed))
    return {
        "scores": scores,
        "support": None if method == "all" else [alive[picked.columns].tolist() for picked in found],
        "seconds": [picked.seconds for picked in found],
        "converged": [picked.converged for picked in found],
        "n_features": int(dataset.data.shape[1]),
    }
