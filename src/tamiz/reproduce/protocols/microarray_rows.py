"""Rows of the table of the microarrays: the plan, and the scores of each method and learner from finished cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.baselines.registry import get_method
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.evaluation.significance import corrected_t_tests, holm, wilcoxon_pairs
from tamiz.evaluation.stability import nogueira_stability
from tamiz.reproduce.cells import Cell
from tamiz.reproduce.learners import LEARNER_TITLES, LEARNERS, learners_of
from tamiz.reproduce.paper_numbers import MICROARRAY, MICROARRAY_FILES, STANDS_FOR
from tamiz.reproduce.protocol import REFERENCES, with_references
from tamiz.reproduce.recipes import with_recipe
from tamiz.reproduce.scores import HeadlineScore
from tamiz.reproduce.sources import display_name
from tamiz.reproduce.splits import N_FOLDS, N_REPEATS

#: Columns of the table, in the paper's order; stand-ins are labelled in every output.
MICROARRAY_DATASETS = (
    "lymphoma",
    "colon",
    "leukemia_3571",
    "leukemia",
    "lung",
    "dexter",
    "gina_rebuilt",
    "gisette_rebuilt",
)
MICROARRAY_METHODS = ("mim", "fisher", "relieff", "inffs", "ilfs", "e2efs", "e2efs-soft")
M_VALUES = (10, 50, 100, 150, 200)
ALPHA = 0.05


@dataclass(frozen=True)
class MicroarrayPlan:
    """Hold the options of a run, checked."""

    datasets: tuple[str, ...] = MICROARRAY_DATASETS
    methods: tuple[str, ...] = with_references(MICROARRAY_METHODS)
    learners: tuple[str, ...] = LEARNERS
    m_values: tuple[int, ...] = M_VALUES
    n_repeats: int = N_REPEATS
    grid: str = "small"
    seed: int = 0
    recipes: tuple[str, ...] = ("paper",)

    @property
    def n_splits(self) -> int:
        """Number of splits of each data set."""
        return N_FOLDS * self.n_repeats

    @property
    def selections(self) -> list[tuple[str, str | None]]:
        """Methods with the recipe by which each selects: one selection for each recipe, or none for a baseline."""
        return [
            (method, recipe)
            for method in self.methods
            for recipe in (self.recipes if get_method(method).trains_model else (None,))
        ]

    def scored_by(self, method: str, recipe: str | None) -> list[tuple[str, str | None]]:
        """Return the learners that score a selection, each with its recipe; the SVM of a baseline has none."""
        trains_model = get_method(method).trains_model
        return [
            (learner, its)
            for learner in learners_of(trains_model, self.learners)
            for its in ((recipe,) if trains_model else self.recipes if learner == "naive" else (None,))
        ]


@dataclass(frozen=True, eq=False)
class TableRow:
    """Hold one row of the table on one data set: ``scores[split, M]``, NaN where a cell failed."""

    dataset: str
    method: str
    learner: str
    scores: np.ndarray
    recipe: str | None = None

    @property
    def place(self) -> tuple[str, str, str | None]:
        """Method, learner and recipe, which tell it from the other rows of its data set."""
        return self.method, self.learner, self.recipe

    @property
    def by_split(self) -> np.ndarray:
        """Mean over the numbers of features, for each split (the paper's AUC-BA)."""
        return self.scores.mean(axis=1)

    @property
    def mean(self) -> float:
        """Mean of all splits and numbers of features."""
        return float(np.nanmean(self.scores)) if np.isfinite(self.scores).any() else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation over splits and numbers of features together, which the size of the paper's suggests."""
        return float(np.nanstd(self.scores)) if np.isfinite(self.scores).any() else math.nan

    @property
    def paper(self) -> tuple[float, float] | None:
        """Mean and standard deviation that the paper prints; None if it does not."""
        return MICROARRAY.get((self.method, self.learner), {}).get(self._column)

    @property
    def files(self) -> float | None:
        """Mean of the authors' published result files; None if there are none."""
        return MICROARRAY_FILES.get((self.method, self.learner), {}).get(self._column)

    @property
    def _column(self) -> str:
        """Name of the data set in the paper."""
        return STANDS_FOR.get(self.dataset, self.dataset)

    @property
    def label(self) -> str:
        """Titles of method and learner, and the recipe."""
        return with_recipe(f"{get_method(self.method).title}, {LEARNER_TITLES[self.learner]}", self.recipe)

    def headline(self, basis: str) -> HeadlineScore:
        """Return the mean as a headline score; ``basis`` says of what it is the mean."""
        return HeadlineScore(
            display_name(self.dataset),
            BALANCED_ACCURACY.name,
            basis,
            self.method,
            get_method(self.method).title,
            self.mean,
            LEARNER_TITLES[self.learner],
            self.recipe,
            None if self.paper is None else self.paper[0],
        )


def collect(plan: MicroarrayPlan, cells: Sequence[Cell], results: Mapping[str, Any]) -> dict[str, list[TableRow]]:
    """Return the rows of each data set, in the order of the plan."""
    shape = (plan.n_splits, len(plan.m_values))
    tables: dict[tuple[str, str, str], np.ndarray] = {}
    found: dict[str, list[TableRow]] = {dataset: [] for dataset in plan.datasets}
    for dataset in plan.datasets:
        for method, recipe in plan.selections:
            for learner, its in plan.scored_by(method, recipe):
                scores = np.full(shape, np.nan)
                tables[dataset, with_recipe(method, recipe), with_recipe(learner, its)] = scores
                found[dataset].append(TableRow(dataset, method, learner, scores, its))
    for cell in cells:
        result = results.get(cell.key)
        for learner, values in (result["scores"] if result else {}).items():
            tables[cell.settings["dataset"], selection_name(cell), learner][cell.settings["split"]] = values
    return found


def selection_name(cell: Cell) -> str:
    """Return the method of a cell, with the recipe by which it selects."""
    return with_recipe(cell.settings["method"], cell.settings["recipe"])


def bold_rows(rows: Sequence[TableRow]) -> set[tuple[str, str, str | None]]:
    """Return the places of the best row and those that a Wilcoxon test over the splits does not tell from it (uncorrected).

    The row of all features is no selection: it is neither compared nor bold.
    """
    known = [row for row in rows if math.isfinite(row.mean) and not get_method(row.method).keeps_all]
    if not known:
        return set()
    best = max(known, key=lambda row: row.mean)
    chosen = {best.place}
    for row in known:
        if row is not best:
            test = wilcoxon_pairs({"best": best.by_split, "row": row.by_split}, ALPHA)[0]
            if not test.significant:
                chosen.add(row.place)
    return chosen


def behind_rows(rows: Sequence[TableRow]) -> set[Any]:
    """Return the rows that the corrected resampled t test, after Holm over these tests, tells from the best row.

    Splits of 20 repeats share rows, so that the paper's own rule finds too much; all features and random ones are not
    tested.
    """
    known = [row for row in rows if math.isfinite(row.mean) and row.method not in REFERENCES]
    if len(known) < 2:
        return set()
    best = max(known, key=lambda row: row.mean)
    others = [row for row in known if row is not best]
    tests = [corrected_t_tests({"best": best.by_split, "row": row.by_split}, 1 / N_FOLDS)[0] for row in others]
    corrected = holm([test.p_value for test in tests])
    return {row.place for row, p in zip(others, corrected, strict=True) if p < ALPHA}


def stabilities(
    plan: MicroarrayPlan, cells: Sequence[Cell], results: Mapping[str, Any]
) -> dict[tuple[str, str], list[float]]:
    """Return Nogueira's stability for each M, by (data set, method with its recipe)."""
    supports: dict[tuple[str, str], list[Any]] = {}
    widths: dict[str, int] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result and result["support"] is not None:
            supports.setdefault((cell.settings["dataset"], selection_name(cell)), []).append(result["support"])
            widths[cell.settings["dataset"]] = result["n_features"]
    found = {}
    for (dataset, method), splits in supports.items():
        if len(splits) < 2:
            continue
        values = []
        for position in range(len(plan.m_values)):
            chosen = np.zeros((len(splits), widths[dataset]), dtype=bool)
            for number_, split in enumerate(splits):
                chosen[number_, split[position]] = True
            values.append(nogueira_stability(chosen))
        found[dataset, method] = values
    return found
