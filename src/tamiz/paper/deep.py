"""Baselines that train a network: DFS, SFS, iSFS and SFS with the layer of DFS."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight

from tamiz._utils.extras import require
from tamiz._utils.validation import finite_number
from tamiz.baselines.base import BaselineSelector, ranking_from_scores
from tamiz.core.losses import Loss, get_loss
from tamiz.engines.contract import Problem
from tamiz.errors import DivergenceError
from tamiz.rows.exact import DEVIATIONS
from tamiz.rows.scaling import prepare_table


@dataclass(frozen=True)
class Recipe:
    """How a network is trained on a table.

    Parameters
    ----------
    optimizer : {"adam", "sgd"}, default="adam"
        Optimizer of the weights.
    loss : str, default="squared_hinge"
        Loss for classification, by its name in :data:`tamiz.core.losses.LOSSES`; for regression it is the squared error, if
        this one is not made for it.
    learning_rate : float, default=1e-3
        Rate at the start.
    decay_every : int, default=50
        The rate is divided by 5 after so many epochs, again and again.
    l2 : float, default=100.0
        Factor of the squared norm of the weights (not of biases, nor of batch normalisation) in the loss; its gradient is
        ``2 * l2 * weight``.
    l2_over_samples : bool, default=True
        Whether ``l2`` is divided by the number of training samples N.
    epochs : int, default=150
        Passes over the table.
    batch_size : int or None, default=None
        Rows per step; None stands for the paper's ``max(2, N / 50)``.
    momentum : float, default=0.0
        Momentum of SGD, in Nesterov's form where it is not zero.

    Examples
    --------
    >>> NAIVE.batch_size_for(41), NAIVE.batch_size_for(6000), NAIVE.l2_for(50)
    (2, 120, 2.0)
    >>> [NAIVE.learning_rate_at(epoch) for epoch in (0, 49, 50, 149)]
    [0.001, 0.001, 0.0002, 4e-05]
    >>> NAIVE.with_epochs(30).learning_rate_at(10)
    0.0002
    """

    optimizer: str = "adam"
    loss: str = "squared_hinge"
    learning_rate: float = 1e-3
    decay_every: int = 50
    l2: float = 100.0
    l2_over_samples: bool = True
    epochs: int = 150
    batch_size: int | None = None
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if self.optimizer not in ("adam", "sgd"):
            raise ValueError(f"optimizer must be 'adam' or 'sgd', got {self.optimizer!r}.")
        if self.epochs < 1 or (self.batch_size is not None and self.batch_size < 1):
            raise ValueError(f"epochs and batch_size must be at least 1, got {self.epochs} and {self.batch_size}.")

    def batch_size_for(self, n_samples: int) -> int:
        """Rows per step for ``n_samples`` training samples."""
        return self.batch_size if self.batch_size is not None else max(2, n_samples // 50)

    def l2_for(self, n_samples: int) -> float:
        """Factor of the squared norm of the weights for ``n_samples`` training samples."""
        return self.l2 / n_samples if self.l2_over_samples else self.l2

    def learning_rate_at(self, epoch: int) -> float:
        """Rate in an epoch, counted from 0."""
        return self.learning_rate / 5.0 ** (epoch // self.decay_every)

    def with_epochs(self, epochs: int) -> Recipe:
        """Make the same recipe for another length; the schedule of the rates is stretched with it."""
        return replace(self, epochs=epochs, decay_every=max(1, round(self.decay_every * epochs / self.epochs)))

    def rates(self) -> list[float]:
        """List the rate of each epoch, as a factor of the first."""
        return [self.learning_rate_at(epoch) / self.learning_rate for epoch in range(self.epochs)]


#: Microarrays and challenge sets. So is every network trained that has no recipe of its own.
NAIVE = Recipe()
#: Images. The paper names neither momentum nor batch size; 0.9 (Nesterov) and 128 are those of the Wide ResNet paper, whose
#: rates and decay it uses.
IMAGES = Recipe("sgd", "softmax", 0.1, 30, 5e-4, False, 110, 128, 0.9)


@dataclass(frozen=True, eq=False)
class Setting:
    """What the trainings of one fit share: data, constant columns, classes (or None), loss, recipe and seed."""

    problem: Problem
    constant: np.ndarray
    classes: np.ndarray | None
    loss: Loss
    recipe: Recipe
    seed: int


class NetworkSelector(BaselineSelector):
    """Base of the selectors that train a network. A method writes ``_score_rows``."""

    network: str | Callable[[Any, int], Any] = "linear"
    input_shape: Sequence[int] | None = None
    recipe: Recipe | None = None
    class_weight: Any = "balanced"
    normalize: str | None = "erf"
    task: str = "auto"
    device: str = "cpu"
    random_state: Any = None
    verbose: bool = False

    engine = "torch"
    accepts_sparse = ("csr",)

    _parameter_constraints: ClassVar = {
        "network": [str, callable],
        "input_shape": [list, tuple, None],
        "recipe": [Recipe, None],
        "normalize": [StrOptions(set(DEVIATIONS)), None],
        "device": [str],
        "verbose": ["verbose"],
    }

    def _score_rows(self, setting: Setting) -> np.ndarray:
        """Compute one non-negative score per feature."""
        raise NotImplementedError

    def _score_features(self, X: Any, y: np.ndarray) -> np.ndarray:
        require("torch", "torch", f"{type(self).__name__}")
        from tamiz.torch.trainer import checked_device

        checked_device(self.device)
        reads_images = self.network == "wrn16x4"
        if self.input_shape is None and reads_images:
            raise ValueError(f"network={self.network!r} reads images: set input_shape=(channels, height, width).")
        if self.input_shape is not None and math.prod(self.input_shape) != X.shape[1]:
            raise ValueError(
                f"input_shape={tuple(self.input_shape)} has {math.prod(self.input_shape)} entries, "
                f"but X has {X.shape[1]} columns."
            )
        self.n_steps_ = 0
        setting = self._prepare(X, y, self.recipe or (IMAGES if reads_images else NAIVE))
        # A column that never changes tells nothing, whatever random weight the network began with.
        return np.where(setting.constant, 0.0, self._score_rows(setting))

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": self.n_steps_}

    def _prepare(self, X: Any, y: np.ndarray, recipe: Recipe) -> Setting:
        """Normalise the rows, encode the target and weigh the classes."""
        loss = get_loss(recipe.loss)
        rows = prepare_table(X, self.normalize).dense()
        if np.may_share_memory(rows, X):  # torch wants memory that it may write to
            rows = rows.copy()
        constant = rows.min(axis=0) == rows.max(axis=0)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if self.task_ == "regression":
            # Mean 0 and deviation 1: the rates are made for outputs of that size, and so is the gain of the squared error.
            scaled = y / max(float(np.abs(y).max()), np.finfo(float).tiny)
            scaled = (scaled - scaled.mean()) / (scaled.std() or 1.0)
            loss = loss if loss.task == "regression" else get_loss("squared_error")
            return Setting(Problem(rows, scaled.astype(np.float32)[:, None]), constant, None, loss, recipe, seed)
        if loss.task != "classification":
            raise ValueError(f"The loss {loss.name!r} of the recipe is for regression, the target has classes.")
        weights = compute_sample_weight(self.class_weight, self.classes_[y])
        problem = Problem(rows, loss.encode(y, self.classes_.size), weights)
        return Setting(problem, constant, y, loss, recipe, seed)

    def _train(
        self, setting: Setting, rows: np.ndarray, penalty: tuple[float, float] | None = None, seed_offset: int = 0
    ) -> tuple[Any, Problem]:
        """Train a new network on rows, behind the layer of DFS if there is a penalty on it."""
        from torch import nn

        from tamiz.paper import networks
        from tamiz.torch.batches import full_sizes
        from tamiz.torch.engine import build_checked

        problem, seed, recipe = replace(setting.problem, X=rows), setting.seed + seed_offset, setting.recipe
        build: Any = self.network if callable(self.network) else partial(networks.make_network, self.network)

        def build_flat(n_inputs: int, n_outputs: int) -> Any:
            if self.input_shape is None:
                return build(n_inputs, n_outputs)
            shape = tuple(self.input_shape)
            return nn.Sequential(nn.Unflatten(1, shape), build(shape, n_outputs))

        model = build_checked(build_flat, rows.shape[1], problem.n_outputs, seed)
        added = None
        if penalty is not None:
            layer = networks.OneToOne(rows.shape[1])
            model, added = nn.Sequential(layer, model), partial(layer.penalty, *penalty)
        model = model.to(self.device)
        if self.network == "linear" and penalty is None and recipe.optimizer == "adam" and self.device == "cpu":
            linear = next(module for module in model.modules() if isinstance(module, nn.Linear))
            networks.fit_linear(linear, problem, recipe, setting.loss, seed)
        else:
            shown = bool(self.verbose)
            networks.fit_network(model, problem, recipe, setting.loss, penalty=added, seed=seed, progress=shown)
        self.n_steps_ += recipe.epochs * len(full_sizes(problem.n_samples, recipe.batch_size_for(problem.n_samples)))
        self.training_loss_ = networks.evaluate_loss(model, problem, setting.loss)
        if not np.isfinite(self.training_loss_):
            raise DivergenceError(
                "Training diverged: the loss is not finite. Lower the rate of the recipe, or scale X."
            )
        return model, problem

    def _saliency(self, setting: Setting, rows: np.ndarray, *more: Any) -> np.ndarray:
        """Train a network and compute the share of each of its inputs in the saliency."""
        from tamiz.paper.networks import input_saliency

        return input_saliency(*self._train(setting, rows, *more), setting.loss, setting.classes)


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
    network : {"linear", "mlp", "wrn16x4"} or callable, default="linear"
        The network, or a callable that is given the number of inputs (or ``input_shape``) and of outputs and returns a
        torch module.
    input_shape : sequence of int or None, default=None
        For networks that read images: (channels, height, width), the columns of X being their values in that order.
    recipe : Recipe or None, default=None
        Optimizer, rates, decay, epochs, batch size and loss; None for the paper's recipe of the network.
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
    n_steps_ : int
        Training steps taken.

    References
    ----------
    B. Cancela, V. Bolon-Canedo, A. Alonso-Betanzos, J. Gama: A scalable saliency-based feature selection method with
    instance-level information. Knowledge-Based Systems 192 (2020).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> SFS(n_features_to_select=2, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    def _score_rows(self, setting: Setting, penalty: tuple[float, float] | None = None) -> np.ndarray:
        share = self._saliency(setting, setting.problem.X, penalty)
        # A loss of zero is possible (every margin met); the order of the features does not depend on it.
        return share / max(self.training_loss_, np.finfo(np.float32).tiny)


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
    network : {"linear", "mlp", "wrn16x4"} or callable, default="linear"
        The network; this and the following parameters are those of :class:`~tamiz.paper.deep.SFS`.
    input_shape : sequence of int or None, default=None
        (channels, height, width) for networks that read images. Dropped values are set to 0 there, as
        the image keeps its shape; without a shape their columns are taken away.
    recipe : Recipe or None, default=None
        How the network is trained.
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss.
    normalize : {"erf", "erf2", "standard", None}, default="erf"
        Normalisation of the columns.
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
    training_loss_ : float
        The weighted mean loss of the last network, without penalties.
    n_steps_ : int
        Training steps taken, over all rounds.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> selector = ISFS(n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist(), selector.n_rounds_
    ([1, 4], 4)
    """

    keep_ratio: float = 0.9

    _parameter_constraints: ClassVar = {"keep_ratio": [Interval(Real, 0, 1, closed="left")]}
    nested = "each"

    def _score_rows(self, setting: Setting) -> np.ndarray:
        scores, X = np.zeros(setting.constant.size), setting.problem.X
        alive, m = np.arange(scores.size), self.n_features_to_select_
        self.n_rounds_ = 0
        while True:
            if self.input_shape is None:
                rows = np.ascontiguousarray(X[:, alive])
            else:
                rows = np.zeros_like(X)
                rows[:, alive] = X[:, alive]
            share = self._saliency(setting, rows, None, self.n_rounds_)
            share = np.where(setting.constant[alive], 0.0, share if self.input_shape is None else share[alive])
            scores[alive] = self.n_rounds_ + share
            self.n_rounds_ += 1
            size = max(m, min(alive.size - 1, int(alive.size * self.keep_ratio)))
            if size >= alive.size or size == m:
                return scores
            alive = alive[ranking_from_scores(share) <= size]


