"""Selection of pixels and its scoring: the networks of the tables of images, and how long each is trained.

Every method is scored alike: a new network is trained on the pixels that it chose, for the same number of epochs, from the
same first weights and in the same order of rows. E2E-FS also has the network that comes out of its selection and is
refined, which is what the paper's tables show; it has been trained before, during and after the selection.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz.baselines import registry as baselines
from tamiz.core.losses import get_loss
from tamiz.engines.contract import Problem
from tamiz.paper.deep_training import NAIVE, Recipe, recipe_for
from tamiz.paper.store import seed_from

if TYPE_CHECKING:
    from torch import nn

    from tamiz.selection import Selection


#: Length of the selection and T in the paper, in epochs, by variant.
SELECTION_EPOCHS = {"hard": 70, "soft": 70}
RAMP_EPOCHS = {"hard": 100, "soft": 250}

IMAGE_METHODS = ("dfs", "sfs", "isfs", "sfs+dfs", "e2efs", "e2efs-soft")


@dataclass(frozen=True)
class ImagesConfiguration:
    """Describe on how many rows and for how long everything is trained; 0 rows means all."""

    network: str
    channels: Sequence[int] | None
    """Channels of the convolutions; None: those of the network."""
    n_train: int
    n_test: int
    pretraining_epochs: int
    refinement_epochs: int
    """Epochs of each training on selected pixels, and of the networks by which DFS and SFS choose."""
    ramp_steps: int | None
    """T of E2E-FS in steps, the selection ending by itself; None: the paper's epochs, for T and for the selection."""
    learning_rate: float
    batch_size: int
    keep_ratio: float
    """Share of the features that iSFS keeps in each round."""


CONFIGURATIONS = {
    "small": ImagesConfiguration("cnn3", (16, 32, 64), 4000, 4000, 6, 6, 2000, 0.001, 32, 0.7),
    "full": ImagesConfiguration("wrn16x4", None, 0, 0, 110, 110, None, 0.1, 128, 0.9),
}


def recipe_of(configuration: ImagesConfiguration) -> Recipe:
    """Return how every network of a configuration is trained; the decay of the rates is stretched to its lengths.

    The paper's SGD; for a network of other channels Adam, with the loss and the l2 of the images: so do DFS and SFS train a
    network that is given to them, and SGD needs more epochs than such a run has.

    Examples
    --------
    >>> [recipe_of(CONFIGURATIONS[name]).optimizer for name in ("full", "small")]
    ['sgd', 'adam']
    """
    recipe = recipe_for(configuration.network)
    if configuration.channels is not None:
        recipe = replace(NAIVE, loss=recipe.loss, l2=recipe.l2, l2_over_samples=False)
    return replace(
        recipe.with_epochs(configuration.refinement_epochs),
        learning_rate=configuration.learning_rate,
        batch_size=configuration.batch_size,
    )


@dataclass(frozen=True, eq=False)
class Pictures:
    """Hold rows with the colours first, mean 0 and standard deviation 1 over all training values."""

    train: np.ndarray
    y_train: np.ndarray
    test: np.ndarray
    y_test: np.ndarray
    shape: tuple[int, int, int]


@dataclass(frozen=True)
class ImageSeeds:
    """Hold the seeds of the selection and of the networks that score it, which are the same for all methods."""

    selection: int
    judge: int


