"""Metrics of predictions: records that carry their limits, and the functions behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import r2_score


@dataclass(frozen=True)
class Metric:
    """Describe a metric: its name, its function and the values it can have.

    Parameters
    ----------
    name : str
        Name that tables and pages show.
    function : callable
        ``function(y_true, y_predicted)`` returns a float.
    low, high : float, default=-inf and inf
        Smallest and largest value the metric can have; intervals are cut there.
    chance : callable or None, default=None
        ``chance(y_true)`` returns the expected value of a prediction that knows nothing of the features.
    greater_is_better : bool, default=True
        Whether a larger value is better.

    Examples
    --------
    >>> BALANCED_ACCURACY([0, 0, 0, 1], [0, 0, 1, 1]), BALANCED_ACCURACY.limits
    (0.8333333333333333, (0.0, 1.0))
    >>> BALANCED_ACCURACY.chance(["a", "b", "b", "c", "c"])
    0.3333333333333333
    """

    name: str
    function: Callable[[Any, Any], float]
    low: float = -math.inf
    high: float = math.inf
    chance: Callable[[Any], float] | None = None
    greater_is_better: bool = True

    def __call__(self, y_true: Any, y_predicted: Any) -> float:
        """Return the score of a prediction."""
        return self.function(y_true, y_predicted)

    @property
    def limits(self) -> tuple[float, float]:
        """Smallest and largest value the metric can have."""
        return self.low, self.high


def balanced_accuracy(y_true: Any, y_predicted: Any) -> float:
    """Return the mean recall over the classes that occur in ``y_true``.

    Computed here because scikit-learn's function warns when a class is predicted that the test fold lacks, which is an
    ordinary event in small folds, and warnings cannot be silenced safely while folds run in threads.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 1, 1])
    0.8333333333333333
    """
    y_true, y_predicted = np.asarray(y_true), np.asarray(y_predicted)
    if y_true.size == 0:
        raise ValueError("There are no rows to score.")
    _, codes = np.unique(y_true, return_inverse=True)
    hits = np.bincount(codes, weights=y_true == y_predicted)
    return float(np.mean(hits / np.bincount(codes)))


def r_squared(y_true: Any, y_predicted: Any) -> float:
    """Return scikit-learn's R², or NaN where the target does not vary (scikit-learn returns 0 or 1 there).

    Examples
    --------
    >>> r_squared([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), r_squared([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    (1.0, 0.0)
    """
    return math.nan if np.ptp(y_true) == 0 else float(r2_score(y_true, y_predicted))


BALANCED_ACCURACY = Metric(
    "balanced accuracy", balanced_accuracy, 0.0, 1.0, chance=lambda y_true: 1.0 / np.unique(y_true).size
)
R_SQUARED = Metric("R²", r_squared, high=1.0, chance=lambda y_true: 0.0)
#: Metric of each task.
METRICS = {"classification": BALANCED_ACCURACY, "regression": R_SQUARED}
