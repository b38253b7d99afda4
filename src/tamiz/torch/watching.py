"""Watch a mask while it is trained: a summary, a picture, and numbers for TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tamiz._utils.extras import require
from tamiz.core import Slot
from tamiz.torch.mask import FeatureMask


@dataclass(frozen=True)
class MaskSummary:
    """Hold where a mask stands; printed as a short table.

    Parameters
    ----------
    phase : {"warm-up", "selection", "closing", "closed"}
        What happens to gamma now.
    step : int
        Optimizer steps since the start of the warm-up.
    n_features, n_alive, n_features_to_select : int
        All features, those not eliminated, and M; with a strength, M is 0 until the closing begins.
    gamma_sum : float
        Sum of gamma; M once the mask is closed.
    penalty : float
        ``L_12 + L_M``; 0 once the mask is closed.
    best : list of tuple of (str, float)
        Names and gamma of the features that are best now; empty as long as nothing tells them apart.
    strength : float or None, default=None
        Price of a feature, where the loss decides how many are kept.
    """

    phase: str
    step: int
    n_features: int
    n_alive: int
    n_features_to_select: int
    gamma_sum: float
    penalty: float
    best: list[tuple[str, float]]
    strength: float | None = None

    def __str__(self) -> str:
        aim = f"{self.n_features_to_select:,} to select"
        if self.strength is not None:
            aim = f"strength {self.strength:g}"
        lines = [
            f"{self.phase}, step {self.step:,}: {self.n_alive:,} of {self.n_features:,} features alive, {aim}",
            f"sum of gamma {self.gamma_sum:.4g}, penalty {self.penalty:.4g}",
        ]
        width = max((len(name) for name, _ in self.best), default=0)
        lines += [f"{rank:>5}  {name:<{width}}  {gamma:.3f}" for rank, (name, gamma) in enumerate(self.best, start=1)]
        return "\n".join(lines)


def _phase(mask: FeatureMask) -> str:
    if mask.closed:
        return "closed"
    if mask.step <= mask.rule.warmup_steps and not int(mask.counters[Slot.AGE]):
        return "warm-up"
    return "selection" if int(mask.counters[Slot.OPEN]) else "closing"


def _check_names(mask: FeatureMask, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [f"feature {index}" for index in range(mask.n_features)]
    if len(names) != mask.n_features:
        raise ValueError(f"names must name all {mask.n_features} features, got {len(names)}")
    return [str(name) for name in names]


def summarize_mask(mask: FeatureMask, names: Sequence[str] | None = None, n_best: int = 10) -> MaskSummary:
    """Return where a mask stands; :meth:`FeatureMask.summary` calls this.

    Parameters
    ----------
    mask : FeatureMask
        At any moment.
    names : sequence of str or None, default=None
        Names of all features; None numbers them.
    n_best : int, default=10
        How many of the best features to list.

    Examples
    --------
    >>> from tamiz.torch import FeatureMask
    >>> print(summarize_mask(FeatureMask(3, 1)))
    warm-up, step 0: 3 of 3 features alive, 1 to select
    sum of gamma 3, penalty 4
    """
    labels = _check_names(mask, names)
    penalty = float(mask.penalty())
    gamma = mask.gamma.detach().reshape(-1).cpu()
    order = mask.ranking().reshape(-1).cpu().argsort()[:n_best].tolist() if _has_order(mask) else []
    return MaskSummary(
        phase=_phase(mask),
        step=mask.step,
        n_features=mask.n_features,
        n_alive=mask.n_alive,
        n_features_to_select=mask.n_features_to_select,
        gamma_sum=float(gamma.sum()),
        penalty=penalty,
        best=[(labels[index], float(gamma[index])) for index in order],
        strength=mask.rule.strength,
    )


def _has_order(mask: FeatureMask) -> bool:
    return mask.closed or bool(int(mask.counters[Slot.AGE]))


def plot_mask(mask: FeatureMask, names: Sequence[str] | None = None, ax: Any = None, n_shown: int = 50) -> Any:
    """Draw gamma: as an image where the mask has rows and columns, else as bars, the best first.

    Parameters
    ----------
    mask : FeatureMask
        At any moment.
    names : sequence of str or None, default=None
        Names of all features, for the bars; None numbers them.
    ax : matplotlib axes, default=None
        Axes to draw on; None makes a new figure.
    n_shown : int, default=50
        How many bars to draw.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from tamiz.torch import FeatureMask
    >>> plot_mask(FeatureMask((1, 4, 4), 2)).get_title()
    'gamma: 16 of 16 alive, 2 to select'
    """
    require("matplotlib", "plot", "Drawing")
    from matplotlib import pyplot

    labels = _check_names(mask, names)
    mask.penalty()  # a gamma that was changed from outside is set back first
    gamma = mask.gamma.detach().cpu().float()
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 4), layout="constrained")
    strength = mask.rule.strength
    aim = f"{mask.n_features_to_select:,} to select" if strength is None else f"strength {strength:g}"
    ax.set_title(f"gamma: {mask.n_alive:,} of {mask.n_features:,} alive, {aim}")
    if len(mask.shape) > 1 and min(mask.shape[-2:]) > 1:
        image = gamma.reshape(-1, *gamma.shape[-2:]).mean(dim=0)  # the mean over channels
        ax.imshow(image.numpy(), vmin=0.0, vmax=1.0, cmap="Greys")
        ax.set_xticks([])
        ax.set_yticks([])
        return ax
    order = mask.ranking().reshape(-1).cpu().argsort()[:n_shown]
    ax.barh(range(order.numel()), gamma.reshape(-1)[order].numpy(), color="#0b6e70")
    ax.set_yticks(range(order.numel()), [labels[index] for index in order.tolist()], fontsize=7)
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.05)
    ax.set_xlabel("gamma")
    return ax


def log_mask(
    mask: FeatureMask, optimizer: torch.optim.Optimizer, writer: Any, *, every: int = 100, tag: str = "mask"
) -> Any:
    """Write how the mask moves to TensorBoard: features alive, the sum of gamma, and gamma as a histogram.

    Parameters
    ----------
    mask : FeatureMask
        A mask that is attached to the optimizer.
    optimizer : torch.optim.Optimizer
        Its steps are counted.
    writer : SummaryWriter
        Anything with ``add_scalar`` and ``add_histogram``, such as ``torch.utils.tensorboard.SummaryWriter``.
    every : int, default=100
        Write at each multiple of so many steps, and when the mask closes.
    tag : str, default="mask"
        What the names begin with.

    Returns
    -------
    handle
        ``remove()`` ends it.

    Examples
    --------
    >>> import torch
    >>> from tamiz.torch import FeatureMask
    >>> class Writer:
    ...     def add_scalar(self, name, value, step):
    ...         print(name, value, step)
    ...     def add_histogram(self, name, values, step):
    ...         print(name, tuple(values.shape), step)
    >>> mask = FeatureMask(3, 1)
    >>> optimizer = torch.optim.SGD(mask.parameters(), lr=0.1)
    >>> _ = mask.attach(optimizer, warmup_steps=10)
    >>> handle = log_mask(mask, optimizer, Writer(), every=1)
    >>> mask(torch.ones(2, 3)).sum().backward()
    >>> optimizer.step()
    mask/alive 3 1
    mask/sum 3.0 1
    mask/gamma (3,) 1
    """
    if every < 1:
        raise ValueError(f"every must be at least 1, got {every}")
    was_closed = mask.closed

    def write(*_: Any) -> None:
        nonlocal was_closed
        closes, was_closed = mask.closed and not was_closed, mask.closed
        step = mask.step
        if step % every and not closes:
            return
        gamma = mask.gamma.detach().reshape(-1)
        writer.add_scalar(f"{tag}/alive", mask.n_alive, step)
        writer.add_scalar(f"{tag}/sum", float(gamma.sum()), step)
        writer.add_histogram(f"{tag}/gamma", gamma, step)

    return optimizer.register_step_post_hook(torch.compiler.disable(write))
