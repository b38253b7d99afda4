"""Turn columns into what a second-order model adds up: curves of each column, and functions whose products are joint effects.

A curve is spanned by the column itself and hats, as in the additive model. The functions of a feature are few, centred, of
variance 1 and uncorrelated: a line and a U-shape of the ranks of each of its columns or, of a group with many columns, leading
principal components. All are linear between the knots of their columns, so that a trained model is knots and heights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from tamiz.engines.additive import N_KNOTS
from tamiz.engines.basis import HatBasis, hat_basis

#: Functions of a group of columns, at most.
MOST_GROUP_FUNCTIONS = 11
#: A function that rests on fewer rows says more about these rows than about the feature.
FEWEST_ROWS = 5


@dataclass(frozen=True, eq=False)
class PairBasis:
    """Hold curves and functions of a few features; see :func:`pair_basis`.

    Parameters
    ----------
    hats : HatBasis
        Curves of the standardised columns.
    mean, deviation : ndarray of float64, shape (n_columns,)
        What the columns are standardised by; a deviation of 1 for a constant column.
    column_features : ndarray of int, shape (n_columns,)
        Feature of each column, ascending.
    heights : ndarray of float64, shape (n_functions, n_all_knots)
        Values of each function at the knots of all columns, one column after the other; 0 at those of other features. A
        function is the sum of the curves through them.
    function_features : ndarray of int, shape (n_functions,)
        Feature of each function, ascending.
    table : ndarray of float32, shape (n_samples, n_curve_columns + n_functions)
        Columns of the curves, then the functions, for the rows that the basis was made of.

    Examples
    --------
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> basis = pair_basis(np.hstack([X, X[::-1] ** 2]), np.ones(50), np.arange(2), np.array([0, 1]))
    >>> basis.function_features.tolist(), basis.table.shape
    ([0, 0, 1, 1], (50, 18))
    """

    hats: HatBasis
    mean: np.ndarray
    deviation: np.ndarray
    column_features: np.ndarray
    heights: np.ndarray
    function_features: np.ndarray
    table: np.ndarray

    def starts(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first curve column and the first function of each feature, and the ends."""
        features = np.arange(n_features + 1)
        return (
            np.searchsorted(self.column_features[self.hats.groups], features),
            np.searchsorted(self.function_features, features),
        )

    def knot_starts(self) -> np.ndarray:
        """Return the place of the first knot of each column in ``heights``, and the end."""
        return np.concatenate([[0], np.cumsum(self.hats.n_knots)])


def pair_basis(X: np.ndarray, weights: np.ndarray, column_features: np.ndarray, paired: np.ndarray) -> PairBasis:
    """Make the curves of all columns, and the functions of some features.

    Parameters
    ----------
    X : ndarray, shape (n_samples, n_columns)
        The columns, those of one feature side by side.
    weights : ndarray, shape (n_samples,)
        Weights of the rows.
    column_features : ndarray of int, shape (n_columns,)
        Feature of each column, ascending.
    paired : ndarray of int
        Features that have functions.

    Returns
    -------
    PairBasis
    """
    share = np.asarray(weights, dtype=np.float64) / np.sum(weights, dtype=np.float64)
    values = X.astype(np.float64)
    mean = share @ values
    deviation = np.sqrt(share @ (values - mean) ** 2)
    deviation = np.where(deviation > 1e-7 * np.maximum(np.abs(mean), 1e-30), deviation, 1.0)
    standard = np.ascontiguousarray((values - mean) / deviation, dtype=np.float32)
    hats = hat_basis(standard, None, np.asarray(weights, dtype=np.float32), N_KNOTS)
    curves = hats.table(standard, None)[0]
    starts = np.concatenate([[0], np.cumsum(hats.n_knots)])
    heights, functions, features = [], [], []
    for feature in np.sort(paired):
        columns = np.arange(*np.searchsorted(column_features, [feature, feature + 1]))
        knots = [hats.knots[j, : hats.n_knots[j]].astype(np.float64) for j in columns]
        parts = [_column_functions(standard[:, j], part, share) for j, part in zip(columns, knots)]
        found, combined = parts[0] if columns.size == 1 else _group_functions(parts, share)
        rows = np.zeros((combined.shape[0], starts[-1]))
        rows[:, starts[columns[0]] : starts[columns[-1] + 1]] = combined
        heights.append(rows)
        functions.append(found)
        features += [feature] * combined.shape[0]
    empty = np.zeros((X.shape[0], 0))
    table = np.hstack([curves, *functions] if functions else [curves, empty], dtype=np.float32, casting="same_kind")
    return PairBasis(
        hats,
        mean,
        deviation,
        np.asarray(column_features),
        np.concatenate(heights) if heights else np.zeros((0, starts[-1])),
        np.array(features, dtype=np.int64),
        np.ascontiguousarray(table),
    )


