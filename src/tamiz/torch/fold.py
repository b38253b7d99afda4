"""The fold: where a mask stands before an ``nn.Linear``, ``g * W`` is used instead of ``x * g``.

``(x * g) @ W.T == x @ (g * W).T``, but the second form needs no gradient with respect to the input, which on a wide table
costs as much as the rest of the layer. The mask hands on a :class:`DeferredProduct`, a tensor that has not been computed
yet: a linear layer takes the folded path, anything else makes it compute the product first. It has no memory behind it, so
code that bypassed both would fail, never see unmasked numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from tamiz.torch._compiled import fold_gradients

#: Columns handled at a time: the folded weights of a block stay in the cache, and no second copy of W is ever held.
BLOCK = 4096


class _FoldedLinear(torch.autograd.Function):
    """``x @ (g * W).T + b`` with gradients for g, W and b, and none for x."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, gamma: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
        ctx.save_for_backward(x, gamma, weight)
        ctx.has_bias = bias is not None
        width = weight.shape[1]
        if width <= BLOCK:
            return torch.nn.functional.linear(x, weight * gamma, bias)
        out = x.new_zeros(x.shape[0], weight.shape[0]) if bias is None else bias.expand(x.shape[0], -1).contiguous()
        for begin in range(0, width, BLOCK):
            part = slice(begin, begin + BLOCK)
            out.addmm_(x[:, part], (weight[:, part] * gamma[part]).t())
        return out

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        (slope,) = grad_outputs
        x, gamma, weight = ctx.saved_tensors
        both = slope.t() @ x
        of_gamma, of_weight = fold_gradients(both, weight, gamma)
        return None, of_gamma, of_weight, slope.sum(0) if ctx.has_bias else None


def folded_linear(
    x: torch.Tensor, gamma: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """``linear(x * gamma, weight, bias)`` without the gradient of ``x``; for any number of leading dimensions.

    Examples
    --------
    >>> import torch
    >>> x, gamma, weight = torch.ones(2, 3), torch.tensor([1.0, 0.5, 0.0]), torch.ones(1, 3)
    >>> folded_linear(x, gamma, weight).flatten().tolist()
    [1.5, 1.5]
    """
    if x.dim() == 2:
        return _FoldedLinear.apply(x, gamma, weight, bias)
    flat = _FoldedLinear.apply(x.reshape(-1, x.shape[-1]), gamma, weight, bias)
    return flat.reshape(*x.shape[:-1], weight.shape[0])


class DeferredProduct(torch.Tensor):
    """``x * gamma``, computed when something other than a linear layer asks for it."""

    _x: torch.Tensor
    _gamma: torch.Tensor
    _product: torch.Tensor | None

    @staticmethod
    def __new__(cls, x: torch.Tensor, gamma: torch.Tensor) -> DeferredProduct:
        self = torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, device=x.device)
        self._x, self._gamma, self._product = x, gamma, None
        return self

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.linear and isinstance(args[0], cls):
            x, gamma = args[0]._x, args[0]._gamma
            weight = args[1]
            bias = args[2] if len(args) > 2 else (kwargs or {}).get("bias")
            if weight.dtype == x.dtype and not torch.is_autocast_enabled(x.device.type):
                return folded_linear(x, gamma, weight, bias)
        args, kwargs = tree_map_only(cls, _product_of, (args, kwargs or {}))
        return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        # Reached only by code that goes past __torch_function__.
        args, kwargs = tree_map_only(cls, _product_of, (args, kwargs or {}))
        return func(*args, **kwargs)


def _product_of(deferred: DeferredProduct) -> torch.Tensor:
    if deferred._product is None:
        deferred._product = deferred._x * deferred._gamma
    return deferred._product
