"""A callback that runs the selection inside Lightning's Trainer; needs the extra ``tamiz[lightning]``."""

from __future__ import annotations

import math
from typing import Any

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as error:
    raise ImportError(
        'tamiz.torch.lightning needs Lightning; install it with: pip install "tamiz[lightning]"'
    ) from error

from tamiz.torch._adapters import Plan, attach_all, masks_of
from tamiz.torch.mask import MaskHandle


class FeatureMaskCallback(Callback):
    """Attaches every :class:`~tamiz.torch.FeatureMask` of the model to its optimizer for the length of a fit.

    ``n_alive`` is logged at each step (``<name>.n_alive`` where there are several masks). The masks keep their state in the
    model, so a fit that is resumed from a checkpoint goes on where it stopped.

    Parameters
    ----------
    warmup, ramp : float
        Length of the warm-up and of the ramp, see :meth:`FeatureMask.attach`.
    limit : float, optional
        Length of the selection after which the largest are kept; by default four ramps.
    unit : {"steps", "epochs"}
        What these are counted in. Steps are steps of the optimizer: batches divided by ``accumulate_grad_batches``.
    stop_when_closed : bool
        Whether to end the fit when all masks are closed; by default the weights are trained on.

    Examples
    --------
    >>> FeatureMaskCallback(warmup=5, ramp=60, unit="epochs").plan.in_steps(10)
    {'warmup_steps': 50, 'ramp_steps': 600, 'max_steps': None}
    """

    def __init__(
        self,
        warmup: float = 0,
        ramp: float = 2000,
        limit: float | None = None,
        *,
        unit: str = "steps",
        stop_when_closed: bool = False,
    ) -> None:
        self.plan = Plan(warmup, ramp, limit, unit)
        self.stop_when_closed = stop_when_closed
        self._handles: list[MaskHandle] = []

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Attach; by now the optimizers are there and a checkpoint has been read."""
        # An epoch ends with a step even if fewer batches than asked for have been gathered.
        steps_per_epoch = trainer.num_training_batches / trainer.accumulate_grad_batches
        if math.isfinite(steps_per_epoch):
            steps_per_epoch = math.ceil(steps_per_epoch)
        schedule = self.plan.in_steps(steps_per_epoch)
        self._handles = attach_all(masks_of(pl_module), trainer.optimizers, schedule)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log how many features are alive, and stop if that was asked for."""
        masks = masks_of(pl_module)
        for name, mask in masks.items():
            label = "n_alive" if len(masks) == 1 else f"{name}.n_alive"
            pl_module.log(label, float(mask.n_alive), on_step=True, on_epoch=False)
        if self.stop_when_closed and all(mask.closed for mask in masks.values()):
            trainer.should_stop = True

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Detach, also after an error."""
        self._detach()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Detach."""
        self._detach()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Detach: the same model may be fitted again."""
        self._detach()

    def _detach(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
