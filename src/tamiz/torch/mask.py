"""FeatureMask: E2E-FS inside any PyTorch model and training loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tamiz._utils.validation import resolve_n_features_to_select
from tamiz.core import Rule, Slot
from tamiz.torch.fold import masked
from tamiz.torch.handle import MaskHandle, find_stepping_optimizer
from tamiz.torch.state import Rest, StatefulMask, check_alone, check_shape, gather_gradient, mask_gates
from tamiz.torch.stepping import Stepper

if TYPE_CHECKING:
    from tamiz.torch.watching import MaskSummary


class FeatureMask(StatefulMask):
    r"""Mask over the inputs of a model that ends with exactly M ones.

    Multiplies its input by gamma, element by element. Once attached to the optimizer that trains the model, gamma moves by
    the paper's rule in every step: it keeps its own moments, so that neither the optimizer nor its weight decay,
    learning-rate schedule, gradient clipping or scaler changes what is selected. A mask that is closed, or not attached,
    sends no gradient to gamma; a closed gamma that was changed from outside (by averaging the weights, for example) is
    set back to the selected features at the next forward.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the mask: the number of columns, or a shape that broadcasts against one sample. ``(1, 32, 32)`` picks
        pixels for all channels, ``(3, 32, 32)`` single values, ``(n_channels, 1)`` channels of a time series.
    n_features_to_select : int, float or None, default=None
        M: a number, a fraction in (0, 1), or None for half; with groups, of groups. Must be None with a budget or a strength.
    variant : str, default="soft"
        A name in ``tamiz.core.VARIANTS``: E2E-FS-Soft ("soft"), E2E-FS ("hard"), or "ranking", whose target falls slowly,
        so that one fit orders all features.
    groups : array-like of labels in the shape of the mask, or list of lists of numbers, default=None
        Entries of the mask with the same label share one entry of gamma, and are kept or eliminated together. In a list of
        lists, each holds the numbers of some entries of the flattened mask; the others stand alone.
    costs : array-like in the shape of the mask, default=None
        What each entry costs, from 0 on; a group costs the sum of its entries. Only with ``budget``.
    budget : float or None, default=None
        Takes the place of M: the kept entries cost at most this, and nothing left out would still fit.
    keep, drop : list of int or mask of bool, default=None
        Numbers of entries of the flattened mask that are always, or never, let through, with their groups. Kept ones count
        towards M or the budget.
    strength : float or None, default=None
        Takes the place of M, as a regulariser: the price of an entry in units of the loss, above 0. Gamma follows the loss
        + strength * sum(gamma) and is made binary; how many entries stay, from none to all, is left to the loss. The selection
        ends with the ramp. Not together with groups, costs, keep or drop.
    mu : float, default=1.0
        The paper's :math:`\mu`, weight of the count penalty beyond 1.
    rho : float, default=0.75
        The paper's :math:`\rho`, relaxation of the target of the soft variant.
    mask_learning_rate : float, default=0.01
        Learning rate of gamma.
    betas : pair of float, default=(0.5, 0.999)
        Decay rates of the moments of gamma (Adam).
    epsilon : float, default=1e-8
        Added to the denominator of the step of gamma (Adam).
    mask_optimizer : {"adam", "rmsprop", "sign", "sgd"}, default="adam"
        Solver of gamma: Adam, RMSprop, steps of equal length by the sign of the gradient, or plain projected gradient.
    device : torch.device or str, default=None
        Where the mask lies; None: the default device.
    dtype : torch.dtype, default=None
        Type of gamma: ``torch.float64``, else ``torch.float32``, since a step of 0.01 is lost in half precision.

    Attributes
    ----------
    gamma : Parameter
        The mask, in [0, 1]; binary once ``closed``.
    rule : Rule
        The settings, with the schedule of the last ``attach``.

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

    def __init__(
        self,
        shape: int | Sequence[int],
        n_features_to_select: int | float | None = None,
        variant: str = "soft",
        *,
        groups: Any = None,
        costs: Any = None,
        budget: float | None = None,
        keep: Any = None,
        drop: Any = None,
        strength: float | None = None,
        mu: float = 1.0,
        rho: float = 0.75,
        mask_learning_rate: float = 0.01,
        betas: tuple[float, float] = (0.5, 0.999),
        epsilon: float = 1e-8,
        mask_optimizer: str = "adam",
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        shape = check_shape(shape)
        n_entries = math.prod(shape)
        options = {"groups": groups, "costs": costs, "budget": budget, "keep": keep, "drop": drop}
        if strength is not None:
            check_alone(strength, n_features_to_select, options)
        gates, group_names = mask_gates(n_entries, n_features_to_select, options)
        if gates is None:
            m = 0 if strength is not None else resolve_n_features_to_select(n_features_to_select, n_entries)
            counts: dict[str, Any] = {"n_features": n_entries, "n_features_to_select": m, "strength": strength}
        else:
            counts = gates.rule_options()
        rule_options: dict[str, Any] = {
            **counts,
            "variant": variant,
            "mu": mu,
            "rho": rho,
            "mask_learning_rate": mask_learning_rate,
            "beta1": betas[0],
            "beta2": betas[1],
            "epsilon": epsilon,
            "mask_optimizer": mask_optimizer,
        }
        super().__init__(shape, Rule(**rule_options), gates, device, dtype)
        self.group_names = group_names
        self._options = rule_options
        self._seen = False  # forward ran in training since the last step
        self._warned = False
        self._stepper: Stepper | None = None

    def summary(self, names: Sequence[str] | None = None, n_best: int = 10) -> MaskSummary:
        """Return where the mask stands: phase, features alive, sum of gamma, and the best features; ``print`` shows it."""
        from tamiz.torch.watching import summarize_mask

        return summarize_mask(self, names, n_best)

    def plot(self, names: Sequence[str] | None = None, ax: Any = None, n_shown: int = 50) -> Any:
        """Draw gamma with matplotlib: an image where the mask has rows and columns, else bars, the best first."""
        from tamiz.torch.watching import plot_mask

        return plot_mask(self, names, ax, n_shown)

    # ---- forward ---------------------------------------------------------------------------------------------------

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x * gamma``."""
        gamma: torch.Tensor = self.gamma
        mine, theirs = gamma.shape, x.shape
        if theirs[-1:] != mine and (
            len(theirs) < len(mine) or any(a not in (1, b) for a, b in zip(mine[::-1], theirs[::-1]))
        ):
            raise ValueError(f"a mask of shape {tuple(mine)} does not fit an input of shape {tuple(theirs)}")
        compiling = torch.compiler.is_compiling()
        if not self._moving:
            gamma = gamma.detach() if compiling else self._resting_gamma()
        if gamma.dtype != x.dtype and (x.is_floating_point() or x.is_complex()):
            gamma = gamma.to(x.dtype)
        if compiling or not torch.is_grad_enabled() or torch.jit.is_tracing():
            return x * gamma
        self.__dict__["_seen"] = True  # nn.Module.__setattr__ is slow
        return masked(x, gamma)

    def _resting_gamma(self) -> torch.Tensor:
        """Return gamma without a gradient: the mask is closed or not attached."""
        self._undo_changes()
        if not torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
            return self.gamma.detach()
        # Not detached: data-parallel wrappers, and a loop that trains nothing but the mask, need gamma in the graph.
        return Rest.apply(self.gamma, self if self.training and not self._warned and not self.closed else None)

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
            The optimizer of the model that holds the mask; ``model.parameters()`` may be handed to it whole. The gradient
            of gamma is taken away before the optimizer's own step, so the optimizer never moves it. Of an optimizer that
            wraps another (SAM, Accelerate), the one that steps is followed.
        warmup_steps : int, default=0
            Steps during which only the weights are trained.
        ramp_steps : int, default=2000
            The paper's T: steps until the penalty alone decides.
        max_steps : int or None, default=None
            Steps of selection after which the M largest are kept, with a ``ConvergenceWarning``; None: four ramps. Must be
            None with a strength, whose selection ends with the ramp.

        Returns
        -------
        MaskHandle
            ``remove()`` does the same as :meth:`detach`.
        """
        rule = Rule(**self._options, warmup_steps=warmup_steps, ramp_steps=ramp_steps, max_steps=max_steps)
        if self._handle is not None:
            raise RuntimeError("this mask is attached already; call detach() first")
        inner = find_stepping_optimizer(optimizer, self.gamma)
        if not self.gamma.requires_grad:
            raise ValueError("gamma does not require a gradient: call mask.gamma.requires_grad_() before attach")
        self._undo_changes()
        self.rule = rule
        self._handle = MaskHandle(inner, self.gamma, self.take_step, self._release)
        self._update()
        return self._handle

    def detach(self) -> None:
        """Take the mask off its optimizer; gamma stays as it is."""
        if self._handle is not None:
            self._handle.remove()

    def _release(self) -> None:
        self._handle = None
        self._moving = False

    def take_step(self) -> None:
        """Move gamma by its gradient and take the gradient away; ``attach`` calls this before each optimizer step."""
        own = self.__dict__  # attributes of modules are slow to look up and to set
        tensors = self._tensors()
        gamma = own["_parameters"]["gamma"]
        gradient = gamma.grad
        if not own["_moving"] and self.closed:
            self.counters[Slot.STEP] += 1
        elif gradient is None:
            raise RuntimeError(f"gamma has no gradient: {self._why_no_gradient()}")
        else:
            stepper = own["_stepper"]
            if stepper is None or not stepper.serves(tensors, self.rule):
                stepper = own["_stepper"] = Stepper(tensors, self.rule)
                own["_gamma_version"] = None
            if gamma._version != own["_gamma_version"]:
                self._check_gamma()
            flat = gradient.detach().reshape(-1)
            if self.gates is not None:
                flat = gather_gradient(flat, self.place, self.rule.n_features)
            if stepper.step(flat):
                own["_moving"] = False
            if self.gates is not None:
                self._spread()
            own["_gamma_version"] = gamma._version
        gamma.grad = None
        own["_seen"] = False

    def _why_no_gradient(self) -> str:
        if not self.gamma.requires_grad:
            return (
                "it was frozen before the mask closed; call mask.gamma.requires_grad_(), or mask.finalize() to close it"
            )
        if self._seen:
            return "the loss does not depend on the mask's output, or the gradients were cleared before the step"
        return "the mask has not seen any data: its forward did not run in training since the last step"

    def __getstate__(self) -> dict[str, Any]:
        # A copy is not attached: the optimizer that it would step with is not copied along.
        bound = {"_handle": None, "_stepper": None, "_gamma_version": None, "_moving": False, "_warned": False}
        return {**super().__getstate__(), **bound}


def find_masks(model: nn.Module) -> dict[str, FeatureMask]:
    """Return all masks inside a model, by name; raise ValueError if there is none.

    Examples
    --------
    >>> list(find_masks(nn.Sequential(FeatureMask(3, 1), nn.Linear(3, 1))))
    ['0']
    """
    found = _named_masks(model)
    if not found:
        raise ValueError("there is no FeatureMask in this model; put one in front of the layers that read the input")
    return found


def find_mask(model: nn.Module) -> FeatureMask:
    """Return the only mask inside a model; raise ValueError if there is none, or more than one.

    Examples
    --------
    >>> find_mask(nn.Sequential(FeatureMask(3, 1), FeatureMask(3, 1)))
    Traceback (most recent call last):
    ValueError: the model must hold exactly one FeatureMask, it holds 2
    """
    masks = _named_masks(model)
    if len(masks) != 1:
        raise ValueError(f"the model must hold exactly one FeatureMask, it holds {len(masks)}")
    return next(iter(masks.values()))


def _named_masks(model: nn.Module) -> dict[str, FeatureMask]:
    return {name: part for name, part in model.named_modules() if isinstance(part, FeatureMask)}
