"""Baselines that train a network: DFS, SFS, iSFS and SFS with the layer of DFS."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from torch import nn

from tamiz._utils.extras import require
from tamiz._utils.validation import NameOf, finite_number, whole_number
from tamiz.baselines.base import CLASS_WEIGHT, TASK, BaselineSelector, ranking_from_scores
from tamiz.core.losses import LOSSES, Loss, get_loss, names_of
from tamiz.engines.contract import Problem
from tamiz.paper.deep_training import Recipe, recipe_for
from tamiz.rows.exact import DEVIATIONS
from tamiz.rows.scaling import prepare_table

if TYPE_CHECKING:
    from torch import nn


def input_saliency(
    model: nn.Module,
    X: Any,
    targets: Any,
    loss: Loss,
    groups: np.ndarray | None = None,
    batch_size: int = 512,
) -> np.ndarray:
    """Return the share of each input in the saliency of a trained network.

    For each sample the absolute gradient of the gain with respect to the input; summed over the samples of a class and
    divided by the total of the class, so that each class counts alike however many samples it has; summed over the
    classes and divided by the total.

    Parameters
    ----------
    model : nn.Module
        The trained network; used in evaluation mode, parameters untouched.
    X : array or tensor, shape (n_samples, n_features)
        The inputs.
    targets : array or tensor, shape (n_samples, n_outputs)
        The targets as the loss takes them.
    loss : Loss
        The loss the network was trained with.
    groups : ndarray of int or None, default=None
        The class of each sample, 0 .. C-1; None where all samples are one group (regression).
    batch_size : int, default=512
        Samples that go through the network at once; does not change the result.

    Returns
    -------
    ndarray of shape (n_features,)
        Non-negative, with a sum of 1 (all zero if the network does not depend on its input).

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> net = nn.Linear(2, 1)
    >>> net.weight.data = torch.tensor([[3.0, -1.0]])
    >>> input_saliency(net, torch.zeros(4, 2), torch.ones(4, 1), get_loss("squared_hinge")).round(4).tolist()
    [0.75, 0.25]
    """
    device = next(model.parameters()).device
    rows = torch.as_tensor(X, dtype=torch.float32, device=device)
    targets = torch.as_tensor(targets, device=device)
    classes = torch.zeros(rows.shape[0], dtype=torch.int64) if groups is None else torch.as_tensor(groups)
    totals = torch.zeros(int(classes.max()) + 1, rows.shape[1], dtype=torch.float64)
    was_training = model.training
    model.eval()
    for index in torch.arange(rows.shape[0], device=device).split(batch_size):
        batch = rows[index].requires_grad_()
        (gradient,) = torch.autograd.grad(loss.gain(model(batch), targets[index]).sum(), batch)
        totals.index_add_(0, classes[index.cpu()], gradient.abs().to("cpu", torch.float64))
    model.train(was_training)
    sums = totals.numpy()
    share = (sums / np.maximum(sums.sum(axis=1, keepdims=True), np.finfo(float).tiny)).sum(axis=0)
    return share / max(share.sum(), np.finfo(float).tiny)


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
        from tamiz.torch.networks import get_network
        from tamiz.torch.run import checked_device

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
        from tamiz.paper.deep_training import evaluate_loss
        from tamiz.torch.batches import full_sizes
        from tamiz.torch.run import seeded

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
            from tamiz.paper.deep_training import fit_naive

            network: Any = model[-1]
            if penalty is not None:
                common.update(one_to_one=one_to_one, penalty=penalty)
            return fit_naive(network, problem, setting.recipe, setting.loss, **common)

        from tamiz.paper.deep_training import elastic_net, fit_network

        if penalty is not None:
            common["penalty"] = lambda _: elastic_net(one_to_one.weight, *penalty)
        return fit_network(model, problem, setting.recipe, setting.loss, **common)

    def _build(self, n_inputs: int, n_outputs: int, with_one_to_one: bool) -> tuple[nn.Sequential, Any]:
        """Return the network with what stands in front of it: the one-to-one layer, and the reshaping of images."""
        from torch import nn

        from tamiz.paper.deep_training import OneToOne
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


class OneToOneSelector(NetworkSelector):
    """Base of the selectors whose network carries a one-to-one layer w with ``l1 * |w|_1 + l2 * |w|_2^2`` on it."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetworkSelector._parameter_constraints,
        "l1": [finite_number(0)],
        "l2": [finite_number(0)],
    }

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        l1: float = 0.001,
        l2: float = 0.001,
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
        super().__init__(
            n_features_to_select,
            network=network,
            input_shape=input_shape,
            loss=loss,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_l2=weight_l2,
            class_weight=class_weight,
            normalize=normalize,
            task=task,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.l1 = l1
        self.l2 = l2

    def _train_with_penalty(self, setting: Setting) -> Trained:
        return self._train(setting, setting.problem.X, penalty=(self.l1, self.l2))


class DFS(OneToOneSelector):
    """Deep Feature Selection (Li, Chen and Wasserman 2016).

    A layer with one weight w for each input, 1 at the start, stands in front of the network; the penalty
    ``l1 * |w|_1 + l2 * |w|_2^2`` is added to the loss, and all is trained together. The score of a feature is |w|.

    The cost is that of training the network once.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    l1 : float, default=0.001
        Factor of the absolute norm of the one-to-one layer, as in the paper's runs.
    l2 : float, default=0.001
        Factor of the squared norm of the one-to-one layer.
    network : {"linear", "mlp", "wrn16x4", "cnn3"} or callable, default="linear"
        The network; this and the following parameters are those of :class:`~tamiz.paper.deep.SFS`.
    input_shape : sequence of int or None, default=None
        (channels, height, width) for networks that read images.
    loss : str, default="auto"
        Loss by name.
    epochs : int or None, default=None
        Passes over the table.
    batch_size : int or None, default=None
        Rows per step.
    learning_rate : float or None, default=None
        Rate at the start.
    weight_l2 : float or None, default=None
        Factor of the squared norm of the network's weights.
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss.
    normalize : {"erf", "erf2", "standard", None}, default="erf"
        Normalisation of the columns, see :class:`~tamiz.baselines.SFS`.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is.
    device : str, default="cpu"
        Where torch trains.
    random_state : int, RandomState instance or None, default=None
        Decides the order of the rows and the initial weights of the network.
    verbose : bool, default=False
        Whether to report the progress of the training on stderr.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        |w|; 0 for constant columns.
    ranking_ : ndarray of shape (n_features_in_,)
        1 is the best.
    loss_curve_ : ndarray of shape (epochs,)
        The mean training loss of each epoch, with the penalty.
    n_steps_ : int
        Training steps taken.

    References
    ----------
    Y. Li, C.-Y. Chen, W. W. Wasserman: Deep Feature Selection: Theory and Application to Identify Enhancers and
    Promoters. Journal of Computational Biology 23 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> DFS(n_features_to_select=2, epochs=40, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    method_name = "dfs"
    title = "DFS"

    def _score_rows(self, setting: Setting) -> np.ndarray:
        trained = self._train_with_penalty(setting)
        self.loss_curve_ = trained.loss_curve
        return np.abs(trained.one_to_one.weight.detach().cpu().numpy().astype(np.float64))


class SFS(NetworkSelector):
    """Saliency-based Feature Selection (Cancela, Bolon-Canedo, Alonso-Betanzos and Gama 2020).

    The network is trained once. For each training sample the absolute gradient, with respect to the input, of a *gain*
    of output and label is taken; it is summed over the samples of a class and divided by the class's total, so that
    each class counts alike, then summed over the classes and divided by the total. The score is this share over the
    training loss. The gain is ``(1 + y * s)_+^2``, s clipped to [-1, 1], for the squared hinge; ``-log(1 - p)``, p the
    probability of the true class, for the cross-entropies; ``1 / ((y - s)^2 + 1)`` for regression. The clip counts in
    the gain, not in its gradient.

    The paper balances the classes by drawing samples anew; dividing by each class's total does the same without chance.
    The cost is that of training the network once and one more epoch.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    network : {"linear", "mlp", "wrn16x4", "cnn3"} or callable, default="linear"
        The network, or a callable that is given the number of inputs (or ``input_shape``) and of outputs and returns a
        torch module.
    input_shape : sequence of int or None, default=None
        For networks that read images: (channels, height, width), the columns of X being their values in that order.
    loss : str, default="auto"
        "squared_hinge", "softmax" or "logistic" for classes, "squared_error" or "huber" for regression; "auto" takes the
        paper's for the network (the squared hinge for "linear" and "mlp") and the squared error.
    epochs : int or None, default=None
        Passes over the table; None for the paper's (150 for "linear" and "mlp"). The rates are stretched to it.
    batch_size : int or None, default=None
        Rows per step; None for the paper's (max(2, N / 50) for "linear" and "mlp").
    learning_rate : float or None, default=None
        Rate at the start, divided by 5 after each third of the epochs; None for the paper's (1e-3, with Adam, for
        "linear" and "mlp").
    weight_l2 : float or None, default=None
        Factor of the squared norm of the network's weights; None for the paper's (100 / N for "linear" and "mlp").
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss.
    normalize : {"erf", "erf2", "standard", None}, default="erf"
        "erf" is ``erf((X - mean) / (sqrt(2) * sd))`` column by column, as in the code that the paper's authors released;
        "erf2" has the ``2 * sd`` that the paper prints; "standard" is the same without erf; None takes the data
        as they are. A sparse X is normalised into a dense float32 table.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" reads it from the target: numbers with a fractional part mean regression.
    device : str, default="cpu"
        Where torch trains: "cpu", "cuda", "cuda:1".
    random_state : int, RandomState instance or None, default=None
        Decides the order of the rows and the initial weights of the network.
    verbose : bool, default=False
        Whether to report the progress of the training on stderr.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        Share of the saliency over the training loss; 0 for constant columns.
    ranking_ : ndarray of shape (n_features_in_,)
        1 is the best.
    training_loss_ : float
        The weighted mean loss of the trained network, without penalties.
    loss_curve_ : ndarray of shape (epochs,)
        The mean training loss of each epoch.
    n_steps_ : int
        Training steps taken.

    References
    ----------
    B. Cancela, V. Bolon-Canedo, A. Alonso-Betanzos, J. Gama: A scalable saliency-based feature selection method with
    instance-level information. Knowledge-Based Systems 192 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> SFS(n_features_to_select=2, epochs=40, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    method_name = "sfs"
    title = "SFS"

    def _train_for_saliency(self, setting: Setting) -> Trained:
        return self._train(setting, setting.problem.X)

    def _score_rows(self, setting: Setting) -> np.ndarray:

        trained = self._train_for_saliency(setting)
        self.loss_curve_, self.training_loss_ = trained.loss_curve, trained.loss
        problem = setting.problem
        share = input_saliency(trained.model, problem.X, problem.targets, setting.loss, setting.classes)
        # A loss of zero is possible (every margin met); the order of the features does not depend on it.
        return share / max(trained.loss, np.finfo(np.float32).tiny)


def next_size(n_alive: int, keep_ratio: float, n_wanted: int) -> int:
    """Return the size of the next round: the ratio of those alive, at least one fewer, never below the number wanted.

    Examples
    --------
    >>> next_size(100, 0.9, 10), next_size(5, 0.9, 2), next_size(11, 0.5, 10)
    (90, 4, 10)
    """
    return max(n_wanted, min(n_alive - 1, int(n_alive * keep_ratio)))


class ISFS(NetworkSelector):
    """Iterative Saliency-based Feature Selection (Cancela et al. 2020, there with gamma = 0.9).

    A network is trained and the features are ranked as by :class:`~tamiz.paper.deep.SFS`; the best ``keep_ratio`` of
    them stay, a new network is trained on these, and so on down to the number wanted. What was dropped earlier ranks
    lower; within a round the saliency decides.

    The network is trained about log(F / M) / log(1 / keep_ratio) times: 50 times from 2000 features to 10.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    keep_ratio : float, default=0.9
        Share of the features that stays in each round, in [0, 1); with 0 there is one round, which is SFS.
    network : {"linear", "mlp", "wrn16x4", "cnn3"} or callable, default="linear"
        The network; this and the following parameters are those of :class:`~tamiz.paper.deep.SFS`.
    input_shape : sequence of int or None, default=None
        (channels, height, width) for networks that read images. Dropped values are set to 0 there (the image
        keeps its shape); without a shape their columns are taken away.
    loss : str, default="auto"
        Loss by name.
    epochs : int or None, default=None
        Passes over the table.
    batch_size : int or None, default=None
        Rows per step.
    learning_rate : float or None, default=None
        Rate at the start.
    weight_l2 : float or None, default=None
        Factor of the squared norm of the network's weights.
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss.
    normalize : {"erf", "erf2", "standard", None}, default="erf"
        Normalisation of the columns, see :class:`~tamiz.baselines.SFS`.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is.
    device : str, default="cpu"
        Where torch trains.
    random_state : int, RandomState instance or None, default=None
        Decides the order of the rows and the initial weights of the network.
    verbose : bool, default=False
        Whether to report the progress of the training on stderr.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        The number of rounds the feature stayed alive, plus its share of the saliency in its last round. Constant
        columns have 0.
    ranking_ : ndarray of shape (n_features_in_,)
        1 is the best.
    n_rounds_ : int
        How many networks were trained.
    n_steps_ : int
        Training steps taken, over all rounds.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> selector = ISFS(n_features_to_select=2, epochs=20, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist(), selector.n_rounds_
    ([1, 4], 4)
    """

    method_name = "isfs"
    title = "iSFS"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetworkSelector._parameter_constraints,
        "keep_ratio": [Interval(Real, 0, 1, closed="left")],
    }
    nested = "each"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        keep_ratio: float = 0.9,
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
        super().__init__(
            n_features_to_select,
            network=network,
            input_shape=input_shape,
            loss=loss,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_l2=weight_l2,
            class_weight=class_weight,
            normalize=normalize,
            task=task,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.keep_ratio = keep_ratio

    def _score_rows(self, setting: Setting) -> np.ndarray:
        scores = np.zeros(setting.constant.size)
        alive = np.arange(scores.size)
        self.n_rounds_ = 0
        while True:
            share = self._share_of_saliency(setting, alive)
            scores[alive] = self.n_rounds_ + share
            self.n_rounds_ += 1
            size = next_size(alive.size, self.keep_ratio, self.n_features_to_select_)
            if size >= alive.size or size == self.n_features_to_select_:
                return scores
            alive = alive[ranking_from_scores(share) <= size]

    def _share_of_saliency(self, setting: Setting, alive: np.ndarray) -> np.ndarray:
        """Train on the columns that are alive; return the share of each in the saliency."""

        problem = setting.problem
        if self.input_shape is None:
            rows = np.ascontiguousarray(problem.X[:, alive])
        else:
            rows = np.zeros_like(problem.X)
            rows[:, alive] = problem.X[:, alive]
        model = self._train(setting, rows, seed_offset=self.n_rounds_).model
        share = input_saliency(model, rows, problem.targets, setting.loss, setting.classes)
        share = share if self.input_shape is None else share[alive]
        return np.where(setting.constant[alive], 0.0, share)


class SFSDFS(OneToOneSelector, SFS):
    """SFS+DFS (Cancela et al. 2020): the network carries the layer of DFS while SFS ranks.

    The network is trained as by :class:`~tamiz.paper.deep.DFS`, with one weight w in front of each input
    and the penalty ``l1 * |w|_1 + l2 * |w|_2^2``; the score is the saliency of
    :class:`~tamiz.paper.deep.SFS` with respect to the input in front of that layer, so that w is a factor
    of it. The cost is that of SFS.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    l1 : float, default=0.001
        Factor of the absolute norm of the one-to-one layer, as in the paper's runs.
    l2 : float, default=0.001
        Factor of the squared norm of the one-to-one layer.
    network : {"linear", "mlp", "wrn16x4", "cnn3"} or callable, default="linear"
        The network; this and the following parameters are those of :class:`~tamiz.paper.deep.SFS`.
    input_shape : sequence of int or None, default=None
        (channels, height, width) for networks that read images.
    loss : str, default="auto"
        Loss by name.
    epochs : int or None, default=None
        Passes over the table.
    batch_size : int or None, default=None
        Rows per step.
    learning_rate : float or None, default=None
        Rate at the start.
    weight_l2 : float or None, default=None
        Factor of the squared norm of the network's weights.
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss.
    normalize : {"erf", "erf2", "standard", None}, default="erf"
        Normalisation of the columns, see :class:`~tamiz.baselines.SFS`.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is.
    device : str, default="cpu"
        Where torch trains.
    random_state : int, RandomState instance or None, default=None
        Decides the order of the rows and the initial weights of the network.
    verbose : bool, default=False
        Whether to report the progress of the training on stderr.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        Share of the saliency over the training loss; 0 for constant columns.
    ranking_ : ndarray of shape (n_features_in_,)
        1 is the best.
    training_loss_, loss_curve_, n_steps_
        As in :class:`~tamiz.paper.deep.SFS`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> SFSDFS(n_features_to_select=2, epochs=40, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    method_name = "sfs+dfs"
    title = "SFS+DFS"

    def _train_for_saliency(self, setting: Setting) -> Trained:
        return self._train_with_penalty(setting)
