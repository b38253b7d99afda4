"""Compiled loops over the memory of tensors on the CPU; elsewhere the same sums as tensor operations."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from tamiz.core.compiled import FAST, advance_in_place
from tamiz.core.rule import RuleNumbers


@njit(cache=True, nogil=True)
def advance_arrays(gamma, first, second, rank, order, counters, loss_gradient, alpha, target, forced, numbers):
    """Call ``tamiz.core.compiled.advance_in_place`` with the ``RuleNumbers`` as a plain tuple.

    Numba looks up the type of a plain tuple in C, that of a NamedTuple in Python, which takes longer than the step.
    """
    m, mu, learning_rate, beta1, beta2, epsilon = numbers
    rule = RuleNumbers(m, mu, learning_rate, beta1, beta2, epsilon, 0.0, None)
    return advance_in_place(
        gamma, first, second, rank, loss_gradient, order, counters, alpha, target, forced, rule
    )  # fmt: skip


@njit(cache=True, nogil=True)
def advance_arrays_with_costs(
    gamma, first, second, rank, order, counters, loss_gradient, alpha, target, forced, numbers, limit, costs
):
    """Take the step of :func:`advance_arrays` with costs."""
    m, mu, learning_rate, beta1, beta2, epsilon = numbers
    rule = RuleNumbers(m, mu, learning_rate, beta1, beta2, epsilon, limit, costs)
    return advance_in_place(
        gamma, first, second, rank, loss_gradient, order, counters, alpha, target, forced, rule
    )  # fmt: skip


@njit(cache=True, nogil=True)
def sum_by_place(values, place, out):
    """Add the values of each place; places beyond ``out`` do not count."""
    out[:] = np.float32(0.0)
    for j in range(values.shape[0]):
        if place[j] < out.shape[0]:
            out[place[j]] += values[j]


@njit(cache=True, nogil=True)
def spread_by_place(values, place, out):
    """Write to each entry the value of its place: one and zero for the two places behind the values."""
    n = values.shape[0]
    for j in range(place.shape[0]):
        out[j] = values[place[j]] if place[j] < n else np.float32(n + 1 - place[j])


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _split(both, weight, gamma, gamma_gradient):
    """Sum the gradient of ``g * W`` over its rows for gamma and scale it in place for W, in one pass."""
    outputs, width = both.shape
    block = 2048
    for begin in range(0, width, block):
        # Slices counted from zero: with an offset in the index LLVM does not vectorise.
        sums, factors = gamma_gradient[begin : begin + block], gamma[begin : begin + block]
        sums[:] = np.float32(0.0)
        for i in range(outputs):
            b, w = both[i, begin : begin + block], weight[i, begin : begin + block]
            for j in range(sums.shape[0]):
                value = b[j]
                sums[j] += value * w[j]
                b[j] = value * factors[j]


def fold_gradients(both: torch.Tensor, weight: torch.Tensor, gamma: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of ``g`` and of ``W`` from that of the product ``g * W``.

    Where the backward pass is itself to be differentiated, only tensor operations are used.
    """
    plain = both.device.type == "cpu" and both.dtype == torch.float32 and not torch.is_grad_enabled()
    if plain and both.is_contiguous() and weight.is_contiguous():
        gamma_gradient = torch.empty_like(gamma)
        _split(both.numpy(), weight.detach().numpy(), gamma.detach().numpy(), gamma_gradient.numpy())
        return gamma_gradient, both
    return (both * weight).sum(0), both * gamma
