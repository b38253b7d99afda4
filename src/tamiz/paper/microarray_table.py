"""Table of the microarrays from finished cells: rows, means, bold by Wilcoxon, ranks, stability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.intervals import corrected_t_tests, friedman_ranks, holm, wilcoxon_pairs
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.evaluation.stability import nogueira_stability
from tamiz.paper.dataset_registry import find_entry
from tamiz.paper.numbers import MICROARRAY, MICROARRAY_FILES, STANDS_FOR
from tamiz.paper.protocol import REFERENCES, ComparisonPage, with_references
from tamiz.paper.recipes import (
    LEARNER_TITLES,
    LEARNERS,
    N_FOLDS,
    N_REPEATS,
    display_name,
    learners_of,
    recipe_sentence,
    with_recipe,
)
from tamiz.paper.store import Cell, HeadlineScore, ProtocolSummary, failure_section, finite, format_cell, markdown_table

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


#: Differences to the paper above this get a sentence.
NOTABLE = 0.02


def _seconds(cells: Sequence[Cell], results: Mapping[str, Any]) -> list[dict[str, Any]]:
    seconds: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result:
            place = (cell.settings["dataset"], selection_name(cell))
            seconds.setdefault(place, []).append(float(np.mean(result["seconds"])))
    return [
        {"dataset": dataset, "method": method, "median seconds of one selection": float(np.median(values))}
        for (dataset, method), values in seconds.items()
    ]


def difference_sentence(row: TableRow, grid: str) -> str | None:
    """Return a sentence on a difference to the paper above :data:`NOTABLE`; None for a smaller one.

    It says what the figures tell: whether the data are a stand-in, and how far the splits alone scatter.
    """
    if row.paper is None or not abs(row.mean - row.paper[0]) > NOTABLE:
        return None
    entry = find_entry(row.dataset)
    gap = row.mean - row.paper[0]
    reasons = []
    if entry.label:
        reasons.append(f"the data are {entry.label.lower()}, not the paper's rows")
    elif row.dataset == "leukemia_3571":
        reasons.append("the paper names 7129 genes, these are the 3571 of the authors' file")
    elif row.dataset == "leukemia":
        reasons.append("these are the 7129 genes of the paper's text; the authors' file has 3571")
    splits = row.by_split[np.isfinite(row.by_split)]
    scatter = float(splits.std()) if splits.size else math.nan
    inside = "less" if abs(gap) <= scatter else "more"
    reasons.append(f"it is {inside} than the scatter over single splits ({scatter:.3f})")
    if row.recipe == "tamiz":
        reasons.append("it was trained by the defaults of tamiz, not by the paper's recipe")
    if row.files is not None:
        reasons.append(f"the authors' result files have {row.files:.3f}")
    if row.learner == "svm" and grid == "small":
        reasons.append("the SVM chose from the small grid")
    if row.method in ("inffs", "ilfs"):
        reasons.append("what is known of the rest stands in the documentation of the method")
    return (
        f"{display_name(row.dataset)}, {row.label}: {row.mean:.3f} here, {row.paper[0]:.3f} in the paper "
        f"({gap:+.3f}); {'; '.join(reasons)}."
    )


def summarise_microarray(
    plan: MicroarrayPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
) -> ProtocolSummary:
    """Make all tables of the protocol."""
    tables = collect(plan, cells, results)
    bold = {dataset: bold_rows(rows) for dataset, rows in tables.items()}
    behind = {dataset: behind_rows(rows) for dataset, rows in tables.items()}
    # The rows are in the same order for every data set.
    lines = list(zip(*tables.values(), strict=True))
    ranks = friedman_ranks({rows[0].label: [row.mean for row in rows] for rows in lines})
    stable = stabilities(plan, cells, results)
    sentences = [difference_sentence(row, plan.grid) for rows in tables.values() for row in rows]
    parts = [
        _introduction(plan),
        _main_table(plan, lines, bold, behind, ranks),
        _rank_sentence(ranks, len(plan.datasets)),
        "### Differences to the paper above 0.02",
        "\n".join(f"- {sentence}" for sentence in sentences if sentence) or "None.",
        "### Stability of the selection\n\nNogueira's index, mean over the numbers of features; 1 is the same features in "
        "every split. Splits share training rows, so that even labels without meaning give more than 0.",
        _stability_table(plan, stable),
        *failure_section(failures),
    ]
    return ProtocolSummary(
        "Microarray and FS challenge: " + ", ".join(map(display_name, plan.datasets)),
        "\n\n".join(parts),
        _records(plan, tables, bold, behind, stable),
        _content(plan, tables, bold, behind, ranks, stable, failures),
        _seconds(cells, results),
        [row.headline(f"mean over {_over(plan)}") for rows in tables.values() for row in rows],
    )


def _over(plan: MicroarrayPlan) -> str:
    return f"M = {', '.join(map(str, plan.m_values))} and {plan.n_splits} splits"


def _introduction(plan: MicroarrayPlan) -> str:
    solver = "the grid of the authors' code" if plan.grid == "full" else "C from 0.001, 0.1, 1, 100, squared hinge"
    return (
        f"Mean balanced accuracy over {_over(plan)} (3-fold x {plan.n_repeats}), ± the standard "
        "deviation over both; **bold**, by the paper's rule: the best row of a column and those that a Wilcoxon test over "
        "the splits (0.05) does not tell from it. The splits share rows, which that test does not know: ↓ marks rows that "
        "the corrected resampled t test (Holm over the rows, 0.05) tells from the best. In brackets the paper's number. "
        f"SVM: {solver}, by 5-fold accuracy on the training part. "
        f"{recipe_sentence(plan.recipes)}"
    )


def _main_table(plan: MicroarrayPlan, lines: Sequence[Sequence[TableRow]], bold: Any, behind: Any, ranks: Any) -> str:
    texts = []
    for rows in lines:
        line = [rows[0].label]
        for row in rows:
            text = f"{format_cell(row.mean)} ± {format_cell(row.deviation, 2)}"
            if row.place in bold[row.dataset]:
                text = f"**{text}**"
            text += " ↓" if row.place in behind[row.dataset] else ""
            line.append(text + (f" ({row.paper[0]:.3f})" if row.paper else ""))
        texts.append([*line, format_cell(ranks.mean_ranks[rows[0].label], 2)])
    return markdown_table(["method, learner", *map(display_name, plan.datasets), "mean rank"], texts)


def _rank_sentence(ranks: Any, n_datasets: int) -> str:
    if not math.isfinite(ranks.p_value):
        return "Ranks over one data set are not tested."
    said = f"Friedman test over {n_datasets} data sets: p = {ranks.p_value:.3g}"
    if not ranks.can_differ:  # two mean ranks cannot be so far apart: there is nothing to compare with
        return f"{said}; so few data sets tell no two rows apart by their mean ranks (Nemenyi, 0.05)."
    return f"{said}; mean ranks that differ by less than {ranks.critical_difference:.2f} (Nemenyi, 0.05) are not told apart."


def _stability_table(plan: MicroarrayPlan, stable: Any) -> str:
    lines = []
    for method, recipe in plan.selections:
        if get_method(method).keeps_all:
            continue
        line = [with_recipe(get_method(method).title, recipe)]
        for dataset in plan.datasets:
            values = stable.get((dataset, with_recipe(method, recipe)))
            line.append("–" if values is None else format_cell(float(np.mean(values)), 2))
        lines.append(line)
    return markdown_table(["method", *map(display_name, plan.datasets)], lines)


def _records(plan: MicroarrayPlan, tables: Any, bold: Any, behind: Any, stable: Any) -> list[dict[str, Any]]:
    records = []
    for dataset, rows in tables.items():
        for row in rows:
            shared = {
                "dataset": dataset,
                "label": find_entry(dataset).label,
                "method": row.method,
                "learner": row.learner,
                "recipe": row.recipe,
            }
            records.append(
                {
                    **shared,
                    "n_features": "mean",
                    "balanced_accuracy": finite(row.mean),
                    "sd": finite(row.deviation),
                    "splits": int(np.isfinite(row.by_split).sum()),
                    "bold": row.place in bold[dataset],
                    "behind_corrected": row.place in behind[dataset],
                    "paper": None if row.paper is None else row.paper[0],
                    "paper_sd": None if row.paper is None else row.paper[1],
                }
            )
            recipe = row.recipe if get_method(row.method).trains_model else None
            values = stable.get((dataset, with_recipe(row.method, recipe)))
            for position, m in enumerate(plan.m_values):
                column = row.scores[:, position]
                column = column[np.isfinite(column)]
                records.append(
                    {
                        **shared,
                        "n_features": m,
                        "balanced_accuracy": finite(column.mean()) if column.size else None,
                        "sd": finite(column.std()) if column.size else None,
                        "splits": int(column.size),
                        "nogueira": None if values is None else finite(values[position]),
                    }
                )
    return records


def _content(plan: Any, tables: Any, bold: Any, behind: Any, ranks: Any, stable: Any, failures: Any) -> dict[str, Any]:
    rows = [
        {
            "dataset": row.dataset,
            "method": row.method,
            "learner": row.learner,
            "recipe": row.recipe,
            "mean": finite(row.mean),
            "sd": finite(row.deviation),
            "bold": row.place in bold[dataset],
            "behind_corrected": row.place in behind[dataset],
            "paper": None if row.paper is None else list(row.paper),
            "scores": [[finite(value) for value in split] for split in row.scores.tolist()],
        }
        for dataset, found in tables.items()
        for row in found
    ]
    return {
        "protocol": "microarray",
        "m_values": list(plan.m_values),
        "n_splits": plan.n_splits,
        "grid": plan.grid,
        "recipes": list(plan.recipes),
        "seed": plan.seed,
        "rows": rows,
        "mean_ranks": {label: finite(rank) for label, rank in ranks.mean_ranks.items()},
        "friedman_p_value": finite(ranks.p_value),
        "stability": [
            {"dataset": dataset, "method": method, "nogueira": list(map(finite, values))}
            for (dataset, method), values in stable.items()
        ],
        "failures": dict(sorted(failures.items())),
    }


def comparison_pages(plan: MicroarrayPlan, cells: Sequence[Cell], results: Mapping[str, Any]) -> list[ComparisonPage]:
    """Return the comparison of each data set: every row of the table, by the number of features."""
    pages = []
    for dataset, rows in collect(plan, cells, results).items():
        n_rows, n_features = find_entry(dataset).shape
        names = [with_recipe(f"{row.method} / {row.learner}", row.recipe) for row in rows]
        comparison = Comparison(
            metric=BALANCED_ACCURACY,
            methods=tuple(names),
            m_values=plan.m_values,
            scores=np.stack([row.scores.T for row in rows]),
            seconds=_mean_seconds(dataset, rows, cells, results),
            test_share=1 / N_FOLDS,
            alpha=ALPHA,
            references=tuple(name for name, row in zip(names, rows, strict=True) if row.method in REFERENCES),
        )
        pages.append(
            ComparisonPage(
                name=dataset,
                title=display_name(dataset),
                n_rows=n_rows,
                n_features=n_features,
                comparison=comparison,
                notes=(
                    f"The paper's protocol: 3-fold, {plan.n_splits} splits; method / learner.",
                    recipe_sentence(plan.recipes),
                ),
                settings={"grid of the SVM": plan.grid, "splits": plan.n_splits},
                seed=plan.seed,
            )
        )
    return pages


def _mean_seconds(
    dataset: str, rows: Sequence[TableRow], cells: Sequence[Cell], results: Mapping[str, Any]
) -> np.ndarray:
    """Return the mean seconds of one selection for each row and M; NaN where every cell failed."""
    found: dict[str, list[list[float]]] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result and cell.settings["dataset"] == dataset:
            found.setdefault(selection_name(cell), []).append(result["seconds"])
    unknown = [[math.nan] * rows[0].scores.shape[1]]
    names = [with_recipe(row.method, row.recipe if get_method(row.method).trains_model else None) for row in rows]
    return np.stack([np.mean(found.get(name, unknown), axis=0) for name in names])
