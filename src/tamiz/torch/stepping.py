"""One step of a mask's gamma: the compiled update on the CPU, elsewhere the tensor operations of ``tamiz.core``."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from tamiz.core import MaskState, Rule, Slot, advance, is_closed, selection_schedule
from tamiz.core.compiled import NOT_FINITE, advance_in_place
from tamiz.torch._compiled import as_numpy

if TYPE_CHECKING:
    from tamiz.torch.mask import FeatureMask


def move_gamma(mask: FeatureMask, gradient: torch.Tensor) -> None:
    """Advance the state of ``mask`` by one step for the gradient of the loss with respect to gamma (flat)."""
    on_cpu = gradient.device.type == "cpu" and gradient.dtype == torch.float32
    if on_cpu and gradient.is_contiguous() and mask.gamma.is_contiguous():
        _move_compiled(mask, gradient)
    else:
        _move_by_tensors(mask, gradient)


def _views(mask: FeatureMask) -> tuple[Any, ...]:
    """The state as arrays over the same memory; made anew when a tensor has moved."""
    # Taken from the module's own dictionaries: this runs in every step, and attributes of modules are slow to look up.
    buffers: Any = mask._buffers
    state = (
        mask.__dict__["_parameters"]["gamma"],
        buffers["first"],
        buffers["second"],
        buffers["rank"],
        buffers["counters"],
    )
    key = tuple([part.data_ptr() for part in state])
    if mask._arrays is None or mask._arrays[0] != key:
        parts = (mask._flat_gamma(), *state[1:])
        mask._arrays = (key, *map(as_numpy, parts), np.empty(mask.n_features, dtype=np.int32))
    return mask._arrays


def _move_compiled(mask: FeatureMask, gradient: torch.Tensor) -> None:
    _, gamma, first, second, rank, counters, order = _views(mask)
    pull = as_numpy(gradient)
    step = int(counters[Slot.STEP]) + 1
    if step <= mask.rule.warmup_steps or counters[Slot.CLOSED]:
        # The sum of squares may overflow; then each entry is looked at.
        if not math.isfinite(torch.dot(gradient, gradient).item()):
            _refuse_not_finite(mask, gradient)
        counters[Slot.STEP] = step
        return
    rule = mask.rule
    (alpha,), (target,) = selection_schedule(rule, step, 1)
    forced = step >= rule.step_limit
    if (
        advance_in_place(gamma, first, second, rank, pull, order, counters, alpha, target, forced, rule.numbers)
        == NOT_FINITE
    ):
        _refuse_not_finite(mask, gradient)
    counters[Slot.STEP] = step
    # The memory was written behind autograd's back; a graph that still needs the old gamma must notice.
    torch.autograd.graph.increment_version(mask.gamma)
    if counters[Slot.FORCED] == 1:
        counters[Slot.FORCED] = 2
        _warn(mask)


def _move_by_tensors(mask: FeatureMask, gradient: torch.Tensor) -> None:
    _refuse_not_finite(mask, gradient)
    rule, counters = mask.rule, mask.counters
    step = mask.step + 1
    limit_decides = False
    with torch.no_grad():
        if not mask.closed and step > rule.warmup_steps:
            old = MaskState(mask._flat_gamma(), mask.first, mask.second, mask.rank.long(), counters[Slot.AGE])
            pull = gradient.to(old.gamma.dtype)
            new = advance(old, pull, step, rule)
            limit_decides = step >= rule.step_limit and _limit_decides(old, pull, step, rule)
            mask.gamma.copy_(new.gamma.reshape(mask.shape))
            mask.first.copy_(new.first)
            mask.second.copy_(new.second)
            mask.rank.copy_(new.rank)
            counters[Slot.AGE] = new.age
            counters[Slot.OPEN] = (new.rank == 0).sum()
            counters[Slot.CLOSED] = is_closed(new, rule)
        counters[Slot.STEP] = step
    if limit_decides:
        counters[Slot.FORCED] = 2
        _warn(mask)


def _limit_decides(old: MaskState, pull: torch.Tensor, step: int, rule: Rule) -> bool:
    """Whether without the limit some fate would stay open in this step."""
    if not bool((old.rank == 0).any()):
        return False
    free = advance(old, pull, step, replace(rule, max_steps=step + 1))
    return bool((free.rank == 0).any())


def _refuse_not_finite(mask: FeatureMask, gradient: torch.Tensor) -> None:
    """Refuse NaN and infinity in the gradient of a living feature; what is dead does not move and may not stop the rest."""
    bad = ~torch.isfinite(gradient) & (mask.rank <= mask.n_features_to_select)
    if not bool(bad.any()):
        return
    kind = "NaN" if bool((bad & torch.isnan(gradient)).any()) else "infinite"
    raise FloatingPointError(
        f"the gradient of gamma is {kind} in {int(bad.sum())} of {gradient.numel()} entries (first: feature "
        f"{int(bad.nonzero()[0])}); gamma was not moved. Look for NaN or infinity in that input or in the loss, or lower "
        "the learning rate of the model."
    )


def _warn(mask: FeatureMask) -> None:
    warnings.warn(
        f"The mask did not settle within {mask.rule.max_steps} steps of selection; the {mask.n_features_to_select} "
        "largest were kept. Raise ramp_steps or max_steps, or use variant='soft'.",
        ConvergenceWarning,
        stacklevel=2,
    )