def _rank_polynomials(values: np.ndarray, knots: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the mean ranks of the knots, from -1 to 1, and their squares: one row for each, as far as there are knots."""
    order = np.argsort(values, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(share[order])])
    sorted_values = values[order]
    first, last = (np.searchsorted(sorted_values, knots.astype(np.float32), side) for side in ("left", "right"))
    rank = below[first] + below[last] - 1.0
    return np.stack([rank, rank**2])[: max(0, knots.size - 1)]


def curve_values(X: np.ndarray, knots: list[np.ndarray], heights: np.ndarray) -> np.ndarray:
    """Return the sums of curves, shape (n_samples, n_functions).

    Parameters
    ----------
    X : ndarray, shape (n_samples, n_columns)
        The columns.
    knots : list of ndarray
        Knots of each column.
    heights : ndarray, shape (n_functions, n_all_knots)
        Values of each function at the knots.

    Examples
    --------
    >>> curve_values(np.array([[0.5, 2.0]]), [np.array([0.0, 1.0]), np.array([0.0])], np.array([[0.0, 4.0, 1.0]])).tolist()
    [[3.0]]
    """
    out = np.zeros((X.shape[0], heights.shape[0]))
    begin = 0
    for column, part in zip(X.T, knots):
        own = heights[:, begin : begin + part.size]
        for k in np.flatnonzero(own.any(axis=1)):
            out[:, k] += np.interp(column, part, own[k])
        begin += part.size
    return out


def _column_functions(column: np.ndarray, knots: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return line and U-shape of a column, of mean 0 and variance 1 without correlation, and their heights."""
    raw = _rank_polynomials(column, knots, share)
    values = curve_values(column[:, None], [knots], raw)
    mean = share @ values
    values, raw = values - mean, raw - mean[:, None]
    corner: np.ndarray = np.linalg.qr(np.sqrt(share)[:, None] * values)[1]
    size = np.abs(np.diag(corner))
    n_kept = int(np.cumprod(size > 1e-4 * np.sqrt(np.square(corner).sum(axis=0))).sum())
    mix = np.zeros((n_kept, raw.shape[0]))
    mix[:, :n_kept] = np.linalg.inv(corner[:n_kept, :n_kept]).T
    return _well_supported(values @ mix.T, mix @ raw)


def _group_functions(parts: list[tuple[np.ndarray, np.ndarray]], share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return functions of a group from those of its columns, none of which rests on few rows, and their heights.

    The order of the columns does not matter: few functions are changed as little as it takes to free them of correlation; of
    many, or where one is a sum of others, the leading principal components are taken.
    """
    if sum(heights.shape[0] for _, heights in parts) > MOST_GROUP_FUNCTIONS:
        parts = [(values[:, :1], heights[:1]) for values, heights in parts]
    values, raw = np.hstack([values for values, _ in parts]), block_diag(*(heights for _, heights in parts))
    _, singular, right = np.linalg.svd(np.sqrt(share)[:, None] * values, full_matrices=False)
    is_free = singular > 1e-4 * singular.max(initial=1e-30)
    if right.shape[0] == raw.shape[0] <= MOST_GROUP_FUNCTIONS and is_free.all():
        mix = (right.T / singular) @ right
    else:
        mix = (right / np.where(is_free, singular, 1.0)[:, None])[is_free][:MOST_GROUP_FUNCTIONS]
    return _well_supported(values @ mix.T, mix @ raw)


def _well_supported(values: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the functions, of mean 0 and variance 1, that rest on enough rows, and their heights."""
    kept = values.shape[0] / np.maximum(np.mean(values**4, axis=0), 1e-30) >= FEWEST_ROWS
    return values[:, kept], heights[kept]
