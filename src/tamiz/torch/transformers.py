"""Callback that runs the selection inside Hugging Face's Trainer; needs the extra ``tamiz[transformers]``."""

from __future__ import annotations

import math
from typing import Any

import torch

from tamiz._utils.extras import require

require("transformers", "transformers", "tamiz.torch.transformers")

from transformers import TrainerCallback  # noqa: E402
from transformers.trainer_utils import has_length  # noqa: E402

from tamiz.torch.callbacks import MaskCallback, labelled_masks  # noqa: E402


class TransformersMaskCallback(MaskCallback, TrainerCallback):
    """Attach every :class:`~tamiz.torch.FeatureMask` of the model to the Trainer's optimizer for the length of a training.

    Each row of the Trainer's ``log_history`` holds ``n_alive`` and ``gamma_sum`` (``<name>.n_alive`` where there are several
    masks). The masks keep their state in the model, so a training that is resumed from a checkpoint goes on where it
    stopped. Evaluations of an open mask count neither for the best checkpoint nor for early stopping: both begin with
    the first evaluation after all masks are closed. A training that ends with an open mask warns. Of held-out rows,
    ``model(**batch)`` returns the loss. Parameters are those of :class:`~tamiz.torch.callbacks.MaskCallback`.

    Examples
    --------
    >>> TransformersMaskCallback(warmup=5, ramp=60, limit=None, unit="epochs").in_steps(epoch=10, total=1000)
    {'warmup_steps': 50, 'ramp_steps': 600, 'max_steps': None}
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Attach; by now the optimizer is there and a checkpoint has been read."""
        model, batches = kwargs["model"], kwargs["train_dataloader"]

        def loss_of(batch: Any) -> torch.Tensor:
            device = next(model.parameters()).device
            found = model(**{name: part.to(device) for name, part in batch.items()})
            return found["loss"] if isinstance(found, dict) else found[0]

        epoch = (len(batches) if has_length(batches) else math.inf) / args.gradient_accumulation_steps
        self._attach(model, [kwargs["optimizer"]], epoch, state.max_steps, loss_of)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Forget the best evaluation of open masks, and stop if that was asked for."""
        if self._must_forget(kwargs["model"]):
            state.best_metric = state.best_model_checkpoint = state.best_global_step = None
        if self._must_stop(kwargs["model"]):
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Add features alive and the sum of gamma to what is logged."""
        if not self.handles_:
            return
        for label, mask in labelled_masks(kwargs["model"]).items():
            numbers = {f"{label}n_alive": mask.n_alive, f"{label}gamma_sum": float(mask.gamma.detach().sum())}
            # The Trainer has written its row already; the dictionary goes on to the callbacks after this one.
            state.log_history[-1].update(numbers)
            kwargs["logs"].update(numbers)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Detach; warn if a mask is still open."""
        self._end(kwargs["model"])
