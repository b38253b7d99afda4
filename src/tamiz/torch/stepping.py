"""How gamma moves: the step itself, compiled, and the hooks that take it with the optimizer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import distributed

from tamiz._utils.compiling import njit
from tamiz.core.compiled import NOT_FINITE, MaskArrays, advance_in_place
from tamiz.core.rule import Rule, RuleNumbers, Slot, selection_schedule
from tamiz.core.step import MaskState, decide_by_price, fill_budget, is_closed
from tamiz.errors import DivergenceError


@njit(nogil=True)
def advance_arrays(arrays, gradient, alpha, target, forced, numbers):
    """Call ``tamiz.core.compiled.advance_in_place`` with the ``RuleNumbers`` as a plain tuple.

    Numba looks up the type of a plain tuple in C, that of a NamedTuple in Python, which takes longer than the step.
    """
    gamma, first, second, rank, counters, order = arrays
    mask = MaskArrays(gamma, first, second, rank, gradient, order, counters)
    return advance_in_place(mask, alpha, target, forced, RuleNumbers(*numbers))


#: Steps whose alpha and target are computed at once.
CHUNK = 256

_STEP, _OPEN, _CLOSED, _FORCED, _KEPT = map(int, (Slot.STEP, Slot.OPEN, Slot.CLOSED, Slot.FORCED, Slot.KEPT))


def mask_state(arrays: Sequence[np.ndarray]) -> MaskState:
    """Build the state of a mask as ``tamiz.core`` takes it, from gamma, both moments, ranks and counters as flat arrays."""
    gamma, first, second, rank, counters = arrays[:5]
    return MaskState(gamma, first, second, rank.astype(np.int64), int(counters[Slot.AGE]), int(counters[Slot.KEPT]))


class Stepper:
    """Advance the state of a mask step by step.

    Holds what is the same in many steps: the numbers of the rule, alpha and target of the steps to come, and the state as
    arrays. On the CPU these are the memory of the tensors, else a copy that is written back after each step.

    Parameters
    ----------
    tensors : tuple of tensors
        gamma of the features, both moments, ranks and counters; advanced in place.
    rule : Rule
        The settings.
    """

    def __init__(self, tensors: tuple[torch.Tensor, ...], rule: Rule) -> None:
        self.tensors, self.rule, self._addresses = tensors, rule, [part.data_ptr() for part in tensors]
        self._flat = [part.detach().reshape(-1).cpu().contiguous() for part in tensors]
        self._is_copy = any(part.data_ptr() != place for part, place in zip(self._flat, self._addresses))
        order = np.empty(self._flat[0].numel(), dtype=np.int32)
        self._arrays = (*(part.numpy() for part in self._flat), order)
        self._counters = self._arrays[4]
        self._warmup_steps, self._step_limit = rule.warmup_steps, rule.step_limit
        self._chunk_start, self._alphas, self._targets = 0, list[float](), list[float]()
        self._set_numbers()

    def _set_numbers(self) -> None:
        """Prepare the numbers of the rule, as of now; the closing begins with what still fits into the budget."""
        *numbers, costs = self.rule.numbers
        counters, rank, n_kept = self._counters, self._arrays[3], self._counters.item(_KEPT)
        self._selecting = bool(counters[_OPEN])
        if costs is not None and not self._selecting:
            rank[:], counters[_KEPT] = fill_budget(rank, n_kept, costs, self.rule.limit)
            counters[_CLOSED] &= counters[_KEPT] == n_kept  # gamma of what was added rises from 0
            costs = np.ones_like(costs)  # from now on every feature counts once
        self._numbers = (counters.item(_KEPT), *numbers[1:], costs)

    def serves(self, tensors: tuple[torch.Tensor, ...], rule: Rule) -> bool:
        """Check that these are the tensors and the rule, and that the memory is where it was."""
        same = rule is self.rule and all(map(is_, tensors, self.tensors))
        return same and tensors[0].data_ptr() == self._addresses[0]

    @property
    def n_alive(self) -> int:
        """Features that are not eliminated."""
        return self._counters.item(_OPEN) or self._counters.item(_KEPT)

    def count_step(self) -> None:
        """Count a step in which gamma does not move."""
        self._counters[_STEP] += 1
        if self._is_copy:
            self.tensors[4].copy_(self._flat[4])

    def step(self, gradient: torch.Tensor) -> bool:
        """Take one step for the flat gradient of the loss, which is overwritten; return whether the mask is closed.

        Raises
        ------
        DivergenceError
            If the gradient of a living feature is NaN or infinite; nothing was changed.
        """
        gradient = gradient.to("cpu", torch.float32).contiguous()
        counters, strength = self._counters, self.rule.strength
        step = counters.item(_STEP) + 1
        if step <= self._warmup_steps:
            # The sum of squares may overflow; then each entry is looked at.
            if not math.isfinite(torch.dot(gradient, gradient).item()):
                self._check_finite(gradient)
            self.count_step()
            return False
        at = step - self._chunk_start
        if not 0 <= at < len(self._alphas):
            # Lists: their numbers are Python's, which numba takes faster than NumPy's scalars.
            alphas, targets = selection_schedule(self.rule, step, CHUNK)
            at, self._chunk_start, self._alphas, self._targets = 0, step, alphas.tolist(), targets.tolist()
        forced = step >= self._step_limit and strength is None
        if strength is not None:
            gradient.add_(strength)
        found = advance_arrays(
            self._arrays, gradient.numpy(), self._alphas[at], self._targets[at], forced, self._numbers
        )
        if found == NOT_FINITE:
            self._check_finite(gradient)
        counters[_STEP] = step
        if strength is not None and step >= self._step_limit and counters.item(_OPEN):
            self._decide_by_price()
        if self._selecting and not counters.item(_OPEN):
            self._set_numbers()
        if self._is_copy:
            with torch.no_grad():
                for part, flat in zip(self.tensors, self._flat):
                    part.copy_(flat.reshape(part.shape))
        else:
            # The memory was written without autograd; a graph that still needs the old gamma must notice.
            torch.autograd.graph.increment_version(self.tensors[0])
        if forced and counters.item(_FORCED) == 1:
            self._report_limit()
        return bool(counters.item(_CLOSED))

    def _decide_by_price(self) -> None:
        """End the selection of a rule with a strength: what is above one half is kept."""
        state = decide_by_price(mask_state(self._arrays), self.rule)
        for array, values in zip(self._arrays[:4], state):
            array[:] = values
        self._counters[[Slot.AGE, Slot.OPEN, Slot.KEPT]] = state.age, 0, state.kept
        self._counters[_CLOSED] = is_closed(state, self.rule)

    def _check_finite(self, gradient: torch.Tensor) -> None:
        """Raise for NaN and infinity in the gradient of a living feature; an eliminated one does not move."""
        bad = (~torch.isfinite(gradient) & (self._flat[3] <= self._counters.item(_KEPT))).nonzero().flatten().tolist()
        if bad:
            kind = "NaN" if bool(gradient[bad].isnan().any()) else "infinite"
            raise DivergenceError(
                f"the gradient of gamma is {kind} in {len(bad)} of {gradient.numel()} entries (first: feature {bad[0]}); "
                "gamma was not moved. Look for NaN or infinity in that input or in the loss, or lower the learning rate."
            )

    def _report_limit(self) -> None:
        self._counters[_FORCED] = self.tensors[4][_FORCED] = 2
        n_kept, advice = self._counters.item(_KEPT), "" if self.rule.variant == "soft" else ", or use variant='soft'"
        text = f"The mask did not settle within {self.rule.max_steps} steps of selection; the {n_kept} largest were"
        warnings.warn(f"{text} kept. Raise max_steps{advice}.", ConvergenceWarning, stacklevel=2)


def holds(optimizer: Any, parameter: torch.Tensor) -> bool:
    """Whether a parameter is among those of an optimizer."""
    return any(p is parameter for group in optimizer.param_groups for p in group["params"])


def find_stepping_optimizer(optimizer: Any, gamma: torch.Tensor) -> Any:
    """Find the optimizer whose ``step`` moves the weights; raise if there is none or it does not hold ``gamma``.

    Wrappers keep it in an attribute: ``optimizer`` (Accelerate) or ``base_optimizer`` (SAM). One that is no
    ``torch.optim.Optimizer`` itself, as ``ScheduleFreeWrapper``, steps the one inside with work of its own around it.
    """
    inner = optimizer
    for name in ("optimizer", "base_optimizer"):
        wrapped = getattr(inner, name, None)
        inner = wrapped if isinstance(wrapped, torch.optim.Optimizer) else inner
    if not hasattr(inner, "param_groups") or not callable(getattr(inner, "step", None)):
        raise TypeError(f"attach needs a torch.optim.Optimizer, got {type(optimizer).__name__}")
    if not holds(inner, gamma):
        raise ValueError("gamma is not among the parameters of this optimizer; build it from all of model.parameters()")
    if hasattr(gamma, "full_tensor"):
        raise ValueError(
            "gamma is sharded over processes (FSDP2), but the largest M are found from all of it: leave it whole, "
            "fully_shard(model, ignored_params={mask.gamma}), and call mask.average_gradient() after backward()"
        )
    return inner


class MaskHandle:
    """Handle that :meth:`FeatureMask.attach` returns; ``remove()`` takes the hooks off again.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer, or a wrapper with ``step`` and ``param_groups``
        The optimizer whose step is hooked.
    mask : FeatureMask
        Its ``take_step`` is called once for each step of the optimizer, when the gradients are complete.
    held_out : callable or None, default=None
        Computes the loss of rows that move gamma and do not train the weights; called before each step.
    """

    def __init__(self, optimizer: Any, mask: Any, held_out: Callable[[], torch.Tensor] | None = None) -> None:
        self._mask, self._gamma, self._optimizer, self._held_out = mask, mask.gamma, optimizer, held_out
        self._kept: torch.Tensor | None = None  # gamma, until an optimizer that may write to it has stepped
        self._late: torch.Tensor | None = None  # the gradient of gamma, where gamma moves after the step
        # Optimizers of torch pass over a parameter without a gradient; others may apply weight decay to it.
        self._guards = not type(optimizer).__module__.startswith("torch.optim.")
        self._is_lbfgs = isinstance(optimizer, torch.optim.LBFGS)
        # A training step that is compiled as a whole must not trace the hooks: they run compiled code of their own.
        before, after = torch.compiler.disable(self._before_step), torch.compiler.disable(self._after_step)
        self._hooks: list[Any] = []
        if isinstance(optimizer, torch.optim.Optimizer):
            self._hooks.append(optimizer.register_step_pre_hook(before))
            if self._guards or self._is_lbfgs:
                self._hooks.append(optimizer.register_step_post_hook(after))
            return
        inner = optimizer.step

        def step(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = before(optimizer, (optimizer, *args), kwargs) or ((None, *args), kwargs)
            result = inner(*args[1:], **kwargs)
            after(optimizer, args, kwargs)
            return result

        optimizer.step = step  # a wrapper that has no hooks of its own

    def trains_weights(self) -> bool:
        """Whether the optimizer has something else to train than gamma."""
        parameters = (p for group in self._optimizer.param_groups for p in group["params"])
        return any(p is not self._gamma and p.requires_grad for p in parameters)

    def remove(self) -> None:
        """Take the hooks off the optimizer; gamma stays as it is."""
        for hook in self._hooks:
            hook.remove()
        if not self._hooks:
            vars(self._optimizer).pop("step", None)
        self._hooks = []
        if self._mask._handle is self:
            self._mask._release()

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        # GradScaler leaves both the skipping and the unscaling to optimizers that can do it themselves (fused ones).
        found, scale = getattr(optimizer, "found_inf", None), getattr(optimizer, "grad_scale", None)
        if found is not None and bool(found > 0):
            self._gamma.grad = None
            return None
        if scale is not None and self._gamma.grad is not None:
            self._gamma.grad.div_(scale)
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self._step_once()
            return None
        # The gradients come into being inside the closure, so that is where gamma has to step; once, even if the optimizer
        # calls the closure several times.
        taken = False

        def stepping_closure() -> Any:
            nonlocal taken
            with torch.enable_grad():
                result = closure()
            if taken:
                self._gamma.grad = None
            elif self._gamma.grad is not None or result is not None:
                self._step_once()
                taken = True
            return result

        if "closure" in kwargs:
            return args, {**kwargs, "closure": stepping_closure}
        return (args[0], stepping_closure, *args[2:]), kwargs

    def _step_once(self) -> None:
        if self._held_out is not None and self._mask._moving:
            with self._mask.held_out(), torch.enable_grad():
                self._held_out().backward()
            if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
                self._mask.average_gradient()
        gradient = self._gamma.grad
        late = self._is_lbfgs or (self._guards and gradient is not None and gradient.requires_grad)
        if late and gradient is not None and self._mask._moving:
            # Second-order optimizers go back through the graph that made the gradients, and L-BFGS evaluates the loss
            # several times in a step: gamma has to stay as it is until the step is over.
            self._late, self._gamma.grad = gradient.detach(), None
        else:
            self._mask.take_step()
        if self._guards:
            self._kept = self._gamma.detach().clone()

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        kept, self._kept = self._kept, None
        if kept is not None and not torch.equal(self._gamma, kept):
            with torch.no_grad():
                self._gamma.copy_(kept)
        if self._late is not None:
            self._gamma.grad, self._late = self._late, None
            self._mask.take_step()
