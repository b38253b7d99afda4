"""The table of the microarrays from finished cells: means, bold by Wilcoxon, ranks, stability, the paper's numbers beside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.reproduce import learners as judges
from tamiz.reproduce import selectors
from tamiz.reproduce.cells import Cell
from tamiz.evaluation.metrics import friedman_ranks, kuncheva_index, nogueira_stability, wilcoxon_pairs
from tamiz.reproduce.protocols.microarray import MicroarrayPlan
from tamiz.reproduce.paper_numbers import MICROARRAY, MICROARRAY_FILES, STANDS_FOR
from tamiz.reproduce.summary import Outcome, finite, markdown_table, number
from tamiz.datasets.registry import find_entry

ALPHA = 0.05
#: Differences to the paper above this get a sentence.
NOTABLE = 0.02


@dataclass(frozen=True, eq=False)
class Series:
    """One row of the table on one data set: ``scores[split, M]``, NaN where a cell failed."""

    dataset: str
    method: str
    learner: str
    scores: np.ndarray

    @property
    def by_split(self) -> np.ndarray:
        """The paper's AUC-BA: the mean over the numbers of features, for each split."""
        return self.scores.mean(axis=1)

    @property
    def mean(self) -> float:
        """Of all splits and numbers of features."""
        return float(np.nanmean(self.scores)) if np.isfinite(self.scores).any() else math.nan

    @property
    def deviation(self) -> float:
        """Over splits and numbers of features together, as the size of the paper's says."""
        return float(np.nanstd(self.scores)) if np.isfinite(self.scores).any() else math.nan

    @property
    def paper(self) -> tuple[float, float] | None:
        """Mean and sd that the paper prints, if it does."""
        return MICROARRAY.get((self.method, self.learner), {}).get(self._column)

    @property
    def files(self) -> float | None:
        """The mean of the authors' published result files, if there is one."""
        return MICROARRAY_FILES.get((self.method, self.learner), {}).get(self._column)

    @property
    def _column(self) -> str:
        """The paper's name for the data set."""
        return STANDS_FOR.get(self.dataset, self.dataset)

    @property
    def label(self) -> str:
        """Method and learner."""
        return f"{selectors.TITLES[self.method]}, {judges.TITLES[self.learner]}"


def display_name(dataset: str) -> str:
    """The title of a data set with its label: a stand-in is always called one.

    Examples
    --------
    >>> display_name("gina_rebuilt"), display_name("leukemia_3571")
    ('GINA (REBUILT)', 'LEUKEMIA (3571 genes)')
    """
    entry = find_entry(dataset)
    if dataset == "leukemia_3571":
        return "LEUKEMIA (3571 genes)"
    return f"{entry.title} ({entry.label})" if entry.label else entry.title


def collect(plan: MicroarrayPlan, cells: Sequence[Cell], results: Mapping[str, Any]) -> dict[str, list[Series]]:
    """Scores by data set, in the order of the plan."""
    shape = (plan.n_splits, len(plan.m_values))
    tables: dict[tuple[str, str, str], np.ndarray] = {}
    for dataset in plan.datasets:
        for method in plan.methods:
            for learner in judges.learners_of(selectors.is_own(method), plan.learners):
                tables[dataset, method, learner] = np.full(shape, np.nan)
    for cell in cells:
        result = results.get(cell.key)
        for learner, scores in (result["scores"] if result else {}).items():
            tables[cell.settings["dataset"], cell.settings["method"], learner][cell.settings["split"]] = scores
    found: dict[str, list[Series]] = {dataset: [] for dataset in plan.datasets}
    for (dataset, method, learner), scores in tables.items():
        found[dataset].append(Series(dataset, method, learner, scores))
    return found