class DFS(NetworkSelector):
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
    network : {"linear", "mlp", "wrn16x4"} or callable, default="linear"
        The network; this and the following parameters are those of :class:`~tamiz.paper.deep.SFS`.
    input_shape : sequence of int or None, default=None
        (channels, height, width) for networks that read images.
    recipe : Recipe or None, default=None
        How the network is trained.
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss.
    normalize : {"erf", "erf2", "standard", None}, default="erf"
        Normalisation of the columns.
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
    training_loss_ : float
        The weighted mean loss of the trained network, without penalties.
    n_steps_ : int
        Training steps taken.

    References
    ----------
    Y. Li, C.-Y. Chen, W. W. Wasserman: Deep Feature Selection: Theory and Application to Identify Enhancers and
    Promoters. Journal of Computational Biology 23 (2016).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> DFS(n_features_to_select=2, recipe=NAIVE.with_epochs(40), random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    l1: float = 0.001
    l2: float = 0.001

    _parameter_constraints: ClassVar = {"l1": [finite_number(0)], "l2": [finite_number(0)]}

    def _score_rows(self, setting: Setting, penalty: tuple[float, float] | None = None) -> np.ndarray:
        model, _ = self._train(setting, setting.problem.X, (self.l1, self.l2))
        layer: Any = model[0]
        return np.abs(layer.weight.detach().cpu().numpy().astype(np.float64))


class SFSDFS(DFS, SFS):
    """SFS+DFS (Cancela et al. 2020): the network carries the layer of DFS while SFS ranks.

    The network is trained as by :class:`~tamiz.paper.deep.DFS`; the score is the saliency of
    :class:`~tamiz.paper.deep.SFS` with respect to the input in front of that layer, so that w is a factor
    of it. Parameters are those of DFS, attributes those of SFS. The cost is that of SFS.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> recipe = NAIVE.with_epochs(40)
    >>> SFSDFS(n_features_to_select=2, recipe=recipe, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [1, 4]
    """

    def _score_rows(self, setting: Setting, penalty: tuple[float, float] | None = None) -> np.ndarray:
        return SFS._score_rows(self, setting, (self.l1, self.l2))
