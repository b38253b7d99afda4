"""Baselines that train a network: DFS, SFS, iSFS and SFS with the layer of DFS."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from torch import Tensor, nn

from tamiz._utils.validation import finite_number
from tamiz.baselines.base import BaselineSelector, ranking_from_scores
from tamiz.core.losses import Loss, get_loss
from tamiz.core.rule import Rule
from tamiz.engines.contract import Problem
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule
from tamiz.errors import DivergenceError
from tamiz.paper.networks import get_network, make_network
from tamiz.rows.exact import DEVIATIONS
from tamiz.rows.scaling import prepare_table
from tamiz.torch import train_weights
from tamiz.torch.batches import TensorBatches, full_sizes
from tamiz.torch.trainer import checked_device, decay_groups, seeded


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
        if self.epochs < 1 or (self.batch_size is not None and self.batch_size < 1):
            raise ValueError(f"epochs and batch_size must be at least 1, got {self.epochs} and {self.batch_size}.")

    def batch_size_for(self, n_samples: int) -> int:
        """Return the rows per step for ``n_samples`` training samples."""
        return self.batch_size if self.batch_size is not None else max(2, n_samples // 50)

    def l2_for(self, n_samples: int) -> float:
        """Return the factor of the squared norm of the weights for ``n_samples`` training samples."""
        return self.l2 / n_samples if self.l2_over_samples else self.l2

    def learning_rate_at(self, epoch: int) -> float:
        """Return the rate in an epoch, counted from 0."""
        return self.learning_rate / 5.0 ** (epoch // self.decay_every)

    def with_epochs(self, epochs: int) -> Recipe:
        """Return the same recipe for another length; the schedule of the rates is stretched with it."""
        return replace(self, epochs=epochs, decay_every=max(1, round(self.decay_every * epochs / self.epochs)))

    def rates(self) -> list[float]:
        """Return the rate of each epoch, as a factor of the first."""
        return [self.learning_rate_at(epoch) / self.learning_rate for epoch in range(self.epochs)]

    def make_optimizer(self, parameters: Iterable[nn.Parameter], n_samples: int) -> torch.optim.Optimizer:
        """Make the optimizer over the parameters of a model, with the l2 for ``n_samples`` rows."""
        groups = decay_groups(parameters, self.l2_for(n_samples))
        if self.optimizer == "adam":
            return torch.optim.Adam(groups, lr=self.learning_rate, fused=True)
        if self.optimizer == "sgd":
            nesterov = self.momentum > 0
            return torch.optim.SGD(groups, lr=self.learning_rate, momentum=self.momentum, nesterov=nesterov, fused=True)
        raise ValueError(f"optimizer must be 'adam' or 'sgd', got {self.optimizer!r}.")


#: Microarrays and challenge sets. So is every network trained that has no recipe of its own.
NAIVE = Recipe()
#: Images. The paper names neither momentum nor batch size; 0.9 (Nesterov) and 128 are those of the Wide ResNet paper, whose
#: rates and decay it uses.
IMAGES = Recipe("sgd", "softmax", 0.1, 30, 5e-4, False, 110, 128, 0.9)


class OneToOne(nn.Module):
    """Multiply each input by a weight of its own, 1 at the start (Li, Chen and Wasserman 2016).

    Examples
    --------
    >>> OneToOne(2)(torch.tensor([[3.0, 4.0]])).tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_features))

    def forward(self, x: Tensor) -> Tensor:
        """Return the inputs, each times its weight."""
        return x * self.weight

    def penalty(self, l1: float, l2: float) -> Tensor:
        """Return ``l1 * |w|_1 + l2 * |w|_2^2``."""
        return l1 * self.weight.abs().sum() + l2 * torch.dot(self.weight, self.weight)


