"""Callback that runs the selection inside skorch's nets; needs the extra ``tamiz[skorch]``."""

from __future__ import annotations

from typing import Any

from tamiz._utils.extras import require

require("skorch", "skorch", "tamiz.torch.skorch")

from skorch.callbacks import Callback  # noqa: E402

from tamiz.torch.callbacks import MaskCallback, labelled_masks  # noqa: E402


class SkorchMaskCallback(MaskCallback, Callback):
    """Attach every :class:`~tamiz.torch.FeatureMask` of the module to the net's optimizer for the length of a fit.

    Each row of the net's history holds ``n_alive`` at the end of the epoch (``<name>.n_alive`` where there are several
    masks). ``partial_fit`` goes on where the last fit stopped. Scores of an open mask count neither for ``EarlyStopping`` nor
    for the best ``Checkpoint``; list this callback before those. A fit that ends with an open mask warns. Held-out rows are
    batches ``(X, y)``. Parameters are those of :class:`~tamiz.torch.callbacks.MaskCallback`.

    Examples
    --------
    >>> SkorchMaskCallback(warmup=5, ramp=60, unit="epochs").get_params()["ramp"]
    60
    """

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Detach what an interrupted fit may have left."""
        self._detach()

    def on_epoch_begin(self, net: Any, dataset_train: Any = None, **kwargs: Any) -> None:
        """Attach before the first epoch, when the length of the training part is known; forget scores of open masks."""

        def loss_of(batch: Any) -> Any:
            return net.get_loss(net.infer(batch[0]), batch[1], X=batch[0], training=True)

        if not self.handles_:
            epoch = 1 if self.unit == "steps" else len(net.get_iterator(dataset_train, training=True))
            self._attach(net.module_, [net.optimizer_], epoch, epoch * net.max_epochs, loss_of)
        if not self._must_forget(net.module_):
            return
        for _, callback in net.callbacks_:
            worst = float("inf") if getattr(callback, "lower_is_better", True) else -float("inf")
            if hasattr(callback, "best_score_"):
                callback.best_score_ = worst
            if hasattr(callback, "dynamic_threshold_"):
                callback.dynamic_threshold_, callback.misses_ = worst, 0

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Record how many features are alive, and stop if that was asked for."""
        for label, mask in labelled_masks(net.module_).items():
            net.history.record(f"{label}n_alive", mask.n_alive)
        if self._must_stop(net.module_):
            raise KeyboardInterrupt  # skorch's own sign for an early end, as in its EarlyStopping

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Detach; warn if a mask is still open."""
        self._end(net.module_)
