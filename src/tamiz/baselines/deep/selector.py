"""Base of the selectors that train a network: normalised rows, encoded targets, the trained network.

Importing this module loads no torch; fitting does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_sample_weight

from tamiz._constraints import NameOf, finite_number, whole_number
from tamiz._extras import require
from tamiz.baselines._base import CLASS_WEIGHT, TASK, BaselineSelector
from tamiz.baselines.deep.recipes import Recipe, recipe_for
from tamiz.core.losses import LOSSES, Loss, get_loss, names_of
from tamiz.engines.contract import Problem
from tamiz.preprocessing.exact import DEVIATIONS
from tamiz.preprocessing.scaling import prepare_table

if TYPE_CHECKING:
    from torch import nn


def standardize_target(y: np.ndarray) -> np.ndarray:
    """Return a numeric target with mean 0 and standard deviation 1 as a column; a constant one becomes 0.

    The rates of the recipes are made for outputs of that size, and so is the gain of the squared error.

    Examples
    --------
    >>> standardize_target(np.array([1.0, 3.0])).tolist()
    [[-1.0], [1.0]]
    """
    largest = np.abs(y).max()
    centred = y / largest if largest > 0 else y
    centred = centred - centred.mean()
    deviation = centred.std()
    return (centred / deviation if deviation > 0 else centred).astype(np.float32)[:, None]


@dataclass(frozen=True, eq=False)
class Setting:
    """Hold what the trainings of one fit share.

    Parameters
    ----------
    problem : Problem
        Rows, targets and weights.
    constant : ndarray of bool, shape (n_features,)
        Columns that never change.
    classes : ndarray of int or None
        The class of each row, 0 .. C-1; None for regression.
    loss : Loss
        The loss.
    recipe : Recipe
        How to train.
    seed : int
        Seed of the first training.
    """

    problem: Problem
    constant: np.ndarray
    classes: np.ndarray | None
    loss: Loss
    recipe: Recipe
    seed: int


@dataclass(frozen=True, eq=False)
class Trained:
    """Hold a trained network, its one-to-one layer if it has one, and its training loss (weighted, without penalties)."""

    model: nn.Module
    one_to_one: Any
    loss: float
    loss_curve: np.ndarray


class NetworkSelector(BaselineSelector):
    """Base of the selectors that train a network. A method writes ``_score_rows``."""

    engine = "torch"
    accepts_sparse = ("csr",)

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "network": [str, callable],
        "input_shape": [list, tuple, None],
        "loss": [NameOf(lambda: ["auto", *LOSSES])],
        "epochs": [whole_number(1), None],
        "batch_size": [whole_number(1), None],
        "learning_rate": [finite_number(0, or_equal=False), None],
        "weight_l2": [finite_number(0), None],
        "class_weight": CLASS_WEIGHT,
        "normalize": [StrOptions(set(DEVIATIONS)), None],
        "task": TASK,
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    #: Parameters that make a fit fast enough for tests that fit many times.
    _fast_test_params: ClassVar[dict[str, Any]] = {"epochs": 5}

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        network: str | Callable[[Any, int], Any] = "linear",
        input_shape: Sequence[int] | None = None,
        loss: str = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_l2: float | None = None,
        class_weight: Any = "balanced",
        normalize: str | None = "erf",
        task: str = "auto",
        device: str = "cpu",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.network = network
        self.input_shape = input_shape
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_l2 = weight_l2
        self.class_weight = class_weight
        self.normalize = normalize
        self.task = task
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _score_rows(self, setting: Setting) -> np.ndarray:
        """Return one non-negative score per feature."""
        raise NotImplementedError

    def _score_features(self, X: Any, y: np.ndarray) -> np.ndarray:
        require("torch", "torch", type(self).__name__)
        self._check_parameters(X.shape[1])
        self.n_steps_ = 0
        setting = self._prepare(X, y)
        # A column that never changes tells nothing, whatever random weight the network began with.
        return np.where(setting.constant, 0.0, self._score_rows(setting))

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": self.n_steps_}

    def _check_parameters(self, n_features: int) -> None:
        """Check what depends on the table or on torch."""
        from tamiz.torch.devices import checked_device
        from tamiz.torch.networks import get_network

        checked_device(self.device)
        reads_images = isinstance(self.network, str) and get_network(self.network).reads_images
        if self.input_shape is None:
            if reads_images:
                raise ValueError(f"network={self.network!r} reads images: set input_shape=(channels, height, width).")
        elif math.prod(self.input_shape) != n_features:
            raise ValueError(
                f"input_shape={tuple(self.input_shape)} has {math.prod(self.input_shape)} entries, "
                f"but X has {n_features} columns."
            )

    def _recipe(self) -> Recipe:
        """Return the recipe of the network, with what the user set in its place."""
        recipe = recipe_for(self.network)
        if self.epochs is not None:
            recipe = recipe.with_epochs(int(self.epochs))
        if self.batch_size is not None:
            recipe = replace(recipe, batch_size=int(self.batch_size))
        if self.learning_rate is not None:
            recipe = replace(recipe, learning_rate=self.learning_rate)
        return recipe if self.weight_l2 is None else replace(recipe, l2=self.weight_l2, l2_over_samples=False)

    def _loss(self, recipe: Recipe) -> Loss:
        automatic = recipe.loss if self.task_ == "classification" else "squared_error"
        loss = get_loss(automatic if self.loss == "auto" else self.loss)
        if loss.task != self.task_:
            raise ValueError(
                f"The loss {loss.name!r} is for {loss.task}; for {self.task_} use one of {names_of(self.task_)}."
            )
        return loss

    def _prepare(self, X: Any, y: np.ndarray) -> Setting:
        """Return rows, targets and weights as the training takes them."""
        recipe = self._recipe()
        loss = self._loss(recipe)
        rows = prepare_table(X, self.normalize).dense()
        if np.may_share_memory(rows, X):  # torch wants memory that it may write to
            rows = rows.copy()
        constant = rows.min(axis=0) == rows.max(axis=0)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if self.task_ == "regression":
            return Setting(Problem(rows, standardize_target(y)), constant, None, loss, recipe, seed)
        weights = compute_sample_weight(self.class_weight, self.classes_[y])
        problem = Problem(rows, loss.encode(y, self.classes_.size), weights)
        return Setting(problem, constant, y, loss, recipe, seed)

    def _train(
        self,
        setting: Setting,
        rows: np.ndarray,
        *,
        penalty: tuple[float, float] | None = None,
        seed_offset: int = 0,
    ) -> Trained:
        """Build the network for these rows and train it.

        Parameters
        ----------
        setting : Setting
            Targets, weights and recipe.
        rows : ndarray of shape (n_samples, n_inputs)
            The rows of the problem, or some of their columns.
        penalty : tuple of float, default=None
            l1 and l2 of the elastic net on a one-to-one layer in front of the network; None for no such layer.
        seed_offset : int, default=0
            Tells apart the runs of one fit.
        """
        from tamiz.baselines.deep.training import evaluate_loss
        from tamiz.torch.batches import full_sizes
        from tamiz.torch.devices import seeded

        problem = replace(setting.problem, X=rows)
        seed = setting.seed + seed_offset
        with seeded(seed):
            model, one_to_one = self._build(rows.shape[1], problem.n_outputs, penalty is not None)
        model.to(self.device)
        check_outputs(model, rows, problem.n_outputs)
        curve = self._fit_weights(model, one_to_one, problem, setting, penalty, seed)
        final = evaluate_loss(model, problem, setting.loss)
        sizes = full_sizes(problem.n_samples, setting.recipe.batch_size_for(problem.n_samples))
        self.n_steps_ += len(sizes) * curve.size
        return Trained(model, one_to_one, final, curve)

    def _fit_weights(
        self,
        model: nn.Sequential,
        one_to_one: Any,
        problem: Problem,
        setting: Setting,
        penalty: tuple[float, float] | None,
        seed: int,
    ) -> np.ndarray:
        """Train in place: the linear network on the CPU by its compiled loop, any other through torch."""
        common: dict[str, Any] = {"seed": seed, "progress": bool(self.verbose)}
        if self.network == "linear" and next(model.parameters()).device.type == "cpu":
            from tamiz.baselines.deep.naive import fit_naive

            network: Any = model[-1]
            if penalty is not None:
                common.update(one_to_one=one_to_one, penalty=penalty)
            return fit_naive(network, problem, setting.recipe, setting.loss, **common)

        from tamiz.baselines.deep.one_to_one import elastic_net
        from tamiz.baselines.deep.training import fit_network

        if penalty is not None:
            common["penalty"] = lambda _: elastic_net(one_to_one.weight, *penalty)
        return fit_network(model, problem, setting.recipe, setting.loss, **common)

    def _build(self, n_inputs: int, n_outputs: int, with_one_to_one: bool) -> tuple[nn.Sequential, Any]:
        """Return the network with what stands in front of it: the one-to-one layer, and the reshaping of images."""
        from torch import nn

        from tamiz.baselines.deep.one_to_one import OneToOne
        from tamiz.torch.networks import make_network

        shape = n_inputs if self.input_shape is None else tuple(self.input_shape)
        if isinstance(self.network, str):
            network = make_network(self.network, shape, n_outputs)
        else:
            network = self.network(shape, n_outputs)
            if not isinstance(network, nn.Module):
                raise TypeError(f"network({shape}, {n_outputs}) must return a torch module, got {network!r}.")
        layers: list[nn.Module] = [OneToOne(n_inputs)] if with_one_to_one else []
        if self.input_shape is not None:
            layers.append(nn.Unflatten(1, tuple(self.input_shape)))
        return nn.Sequential(*layers, network), layers[0] if with_one_to_one else None


def check_outputs(model: nn.Module, rows: np.ndarray, n_outputs: int) -> None:
    """Raise ValueError if the outputs of a network would be broadcast against the targets."""
    import torch

    model.eval()
    with torch.no_grad():
        device = next((parameter.device for parameter in model.parameters()), None)
        shape = tuple(model(torch.as_tensor(rows[:2], device=device)).shape)
    if shape != (2, n_outputs):
        raise ValueError(
            f"The network must give {n_outputs} output(s) per row: for 2 rows (2, {n_outputs}), got {shape}."
        )
