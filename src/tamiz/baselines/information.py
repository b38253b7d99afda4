"""Select by mutual information: MIM and mRMR."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from scipy.special import digamma
from sklearn.feature_selection import f_regression, mutual_info_regression
from sklearn.preprocessing import scale
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.parallel import Parallel, delayed

from tamiz._utils.compiling import njit
from tamiz.baselines.base import BaselineSelector, scores_from_order
from tamiz.baselines.fisher import between_over_within, class_moments

# Work goes to the threads, and noise is drawn, about so many entries at a time (2 MB in float64: they stay in the cache).
_ENTRIES_AT_A_TIME = 250_000
# Relative size of the noise that breaks ties, as in scikit-learn.
_NOISE = 1e-10


@njit(nogil=True)
def _kth_distances(values, k, radii):
    """Write the distance of each of the sorted values to its k-th nearest other value: a window of k + 1 slides along."""
    left = 0
    for i in range(values.size):
        while left + k + 1 < values.size and values[left + k + 1] - values[i] < values[i] - values[left]:
            left += 1
        radii[i] = max(values[i] - values[left], values[left + k] - values[i])


@njit(nogil=True)
def _sum_over_neighbours(ordered, values, radii, digammas):
    """Sum digamma(m), m the number of all ``ordered`` values nearer than the radius, itself included.

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


@njit(nogil=True)
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


def scaled_with_noise(X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Copy X in float64 and Fortran order, scaled to unit variance, with scikit-learn's noise against ties."""
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

    def sum_block(first: int) -> np.ndarray:
        block = columns[first : first + width]
        sums = np.empty(block.shape[0])
        # numpy's sort is vectorised and, like the compiled loops, lets other threads run.
        _sums_of_columns(block, np.argsort(block, axis=1), codes, counts, n_neighbors, digammas, sums)
        return sums

    starts = range(0, columns.shape[0], width)
    sums = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(sum_block)(first) for first in starts)
    constant = (
        digammas[codes.size] + counts @ (digammas[np.minimum(n_neighbors, counts - 1)] - digammas[counts]) / codes.size
    )
    return np.maximum(0.0, constant - np.concatenate(sums) / codes.size)


# Sparse columns are opened so many entries at a time (32 MB in float64), never all at once.
_ENTRIES_IN_A_BLOCK = 4_000_000