def run_method(
    method: str,
    pictures: Pictures,
    configuration: ImagesConfiguration,
    m_values: Sequence[int],
    seeds: ImageSeeds,
    device: str = "cpu",
) -> dict[str, Any]:
    """Select by a method, then train a new network on each selection; return what is stored in a cell."""
    own_accuracy: list[float] | None = None
    supports: list[np.ndarray] | None = None
    if baselines.get_method(method).keeps_all:
        every = np.arange(pictures.train.shape[1])
        judged = [_train_on(every, pictures, configuration, seeds.judge, device)] * len(m_values)
        seconds, whole = [0.0] * len(m_values), [seconds for _, seconds in judged]
    else:
        if baselines.get_method(method).trains_model:
            supports, seconds, whole, own_accuracy = _select_own(
                method, pictures, configuration, m_values, seeds.selection, device
            )
        else:
            supports, seconds = _select_baseline(method, pictures, configuration, m_values, seeds.selection, device)
        judged = [_train_on(columns, pictures, configuration, seeds.judge, device) for columns in supports]
        if own_accuracy is None:
            whole = [selected + trained for selected, (_, trained) in zip(seconds, judged, strict=True)]
    accuracy = [value for value, _ in judged]
    return {
        "accuracy": accuracy,
        "own_accuracy": own_accuracy,
        "support": None if supports is None else [columns.tolist() for columns in supports],
        "seconds": seconds,
        "whole_seconds": whole,
        "shape": list(pictures.shape),
    }


def build_image_network(configuration: ImagesConfiguration, shape: Sequence[int], n_outputs: int) -> nn.Module:
    """Build the network in the memory format in which convolutions on a CPU take half the time."""
    import torch

    from tamiz.torch.networks import make_network

    more = {} if configuration.channels is None else {"channels": tuple(configuration.channels)}
    network: Any = make_network(configuration.network, shape, n_outputs, **more)  # torch's types lack memory formats
    ordered: nn.Module = network.to(memory_format=torch.channels_last)
    return ordered


def _new_network(pictures: Pictures, configuration: ImagesConfiguration, seed: int, device: str) -> nn.Module:
    from torch import nn

    from tamiz.torch.run import seeded

    with seeded(seed):
        network = build_image_network(configuration, pictures.shape, int(pictures.y_train.max()) + 1)
    return nn.Sequential(nn.Unflatten(1, pictures.shape), network).to(device)


