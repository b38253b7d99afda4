"""Callback that runs the selection inside skorch's nets; needs the extra ``tamiz[skorch]``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from tamiz._utils.extras import require

require("skorch", "skorch", "tamiz.torch.skorch")

from skorch.callbacks import Callback  # noqa: E402

from tamiz.torch.callbacks import AttachedMasks, all_closed, labelled_masks  # noqa: E402


class SkorchMaskCallback(Callback):
    """Attach every :class:`~tamiz.torch.FeatureMask` of the module to the net's optimizer for the length of a fit.

    Each row of the net's history holds ``n_alive`` at the end of the epoch (``<name>.n_alive`` where there are several
    masks). ``partial_fit`` goes on where the last fit stopped. Scores of an open mask count neither for ``EarlyStopping`` nor
    for the best ``Checkpoint``; list this callback before those. A fit that ends with an open mask warns.

    Parameters
    ----------
    warmup : float, default=0
        Length of the warm-up, see :meth:`FeatureMask.attach`.
    ramp : float, default=2000
        Length of the ramp.
    limit : float or None, default=None
        Length of the selection after which the largest are kept; None: four ramps.
    unit : {"steps", "epochs"}, default="steps"
        What these are counted in.
    stop_when_closed : bool, default=False
        Whether to end the fit when all masks are closed; otherwise the weights are trained on.
    held_out : iterable of (X, y) or None, default=None
        Batches of rows that move gamma and do not train the weights, one for each step: see :meth:`FeatureMask.held_out`.

    Examples
    --------
    >>> SkorchMaskCallback(warmup=5, ramp=60, unit="epochs").get_params()["ramp"]
    60
    """

    def __init__(
        self,
        warmup: float = 0,
        ramp: float = 2000,
        limit: float | None = None,
        unit: str = "steps",
        stop_when_closed: bool = False,
        held_out: Iterable[Any] | None = None,
    ) -> None:
        self.warmup = warmup
        self.ramp = ramp
        self.limit = limit
        self.unit = unit
        self.stop_when_closed = stop_when_closed
        self.held_out = held_out

    def initialize(self) -> SkorchMaskCallback:
        """Start without an attached mask."""
        self.masks_ = AttachedMasks(self.warmup, self.ramp, self.limit, self.unit, self.held_out)
        return self

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Detach what an interrupted fit may have left."""
        self.masks_.detach()

    def on_epoch_begin(self, net: Any, dataset_train: Any = None, **kwargs: Any) -> None:
        """Attach before the first epoch, when the length of the training part is known; forget scores of open masks."""
        if not self.masks_:
            batches = len(net.get_iterator(dataset_train, training=True)) if self.unit == "epochs" else 1
            self.masks_.attach(net.module_, [net.optimizer_], batches)
        if not self.masks_.must_forget(net.module_):
            return
        for _, callback in net.callbacks_:
            worst = float("inf") if getattr(callback, "lower_is_better", True) else -float("inf")
            if hasattr(callback, "best_score_"):
                callback.best_score_ = worst
            if hasattr(callback, "dynamic_threshold_"):
                callback.dynamic_threshold_, callback.misses_ = worst, 0

    def on_grad_computed(self, net: Any, named_parameters: Any, training: bool = False, **kwargs: Any) -> None:
        """Send the gradient of held-out rows to gamma."""
        if training:
            self.masks_.move_by_held_out_rows(net.module_, lambda batch: self._loss(net, *batch))

    @staticmethod
    def _loss(net: Any, X: Any, y: Any) -> torch.Tensor:
        return net.get_loss(net.infer(X), y, X=X, training=True)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Record how many features are alive, and stop if that was asked for."""
        for label, mask in labelled_masks(net.module_).items():
            net.history.record(f"{label}n_alive", mask.n_alive)
        if self.stop_when_closed and all_closed(net.module_):
            raise KeyboardInterrupt  # skorch's own sign for an early end, as in its EarlyStopping

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Detach; warn if a mask is still open."""
        self.masks_.end(net.module_)
