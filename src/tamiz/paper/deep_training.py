"""Train the networks of the deep baselines, as the papers' recipes say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from tamiz._utils.names import pick
from tamiz._utils.progress import ProgressBar
from tamiz.core.compiled import FAST, adam, adam_constants
from tamiz.core.losses import Loss
from tamiz.engines.contract import Problem
from tamiz.torch import StepReport, train_weights
from tamiz.torch.batches import TensorBatches, full_sizes
from tamiz.torch.networks import NaiveSVM
from tamiz.torch.run import decay_groups


@dataclass(frozen=True)
class Recipe:
    """Hold how a network is trained on a table.

    Parameters
    ----------
    optimizer : {"adam", "sgd"}
        The optimizer of the weights.
    loss : str
        The loss for classification, by its name in :data:`tamiz.core.losses.LOSSES`.
    learning_rate : float
        The rate at the start.
    decay_every : int
        The rate is divided by ``decay_factor`` after so many epochs, again and again.
    decay_factor : float
        See ``decay_every``.
    l2 : float
        Factor of the squared norm of the weights (not of biases, nor of batch normalisation) in the loss; its gradient is
        ``2 * l2 * weight``.
    l2_over_samples : bool
        Whether ``l2`` is divided by the number of training samples N.
    epochs : int
        Passes over the table.
    batch_size : int or None, default=None
        A fixed batch size; None stands for the paper's ``max(2, N / 50)``.
    momentum : float, default=0.0
        Momentum of SGD, in Nesterov's form where it is not zero.

    Examples
    --------
    >>> NAIVE.batch_size_for(41), NAIVE.batch_size_for(6000)
    (2, 120)
    >>> [NAIVE.learning_rate_at(epoch) for epoch in (0, 49, 50, 149)]
    [0.001, 0.001, 0.0002, 4e-05]
    >>> NAIVE.l2_for(50)
    2.0
    >>> NAIVE.with_epochs(30).learning_rate_at(10)
    0.0002
    """

    optimizer: str
    loss: str
    learning_rate: float
    decay_every: int
    decay_factor: float
    l2: float
    l2_over_samples: bool
    epochs: int
    batch_size: int | None = None
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, got {self.epochs}.")
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {self.batch_size}.")

    def batch_size_for(self, n_samples: int) -> int:
        """Return the batch size for ``n_samples`` training samples: fixed, or the paper's max(2, N / 50)."""
        return self.batch_size if self.batch_size is not None else max(2, n_samples // 50)

    def l2_for(self, n_samples: int) -> float:
        """Return the factor of the squared norm of the weights for ``n_samples`` training samples."""
        return self.l2 / n_samples if self.l2_over_samples else self.l2

    def learning_rate_at(self, epoch: int) -> float:
        """Return the rate in an epoch, counted from 0."""
        return self.learning_rate / self.decay_factor ** (epoch // self.decay_every)

    def with_epochs(self, epochs: int) -> Recipe:
        """Return the same recipe for another length; the schedule of the rates is stretched with it."""
        decay_every = max(1, round(self.decay_every * epochs / self.epochs))
        return replace(self, epochs=epochs, decay_every=decay_every)


#: Microarrays and challenge sets: Adam at 1e-3, divided by 5 every 50 epochs, 150 epochs, l2 = 100 / N. So is every
#: network trained that has no recipe of its own.
NAIVE = Recipe(
    optimizer="adam",
    loss="squared_hinge",
    learning_rate=1e-3,
    decay_every=50,
    decay_factor=5.0,
    l2=100.0,
    l2_over_samples=True,
    epochs=150,
)

#: Images: SGD at 0.1, divided by 5 every 30 epochs, 110 epochs, l2 = 5e-4. The paper names neither momentum nor batch
#: size; 0.9 (Nesterov) and 128 are those of the Wide ResNet paper, whose rates and decay it uses.
IMAGES = Recipe(
    optimizer="sgd",
    loss="softmax",
    learning_rate=0.1,
    decay_every=30,
    decay_factor=5.0,
    l2=5e-4,
    l2_over_samples=False,
    epochs=110,
    batch_size=128,
    momentum=0.9,
)

#: Recipes other than NAIVE, by the name of the network. The paper quotes the results of the 3-layer CNN from the SFS
#: paper; it is trained here by the recipe of the images.
RECIPES = {"wrn16x4": IMAGES, "cnn3": IMAGES}


def recipe_for(network: object) -> Recipe:
    """Return the recipe of a network, by its name or for a function that builds it; NAIVE if it has none of its own.

    Names are checked where the network is built (:func:`tamiz.torch.networks.get_network`).

    Examples
    --------
    >>> recipe_for("cnn3").optimizer, recipe_for("mlp").optimizer, recipe_for(lambda n_inputs, n_outputs: None).optimizer
    ('sgd', 'adam', 'adam')
    """
    return RECIPES.get(network, NAIVE) if isinstance(network, str) else NAIVE


def elastic_net(weight: Tensor, l1: float, l2: float) -> Tensor:
    """Return the penalty ``l1 * |w|_1 + l2 * |w|_2^2``.

    Examples
    --------
    >>> elastic_net(torch.tensor([3.0, -4.0]), l1=1.0, l2=0.5).item()  # 7 + 12.5
    19.5
    """
    return l1 * weight.abs().sum() + l2 * torch.dot(weight, weight)


class OneToOne(nn.Module):
    """Multiply each input by a weight of its own, 1 at the start (Li, Chen and Wasserman 2016).

    Parameters
    ----------
    n_features : int
        The number of inputs.

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

    def extra_repr(self) -> str:
        """Return the number of inputs, for ``print(layer)``."""
        return f"n_features={self.weight.numel()}"


#: Optimizers of recipes; the fused step is one call for all parameters.
_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": lambda groups, recipe: torch.optim.Adam(groups, lr=recipe.learning_rate, fused=True),
    "sgd": lambda groups, recipe: torch.optim.SGD(
        groups, lr=recipe.learning_rate, momentum=recipe.momentum, nesterov=recipe.momentum > 0, fused=True
    ),
}


def recipe_optimizer(parameters: Iterable[nn.Parameter], recipe: Recipe, n_samples: int) -> torch.optim.Optimizer:
    """Return the optimizer of a recipe over the parameters of a model, with its l2 for ``n_samples`` rows.

    Examples
    --------
    >>> from tamiz.paper.deep_training import NAIVE
    >>> type(recipe_optimizer(nn.Linear(2, 1).parameters(), NAIVE, 50)).__name__
    'Adam'
    """
    make = pick(recipe.optimizer, _OPTIMIZERS, "optimizer")
    return make(decay_groups(parameters, recipe.l2_for(n_samples)), recipe)


def checked_problem(problem: Problem) -> Problem:
    """Return a problem whose parts fit together, or raise.

    Examples
    --------
    >>> checked_problem(Problem(np.zeros((3, 2)), np.zeros((2, 1))))
    Traceback (most recent call last):
    ValueError: X has 3 rows, the targets have 2.
    """
    n_samples = problem.n_samples
    if len(problem.targets) != n_samples:
        raise ValueError(f"X has {n_samples} rows, the targets have {len(problem.targets)}.")
    weights = None if problem.sample_weight is None else np.asarray(problem.sample_weight)
    if weights is not None and (weights.shape != (n_samples,) or not (weights >= 0).all() or not weights.sum() > 0):
        raise ValueError("sample_weight must have one weight for each row of X, none negative, not all zero.")
    return problem


class LossCurve:
    """Collect the mean loss of each epoch; raise if it is not finite.

    Parameters
    ----------
    n_epochs : int
        Epochs of the run.
    progress : bool, default=False
        Whether to draw a bar on stderr, ten times per run.
    """

    def __init__(self, n_epochs: int, progress: bool = False) -> None:
        self.values = np.empty(n_epochs)
        self.n_done = 0
        self._bar = ProgressBar("training", delay=0.0, interval=0.0) if progress else None

    def add(self, value: float) -> None:
        """Add the mean loss of the next epoch."""
        self.values[self.n_done] = value
        self.n_done += 1
        n_epochs = self.values.size
        if not np.isfinite(value):
            raise ValueError(
                f"Training diverged in epoch {self.n_done}: the loss is not finite. Lower learning_rate, or scale X."
            )
        if self._bar is not None and self.n_done % max(1, n_epochs // 10) == 0:
            self._bar.update(self.n_done, n_epochs, f"epoch {self.n_done}/{n_epochs}: loss {value:.5g}")
            if self.n_done == n_epochs:
                self._bar.close()


def fit_network(
    model: nn.Module,
    problem: Problem,
    recipe: Recipe,
    loss: Loss,
    *,
    penalty: Callable[[nn.Module], Tensor] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> np.ndarray:
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
    penalty : callable, default=None
        Called with the model; what it returns is added to the loss of every batch.
    seed : int, default=0
        Decides the order of the rows and what the model itself draws (dropout).
    progress : bool, default=False
        Whether to report every tenth of the run on stderr.

    Returns
    -------
    ndarray of shape (epochs,)
        The mean training loss (with penalty, without l2) of each epoch.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from tamiz.paper.deep_training import NAIVE
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.torch.networks import NaiveSVM
    >>> problem = Problem(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> recipe = replace(NAIVE.with_epochs(50), learning_rate=0.1, l2=0.0)
    >>> losses = fit_network(NaiveSVM(1, 1), problem, recipe, get_loss("squared_hinge"))
    >>> losses.shape, bool(losses[-1] < losses[0] / 10)
    ((50,), True)
    """
    n_samples = checked_problem(problem).n_samples
    batch_size = recipe.batch_size_for(n_samples)
    if min(batch_size, n_samples) < 2 and any(map(_normalises, model.modules())):
        raise ValueError("A network with batch normalisation needs batches of at least 2 rows; raise batch_size.")
    optimizer = recipe_optimizer(model.parameters(), recipe, n_samples)
    batches = TensorBatches(_tensors(problem, model), batch_size, seed, full_sizes)
    curve = LossCurve(recipe.epochs, progress)
    total = torch.zeros((), device=batches.parts[0].device)

    def weighted(outputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        value = (loss.torch(outputs, targets) * weights).mean()
        return value if penalty is None else value + penalty(model)

    def add_to_curve(report: StepReport) -> None:
        position = (report.step - 1) % len(batches.sizes)
        total.add_(report.loss * batches.sizes[position])
        if position == len(batches.sizes) - 1:
            curve.add(float(total) / n_samples)
            total.zero_()

    train_weights(
        model,
        batches,
        weighted,
        optimizer=lambda _: optimizer,
        n_steps=recipe.epochs * len(batches.sizes),
        rates=[recipe.learning_rate_at(epoch) / recipe.learning_rate for epoch in range(recipe.epochs)],
        seed=seed,
        callbacks=[add_to_curve],
    )
    return curve.values


def _normalises(module: nn.Module) -> bool:
    return isinstance(module, nn.modules.batchnorm._BatchNorm)


def _tensors(problem: Problem, model: nn.Module) -> list[Tensor]:
    """Return rows, targets and weights on the device of a model."""
    device = next(model.parameters()).device
    arrays = (problem.dense(), problem.targets, problem.unit_weights())
    return [torch.as_tensor(array, dtype=torch.float32, device=device) for array in arrays]


@torch.no_grad()
def evaluate_loss(model: nn.Module, problem: Problem, loss: Loss, batch_size: int = 1024) -> float:
    """Return the weighted mean loss of a network over a table, in evaluation mode and without any penalty.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.torch.networks import NaiveSVM
    >>> problem = Problem(np.array([[1.0], [2.0]]), np.array([[1.0], [-1.0]]))
    >>> evaluate_loss(NaiveSVM(1, 1), problem, get_loss("squared_hinge"))
    1.0
    """
    rows, targets, weights = _tensors(checked_problem(problem), model)
    was_training = model.training
    model.eval()
    total = 0.0
    for index in torch.arange(problem.n_samples, device=rows.device).split(batch_size):
        total += float((loss.torch(model(rows[index]), targets[index]) * weights[index]).sum())
    model.train(was_training)
    return total / problem.n_samples


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _step(parameter, gradient, first, second, constants):
    """Take one step of Adam in place."""
    for j in range(parameter.size):
        first[j], second[j], step = adam(first[j], second[j], gradient[j], True, constants)
        parameter[j] -= step


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _row_scores(row, effective, bias, scores):
    for k in range(bias.size):
        total = np.float32(0.0)
        for j in range(row.size):
            total += row[j] * effective[k, j]
        scores[k] = total + bias[k]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _add_row(row, slope, gradient, bias_gradient):
    for k in range(slope.size):
        factor = slope[k]
        bias_gradient[k] += factor
        if factor != 0:
            for j in range(row.size):
                gradient[k, j] += factor * row[j]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _layer_gradients(weight, layer, gradient, layer_gradient, l1, l2):
    """Turn the gradient with respect to ``layer * weight`` into those with respect to the weight (in place) and the layer."""
    for j in range(layer.size):
        total = l1 * np.sign(layer[j]) + np.float32(2.0) * l2 * layer[j]
        for k in range(weight.shape[0]):
            total += weight[k, j] * gradient[k, j]
            gradient[k, j] *= layer[j]
        layer_gradient[j] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _epoch(kernel, X, targets, sample_weight, starts, order, parameters, moments, rate, l2, penalty, age):
    """Go once over the batches ``order[starts[b]:starts[b + 1]]``; return the sum of their losses, each times its rows.

    Parameters
    ----------
    kernel : compiled function
        ``Loss.compiled``.
    X, targets, sample_weight : ndarray of float32
        The table.
    starts, order : ndarray of int64
        The batches.
    parameters : tuple of ndarray
        Weight (K, F), bias (K) and the one-to-one layer (F, or 0 where there is none); changed in place.
    moments : tuple of ndarray
        First and second moment of Adam for each of them.
    rate, l2 : float
        Learning rate, and factor of the squared norm of the weight.
    penalty : tuple of float32
        l1 and l2 of the layer.
    age : int
        Steps taken before.
    """
    weight, bias, layer = parameters
    weight_first, weight_second, bias_first, bias_second, layer_first, layer_second = moments
    n_outputs, n_features = weight.shape
    has_layer = layer.size > 0
    effective = weight.copy() if has_layer else weight
    gradient, bias_gradient, layer_gradient = np.empty_like(weight), np.empty_like(bias), np.empty_like(layer)
    largest = (starts[1:] - starts[:-1]).max()
    scores, slopes = np.empty((largest, n_outputs), np.float32), np.empty((largest, n_outputs), np.float32)
    wanted, factors = np.empty((largest, n_outputs), np.float32), np.empty(largest, np.float32)
    total = 0.0
    for b in range(starts.size - 1):
        begin, size = starts[b], starts[b + 1] - starts[b]
        if has_layer:
            for k in range(n_outputs):
                for j in range(n_features):
                    effective[k, j] = weight[k, j] * layer[j]
        for i in range(size):
            row = order[begin + i]
            _row_scores(X[row], effective, bias, scores[i])
            wanted[i] = targets[row]
            factors[i] = sample_weight[row]
        loss = kernel(scores[:size], wanted[:size], factors[:size], slopes[:size])
        gradient[:] = 0
        bias_gradient[:] = 0
        for i in range(size):
            _add_row(X[order[begin + i]], slopes[i], gradient, bias_gradient)
        if has_layer:
            for j in range(n_features):
                loss += penalty[0] * abs(layer[j]) + penalty[1] * layer[j] ** 2
            _layer_gradients(weight, layer, gradient, layer_gradient, penalty[0], penalty[1])
        for k in range(n_outputs):
            for j in range(n_features):
                gradient[k, j] += np.float32(2.0) * l2 * weight[k, j]
        age += 1
        constants = adam_constants(rate, 0.9, 0.999, 1e-8, age)
        for k in range(n_outputs):
            _step(weight[k], gradient[k], weight_first[k], weight_second[k], constants)
        _step(bias, bias_gradient, bias_first, bias_second, constants)
        _step(layer, layer_gradient, layer_first, layer_second, constants)
        total += loss * size
    return total


def fit_naive(
    network: NaiveSVM,
    problem: Problem,
    recipe: Recipe,
    loss: Loss,
    *,
    one_to_one: OneToOne | None = None,
    penalty: tuple[float, float] = (0.0, 0.0),
    seed: int = 0,
    progress: bool = False,
) -> np.ndarray:
    """Train a naive network, and the layer of DFS in front of it if there is one, in place.

    Does what ``fit_network(nn.Sequential(one_to_one, network), ...)`` does with the elastic net as penalty, batch for
    batch, up to rounding.

    Parameters
    ----------
    network : NaiveSVM
        On the CPU.
    problem : Problem
        Inputs, targets as the loss takes them, and sample weights.
    recipe : Recipe
        One that trains with Adam.
    loss : Loss
        The loss.
    one_to_one : OneToOne, default=None
        The layer in front.
    penalty : tuple of float, default=(0.0, 0.0)
        l1 and l2 of the layer.
    seed : int, default=0
        Decides the order of the rows.
    progress : bool, default=False
        Whether to report every tenth of the run on stderr.

    Returns
    -------
    ndarray of shape (epochs,)
        The mean training loss (with the penalty of the layer, without l2) of each epoch.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from tamiz.paper.deep_training import NAIVE
    >>> from tamiz.core.losses import get_loss
    >>> problem = Problem(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    >>> recipe = replace(NAIVE.with_epochs(50), learning_rate=0.1, l2=0.0)
    >>> losses = fit_naive(NaiveSVM(1, 1), problem, recipe, get_loss("squared_hinge"))
    >>> losses.shape, bool(losses[-1] < losses[0] / 10)
    ((50,), True)
    """
    if recipe.optimizer != "adam":
        raise ValueError(f"The compiled loop trains with 'adam' only, not {recipe.optimizer!r}; use fit_network.")
    n_samples = checked_problem(problem).n_samples
    rows = np.ascontiguousarray(problem.dense())
    targets = np.ascontiguousarray(problem.targets, dtype=np.float32)
    sizes = full_sizes(n_samples, recipe.batch_size_for(n_samples))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # Views of the modules' own memory: the loop writes where torch reads.
    layer = np.zeros(0, dtype=np.float32) if one_to_one is None else one_to_one.weight.detach().numpy()
    parameters = (network.linear.weight.detach().numpy(), network.linear.bias.detach().numpy(), layer)
    moments = tuple(np.zeros_like(parameter) for parameter in parameters for _ in range(2))
    weights, l2 = problem.unit_weights(), np.float32(recipe.l2_for(n_samples))
    layer_penalty = (np.float32(penalty[0]), np.float32(penalty[1]))
    generator = torch.Generator().manual_seed(seed)
    curve = LossCurve(recipe.epochs, progress)
    for epoch in range(recipe.epochs):
        order = torch.randperm(n_samples, generator=generator).numpy()
        total = _epoch(
            loss.compiled,
            rows,
            targets,
            weights,
            starts,
            order,
            parameters,
            moments,
            recipe.learning_rate_at(epoch),
            l2,
            layer_penalty,
            epoch * len(sizes),
        )
        curve.add(total / n_samples)
    network.eval()
    return curve.values
