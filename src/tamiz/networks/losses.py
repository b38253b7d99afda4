"""Losses by name, as torch functions of outputs, targets and sample weights.

Each returns the weighted mean over the samples, ``sum(w * l) / sum(w)``, or with ``reduction="none"`` one
loss for each sample. A sample's loss is the mean over its outputs. Targets of "squared_hinge" and "logistic"
are -1 and +1, one column for two classes and one for each class (one against the rest) for more; of "softmax"
class numbers; of the others numbers.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

Loss = Callable[..., Tensor]


def _reduce(losses: Tensor, sample_weight: Tensor | None, reduction: str) -> Tensor:
    if reduction == "none":
        return losses if sample_weight is None else losses * sample_weight
    if reduction != "mean":
        raise ValueError(f"reduction must be 'mean' or 'none', got {reduction!r}.")
    if sample_weight is None:
        return losses.mean()
    return torch.dot(losses, sample_weight) / sample_weight.sum()


def squared_hinge(
    outputs: Tensor, targets: Tensor, sample_weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Mean over outputs of ``max(0, 1 - y * s)^2``, targets -1 and +1.

    Examples
    --------
    >>> squared_hinge(torch.tensor([[0.5], [-2.0]]), torch.tensor([[1.0], [1.0]])).item()  # (0.25 + 9) / 2
    4.625
    """
    return _reduce(torch.relu(1.0 - targets * outputs).square().mean(1), sample_weight, reduction)


def logistic(outputs: Tensor, targets: Tensor, sample_weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """Mean over outputs of ``log(1 + exp(-y * s))``, targets -1 and +1.

    Examples
    --------
    >>> round(logistic(torch.tensor([[0.0]]), torch.tensor([[1.0]])).item(), 4)  # log 2
    0.6931
    """
    return _reduce(functional.softplus(-targets * outputs).mean(1), sample_weight, reduction)


def softmax(outputs: Tensor, targets: Tensor, sample_weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """Cross-entropy of the softmax of the outputs, targets class numbers.

    Examples
    --------
    >>> round(softmax(torch.zeros(2, 4), torch.tensor([0, 3])).item(), 4)  # log 4
    1.3863
    """
    return _reduce(functional.cross_entropy(outputs, targets, reduction="none"), sample_weight, reduction)


def squared_error(
    outputs: Tensor, targets: Tensor, sample_weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Mean over outputs of ``(y - s)^2``.

    Examples
    --------
    >>> squared_error(torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1), torch.tensor([3.0, 1.0])).item()
    3.0
    """
    return _reduce((targets - outputs).square().mean(1), sample_weight, reduction)


def huber(outputs: Tensor, targets: Tensor, sample_weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """Mean over outputs of Huber's loss: ``r^2 / 2`` up to a residual of 1, ``|r| - 1/2`` beyond.

    Examples
    --------
    >>> huber(torch.tensor([[0.5], [-3.0]]), torch.zeros(2, 1), reduction="none").tolist()
    [0.125, 2.5]
    """
    return _reduce(functional.huber_loss(outputs, targets, reduction="none").mean(1), sample_weight, reduction)


_LOSSES: dict[str, Loss] = {
    "squared_hinge": squared_hinge,
    "logistic": logistic,
    "softmax": softmax,
    "squared_error": squared_error,
    "huber": huber,
}

#: Losses whose targets are classes.
CLASSIFICATION_LOSSES = ("squared_hinge", "logistic", "softmax")


def available_losses() -> list[str]:
    """The names of all losses.

    Examples
    --------
    >>> available_losses()
    ['squared_hinge', 'logistic', 'softmax', 'squared_error', 'huber']
    """
    return list(_LOSSES)


def get_loss(name: str) -> Loss:
    """The loss of that name.

    Examples
    --------
    >>> get_loss("softmaks")
    Traceback (most recent call last):
    ValueError: Unknown loss 'softmaks'; did you mean 'softmax'? Known: squared_hinge, logistic, ...
    """
    if name in _LOSSES:
        return _LOSSES[name]
    close = difflib.get_close_matches(str(name), _LOSSES, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"Unknown loss {name!r}; {hint}Known: {', '.join(_LOSSES)}.")


def n_outputs_for(loss: str, n_classes: int) -> int:
    """How many outputs a network needs for a loss and a number of classes.

    Examples
    --------
    >>> n_outputs_for("squared_hinge", 2), n_outputs_for("squared_hinge", 3), n_outputs_for("softmax", 2)
    (1, 3, 2)
    """
    return 1 if n_classes == 2 and loss != "softmax" else n_classes


def encode_classes(codes: np.ndarray, n_classes: int, loss: str) -> Tensor:
    """Class numbers 0 .. C-1 in the form that a loss wants.

    Examples
    --------
    >>> import numpy as np
    >>> encode_classes(np.array([0, 1]), 2, "squared_hinge").tolist()
    [[-1.0], [1.0]]
    >>> encode_classes(np.array([0, 2]), 3, "logistic").tolist()
    [[1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]]
    >>> encode_classes(np.array([0, 2]), 3, "softmax").tolist()
    [0, 2]
    """
    get_loss(loss)
    if loss not in CLASSIFICATION_LOSSES:
        raise ValueError(f"The loss {loss!r} is for regression; for classes take one of {CLASSIFICATION_LOSSES}.")
    numbers = torch.as_tensor(np.asarray(codes, dtype=np.int64))
    if loss == "softmax":
        return numbers
    signs = functional.one_hot(numbers, n_classes).to(torch.float32) * 2.0 - 1.0
    return signs[:, 1:].contiguous() if n_classes == 2 else signs
