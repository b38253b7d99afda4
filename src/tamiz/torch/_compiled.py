"""Where tensors on the CPU meet the compiled pieces of the linear engine; elsewhere the same sums as tensor operations."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from tamiz.core.compiled import FAST


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _split(both, weight, gamma, of_gamma):
    """One pass over the gradient of ``g * W``: sum over the rows for gamma, and scaled in place for W."""
    outputs, width = both.shape
    block = 2048
    for begin in range(0, width, block):
        # Slices counted from zero: with an offset in the index the compiler does not dare to vectorise.
        sums, factors = of_gamma[begin : begin + block], gamma[begin : begin + block]
        sums[:] = np.float32(0.0)
        for i in range(outputs):
            b, w = both[i, begin : begin + block], weight[i, begin : begin + block]
            for j in range(sums.shape[0]):
                value = b[j]
                sums[j] += value * w[j]
                b[j] = value * factors[j]


def fold_gradients(both: torch.Tensor, weight: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """From the gradient of the product ``g * W``, those of ``g`` and of ``W``.

    Where the backward pass is itself to be differentiated, only tensor operations are used.
    """
    plain = both.device.type == "cpu" and both.dtype == torch.float32 and not torch.is_grad_enabled()
    if plain and both.is_contiguous() and weight.is_contiguous():
        of_gamma = torch.empty_like(gamma)
        _split(both.numpy(), weight.detach().numpy(), gamma.detach().numpy(), of_gamma.numpy())
        return of_gamma, both
    return (both * weight).sum(0), both * gamma


def as_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a CPU tensor as an array."""
    return tensor.detach().numpy()
