"""The tables of images from finished cells, with the paper's numbers beside, and the masks as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz.benchmark import methods as selectors
from tamiz.benchmark.cells import Cell
from tamiz.benchmark.microarray_table import display_name
from tamiz.benchmark.paper_numbers import IMAGE_SIZES, IMAGES, STANDS_FOR
from tamiz.benchmark.tables import Outcome, difference_lines, markdown_table
from tamiz.datasets.registry import find_entry


def summarise(plan: Any, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]) -> Outcome:
    """Accuracy in percent by data set, method and number of pixels."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    timing: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result:
            place = (cell.settings["dataset"], cell.settings["method"])
            found.setdefault(place, []).append([100.0 * value for value in result["accuracy"]])
            timing.setdefault(place, []).append(result["seconds"][0])
    parts = [
        f"Test accuracy in percent, configuration `{plan.configuration}`, mean of {plan.n_runs} run(s); in brackets the "
        f"paper's (WRN-16-4, full recipe). {_remark(plan.configuration)}"
    ]
    records: list[dict[str, Any]] = []
    for dataset in plan.datasets:
        sizes = IMAGE_SIZES[STANDS_FOR.get(dataset, dataset)]
        published = IMAGES[STANDS_FOR.get(dataset, dataset)]
        lines = []
        for method in plan.methods:
            runs = np.asarray(found.get((dataset, method), []))
            line = [selectors.TITLES[method]]
            for position, m in enumerate(sizes):
                paper = published[method][position] if method in published else None
                mean = float(runs[:, position].mean()) if runs.size else None
                spread = float(runs[:, position].std()) if runs.size else None
                text = "–" if mean is None else f"{mean:.2f}" + (f" ± {spread:.2f}" if len(runs) > 1 else "")
                line.append(text + (f" ({paper:.2f})" if paper is not None else ""))
                records.append(
                    {
                        "dataset": dataset,
                        "label": find_entry(dataset).label,
                        "method": method,
                        "n_features": m,
                        "accuracy": mean,
                        "sd": spread,
                        "runs": len(runs),
                        "paper": paper,
                    }
                )
            lines.append(line)
        parts.append(f"### {display_name(dataset)}\n\n" + markdown_table(["method", *map(str, sizes)], lines))
    if plan.configuration == "full":
        pairs = (
            (
                f"{display_name(r['dataset'])}, {selectors.TITLES[r['method']]}, {r['n_features']}",
                r["accuracy"],
                r["paper"],
            )
            for r in records
        )
        reason = f"mean of {plan.n_runs} run(s) here; the paper does not give momentum and batch size"
        parts += ["### Differences to the paper above 2 percent", difference_lines(pairs, reason, 2.0, 2)]
    if failures:
        parts += ["### Cells that failed", "\n".join(f"- {name}: {text}" for name, text in sorted(failures.items()))]
    content = {
        "protocol": "images",
        "configuration": plan.configuration,
        "rows": records,
        "failures": dict(sorted(failures.items())),
    }
    seconds = [
        {"dataset": dataset, "method": method, "median seconds for the fewest pixels": float(np.median(values))}
        for (dataset, method), values in timing.items()
    ]
    return Outcome("Images", "\n\n".join(parts), records, content, seconds)


def _remark(configuration: str) -> str:
    if configuration == "full":
        return ""
    return (
        "This configuration trains a CNN of three layers on 2,000 training images for 4 epochs: all accuracies lie "
        "below the paper's for that reason alone, and only the order of the methods can be compared. As in the paper's recipe, "
        "the network of E2E-FS is trained before, during and after its selection, that of the other methods only once their "
        "pixels are chosen: part of its lead is longer training."
    )


def draw_masks(cells: Sequence[Cell], results: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """The masks of the first run as pictures, one file a data set: methods down, numbers of pixels across.

    A colour image shows for each pixel which of its colours are kept. Needs matplotlib.
    """
    from matplotlib.figure import Figure

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
        sizes = IMAGE_SIZES[STANDS_FOR.get(dataset, dataset)]
        figure = Figure(figsize=(1.6 * len(sizes), 1.7 * len(shown)), layout="constrained")
        for row, (method, result) in enumerate(shown):
            for column, (m, support) in enumerate(zip(sizes, result["support"], strict=True)):
                axes = figure.add_subplot(len(shown), len(sizes), row * len(sizes) + column + 1)
                axes.imshow(mask_image(support, result["shape"]), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                axes.set_xticks([])
                axes.set_yticks([])
                if column == 0:
                    axes.set_ylabel(selectors.TITLES[method], fontsize="small")
                if row == 0:
                    axes.set_title(str(m), fontsize="small")
        path = folder / f"masks-{dataset}.png"
        figure.savefig(str(path), dpi=110)
        files[f"masks of {dataset}"] = str(path)
    return files


def mask_image(support: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """A selection as an image: (height, width), or (height, width, colours).

    Examples
    --------
    >>> mask_image([1, 2], (1, 2, 2)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    flat = np.zeros(int(np.prod(shape)))
    flat[list(support)] = 1.0
    image = flat.reshape(tuple(shape)).transpose(1, 2, 0)
    return image[:, :, 0] if image.shape[2] == 1 else image
