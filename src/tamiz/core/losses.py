"""The losses, each described once: engines, estimators, baselines and the command line read this table.

A loss is a compiled kernel over a batch and the same formula for torch tensors; a test compares the two. To add one, write
both functions and add a :class:`Loss` to ``LOSSES``. All take scores and targets of shape (n_samples, n_outputs). Targets
are -1 and +1 for classes (with ``exclusive`` outputs, one +1 per row), numbers for regression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from tamiz._utils.text import pick

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class Loss:
    """Describe a loss.

    Parameters
    ----------
    name : str
        Value of the parameter ``loss``.
    task : {"classification", "regression"}
        What the targets are.
    kernel : callable
        ``kernel(scores, targets, weights, gradient) -> float``, plain Python that numba compiles: return the weighted mean
        over a batch and write its derivative with respect to the scores. The mean is over samples and outputs.
    torch : callable
        ``torch(outputs, targets)``: the loss of each sample as a tensor, the mean over its outputs.
    gain : callable
        ``gain(outputs, targets)`` for torch: large where the loss is small, for the saliency of inputs (SFS).
    probabilities : callable or None, default=None
        Scores (n_samples, n_outputs) to probabilities of as many outputs, for several classes; None: the loss has none.
    slope : float, default=1.0
        Factor of a single score before the logistic function. Scores of the squared hinge tend to 2 p - 1, so that with a
        factor of 2 the function has their slope at p = 1/2.
    exclusive : bool, default=False
        Whether the outputs compete (softmax): one output per class also for two classes, no multi-label targets.
    robust : bool, default=False
        Whether regression targets are scaled by median and median absolute deviation.
    """

    name: str
    task: Task
    kernel: Callable[..., float]
    torch: Callable[[Any, Any], Any]
    gain: Callable[[Any, Any], Any]
    probabilities: Callable[[np.ndarray], np.ndarray] | None = None
    slope: float = 1.0
    exclusive: bool = False
    robust: bool = False

    @property
    def compiled(self) -> Any:
        """Kernel as a compiled function that compiled code can be handed; compiled on first use."""
        return _compiled(self.kernel)

    def encode(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Class numbers 0 .. C-1 as targets: one column for each class, one for two classes that do not compete.

        Examples
        --------
        >>> get_loss("logistic").encode(np.array([0, 1]), 2).tolist()
        [[-1.0], [1.0]]
        >>> get_loss("softmax").encode(np.array([0, 1]), 2).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
        """
        if self.task != "classification":
            raise ValueError(
                f"The loss {self.name!r} is for regression; for classes use one of {names_of('classification')}."
            )
        hit = np.asarray(codes)[:, None] == np.arange(n_classes)
        signs = np.where(hit, np.float32(1), np.float32(-1))
        return np.ascontiguousarray(signs[:, 1:]) if n_classes == 2 and not self.exclusive else signs

    def decision(self, scores: np.ndarray) -> np.ndarray:
        """Scores with two competing outputs reduced to their difference, of which the link is the logistic one.

        Examples
        --------
        >>> get_loss("softmax").decision(np.array([[1.0, 3.0]])).tolist()
        [[2.0]]
        """
        return scores[:, 1:] - scores[:, :1] if self.exclusive and scores.shape[1] == 2 else scores

    def class_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probability of each class; one column of scores is that of the second of two classes.

        Examples
        --------
        >>> get_loss("logistic").class_probabilities(np.array([[0.0]])).tolist()
        [[0.5, 0.5]]
        >>> get_loss("softmax").class_probabilities(np.array([[0.0, 0.0, 0.0, 0.0]])).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
        """
        if self.probabilities is None:
            known = ", ".join(name for name, loss in LOSSES.items() if loss.probabilities is not None)
            raise ValueError(f"The loss {self.name!r} gives no probabilities; these do: {known}.")
        if scores.shape[1] > 1:
            return self.probabilities(scores)
        from scipy.special import expit  # when it is used: the command line starts without scipy

        scores = self.slope * scores
        return np.concatenate([expit(-scores), expit(scores)], axis=1)


@cache
def _compiled(kernel: Callable[..., float]) -> Any:
    from numba import types

    from tamiz._utils.compiling import compile_argument

    table = types.Array(types.float32, 2, "C")
    signature = types.float64(table, table, types.Array(types.float32, 1, "C"), table)
    return compile_argument(kernel, signature)


def _functional() -> Any:
    from torch.nn import functional

    return functional


def squared_hinge(scores, targets, weights, gradient):
    """Compute max(0, 1 - y s)^2, the loss of the paper."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / np.float32(n * outputs)
        for c in range(outputs):
            gap = np.float32(1.0) - targets[i, c] * scores[i, c]
            if gap < 0.0:  # not max(), which would turn a NaN into 0
                gap = np.float32(0.0)
            total += share * gap * gap
            gradient[i, c] = -np.float32(2.0) * share * targets[i, c] * gap
    return total


