"""Normalise tables and fill missing values, with statistics of the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import check_is_fitted

from tamiz._utils.validation import check_table
from tamiz.core.step import writeable_view
from tamiz.rows import kernels as _kernels
from tamiz.rows.exact import DEVIATIONS, WITH_ERF, normalize_exact

#: Cells of a dense table that are converted to C-ordered float64 at a time, which stay in cache; at least so many rows.
TILE, TILE_ROWS = 3 << 13, 32
#: Entries of a sparse table that are normalised at a time.
CHUNK = 1 << 13


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Weighted mean and standard deviation (with N - 1) of each column; the deviation of a constant column is 0."""

    mean: np.ndarray
    deviation: np.ndarray


@dataclass(frozen=True, eq=False)
class ScaledTable:
    """A table ready for an engine.

    Attributes
    ----------
    values : ndarray or csr_matrix of float32
        Dense in C order, or CSR.
    offset : ndarray of shape (n_features,) or None
        Implicit value of each column of a sparse table (fill value); None: 0.
    owned : bool
        Whether the engine may overwrite the values and the offset.
    """

    values: Any
    offset: np.ndarray | None
    owned: bool

    def dense(self) -> np.ndarray:
        """Fill in the zeros of a sparse table, for engines that take no sparse tables."""
        if not sp.issparse(self.values):
            return self.values
        values = self.values.toarray()
        return values if self.offset is None else values + self.offset


