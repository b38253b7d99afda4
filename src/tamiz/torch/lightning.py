"""Callback that runs the selection inside Lightning's Trainer; needs the extra ``tamiz[lightning]``."""

from __future__ import annotations

from typing import Any

import torch

from tamiz._utils.extras import require

require("lightning.pytorch", "lightning", "tamiz.torch.lightning")

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint  # noqa: E402

from tamiz.torch.callbacks import MaskCallback, labelled_masks  # noqa: E402


class LightningMaskCallback(MaskCallback, Callback):
    """Attach every :class:`~tamiz.torch.FeatureMask` of the model to its optimizer for the length of a fit.

    ``n_alive`` is logged at each step (``<name>.n_alive`` where there are several masks). The masks keep their state in the
    model, so a fit that is resumed from a checkpoint goes on where it stopped. Evaluations of an open mask count neither
    for ``EarlyStopping`` nor for the best checkpoint. A fit that ends with an open mask warns. Held-out rows go through
    ``training_step``. Parameters are those of :class:`~tamiz.torch.callbacks.MaskCallback`.

    Examples
    --------
    >>> LightningMaskCallback(warmup=5, ramp=60, limit=None, unit="epochs").in_steps(epoch=10, total=1000)
    {'warmup_steps': 50, 'ramp_steps': 600, 'max_steps': None}
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Attach; by now the optimizers are there and a checkpoint has been read."""

        def loss_of(batch: Any) -> torch.Tensor:
            batch = trainer.strategy.batch_to_device(batch, pl_module.device)
            # What training_step logs is about the rows that train the weights.
            silent = {"log": lambda *args, **kwargs: None, "log_dict": lambda *args, **kwargs: None}
            pl_module.__dict__.update(silent)
            try:
                found: Any = pl_module.training_step(batch, 0)
            finally:
                for name in silent:
                    del pl_module.__dict__[name]
            return found["loss"] if isinstance(found, dict) else found

        epoch = trainer.num_training_batches / trainer.accumulate_grad_batches
        self._attach(pl_module, trainer.optimizers, epoch, trainer.estimated_stepping_batches, loss_of)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *args: Any) -> None:
        """Log how many features are alive, and stop if that was asked for."""
        for label, mask in labelled_masks(pl_module).items():
            pl_module.log(f"{label}n_alive", float(mask.n_alive), on_step=True, on_epoch=False)
        trainer.should_stop = trainer.should_stop or self._must_stop(pl_module)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the best evaluation of open masks."""
        if not self.handles_ or not self._must_forget(pl_module):
            return
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            worst = torch.tensor(float("inf") if getattr(callback, "mode", "min") == "min" else -float("inf"))
            if isinstance(callback, EarlyStopping):
                callback.wait_count, callback.best_score = 0, worst
            elif isinstance(callback, ModelCheckpoint) and callback.monitor is not None and callback.best_k_models:
                # Their files give way to those of the next evaluations.
                callback.best_k_models = dict.fromkeys(callback.best_k_models, worst)
                callback.kth_value = callback.best_model_score = worst

    on_validation_start = on_train_epoch_start

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Detach, after all callbacks have ended; warn if a mask is still open."""
        self._end(pl_module)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Detach: the same model may be fitted again."""
        self._detach()
