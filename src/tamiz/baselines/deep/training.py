"""Train a network on a table in memory, as a recipe says."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor, nn

from tamiz._names import pick
from tamiz._progress import ProgressBar
from tamiz.baselines.deep.recipes import Recipe
from tamiz.core.losses import Loss
from tamiz.engines.contract import Problem
from tamiz.torch import StepReport, train_weights
from tamiz.torch.batches import TensorBatches, full_sizes
from tamiz.torch.optimizers import decay_groups

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
    >>> from tamiz.baselines.deep.recipes import NAIVE
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
    >>> from tamiz.baselines.deep.recipes import NAIVE
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
