"""Callback that runs the selection inside Lightning's Trainer; needs the extra ``tamiz[lightning]``."""

from __future__ import annotations

from typing import Any

from tamiz._utils.extras import require

require("lightning.pytorch", "lightning", "tamiz.torch.lightning")

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402

from tamiz.torch.adapters import AttachedMasks, MaskSchedule, all_closed, labelled_masks  # noqa: E402


class LightningMaskCallback(Callback):
    """Attach every :class:`~tamiz.torch.FeatureMask` of the model to its optimizer for the length of a fit.

    ``n_alive`` is logged at each step (``<name>.n_alive`` where there are several masks). The masks keep their state in the
    model, so a fit that is resumed from a checkpoint goes on where it stopped. A fit that ends with an open mask warns.

    Parameters
    ----------
    warmup : float, default=0
        Length of the warm-up, see :meth:`FeatureMask.attach`.
    ramp : float, default=2000
        Length of the ramp.
    limit : float or None, default=None
        Length of the selection after which the largest are kept; None: four ramps.
    unit : {"steps", "epochs"}, default="steps"
        What these are counted in. Steps are steps of the optimizer: batches divided by ``accumulate_grad_batches``.
    stop_when_closed : bool, default=False
        Whether to end the fit when all masks are closed; otherwise the weights are trained on.

    Examples
    --------
    >>> LightningMaskCallback(warmup=5, ramp=60, unit="epochs").schedule.in_steps(10)
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
        self.schedule = MaskSchedule(warmup, ramp, limit, unit)
        self.stop_when_closed = stop_when_closed
        self._attached = AttachedMasks()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Attach; by now the optimizers are there and a checkpoint has been read."""
        schedule = self.schedule.in_steps(trainer.num_training_batches / trainer.accumulate_grad_batches)
        self._attached.attach(pl_module, trainer.optimizers, schedule)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log how many features are alive, and stop if that was asked for."""
        for label, mask in labelled_masks(pl_module).items():
            pl_module.log(f"{label}n_alive", float(mask.n_alive), on_step=True, on_epoch=False)
        if self.stop_when_closed and all_closed(pl_module):
            trainer.should_stop = True

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Detach, also after an error."""
        self._attached.detach()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Detach; warn if a mask is still open."""
        self._attached.end(pl_module)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Detach: the same model may be fitted again."""
        self._attached.detach()