class MIM(BaselineSelector):
    r"""Mutual information of each feature with the target, estimated from nearest neighbours.

    scikit-learn's estimators. For classes Ross (2014),

    .. math:: I_f = \psi(N) - \langle\psi(N_x)\rangle + \psi(k) - \langle\psi(m)\rangle

    (:math:`m`: neighbours of any class within the distance of the k-th of the own class), compiled here, some hundred times
    faster than ``mutual_info_classif``; for the same ``random_state`` the scores agree, except for classes of at
    most 2 k + 1 rows, where those of scikit-learn depend on rounding. For regression
    Kraskov et al. (2004), by ``mutual_info_regression``. Both add a little noise to break ties, so fix
    ``random_state`` to repeat a result. The scale of a column does not matter.

    Columns of sparse X are opened block by block and treated as the continuous numbers they are (scikit-learn alone
    would take sparse columns for discrete ones). Cost: O(F N log N) time, O(N F) memory for dense X, a fixed block
    for sparse X.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    n_neighbors : int, default=3
        Neighbours of the estimator; at most one fewer than there are rows.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.rows.targets.decide_task` does.
    n_jobs : int or None, default=None
        Columns worked on side by side, by threads for classes.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise.

    References
    ----------
    B. C. Ross: Mutual information between discrete and continuous data sets. PLoS ONE 9(2), 2014.
    A. Kraskov, H. Stögbauer, P. Grassberger: Estimating mutual information. Physical Review E 69, 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MIM(n_features_to_select=2, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [2, 3]
    """

    n_neighbors: int = 3
    task: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None

    accepts_sparse = ("csc",)

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        if self.task_ == "classification" and np.bincount(y).max() < 2:
            raise ValueError("Every class has one sample only; mutual information needs at least two of some class.")
        rng, n_neighbors = check_random_state(self.random_state), min(int(self.n_neighbors), X.shape[0] - 1)
        width = max(1, _ENTRIES_IN_A_BLOCK // X.shape[0]) if sp.issparse(X) else X.shape[1]
        shared, scores = {"n_neighbors": n_neighbors, "n_jobs": self.n_jobs}, []
        for first in range(0, X.shape[1], width):
            block = X[:, first : first + width]
            block = block.toarray() if sp.issparse(X) else block
            if self.task_ == "classification":
                scores.append(mutual_information_with_classes(block, y, rng=rng, **shared))
            else:
                scores.append(mutual_info_regression(block, y, discrete_features=False, random_state=rng, **shared))
        return np.concatenate(scores)


# A redundancy below this counts as this much: else one accident of a zero correlation would outweigh all relevance.
_SMALLEST_REDUNDANCY = 1e-3
# The share of a variance that counts as not explained at least, so that a copy's redundancy stays finite.
_SMALLEST_SHARE = 1e-12
# Neighbours of the mutual information: with MIM's 3 its noise exceeds what weak features have to say.
_NEIGHBOURS = 10
RELEVANCES = ("f", "mutual_info")


def gaussian_information(correlations: np.ndarray) -> np.ndarray:
    """Compute the mutual information, in nats, of two normal variables with these correlations; finite for copies too.

    Examples
    --------
    >>> gaussian_information(np.array([0.1, 0.5, 1.0])).round(3).tolist()
    [0.005, 0.144, 13.816]
    """
    return -0.5 * np.log(np.maximum(1.0 - correlations**2, _SMALLEST_SHARE))


class MRMR(BaselineSelector):
    r"""Minimum redundancy, maximum relevance: greedy, one feature at a time.

    The first feature is the one of the largest relevance for the target; then, with S the features picked so far, the
    one with the largest

    .. math:: \frac{F(f, y)}{\frac{1}{|S|} \sum_{s \in S} |\mathrm{corr}(f, s)|}
              \quad\text{or}\quad
              I(f; y) + \frac{1}{2|S|} \sum_{s \in S} \log(1 - \mathrm{corr}(f, s)^2)

    for ``relevance="f"`` (the F statistic of ``f_classif`` or ``f_regression`` over the mean correlation: the FCQ
    scheme) and ``relevance="mutual_info"`` (mutual information as in :class:`~tamiz.baselines.information.MIM`, with 10
    neighbours, less the mean information that two normal variables of that correlation share: the MID scheme). corr is
    Pearson's correlation.

    The F statistic sees differences of the mean only: it finds nothing of a ring around the middle, which mutual
    information does. Where means do differ it is the steadier of the two, above all with few rows, and the default.
    Neither sees features that are informative only together (XOR).

    The score is the place in the order, F for the first; features that were not picked follow in the order of the
    criterion as it stood at the end. The scale of a column does not matter.

    Cost: O(M N F) time, O(N F) memory.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    relevance : {"f", "mutual_info"}, default="f"
        What counts as relevance, see above.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.rows.targets.decide_task` does.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise that the mutual information adds; not used with "f".

    References
    ----------
    C. Ding, H. Peng: Minimum redundancy feature selection from microarray gene expression data. Journal of
    Bioinformatics and Computational Biology 3(2), 2005.
    H. Peng, F. Long, C. Ding: Feature selection based on mutual information: criteria of max-dependency,
    max-relevance, and min-redundancy. IEEE Transactions on Pattern Analysis and Machine Intelligence 27(8), 2005.

    Examples
    --------
    >>> import numpy as np
    >>> a, b, noise = np.random.default_rng(0).normal(size=(3, 200))
    >>> X = np.column_stack([a, a + noise, b])
    >>> MRMR(n_features_to_select=2).fit(X, a + 0.8 * b).get_support(indices=True).tolist()
    [0, 2]
    """

    relevance: str = "f"
    task: str = "auto"
    random_state: Any = None

    nested = "largest"  # what is not picked follows in the order of the last criterion
    _min_samples = 3
    _parameter_constraints: ClassVar = {"relevance": [StrOptions(set(RELEVANCES))]}

    def _relevance(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.relevance == "mutual_info":
            return MIM(n_neighbors=_NEIGHBOURS, task=self.task_, random_state=self.random_state).fit(X, y).scores_
        if self.task_ == "regression":
            # A column that is a multiple of y divides by zero: an infinite F is right.
            with np.errstate(divide="ignore", invalid="ignore"):
                statistic = f_regression(X, y)[0]
        else:
            counts = np.bincount(y)
            statistic = between_over_within(*class_moments(X, y, counts.size), counts)
            statistic *= (y.size - counts.size) / (counts.size - 1)
        statistic = np.nan_to_num(statistic, nan=0.0, posinf=np.inf)
        # Infinite ones stay comparable after the division by the redundancy.
        return np.minimum(statistic, 1e6 * max(1.0, statistic[np.isfinite(statistic)].max(initial=0.0)))

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        relevance = self._relevance(X, y)
        centred = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        norms = np.sqrt(np.einsum("ij,ij->j", centred, centred, dtype=np.float64))
        unit = np.divide(centred, norms.astype(X.dtype), out=np.zeros_like(centred), where=norms > 0)
        picked = [int(np.argmax(relevance))]
        redundancy = np.zeros(X.shape[1])
        while True:
            correlations = np.abs(unit[:, picked[-1]] @ unit).astype(np.float64)
            if self.relevance == "mutual_info":
                redundancy += gaussian_information(correlations)
                criterion = relevance - redundancy / len(picked)
            else:
                redundancy += correlations
                criterion = relevance / np.maximum(redundancy / len(picked), _SMALLEST_REDUNDANCY)
            criterion[picked] = -np.inf
            if len(picked) == self.n_features_to_select_:
                break
            picked.append(int(np.argmax(criterion)))
        rest = np.argsort(-criterion, kind="stable")[: X.shape[1] - len(picked)]
        return scores_from_order(np.concatenate([picked, rest]).astype(np.int64))
