"""Table of the microarrays from finished cells: means, bold by Wilcoxon, ranks, stability, and the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tamiz.baselines.registry import get_method
from tamiz.datasets.registry import find_entry
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.metrics import BALANCED_ACCURACY
from tamiz.evaluation.significance import friedman_ranks
from tamiz.reproduce.cells import Cell
from tamiz.reproduce.protocol import REFERENCES, ComparisonPage
from tamiz.reproduce.protocols.microarray_rows import (
    ALPHA,
    MicroarrayPlan,
    TableRow,
    behind_rows,
    bold_rows,
    collect,
    selection_name,
    stabilities,
)
from tamiz.reproduce.recipes import recipe_sentence, with_recipe
from tamiz.reproduce.sources import display_name
from tamiz.reproduce.splits import N_FOLDS
from tamiz.reproduce.summary import ProtocolSummary, failure_section, finite, format_cell, markdown_table

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
