"""FeatureMask: E2E-FS inside any PyTorch model and training loop."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from torch import distributed, nn
from torch.overrides import TorchFunctionMode

from tamiz._utils.pictures import Bars, Grid, draw
from tamiz._utils.validation import resolve_n_features_to_select
from tamiz.core.gates import Gates, read_gates
from tamiz.core.rule import Rule, Slot
from tamiz.torch.fold import masked
from tamiz.torch.state import SCHEDULE, StatefulMask, schedule_of
from tamiz.torch.stepping import MaskHandle, Stepper, find_stepping_optimizer

#: A mask whose living are fewer than this share of the columns at work lets linear layers work on the living alone.
SHARE = 0.7

#: Steps without a gradient of gamma after which a warning asks whether the model uses the mask at all.
MANY_IDLE_STEPS = 100


class Rest(torch.autograd.Function):
    """Hand gamma on with a place in the graph but without a gradient.

    With a mask as second argument, its first backward pass warns that the mask is not attached.
    """

    @staticmethod
    def forward(ctx: Any, gamma: torch.Tensor, mask: Any) -> torch.Tensor:
        ctx.mask = mask
        return gamma.view_as(gamma)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        mask, ctx.mask = ctx.mask, None
        if mask is not None and not mask._warned:
            mask._warned = True
            text = "a FeatureMask is trained without an optimizer: gamma does not move. Call mask.attach(optimizer), "
            text += "also after copying or loading the model, or mask.finalize() to close it"
            warnings.warn(text, UserWarning, stacklevel=2)
        return None, None


class _GammaOnly(TorchFunctionMode):
    """Let ``backward()`` reach gamma of the masks inside ``held_out`` and nothing else."""

    masks: ClassVar[list[FeatureMask]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.backward and kwargs.get("inputs") is None:
            moving = [mask.gamma for mask in self.masks if mask._moving]
            return func(*args, **{**kwargs, "inputs": moving}) if moving else None
        return func(*args, **kwargs)


class FeatureMask(StatefulMask):
    r"""Mask over the inputs of a model that ends with exactly M ones.

    Multiplies its input by gamma, element by element. Once attached to the optimizer that trains the model, gamma moves by
    the paper's rule in every step: it keeps its own moments, so that neither the optimizer nor its weight decay,
    learning-rate schedule, gradient clipping or scaler changes what is selected. A mask that is closed, or not attached,
    sends no gradient to gamma; what others write to it (averages of the weights, for example) is undone.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the mask: the number of columns, or a shape that broadcasts against one sample. ``(1, 32, 32)`` picks
        pixels for all channels, ``(3, 32, 32)`` single values, ``(n_channels, 1)`` channels of a time series.
    n_features_to_select : int, float or None, default=None
        M: a number, a fraction in (0, 1), or None for half; with groups, of groups. Must be None with a budget or a strength.
    variant : str, default="soft"
        A name in ``tamiz.core.rule.VARIANTS``: E2E-FS-Soft ("soft"), E2E-FS ("hard"), or "ranking", whose target falls slowly,
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
    device : torch.device or str, default=None
        Where the mask lies; None: the default device.
    **settings
        mu : float, default=1.0
            The paper's :math:`\mu`, weight of the count penalty beyond 1.
        rho : float, default=0.75
            The paper's :math:`\rho`, relaxation of the target of the soft variant.
        mask_learning_rate : float, default=0.01
            Learning rate of gamma.
        beta1, beta2, epsilon : float, default=0.5, 0.999, 1e-8
            Decay rates of the moments of gamma, and what is added to the denominator of its step (Adam).
        mask_optimizer : {"adam", "rmsprop", "sign", "sgd"}, default="adam"
            Solver of gamma: Adam, RMSprop, steps of equal length by the sign of the gradient, or plain projected gradient.

    Attributes
    ----------
    gamma : Parameter
        The mask, in [0, 1], of type float32; binary once ``closed``.
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
        device: Any = None,
        **settings: Any,
    ) -> None:
        sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        if not sizes or not all(isinstance(size, (int, np.integer)) and size > 0 for size in sizes):
            raise ValueError(f"shape must be a positive integer or a tuple of them, got {shape!r}")
        sizes, n_entries = tuple(int(size) for size in sizes), math.prod(sizes)
        options = {"groups": groups, "costs": costs, "budget": budget, "keep": keep, "drop": drop}
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        gates, names = None, None
        counts: dict[str, Any] = {"n_features": n_entries, "n_features_to_select": 0, "strength": strength}
        if strength is not None:
            other = [*given] if n_features_to_select is None else ["n_features_to_select", *given]
            if other:
                raise ValueError(f"strength={strength!r} leaves the choice to the loss: leave out {', '.join(other)}")
        elif given:
            read = isinstance(groups, Gates)  # by an engine
            gates, names = (groups, None) if read else read_gates(n_entries, n_features_to_select, **given)
            counts = gates.rule_options()
        else:
            counts["n_features_to_select"] = resolve_n_features_to_select(n_features_to_select, n_entries)
        rule_options = {**counts, "variant": variant, **settings}
        super().__init__(sizes, Rule(**rule_options), gates, device)
        self.group_names, self._options = names, rule_options
        self._seen = False  # forward ran in training since the last step
        self._warned = False
        self._checked = -1  # version of gamma after the last step
        self._idle = 0  # steps without a gradient of gamma, since the last one with
        self._held_out: bool | None = None  # whether inside held_out(); None: it has not been entered since attach
        self._averaged: torch.Tensor | None = None

    # ---- forward ---------------------------------------------------------------------------------------------------

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply ``x`` by gamma."""
        own = self.__dict__  # attributes of modules are slow to look up and to set
        gamma: torch.Tensor = own["_parameters"]["gamma"]
        mine, theirs = gamma.shape, x.shape
        if theirs[-1:] != mine and (
            len(theirs) < len(mine) or any(a not in (1, b) for a, b in zip(mine[::-1], theirs[::-1]))
        ):
            raise ValueError(f"a mask of shape {tuple(mine)} does not fit an input of shape {tuple(theirs)}")
        compiling, kept, whole = torch.compiler.is_compiling(), None, gamma
        if not own["_moving"] or own["_held_out"] is False:
            gamma, kept = self._resting_gamma(gamma, compiling)
        if gamma.dtype != x.dtype and (x.is_floating_point() or x.is_complex()):
            gamma = gamma.to(x.dtype)
        if compiling or not torch.is_grad_enabled() or torch.jit.is_tracing():
            return x * gamma
        own["_seen"] = True
        if own["_moving"] and whole is own["_home"] and gamma.requires_grad:
            kept = own["_alive"]
        return masked(x, gamma, kept)

    def _resting_gamma(self, gamma: torch.Tensor, compiling: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
        """gamma without a gradient and, of a closed mask, the numbers of its ones."""
        # A data-parallel wrapper waits for the gradient of every parameter, so gamma has to stay in the graph.
        anchored = gamma.requires_grad and torch.is_grad_enabled() and distributed.is_available()
        anchored = anchored and distributed.is_initialized()
        if compiling:
            fixed = gamma.detach() if self._decided is None else self._decided.gamma
            return (fixed + 0.0 * gamma if anchored else fixed), None
        if gamma is not self._home or torch._C._are_functorch_transforms_active():
            return gamma.detach(), None
        self._settle()
        decided, handle = self._decided, self._handle
        if not torch.is_grad_enabled():
            return (gamma.detach() if decided is None else decided.gamma), None
        # A loop that trains nothing but the mask must still find a graph after the mask has closed.
        if decided is not None and not anchored and (handle is None or handle.trains_weights()):
            return decided.gamma, decided.kept
        unattached = self.training and not self._warned and decided is None and not self._moving
        return Rest.apply(gamma, self if unattached else None), None

    @contextmanager
    def held_out(self) -> Iterator[None]:
        """Move gamma by the loss of other rows than those that train the weights.

        Inside, ``loss.backward()`` reaches gamma alone. From the first use on, everything outside trains the weights alone,
        so that gamma is judged on rows that the weights have not fitted. A step without such rows does not move gamma.

        Examples
        --------
        >>> import torch
        >>> from torch import nn
        >>> mask, layer = FeatureMask(3, 1), nn.Linear(3, 1)
        >>> handle = mask.attach(torch.optim.SGD([*mask.parameters(), *layer.parameters()], lr=0.1))
        >>> with mask.held_out():
        ...     layer(mask(torch.ones(2, 3))).mean().backward()
        >>> mask.gamma.grad is None, layer.weight.grad is None
        (False, True)
        >>> mask.gamma.grad = None
        >>> layer(mask(torch.ones(2, 3))).mean().backward()
        >>> mask.gamma.grad is None, layer.weight.grad is None
        (True, False)
        """
        if self._held_out:
            raise RuntimeError("held_out() is entered already")
        if self._held_out is None:
            self.gamma.grad = None  # of rows that came before the first held-out ones
        self._held_out = True
        _GammaOnly.masks.append(self)
        try:
            with _GammaOnly():
                yield
        finally:
            _GammaOnly.masks.remove(self)
            self._held_out = False

    # ---- attaching -------------------------------------------------------------------------------------------------

    def attach(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        warmup_steps: int | None = None,
        ramp_steps: int | None = None,
        max_steps: int | None = None,
        held_out: Callable[[], torch.Tensor] | None = None,
    ) -> MaskHandle:
        """Let gamma move with every step of ``optimizer``; the training loop stays as it is.

        Parameters
        ----------
        optimizer : torch.optim.Optimizer
            The optimizer of the model that holds the mask; ``model.parameters()`` may be handed to it whole. The gradient
            of gamma is taken away before the optimizer's own step, so the optimizer never moves it. Of an optimizer that
            wraps another (SAM, Accelerate), the one that steps is followed.
        warmup_steps : int, default=None
            Steps during which only the weights are trained; None: 0.
        ramp_steps : int, default=None
            The paper's T: steps until the penalty alone decides; None: 2000.
        max_steps : int or None, default=None
            Steps of selection after which the M largest are kept, with a ``ConvergenceWarning``; None: four ramps. Must be
            None with a strength, whose selection ends with the ramp.
        held_out : callable or None, default=None
            Computes the loss of a batch of other rows than those that train the weights; it then moves gamma alone, before each
            step, averaged over the processes of ``torch.distributed``. See :meth:`held_out`.

        Returns
        -------
        MaskHandle
            ``remove()`` does the same as :meth:`detach`.

        Notes
        -----
        The schedule is part of the state: a mask that is in mid-selection, for example after ``load_state_dict``, goes on
        with its own. Another one raises ValueError.
        """
        if self._handle is not None:
            raise RuntimeError("this mask is attached already; call detach() first")
        steps = zip(SCHEDULE, (warmup_steps, ramp_steps, max_steps))
        given = {name: value for name, value in steps if value is not None}
        rule = Rule(**{**self._options, **given})
        running, own = self.step > 0 and not self.closed, schedule_of(self.rule)
        if running and given and own != schedule_of(rule):
            raise ValueError(
                f"this mask has taken {self.step} steps of the schedule {own}: attach it with the same one or without any, "
                "or call mask.reset() to select anew"
            )
        inner = find_stepping_optimizer(optimizer, self.gamma)
        if not self.gamma.requires_grad:
            raise ValueError("gamma does not require a gradient: call mask.gamma.requires_grad_() before attach")
        self._settle(by_value=True)
        self.rule = self.rule if running else rule
        self._handle = MaskHandle(inner, self, held_out)
        self._held_out, self._idle, self._averaged = None, 0, None
        self._update()
        return self._handle

    def detach(self) -> None:
        """Take the mask off its optimizer; gamma stays as it is."""
        if self._handle is not None:
            self._handle.remove()

    def _release(self) -> None:
        self._handle, self._held_out, self._moving = None, None, False
        self._remember()

    def average_gradient(self, group: Any = None) -> None:
        """Average the gradient of gamma over the processes of a group, where nothing else does (FSDP2, ``no_sync``).

        Call it on every process after ``backward()`` and, where gradients are clipped, before that: gamma is put aside
        until the step, so that clipping sees the other parameters only.
        """
        if not self._moving:
            return
        gradient = torch.zeros_like(self.gamma) if self.gamma.grad is None else self.gamma.grad.detach()
        distributed.all_reduce(gradient, group=group)
        self._averaged = gradient.div_(distributed.get_world_size(group))
        self.gamma.grad = None

    def take_step(self) -> None:
        """Move gamma by its gradient and take the gradient away; ``attach`` calls this with each optimizer step."""
        own = self.__dict__
        gamma = own["_parameters"]["gamma"]
        gradient, own["_averaged"] = gamma.grad if own["_averaged"] is None else own["_averaged"], None
        gamma.grad, own["_seen"], seen = None, False, own["_seen"]
        tensors, rule, stepper = self._tensors(), own["rule"], own["_stepper"]
        if stepper is None or not stepper.serves(tensors, rule):
            stepper = own["_stepper"] = Stepper(tensors, rule)
            own["_checked"] = -1
        if not own["_moving"]:
            stepper.count_step()
            return
        if gradient is None:
            self._skip_step(seen)
            return
        if gamma._version != own["_checked"]:
            self._check_gamma()
        flat, grouped = gradient.detach() if gradient.requires_grad else gradient, own["gates"] is not None
        flat = flat if flat.dim() == 1 else flat.reshape(-1)
        if grouped:  # a feature has the sum over its entries; the last two places are those that gamma does not decide
            flat = flat.new_zeros(rule.n_features + 2).index_add_(0, self.place, flat)[:-2]
        closed = stepper.step(flat)
        if grouped:
            self._spread()
        elif stepper.n_alive < SHARE * (gamma.numel() if own["_alive"] is None else own["_alive"].numel()):
            own["_alive"] = (tensors[3] <= tensors[4][Slot.KEPT]).nonzero().flatten()
        if closed:
            self._update()
        own["_checked"], own["_idle"] = gamma._version, 0

    def _skip_step(self, seen: bool) -> None:
        """Leave gamma where it is in a step whose loss does not involve the mask."""
        if not self.gamma.requires_grad:
            raise RuntimeError(
                "gamma was frozen in mid-selection: call mask.gamma.requires_grad_(), or mask.finalize()"
            )
        if seen and self._held_out is None:
            text = "gamma has no gradient: the loss does not depend on the mask's output, or gradients were cleared too soon"
            raise RuntimeError(text)
        self._idle += 1
        if self._idle == MANY_IDLE_STEPS:
            text = f"gamma had no gradient in the last {self._idle} steps: does the forward of the model call the mask?"
            warnings.warn(text, UserWarning, stacklevel=2)

    def __getstate__(self) -> dict[str, Any]:
        bound = {"_checked": -1, "_warned": False, "_held_out": None, "_averaged": None}
        return {**super().__getstate__(), **bound}

    # ---- looking at it ---------------------------------------------------------------------------------------------

    def _labels(self, names: Sequence[str] | None) -> list[str]:
        if names is None:
            return [f"feature {index}" for index in range(self.n_features)]
        if len(names) != self.n_features:
            raise ValueError(f"names must name all {self.n_features} features, got {len(names)}")
        return [str(name) for name in names]

    def summary(self, names: Sequence[str] | None = None, n_best: int = 10) -> str:
        """Describe where the mask stands: phase, features alive, sum of gamma, penalty and the best features.

        Parameters
        ----------
        names : sequence of str or None, default=None
            Names of all features; None numbers them.
        n_best : int, default=10
            How many of the best features to list; none as long as nothing tells them apart.

        Examples
        --------
        >>> print(FeatureMask(3, 1).summary())
        warm-up, step 0: 3 of 3 features alive, 1 to select
        sum of gamma 3, penalty 4
        """
        labels, has_moved = self._labels(names), self.closed or bool(self.counters[Slot.AGE])
        phase = "closed" if self.closed else self.phase.label if has_moved else "warm-up"
        gamma = self.gamma.detach().reshape(-1).cpu()
        text = f"{phase}, step {self.step:,}: {self.n_alive:,} of {self.n_features:,} features alive, {self._aim()}\n"
        text += f"sum of gamma {float(gamma.sum()):.4g}, penalty {float(self.penalty()):.4g}"
        best = self.ranking().reshape(-1).cpu().argsort()[:n_best].tolist() if has_moved else []
        width = max((len(labels[index]) for index in best), default=0)
        for rank, index in enumerate(best, start=1):
            text += f"\n{rank:>5}  {labels[index]:<{width}}  {float(gamma[index]):.3f}"
        return text

    def _aim(self) -> str:
        strength = self.rule.strength
        return f"{self.n_features_to_select:,} to select" if strength is None else f"strength {strength:g}"

    def plot(self, names: Sequence[str] | None = None, ax: Any = None, n_shown: int = 50) -> Any:
        """Draw gamma with matplotlib: an image where the mask has rows and columns, else bars, the best first.

        Parameters
        ----------
        names : sequence of str or None, default=None
            Names of all features, for the bars; None numbers them.
        ax : matplotlib axes, default=None
            Axes to draw on; None makes a new figure.
        n_shown : int, default=50
            How many bars to draw.

        Returns
        -------
        matplotlib axes

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> FeatureMask((1, 4, 4), 2).plot().get_title()
        'gamma: 16 of 16 alive, 2 to select'
        """
        labels, n_alive = self._labels(names), self.n_alive
        gamma = self.gamma.detach().cpu()
        title = f"gamma: {n_alive:,} of {self.n_features:,} alive, {self._aim()}"
        if len(self.shape) > 1 and min(self.shape[-2:]) > 1:
            image = gamma.reshape(-1, *gamma.shape[-2:]).mean(dim=0)  # the mean over channels
            ax = draw(Grid(title, [], [], image.numpy(), 0.0, 1.0), ax)
            ax.set_aspect("equal")
            return ax
        order = self.ranking().reshape(-1).cpu().argsort()[:n_shown]
        shown = [labels[index] for index in order.tolist()]
        return draw(Bars(title, shown, gamma.reshape(-1)[order].tolist(), "gamma", limits=(0.0, 1.05)), ax)


def find_masks(model: nn.Module) -> dict[str, FeatureMask]:
    """All masks inside a model, by name; raise ValueError if there is none.

    Examples
    --------
    >>> list(find_masks(nn.Sequential(FeatureMask(3, 1), nn.Linear(3, 1))))
    ['0']
    """
    found = {name: part for name, part in model.named_modules() if isinstance(part, FeatureMask)}
    if not found:
        raise ValueError("there is no FeatureMask in this model; put one in front of the layers that read the input")
    return found


def main_parameter(model: nn.Module) -> torch.Tensor:
    """First floating-point parameter of a model other than gamma: the data take its type and device.

    Examples
    --------
    >>> main_parameter(nn.Sequential(FeatureMask(3, 1), nn.Linear(3, 1, dtype=torch.float64))).dtype
    torch.float64
    """
    gammas = {id(module.gamma) for module in model.modules() if isinstance(module, FeatureMask)}
    found = [parameter for parameter in model.parameters() if parameter.is_floating_point()]
    return next((parameter for parameter in found if id(parameter) not in gammas), found[0])