def bold_rows(rows: Sequence[Series]) -> set[tuple[str, str]]:
    """The best row, and those that a Wilcoxon test over the splits does not tell from it (as in the paper, uncorrected).

    The row of all features is no selection: it is neither compared nor bold.
    """
    known = [row for row in rows if math.isfinite(row.mean) and row.method != "all"]
    if not known:
        return set()
    best = max(known, key=lambda row: row.mean)
    chosen = {(best.method, best.learner)}
    for row in known:
        if row is not best:
            test = wilcoxon_pairs({"best": best.by_split, "row": row.by_split}, ALPHA)[0]
            if not test.significant:
                chosen.add((row.method, row.learner))
    return chosen


def stabilities(
    plan: MicroarrayPlan, cells: Sequence[Cell], results: Mapping[str, Any]
) -> dict[tuple[str, str], tuple[list[float], list[float]]]:
    """(data set, method) -> Nogueira's and Kuncheva's stability for each M."""
    supports: dict[tuple[str, str], list[Any]] = {}
    widths: dict[str, int] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result and result["support"] is not None:
            supports.setdefault((cell.settings["dataset"], cell.settings["method"]), []).append(result["support"])
            widths[cell.settings["dataset"]] = result["n_features"]
    found = {}
    for (dataset, method), splits in supports.items():
        if len(splits) < 2:
            continue
        pairs = []
        for position in range(len(plan.m_values)):
            chosen = np.zeros((len(splits), widths[dataset]), dtype=bool)
            for number_, split in enumerate(splits):
                chosen[number_, split[position]] = True
            pairs.append((nogueira_stability(chosen), kuncheva_index(chosen)))
        found[dataset, method] = ([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return found


def _seconds(cells: Sequence[Cell], results: Mapping[str, Any]) -> list[dict[str, Any]]:
    seconds: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result:
            place = (cell.settings["dataset"], cell.settings["method"])
            seconds.setdefault(place, []).append(float(np.mean(result["seconds"])))
    return [
        {"dataset": dataset, "method": method, "median seconds of one selection": float(np.median(values))}
        for (dataset, method), values in seconds.items()
    ]


def difference_sentence(row: Series, grid: str) -> str | None:
    """A sentence on a difference to the paper that is worth one; None for a smaller one.

    What can be said from the figures: whether the data are a stand-in, and how far the splits alone scatter.
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


def summarise(
    plan: MicroarrayPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
) -> Outcome:
    """Everything that the protocol has to show."""
    tables = collect(plan, cells, results)
    bold = {dataset: bold_rows(rows) for dataset, rows in tables.items()}
    labels = [(row.method, row.learner, row.label) for row in next(iter(tables.values()))]
    by_row = {(row.dataset, row.method, row.learner): row for rows in tables.values() for row in rows}
    ranks = friedman_ranks(
        {label: [by_row[d, method, learner].mean for d in plan.datasets] for method, learner, label in labels}
    )
    stable = stabilities(plan, cells, results)
    sentences = [difference_sentence(row, plan.grid) for rows in tables.values() for row in rows]
    parts = [
        _introduction(plan),
        _main_table(plan, labels, by_row, bold, ranks),
        _rank_sentence(ranks, len(plan.datasets)),
        "### Differences to the paper above 0.02",
        "\n".join(f"- {sentence}" for sentence in sentences if sentence) or "None.",
        "### Stability of the selection\n\nNogueira's / Kuncheva's index, mean over the numbers of features; 1 is the "
        "same features in every split, 0 what chance gives.",
        _stability_table(plan, stable),
    ]
    if failures:
        parts += ["### Cells that failed", "\n".join(f"- {name}: {text}" for name, text in sorted(failures.items()))]
    return Outcome(
        "Microarray and FS challenge: " + ", ".join(map(display_name, plan.datasets)),
        "\n\n".join(parts),
        _records(plan, tables, bold, stable),
        _content(plan, tables, bold, ranks, stable, failures),
        _seconds(cells, results),
    )


def _introduction(plan: MicroarrayPlan) -> str:
    sizes = ", ".join(map(str, plan.m_values))
    solver = "the paper's grid of solvers and C" if plan.grid == "full" else "C from 0.001, 0.1, 1, 100, squared hinge"
    return (
        f"Mean balanced accuracy over M = {sizes} and {plan.n_splits} splits (3-fold x {plan.n_repeats}), ± the standard "
        "deviation over both; **bold**: the best row of a column and those that a Wilcoxon test over the splits (0.05) "
        f"does not tell from it; in brackets the paper's number. SVM: {solver}, by 5-fold accuracy on the training part."
    )


def _main_table(plan: MicroarrayPlan, labels: Any, by_row: Any, bold: Any, ranks: Any) -> str:
    lines = []
    for method, learner, label in labels:
        line = [label]
        for dataset in plan.datasets:
            row = by_row[dataset, method, learner]
            text = f"{number(row.mean)} ± {number(row.deviation, 2)}"
            if (method, learner) in bold[dataset]:
                text = f"**{text}**"
            line.append(text + (f" ({row.paper[0]:.3f})" if row.paper else ""))
        lines.append([*line, number(ranks.mean_ranks[label], 2)])
    return markdown_table(["method, learner", *map(display_name, plan.datasets), "mean rank"], lines)


def _rank_sentence(ranks: Any, n_datasets: int) -> str:
    if not math.isfinite(ranks.p_value):
        return "Ranks over one data set are not tested."
    return (
        f"Friedman test over {n_datasets} data sets: p = {ranks.p_value:.3g}; mean ranks that differ by less than "
        f"{ranks.critical_difference:.2f} (Nemenyi, 0.05) are not told apart."
    )


def _stability_table(plan: MicroarrayPlan, stable: Any) -> str:
    lines = []
    for method in plan.methods:
        if method == "all":
            continue
        line = [selectors.TITLES[method]]
        for dataset in plan.datasets:
            pair = stable.get((dataset, method))
            line.append("–" if pair is None else " / ".join(number(float(np.mean(values)), 2) for values in pair))
        lines.append(line)
    return markdown_table(["method", *map(display_name, plan.datasets)], lines)


def _records(plan: MicroarrayPlan, tables: Any, bold: Any, stable: Any) -> list[dict[str, Any]]:
    records = []
    for dataset, rows in tables.items():
        for row in rows:
            shared = {
                "dataset": dataset,
                "label": find_entry(dataset).label,
                "method": row.method,
                "learner": row.learner,
            }
            records.append(
                {
                    **shared,
                    "n_features": "mean",
                    "balanced_accuracy": finite(row.mean),
                    "sd": finite(row.deviation),
                    "splits": int(np.isfinite(row.by_split).sum()),
                    "bold": (row.method, row.learner) in bold[dataset],
                    "paper": None if row.paper is None else row.paper[0],
                    "paper_sd": None if row.paper is None else row.paper[1],
                }
            )
            pair = stable.get((dataset, row.method))
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
                        "nogueira": None if pair is None else finite(pair[0][position]),
                        "kuncheva": None if pair is None else finite(pair[1][position]),
                    }
                )
    return records


def _content(plan: Any, tables: Any, bold: Any, ranks: Any, stable: Any, failures: Any) -> dict[str, Any]:
    rows = [
        {
            "dataset": row.dataset,
            "method": row.method,
            "learner": row.learner,
            "mean": finite(row.mean),
            "sd": finite(row.deviation),
            "bold": (row.method, row.learner) in bold[dataset],
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
        "seed": plan.seed,
        "rows": rows,
        "mean_ranks": {label: finite(rank) for label, rank in ranks.mean_ranks.items()},
        "friedman_p_value": finite(ranks.p_value),
        "stability": [
            {
                "dataset": dataset,
                "method": method,
                "nogueira": list(map(finite, pair[0])),
                "kuncheva": list(map(finite, pair[1])),
            }
            for (dataset, method), pair in stable.items()
        ],
        "failures": dict(sorted(failures.items())),
    }
