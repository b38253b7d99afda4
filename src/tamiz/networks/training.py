"""A small training loop for tables that fit in memory: batches by index, one seed, the paper's schedules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tamiz.networks.losses import get_loss
from tamiz.networks.recipes import NAIVE, Recipe

Penalty = Callable[[nn.Module], Tensor]


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Everything drawn inside comes from ``seed``; the random state of the caller is as before afterwards.

    Examples
    --------
    >>> before = torch.random.get_rng_state()
    >>> with seeded(0):
    ...     first = torch.rand(3)
    >>> with seeded(0):
    ...     second = torch.rand(3)
    >>> torch.equal(first, second), torch.equal(before, torch.random.get_rng_state())
    (True, True)
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def make_optimizer(model: nn.Module, recipe: Recipe, learning_rate: float, l2: float) -> torch.optim.Optimizer:
    """The recipe's optimiser over a model's parameters.

    The l2 penalty goes in as weight decay (the optimisers add ``weight_decay * weight`` to the gradient,
    which for ``l2 * |w|^2`` is ``2 * l2 * w``), and only on matrices and kernels: biases, batch normalisation
    and one-to-one layers are vectors.
    """
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trainable if p.dim() > 1], "weight_decay": 2.0 * l2},
        {"params": [p for p in trainable if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise ValueError("The network has no trainable parameters.")
    # The fused step is one call for all parameters; for small networks it is a third of the time of a
    # training step.
    if recipe.optimizer == "adam":
        return torch.optim.Adam(groups, lr=learning_rate, fused=True)
    if recipe.optimizer == "sgd":
        nesterov = recipe.momentum > 0
        return torch.optim.SGD(groups, lr=learning_rate, momentum=recipe.momentum, nesterov=nesterov, fused=True)
    raise ValueError(f"Unknown optimizer {recipe.optimizer!r}; known: 'adam', 'sgd'.")


def batches(order: Tensor, batch_size: int) -> list[Tensor]:
    """The row numbers of ``order`` in batches; a last batch of a single row joins the one before.

    Batch normalisation cannot work on one row.

    Examples
    --------
    >>> [batch.tolist() for batch in batches(torch.arange(5), 2)]
    [[0, 1], [2, 3, 4]]
    """
    parts = list(order.split(batch_size))
    if batch_size > 1 and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [order[-(batch_size + 1) :]]
    return parts


def count_batches(n_samples: int, batch_size: int) -> int:
    """How many steps an epoch has.

    Examples
    --------
    >>> count_batches(5, 2), count_batches(4, 3), count_batches(3, 1)
    (2, 1, 3)
    """
    return len(batches(torch.arange(n_samples), batch_size))


def _check_lengths(epochs: int, batch_size: int, model: nn.Module, n_samples: int) -> None:
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, got {epochs}.")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
    normalises = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    if normalises and min(batch_size, n_samples) < 2:
        raise ValueError("A network with batch normalisation needs batches of at least 2 rows; raise batch_size.")


def _tensors(X: Any, y: Any, sample_weight: Any, device: torch.device) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rows, targets and weights on the model's device; weights scaled to a mean of 1."""
    rows = torch.as_tensor(X, dtype=torch.float32, device=device)
    targets = torch.as_tensor(y, device=device)
    if targets.is_floating_point():
        targets = targets.to(torch.float32)
        targets = targets[:, None] if targets.dim() == 1 else targets
    if rows.shape[0] != targets.shape[0]:
        raise ValueError(f"X has {rows.shape[0]} rows, y has {targets.shape[0]} entries.")
    if sample_weight is None:
        return rows, targets, None
    weights = torch.as_tensor(np.asarray(sample_weight, dtype=np.float32), device=device)
    if weights.shape != (rows.shape[0],) or not (weights >= 0).all() or not weights.sum() > 0:
        raise ValueError("sample_weight must have one weight for each row of X, none negative, not all zero.")
    return rows, targets, weights / weights.mean()


