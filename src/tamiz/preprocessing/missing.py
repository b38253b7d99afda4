"""Fill missing values with statistics of the training rows, and say where they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class MissingValues:
    """Replace missing values by the mean of their column and append an indicator for columns that had any in training.

    Parameters
    ----------
    fill : ndarray, shape (n_columns,)
        What stands in for a missing value of each column.
    indicated : ndarray of int
        Columns with an indicator, upwards.

    Examples
    --------
    >>> missing = learn_missing(np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 7.0]]))
    >>> missing.indicated.tolist(), missing.apply(np.array([[np.nan, 4.0]])).tolist()
    ([0], [[2.0, 4.0, 1.0]])
    """

    fill: np.ndarray
    indicated: np.ndarray

    def apply(self, X: Any) -> Any:
        """Return a table without gaps, with the indicators behind its columns; the table itself is not changed."""
        if sp.issparse(X):
            X = X.tocsr(copy=True)
            gaps = np.isnan(X.data)
            where = sp.csr_matrix((gaps.astype(X.dtype), X.indices.copy(), X.indptr.copy()), shape=X.shape)
            X.data[gaps] = self.fill[X.indices[gaps]]
            where = where[:, self.indicated]
            where.eliminate_zeros()
            return sp.hstack([X, where], format="csr", dtype=X.dtype)
        gaps = np.isnan(X)
        filled = np.where(gaps, self.fill.astype(X.dtype), X)
        return np.hstack([filled, gaps[:, self.indicated].astype(X.dtype)]) if self.indicated.size else filled

    def of(self, columns: np.ndarray) -> MissingValues:
        """Return the same for some of the columns, in rising order.

        Examples
        --------
        >>> MissingValues(np.zeros(4), np.array([1, 3])).of(np.array([2, 3])).indicated.tolist()
        [1]
        """
        indicated = np.flatnonzero(np.isin(columns, self.indicated))
        return MissingValues(self.fill[columns], indicated)


def learn_missing(X: Any, weights: np.ndarray | None = None) -> MissingValues:
    """Return the weighted mean of the values there are in each column, and which columns have gaps.

    Parameters
    ----------
    X : ndarray or sparse matrix
        The training rows, with NaN for what is missing; other values are finite.
    weights : ndarray, shape (n_samples,), default=None
        Weights of the rows.

    Raises
    ------
    ValueError
        If a column holds nothing but missing values.
    """
    weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    if sp.issparse(X):
        coo = X.tocoo()
        gaps = np.isnan(coo.data)
        n_gaps = np.bincount(coo.col[gaps], minlength=X.shape[1])
        lost = np.bincount(coo.col[gaps], weights=weights[coo.row[gaps]], minlength=X.shape[1])
        values = np.where(gaps, 0.0, coo.data)
        total = np.bincount(coo.col, weights=weights[coo.row] * values, minlength=X.shape[1])
    else:
        gaps = np.isnan(X)
        n_gaps = gaps.sum(axis=0)
        lost = weights @ gaps
        total = weights @ np.where(gaps, 0.0, X)
    empty = np.flatnonzero(n_gaps == X.shape[0])
    if empty.size:
        raise ValueError(f"column {empty[0]} holds missing values only; drop it")
    left = weights.sum() - lost
    # Where all weight is on rows with a gap, any value does: the rows that have one count nothing.
    fill = np.divide(total, left, out=np.zeros(X.shape[1]), where=left > 1e-12 * weights.sum())
    return MissingValues(fill, np.flatnonzero(n_gaps))
