"""Turn columns into what a second-order model adds up: curves of each column, and functions whose products are joint effects.

A curve is spanned by the column itself and hats, as in the additive model. The functions of a feature are few, centred, of
variance 1 and uncorrelated: a line and a U-shape of the ranks of each of its columns or, of a group with many columns, their
leading principal components. All are linear between the knots of their columns, so that a trained model is knots and heights.
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
        own = standard[:, columns]
        raw = block_diag(*(_rank_polynomials(values, part, share) for values, part in zip(own.T, knots)))
        if by_size := raw.shape[0] > MOST_GROUP_FUNCTIONS:
            raw = _lines(knots)
        if columns.size > 1:
            raw = _well_supported(own, knots, raw, share)
        found, combined = _orthonormal(own, knots, raw, share, by_size)
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


def _lines(knots: list[np.ndarray]) -> np.ndarray:
    """Return one row for each column that varies: its own values at its knots, 0 at those of the others."""
    ends = np.cumsum([part.size for part in knots])
    rows = np.zeros((len(knots), ends[-1]))
    for row, part, end in zip(rows, knots, ends):
        row[end - part.size : end] = part if part.size > 1 else 0.0
    return rows


def _well_supported(X: np.ndarray, knots: list[np.ndarray], raw: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the functions that rest on enough rows: a column that is nearly constant must not be mixed into the others."""
    values = curve_values(X, knots, raw)
    values = values - share @ values
    deviation = np.sqrt(share @ values**2)
    return raw[(deviation > 0) & _rest_on_enough(values / np.where(deviation > 0, deviation, 1.0))]


def _rest_on_enough(values: np.ndarray) -> np.ndarray:
    """Check which functions, of mean 0 and variance 1, rest on enough rows."""
    return values.shape[0] / np.maximum(np.mean(values**4, axis=0), 1e-30) >= FEWEST_ROWS


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


def _orthonormal(
    X: np.ndarray, knots: list[np.ndarray], raw: np.ndarray, share: np.ndarray, by_size: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return functions of mean 0 and variance 1 without correlation, and their heights; those that rest on few rows go.

    ``by_size``: the leading principal components; otherwise each function is freed of those before it, and goes if nothing is
    left of it.
    """
    values = curve_values(X, knots, raw)
    # A constant is one at all knots of the first column.
    ones = np.concatenate([np.ones(knots[0].size), np.zeros(raw.shape[1] - knots[0].size)])
    mean = share @ values
    values, raw = values - mean, raw - mean[:, None] * ones
    weighted = np.sqrt(share)[:, None] * values
    if by_size:
        _, singular, right = np.linalg.svd(weighted, full_matrices=False)
        mix = (right / np.where(singular > 0, singular, 1.0)[:, None])[singular > 1e-4 * singular.max(initial=1e-30)]
        mix = mix[:MOST_GROUP_FUNCTIONS]
    else:
        chosen = np.arange(raw.shape[0])
        while True:
            corner: np.ndarray = np.linalg.qr(weighted[:, chosen])[1]
            is_free = np.abs(np.diag(corner)) > 1e-4 * np.sqrt(np.square(corner).sum(axis=0))[: corner.shape[0]]
            if is_free.all() and corner.shape[0] == chosen.size:
                break
            chosen = np.delete(chosen, int(np.argmin(np.append(is_free, False))))
        mix = np.zeros((chosen.size, raw.shape[0]))
        mix[:, chosen] = np.linalg.inv(corner).T
    values, raw = values @ mix.T, mix @ raw
    kept = _rest_on_enough(values)
    return values[:, kept], raw[kept]
