"""Sizes of the effects of kept features: how each goes with the target by itself, and its weights in a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from tamiz.report.describe import column_of, group_rows
from tamiz.selection import Selection


def measure_effects(X: Any, y: Any, selection: Selection, task: str) -> tuple[list[float | None], str]:
    """Return how each kept feature goes with the target by itself, best first, and the name of that measure.

    Two classes: the difference of the class means in standard deviations. More classes: the same for the class that
    differs most from the rest. A numeric target: the correlation. The rows are those that selected the features, so that
    even the best columns of noise show an effect: each is made smaller by what the M best of F columns of noise would show.
    """
    effects, name = _raw_effects(X, y, selection, task)
    if selection.n_features_to_select == selection.n_features or name == "effect":
        return effects, name
    shrunk = [None if effect is None else _shrink(effect, X.shape[0], y, selection, task) for effect in effects]
    return shrunk, f"{name}, less what the best of so many columns of noise would show"


def _shrink(effect: float, n_rows: int, y: Any, selection: Selection, task: str) -> float:
    """Return an effect less the size that a column of noise must have to be among the M best of F."""
    share = selection.n_features_to_select / selection.n_features
    if task == "regression":
        error = 1 / np.sqrt(max(1, n_rows - 1))
    else:
        counts = np.unique(np.asarray(y).astype(str), return_counts=True)[1]
        share /= 1 if counts.size == 2 else counts.size  # of several classes the one that differs most is shown
        smallest = float(counts.min())
        error = np.sqrt(1 / smallest + 1 / max(1.0, n_rows - smallest))
    return float(np.sign(effect) * max(0.0, abs(effect) - float(stats.norm.isf(share / 2)) * error))


def _raw_effects(X: Any, y: Any, selection: Selection, task: str) -> tuple[list[float | None], str]:
    target = np.asarray(y)
    groups = group_rows(y, task)
    if (target.ndim == 2 and target.shape[1] > 1) or len(groups) < 2:
        return [None] * selection.n_features_to_select, "effect"
    columns = (column_of(X, int(index)) for index in selection.ordered)  # one at a time: X may be sparse
    if task == "regression":
        return [_correlation(c, target.ravel().astype(float)) for c in columns], "correlation with the target"
    if len(groups) == 2:
        (first, _), (second, rows) = groups
        return [
            _difference(c, rows) for c in columns
        ], f"mean of {second} minus mean of {first}, in standard deviations"
    effects: list[float | None] = []
    for column in columns:
        sizes = [d for d in (_difference(column, rows) for _, rows in groups) if d is not None]
        effects.append(max(sizes, key=abs) if sizes else None)
    return effects, "mean of the class that differs most minus mean of the rest, in standard deviations"


def _correlation(values: np.ndarray, target: np.ndarray) -> float | None:
    fine = np.isfinite(values) & np.isfinite(target)
    if fine.sum() < 3 or np.ptp(values[fine]) == 0 or np.ptp(target[fine]) == 0:
        return None
    return float(np.corrcoef(values[fine], target[fine])[0, 1])


def _difference(values: np.ndarray, rows: np.ndarray) -> float | None:
    fine = np.isfinite(values)
    inside, outside = values[rows & fine], values[~rows & fine]
    if inside.size == 0 or outside.size == 0:
        return None
    within = np.concatenate([inside - inside.mean(), outside - outside.mean()])
    spread = float(np.sqrt(np.mean(within**2)))
    return float((inside.mean() - outside.mean()) / spread) if spread > 0 else None


def read_weights(estimator: Any, selection: Selection) -> np.ndarray | None:
    """Return the weights of the kept features in a fitted linear model, (n_outputs, M) in the order of the columns."""
    weights = getattr(estimator, "coef_", None)
    if weights is None:
        return None
    weights = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    if weights.ndim != 2:
        return None
    if weights.shape[1] == selection.n_features:
        return weights[:, selection.indices]
    return weights if weights.shape[1] == selection.n_features_to_select else None


def order_by_contribution(weights: np.ndarray | None, selection: Selection) -> np.ndarray:
    """Return the kept columns, those with the largest weights (norm over the outputs) first; by rank without weights.

    Examples
    --------
    >>> selection = Selection(np.array([True, False, True]), np.array([1, 3, 2]))
    >>> order_by_contribution(np.array([[0.1, -2.0]]), selection).tolist()
    [2, 0]
    """
    if weights is None:
        return selection.ordered
    size = np.linalg.norm(weights, axis=0)
    kept = selection.indices
    return kept[np.lexsort((selection.ranking[kept], -size))]


def effect_of_weights(weights: np.ndarray) -> float:
    """Return the effect of a column with one weight per output: signed for two classes, the size of the weights for more.

    Examples
    --------
    >>> effect_of_weights(np.array([-0.5])), effect_of_weights(np.array([1.0, 3.0])), effect_of_weights(np.array([3.0, 0, -4]))
    (-0.5, 2.0, 5.0)
    """
    if weights.size == 2:
        return float(weights[1] - weights[0])
    return float(weights[0]) if weights.size == 1 else float(np.linalg.norm(weights))
