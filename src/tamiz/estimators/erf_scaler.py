"""The paper's normalisation as a transformer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import erf
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tamiz._validation import check_table
from tamiz.estimators.normalize import ColumnStatistics, column_statistics, normalized

BLOCK_CELLS = 1 << 17
r"""Cells that are worked on at a time: their temporaries stay in cache."""


class ErfScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Map each column to (-1, 1) by :math:`\mathrm{erf}\left((x - \bar x) / (\sqrt 2\, s)\right)`.

    A standardised column goes through the error function: a normally distributed one becomes uniform on (-1, 1), and an
    outlier stays within it. The standard deviation s is that with N - 1; constant columns become 0.

    Parameters
    ----------
    with_mean : bool
        Whether the mean is taken off first. Sparse tables need ``with_mean=False``, which keeps their zeros.

    Attributes
    ----------
    mean_ : ndarray, shape (n_features_in_,) or None
        The means; None with ``with_mean=False``.
    scale_ : ndarray, shape (n_features_in_,)
        The standard deviations; 0 for constant columns.
    n_samples_seen_ : int
        Rows that ``fit`` saw.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 7.0], [3.0, 7.0], [5.0, 7.0]])
    >>> ErfScaler().fit_transform(X).round(3)
    array([[-0.683,  0.   ],
           [ 0.   ,  0.   ],
           [ 0.683,  0.   ]])
    """

    def __init__(self, *, with_mean: bool = True) -> None:
        self.with_mean = with_mean

    def fit(self, X: Any, y: Any = None) -> ErfScaler:
        """Learn mean and standard deviation of each column.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            Numbers, finite.
        y : None
            Not used.

        Returns
        -------
        self
        """
        X = self._checked(X, reset=True)
        statistics = column_statistics(X)
        self.mean_ = statistics.mean if self.with_mean else None
        self.scale_ = statistics.deviation
        self.n_samples_seen_ = X.shape[0]
        return self

    def transform(self, X: Any) -> Any:
        """The normalised table; float32 stays float32, anything else becomes float64.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            Numbers, finite.

        Returns
        -------
        ndarray or csr matrix, shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        mean = np.zeros(X.shape[1]) if self.mean_ is None else self.mean_
        if sp.issparse(X):
            data = np.empty_like(X.data)
            _erf_of(X.data, mean[X.indices], self.scale_[X.indices], data)
            return type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
        if X.dtype == np.float32:
            return normalized(X, ColumnStatistics(mean, self.scale_), "erf")
        out = np.empty(X.shape)
        rows = max(1, BLOCK_CELLS // max(1, X.shape[1]))
        for begin in range(0, X.shape[0], rows):
            _erf_of(X[begin : begin + rows], mean, self.scale_, out[begin : begin + rows])
        return out

    def _checked(self, X: Any, reset: bool) -> Any:
        if sp.issparse(X) and self.with_mean:
            raise ValueError(
                "A sparse table cannot be centred without filling its zeros: pass with_mean=False, or make it dense."
            )
        X = check_table(self, X, reset=reset, accept_sparse=["csr"])
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _erf_of(values: np.ndarray, mean: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """``erf((values - mean) / (sqrt(2) * scale))`` into ``out``; 0 where the scale is 0."""
    z = values.astype(np.float64)
    with np.errstate(over="ignore"):  # an infinite difference is far out, and erf of it 1
        z -= mean
        z /= np.where(scale > 0, scale, np.inf) * math.sqrt(2.0)
    z[np.isnan(z)] = 0.0  # infinite in a constant column
    out[...] = erf(z, out=z)
