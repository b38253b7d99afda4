"""FeatureMask: E2E-FS inside any PyTorch model and training loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tamiz._validation import resolve_n_features_to_select
from tamiz.core import VARIANTS, MaskState, Rule, Slot, current_ranking, penalty
from tamiz.core.state import N_SLOTS
from tamiz.torch.fold import masked
from tamiz.torch.stepping import move_gamma

# Places in the counters beyond those of gamma: what the mask was made for, so that another mask's state is refused.
_SELECT, _VARIANT = N_SLOTS, N_SLOTS + 1


class MaskHandle:
    """What :meth:`FeatureMask.attach` returns; ``remove()`` takes the hooks off again."""

    def __init__(self, mask: FeatureMask, hook: Any) -> None:
        self._mask = mask
        self._hook = hook

    def remove(self) -> None:
        """Take the hook off the optimizer; gamma stays as it is."""
        self._hook.remove()
        if self._mask._handle is self:
            self._mask._handle = None


class FeatureMask(nn.Module):
    r"""A mask over the inputs that ends with exactly M ones.

    Multiplies its input by gamma, element by element. Once attached to the optimizer that trains the model, gamma moves by
    the paper's rule in every step: it keeps its own moments, so that neither the optimizer nor its weight decay, learning-rate
    schedule, gradient clipping or scaler changes what is selected.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the mask: the number of columns, or a shape that broadcasts against one sample. ``(1, 32, 32)`` picks pixels
        for all channels, ``(3, 32, 32)`` single values, ``(n_channels, 1)`` channels of a time series.
    n_features_to_select : int, float or None
        M: a number, a fraction in (0, 1), or None for half.
    variant : {"soft", "hard", "ranking"}
        E2E-FS-Soft, E2E-FS, or the variant whose target falls slowly, so that one fit orders all features.
    mu, rho : float
        The paper's :math:`\mu`, :math:`\rho`.
    mask_learning_rate, betas, epsilon : float, pair of float, float
        gamma's own Adam.

    Attributes
    ----------
    gamma : Parameter
        The mask, in [0, 1]; binary once ``closed``.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> _ = torch.manual_seed(0)
    >>> x = torch.randn(256, 20)
    >>> y = x[:, 3] - 2 * x[:, 11]
    >>> mask = FeatureMask(20, n_features_to_select=2)
    >>> model = nn.Sequential(mask, nn.Linear(20, 1))
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    >>> handle = mask.attach(optimizer, warmup_steps=50, ramp_steps=300)
    >>> while not mask.closed:
    ...     optimizer.zero_grad()
    ...     nn.functional.mse_loss(model(x).squeeze(1), y).backward()
    ...     _ = optimizer.step()
    >>> mask.support().nonzero().flatten().tolist()
    [3, 11]
    """

    first: torch.Tensor
    second: torch.Tensor
    rank: torch.Tensor
    counters: torch.Tensor

    def __init__(
        self,
        shape: int | Sequence[int],
        n_features_to_select: int | float | None = None,
        variant: str = "soft",
        *,
        mu: float = 1.0,
        rho: float = 0.75,
        mask_learning_rate: float = 0.01,
        betas: tuple[float, float] = (0.5, 0.999),
        epsilon: float = 1e-8,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.shape = _checked_shape(shape)
        n_features = math.prod(self.shape)
        m = resolve_n_features_to_select(n_features_to_select, n_features)
        self._options: dict[str, Any] = {
            "n_features": n_features,
            "n_features_to_select": m,
            "variant": variant,
            "mu": mu,
            "rho": rho,
            "mask_learning_rate": mask_learning_rate,
            "beta1": betas[0],
            "beta2": betas[1],
            "epsilon": epsilon,
        }
        self.rule = Rule(**self._options)
        dtype = torch.float32 if dtype is None else _wide(dtype)
        self.gamma = nn.Parameter(torch.empty(self.shape, device=device, dtype=dtype))
        self.register_buffer("first", torch.empty(n_features, device=device, dtype=dtype))
        self.register_buffer("second", torch.empty(n_features, device=device, dtype=dtype))
        self.register_buffer("rank", torch.empty(n_features, device=device, dtype=torch.int32))
        self.register_buffer("counters", torch.empty(N_SLOTS + 2, device=device, dtype=torch.int64))
        self._handle: MaskHandle | None = None
        self._seen = False
        self._arrays: tuple[Any, ...] | None = None
        self.reset()

    # ---- what users read -------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """How many features there are (the paper's F)."""
        return self.rule.n_features

    @property
    def n_features_to_select(self) -> int:
        """How many are kept in the end (the paper's M)."""
        return self.rule.n_features_to_select

    @property
    def variant(self) -> str:
        """Which variant of the method runs."""
        return self.rule.variant

    @property
    def step(self) -> int:
        """Optimizer steps seen since the start of the warm-up."""
        return int(self.counters[Slot.STEP])

    @property
    def closed(self) -> bool:
        """Whether gamma is binary with exactly M ones; it does not move any more."""
        return bool(self.counters[Slot.CLOSED])

    @property
    def n_alive(self) -> int:
        """How many features have not died."""
        return int((self.rank <= self.n_features_to_select).sum())

    def ranking(self) -> torch.Tensor:
        """1 for the best feature, 2 for the next, ...; at any moment, in the shape of the mask."""
        state = MaskState(self._flat_gamma(), self.first, self.second, self.rank.long(), self.counters[Slot.AGE])
        return current_ranking(state, self.rule).reshape(self.shape)

    def support(self) -> torch.Tensor:
        """True for the M features that are kept; before the mask is closed, for those that stand best now."""
        return self.ranking() <= self.n_features_to_select

    def penalty(self) -> torch.Tensor:
        r""":math:`L_{1-2} + L_M` for M; zero once the mask is closed."""
        with torch.no_grad():
            return penalty(self._flat_gamma(), self.n_features_to_select, self.rule.mu)

    def extra_repr(self) -> str:
        """What ``print(model)`` shows."""
        shape = self.shape[0] if len(self.shape) == 1 else self.shape
        about = f"{shape}, n_features_to_select={self.n_features_to_select}, variant={self.variant!r}"
        if self.gamma.is_meta:  # there are no numbers to tell of
            return about
        return f"{about}, closed" if self.closed else f"{about}, alive={self.n_alive}"

    # ---- the module ------------------------------------------------------------------------------------------------

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x * gamma``."""
        self._check_input(x)
        gamma: torch.Tensor = self.gamma
        if gamma.dtype != x.dtype and (x.is_floating_point() or x.is_complex()):
            gamma = gamma.to(x.dtype)
        if torch.compiler.is_compiling() or torch.jit.is_tracing() or not torch.is_grad_enabled():
            return x * gamma
        self.__dict__["_seen"] = True  # the way around nn.Module.__setattr__, which is slow
        return masked(x, gamma)

    def _check_input(self, x: torch.Tensor) -> None:
        mine, theirs = self.shape, tuple(x.shape)
        fits = len(theirs) >= len(mine) and all(a in (1, b) for a, b in zip(mine[::-1], theirs[::-1]))
        if not fits:
            raise ValueError(f"a mask of shape {mine} does not fit an input of shape {theirs}")

    def reset(self) -> None:
        """Back to the start: gamma all ones, nothing decided, no step taken."""
        m, n = self.n_features_to_select, self.n_features
        with torch.no_grad():
            self.gamma.fill_(1.0)
            self.first.zero_()
            self.second.zero_()
            self.counters.zero_()
            self.rank.zero_()
            if m == n:
                self.rank.copy_(torch.arange(1, n + 1))
            self.counters[Slot.OPEN] = 0 if m == n else n
            self.counters[Slot.CLOSED] = int(m == n)
            self.counters[_SELECT] = m
            self.counters[_VARIANT] = list(VARIANTS).index(self.variant)

    def _flat_gamma(self) -> torch.Tensor:
        return self.gamma.detach().reshape(-1)

    # ---- attaching -------------------------------------------------------------------------------------------------

    def attach(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        warmup_steps: int = 0,
        ramp_steps: int = 2000,
        max_steps: int | None = None,
    ) -> MaskHandle:
        """Let gamma move with every step of ``optimizer``; the training loop stays as it is.

        Parameters
        ----------
        optimizer : torch.optim.Optimizer
            The optimizer of the model that holds the mask; ``model.parameters()`` may be handed to it whole. gamma's
            gradient is taken away before the optimizer's own step, so the optimizer never moves it.
        warmup_steps : int
            Steps during which only the weights are trained.
        ramp_steps : int
            The paper's T: steps until the penalty alone decides.
        max_steps : int, optional
            Steps of selection after which the M largest are kept, with a ``ConvergenceWarning``; by default four ramps.

        Returns
        -------
        MaskHandle
            ``remove()`` does the same as :meth:`detach`.
        """
        rule = Rule(**self._options, warmup_steps=warmup_steps, ramp_steps=ramp_steps, max_steps=max_steps)
        if self._handle is not None:
            raise RuntimeError("this mask is attached already; call detach() first")
        # Wrappers such as Accelerate's keep the optimizer that really steps in an attribute of this name.
        inner = getattr(optimizer, "optimizer", optimizer)
        if not isinstance(inner, torch.optim.Optimizer):
            raise TypeError(f"attach needs a torch.optim.Optimizer, got {type(optimizer).__name__}")
        if not any(p is self.gamma for group in inner.param_groups for p in group["params"]):
            raise ValueError(
                "gamma is not among the parameters of this optimizer: put the mask into the model first, "
                "then build the optimizer from model.parameters()"
            )
        if not self.gamma.requires_grad:
            raise ValueError("gamma does not require a gradient: call mask.gamma.requires_grad_() before attach")
        self.rule = rule
        self._handle = MaskHandle(self, inner.register_step_pre_hook(self._before_step))
        return self._handle

    def detach(self) -> None:
        """Take the mask off its optimizer; gamma stays as it is."""
        if self._handle is not None:
            self._handle.remove()

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> Any:
        if self._will_skip(optimizer):
            self.gamma.grad = None
            return None
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self.take_step()
            return None
        # The gradients come into being inside the closure, so that is where gamma has to step; once, even if the optimizer
        # calls the closure several times.
        wrapped = self._stepping_closure(closure)
        if "closure" in kwargs:
            return args, {**kwargs, "closure": wrapped}
        return (args[0], wrapped, *args[2:]), kwargs

    def _will_skip(self, optimizer: torch.optim.Optimizer) -> bool:
        # GradScaler leaves both the skipping and the unscaling to optimizers that can do it themselves (fused ones).
        found, scale = getattr(optimizer, "found_inf", None), getattr(optimizer, "grad_scale", None)
        if found is not None and bool(found > 0):
            return True
        if scale is not None and self.gamma.grad is not None:
            self.gamma.grad.div_(scale)
        return False

    def _stepping_closure(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        taken = False

        def run() -> Any:
            nonlocal taken
            with torch.enable_grad():
                result = closure()
            if taken:
                self.gamma.grad = None
            elif self.gamma.grad is not None or result is not None:
                self.take_step()
                taken = True
            return result

        return run

    def take_step(self) -> None:
        """Move gamma by its gradient and take the gradient away; ``attach`` calls this before each optimizer step."""
        gamma = self.__dict__["_parameters"]["gamma"]  # attributes of modules are slow to look up and to set
        gradient = gamma.grad
        if gradient is None:
            if self.closed:  # nothing is left to move; gamma may have been frozen by hand
                return
            if self._seen:
                why = "the loss does not depend on the mask's output, or the gradients were cleared before the step"
            else:
                why = "the mask has not seen any data: its forward did not run in training since the last step"
            raise RuntimeError(f"gamma has no gradient: {why}")
        move_gamma(self, gradient.detach().reshape(-1))
        gamma.grad = None
        self.__dict__["_seen"] = False

    # ---- keeping, copying, moving ----------------------------------------------------------------------------------

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def moved(tensor: torch.Tensor) -> torch.Tensor:
            result = fn(tensor)
            if tensor.is_floating_point() and result.dtype not in (torch.float32, torch.float64):
                # A step of 0.01 is lost in half precision: the mask keeps its type, and only the device is taken over.
                result = tensor.to(result.device)
            return result.contiguous()  # the compiled update writes into the memory, in the order of the features

        return super()._apply(moved, recurse)

    def __getstate__(self) -> dict[str, Any]:
        # A copy is not attached: the optimizer that it would step with is not copied along.
        return {**super().__getstate__(), "_handle": None, "_arrays": None}

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        counters = state_dict.get(prefix + "counters")
        if counters is not None and counters.shape == self.counters.shape:
            m, variant = int(counters[_SELECT]), list(VARIANTS)[int(counters[_VARIANT])]
            if (m, variant) != (self.n_features_to_select, self.variant):
                raise ValueError(
                    f"this state belongs to a mask that selects {m} features with variant {variant!r}; "
                    f"here {self.n_features_to_select} with {self.variant!r} are asked for"
                )
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        fine = len(sizes) > 0 and all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes)
    except TypeError:
        fine = False
    if not fine:
        raise ValueError(f"shape must be a positive integer or a tuple of them, got {shape!r}")
    return tuple(int(n) for n in sizes)
