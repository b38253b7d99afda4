"""Estimate the mutual information of numbers with classes after Ross (2014), compiled, column by column."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numba import njit
from scipy.special import digamma
from sklearn.preprocessing import scale
from sklearn.utils.parallel import Parallel, delayed

# Work goes to the threads, and noise is drawn, about so many entries at a time (2 MB in float64: they stay in the cache).
_ENTRIES_AT_A_TIME = 250_000
# Relative size of the noise that breaks ties, as in scikit-learn.
_NOISE = 1e-10


@njit(cache=True, nogil=True)
def _kth_distances(values, k, radii):
    """Write the distance of each of the sorted values to its k-th nearest other value: a window of k + 1 slides along."""
    left = 0
    for i in range(values.size):
        while left + k + 1 < values.size and values[left + k + 1] - values[i] < values[i] - values[left]:
            left += 1
        radii[i] = max(values[i] - values[left], values[left + k] - values[i])


@njit(cache=True, nogil=True)
def _sum_over_neighbours(ordered, values, radii, digammas):
    """Return the sum of digamma(m), m the number of all ``ordered`` values nearer than the radius, itself included.

    Both ends of the neighbourhood move along with the values, so the search goes on from where the last one ended.
    """
    total = 0.0
    low = high = 0  # the neighbourhood is ordered[low:high]
    for i in range(values.size):
        x, radius = values[i], radii[i]
        # Equal values count even where the radius is zero.
        while low > 0 and (x - ordered[low - 1] < radius or ordered[low - 1] == x):
            low -= 1
        while ordered[low] < x and not x - ordered[low] < radius:
            low += 1
        while high > 0 and ordered[high - 1] > x and not ordered[high - 1] - x < radius:
            high -= 1
        while high < ordered.size and (ordered[high] <= x or ordered[high] - x < radius):
            high += 1
        total += digammas[high - low]
    return total


@njit(cache=True, nogil=True)
def _sums_of_columns(columns, orders, codes, counts, n_neighbors, digammas, sums):
    """Write the sum of digamma(m) over all rows for each column (a row here), which ``orders`` sorts."""
    n_rows, n_classes = codes.size, counts.size
    starts = np.zeros(n_classes + 1, dtype=np.int64)
    starts[1:] = np.cumsum(counts)
    ordered, by_class = np.empty(n_rows), np.empty(n_rows)
    radii, places = np.empty(n_rows), np.empty(n_classes, dtype=np.int64)
    for f in range(columns.shape[0]):
        places[:] = starts[:-1]
        for n in range(n_rows):  # sorted by value, the rows of every class are sorted too
            row = orders[f, n]
            ordered[n] = columns[f, row]
            by_class[places[codes[row]]] = ordered[n]
            places[codes[row]] += 1
        total = 0.0
        for c in range(n_classes):
            values, radius = by_class[starts[c] : starts[c + 1]], radii[starts[c] : starts[c + 1]]
            _kth_distances(values, min(n_neighbors, counts[c] - 1), radius)
            total += _sum_over_neighbours(ordered, values, radius, digammas)
        sums[f] = total


def _sort_and_sum(columns: np.ndarray, codes: np.ndarray, counts: np.ndarray, n_neighbors: int, digammas: np.ndarray):
    sums = np.empty(columns.shape[0])
    # numpy's sort is vectorised and, like the compiled loops, lets other threads run.
    _sums_of_columns(columns, np.argsort(columns, axis=1), codes, counts, n_neighbors, digammas, sums)
    return sums


def scaled_with_noise(X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return a float64 copy of X in Fortran order, of unit variance and with scikit-learn's noise against ties."""
    X = np.array(X, dtype=np.float64, order="F")
    height = max(8, _ENTRIES_AT_A_TIME // X.shape[1])
    width = max(1, _ENTRIES_AT_A_TIME // X.shape[0])
    noise_level = np.empty(X.shape[1])
    for first in range(0, X.shape[1], width):
        block = X[:, first : first + width]
        block[:] = scale(block, with_mean=False, copy=False)
        noise_level[first : first + width] = np.maximum(1, np.mean(np.abs(block), axis=0))
    noise_level *= _NOISE
    for first in range(0, X.shape[0], height):  # drawn row by row, which is scikit-learn's order
        rows = X[first : first + height]
        rows += noise_level * rng.standard_normal(size=rows.shape)
    return X


def mutual_information_with_classes(
    X: np.ndarray, codes: np.ndarray, *, n_neighbors: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> np.ndarray:
    r"""Estimate what ``mutual_info_classif(X, codes, discrete_features=False)`` does, with the same noise.

    .. math:: I_f = \psi(N) + \langle\psi(k_i)\rangle - \langle\psi(N_{y_i})\rangle - \langle\psi(m_i)\rangle

    over the rows whose class has more than one: :math:`k_i` neighbours, fewer where the class is smaller,
    :math:`N_{y_i}` rows of the own class, :math:`m_i` rows of any class nearer than the own class's :math:`k_i`-th.
    In one dimension neighbours lie next to each other in the sorted column, so no tree is needed.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite numbers.
    codes : ndarray of int64, shape (n_samples,)
        Classes 0 .. C-1, one of which at least has two rows.
    n_neighbors : int
        Neighbours k.
    rng : RandomState
        Source of the noise.
    n_jobs : int or None, default=None
        Number of threads.

    Examples
    --------
    >>> X = np.array([[0.0, 5.0], [1.0, 1.0], [2.0, 4.0], [10.0, 2.0], [11.0, 3.0], [12.0, 0.0]])
    >>> rng = np.random.RandomState(0)
    >>> mutual_information_with_classes(X, np.array([0, 0, 0, 1, 1, 1]), n_neighbors=2, rng=rng).round(3).tolist()
    [0.783, 0.0]
    """
    X = scaled_with_noise(X, rng)
    counts = np.bincount(codes)
    kept = counts[codes] > 1  # a row alone in its class has no neighbours of its own
    if not kept.all():
        X, codes = X[kept], np.unique(codes[kept], return_inverse=True)[1]
        counts = counts[counts > 1]
    digammas = digamma(np.arange(codes.size + 1, dtype=np.float64))
    columns: Any = X.T if X.flags.f_contiguous else np.ascontiguousarray(X.T)
    width = max(1, min(_ENTRIES_AT_A_TIME // codes.size, -(-columns.shape[0] // effective_n_jobs(n_jobs))))
    sums = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_sort_and_sum)(columns[first : first + width], codes, counts, n_neighbors, digammas)
        for first in range(0, columns.shape[0], width)
    )
    constant = (
        digammas[codes.size] + counts @ (digammas[np.minimum(n_neighbors, counts - 1)] - digammas[counts]) / codes.size
    )
    return np.maximum(0.0, constant - np.concatenate(sums) / codes.size)
