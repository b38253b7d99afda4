"""Measure what each selected column contributes to the outputs of a trained model, the same way for every model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.engines.additive import AdditiveModel
from tamiz.engines.linear import LinearModel

#: Rows that are looked at, and cells that go through a network for all features together.
MOST_ROWS, MOST_CELLS = 2048, 200_000_000


def contributions(
    model: Any,
    X: Any,
    offset: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    features: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Return the standardised effect of each feature over all outputs of a model.

    It is the root of half the mean squared change of the outputs when the values of a feature are exchanged for those of
    another row, all else left alone. Of a sum over columns this is the standard deviation of what the feature adds, for a
    linear model ``|w_j| std(x_j)``, and is computed as such; other models are asked with rows exchanged.

    Parameters
    ----------
    model : Model
        A trained model; ``scores(X, offset)``.
    X : ndarray or sparse matrix, shape (n_samples, n_columns)
        The columns that the model reads, normalised.
    offset : ndarray, shape (n_columns,), or None, default=None
        Implicit value of each column of a sparse table.
    weights : ndarray, shape (n_samples,), or None, default=None
        Weights of the rows.
    features : ndarray of int, shape (n_columns,), or None, default=None
        Number of the feature of each column, from 0 on without gaps, where a feature has several columns; None: every
        column is one.
    seed : int, default=0
        Decides which rows are exchanged.

    Returns
    -------
    ndarray of float64, shape (n_features,)

    Examples
    --------
    >>> model = LinearModel(np.array([[3.0, -1.0]]), np.zeros(1))
    >>> contributions(model, np.array([[1.0, 1.0], [-1.0, -1.0]])).tolist()
    [3.0, 1.0]
    """
    weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    features = np.arange(X.shape[1]) if features is None else np.asarray(features)
    if isinstance(model, LinearModel):
        return _by_parts(lambda j, values: model.coef[:, j, None] * values, X, offset, weights, features)
    if isinstance(model, AdditiveModel):
        return _by_parts(lambda j, values: model.effects(j, values)[1], X, offset, weights, features)
    return _by_exchange(model, X, offset, weights, features, seed)


def _columns(X: Any, offset: np.ndarray | None) -> Iterator[np.ndarray]:
    """Yield the columns as dense float64 vectors, one at a time."""
    table = X.tocsc() if sp.issparse(X) else X
    for j in range(table.shape[1]):
        values = table[:, [j]].toarray()[:, 0] if sp.issparse(table) else table[:, j]
        yield values.astype(np.float64) + (0.0 if offset is None else offset[j])


def _by_parts(
    part: Callable[[int, np.ndarray], np.ndarray],
    X: Any,
    offset: np.ndarray | None,
    weights: np.ndarray,
    features: np.ndarray,
) -> np.ndarray:
    """Return the standard deviation of what each feature adds to a sum, over all outputs."""
    shares = weights / weights.sum()
    variances = np.zeros(int(features.max(initial=-1)) + 1)
    sums: dict[int, np.ndarray] = {}
    left = np.bincount(features)
    for j, values in enumerate(_columns(X, offset)):
        feature = int(features[j])
        added = part(j, values) + sums.pop(feature, 0.0)
        left[feature] -= 1
        if left[feature]:
            sums[feature] = added
            continue
        centred = added - (added @ shares)[:, None]
        variances[feature] = (centred**2 @ shares).sum()
    return np.sqrt(variances)


def _by_exchange(
    model: Any, X: Any, offset: np.ndarray | None, weights: np.ndarray, features: np.ndarray, seed: int
) -> np.ndarray:
    """Return the root of half the mean squared change of the outputs when the values of a feature are exchanged."""
    n_features = int(features.max(initial=-1)) + 1
    most = min(MOST_ROWS, max(64, MOST_CELLS // max(1, 50 * n_features * X.shape[1])))
    random = np.random.default_rng((seed, X.shape[0]))
    rows = random.permutation(X.shape[0])[:most]
    values = X[rows].toarray() if sp.issparse(X) else np.array(X[rows])
    if offset is not None:
        values = values + offset.astype(values.dtype)
    shares = weights[rows] / weights[rows].sum()
    before = model.scores(values)
    changes = np.zeros(n_features)
    # The rows are in random order, so the next row is a random other one.
    partner = np.roll(np.arange(rows.size), 1)
    for feature in range(n_features):
        columns = np.flatnonzero(features == feature)
        kept = values[:, columns].copy()
        values[:, columns] = kept[partner]
        changes[feature] = shares @ ((model.scores(values) - before) ** 2).sum(axis=1)
        values[:, columns] = kept
    return np.sqrt(changes / 2.0)
