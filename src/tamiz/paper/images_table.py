"""Tables of images from finished cells, with the paper's numbers, and the masks as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz.baselines.registry import get_method
from tamiz.paper.dataset_registry import find_entry
from tamiz.paper.images_training import CONFIGURATIONS
from tamiz.paper.numbers import (
    IMAGE_SIZES,
    IMAGES,
    IMAGES_DEVIATIONS,
    IMAGES_FILES,
    IMAGES_ONE_NETWORK,
    IMAGES_SECONDS,
    STANDS_FOR,
)
from tamiz.paper.recipes import display_name
from tamiz.paper.store import (
    Cell,
    HeadlineScore,
    ProtocolSummary,
    difference_lines,
    failure_section,
    format_cell,
    markdown_table,
)

#: Networks that score a selection: a new one, the same for all methods, or the one that E2E-FS has trained with its mask.
JUDGES = {"new": "accuracy", "own": "own_accuracy"}


@dataclass(frozen=True)
class ImagesPlan:
    """Hold the options of a run, checked."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    configuration: str
    n_runs: int
    device: str
    seed: int


def image_sizes_of(dataset: str) -> tuple[int, ...]:
    """Return the numbers of pixels (values, for colours) of the paper's table.

    Examples
    --------
    >>> image_sizes_of("fashion_mnist"), image_sizes_of("cifar10_subset_jpeg")
    ((39, 78, 196, 392), (153, 307, 768, 1536))
    """
    return IMAGE_SIZES[STANDS_FOR.get(dataset, dataset)]


def summarise_images(
    plan: ImagesPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
) -> ProtocolSummary:
    """Make tables of the accuracy in percent by data set, method and number of pixels."""
    found: dict[tuple[str, str, str], list[list[float]]] = {}
    timing: dict[tuple[str, str], list[float]] = {}
    whole: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result:
            dataset, method = cell.settings["dataset"], cell.settings["method"]
            timing.setdefault((dataset, method), []).append(result["seconds"][0])
            whole.setdefault((dataset, method), []).append(result["whole_seconds"][0])
            for judge, name in JUDGES.items():
                if result[name] is not None:
                    values = [100.0 * value for value in result[name]]
                    found.setdefault((dataset, method, judge), []).append(values)
    parts = [
        f"Test accuracy in percent, configuration `{plan.configuration}`, mean of {plan.n_runs} run(s); in brackets the "
        f"paper's (full recipe), with ± where it prints a deviation; **bold**: the best new network of a column. {_JUDGED} "
        f"{_remark(plan.configuration)}"
    ]
    records: list[dict[str, Any]] = []
    for dataset in plan.datasets:
        sizes = image_sizes_of(dataset)
        rows = [(method, "new") for method in plan.methods]
        rows += [(method, "own") for method in plan.methods if get_method(method).trains_model]
        made = {place: _records(dataset, *place, found.get((dataset, *place), [])) for place in rows}
        best = [_best(made, position) for position in range(len(sizes))]
        lines = [
            [
                row_title(*place),
                *(_text(record, place == best[position]) for position, record in enumerate(row)),
            ]
            for place, row in made.items()
        ]
        records += [record for row in made.values() for record in row]
        parts.append(
            f"### {display_name(dataset)}\n\n"
            + markdown_table(["method", *map(str, sizes)], lines)
            + f"\n\n{_chance_sentence(sizes, best)}{_printed_seconds(dataset)}"
        )
    parts += ["### Order of the methods", _ORDERS, _order_table(plan.datasets, records)]
    if plan.configuration == "full":
        pairs = (
            (
                f"{display_name(r['dataset'])}, {row_title(r['method'], r['judge'])}, {r['n_features']}",
                r["accuracy"],
                r["paper"],
            )
            for r in records
        )
        reason = f"mean of {plan.n_runs} run(s) here; the paper gives neither momentum, batch size nor augmentation"
        parts += ["### Differences to the paper above 2 percent", difference_lines(pairs, reason, 2.0, 2)]
    parts += failure_section(failures)
    content = {
        "protocol": "images",
        "configuration": plan.configuration,
        "rows": records,
        "failures": dict(sorted(failures.items())),
    }
    # Of E2E-FS the whole ends with its own network, of the others with a new one.
    words = "median seconds for the fewest pixels, with the training on them"
    seconds = [
        {"dataset": dataset, "method": method + note, words: float(np.median(values))}
        for note, times in (("", whole), (", selection alone", timing))
        for (dataset, method), values in times.items()
    ]
    title = "Images: " + ", ".join(map(display_name, plan.datasets))
    return ProtocolSummary(title, "\n\n".join(parts), records, content, seconds, _headlines(plan, records))


