"""Callback that runs the selection inside skorch's nets; needs the extra ``tamiz[skorch]``."""

from __future__ import annotations

from typing import Any

from tamiz._utils.extras import require

require("skorch", "skorch", "tamiz.torch.skorch")

from skorch.callbacks import Callback  # noqa: E402

from tamiz.torch.adapters import AttachedMasks, MaskSchedule, all_closed, labelled_masks  # noqa: E402


class SkorchMaskCallback(Callback):
    """Attach every :class:`~tamiz.torch.FeatureMask` of the module to the net's optimizer for the length of a fit.

    Each row of the net's history holds ``n_alive`` at the end of the epoch (``<name>.n_alive`` where there are several
    masks). ``partial_fit`` goes on where the last fit stopped. A fit that ends with an open mask warns.

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

    Examples
    --------
    >>> SkorchMaskCallback(warmup=5, ramp=60, unit="epochs").get_params()
    {'warmup': 5, 'ramp': 60, 'limit': None, 'unit': 'epochs', 'stop_when_closed': False}
    """

    def __init__(
        self,
        warmup: float = 0,
        ramp: float = 2000,
        limit: float | None = None,
        unit: str = "steps",
        stop_when_closed: bool = False,
    ) -> None:
        self.warmup = warmup
        self.ramp = ramp
        self.limit = limit
        self.unit = unit
        self.stop_when_closed = stop_when_closed

    def initialize(self) -> SkorchMaskCallback:
        """Start without an attached mask."""
        self.attached_ = AttachedMasks()
        return self

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Detach what an interrupted fit may have left."""
        self.attached_.detach()

    def on_epoch_begin(self, net: Any, dataset_train: Any = None, **kwargs: Any) -> None:
        """Attach before the first epoch, the first moment at which the training part and its batches are known."""
        if self.attached_:
            return
        schedule = MaskSchedule(self.warmup, self.ramp, self.limit, self.unit)
        batches = len(net.get_iterator(dataset_train, training=True)) if self.unit == "epochs" else 1
        self.attached_.attach(net.module_, [net.optimizer_], schedule.in_steps(batches))

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Record how many features are alive, and stop if that was asked for."""
        for label, mask in labelled_masks(net.module_).items():
            net.history.record(f"{label}n_alive", mask.n_alive)
        if self.stop_when_closed and all_closed(net.module_):
            raise KeyboardInterrupt  # skorch's own sign for an early end, as in its EarlyStopping

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Detach; warn if a mask is still open."""
        self.attached_.end(net.module_)
