"""Tables of images of the paper: accuracy of a network that sees only the selected pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.names import pick_name
from tamiz.baselines.registry import get_method
from tamiz.evaluation.comparison import pick_methods
from tamiz.paper.dataset_registry import find_entry
from tamiz.paper.images_table import ImagesPlan, draw_masks, image_sizes_of, summarise_images
from tamiz.paper.images_training import (
    CONFIGURATIONS,
    IMAGE_METHODS,
    RAMP_EPOCHS,
    SELECTION_EPOCHS,
    ImagesConfiguration,
    ImageSeeds,
    Pictures,
    recipe_of,
    run_method,
)
from tamiz.paper.protocol import (
    DATASETS_OPTION,
    METHODS_OPTION,
    REFERENCES,
    SEED_OPTION,
    Protocol,
    ProtocolOption,
    with_references,
)
from tamiz.paper.recipes import load_checked, pick_datasets
from tamiz.paper.store import Cell, ProtocolSummary, seed_from


@lru_cache(maxsize=1)
def load_pictures(name: str, data_home: str | None, expected: str, n_train: int, n_test: int) -> Pictures:
    """Load the predefined parts of a data set, or a random draw of each that is the same for all methods."""
    dataset, _ = load_checked(name, data_home, expected)
    assert dataset.train is not None
    assert dataset.test is not None
    assert dataset.image_shape is not None
    height, width, colours = dataset.image_shape
    parts = []
    for rows, wanted in ((dataset.train, n_train), (dataset.test, n_test)):
        if 0 < wanted < rows.size:
            generator = np.random.default_rng(seed_from("images", name, wanted))
            rows = np.sort(generator.choice(rows, wanted, replace=False))
        values = dataset.data[rows].reshape(-1, height, width, colours).transpose(0, 3, 1, 2)
        parts.append((values.reshape(rows.size, -1).astype(np.float32) / 255.0, dataset.target[rows]))
    (train, y_train), (test, y_test) = parts
    mean, spread = train.mean(), train.std()
    return Pictures((train - mean) / spread, y_train, (test - mean) / spread, y_test, (colours, height, width))


class Images(Protocol):
    """Select pixels, and train networks on what each method selects."""

    name = "images"
    headline = "The tables of the images."
    description = "The tables of MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, with the masks as pictures. Needs torch."
    example = "-d mnist"
    options = (
        DATASETS_OPTION,
        METHODS_OPTION,
        ProtocolOption(
            "configuration",
            ("--configuration", "-c"),
            "small (a CNN, two cores) or full (the paper's, meant for a GPU).",
            default="small",
        ),
        ProtocolOption("n_runs", ("--runs",), "Runs with other seeds.", "integer", shown_default="1", minimum=1),
        ProtocolOption("device", ("--device",), "Where torch runs: cpu, cuda.", default="cpu"),
        SEED_OPTION,
    )

    def make_plan(
        self,
        datasets: Sequence[str] = ("mnist", "fashion_mnist"),
        methods: Sequence[str] = IMAGE_METHODS,
        configuration: str = "small",
        n_runs: int = 1,
        device: str = "cpu",
        seed: int = 0,
    ) -> ImagesPlan:
        """Return a plan with every name checked, and the rows for random and for all pixels added.

        Examples
        --------
        >>> Images().make_plan(["mnist"], ["DFS"]).methods
        ('dfs', 'random', 'all')
        >>> Images().make_plan(["colon"])
        Traceback (most recent call last):
        ValueError: colon holds no images.
        """
        names = pick_datasets(datasets)
        for name in names:
            if find_entry(name).image_shape is None:
                raise ValueError(f"{name} holds no images.")
        chosen = pick_methods(methods)
        for method in chosen:
            info = get_method(method)
            trains_ours = info.trains_model and "network" not in info.options  # here the network is a convolutional one
            if not trains_ours and method not in (*IMAGE_METHODS, *REFERENCES):
                raise ValueError(
                    f"{method} is not part of the tables of images; there are: {', '.join(IMAGE_METHODS)}."
                )
        if n_runs < 1:
            raise ValueError(f"At least one run is needed, got {n_runs}.")
        if device != "cpu":  # torch is asked; a plan for the CPU does without it
            from tamiz.torch.run import checked_device

            checked_device(device)
        return ImagesPlan(
            names,
            with_references(chosen),
            pick_name(configuration, CONFIGURATIONS, "configuration"),
            n_runs,
            device,
            seed,
        )

    def make_cells(self, plan: ImagesPlan, data_home: str | None = None) -> list[Cell]:
        """Return one cell per data set, method and run, for all numbers of pixels."""
        configuration = CONFIGURATIONS[plan.configuration]
        recipe = recipe_of(configuration)
        described = {**asdict(recipe), "selection_epochs": SELECTION_EPOCHS, "ramp_epochs": RAMP_EPOCHS}
        cells = []
        for name in plan.datasets:
            _, checksum = load_checked(name, data_home)
            for method in plan.methods:
                shared = {
                    "dataset": name,
                    "data": checksum,
                    "method": method,
                    "configuration": asdict(configuration),
                    "recipe": described,
                    "m_values": list(image_sizes_of(name)),
                    "device": plan.device,
                    "seed": plan.seed,
                }
                cells += [
                    Cell(self.name, f"{name}, run {run + 1}, {method}", {**shared, "run": run})
                    for run in range(plan.n_runs)
                ]
        return cells

    def run_cell(self, settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
        """Run one method on one data set; return the test accuracy for each number of pixels, and the pixels."""
        configuration = ImagesConfiguration(**settings["configuration"])
        name, run = settings["dataset"], settings["run"]
        pictures = load_pictures(name, data_home, settings["data"], configuration.n_train, configuration.n_test)
        seeds = ImageSeeds(
            selection=seed_from("images", name, settings["method"], run, settings["seed"]),
            judge=seed_from("images", name, "judge", run, settings["seed"]),
        )
        return run_method(settings["method"], pictures, configuration, settings["m_values"], seeds, settings["device"])

    def summarise(
        self, plan: ImagesPlan, cells: Sequence[Cell], results: Mapping[str, Any], failures: Mapping[str, str]
    ) -> ProtocolSummary:
        """Make the tables, and compare the order of the methods with the published ones."""
        return summarise_images(plan, cells, results, failures)

    def draw(
        self, summary: ProtocolSummary, cells: Sequence[Cell], results: Mapping[str, Any], folder: Path
    ) -> dict[str, str]:
        """Draw the masks of the first run."""
        return draw_masks(cells, results, folder)