def _headlines(plan: ImagesPlan, records: Sequence[Mapping[str, Any]]) -> list[HeadlineScore]:
    """Return the mean accuracy of the new networks over the numbers of pixels, as a share."""
    scores = []
    for dataset in plan.datasets:
        sizes = ", ".join(map(str, image_sizes_of(dataset)))
        for method in plan.methods:
            shown = [r for r in records if (r["dataset"], r["method"], r["judge"]) == (dataset, method, "new")]
            if shown and all(record["accuracy"] is not None for record in shown):
                published = [record["paper"] for record in shown if record["paper"] is not None]
                scores.append(
                    HeadlineScore(
                        display_name(dataset),
                        "accuracy",
                        f"of new networks, configuration `{plan.configuration}`, mean over {sizes} values and {plan.n_runs} "
                        "run(s); the paper's networks are larger and were trained longer",
                        method,
                        get_method(method).title,
                        float(np.mean([record["accuracy"] for record in shown])) / 100,
                        published=float(np.mean(published)) / 100 if published else None,
                    )
                )
    return scores


def row_title(method: str, judge: str) -> str:
    """Return the title of a row of the table.

    Examples
    --------
    >>> row_title("e2efs-soft", "own")
    'E2E-FS-Soft, own network'
    """
    return get_method(method).title + (", own network" if judge == "own" else "")


