r"""Leave the number of features to the loss: M minimises :math:`L_f + \lambda M` for one strength :math:`\lambda`.

For each M of a grid E2E-FS selects M features and trains the model on them; the training loss of that model, without weight
decay, is :math:`L_f(M)`. A feature is kept as long as it lowers the loss by more than its price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from tamiz.engines import Problem
from tamiz.estimators._gating import read_gating

if TYPE_CHECKING:
    from tamiz.estimators._base import BaseE2EFS
    from tamiz.estimators._prepared import PreparedData


def count_grid(n_features: int) -> list[int]:
    """Return the numbers of features that are tried: all small ones, then each larger by a factor of the root of 2.

    Examples
    --------
    >>> count_grid(20)
    [1, 2, 3, 4, 6, 8, 11, 16, 20]
    """
    steps = math.ceil(2 * math.log2(n_features)) + 1
    return sorted({min(n_features, round(2 ** (i / 2))) for i in range(steps)})


def training_loss(estimator: BaseE2EFS, prepared: PreparedData) -> float:
    """Return the weighted mean loss of a fitted estimator on the rows that it was fitted on; targets as the engine saw them.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Fitted.
    prepared : PreparedData
        What it was fitted on.
    """
    from tamiz.engines.dense_start import mean_loss  # loads numba

    table, target, selection = prepared.table, prepared.target, estimator.selection_
    gating = read_gating(estimator, prepared.n_features, prepared.feature_names, prepared.missing)
    columns = selection.indices if gating is None else gating.read_columns(selection.support)
    offset = None if table.offset is None else table.offset[columns]
    scores = estimator.model_.scores(table.values[:, columns], offset)
    if target.scale is not None:
        scores = (scores - target.mean) / target.scale
    if scores.shape[1] < target.values.shape[1]:  # two classes with an output each are decided by the difference
        scores = np.column_stack([np.zeros(scores.shape[0]), scores])
    problem = Problem(table.values, target.values, prepared.sample_weight)
    return mean_loss(prepared.loss, problem, scores, np.arange(problem.n_samples))[0]


def strength_ranges(losses: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    """Return for which strengths each M minimises ``loss + strength * M``: the path over the strength.

    Parameters
    ----------
    losses : mapping of int to float
        Training loss for each M.

    Returns
    -------
    dict of int to (lowest, highest strength)
        Only those M that are best for some strength above 0, in ascending order; the smallest M has no highest strength.

    Examples
    --------
    >>> strength_ranges({1: 1.0, 2: 0.4, 4: 0.3, 8: 0.3})
    {1: (0.6, inf), 2: (0.05, 0.6), 4: (0.0, 0.05)}
    """
    hull: list[int] = []
    for m in sorted(losses):
        if hull and losses[m] >= losses[hull[-1]]:
            continue
        while len(hull) > 1 and _price(losses, hull[-1], m) >= _price(losses, hull[-2], hull[-1]):
            hull.pop()
        hull.append(m)
    prices = [math.inf, *(_price(losses, one, two) for one, two in pairwise(hull)), 0.0]
    return {m: (float(low), float(high)) for m, high, low in zip(hull, prices, prices[1:])}


def _price(losses: Mapping[int, float], fewer: int, more: int) -> float:
    """Return by how much each further feature lowers the loss, rounded so that equal slopes are equal."""
    return round((losses[fewer] - losses[more]) / (more - fewer), 12)


def fit_by_strength(base: BaseE2EFS, prepared: PreparedData, strength: float) -> Any:
    """Return the fitted estimator with the smallest ``training loss + strength * M`` over :func:`count_grid`.

    No loss is below zero, so the grid ends where the features alone cost more than the best so far.
    """
    best: tuple[float, Any] | None = None
    for m in count_grid(prepared.n_features):
        if best is not None and strength * m >= best[0]:
            break
        # The table is shared by all fits: none may write to it.
        fitted = clone(base).set_params(n_features_to_select=m, strength=None)._fit_prepared(prepared, owned=False)
        cost = training_loss(fitted, prepared) + strength * m
        if best is None or cost < best[0]:
            best = cost, fitted
    assert best is not None
    return best[1]
