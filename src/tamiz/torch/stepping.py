"""How gamma moves: the step itself, compiled for tensors on the CPU, and the hooks that take it with the optimizer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from sklearn.exceptions import ConvergenceWarning

from tamiz.core import MaskState, Rule, Slot, advance, fill_budget, is_closed, selection_schedule
from tamiz.core.compiled import NOT_FINITE, advance_in_place
from tamiz.core.rule import RuleNumbers
from tamiz.core.step import advance_with_price, decide_by_price
from tamiz.errors import DivergenceError


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


#: Steps whose alpha and target are computed at once.
CHUNK = 256

_STEP, _OPEN, _CLOSED, _FORCED = int(Slot.STEP), int(Slot.OPEN), int(Slot.CLOSED), int(Slot.FORCED)


class MaskTensors(NamedTuple):
    """State of a mask, as tensors that the steps write into."""

    gamma: torch.Tensor
    """In the shape of the mask; the others are flat."""
    first: torch.Tensor
    second: torch.Tensor
    rank: torch.Tensor
    counters: torch.Tensor
    """By :class:`~tamiz.core.Slot`."""


def mask_state(tensors: MaskTensors) -> MaskState:
    """Return the state as ``tamiz.core`` takes it."""
    gamma, first, second, rank, counters = tensors
    return MaskState(
        gamma.detach().reshape(-1), first, second, rank.long(), counters[Slot.AGE], counters[Slot.KEPT]
    )  # fmt: skip


class Stepper:
    """Advance the tensors of a mask step by step.

    Holds what is the same in many steps: arrays over the memory of the tensors, the numbers of the rule, and alpha and
    target of the steps to come.

    Parameters
    ----------
    tensors : MaskTensors
        What is advanced, in place.
    rule : Rule
        The settings.
    """

    def __init__(self, tensors: MaskTensors, rule: Rule) -> None:
        self.tensors, self.rule = tensors, rule
        gamma = tensors.gamma
        self._pointer = gamma.data_ptr()
        self._arrays: tuple[np.ndarray, ...] | None = None
        if gamma.device.type == "cpu" and gamma.dtype == torch.float32 and gamma.is_contiguous():
            flat = (gamma.detach().reshape(-1), *tensors[1:])
            first, second, rank, counters = (part.numpy() for part in flat[1:])
            self._arrays = (flat[0].numpy(), first, second, rank, np.empty(gamma.numel(), dtype=np.int32), counters)
        numbers, self._filled = rule.numbers, False
        self._numbers = tuple(numbers[:-2])
        self._costs: np.ndarray | None = numbers.costs
        if self._costs is not None and int(tensors.counters[Slot.OPEN]) == 0:
            self._count_once()
        if rule.strength is not None:
            self._set_kept()
        self._warmup_steps, self._step_limit = rule.warmup_steps, rule.step_limit
        self._chunk_start = 0
        self._alphas: list[float] = []
        self._targets: list[float] = []

    def serves(self, tensors: MaskTensors, rule: Rule) -> bool:
        """Check that these are the tensors and the rule, and that the memory of gamma is where it was."""
        mine = self.tensors
        return (
            rule is self.rule
            and tensors.gamma is mine.gamma
            and tensors.first is mine.first
            and tensors.second is mine.second
            and tensors.rank is mine.rank
            and tensors.counters is mine.counters
            and tensors.gamma.data_ptr() == self._pointer
        )

    def count_step(self) -> None:
        """Count a step in which gamma does not move."""
        if self._arrays is None:
            self.tensors.counters[_STEP] += 1
        else:
            self._arrays[5][_STEP] += 1

    def step(self, gradient: torch.Tensor) -> bool:
        """Take one step for the flat gradient of the loss with respect to gamma; return whether the mask is closed.

        Raises
        ------
        DivergenceError
            If the gradient of a living feature is NaN or infinite; nothing was changed.
        """
        if self._arrays is not None and gradient.dtype == torch.float32 and gradient.is_contiguous():
            return self.step_compiled(gradient)
        return self.step_by_tensors(gradient)

    def step_compiled(self, gradient: torch.Tensor) -> bool:
        """Take the step for float32 on the CPU; ``gradient`` is overwritten."""
        assert self._arrays is not None
        counters = self._arrays[5]
        step = counters.item(_STEP) + 1
        if step <= self._warmup_steps or counters.item(_CLOSED):
            # The sum of squares may overflow; then each entry is looked at.
            if not math.isfinite(torch.dot(gradient, gradient).item()):
                self._check_finite(gradient)
            counters[_STEP] = step
            return bool(counters.item(_CLOSED))
        at = step - self._chunk_start
        if not 0 <= at < len(self._alphas):
            self._compute_schedule(step)
            at = 0
        strength = self.rule.strength
        forced = step >= self._step_limit and strength is None
        if strength is not None:
            gradient.add_(strength)
        parts = (*self._arrays, gradient.numpy(), self._alphas[at], self._targets[at], forced, self._numbers)
        if self._costs is None:
            found = advance_arrays(*parts)
        else:
            found = advance_arrays_with_costs(*parts, self.rule.limit, self._costs)  # type: ignore[call-arg]
        if found == NOT_FINITE:
            self._check_finite(gradient)
        counters[_STEP] = step
        if self._costs is not None and not counters.item(_OPEN):
            self._fill()
        if strength is not None and step >= self._step_limit and counters.item(_OPEN):
            self._decide()
        # The memory was written without autograd; a graph that still needs the old gamma must notice.
        torch.autograd.graph.increment_version(self.tensors.gamma)
        if forced and counters.item(_FORCED) == 1:
            self._report_limit()
        return bool(counters.item(_CLOSED))

    def step_by_tensors(self, gradient: torch.Tensor) -> bool:
        """Take the step by tensor operations, on any device."""
        self._check_finite(gradient)
        tensors, rule = self.tensors, self.rule
        counters = tensors.counters
        step, closed = int(counters[Slot.STEP]) + 1, bool(counters[Slot.CLOSED])
        if not closed and step > rule.warmup_steps:
            old = mask_state(tensors)
            loss_gradient = gradient.to(old.gamma.dtype)
            priced = rule.strength is not None
            with torch.no_grad():
                new = (advance_with_price if priced else advance)(old, loss_gradient, step, rule)
                limit_decides = (
                    not priced and step >= rule.step_limit and _limit_decides(old, loss_gradient, step, rule)
                )
                self._write(new)
                if rule.costs is not None and not bool(counters[Slot.OPEN]):
                    self._fill()
            closed = bool(counters[Slot.CLOSED])
            if limit_decides:
                self._report_limit()
        counters[Slot.STEP] = step
        return closed

    def _write(self, state: MaskState) -> None:
        """Write a state into the tensors."""
        tensors, counters = self.tensors, self.tensors.counters
        with torch.no_grad():
            tensors.gamma.copy_(state.gamma.reshape(tensors.gamma.shape))
            tensors.first.copy_(state.first)
            tensors.second.copy_(state.second)
            tensors.rank.copy_(state.rank)
            counters[Slot.AGE] = state.age
            counters[Slot.OPEN] = (state.rank == 0).sum()
            counters[Slot.CLOSED] = is_closed(state, self.rule)
            counters[Slot.KEPT] = state.kept

    def _decide(self) -> None:
        """End the selection of a rule with a strength: what is above one half is kept."""
        self._write(decide_by_price(mask_state(self.tensors), self.rule))
        self._set_kept()

    def _set_kept(self) -> None:
        """Hand the number of kept features to the compiled step: 0 until the closing of a rule with a strength begins."""
        self._numbers = (int(self.tensors.counters[Slot.KEPT]), *self._numbers[1:])

    def _fill(self) -> None:
        """Take what still fits into the budget, once, when the closing begins; its gamma then rises from 0."""
        tensors, counters = self.tensors, self.tensors.counters
        if self._filled:
            return
        assert self.rule.costs is not None
        n_kept = int(counters[Slot.KEPT])
        rank, n_filled = fill_budget(tensors.rank.cpu().numpy(), n_kept, self.rule.costs, self.rule.limit)
        if n_filled > n_kept:
            tensors.rank.copy_(torch.from_numpy(rank))
            counters[Slot.KEPT], counters[Slot.CLOSED] = n_filled, 0
        self._count_once()

    def _count_once(self) -> None:
        """Let every feature that is left count once, whatever it costs: all of them have to come to 1."""
        assert self._costs is not None
        self._filled = True
        self._costs = np.ones_like(self._costs)
        self._numbers = (int(self.tensors.counters[Slot.KEPT]), *self._numbers[1:])

    def _compute_schedule(self, step: int) -> None:
        alphas, targets = selection_schedule(self.rule, step, CHUNK)
        # Lists: their numbers are Python's, which numba takes faster than NumPy's scalars.
        self._chunk_start, self._alphas, self._targets = step, alphas.tolist(), targets.tolist()

    def _check_finite(self, gradient: torch.Tensor) -> None:
        """Raise for NaN and infinity in the gradient of a living feature; an eliminated one does not move."""
        bad = ~torch.isfinite(gradient) & (self.tensors.rank <= self.tensors.counters[Slot.KEPT])
        if not bool(bad.any()):
            return
        kind = "NaN" if bool((bad & torch.isnan(gradient)).any()) else "infinite"
        raise DivergenceError(
            f"the gradient of gamma is {kind} in {int(bad.sum())} of {gradient.numel()} entries (first: feature "
            f"{int(bad.nonzero()[0])}); gamma was not moved. Look for NaN or infinity in that input or in the loss, or "
            "lower the learning rate of the model."
        )

    def _report_limit(self) -> None:
        self.tensors.counters[Slot.FORCED] = 2
        warnings.warn(
            f"The mask did not settle within {self.rule.max_steps} steps of selection; the "
            f"{int(self.tensors.counters[Slot.KEPT])} largest were kept. Raise max_steps"
            + ("." if self.rule.variant == "soft" else ", or use variant='soft'."),
            ConvergenceWarning,
            stacklevel=2,
        )


def _limit_decides(old: MaskState, loss_gradient: torch.Tensor, step: int, rule: Rule) -> bool:
    """Check whether some feature would stay undecided in this step without the limit."""
    if not bool((old.rank == 0).any()):
        return False
    free = advance(old, loss_gradient, step, replace(rule, max_steps=step + 1))
    return bool((free.rank == 0).any())


def find_stepping_optimizer(optimizer: Any, gamma: torch.Tensor) -> Any:
    """Return the optimizer whose ``step`` moves the weights; raise if there is none or it does not hold ``gamma``.

    Wrappers keep it in an attribute: ``optimizer`` (Accelerate) or ``base_optimizer`` (SAM). One that is no
    ``torch.optim.Optimizer`` itself, as ``ScheduleFreeWrapper``, steps the one inside with work of its own around it.
    """
    inner = optimizer
    for name in ("optimizer", "base_optimizer"):
        wrapped = getattr(inner, name, None)
        inner = wrapped if isinstance(wrapped, torch.optim.Optimizer) else inner
    groups = getattr(inner, "param_groups", None)
    if not isinstance(inner, torch.optim.Optimizer) and not (groups and callable(getattr(inner, "step", None))):
        raise TypeError(f"attach needs a torch.optim.Optimizer, got {type(optimizer).__name__}")
    if not any(p is gamma for group in inner.param_groups for p in group["params"]):
        raise ValueError(
            "gamma is not among the parameters of this optimizer: put the mask into the model first, then build the "
            "optimizer from model.parameters()"
        )
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
    """

    def __init__(self, optimizer: Any, mask: Any) -> None:
        self._mask, self._gamma, self._optimizer = mask, mask.gamma, optimizer
        self._kept: torch.Tensor | None = None
        self._late: torch.Tensor | None = None
        # Optimizers of torch pass over a parameter without a gradient; others may apply weight decay to it.
        self._guards = not type(optimizer).__module__.startswith("torch.optim.")
        self._is_lbfgs = isinstance(optimizer, torch.optim.LBFGS)
        # A training step that is compiled as a whole must not trace the hooks: they run compiled code of their own.
        self._hooks: list[Any] = []
        if not isinstance(optimizer, torch.optim.Optimizer):
            self._wrap_step()
            return
        self._hooks.append(optimizer.register_step_pre_hook(torch.compiler.disable(self._before_step)))
        if self._guards or self._is_lbfgs:
            self._hooks.append(optimizer.register_step_post_hook(torch.compiler.disable(self._after_step)))

    def _wrap_step(self) -> None:
        """Put the hooks around the ``step`` of a wrapper that has no hooks of its own."""
        inner = self._optimizer.step

        def step(*args: Any, **kwargs: Any) -> Any:
            changed = self._before_step(self._optimizer, (self._optimizer, *args), kwargs)
            (_, *args), kwargs = ((None, *args), kwargs) if changed is None else changed  # type: ignore[assignment]
            result = inner(*args, **kwargs)
            self._after_step(self._optimizer, args, kwargs)
            return result

        self._optimizer.step = step

    def trains_weights(self) -> bool:
        """Whether the optimizer has something else to train than gamma."""
        for group in self._optimizer.param_groups:
            for p in group["params"]:
                if p is not self._gamma and p.requires_grad:
                    return True
        return False

    def remove(self) -> None:
        """Take the hooks off the optimizer; gamma stays as it is."""
        for hook in self._hooks:
            hook.remove()
        if "step" in vars(self._optimizer) and not self._hooks:
            del self._optimizer.step
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
        wrapped = self._stepping_closure(closure)
        if "closure" in kwargs:
            return args, {**kwargs, "closure": wrapped}
        return (args[0], wrapped, *args[2:]), kwargs

    def _step_once(self) -> None:
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

    def _stepping_closure(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        taken = False

        def run() -> Any:
            nonlocal taken
            with torch.enable_grad():
                result = closure()
            if taken:
                self._gamma.grad = None
            elif self._gamma.grad is not None or result is not None:
                self._step_once()
                taken = True
            return result

        return run
