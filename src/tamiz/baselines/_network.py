"""What the selectors that train a network share: normalised rows, encoded targets, the trained network.

Importing this module loads no torch; fitting does.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight

from tamiz.baselines._base import BaselineSelector
from tamiz.networks import registry as networks
from tamiz.networks._torch import checked_device, require_torch
from tamiz.networks.recipes import NAIVE, Recipe
from tamiz.preprocessing.scaling import NORMALIZATIONS, prepare_table

if TYPE_CHECKING:
    from torch import Tensor, nn


def standardize_target(y: np.ndarray) -> np.ndarray:
    """A numeric target with mean 0 and standard deviation 1 as a column; a constant one becomes 0.

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


@dataclass(frozen=True)
class Problem:
    """A table ready for training: rows, encoded targets, weights, and how to train on them."""

    rows: np.ndarray
    constant: np.ndarray
    targets: Tensor
    groups: np.ndarray | None
    sample_weight: np.ndarray | None
    loss: str
    n_outputs: int
    recipe: Recipe
    seed: int


@dataclass(frozen=True)
class Trained:
    """A trained network, its one-to-one layer if it has one, and the training loss (weighted, without penalties)."""

    model: nn.Module
    one_to_one: Any
    loss: float
    loss_curve: np.ndarray


class NetworkSelector(BaselineSelector):
    """Base of the selectors that train a network. A method writes ``_score_rows``."""

    engine = "torch"
    accepts_sparse = ("csr",)
    #: Parameters that make a fit fast enough for tests that fit many times.
    _fast_test_params: ClassVar[dict[str, Any]] = {"epochs": 5}

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        network: str | Callable[[Any, int], Any] = "naive",
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

    def _score_rows(self, problem: Problem) -> np.ndarray:
        """One non-negative score a feature."""
        raise NotImplementedError

    def _score_features(self, X: Any, y: np.ndarray) -> np.ndarray:
        require_torch(type(self).__name__)
        self._check_parameters(X.shape[1])
        self.n_steps_ = 0
        problem = self._prepare(X, y)
        # A column that never changes tells nothing, whatever random weight the network began with.
        return np.where(problem.constant, 0.0, self._score_rows(problem))

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": self.n_steps_}

    def _check_parameters(self, n_features: int) -> None:
        check_integer("epochs", self.epochs)
        check_integer("batch_size", self.batch_size)
        check_number("learning_rate", self.learning_rate, positive=True)
        check_number("weight_l2", self.weight_l2)
        checked_device(self.device)
        if self.normalize not in NORMALIZATIONS:
            raise ValueError(f"normalize must be 'erf', 'standard' or None, got {self.normalize!r}.")
        if not callable(self.network) and not isinstance(self.network, str):
            raise ValueError(
                f"network must be one of {networks.available()} or a callable that is given the number of inputs "
                f"(or input_shape) and of outputs and returns a torch module, got {self.network!r}."
            )
        if self.input_shape is None:
            if isinstance(self.network, str) and networks.entry(self.network).reads_images:
                raise ValueError(f"network={self.network!r} reads images: set input_shape=(channels, height, width).")
        elif math.prod(self.input_shape) != n_features:
            raise ValueError(
                f"input_shape={tuple(self.input_shape)} has {math.prod(self.input_shape)} entries, "
                f"but X has {n_features} columns."
            )

    def _prepare(self, X: Any, y: np.ndarray) -> Problem:
        """Rows, targets and weights in the form the training loop takes."""
        import torch

        from tamiz.networks.losses import CLASSIFICATION_LOSSES, encode_classes, get_loss, n_outputs_for

        recipe = networks.recipe(self.network) if isinstance(self.network, str) else NAIVE
        table = prepare_table(X, self.normalize)
        rows = table.dense()
        if np.may_share_memory(rows, X):  # torch wants memory that it may write to
            rows = rows.copy()
        constant = rows.min(axis=0) == rows.max(axis=0)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if self.task_ == "regression":
            loss = "squared_error" if self.loss == "auto" else self.loss
            get_loss(loss)
            if loss in CLASSIFICATION_LOSSES:
                raise ValueError(f"The loss {loss!r} is for classes; for regression take 'squared_error' or 'huber'.")
            targets = torch.from_numpy(standardize_target(y))
            return Problem(rows, constant, targets, None, None, loss, 1, recipe, seed)
        loss = recipe.loss if self.loss == "auto" else self.loss
        n_classes = self.classes_.size
        targets = encode_classes(y, n_classes, loss)
        weights = compute_sample_weight(self.class_weight, self.classes_[y])
        n_outputs = n_outputs_for(loss, n_classes)
        return Problem(rows, constant, targets, y, weights, loss, n_outputs, recipe, seed)

    def _train(
        self,
        problem: Problem,
        rows: np.ndarray,
        *,
        with_one_to_one: bool = False,
        penalty: tuple[float, float] = (0.0, 0.0),
        seed_offset: int = 0,
    ) -> Trained:
        """Build the network for these rows and train it.

        Parameters
        ----------
        problem : Problem
            Targets, weights and recipe.
        rows : ndarray of shape (n_samples, n_inputs)
            The problem's rows, or some of their columns.
        with_one_to_one : bool
            Whether the layer of DFS stands in front of the network, with the elastic-net ``penalty`` (l1, l2) on it.
        penalty : tuple of float
            See above.
        seed_offset : int
            Tells apart the runs of one fit.
        """
        from tamiz.networks.training import count_batches, evaluate_loss, seeded

        seed = problem.seed + seed_offset
        with seeded(seed):
            model, one_to_one = self._build(rows.shape[1], problem.n_outputs, with_one_to_one)
        model.to(self.device)
        check_outputs(model, rows, problem.n_outputs)
        settings = {
            "recipe": problem.recipe,
            "loss": problem.loss,
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "l2": self.weight_l2,
            "sample_weight": problem.sample_weight,
            "seed": seed,
            "progress": bool(self.verbose),
        }
        curve = self._fit(model, one_to_one, rows, problem.targets, penalty, settings)
        final = evaluate_loss(model, rows, problem.targets, problem.loss, problem.sample_weight)
        size = problem.recipe.batch_size_for(len(rows)) if self.batch_size is None else self.batch_size
        self.n_steps_ += count_batches(len(rows), size) * curve.size
        return Trained(model, one_to_one, final, curve)

    def _fit(
        self,
        model: nn.Sequential,
        one_to_one: Any,
        rows: np.ndarray,
        targets: Tensor,
        penalty: tuple[float, float],
        settings: dict[str, Any],
    ) -> np.ndarray:
        """Train in place: the naive network on the CPU by its compiled loop, any other through torch."""
        if self.network == "naive" and next(model.parameters()).device.type == "cpu":
            from tamiz.networks.compiled import fit_naive

            naive: Any = model[-1]
            return fit_naive(naive, rows, targets, one_to_one=one_to_one, penalty=penalty, **settings)

        from tamiz.networks.one_to_one import elastic_net
        from tamiz.networks.training import fit_network

        elastic = None if one_to_one is None else (lambda _: elastic_net(one_to_one.weight, *penalty))
        return fit_network(model, rows, targets, penalty=elastic, **settings)

    def _build(self, n_inputs: int, n_outputs: int, with_one_to_one: bool) -> tuple[nn.Sequential, Any]:
        """The network with what stands in front of it: the one-to-one layer, and the reshaping of images."""
        from torch import nn

        from tamiz.networks.one_to_one import OneToOne

        shape = n_inputs if self.input_shape is None else tuple(self.input_shape)
        if isinstance(self.network, str):
            network = networks.build(self.network, shape, n_outputs)
        else:
            network = self.network(shape, n_outputs)
            if not isinstance(network, nn.Module):
                raise TypeError(f"network({shape}, {n_outputs}) must return a torch module, got {network!r}.")
        layers: list[nn.Module] = [OneToOne(n_inputs)] if with_one_to_one else []
        if self.input_shape is not None:
            layers.append(nn.Unflatten(1, tuple(self.input_shape)))
        return nn.Sequential(*layers, network), layers[0] if with_one_to_one else None


def check_outputs(model: nn.Module, rows: np.ndarray, n_outputs: int) -> None:
    """Refuse a network whose outputs would be broadcast against the targets into nonsense."""
    import torch

    model.eval()
    with torch.no_grad():
        device = next((parameter.device for parameter in model.parameters()), None)
        shape = tuple(model(torch.as_tensor(rows[:2], device=device)).shape)
    if shape != (2, n_outputs):
        raise ValueError(
            f"The network must give {n_outputs} output(s) a row: for 2 rows (2, {n_outputs}), got {shape}."
        )


def check_integer(name: str, value: Any) -> None:
    """Refuse what is neither None nor a whole number from 1."""
    if value is None:
        return
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer from 1, or None for the paper's, got {value!r}.")


def check_number(name: str, value: Any, positive: bool = False) -> None:
    """Refuse what is neither None nor a finite number from 0 (above 0 if ``positive``)."""
    if value is None:
        return
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or value < 0 or (positive and value == 0):
        raise ValueError(f"{name} must be a finite number {'above' if positive else 'from'} 0, got {value!r}.")