def _records(dataset: str, method: str, judge: str, runs: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Return one row of the table as records."""
    column = STANDS_FOR.get(dataset, dataset)
    deviations = IMAGES_DEVIATIONS[column].get(method)
    values = np.asarray(runs)
    return [
        {
            "dataset": dataset,
            "label": find_entry(dataset).label,
            "method": method,
            "judge": judge,
            "n_features": m,
            "accuracy": float(values[:, position].mean()) if values.size else None,
            "sd": float(values[:, position].std()) if values.size else None,
            "runs": len(values),
            "paper": IMAGES[column][method][position] if method in IMAGES[column] else None,
            "paper_sd": deviations[position] if deviations else None,
        }
        for position, m in enumerate(IMAGE_SIZES[column])
    ]


def _text(record: Mapping[str, Any], bold: bool) -> str:
    text = "–" if record["accuracy"] is None else f"{record['accuracy']:.2f}"
    if record["runs"] > 1:
        text += f" ± {record['sd']:.2f}"
    text = f"**{text}**" if bold else text
    if record["paper"] is None:
        return text
    deviation = "" if record["paper_sd"] is None else f" ± {record['paper_sd']:.2f}"
    return f"{text} ({record['paper']:.2f}{deviation})"


def _best(made: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]], position: int) -> tuple[str, str] | None:
    """Return method and judge of the most accurate new network in a column; the row of all pixels is no selection."""
    known = {
        place: row[position]["accuracy"]
        for place, row in made.items()
        if place[1] == "new" and row[position]["accuracy"] is not None and not get_method(place[0]).keeps_all
    }
    return max(known, key=known.__getitem__) if known else None


def _chance_sentence(sizes: Sequence[int], best: Sequence[tuple[str, str] | None]) -> str:
    """Return what is to be said where random pixels do best."""
    lost = [f"{m:,}" for m, place in zip(sizes, best, strict=True) if place is not None and place[0] == "random"]
    if not lost:
        return ""
    return (
        f"Random pixels do best with {' and '.join(lost)} values: so few images and epochs do not tell the methods from "
        "chance here. It would take more images and a longer training.\n\n"
    )


def _printed_seconds(dataset: str) -> str:
    """Return the sentence on the times that the paper prints; ours differ from run to run and stand in a table of their own."""
    printed = IMAGES_SECONDS[STANDS_FOR.get(dataset, dataset)]
    times = ", ".join(f"{get_method(method).title} {seconds:,} s" for method, seconds in printed.items())
    return (
        f"The paper's times, on its GPU, of everything for {image_sizes_of(dataset)[0]} values: {times}. E2E-FS is the "
        "quickest there. It is not where the training is cut to a few epochs: its selection takes the steps that T asks for, "
        "however short the training is."
    )


_JUDGED = (
    "Every method is judged alike: a new network is trained on the pixels that it chose, for the same number of epochs, from "
    'the same first weights and in the same order of rows. The rows "own network" are, as in the paper, the network that '
    "E2E-FS trained while selecting, refined for as many epochs; it has been trained on all pixels before, which the others' "
    "have not, so compare methods by the rows of the new networks."
)


#: What our order of methods is compared with: title -> data set -> method -> accuracies.
PUBLISHED_ORDERS = {
    "paper, as printed": IMAGES,
    "paper, WRN-16-4 alone": {name: {**IMAGES[name], **rows} for name, rows in IMAGES_ONE_NETWORK.items()},
    "authors' files": IMAGES_FILES,
}

_ORDERS = (
    "Spearman's rank correlation between the methods' accuracies here (new networks) and published ones: 1 is the same "
    "order, 0 none in common. The printed baselines are from an older paper and, on MNIST and Fashion-MNIST, nearly "
    "all those of a CNN of three layers; the source of the paper has them with WRN-16-4, the network of E2E-FS, too. The "
    "authors' files are later runs of all methods with the same networks (without SFS+DFS, on CIFAR without iSFS). "
    "*Spread*: the best method less the worst, in percent; where it is about as large as a run differs from the next, "
    "there is no order to compare."
)


def rank_agreement(ours: Mapping[str, float | None], published: Mapping[str, float]) -> float | None:
    """Return Spearman's correlation over the methods that both have; None for fewer than three of them or all equal.

    Examples
    --------
    >>> rank_agreement({"dfs": 1.0, "sfs": 2.0, "isfs": 3.0, "random": 0.0}, {"dfs": 80.0, "sfs": 90.0, "isfs": 95.0})
    1.0
    >>> rank_agreement({"dfs": 1.0, "sfs": None}, {"dfs": 80.0, "sfs": 90.0}) is None
    True
    """
    from scipy.stats import spearmanr

    pairs = [(value, published[method]) for method, value in ours.items() if value is not None and method in published]
    if len(pairs) < 3:
        return None
    here, there = zip(*pairs, strict=True)
    if len(set(here)) == 1 or len(set(there)) == 1:
        return None
    return round(float(spearmanr(here, there).statistic), 12)


def _order_table(datasets: Sequence[str], records: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of how far the order of the methods agrees with the published ones, by data set and number of pixels."""
    lines = []
    for dataset in datasets:
        column = STANDS_FOR.get(dataset, dataset)
        shown = [
            r for r in records if r["dataset"] == dataset and r["judge"] == "new" and r["method"] in IMAGES[column]
        ]
        by_size: list[dict[str, float | None]] = [
            {r["method"]: r["accuracy"] for r in shown if r["n_features"] == m} for m in IMAGE_SIZES[column]
        ]
        for title, rows in PUBLISHED_ORDERS.items():
            if column in rows:
                found = [
                    rank_agreement(ours, {method: row[place] for method, row in rows[column].items()})
                    for place, ours in enumerate(by_size)
                ]
                lines.append([f"{display_name(dataset)}, {title}", *(format_cell(value, 2) for value in found)])
        known = [[value for value in ours.values() if value is not None] for ours in by_size]
        spreads = [max(values) - min(values) if values else None for values in known]
        lines.append([f"{display_name(dataset)}, *spread*", *(format_cell(value, 1) for value in spreads)])
    return markdown_table(["of all values", "5 %", "10 %", "25 %", "50 %"], lines)


def _remark(configuration: str) -> str:
    if configuration == "full":
        return (
            "The paper names neither momentum, batch size, augmentation nor scaling of the images: here Nesterov's momentum "
            "of 0.9 and batches of 128, no augmentation, and one mean and deviation for all values."
        )
    small = CONFIGURATIONS[configuration]
    channels = ", ".join(map(str, small.channels or ()))
    return (
        f"This configuration trains a CNN of three layers ({channels} channels) on {small.n_train:,} training images for "
        f"{small.refinement_epochs} epochs (Adam at {small.learning_rate}, batches of {small.batch_size}) and tests on "
        f"{small.n_test:,}, far less than the paper: most accuracies lie below its own for that reason, and only the order "
        f"of the methods can be compared. E2E-FS starts from a network of {small.pretraining_epochs} epochs on all pixels "
        f"and selects with T = {small.ramp_steps} steps; iSFS keeps {small.keep_ratio:.0%} in each round (the "
        "authors' code: 90%). Where random pixels come out as good as a method, so short a training on so few images does not "
        "tell methods apart."
    )


def draw_masks(cells: Sequence[Cell], results: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Draw the masks of the first run, one file per data set: methods down, numbers of pixels across.

    A colour image shows for each pixel which of its colours are kept. Needs matplotlib.
    """
    figures = require("matplotlib.figure", "plot", "The picture of the masks")
    files = {}
    for dataset in dict.fromkeys(cell.settings["dataset"] for cell in cells):
        shown = [
            (cell.settings["method"], results[cell.key])
            for cell in cells
            if cell.settings["dataset"] == dataset and cell.settings["run"] == 0 and cell.key in results
        ]
        shown = [(method, result) for method, result in shown if result["support"] is not None]
        if not shown:
            continue
        sizes = image_sizes_of(dataset)
        figure = figures.Figure(figsize=(1.6 * len(sizes), 1.7 * len(shown)), layout="constrained")
        for row, (method, result) in enumerate(shown):
            for column, (m, support) in enumerate(zip(sizes, result["support"], strict=True)):
                axes = figure.add_subplot(len(shown), len(sizes), row * len(sizes) + column + 1)
                axes.imshow(mask_image(support, result["shape"]), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                axes.set_xticks([])
                axes.set_yticks([])
                if column == 0:
                    axes.set_ylabel(get_method(method).title, fontsize="small")
                if row == 0:
                    axes.set_title(str(m), fontsize="small")
        path = folder / f"masks-{dataset}.png"
        figure.savefig(str(path), dpi=110)
        files[f"masks of {dataset}"] = str(path)
    return files


def mask_image(support: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """Return a selection as an image: (height, width), or (height, width, colours).

    Examples
    --------
    >>> mask_image([1, 2], (1, 2, 2)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    flat = np.zeros(int(np.prod(shape)))
    flat[list(support)] = 1.0
    image = flat.reshape(tuple(shape)).transpose(1, 2, 0)
    return image[:, :, 0] if image.shape[2] == 1 else image
