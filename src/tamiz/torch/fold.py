"""Fold a mask into the ``nn.Linear`` behind it: ``g * W`` instead of ``x * g``.

``(x * g) @ W.T == x @ (g * W).T``, but the second form needs no gradient with respect to the input, which on a wide table
costs as much as the rest of the layer, and where few columns are left it needs only these. The mask hands on a
:class:`DeferredProduct`, a tensor that has not been computed yet: a linear layer takes the folded path, anything else makes it
compute the product first. It has no memory behind it, so code that bypassed both would fail, never see unmasked numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

from tamiz._utils.compiling import njit
from tamiz.core.compiled import FAST

#: Columns handled at a time: the folded weights of a block stay in the cache, and no second copy of W is ever held.
BLOCK = 4096

#: Weights of at most so many numbers are multiplied as a whole: the time goes into calls, not into memory.
SMALL = 1 << 16

#: Inputs of at most so many numbers are multiplied at once: to put the product off takes longer.
TINY = 1 << 13

#: What only asks how a tensor is built; answered without computing the product.
_OUTLINE = {getattr(torch.Tensor, name) for name in ("dim", "size", "numel", "is_floating_point", "__len__")}
_OUTLINE |= {getattr(torch.Tensor, name).__get__ for name in ("shape", "ndim", "dtype", "device")}

_linear = torch.nn.functional.linear
_ORDINARY = (torch.Tensor, torch.nn.Parameter, type(None))


@njit(nogil=True, fastmath=FAST, error_model="numpy")
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


class _FoldedLinear(torch.autograd.Function):
    """Compute ``x @ (g * W).T + b`` with gradients for g, W and b, and none for x."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, gamma: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
        ctx.save_for_backward(x, gamma, weight)
        ctx.has_bias = bias is not None
        width = weight.shape[1]
        if width <= 2 * BLOCK:
            return _linear(x, weight * gamma, bias)
        out = x.new_zeros(x.shape[0], weight.shape[0]) if bias is None else bias.expand(x.shape[0], -1).contiguous()
        scratch = weight.new_empty(weight.shape[0], BLOCK)
        for begin in range(0, width, BLOCK):
            part = slice(begin, begin + BLOCK)
            folded = torch.mul(weight[:, part], gamma[part], out=scratch[:, : width - begin])
            out.addmm_(x[:, part], folded.t())
        return out

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        (output_gradient,), (x, gamma, weight) = grad_outputs, ctx.saved_tensors
        bias_gradient = output_gradient.sum(0) if ctx.has_bias else None
        both = output_gradient.t() @ x  # the gradient of g * W
        # Where the backward pass is itself to be differentiated, only tensor operations are used.
        plain = both.device.type == "cpu" and both.dtype == torch.float32 and not torch.is_grad_enabled()
        if plain and both.is_contiguous() and weight.is_contiguous():
            gamma_gradient = torch.empty_like(gamma)
            _split(both.numpy(), weight.detach().numpy(), gamma.detach().numpy(), gamma_gradient.numpy())
            return None, gamma_gradient, both, bias_gradient
        return None, (both * weight).sum(0), both * gamma, bias_gradient


class _Columns(torch.autograd.Function):
    """Take columns out of a matrix; that of ``index_select`` adds their gradients one column at a time."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, kept: torch.Tensor) -> Any:
        ctx.save_for_backward(kept)
        ctx.shape = weight.shape
        return weight.index_select(1, kept)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        (gradient,), (kept,) = grad_outputs, ctx.saved_tensors
        return gradient.new_zeros(ctx.shape).index_copy(1, kept, gradient), None


def folded_linear(
    x: torch.Tensor, gamma: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Compute ``linear(x * gamma, weight, bias)`` without the gradient of ``x``; for any number of leading dimensions.

    Examples
    --------
    >>> import torch
    >>> x, gamma, weight = torch.ones(2, 3), torch.tensor([1.0, 0.5, 0.0]), torch.ones(1, 3)
    >>> folded_linear(x, gamma, weight).flatten().tolist()
    [1.5, 1.5]
    """
    if weight.numel() <= SMALL:
        return _linear(x, weight * gamma, bias)
    if x.dim() == 2:
        return _FoldedLinear.apply(x, gamma, weight, bias)
    flat = _FoldedLinear.apply(x.reshape(-1, x.shape[-1]), gamma, weight, bias)
    return flat.reshape(*x.shape[:-1], weight.shape[0])