def check_progress(history: np.ndarray, epoch: int, progress: bool) -> None:
    """Stop a run whose loss is no longer a number; say how far it is, ten times a run."""
    if not np.isfinite(history[epoch]):
        raise ValueError(
            f"Training diverged in epoch {epoch + 1}: the loss is not finite. Lower learning_rate, or scale X."
        )
    if progress and (epoch + 1) % max(1, history.size // 10) == 0:
        print(f"epoch {epoch + 1}/{history.size}: loss {history[epoch]:.5g}", file=sys.stderr)


def fit_network(
    model: nn.Module,
    X: Any,
    y: Any,
    *,
    recipe: Recipe = NAIVE,
    loss: str | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    l2: float | None = None,
    sample_weight: Any = None,
    penalty: Penalty | None = None,
    seed: int = 0,
    progress: bool = False,
) -> np.ndarray:
    """Train a network in place, as a recipe says; what is given beside the recipe takes its place.

    A batch's loss is the sum of the weighted losses over the *number* of its rows, with weights of mean 1
    over all rows: so the average step follows the weighted mean over the table, however the classes fall into
    small batches.

    Parameters
    ----------
    model : nn.Module
        The network; trained on the device it lies on, left in evaluation mode.
    X : array or tensor, shape (n_samples, ...)
        The inputs.
    y : array or tensor, shape (n_samples,) or (n_samples, n_outputs)
        The targets in the form of the loss (see :func:`tamiz.networks.losses.encode_classes`).
    recipe : Recipe
        Optimiser, rates, regularisation and length; of its phases only the refinement is run.
    loss : str or None
        The loss by name; None takes the recipe's.
    epochs, batch_size, learning_rate, l2 : optional
        In place of the recipe's. The schedule of the rates is stretched to ``epochs``.
    sample_weight : array or None
        One weight for each row.
    penalty : callable or None
        Called with the model; what it returns is added to the loss of every batch.
    seed : int
        Decides the order of the rows and what the model itself draws (dropout).
    progress : bool
        Whether to write a line for every tenth of the run to the standard error.

    Returns
    -------
    ndarray of shape (epochs,)
        The mean training loss (with penalty, without l2) of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.networks import NaiveSVM
    >>> X = np.array([[-1.0], [-2.0], [1.0], [2.0]]); y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> losses = fit_network(NaiveSVM(1, 1), X, y, epochs=50, learning_rate=0.1, l2=0.0)
    >>> losses.shape, bool(losses[-1] < losses[0] / 10)
    ((50,), True)
    """
    device = next(model.parameters()).device
    rows, targets, weights = _tensors(X, y, sample_weight, device)
    n_samples = rows.shape[0]
    recipe = recipe if epochs is None or epochs < 1 else recipe.with_epochs(epochs)
    epochs = recipe.refinement_epochs if epochs is None else epochs
    batch_size = recipe.batch_size_for(n_samples) if batch_size is None else batch_size
    _check_lengths(epochs, batch_size, model, n_samples)
    start_rate = recipe.learning_rate if learning_rate is None else learning_rate
    optimizer = make_optimizer(model, recipe, start_rate, recipe.l2_for(n_samples) if l2 is None else l2)
    loss_function = get_loss(recipe.loss if loss is None else loss)
    generator = torch.Generator().manual_seed(seed)
    history = np.empty(epochs)
    model.train()
    with seeded(seed, device):
        for epoch in range(epochs):
            for group in optimizer.param_groups:
                group["lr"] = start_rate * recipe.learning_rate_at(epoch) / recipe.learning_rate
            order = torch.randperm(n_samples, generator=generator).to(device)
            total = _run_epoch(
                model, rows, targets, weights, batches(order, batch_size), loss_function, optimizer, penalty
            )
            history[epoch] = total / n_samples
            check_progress(history, epoch, progress)
    model.eval()
    return history


def _run_epoch(
    model: nn.Module,
    rows: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    parts: list[Tensor],
    loss_function: Callable[..., Tensor],
    optimizer: torch.optim.Optimizer,
    penalty: Penalty | None,
) -> float:
    """One pass over the batches; the sum of their losses, each counted by its rows."""
    total = torch.zeros((), device=rows.device)
    for index in parts:
        batch_weights = None if weights is None else weights.index_select(0, index)
        outputs = model(rows.index_select(0, index))
        value = loss_function(outputs, targets.index_select(0, index), batch_weights, reduction="none").mean()
        if penalty is not None:
            value = value + penalty(model)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        total += value.detach() * len(index)
    return float(total)


@torch.no_grad()
def evaluate_loss(
    model: nn.Module, X: Any, y: Any, loss: str, sample_weight: Any = None, batch_size: int = 1024
) -> float:
    """The weighted mean loss of a network over a table, in evaluation mode and without any penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.networks import NaiveSVM
    >>> evaluate_loss(NaiveSVM(1, 1), np.array([[1.0], [2.0]]), np.array([1.0, -1.0]), "squared_hinge")
    1.0
    """
    device = next(model.parameters()).device
    rows, targets, weights = _tensors(X, y, sample_weight, device)
    loss_function, was_training = get_loss(loss), model.training
    model.eval()
    total = 0.0
    for index in torch.arange(rows.shape[0], device=device).split(batch_size):
        batch_weights = None if weights is None else weights[index]
        total += float(loss_function(model(rows[index]), targets[index], batch_weights, reduction="none").sum())
    model.train(was_training)
    return total / rows.shape[0]