def fit_network(
    model: nn.Module,
    problem: Problem,
    recipe: Recipe,
    loss: Loss,
    *,
    penalty: Callable[[], Tensor] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> None:
    """Train a network in place with :func:`tamiz.torch.train_weights`, as a recipe says.

    The loss of a batch is the sum of the weighted losses over the *number* of its rows, with weights of mean 1 over all
    rows: so the average step follows the weighted mean over the table, however the classes fall into small batches.

    Parameters
    ----------
    model : nn.Module
        The network; trained on the device it lies on, left in evaluation mode.
    problem : Problem
        Inputs, targets as the loss takes them, and sample weights.
    recipe : Recipe
        Optimizer, rates, regularisation and length.
    loss : Loss
        The loss.
    penalty : callable or None, default=None
        What it returns is added to the loss of every batch.
    seed : int, default=0
        Decides the order of the rows and what the model itself draws (dropout).
    progress : bool, default=False
        Whether to draw a bar on stderr.

    Examples
    --------
    >>> problem = Problem(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> recipe, hinge = replace(NAIVE.with_epochs(50), learning_rate=0.1, l2=0.0), get_loss("squared_hinge")
    >>> network = make_network("linear", 1, 1)
    >>> before = evaluate_loss(network, problem, hinge)
    >>> fit_network(network, problem, recipe, hinge)
    >>> evaluate_loss(network, problem, hinge) < before / 10
    True
    """
    n_samples, batch_size = problem.n_samples, recipe.batch_size_for(problem.n_samples)
    if min(batch_size, n_samples) < 2 and any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()):
        raise ValueError("A network with batch normalisation needs batches of at least 2 rows; raise batch_size.")
    batches = TensorBatches(_tensors(problem, model), batch_size, seed, full_sizes)

    def weighted(outputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        value = (loss.torch(outputs, targets) * weights).mean()
        return value if penalty is None else value + penalty()

    train_weights(
        model,
        batches,
        weighted,
        optimizer=partial(recipe.make_optimizer, n_samples=n_samples),
        n_steps=recipe.epochs * len(batches.sizes),
        rates=recipe.rates(),
        seed=seed,
        progress=progress,
    )


def fit_linear(network: Any, problem: Problem, recipe: Recipe, loss: Loss, seed: int = 0) -> None:
    """Train a linear network in place with the compiled engine, as a recipe with Adam says.

    Examples
    --------
    >>> problem = Problem(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> network = nn.Linear(1, 1)
    >>> fit_linear(network, problem, replace(NAIVE, learning_rate=0.1, l2=0.0), get_loss("squared_hinge"))
    >>> network.weight.item() > 0.5
    True
    """
    n_samples, n_features = problem.X.shape
    batch_size, l2 = recipe.batch_size_for(n_samples), recipe.l2_for(n_samples)
    schedule = Schedule(
        learning_rate=recipe.learning_rate,
        l2=l2,
        batch_size=batch_size,
        warmup_steps=0,
        ramp_steps=1,
        refinement_steps=recipe.epochs * -(-n_samples // batch_size),
        refinement_l2=l2,
        refinement_rates=tuple(recipe.learning_rate_at(epoch) for epoch in range(recipe.epochs)),
        epsilon=1e-8,
    )
    model = LinearEngine().fit(problem, Rule(n_features, n_features, "hard"), loss, schedule, seed=seed).model
    with torch.no_grad():
        network.weight.copy_(torch.as_tensor(model.coef))
        network.bias.copy_(torch.as_tensor(model.intercept))


def _tensors(problem: Problem, model: nn.Module) -> list[Tensor]:
    """Return rows, targets and weights on the device of a model."""
    device = next(model.parameters()).device
    arrays = (problem.dense(), problem.targets, problem.unit_weights())
    return [torch.as_tensor(array, dtype=torch.float32, device=device) for array in arrays]


@torch.no_grad()
def evaluate_loss(model: nn.Module, problem: Problem, loss: Loss, batch_size: int = 1024) -> float:
    """Compute the weighted mean loss of a network over a table, in evaluation mode and without any penalty.

    Examples
    --------
    >>> problem = Problem(np.array([[1.0], [2.0]]), np.array([[1.0], [-1.0]]))
    >>> evaluate_loss(make_network("linear", 1, 1), problem, get_loss("squared_hinge"))
    1.0
    """
    rows, targets, weights = _tensors(problem, model)
    model.eval()
    pieces = torch.arange(problem.n_samples, device=rows.device).split(batch_size)
    total = sum(float((loss.torch(model(rows[piece]), targets[piece]) * weights[piece]).sum()) for piece in pieces)
    return total / problem.n_samples


def input_saliency(
    model: nn.Module, problem: Problem, loss: Loss, classes: np.ndarray | None = None, batch_size: int = 512
) -> np.ndarray:
    """Compute the share of each input in the saliency of a trained network.

    For each sample the absolute gradient of the gain with respect to the input; summed over the samples of a class and
    divided by the total of the class, so that each class counts alike however many samples it has; summed over the
    classes and divided by the total.

    Parameters
    ----------
    model : nn.Module
        The trained network; used in evaluation mode, parameters untouched.
    problem : Problem
        Inputs, and targets as the loss takes them.
    loss : Loss
        The loss the network was trained with.
    classes : ndarray of int or None, default=None
        The class of each sample, 0 .. C-1; None where all samples are one group (regression).
    batch_size : int, default=512
        Samples that go through the network at once; does not change the result.

    Returns
    -------
    ndarray of shape (n_features,)
        Non-negative, with a sum of 1 (all zero if the network does not depend on its input).

    Examples
    --------
    >>> net = nn.Linear(2, 1)
    >>> net.weight.data = torch.tensor([[3.0, -1.0]])
    >>> problem = Problem(np.zeros((4, 2)), np.ones((4, 1)))
    >>> input_saliency(net, problem, get_loss("squared_hinge")).round(4).tolist()
    [0.75, 0.25]
    """
    rows = _tensors(problem, model)[0]
    targets = torch.as_tensor(problem.targets, device=rows.device)
    group = torch.zeros(len(rows), dtype=torch.int64) if classes is None else torch.as_tensor(classes)
    totals = torch.zeros(int(group.max()) + 1, rows.shape[1], dtype=torch.float64)
    model.eval()
    for index in torch.arange(len(rows), device=rows.device).split(batch_size):
        batch = rows[index].requires_grad_()
        (gradient,) = torch.autograd.grad(loss.gain(model(batch), targets[index]).sum(), batch)
        totals.index_add_(0, group[index.cpu()], gradient.abs().to("cpu", torch.float64))
    sums, tiny = totals.numpy(), np.finfo(float).tiny
    share = (sums / np.maximum(sums.sum(axis=1, keepdims=True), tiny)).sum(axis=0)
    return share / max(share.sum(), tiny)


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
        **BaselineSelector._parameter_constraints,
        "network": [str, callable],
        "input_shape": [list, tuple, None],
        "recipe": [Recipe, None],
        "normalize": [StrOptions(set(DEVIATIONS)), None],
        "device": [str],
        "verbose": ["verbose"],
    }
    #: Parameters that make a fit fast enough for tests that fit many times.
    _fast_test_params: ClassVar[dict[str, Any]] = {"recipe": NAIVE.with_epochs(5)}

    def _score_rows(self, setting: Setting) -> np.ndarray:
        """Return one non-negative score per feature."""
        raise NotImplementedError

    def _score_features(self, X: Any, y: np.ndarray) -> np.ndarray:
        checked_device(self.device)
        reads_images = isinstance(self.network, str) and get_network(self.network).reads_images
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
        self, setting: Setting, rows: np.ndarray, *, penalty: tuple[float, float] | None = None, seed_offset: int = 0
    ) -> tuple[nn.Sequential, Problem]:
        """Build the network for these rows (all columns or some) and train it; return it and its problem.

        ``penalty`` is the elastic net on a one-to-one layer in front of the network; None for no such layer.
        """
        problem, seed, recipe = replace(setting.problem, X=rows), setting.seed + seed_offset, setting.recipe
        shape = rows.shape[1] if self.input_shape is None else tuple(self.input_shape)
        with seeded(seed):
            build = partial(make_network, self.network) if isinstance(self.network, str) else self.network
            network: Any = build(shape, problem.n_outputs)
        if not isinstance(network, nn.Module):
            raise TypeError(f"network({shape}, {problem.n_outputs}) must return a torch module, got {network!r}.")
        reshape = [] if self.input_shape is None else [nn.Unflatten(1, tuple(self.input_shape))]
        layer = None if penalty is None else OneToOne(rows.shape[1])
        model = nn.Sequential(*([] if layer is None else [layer]), *reshape, network).to(self.device)
        _check_outputs(model, rows, problem.n_outputs)
        if self.network == "linear" and layer is None and recipe.optimizer == "adam" and self.device == "cpu":
            fit_linear(network.linear, problem, recipe, setting.loss, seed)
        else:
            added = None if layer is None or penalty is None else partial(layer.penalty, *penalty)
            fit_network(model, problem, recipe, setting.loss, penalty=added, seed=seed, progress=bool(self.verbose))
        self.n_steps_ += recipe.epochs * len(full_sizes(problem.n_samples, recipe.batch_size_for(problem.n_samples)))
        self.training_loss_ = evaluate_loss(model, problem, setting.loss)
        if not np.isfinite(self.training_loss_):
            raise DivergenceError(
                "Training diverged: the loss is not finite. Lower the rate of the recipe, or scale X."
            )
        return model, problem


