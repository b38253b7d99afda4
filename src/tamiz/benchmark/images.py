"""The paper's tables of images: accuracy of a network that sees only the selected pixels."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz.baselines import registry as baselines
from tamiz.benchmark import methods as selectors
from tamiz.benchmark.cells import Cell, seed_from
from tamiz.benchmark.images_table import summarise  # noqa: F401 (part of the protocol)
from tamiz.benchmark.paper_numbers import IMAGE_SIZES, STANDS_FOR
from tamiz.benchmark.sources import load_checked, pick_name
from tamiz.datasets.registry import find_entry
from tamiz.networks import registry as networks
from tamiz.networks.recipes import Recipe

if TYPE_CHECKING:
    import torch
    from torch import nn

METHODS = ("dfs", "sfs", "isfs", "sfs+dfs", "e2efs", "e2efs-soft")
REFERENCES = ("random", "all")


@dataclass(frozen=True)
class Configuration:
    """How long and on how much everything is trained; a length of 0 rows means all."""

    network: str
    n_train: int
    n_test: int
    pretraining_epochs: int
    refinement_epochs: int
    selection_steps: int | None
    """The most steps of selection, and the ramp; None: the recipe's epochs."""
    learning_rate: float
    batch_size: int
    keep_ratio: float
    """Of iSFS."""


CONFIGURATIONS = {
    "small": Configuration("cnn3", 2000, 2000, 4, 4, 500, 0.05, 32, 0.5),
    "full": Configuration("wrn16x4", 0, 0, 110, 110, None, 0.1, 128, 0.9),
}


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


def recipe_of(configuration: Configuration) -> Recipe:
    """The paper's recipe at the configuration's lengths; the decay of the rates is stretched with them."""
    recipe = networks.recipe(configuration.network).with_epochs(configuration.refinement_epochs)
    return replace(
        recipe,
        learning_rate=configuration.learning_rate,
        selection_learning_rate=configuration.learning_rate,
        pretraining_epochs=configuration.pretraining_epochs,
        batch_size=configuration.batch_size,
    )


@dataclass(frozen=True, eq=False)
class Pictures:
    """Rows with the colours first, mean 0 and standard deviation 1 over all training values."""

    train: np.ndarray
    y_train: np.ndarray
    test: np.ndarray
    y_test: np.ndarray
    shape: tuple[int, int, int]


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
    name, method = settings["dataset"], settings["method"]
    pictures = load_pictures(name, data_home, settings["data"], configuration.n_train, configuration.n_test)
    seed = seed_from("images", name, method, settings["run"], settings["seed"])
    run = _run_own if selectors.is_own(method) else _run_baseline
    accuracy, supports, seconds = run(method, pictures, configuration, settings["m_values"], seed, settings["device"])
    return {"accuracy": accuracy, "support": supports, "seconds": seconds, "shape": list(pictures.shape)}


_Found = tuple[list[float], list[list[int]] | None, list[float]]


def _new_network(pictures: Pictures, configuration: Configuration, seed: int, device: str) -> nn.Module:
    from torch import nn

    from tamiz.networks.training import seeded

    with seeded(seed):
        network = networks.build(configuration.network, pictures.shape, int(pictures.y_train.max()) + 1)
    return nn.Sequential(nn.Unflatten(1, pictures.shape), network).to(device)


def accuracy_of(model: nn.Module, rows: np.ndarray, y: np.ndarray, device: str = "cpu") -> float:
    """The share of rows whose class has the largest output.

    Examples
    --------
    >>> from torch import nn
    >>> accuracy_of(nn.Identity(), np.array([[0.1, 0.9], [0.8, 0.2]], dtype=np.float32), np.array([1, 1]))
    0.5
    """
    import torch

    model.eval()
    with torch.no_grad():
        pieces = [
            model(torch.from_numpy(rows[i : i + 500]).to(device)).argmax(1).cpu() for i in range(0, len(rows), 500)
        ]
    return float((torch.cat(pieces).numpy() == y).mean())


def _train_on(columns: np.ndarray, pictures: Pictures, configuration: Configuration, seed: int, device: str) -> float:
    """Train a new network that sees only these values; its accuracy on the test part."""
    from tamiz.networks.training import fit_network

    keep = np.zeros(pictures.train.shape[1], dtype=np.float32)
    keep[columns] = 1.0
    model = _new_network(pictures, configuration, seed, device)
    fit_network(model, pictures.train * keep, pictures.y_train, recipe=recipe_of(configuration), seed=seed)
    return accuracy_of(model, pictures.test * keep, pictures.y_test, device)


