"""A small trainer: warm-up, selection, closing and refinement for any module that holds one FeatureMask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from tamiz.selection import Selection
from tamiz.torch._masks import find_mask
from tamiz.torch._run import Run, StepReport
from tamiz.torch.mask import FeatureMask


def train(
    model: nn.Module,
    data: Any,
    loss: Callable[..., torch.Tensor],
    *,
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None = None,
    learning_rate: float = 0.01,
    batch_size: int = 64,
    warmup_steps: int = 0,
    ramp_steps: int = 2000,
    max_steps: int | None = None,
    refinement_steps: int = 1000,
    refinement_rates: Sequence[float] = (1.0, 0.2, 0.04),
    average: float = 0.0,
    shrink: bool = True,
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 500,
    callbacks: Iterable[Callable[[StepReport], Any]] = (),
) -> Selection:
    """Train a model and select its inputs, in one run.

    The model ends in evaluation mode, with a closed mask and its original shapes. The random state of the caller is left
    as it was: the run has its own, from ``seed`` (the weights the model starts with are the caller's).

    Parameters
    ----------
    model : nn.Module
        Any module that holds exactly one :class:`FeatureMask`; trained on the device it lies on.
    data : tuple of tensors or arrays, or iterable of batches
        ``(X, y)`` or ``(X, y, sample_weight)`` in memory, or anything that gives such batches again and again, for example
        a ``DataLoader``. A batch or ``data`` that is a single tensor has no target.
    loss : callable
        ``loss(model(x), y)``, with a third argument where a batch has three parts; ``loss(model(x), x)`` without target.
    optimizer : callable, optional
        Called with the model's parameters, returns the optimizer: ``functools.partial(torch.optim.SGD, lr=0.1)``. By
        default Adam with ``learning_rate``.
    learning_rate : float
        Of the default optimizer.
    batch_size : int
        Rows of a batch, for data in memory.
    warmup_steps, ramp_steps, max_steps : int
        As in :meth:`FeatureMask.attach`.
    refinement_steps : int
        Steps after the mask is closed.
    refinement_rates : sequence of float
        The refinement has as many equal parts; in each the optimizer's learning rates are multiplied by its number. The
        default divides by 5 twice, as the paper does.
    average : float
        Share of the refinement, at its end, over which the weights are averaged; 0 keeps the last ones. With a rate that
        stays high, the average of many good networks beats each of them.
    shrink : bool
        Whether dead columns are dropped from the first layer as they die, where the masked input goes straight into an
        ``nn.Linear``. The result is the same, the time is not.
    seed : int
        Decides the order of the rows and what the model itself draws (dropout).
    progress : bool
        Whether a run of more than two seconds draws a bar with the time left on stderr.
    checkpoint : path, optional
        A file that the state of the run is kept in. If it exists, the run goes on from there, and ends with exactly what it
        would have ended with without the break.
    checkpoint_every : int
        Steps between two checkpoints.
    callbacks : iterable of callable
        Each is called with a :class:`StepReport` after every step.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from tamiz.torch import FeatureMask, prune, train
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(200, 20)
    >>> y = X[:, 3] - 2 * X[:, 11]
    >>> model = nn.Sequential(FeatureMask(20, 2), nn.Linear(20, 1), nn.Flatten(0))
    >>> selection = train(model, (X, y), nn.functional.mse_loss, ramp_steps=500, refinement_steps=200)
    >>> selection.indices.tolist()
    [3, 11]
    >>> prune(model)(X[:, [3, 11]]).shape
    torch.Size([200])
    """
    settings = {
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "warmup_steps": warmup_steps,
        "ramp_steps": ramp_steps,
        "max_steps": max_steps,
        "refinement_steps": refinement_steps,
        "refinement_rates": [float(rate) for rate in refinement_rates],
        "average": float(average),
        "shrink": shrink,
        "seed": seed,
    }
    _check_settings(settings, checkpoint_every)
    mask = _the_mask(model)
    with _random_numbers(seed, mask.gamma.device):
        run = Run(model, mask, data, loss, optimizer, settings)
        try:
            if checkpoint is not None:
                run.resume(checkpoint)
            run.until_done(checkpoint, checkpoint_every, list(callbacks), progress)
        finally:
            run.close()
    model.eval()
    return run.selection()


def _check_settings(settings: dict[str, Any], checkpoint_every: int) -> None:
    least = {"batch_size": 1, "refinement_steps": 0}
    for name, value in {**settings, "checkpoint_every": checkpoint_every}.items():
        if name in (*least, "checkpoint_every") and (not isinstance(value, int) or value < least.get(name, 1)):
            raise ValueError(f"{name} must be an integer of at least {least.get(name, 1)}, got {value!r}")
    rates = settings["refinement_rates"]
    if not rates or not all(rate > 0 for rate in rates):
        raise ValueError(f"refinement_rates must be positive numbers, at least one, got {rates!r}")
    if not 0 <= settings["average"] <= 1:
        raise ValueError(f"average must be a share from 0 to 1, got {settings['average']!r}")
    if not settings["learning_rate"] > 0:
        raise ValueError(f"learning_rate must be above zero, got {settings['learning_rate']!r}")


def _the_mask(model: nn.Module) -> FeatureMask:
    mask = find_mask(model)
    if mask.step > 0:
        raise ValueError(
            f"the mask has taken {mask.step} steps already: call mask.reset() to select anew, or build a new model"
        )
    return mask


@contextmanager
def _random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from ``seed`` inside; the random state of the caller is as before afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
