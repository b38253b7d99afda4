"""Score of rows that took no part in anything, with a bootstrap interval over these rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tamiz.evaluation.intervals import Interval, exact_interval
from tamiz.evaluation.metrics import Metric


def holdout_interval(
    metric: Metric,
    y_true: np.ndarray,
    response: np.ndarray,
    y_train: np.ndarray,
    sample_weight: np.ndarray | None = None,
    n_draws: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return the score of held-out rows with its 95 % interval.

    The interval is the percentile bootstrap over the rows, within classes; where every draw gives the same score it is the
    exact bound on the number of rows.

    Parameters
    ----------
    metric : Metric
        Metric.
    y_true, response : ndarray
        Targets of the rows, and what the metric reads of the model.
    y_train : ndarray
        Targets of the training rows, for R².
    sample_weight : ndarray or None, default=None
        Weights of the rows.
    n_draws : int, default=1000
        Draws of the bootstrap.
    seed : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> from tamiz.evaluation.metrics import BALANCED_ACCURACY
    >>> y = np.repeat([0, 1], 10)
    >>> holdout_interval(BALANCED_ACCURACY, y, y, y)
    Interval(value=1.0, low=0.83..., high=1.0)
    """
    generator = np.random.default_rng(seed)
    strata = _strata(metric, y_true)
    value = _score(metric, y_true, response, y_train, sample_weight, np.arange(len(y_true)))
    if len(y_true) < 2 or not math.isfinite(value):
        return Interval(value)
    draws = np.array(
        [
            _score(
                metric, y_true, response, y_train, sample_weight,
                np.concatenate([generator.choice(rows, rows.size) for rows in strata]),
            )
            for _ in range(n_draws)
        ]
    )  # fmt: skip
    known = draws[np.isfinite(draws)]
    if known.size and np.ptp(known) > 1e-12:
        low, high = np.quantile(known, [0.025, 0.975])
        return Interval(value, float(low), float(high))
    if metric.count_rows is None:
        return Interval(value)
    return exact_interval(value, metric.count_rows(y_true))


def check_test_target(y_test: np.ndarray, y_train: np.ndarray, task: str) -> None:
    """Raise if held-out targets cannot be scored: other classes than those learnt, or another number of targets.

    Examples
    --------
    >>> check_test_target(np.array(["a", "c"]), np.array(["a", "b"]), "classification")
    Traceback (most recent call last):
    ValueError: The rows to test on have classes that there are no training rows of: 'c'. Leave these rows out.
    """
    if y_test.shape[1:] != y_train.shape[1:]:
        raise ValueError(
            f"The targets to test on have shape {y_test.shape}, those to train on {y_train.shape}; give both the same columns."
        )
    unknown = np.setdiff1d(y_test, y_train) if task == "classification" else np.empty(0)
    if unknown.size:
        some = ", ".join(repr(str(label)) for label in unknown[:5])
        raise ValueError(
            f"The rows to test on have classes that there are no training rows of: {some}. Leave these rows out."
        )


def _strata(metric: Metric, y_true: np.ndarray) -> list[np.ndarray]:
    if metric.tasks != ("classification",):
        return [np.arange(len(y_true))]
    return [np.flatnonzero(y_true == label) for label in np.unique(y_true)]


def _score(metric: Metric, y_true: Any, response: Any, y_train: Any, weights: Any, rows: np.ndarray) -> float:
    parts = metric.measure(y_true[rows], response[rows], y_train, None if weights is None else weights[rows])
    return float(metric.combine([parts])[0])