class DeferredProduct(torch.Tensor):
    """Hold ``x * gamma`` uncomputed until something other than a linear layer asks for it; then it is an ordinary tensor."""

    _x: torch.Tensor
    _gamma: torch.Tensor
    _kept: torch.Tensor | None
    _product: torch.Tensor | None
    _versions: tuple[int, int]

    @staticmethod
    def __new__(cls, x: torch.Tensor, gamma: torch.Tensor, kept: torch.Tensor | None = None) -> DeferredProduct:
        self = torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, device=x.device)
        self._x, self._gamma, self._kept, self._product = x, gamma, kept, None
        self._versions = (x._version, gamma._version)
        return self

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _linear and not torch.compiler.is_compiling():
            folded = _fold(*args, **kwargs)
            if folded is not None:
                return folded
        elif func in _OUTLINE and isinstance(args[0], cls):
            return func(args[0]._x, *args[1:], **kwargs)
        args, kwargs = tree_map_only(cls, _product_of, (args, kwargs))
        return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        # Reached only by code that goes past __torch_function__, such as another autograd function that hands its input on.
        # This is below autograd, so the product made here has no graph and is not kept.
        for value, argument in zip(args, func._schema.arguments):
            if isinstance(value, cls) and argument.alias_info is not None and argument.alias_info.is_write:
                raise NotImplementedError(f"{func} cannot change the output of a FeatureMask in place; clone() it")
        args, kwargs = tree_map_only(cls, _numbers_of, (args, kwargs or {}))
        return func(*args, **kwargs)


class _Defer(torch.autograd.Function):
    """Give a DeferredProduct its place in the graph.

    Needed by code that does not ask for the numbers through Python: autograd functions of others, module hooks and
    checkpoints take the tensor as it is, and send their gradient back to it.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, gamma: torch.Tensor, kept: torch.Tensor | None) -> Any:
        ctx.save_for_backward(x, gamma)
        return DeferredProduct(x, gamma, kept)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        x, gamma = ctx.saved_tensors
        return None, (grad_outputs[0] * x).sum_to_size(gamma.shape), None


def masked(x: torch.Tensor, gamma: torch.Tensor, kept: torch.Tensor | None = None) -> torch.Tensor:
    """Multiply ``x`` by gamma, deferred where a linear layer that follows can make use of it.

    ``kept`` are the places where gamma is not zero, if they are known.

    Examples
    --------
    >>> import torch
    >>> gamma = torch.tensor([1.0, 0.5], requires_grad=True)
    >>> product = masked(torch.ones(1, 2), gamma)
    >>> type(product).__name__, product.tolist()
    ('Tensor', [[1.0, 0.5]])
    """
    if x.numel() <= TINY or type(x) is not torch.Tensor or x.requires_grad or x.is_inference():
        return x * gamma
    fits = gamma.dim() == 1 and x.dim() > 1 and x.shape[-1] == gamma.shape[0] and x.dtype == gamma.dtype
    if not fits or not torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
        return x * gamma
    if kept is not None and 4 * kept.numel() > gamma.numel() > kept.numel():
        kept = None  # too many to take them out
    if gamma.requires_grad:
        return _Defer.apply(x, gamma, kept)
    return x * gamma if kept is None else DeferredProduct(x, gamma, kept)


def _fold(input: Any, weight: Any, bias: Any = None) -> torch.Tensor | None:
    """Compute ``linear(input, weight, bias)`` in the folded form; None where it does not apply."""
    if not isinstance(input, DeferredProduct) or input._product is not None:
        return None
    x, gamma = _parts(input)
    ordinary = type(weight) in _ORDINARY and type(bias) in _ORDINARY
    if not ordinary or weight.dtype != x.dtype or weight.dim() != 2 or weight.shape[1] != x.shape[-1]:
        return None
    if torch.is_autocast_enabled(x.device.type) or torch._C._are_functorch_transforms_active():
        return None
    kept = input._kept
    if kept is not None and kept.numel() < gamma.numel():
        x, weight, gamma = x.index_select(-1, kept), _Columns.apply(weight, kept), gamma.index_select(0, kept)
    return folded_linear(x, gamma, weight, bias) if gamma.requires_grad else _linear(x, weight, bias)


def _parts(deferred: DeferredProduct) -> tuple[torch.Tensor, torch.Tensor]:
    x, gamma = deferred._x, deferred._gamma
    if deferred._versions != (x._version, gamma._version):
        raise RuntimeError(
            "the input of a FeatureMask, or gamma, was changed in place before the mask's output was used; "
            "hand the mask a copy, or use its output first"
        )
    return x, gamma


def _numbers_of(deferred: DeferredProduct) -> torch.Tensor:
    x, gamma = _parts(deferred)
    return x * gamma


def _product_of(deferred: DeferredProduct) -> torch.Tensor:
    if deferred._product is None:
        if torch.compiler.is_compiling():  # a compiled layer behind an eager mask fuses the product itself
            return deferred._x * deferred._gamma
        if torch.is_inference_mode_enabled():
            return _numbers_of(deferred)
        # Whoever looks first may do so under no_grad; those who come later still need the graph.
        with torch.enable_grad():
            deferred._product = _numbers_of(deferred)
    return deferred._product
