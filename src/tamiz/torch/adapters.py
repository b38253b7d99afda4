"""What the adapters for training frameworks share: schedules counted in epochs, attaching, and the end of a fit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from torch import nn, optim

from tamiz.torch.handle import MaskHandle
from tamiz.torch.mask import FeatureMask, find_masks

UNITS = ("steps", "epochs")


@dataclass(frozen=True)
class MaskSchedule:
    """Schedule of a mask, in steps or in epochs.

    Examples
    --------
    >>> MaskSchedule(warmup=2, ramp=10, limit=None, unit="epochs").in_steps(32)
    {'warmup_steps': 64, 'ramp_steps': 320, 'max_steps': None}
    """

    warmup: float
    ramp: float
    limit: float | None
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit must be 'steps' or 'epochs', got {self.unit!r}")

    def in_steps(self, steps_per_epoch: float) -> dict[str, int | None]:
        """Return the arguments of :meth:`FeatureMask.attach` for a loop of so many optimizer steps per epoch."""
        factor = steps_per_epoch if self.unit == "epochs" else 1
        if not math.isfinite(factor):
            raise ValueError("the length of an epoch is not known here; give the schedule with unit='steps'")
        factor = math.ceil(factor)  # an epoch ends with a step even if fewer batches than asked for have been gathered
        return {
            "warmup_steps": round(self.warmup * factor),
            "ramp_steps": max(1, round(self.ramp * factor)),
            "max_steps": None if self.limit is None else max(1, round(self.limit * factor)),
        }


class AttachedMasks:
    """Hold the masks of a model that are attached for the length of a fit."""

    def __init__(self) -> None:
        self._handles: list[MaskHandle] = []

    def __bool__(self) -> bool:
        return bool(self._handles)

    def __getstate__(self) -> dict[str, Any]:
        # A hook belongs to an optimizer of this process; a copy starts without.
        return {"_handles": []}

    def attach(self, model: nn.Module, optimizers: Iterable[Any], schedule: Mapping[str, Any]) -> None:
        """Attach each mask to the optimizer that holds its gamma; all of them, or none and an error."""
        optimizers = list(optimizers)
        try:
            for name, mask in find_masks(model).items():
                self._handles.append(mask.attach(_optimizer_of(name, mask, optimizers), **schedule))
        except Exception:
            self.detach()
            raise

    def detach(self) -> None:
        """Take all masks off their optimizers."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end(self, model: nn.Module) -> None:
        """Detach when a fit has ended; warn about masks that are still open."""
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


def _optimizer_of(name: str, mask: FeatureMask, optimizers: list[optim.Optimizer]) -> optim.Optimizer:
    for optimizer in optimizers:
        if any(p is mask.gamma for group in optimizer.param_groups for p in group["params"]):
            return optimizer
    raise ValueError(f"no optimizer holds gamma of the mask {name!r}; build it from the parameters of the whole model")
