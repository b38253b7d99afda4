"""One-to-one layer of Deep Feature Selection: one weight in front of each input."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