def _canonical(X: Any) -> Any:
    """Convert a sparse table to CSR with one entry a cell, copied only where that changes it."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def prepare_table(X: Any, kind: str | None, weights: np.ndarray | None = None) -> ScaledTable:
    """Normalise a table for the engines; constant columns become 0, so that they carry no information.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Finite numbers.
    kind : {"erf", "erf2", "standard", None}
        Normalisation, see :data:`~tamiz.rows.exact.DEVIATIONS`; None takes the numbers as they are.
    weights : ndarray of shape (n_samples,), default=None
        Weights of the rows in mean and deviation. With balanced classes the zero of a column then lies between the
        classes, wherever the larger one is.

    Returns
    -------
    ScaledTable

    Examples
    --------
    >>> prepare_table(np.array([[1.0, 5.0], [3.0, 5.0]]), None).values.tolist()
    [[1.0, 0.0], [3.0, 0.0]]
    """
    X = _canonical(X) if sp.issparse(X) else X
    statistics = column_statistics(X, weights)
    if kind is None:
        return _as_it_is(X, statistics.deviation == 0)
    return apply_normalization(X, statistics, kind)


def apply_normalization(X: Any, statistics: ColumnStatistics | None, kind: str | None) -> ScaledTable:
    """Normalise a table by known statistics; without statistics or kind, take it as it is.

    Examples
    --------
    >>> X = np.array([[1.0], [3.0]])
    >>> apply_normalization(X, column_statistics(X), "standard").values.astype(float).round(3).tolist()
    [[-0.707], [0.707]]
    """
    if statistics is None or kind is None:
        return ScaledTable(X, None, False)
    if sp.issparse(X):
        table, offset = normalize_sparse(X, statistics, kind)
        return ScaledTable(table, offset, True)
    return ScaledTable(normalize_dense(X, statistics, kind), None, True)


def _as_it_is(X: Any, constant: np.ndarray) -> ScaledTable:
    """Take a table without normalisation: copied only where its type, its order or a constant column requires it."""
    numbers = X.data if sp.issparse(X) else X
    largest = np.finfo(np.float32).max
    if numbers.size and (numbers.max() > largest or numbers.min() < -largest):
        raise ValueError(
            "X holds numbers beyond the range of float32, in which the engine computes. "
            "Set normalize='erf' or 'standard', or scale the columns."
        )
    if sp.issparse(X):
        data = np.where(constant[X.indices], 0, X.data).astype(np.float32)
        return ScaledTable(sp.csr_matrix((data, X.indices.copy(), X.indptr.copy()), shape=X.shape), None, True)
    values = np.ascontiguousarray(X, dtype=np.float32)
    if constant.any():
        values = values.copy() if np.shares_memory(values, X) else values
        values[:, constant] = 0
    return ScaledTable(values, None, not np.shares_memory(values, X))


def _tiles(X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the rows of a dense table some at a time, as C-ordered float64, a view where that is possible."""
    height = max(TILE_ROWS, TILE // X.shape[1])
    for top in range(0, X.shape[0], height):
        rows = slice(top, top + height)
        yield rows, writeable_view(np.ascontiguousarray(X[rows], dtype=np.float64))


def column_statistics(X: Any, weights: np.ndarray | None = None) -> ColumnStatistics:
    """Compute weighted mean and standard deviation of each column of a dense or sparse table, safe at any scale.

    Examples
    --------
    >>> statistics = column_statistics(np.array([[1e30, 5.0], [3e30, 5.0]]))
    >>> (statistics.mean / [1e30, 1]).round(4).tolist(), (statistics.deviation / 1e30).round(4).tolist()
    ([2.0, 5.0], [1.4142, 0.0])
    """
    n_rows, n_features = X.shape
    weights = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
    weights = weights / weights.mean()
    if sp.issparse(X):
        X = _canonical(X)
        low, high = min_max_axis(X, axis=0)
        constant, unit = low == high, np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
        del low, high  # where columns outnumber entries, such vectors are most of the memory
        unit[unit == 0] = 1.0
        columns, of_entries = X.indices, np.repeat(weights, np.diff(X.indptr))
        x = X.data / unit[columns]  # of size one: squares of numbers like 1e200 would overflow
        mean = np.bincount(columns, of_entries * x, minlength=n_features) / n_rows
        spread = (n_rows - np.bincount(columns, of_entries, minlength=n_features)) * mean**2
        spread += np.bincount(columns, of_entries * (x - mean[columns]) ** 2, minlength=n_features)
        spread[constant] = 0.0
        mean *= unit
        unit *= np.sqrt(np.maximum(spread, 0.0) / max(1, n_rows - 1))
        return ColumnStatistics(mean, unit)
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for _, tile in _tiles(X):
        np.minimum(low, tile.min(axis=0), out=low)
        np.maximum(high, tile.max(axis=0), out=high)
    half = high / 2 - low / 2  # halved first: the difference could overflow
    middle = np.where(half > 0, low / 2 + high / 2, low)
    total, squares, unit = np.zeros(n_features), np.zeros(n_features), np.where(half > 0, half, 1.0)
    for rows, tile in _tiles(X):
        _kernels.add_moments(tile, weights[rows], middle, unit, total, squares)
    mean = total / n_rows
    variance = np.maximum(squares - n_rows * (mean * mean), 0.0) / max(1, n_rows - 1)
    return ColumnStatistics(middle + half * mean, half * np.sqrt(variance))


def normalize_dense(X: np.ndarray, statistics: ColumnStatistics, kind: str) -> np.ndarray:
    """Normalise a dense table like :func:`normalize_exact`, within 1e-6, into a new C-ordered float32 table.

    Examples
    --------
    >>> X = np.array([[1.0, 0.1], [3.0, 0.1]])
    >>> normalize_dense(X, column_statistics(X), "erf").astype(float).round(4).tolist()
    [[-0.5205, 0.0], [0.5205, 0.0]]
    """
    out = np.empty(X.shape, dtype=np.float32)
    mean = writeable_view(np.asarray(statistics.mean, dtype=np.float64))
    divisor = np.asarray(statistics.deviation, dtype=np.float64) * DEVIATIONS[kind]
    for rows, tile in _tiles(X):
        _kernels.normalize_rows(tile, mean, divisor, kind in WITH_ERF, out[rows])
    return out


def normalize_sparse(X: Any, statistics: ColumnStatistics, kind: str) -> tuple[sp.csr_matrix, np.ndarray]:
    """Normalise a sparse table to a sparse S and a row of offsets, of which ``S + offset`` is the result.

    Examples
    --------
    >>> X = sp.csr_matrix([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    >>> table, offset = normalize_sparse(X, column_statistics(X), "erf")
    >>> dense = normalize_dense(X.toarray(), column_statistics(X), "erf")
    >>> bool(np.allclose(table.toarray() + offset, dense, atol=1e-6)), table.nnz
    (True, 3)
    """
    table, with_erf = X.tocsr(copy=True), kind in WITH_ERF
    divisor = np.asarray(statistics.deviation, dtype=np.float64) * DEVIATIONS[kind]
    table.sum_duplicates()
    mean = writeable_view(np.asarray(statistics.mean, dtype=np.float64))
    offset, columns = np.zeros(X.shape[1], dtype=np.float32), np.arange(X.shape[1])
    _kernels.normalize_entries(np.zeros(columns.size), columns, mean, divisor, with_erf, offset.copy(), offset)
    data = np.empty(table.data.size, dtype=np.float32)
    for start in range(0, data.size, CHUNK):
        part = slice(start, start + CHUNK)
        values, columns = table.data[part].astype(np.float64), table.indices[part].astype(np.int64)
        _kernels.normalize_entries(values, columns, mean, divisor, with_erf, offset, data[part])
    return sp.csr_matrix((data, table.indices, table.indptr), shape=X.shape), offset


class ErfScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Map each column to (-1, 1) by :math:`\mathrm{erf}\left((x - \bar x) / (\sqrt 2\, s)\right)`.

    A standardised column goes through the error function: a normally distributed one becomes uniform on (-1, 1), and an
    outlier stays within it. The standard deviation s is that with N - 1; constant columns become 0.

    The paper prints 2 where the code that its authors released has :math:`\sqrt 2`; the default is the latter.

    Parameters
    ----------
    kind : {"erf", "erf2"}, default="erf"
        Whether columns are divided by :math:`\sqrt 2\, s` or, as the paper prints, by :math:`2 s`.
    with_mean : bool, default=True
        Whether the mean is subtracted first. Sparse tables need ``with_mean=False``, which keeps their zeros.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features_in_,) or None
        Mean of each column; None with ``with_mean=False``.
    scale_ : ndarray of shape (n_features_in_,)
        Standard deviation of each column; 0 for constant columns.
    n_samples_seen_ : int
        Number of rows seen by ``fit`` and ``partial_fit``.
    n_features_in_ : int
        Number of columns seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are strings.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 7.0], [3.0, 7.0], [5.0, 7.0]])
    >>> ErfScaler().fit_transform(X).round(3)
    array([[-0.683,  0.   ],
           [ 0.   ,  0.   ],
           [ 0.683,  0.   ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions({"erf", "erf2"})],
        "with_mean": ["boolean"],
    }

    def __init__(self, *, kind: str = "erf", with_mean: bool = True) -> None:
        self.kind = kind
        self.with_mean = with_mean

    def fit(self, X: Any, y: Any = None) -> ErfScaler:
        """Learn mean and standard deviation of each column.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Finite numbers.
        y : None
            Not used.

        Returns
        -------
        self
        """
        self._validate_params()
        X = self._check(X, reset=True)
        return self._learn(column_statistics(X), X.shape[0])

    def partial_fit(self, X: Any, y: Any = None) -> ErfScaler:
        """Learn from further rows of a stream: mean and deviation are those of all rows seen, as ``fit`` would find them.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Finite numbers.
        y : None
            Not used.

        Returns
        -------
        self
        """
        if not hasattr(self, "scale_"):
            return self.fit(X)
        X = self._check(X, reset=False)
        new, n, m = column_statistics(X), self.n_samples_seen_, X.shape[0]
        delta = new.mean - self._mean
        spread = self.scale_**2 * (n - 1) + new.deviation**2 * (m - 1) + delta**2 * (n * m / (n + m))
        return self._learn(ColumnStatistics(self._mean + delta * (m / (n + m)), np.sqrt(spread / (n + m - 1))), n + m)

    def _learn(self, statistics: ColumnStatistics, n_rows: int) -> ErfScaler:
        self._mean, self.scale_, self.n_samples_seen_ = statistics.mean, statistics.deviation, n_rows
        self.mean_ = self._mean if self.with_mean else None
        return self

    def transform(self, X: Any) -> Any:
        """Normalise a table; float32 stays float32, anything else becomes float64.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ndarray or csr matrix of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = self._check(X, reset=False)
        mean = np.zeros(X.shape[1]) if self.mean_ is None else self.mean_
        if sp.issparse(X):
            data = normalize_exact(X.data, mean[X.indices], self.scale_[X.indices], self.kind)
            return type(X)((data.astype(X.dtype, copy=False), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        if X.dtype == np.float32:
            return normalize_dense(X, ColumnStatistics(mean, self.scale_), self.kind)
        return normalize_exact(X, mean, self.scale_, self.kind)

    def _check(self, X: Any, reset: bool) -> Any:
        if sp.issparse(X) and self.with_mean:
            raise ValueError(
                "A sparse table cannot be centred without filling its zeros: pass with_mean=False, or make it dense."
            )
        X = check_table(self, X, reset=reset, accept_sparse=["csr"])
        return _canonical(X) if sp.issparse(X) else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


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
        """Fill the gaps of a table and append the indicators behind its columns; the table itself is not changed."""
        known, gaps = _split_gaps(X)
        if sp.issparse(X):
            known.data[gaps.data] = self.fill[known.indices[gaps.data]]
            where = gaps[:, self.indicated]
            where.eliminate_zeros()
            return sp.hstack([known, where], format="csr", dtype=X.dtype)
        np.copyto(known, self.fill.astype(X.dtype), where=gaps)
        return np.hstack([known, gaps[:, self.indicated].astype(X.dtype)]) if self.indicated.size else known

    def of(self, columns: np.ndarray) -> MissingValues:
        """Restrict to some of the columns, in rising order.

        Examples
        --------
        >>> MissingValues(np.zeros(4), np.array([1, 3])).of(np.array([2, 3])).indicated.tolist()
        [1]
        """
        indicated = np.flatnonzero(np.isin(columns, self.indicated))
        return MissingValues(self.fill[columns], indicated)


def _split_gaps(X: Any) -> tuple[Any, Any]:
    """Copy a table with 0 for what is missing, and mark the gaps in a table of the same form."""
    known = X.tocsr(copy=True) if sp.issparse(X) else X.copy(order="K")
    values = known.data if sp.issparse(X) else known
    gaps = np.isnan(values)
    values[gaps] = 0
    return known, sp.csr_matrix((gaps, known.indices, known.indptr), shape=X.shape) if sp.issparse(X) else gaps


def learn_missing(X: Any, weights: np.ndarray | None = None) -> MissingValues:
    """Compute the weighted mean of the known values of each column, and find the columns with gaps.

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
    known, gaps = _split_gaps(X)
    n_gaps, lost, total = np.asarray(gaps.sum(axis=0)).ravel(), weights @ gaps, weights @ known
    empty = np.flatnonzero(n_gaps == X.shape[0])
    if empty.size:
        raise ValueError(f"column {empty[0]} holds missing values only; drop it")
    left = weights.sum() - lost
    # Where all weight is on rows with a gap, any value does: the rows that have one count nothing.
    fill = np.divide(total, left, out=np.zeros(X.shape[1]), where=left > 1e-12 * weights.sum())
    return MissingValues(fill, np.flatnonzero(n_gaps))
