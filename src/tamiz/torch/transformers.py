"""Callback that runs the selection inside Hugging Face's Trainer; needs the extra ``tamiz[transformers]``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from tamiz._utils.extras import require

require("transformers", "transformers", "tamiz.torch.transformers")

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments  # noqa: E402
from transformers.trainer_utils import has_length  # noqa: E402

from tamiz.torch.callbacks import AttachedMasks, all_closed, labelled_masks  # noqa: E402


class TransformersMaskCallback(TrainerCallback):
    """Attach every :class:`~tamiz.torch.FeatureMask` of the model to the Trainer's optimizer for the length of a training.

    Each row of the Trainer's ``log_history`` holds ``n_alive`` and ``gamma_sum`` (``<name>.n_alive`` where there are several
    masks). The masks keep their state in the model, so a training that is resumed from a checkpoint goes on where it
    stopped. Evaluations of an open mask count neither for the best checkpoint nor for early stopping: both begin with
    the first evaluation after all masks are closed. A training that ends with an open mask warns.

    Parameters
    ----------
    warmup : float, default=0.1
        Length of the warm-up, see :meth:`FeatureMask.attach`.
    ramp : float, default=0.3
        Length of the ramp.
    limit : float or None, default=0.6
        Length of the selection after which the largest are kept; None: four ramps.
    unit : {"fraction", "steps", "epochs"}, default="fraction"
        What these are counted in; "fraction" is that of the Trainer's ``max_steps``. Steps are steps of the optimizer:
        batches divided by ``gradient_accumulation_steps``.
    stop_when_closed : bool, default=False
        Whether to end the training when all masks are closed; otherwise the weights are trained on.
    held_out : iterable of batches or None, default=None
        Rows that move gamma and do not train the weights, for example a second ``DataLoader``; ``model(**batch)`` returns
        their loss. One batch goes with each step, see :meth:`FeatureMask.held_out`.

    Examples
    --------
    >>> TransformersMaskCallback(warmup=5, ramp=60, limit=None, unit="epochs").masks.in_steps(10)
    {'warmup_steps': 50, 'ramp_steps': 600, 'max_steps': None}
    """

    def __init__(
        self,
        warmup: float = 0.1,
        ramp: float = 0.3,
        limit: float | None = 0.6,
        *,
        unit: str = "fraction",
        stop_when_closed: bool = False,
        held_out: Iterable[Any] | None = None,
    ) -> None:
        self.masks = AttachedMasks(warmup, ramp, limit, unit, held_out, ("fraction", "steps", "epochs"))
        self.stop_when_closed = stop_when_closed

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Attach; by now the optimizer is there and a checkpoint has been read."""
        self.masks.detach()  # the Trainer does not tell its callbacks about a training that ended with an error
        length: float = state.max_steps
        if self.masks.unit == "epochs":
            batches = kwargs["train_dataloader"]
            n_batches = len(batches) if has_length(batches) else math.inf
            length = n_batches / args.gradient_accumulation_steps
        self.masks.attach(kwargs["model"], [kwargs["optimizer"]], length)

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Send the gradient of held-out rows to gamma."""
        model = kwargs["model"]

        def loss_of(batch: Any) -> torch.Tensor:
            device = next(model.parameters()).device
            found = model(**{name: part.to(device) for name, part in batch.items()})
            return found["loss"] if isinstance(found, dict) else found[0]

        self.masks.move_by_held_out_rows(model, loss_of)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Forget the best evaluation of open masks, and stop if that was asked for."""
        if self.masks.must_forget(kwargs["model"]):
            state.best_metric = state.best_model_checkpoint = state.best_global_step = None
        if self.stop_when_closed and all_closed(kwargs["model"]):
            control.should_training_stop = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Add features alive and the sum of gamma to what is logged."""
        if not self.masks:
            return
        for label, mask in labelled_masks(kwargs["model"]).items():
            numbers = {f"{label}n_alive": mask.n_alive, f"{label}gamma_sum": float(mask.gamma.detach().sum())}
            # The Trainer has written its row already; the dictionary goes on to the callbacks after this one.
            state.log_history[-1].update(numbers)
            kwargs["logs"].update(numbers)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Detach; warn if a mask is still open."""
        self.masks.end(kwargs["model"])
