"""The losses of the linear engine, each a small compiled piece: the mean over a batch and its derivative by the scores.

A loss takes the scores (one row a sample, one column an output), the targets and the sample weights, writes the derivative
of the weighted mean into ``slope`` and returns the weighted mean. Targets are -1 and +1 for the losses of classes
(softmax: the +1 marks the class), numbers for those of regression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

SQUARED_HINGE, LOGISTIC, SOFTMAX, SQUARED_ERROR, HUBER = range(5)


@njit(cache=True, nogil=True)
def squared_hinge(scores, targets, weights, slope):
    """max(0, 1 - y s)^2, the paper's."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / np.float32(n * outputs)
        for c in range(outputs):
            gap = np.float32(1.0) - targets[i, c] * scores[i, c]
            if gap < 0.0:
                gap = np.float32(0.0)
            total += share * gap * gap
            slope[i, c] = -np.float32(2.0) * share * targets[i, c] * gap
    return total


@njit(cache=True, nogil=True)
def logistic(scores, targets, weights, slope):
    """log(1 + exp(-y s)), without overflow on either side."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / (n * outputs)
        for c in range(outputs):
            margin = targets[i, c] * scores[i, c]
            small = math.exp(-abs(margin))
            total += share * (math.log1p(small) + max(0.0, -margin))
            wrong = small / (1.0 + small) if margin > 0 else 1.0 / (1.0 + small)
            slope[i, c] = np.float32(-share * targets[i, c] * wrong)
    return total


@njit(cache=True, nogil=True)
def softmax(scores, targets, weights, slope):
    """Cross-entropy of the softmax of the scores."""
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
            slope[i, c] = np.float32(share * (probability - hit))
    return total


@njit(cache=True, nogil=True)
def squared_error(scores, targets, weights, slope):
    """(s - y)^2."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / np.float32(n * outputs)
        for c in range(outputs):
            error = scores[i, c] - targets[i, c]
            total += share * error * error
            slope[i, c] = np.float32(2.0) * share * error
    return total


@njit(cache=True, nogil=True)
def huber(scores, targets, weights, slope):
    """e^2 / 2 for |e| < 1, |e| - 1/2 beyond: an outlier pulls no harder than anything one unit away."""
    n, outputs = scores.shape
    total = 0.0
    for i in range(n):
        share = weights[i] / np.float32(n * outputs)
        for c in range(outputs):
            error = scores[i, c] - targets[i, c]
            size = abs(error)
            total += share * (0.5 * error * error if size < 1.0 else size - 0.5)
            slope[i, c] = share * min(max(error, np.float32(-1.0)), np.float32(1.0))
    return total


@njit(cache=True, nogil=True)
def evaluate(kind, scores, targets, weights, slope):
    """The loss with number ``kind``. A number and not a function, so that one compiled engine on disk serves all losses."""
    if kind == SQUARED_HINGE:
        return squared_hinge(scores, targets, weights, slope)
    if kind == LOGISTIC:
        return logistic(scores, targets, weights, slope)
    if kind == SOFTMAX:
        return softmax(scores, targets, weights, slope)
    if kind == SQUARED_ERROR:
        return squared_error(scores, targets, weights, slope)
    return huber(scores, targets, weights, slope)


@dataclass(frozen=True)
class Loss:
    """A loss as estimators see it."""

    kind: int
    """Its number in the compiled engine."""
    function: Callable
    """The compiled piece, for tests and for the curious."""
    task: str
    """"classification" or "regression"."""
    probabilistic: bool
    """Whether scores turn into probabilities."""


LOSSES: dict[str, Loss] = {
    "squared_hinge": Loss(SQUARED_HINGE, squared_hinge, "classification", False),
    "logistic": Loss(LOGISTIC, logistic, "classification", True),
    "softmax": Loss(SOFTMAX, softmax, "classification", True),
    "squared_error": Loss(SQUARED_ERROR, squared_error, "regression", False),
    "huber": Loss(HUBER, huber, "regression", False),
}
