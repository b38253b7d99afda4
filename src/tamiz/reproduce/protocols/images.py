"""The paper's tables of images: accuracy of a network that sees only the selected pixels.

What is trained, and how long, is in :mod:`tamiz.reproduce.protocols.images_training`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from tamiz.reproduce import selectors
from tamiz.reproduce.cells import Cell, seed_from
from tamiz.reproduce.protocols.images_table import summarise  # noqa: F401 (part of the protocol)
from tamiz.reproduce.protocols.images_training import (
    CONFIGURATIONS,
    METHODS,
    Configuration,
    Pictures,
    Seeds,
    recipe_of,
    run_method,
)
from tamiz.reproduce.paper_numbers import IMAGE_SIZES, STANDS_FOR
from tamiz.reproduce.sources import load_checked, pick_name
from tamiz.datasets.registry import find_entry
from tamiz.networks._torch import checked_device

REFERENCES = ("random", "all")


@dataclass(frozen=True)
class ImagesPlan:
    """What is asked for; :func:`make_plan` checks it."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    configuration: str
    n_runs: int
    device: str
    seed: int


def make_plan(
    datasets: Sequence[str] = ("mnist", "fashion_mnist"),
    methods: Sequence[str] = METHODS,
    configuration: str = "small",
    n_runs: int = 1,
    device: str = "cpu",
    seed: int = 0,
) -> ImagesPlan:
    """A plan with every name checked, and the rows for random and for all pixels added.

    Examples
    --------
    >>> make_plan(["mnist"], ["DFS"]).methods
    ('dfs', 'random', 'all')
    >>> make_plan(["colon"])
    Traceback (most recent call last):
    ValueError: colon holds no images.
    """
    names = tuple(dict.fromkeys(find_entry(name).name for name in datasets))
    for name in names:
        if find_entry(name).image_shape is None:
            raise ValueError(f"{name} holds no images.")
    chosen = [selectors.pick_method(name) for name in methods]
    for method in chosen:
        if not selectors.is_own(method) and method not in (*METHODS, *REFERENCES):
            raise ValueError(f"{method} is not part of the tables of images; there are: {', '.join(METHODS)}.")
    if n_runs < 1:
        raise ValueError(f"At least one run is needed, got {n_runs}.")
    if device != "cpu":  # asked of torch, which the plan of a run on the CPU does without
        checked_device(device)
    return ImagesPlan(
        names,
        tuple(dict.fromkeys([*chosen, *REFERENCES])),
        pick_name(configuration, list(CONFIGURATIONS), "configuration"),
        n_runs,
        device,
        seed,
    )


def sizes_of(dataset: str) -> tuple[int, ...]:
    """The numbers of pixels (values, for colours) of the paper's table.

    Examples
    --------
    >>> sizes_of("fashion_mnist"), sizes_of("cifar10_subset_jpeg")
    ((39, 78, 196, 392), (153, 307, 768, 1536))
    """
    return IMAGE_SIZES[STANDS_FOR.get(dataset, dataset)]


def make_cells(plan: ImagesPlan, data_home: str | None = None) -> list[Cell]:
    """One cell a data set, method and run, for all numbers of pixels."""
    configuration = CONFIGURATIONS[plan.configuration]
    recipe = recipe_of(configuration)
    described = {**asdict(replace(recipe, selection_epochs={}, ramp_epochs={}))}
    described.update(selection_epochs=dict(recipe.selection_epochs), ramp_epochs=dict(recipe.ramp_epochs))
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
                "m_values": list(sizes_of(name)),
                "device": plan.device,
                "seed": plan.seed,
            }
            cells += [
                Cell("images", f"{name}, run {run + 1}, {method}", {**shared, "run": run}) for run in range(plan.n_runs)
            ]
    return cells


@lru_cache(maxsize=1)
def load_pictures(name: str, data_home: str | None, expected: str, n_train: int, n_test: int) -> Pictures:
    """The predefined parts of a data set, or a random draw of each that is the same for all methods."""
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


def run_cell(settings: Mapping[str, Any], data_home: str | None) -> dict[str, Any]:
    """One method on one data set: accuracy on the test part for each number of pixels, and which they are."""
    configuration = Configuration(**settings["configuration"])
    name, run = settings["dataset"], settings["run"]
    pictures = load_pictures(name, data_home, settings["data"], configuration.n_train, configuration.n_test)
    seeds = Seeds(
        selection=seed_from("images", name, settings["method"], run, settings["seed"]),
        judge=seed_from("images", name, "judge", run, settings["seed"]),
    )
    return run_method(settings["method"], pictures, configuration, settings["m_values"], seeds, settings["device"])
