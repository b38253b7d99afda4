"""Build the optimizers of the trainer and of the deep baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

#: Called with the parameters of a model, returns their optimizer.
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def decay_groups(parameters: Iterable[nn.Parameter], l2: float) -> list[dict[str, Any]]:
    """Return parameter groups whose weight decay is the gradient of ``l2 * |w|^2``, on matrices and kernels only.

    Biases, batch normalisation, one-to-one layers and masks are vectors and do not decay. The optimizers add
    ``weight_decay * w`` to the gradient, so the decay is ``2 * l2``. The key "decays" tells the groups apart later.

    Examples
    --------
    >>> [(len(group["params"]), group["weight_decay"]) for group in decay_groups(nn.Linear(3, 2).parameters(), 0.25)]
    [(1, 0.5), (1, 0.0)]
    """
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trainable if p.dim() > 1], "weight_decay": 2.0 * l2, "decays": True},
        {"params": [p for p in trainable if p.dim() <= 1], "weight_decay": 0.0, "decays": False},
    ]
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise ValueError("The network has no trainable parameters.")
    return groups


def make_optimizer(model: nn.Module, make: MakeOptimizer | None, learning_rate: float) -> torch.optim.Optimizer:
    """Return what ``make`` returns for the parameters of a model, checked; None: Adam with ``learning_rate``.

    Examples
    --------
    >>> type(make_optimizer(nn.Linear(2, 1), None, 0.01)).__name__
    'Adam'
    """
    if make is None:
        # The fused step is one call for all parameters; in small networks it saves a third of the time of a step.
        return torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    if isinstance(make, torch.optim.Optimizer) or not callable(make):
        raise TypeError(
            "optimizer must be a function of the model's parameters, for example "
            "functools.partial(torch.optim.SGD, lr=0.1)"
        )
    made = make(model.parameters())
    if not isinstance(made, torch.optim.Optimizer):
        raise TypeError(f"optimizer must return a torch.optim.Optimizer, it returned {type(made).__name__}")
    return made
