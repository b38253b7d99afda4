"""What the adapters for training frameworks share: finding masks, and schedules counted in epochs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn, optim

from tamiz.torch.mask import FeatureMask, MaskHandle

UNITS = ("steps", "epochs")


@dataclass(frozen=True)
class Plan:
    """The schedule of a mask, in steps or in epochs.

    Examples
    --------
    >>> Plan(warmup=2, ramp=10, limit=None, unit="epochs").in_steps(32)
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
        """The arguments of :meth:`FeatureMask.attach` for a loop that takes so many optimizer steps an epoch."""
        factor = steps_per_epoch if self.unit == "epochs" else 1
        if not math.isfinite(factor):
            raise ValueError("the length of an epoch is not known here; give the schedule with unit='steps'")
        return {
            "warmup_steps": round(self.warmup * factor),
            "ramp_steps": max(1, round(self.ramp * factor)),
            "max_steps": None if self.limit is None else max(1, round(self.limit * factor)),
        }


def masks_of(module: nn.Module) -> dict[str, FeatureMask]:
    """All masks inside a module, by name; an error if there is none.

    Examples
    --------
    >>> list(masks_of(nn.Sequential(FeatureMask(3, 1), nn.Linear(3, 1))))
    ['0']
    """
    found = {name: part for name, part in module.named_modules() if isinstance(part, FeatureMask)}
    if not found:
        raise ValueError("there is no FeatureMask in this model; put one in front of the layers that read the input")
    return found


def attach_all(
    masks: Mapping[str, FeatureMask], optimizers: Iterable[Any], schedule: Mapping[str, Any]
) -> list[MaskHandle]:
    """Attach each mask to the optimizer that holds its gamma; all of them, or none and an error."""
    optimizers = list(optimizers)
    handles: list[MaskHandle] = []
    try:
        for name, mask in masks.items():
            handles.append(mask.attach(_optimizer_of(name, mask, optimizers), **schedule))
    except Exception:
        for handle in handles:
            handle.remove()
        raise
    return handles


def _optimizer_of(name: str, mask: FeatureMask, optimizers: list[optim.Optimizer]) -> optim.Optimizer:
    for optimizer in optimizers:
        if any(p is mask.gamma for group in optimizer.param_groups for p in group["params"]):
            return optimizer
    raise ValueError(f"no optimizer holds gamma of the mask {name!r}; build it from the parameters of the whole model")
