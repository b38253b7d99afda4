"""The connection of a mask to an optimizer: hooks around its step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def find_stepping_optimizer(optimizer: Any, gamma: torch.Tensor) -> torch.optim.Optimizer:
    """Return the optimizer whose ``step`` moves the weights; raise if there is none or it does not hold ``gamma``.

    Wrappers keep it in an attribute: ``optimizer`` (Accelerate) or ``base_optimizer`` (SAM).
    """
    inner = optimizer
    for name in ("optimizer", "base_optimizer"):
        wrapped = getattr(inner, name, None)
        inner = wrapped if isinstance(wrapped, torch.optim.Optimizer) else inner
    if not isinstance(inner, torch.optim.Optimizer):
        raise TypeError(f"attach needs a torch.optim.Optimizer, got {type(optimizer).__name__}")
    if not any(p is gamma for group in inner.param_groups for p in group["params"]):
        raise ValueError(
            "gamma is not among the parameters of this optimizer: put the mask into the model first, then build the "
            "optimizer from model.parameters()"
        )
    if hasattr(gamma, "full_tensor"):
        raise ValueError(
            "gamma is sharded over processes (FSDP2), but the largest M are found from all of it: leave it whole, "
            "fully_shard(model, ignored_params={mask.gamma}), and average its gradient over the processes"
        )
    return inner


class MaskHandle:
    """Handle that :meth:`FeatureMask.attach` returns; ``remove()`` takes the hooks off again.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The optimizer whose step is hooked.
    gamma : Parameter
        gamma of the mask.
    take_step : callable
        Called once for each step of the optimizer, when the gradients are complete.
    on_remove : callable
        Called when the hooks have been taken off.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        gamma: torch.nn.Parameter,
        take_step: Callable[[], None],
        on_remove: Callable[[], None],
    ) -> None:
        self._gamma, self._take_step, self._on_remove = gamma, take_step, on_remove
        self._kept: torch.Tensor | None = None
        # A training step that is compiled as a whole must not trace the hooks: they run compiled code of their own.
        self._hooks = [optimizer.register_step_pre_hook(torch.compiler.disable(self._before_step))]
        # Optimizers of torch pass over a parameter without a gradient; others may apply weight decay to it.
        self._guards = not type(optimizer).__module__.startswith("torch.optim.")
        if self._guards:
            self._hooks.append(optimizer.register_step_post_hook(torch.compiler.disable(self._after_step)))

    def remove(self) -> None:
        """Take the hooks off the optimizer; gamma stays as it is."""
        for hook in self._hooks:
            hook.remove()
        if self._hooks:
            self._hooks = []
            self._on_remove()

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> Any:
        if self._will_skip(optimizer):
            self._gamma.grad = None
            return None
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
        self._take_step()
        if self._guards:
            self._kept = self._gamma.detach().clone()

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        kept, self._kept = self._kept, None
        if kept is not None and not torch.equal(self._gamma, kept):
            with torch.no_grad():
                self._gamma.copy_(kept)

    def _will_skip(self, optimizer: torch.optim.Optimizer) -> bool:
        # GradScaler leaves both the skipping and the unscaling to optimizers that can do it themselves (fused ones).
        found, scale = getattr(optimizer, "found_inf", None), getattr(optimizer, "grad_scale", None)
        if found is not None and bool(found > 0):
            return True
        if scale is not None and self._gamma.grad is not None:
            self._gamma.grad.div_(scale)
        return False

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
