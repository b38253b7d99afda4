"""What the callbacks for Lightning, skorch and Hugging Face's Trainer share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from tamiz.torch.mask import FeatureMask, find_masks
from tamiz.torch.stepping import MaskHandle


class AttachedMasks:
    """Attach the masks of a model to their optimizers for the length of a fit.

    Parameters
    ----------
    warmup, ramp : float
        Lengths of the warm-up and of the ramp, see :meth:`FeatureMask.attach`.
    limit : float or None
        Length of the selection after which the largest are kept; None: four ramps.
    unit : str
        What these are counted in: "steps", or a part of the fit whose length ``attach`` is told.
    held_out : iterable of batches or None, default=None
        Rows that move gamma and do not train the weights.

    Examples
    --------
    >>> AttachedMasks(warmup=2, ramp=10, limit=None, unit="epochs").in_steps(32)
    {'warmup_steps': 64, 'ramp_steps': 320, 'max_steps': None}
    """

    def __init__(
        self,
        warmup: float,
        ramp: float,
        limit: float | None,
        unit: str,
        held_out: Iterable[Any] | None = None,
        units: tuple[str, ...] = ("steps", "epochs"),
    ) -> None:
        if unit not in units:
            *others, last = (repr(name) for name in units)
            raise ValueError(f"unit must be {', '.join(others)} or {last}, got {unit!r}")
        self.warmup, self.ramp, self.limit, self.unit, self.held_out = warmup, ramp, limit, unit, held_out
        self._handles: list[MaskHandle] = []
        self._rows: Iterator[Any] | None = None
        self._was_open = True

    def __bool__(self) -> bool:
        return bool(self._handles)

    def __getstate__(self) -> dict[str, Any]:
        # A hook belongs to an optimizer of this process; a copy starts without.
        return {**self.__dict__, "_handles": [], "_rows": None}

    def in_steps(self, length: float) -> dict[str, int | None]:
        """Return the schedule in steps of the optimizer, where the unit has so many of them."""
        factor = 1 if self.unit == "steps" else length
        if not math.isfinite(factor):
            raise ValueError("the length of an epoch is not known here; give the schedule with unit='steps'")
        factor = math.ceil(factor)  # an epoch ends with a step even if fewer batches than asked for have been gathered
        return {
            "warmup_steps": round(self.warmup * factor),
            "ramp_steps": max(1, round(self.ramp * factor)),
            "max_steps": None if self.limit is None else max(1, round(self.limit * factor)),
        }

    def attach(self, model: nn.Module, optimizers: Iterable[Any], length: float) -> None:
        """Attach each mask to the optimizer that holds its gamma; all of them, or none and an error."""
        optimizers, schedule = list(optimizers), self.in_steps(length)
        try:
            for name, mask in find_masks(model).items():
                holding = [optimizer for optimizer in optimizers if holds(optimizer, mask)]
                if not holding:
                    raise ValueError(
                        f"no optimizer holds gamma of the mask {name!r}; build it from the parameters of the whole model"
                    )
                self._handles.append(mask.attach(holding[0], **schedule))
        except Exception:
            self.detach()
            raise
        self._was_open = True

    def detach(self) -> None:
        """Take all masks off their optimizers."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end(self, model: nn.Module) -> None:
        """Detach when a fit has ended; warn about masks that are still open.

        Looking at the masks also undoes what averages of the weights have written to them.
        """
        self.detach()
        for name, mask in find_masks(model).items():
            if not mask.closed:
                warnings.warn(
                    f"the fit ended before the mask {name!r} was closed: {mask.n_alive} features are alive, "
                    f"{mask.n_features_to_select} are to be selected. Train longer, shorten warmup and ramp, or call "
                    "mask.finalize()",
                    ConvergenceWarning,
                    stacklevel=2,
                )

    def must_forget(self, model: nn.Module) -> bool:
        """Whether evaluations since the last call, or before, were made with an open mask and must not count."""
        was_open, self._was_open = self._was_open, not all_closed(model)
        return was_open

    def move_by_held_out_rows(self, model: nn.Module, loss_of: Callable[[Any], torch.Tensor]) -> None:
        """Send the gradient of a batch of held-out rows to gamma."""
        masks = [mask for mask in find_masks(model).values() if not mask.closed]
        if self.held_out is None or not masks:
            return
        batch = None if self._rows is None else next(self._rows, None)
        if batch is None:
            self._rows = iter(self.held_out)
            batch = next(self._rows, None)
        if batch is None:
            raise ValueError("held_out gives no batches")
        with ExitStack() as stack, torch.enable_grad():
            for mask in masks:
                stack.enter_context(mask.held_out())
            loss_of(batch).backward()


def holds(optimizer: Any, mask: FeatureMask) -> bool:
    """Whether gamma is among the parameters of an optimizer."""
    return any(p is mask.gamma for group in optimizer.param_groups for p in group["params"])


def labelled_masks(model: nn.Module) -> dict[str, FeatureMask]:
    """Return all masks by what stands before the names of their numbers in a log: nothing where there is one mask only.

    Examples
    --------
    >>> list(labelled_masks(nn.Sequential(FeatureMask(3))))
    ['']
    >>> list(labelled_masks(nn.Sequential(FeatureMask(3), FeatureMask(3))))
    ['0.', '1.']
    """
    masks = find_masks(model)
    return {"" if len(masks) == 1 else f"{name}.": mask for name, mask in masks.items()}


def all_closed(model: nn.Module) -> bool:
    """Return whether every mask of a model is closed."""
    return all(mask.closed for mask in find_masks(model).values())
