"""What the fitted model says of its columns: contributions, curves, joint effects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import erfinv

from tamiz.engines.additive import AdditiveModel
from tamiz.engines.linear import LinearModel
from tamiz.rows.exact import DEVIATIONS, WITH_ERF, normalize_exact
from tamiz.selection import Selection

#: Points of a curve, and curves that are recorded, those of the best columns.
N_POINTS, MOST_CURVES = 65, 64


def record_effects(
    model: Any, order: np.ndarray, indices: np.ndarray, statistics: Any, normalize: str | None
) -> dict[str, np.ndarray]:
    """Evaluate the curves of the best selected columns.

    Parameters
    ----------
    model : AdditiveModel
        Its first columns are the selected ones, in the order of the table.
    order : ndarray of int
        The selected columns, the best first.
    indices : ndarray of int
        The selected columns in the order of the table.
    statistics : ColumnStatistics or None
        Mean and deviation of the columns that the model reads.
    normalize : {"erf", "erf2", "standard", None}
        Normalisation of the columns.

    Returns
    -------
    dict
        "feature", shape (n_curves,); "grid", shape (n_curves, n_points), in the units of the table; "curve", shape
        (n_curves, n_outputs, n_points), what the column adds to each output.
    """
    features = order[:MOST_CURVES]
    grids, curves = [], []
    for place in np.searchsorted(indices, features):
        knots, _ = model.effects(int(place))
        low, high = float(knots[0]), float(knots[-1])
        mean, deviation = (0.0, 1.0) if statistics is None else (statistics.mean[place], statistics.deviation[place])
        kind = normalize if statistics is not None else None
        if kind in WITH_ERF:  # the ends of erf are infinite: at most six deviations from the mean
            low, high = np.clip(erfinv(np.clip((low, high), -1.0, 1.0)) * DEVIATIONS[kind], -6.0, 6.0)
        grid = np.linspace(mean + deviation * low, mean + deviation * high, N_POINTS)
        values = normalize_exact(grid, mean, deviation, kind)
        grids.append(grid)
        curves.append(model.effects(int(place), values)[1])
    return {"feature": features, "grid": np.array(grids), "curve": np.array(curves)}


class PairEffect(NamedTuple):
    """Two selected columns, or groups of columns, and what they add to the scores together, beyond their curves."""

    first: str
    second: str
    indices: tuple[int, int]
    """Numbers of the columns or, where ``groups`` were given, of the groups."""
    strength: float
    """Root of the sum of squared weights of their products, which have variance 1 if the columns are independent."""


def joint_effects(model: Any, selection: Selection, missing: Any = None) -> list[PairEffect]:
    """List the joint effects of a fitted model of pairs, strongest first.

    A group, and a column with its indicator of missing values, is one: the strengths of all its products with another are
    added up, and those of its own columns with each other are left out.

    Parameters
    ----------
    model : PairModel
        The fitted model.
    selection : Selection
        The columns that it reads, and their names.
    missing : MissingValues or None, default=None
        Which of these columns have an indicator.

    Examples
    --------
    >>> from tamiz import E2EFSClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 12))
    >>> clf = E2EFSClassifier(2, network="pairs", groups={"size": [0, 1]}, random_state=0).fit(X, X[:, 1] * X[:, 7] > 0)
    >>> [effect[:3] for effect in joint_effects(clf.model_, clf.selection_)]
    [('size', 'x7', (0, 6))]
    """
    read = selection.indices
    if missing is not None:
        read = np.concatenate([read, read[missing.indicated]])
    units = read if selection.groups is None else selection.groups[read]
    squares: dict[tuple[int, int], float] = {}
    for first, second, strength in model.pair_strengths():
        one, other = sorted(int(units[model.columns_of_pairs(feature)[0]]) for feature in (first, second))
        if one != other:
            squares[one, other] = squares.get((one, other), 0.0) + strength**2
    names = selection.group_names if selection.groups is not None else selection.feature_names
    effects = []
    for pair, square in squares.items():
        first_name, second_name = (f"x{unit}" if names is None else str(names[unit]) for unit in pair)
        effects.append(PairEffect(first_name, second_name, pair, float(np.sqrt(square))))
    return sorted(effects, key=lambda effect: (-effect.strength, effect.indices))


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
    """Compute the standardised effect of each feature over all outputs of a model.

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
    if not isinstance(model, (LinearModel, AdditiveModel)):
        return _by_exchange(model, X, offset, weights, features, seed)
    shares, table, variances = weights / weights.sum(), X.tocsc() if sp.issparse(X) else X, []
    for columns in np.split(np.argsort(features, kind="stable"), np.cumsum(np.bincount(features))[:-1]):
        total: Any = 0.0
        for j in columns.tolist():
            values = table[:, [j]].toarray()[:, 0] if sp.issparse(table) else table[:, j]
            values = values.astype(np.float64) + (0.0 if offset is None else offset[j])
            if isinstance(model, LinearModel):
                total = total + model.coef[:, j, None] * values
            else:
                total = total + model.effects(j, values)[1]
        variances.append(((total - (total @ shares)[:, None]) ** 2 @ shares).sum())
    return np.sqrt(variances)


def _by_exchange(
    model: Any, X: Any, offset: np.ndarray | None, weights: np.ndarray, features: np.ndarray, seed: int
) -> np.ndarray:
    """Compute the root of half the mean squared change of the outputs when the values of a feature are exchanged."""
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