def accuracy_of(model: nn.Module, rows: np.ndarray, y: np.ndarray, device: str = "cpu") -> float:
    """Return the share of rows whose class has the largest output.

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


def problem_of(rows: np.ndarray, pictures: Pictures, recipe: Recipe) -> Problem:
    """Return training rows with the classes of the pictures as the loss of a recipe takes them."""
    return Problem(rows, get_loss(recipe.loss).encode(pictures.y_train, int(pictures.y_train.max()) + 1))


def _train_on(
    columns: np.ndarray, pictures: Pictures, configuration: ImagesConfiguration, seed: int, device: str
) -> tuple[float, float]:
    """Train a new network that sees only these columns; return its accuracy on the test part, and the seconds of training."""
    from tamiz.paper.deep_training import fit_network

    keep = np.zeros(pictures.train.shape[1], dtype=np.float32)
    keep[columns] = 1.0
    model = _new_network(pictures, configuration, seed, device)
    recipe = recipe_of(configuration)
    started = time.perf_counter()
    fit_network(model, problem_of(pictures.train * keep, pictures, recipe), recipe, get_loss(recipe.loss), seed=seed)
    seconds = time.perf_counter() - started
    return accuracy_of(model, pictures.test * keep, pictures.y_test, device), seconds


def _select_baseline(
    method: str, pictures: Pictures, configuration: ImagesConfiguration, m_values: Sequence[int], seed: int, device: str
) -> tuple[list[np.ndarray], list[float]]:
    more: dict[str, Any] = {"random_state": seed}
    if method in IMAGE_METHODS:
        recipe = recipe_of(configuration)
        narrow = configuration.channels is not None
        more.update(
            network=partial(build_image_network, configuration) if narrow else configuration.network,
            input_shape=pictures.shape,
            loss=recipe.loss,
            epochs=configuration.refinement_epochs,
            batch_size=configuration.batch_size,
            learning_rate=configuration.learning_rate,
            weight_l2=recipe.l2_for(len(pictures.train)),
            class_weight=None,
            normalize=None,
            device=device,
        )
    if method == "isfs":
        more["keep_ratio"] = configuration.keep_ratio
    started = time.perf_counter()
    # iSFS goes down to the smallest number; what it cuts on the way ranks after what it keeps.
    selector = baselines.make_selector(method, min(m_values), **more)
    selector.fit(pictures.train, pictures.y_train)
    seconds = time.perf_counter() - started
    return [np.flatnonzero(selector.ranking_ <= m) for m in m_values], [seconds] * len(m_values)


def _select_own(
    method: str, pictures: Pictures, configuration: ImagesConfiguration, m_values: Sequence[int], seed: int, device: str
) -> tuple[list[np.ndarray], list[float], list[float], list[float]]:
    """Return the selections, their seconds without and with the refinement, and the accuracies of the refined networks."""
    from tamiz.paper.deep_training import fit_network

    recipe = recipe_of(configuration)
    started = time.perf_counter()
    start = _new_network(pictures, configuration, seed, device)
    pretraining_recipe = recipe.with_epochs(configuration.pretraining_epochs)
    problem = problem_of(pictures.train, pictures, recipe)
    fit_network(start, problem, pretraining_recipe, get_loss(recipe.loss), seed=seed)
    pretraining = time.perf_counter() - started
    supports, seconds, whole, accuracy = [], [], [], []
    for m in m_values:
        selection, refined = _select_and_refine(start, method, m, pictures, configuration, seed_from(seed, m))
        supports.append(selection.indices)
        # The trainer counts selection, rest and refinement together; steps cost about the same in all.
        seconds.append(pretraining + selection.seconds * selection.closed_at / selection.n_steps)
        whole.append(pretraining + selection.seconds)
        accuracy.append(accuracy_of(refined, pictures.test, pictures.y_test, device))
    return supports, seconds, whole, accuracy


def _select_and_refine(
    start: nn.Module, method: str, m: int, pictures: Pictures, configuration: ImagesConfiguration, seed: int
) -> tuple[Selection, nn.Module]:
    import copy

    import torch
    from torch import nn

    from tamiz.paper.deep_training import recipe_optimizer
    from tamiz.torch import FeatureMask, train
    from tamiz.torch.batches import full_sizes

    recipe, n_rows = recipe_of(configuration), len(pictures.train)
    variant = baselines.get_method(method).options["variant"]
    ramp_steps, max_steps = phase_steps(configuration, variant, n_rows)
    device = next(start.parameters()).device
    model = nn.Sequential(FeatureMask(pictures.train.shape[1], m, variant), copy.deepcopy(start)).to(device)
    selection = train(
        model,
        (torch.from_numpy(pictures.train).to(device), torch.from_numpy(pictures.y_train).to(device)),
        nn.functional.cross_entropy,
        optimizer=lambda parameters: recipe_optimizer(parameters, recipe, n_rows),
        batch_size=configuration.batch_size,
        ramp_steps=ramp_steps,
        max_steps=max_steps,
        selection_steps=max_steps or 0,
        refinement_steps=recipe.epochs * len(full_sizes(n_rows, configuration.batch_size)),
        refinement_rates=[recipe.learning_rate_at(epoch) / recipe.learning_rate for epoch in range(recipe.epochs)],
        seed=seed,
    )
    return selection, model


def phase_steps(configuration: ImagesConfiguration, variant: str, n_rows: int) -> tuple[int, int | None]:
    """Return the steps of the ramp and the most steps of selection (None: the mask's default).

    Examples
    --------
    >>> full, small = CONFIGURATIONS["full"], CONFIGURATIONS["small"]
    >>> phase_steps(full, "soft", 60000), phase_steps(small, "soft", 4000)
    ((117250, 32830), (2000, None))
    """
    if configuration.ramp_steps is not None:
        return configuration.ramp_steps, None
    steps_per_epoch = -(-n_rows // configuration.batch_size)
    of = "soft" if variant == "soft" else "hard"
    return RAMP_EPOCHS[of] * steps_per_epoch, SELECTION_EPOCHS[of] * steps_per_epoch