def _check_outputs(model: nn.Module, rows: np.ndarray, n_outputs: int) -> None:
    """Raise ValueError if the outputs of a network would be broadcast against the targets."""
    model.eval()
    with torch.no_grad():
        device = next((parameter.device for parameter in model.parameters()), None)
        shape = tuple(model(torch.as_tensor(rows[:2], device=device)).shape)
    if shape != (2, n_outputs):
        raise ValueError(
            f"The network must give {n_outputs} output(s) per row: for 2 rows (2, {n_outputs}), got {shape}."
        )


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

    def _layer_penalty(self) -> tuple[float, float] | None:
        return None

    def _score_rows(self, setting: Setting) -> np.ndarray:
        model, problem = self._train(setting, setting.problem.X, penalty=self._layer_penalty())
        share = input_saliency(model, problem, setting.loss, setting.classes)
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

    _parameter_constraints: ClassVar = {
        **NetworkSelector._parameter_constraints,
        "keep_ratio": [Interval(Real, 0, 1, closed="left")],
    }
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
            model, problem = self._train(setting, rows, seed_offset=self.n_rounds_)
            share = input_saliency(model, problem, setting.loss, setting.classes)
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

    _parameter_constraints: ClassVar = {
        **NetworkSelector._parameter_constraints,
        "l1": [finite_number(0)],
        "l2": [finite_number(0)],
    }

    def _layer_penalty(self) -> tuple[float, float] | None:
        return self.l1, self.l2

    def _score_rows(self, setting: Setting) -> np.ndarray:
        model, _ = self._train(setting, setting.problem.X, penalty=self._layer_penalty())
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

    def _score_rows(self, setting: Setting) -> np.ndarray:
        return SFS._score_rows(self, setting)