def logistic(scores, targets, weights, gradient):
    """Compute log(1 + exp(-y s)), without overflow on either side."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / (n * outputs)
        for c in range(outputs):
            margin = targets[i, c] * scores[i, c]
            small = math.exp(-abs(margin))
            total += share * (math.log1p(small) + max(0.0, -margin))
            wrong = small / (1.0 + small) if margin > 0 else 1.0 / (1.0 + small)
            gradient[i, c] = np.float32(-share * targets[i, c] * wrong)
    return total


def softmax(scores, targets, weights, gradient):
    """Compute the cross-entropy of the softmax of the scores."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / n
        top = scores[i, 0]
        for c in range(1, outputs):
            top = max(top, scores[i, c])
        mass = 0.0
        for c in range(outputs):
            mass += math.exp(scores[i, c] - top)
        for c in range(outputs):
            probability = math.exp(scores[i, c] - top) / mass
            hit = 1.0 if targets[i, c] > 0 else 0.0
            if hit > 0:
                total += share * (math.log(mass) - (scores[i, c] - top))
            gradient[i, c] = np.float32(share * (probability - hit))
    return total


def squared_error(scores, targets, weights, gradient):
    """Compute (s - y)^2."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / np.float32(n * outputs)
        for c in range(outputs):
            error = scores[i, c] - targets[i, c]
            total += share * error * error
            gradient[i, c] = np.float32(2.0) * share * error
    return total


def huber(scores, targets, weights, gradient):
    """Compute e^2 / 2 for |e| < 1, |e| - 1/2 beyond: the gradient of an outlier is bounded."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / np.float32(n * outputs)
        for c in range(outputs):
            error = scores[i, c] - targets[i, c]
            size = abs(error)
            total += share * (0.5 * error * error if size < 1.0 else size - 0.5)
            gradient[i, c] = share * min(max(error, np.float32(-1.0)), np.float32(1.0))
    return total


#: How far the gains keep probabilities away from 0 and 1.
_MARGIN = 1e-7


def _clip_straight_through(values: Any, low: float, high: float) -> Any:
    """Clip to [low, high] with a gradient of 1 everywhere: samples that a network is sure of count too."""
    return values + (values.clamp(low, high) - values).detach()


def _hinge_gain(outputs: Any, targets: Any) -> Any:
    """Return ``(1 + y s)_+^2`` with s clipped to [-1, 1]."""
    return (1.0 + targets * _clip_straight_through(outputs, -1.0, 1.0)).relu().square().mean(1)


def _logistic_gain(outputs: Any, targets: Any) -> Any:
    """Return ``-log(1 - p)``, p the probability of the true label."""
    probability = (targets * outputs).sigmoid()
    return -(-_clip_straight_through(probability, _MARGIN, 1.0 - _MARGIN)).log1p().mean(1)


def _softmax_gain(outputs: Any, targets: Any) -> Any:
    """Return ``-log(1 - p)``, p the probability of the true class."""
    true_class = outputs.softmax(1).gather(1, targets.argmax(1)[:, None])
    return -(-_clip_straight_through(true_class, _MARGIN, 1.0 - _MARGIN)).log1p().squeeze(1)


def _error_gain(outputs: Any, targets: Any) -> Any:
    """Return ``1 / ((y - s)^2 + 1)``."""
    return (1.0 / ((targets - outputs).square() + 1.0)).mean(1)


def _one_against_rest(scores: np.ndarray) -> np.ndarray:
    from scipy.special import expit  # when it is used: the command line starts without scipy

    each = np.maximum(expit(scores), np.finfo(np.float64).tiny)
    return each / each.sum(axis=1, keepdims=True)


def _shares(scores: np.ndarray) -> np.ndarray:
    from scipy.special import softmax

    return softmax(scores, axis=1)


LOSSES: dict[str, Loss] = {
    "squared_hinge": Loss(
        "squared_hinge",
        "classification",
        squared_hinge,
        torch=lambda outputs, targets: (1.0 - targets * outputs).relu().square().mean(1),
        gain=_hinge_gain,
        probabilities=lambda scores: _one_against_rest(2.0 * scores),
        slope=2.0,
    ),
    "logistic": Loss(
        "logistic",
        "classification",
        logistic,
        torch=lambda outputs, targets: _functional().softplus(-targets * outputs).mean(1),
        gain=_logistic_gain,
        probabilities=_one_against_rest,
    ),
    "softmax": Loss(
        "softmax",
        "classification",
        softmax,
        torch=lambda outputs, targets: _functional().cross_entropy(outputs, targets.argmax(1), reduction="none"),
        gain=_softmax_gain,
        probabilities=_shares,
        exclusive=True,
    ),
    "squared_error": Loss(
        "squared_error",
        "regression",
        squared_error,
        torch=lambda outputs, targets: (targets - outputs).square().mean(1),
        gain=_error_gain,
    ),
    "huber": Loss(
        "huber",
        "regression",
        huber,
        torch=lambda outputs, targets: _functional().huber_loss(outputs, targets, reduction="none").mean(1),
        gain=_error_gain,
        robust=True,
    ),
}


def get_loss(name: str) -> Loss:
    """Loss of that name.

    Examples
    --------
    >>> get_loss("huber").task
    'regression'
    >>> get_loss("softmaks")
    Traceback (most recent call last):
    tamiz.errors.UnknownNameError: Unknown loss 'softmaks'. Did you mean 'softmax'? There are: squared_hinge, logistic, ...
    """
    return LOSSES[name] if name in LOSSES else pick(name, LOSSES, "loss")


def names_of(task: str) -> list[str]:
    """Names of the losses for a task.

    Examples
    --------
    >>> names_of("regression")
    ['squared_error', 'huber']
    """
    return [name for name, loss in LOSSES.items() if loss.task == task]