def _run_baseline(
    method: str, pictures: Pictures, configuration: Configuration, m_values: Sequence[int], seed: int, device: str
) -> _Found:
    n_features = pictures.train.shape[1]
    if method == "all":
        score = _train_on(np.arange(n_features), pictures, configuration, seed, device)
        return [score] * len(m_values), None, [0.0] * len(m_values)
    more: dict[str, Any] = {"random_state": seed}
    if method in METHODS:
        more.update(
            network=configuration.network,
            input_shape=pictures.shape,
            epochs=configuration.refinement_epochs,
            batch_size=configuration.batch_size,
            learning_rate=configuration.learning_rate,
            class_weight=None,
            normalize=None,
        )
    if method == "isfs":
        more["keep_ratio"] = configuration.keep_ratio
    started = time.perf_counter()
    # iSFS goes down to the smallest number; what it cuts on the way ranks after what it keeps.
    selector = baselines.make(method, n_features_to_select=min(m_values), **more)
    selector.fit(pictures.train, pictures.y_train)
    seconds = time.perf_counter() - started
    supports = [np.flatnonzero(selector.ranking_ <= m) for m in m_values]
    scores = [_train_on(columns, pictures, configuration, seed, device) for columns in supports]
    return scores, [columns.tolist() for columns in supports], [seconds] * len(m_values)


def _run_own(
    method: str, pictures: Pictures, configuration: Configuration, m_values: Sequence[int], seed: int, device: str
) -> _Found:
    import copy

    import torch
    from torch import nn

    from tamiz.networks.training import fit_network
    from tamiz.torch import FeatureMask, train

    recipe = recipe_of(configuration)
    started = time.perf_counter()
    start = _new_network(pictures, configuration, seed, device)
    fit_network(
        start, pictures.train, pictures.y_train, recipe=recipe, epochs=configuration.pretraining_epochs, seed=seed
    )
    pretraining = time.perf_counter() - started
    variant = selectors.OWN[method]
    ramp_steps, max_steps = phase_steps(configuration, recipe, variant, len(pictures.train))
    steps_per_epoch = -(-len(pictures.train) // configuration.batch_size)
    parts = [recipe.learning_rate_at(epoch) / recipe.learning_rate for epoch in range(recipe.refinement_epochs)]
    data = (torch.from_numpy(pictures.train).to(device), torch.from_numpy(pictures.y_train).to(device))
    accuracy, supports, seconds = [], [], []
    for m in m_values:
        started = time.perf_counter()
        mask = FeatureMask(pictures.train.shape[1], m, variant)
        model = nn.Sequential(mask, copy.deepcopy(start)).to(device)
        selection = train(
            model,
            data,
            nn.functional.cross_entropy,
            optimizer=lambda parameters: _sgd(parameters, recipe, len(pictures.train)),
            batch_size=configuration.batch_size,
            warmup_steps=0,  # the network has been trained
            ramp_steps=ramp_steps,
            max_steps=max_steps,
            refinement_steps=recipe.refinement_epochs * steps_per_epoch,
            refinement_rates=parts,
            seed=seed_from(seed, m),
        )
        seconds.append(pretraining + time.perf_counter() - started)
        accuracy.append(accuracy_of(model, pictures.test, pictures.y_test, device))
        supports.append(selection.indices.tolist())
    return accuracy, supports, seconds


def phase_steps(configuration: Configuration, recipe: Recipe, variant: str, n_rows: int) -> tuple[int, int]:
    """The ramp and the most steps of selection.

    Examples
    --------
    >>> full, small = CONFIGURATIONS["full"], CONFIGURATIONS["small"]
    >>> phase_steps(full, recipe_of(full), "soft", 60000), phase_steps(small, recipe_of(small), "soft", 2000)
    ((117250, 32830), (500, 500))
    """
    if configuration.selection_steps is not None:
        return configuration.selection_steps, configuration.selection_steps
    steps_per_epoch = -(-n_rows // configuration.batch_size)
    of = "soft" if variant == "soft" else "hard"
    return recipe.ramp_epochs[of] * steps_per_epoch, recipe.selection_epochs[of] * steps_per_epoch


def _sgd(parameters: Iterable[nn.Parameter], recipe: Recipe, n_rows: int) -> torch.optim.Optimizer:
    """The recipe's SGD: decay on matrices and kernels only."""
    import torch

    every = list(parameters)
    groups = [
        {"params": [p for p in every if p.dim() > 1], "weight_decay": 2.0 * recipe.l2_for(n_rows)},
        {"params": [p for p in every if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.SGD(
        groups, lr=recipe.selection_learning_rate, momentum=recipe.momentum, nesterov=recipe.momentum > 0
    )
