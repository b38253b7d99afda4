"""What the callbacks for Lightning, skorch and Hugging Face's Trainer share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from torch import nn

from tamiz.torch.batches import EndlessBatches
from tamiz.torch.mask import FeatureMask, find_masks
from tamiz.torch.stepping import MaskHandle, holds

UNITS = ("fraction", "steps", "epochs")


class MaskCallback:
    """Attach the masks of a model to their optimizers for the length of a fit.

    Parameters
    ----------
    warmup : float, default=0.1
        Length of the warm-up, see :meth:`FeatureMask.attach`.
    ramp : float, default=0.3
        Length of the ramp.
    limit : float or None, default=None
        Length of the selection after which the largest are kept; None: four ramps, or two where they are fractions.
    unit : {"fraction", "steps", "epochs"}, default="fraction"
        What these are counted in: fractions of the whole fit, steps of the optimizer, or epochs.
    stop_when_closed : bool, default=False
        Whether to end the fit when all masks are closed; otherwise the weights are trained on.
    held_out : iterable of batches or None, default=None
        Rows that move gamma and do not train the weights, for example a second ``DataLoader``: a batch goes with each step
        of the optimizer, see :meth:`FeatureMask.held_out`.

    Examples
    --------
    >>> MaskCallback(warmup=2, ramp=10, limit=None, unit="epochs").in_steps(epoch=32, total=640)
    {'warmup_steps': 64, 'ramp_steps': 320, 'max_steps': None}
    """

    def __init__(
        self,
        warmup: float = 0.1,
        ramp: float = 0.3,
        limit: float | None = None,
        unit: str = "fraction",
        stop_when_closed: bool = False,
        held_out: Iterable[Any] | None = None,
    ) -> None:
        self.warmup, self.ramp, self.limit, self.unit = warmup, ramp, limit, unit
        self.stop_when_closed, self.held_out = stop_when_closed, held_out
        # With an underscore behind, as skorch tells parameters from the rest.
        self.handles_: list[MaskHandle] = []
        self.was_open_ = True

    def __getstate__(self) -> dict[str, Any]:
        # A hook belongs to an optimizer of this process; a copy starts without.
        return {**self.__dict__, "handles_": []}

    def in_steps(self, epoch: float, total: float) -> dict[str, int | None]:
        """Schedule in steps of the optimizer, for a fit of so many steps in an epoch and in all."""
        if self.unit not in UNITS:
            raise ValueError(f"unit must be one of {', '.join(map(repr, UNITS))}, got {self.unit!r}")
        factor = {"steps": 1, "epochs": epoch, "fraction": total}[self.unit]
        if not math.isfinite(factor) or factor <= 0:
            raise ValueError("the length of the fit is not known here; give the schedule with unit='steps'")
        factor = math.ceil(factor)  # an epoch ends with a step even if fewer batches than asked for have been gathered
        limit = 2 * self.ramp if self.limit is None and self.unit == "fraction" else self.limit
        return {
            "warmup_steps": round(self.warmup * factor),
            "ramp_steps": max(1, round(self.ramp * factor)),
            "max_steps": None if limit is None else max(1, round(limit * factor)),
        }

    def _attach(
        self, model: nn.Module, optimizers: Sequence[Any], epoch: float, total: float, loss_of: Callable[[Any], Any]
    ) -> None:
        """Attach each mask to the optimizer that holds its gamma; all of them, or none and an error.

        A fit has so many steps in an epoch and in all; ``loss_of`` a batch of held-out rows moves gamma.
        """
        self._detach()  # what a fit that ended with an error may have left
        schedule: dict[str, Any] = self.in_steps(epoch, total)
        if self.held_out is not None:
            rows = EndlessBatches(self.held_out)
            schedule["held_out"] = lambda: loss_of(next(rows))
        try:
            for name, mask in find_masks(model).items():
                holding = [optimizer for optimizer in optimizers if holds(optimizer, mask.gamma)]
                if not holding:
                    raise ValueError(f"no optimizer holds gamma of the mask {name!r}: build it from all parameters")
                self.handles_.append(mask.attach(holding[0], **schedule))
        except Exception:
            self._detach()
            raise
        self.was_open_ = True

    def _detach(self) -> None:
        for handle in self.handles_:
            handle.remove()
        self.handles_ = []

    def _end(self, model: nn.Module) -> None:
        """Detach when a fit has ended; warn about masks that are still open.

        Looking at the masks also undoes what averages of the weights have written to them.
        """
        self._detach()
        for name, mask in find_masks(model).items():
            if not mask.closed:
                text = f"the fit ended before the mask {name!r} was closed: {mask.n_alive} features are alive, "
                text += f"{mask.n_features_to_select} are to be selected. Train longer, shorten warmup and ramp, or "
                warnings.warn(f"{text}call mask.finalize()", ConvergenceWarning, stacklevel=2)

    def _must_forget(self, model: nn.Module) -> bool:
        """Whether evaluations since the last call, or before, were made with an open mask and must not count."""
        was_open, self.was_open_ = self.was_open_, not all_closed(model)
        return was_open

    def _must_stop(self, model: nn.Module) -> bool:
        return self.stop_when_closed and all_closed(model)


def labelled_masks(model: nn.Module) -> dict[str, FeatureMask]:
    """All masks by what stands before the names of their numbers in a log: nothing where there is one mask only.

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
    """Whether every mask of a model is closed."""
    return all(mask.closed for mask in find_masks(model).values())
