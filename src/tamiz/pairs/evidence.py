"""Exact tests of columns and chosen pairs, and the distribution of what they find without an effect.

A test compares the share of the residuals that the functions of a column, or the products of two, explain with its distribution
without effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from tamiz.pairs.basis import FINER_DEGREE, Basis, finer_functions

if TYPE_CHECKING:
    from tamiz.pairs.target import PairResiduals


def permutation_variance(rank: np.ndarray, leverage: np.ndarray, n_targets: int, target: float, n: int) -> np.ndarray:
    """Compute the variance of ``trace(H K)`` over all permutations of the rows of K.

    Parameters
    ----------
    rank : ndarray
        Rank of the projection H, whose rows add up to 0.
    leverage : ndarray
        Sum of the squared diagonal of H.
    n_targets : int
        Rank of the projection K, whose rows add up to 0.
    target : float
        Sum of the squared diagonal of K.
    n : int
        Number of rows.

    Examples
    --------
    >>> from itertools import permutations
    >>> h, r = np.array([3.0, -1, -1, -1, 0]) / np.sqrt(12), np.array([1.0, 1, -2, 1, -1]) / np.sqrt(8)
    >>> exact = np.var([(h @ r[list(order)]) ** 2 for order in permutations(range(5))])
    >>> bool(np.isclose(exact, permutation_variance(1, (h**4).sum(), 1, (r**4).sum(), 5)))
    True
    """
    rank = np.asarray(rank, dtype=np.float64)
    first = ((n - 1) * rank - rank**2) * ((n - 1) * n_targets - n_targets**2)
    first = 2 * first / ((n - 1) ** 2 * (n + 1) * (n - 2))
    excess = n * (n + 1) * np.asarray(leverage) - (n - 1) * (rank**2 + 2 * rank)
    target_excess = n * (n + 1) * target - (n - 1) * (n_targets**2 + 2 * n_targets)
    return first + excess * target_excess / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))


def log_p_values(statistic: np.ndarray, rank: np.ndarray, variance: np.ndarray, n_targets: int, n: int) -> np.ndarray:
    """Compute the natural logarithm of the p value of each statistic ``trace(H K)``, by a beta distribution.

    Parameters
    ----------
    statistic : ndarray
        From 0 to ``min(rank, n_targets)``.
    rank : ndarray
        Rank of the projection H; where it is 0 there is no test and the result is 0.
    variance : ndarray
        Variance of the statistic without an effect.
    n_targets : int
        Number of residuals.
    n : int
        Number of rows.

    Examples
    --------
    >>> rank = np.array([1, 0])
    >>> variance = permutation_variance(rank, np.array([0.03, 0]), 1, 0.01, 100)
    >>> np.round(np.exp(log_p_values(np.array([0.04, 0.04]), rank, variance, 1, 100)), 3).tolist()
    [0.046, 1.0]
    """
    rank = np.asarray(rank, dtype=np.float64)
    if n_targets == 0:  # the model explains the target wholly: nothing is left to be tested
        return np.zeros(np.shape(statistic))
    tested = rank > 0
    top = np.minimum(np.where(tested, rank, 1.0), n_targets)
    # With as many functions as rows the statistic has no spread, and nothing can be told.
    mean = np.minimum(np.where(tested, rank, 1.0) * n_targets / (n - 1) / top, 1 - 1e-9)
    variance = np.clip(np.asarray(variance) / top**2, 1e-3 * mean**2, 0.999 * mean * (1 - mean))
    size = np.maximum(mean * (1 - mean) / variance - 1, 1e-6)
    share = np.clip(np.asarray(statistic) / top, 0.0, 1.0)
    return np.where(tested, log_beta_sf(mean * size, (1 - mean) * size, share), 0.0)


def log_beta_sf(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Compute the logarithm of the upper tail of a beta distribution, also where the tail is below the smallest number.

    Examples
    --------
    >>> np.round(log_beta_sf(np.array([2.0, 2.0]), np.array([400.0, 4000.0]), np.array([0.05, 0.9])), 2).tolist()
    [-17.47, -9202.15]
    """
    a, b, x = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float), np.asarray(x, float))
    tail = special.betainc(b, a, 1.0 - x)
    with np.errstate(divide="ignore"):
        result = np.log(tail)
    tiny = (tail < 1e-280) & (x > 0)
    if tiny.any():
        # First term of the expansion at 1 - x = 0: (1 - x)^b x^(a - 1) / (b B(a, b)) times a factor near 1 / x.
        a, b, x = a[tiny], b[tiny], x[tiny]
        rest = np.log(np.maximum(1.0 - x, 1e-15))
        result[tiny] = b * rest + (a - 1) * np.log(x) - np.log(b) - special.betaln(a, b)
    return np.minimum(result, 0.0)


@dataclass(frozen=True)
class TailFit:
    """Distribution of the smallest of many dependent p values: ``P(min p <= p) = 1 - exp(-(n_effective p) ** slope)``.

    Parameters
    ----------
    n_effective : float
        Effective number of tests.
    slope : float
        1 if the p values of the single tests are exact; less if they are too small.
    n_permutations : int
        How many permutations it rests on; 0 is a plain correction for the number of tests.
    """

    n_effective: float
    slope: float = 1.0
    n_permutations: int = 0

    def log_corrected(self, log_p: np.ndarray) -> np.ndarray:
        """Correct p values for the number of tests; natural logarithms.

        Examples
        --------
        >>> np.round(np.exp(TailFit(1000.0).log_corrected(np.log([1e-2, 1e-5]))), 4).tolist()
        [1.0, 0.01]
        """
        rate = self.slope * (np.asarray(log_p, dtype=np.float64) + np.log(self.n_effective))
        rate = np.minimum(rate, 30.0)
        # log(1 - exp(-e^rate)), which is rate itself where that is far below 0
        return np.where(rate < -15, rate, np.log(-np.expm1(-np.exp(np.maximum(rate, -15.0)))))


# Number of permutations that the prior belief in exact p values (slope 1) is worth.
_PRIOR_WEIGHT = 20.0
# A slope above 1 is mostly chance and would make p values too small.
_LARGEST_SLOPE = 1.05


def fit_tail(log_smallest: np.ndarray, n_tests: int) -> TailFit:
    """Fit the distribution of the smallest p value to those of some permutations.

    The logarithm of the smallest p value follows a Gumbel distribution. Its slope is shrunk towards 1, which holds for exact p
    values, so that few permutations do: with slope 1 the family-wise error is exact on average for any number of them.

    Parameters
    ----------
    log_smallest : ndarray of shape (n_permutations,)
        Logarithm of the smallest p value in each permutation.
    n_tests : int
        Number of tests; the effective number is not larger than this times 3.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> fit = fit_tail(np.log(random.random((200, 500)).min(axis=1)), 500)
    >>> 400 < fit.n_effective < 600, 0.9 < fit.slope < 1.1
    (True, True)
    """
    count = len(log_smallest)
    if count == 0:
        return TailFit(float(max(1, n_tests)))
    slope = 1.0
    if count >= 5:
        # The second L-moment of a Gumbel variable is log(2) over the slope.
        ordered = np.sort(log_smallest)
        spread = (ordered @ (2 * np.arange(count) - count + 1)) / (count * (count - 1))
        own = np.log(2) / max(spread, 1e-3)
        share = count / (count + _PRIOR_WEIGHT)
        slope = float(np.clip(np.exp(share * np.log(own)), 0.3, _LARGEST_SLOPE))
    # Maximum likelihood for a given slope: the mean of (n p)^slope is 1.
    biggest = log_smallest.max()
    log_mean = slope * biggest + np.log(np.mean(np.exp(slope * (log_smallest - biggest))))
    n_effective = np.exp(min(-log_mean / slope, 300.0))
    return TailFit(float(np.clip(n_effective, 1.0, 3.0 * max(1, n_tests))), slope, count)


# Directions that keep less than this share of their variance once both columns are taken out are not tested.
_SMALLEST_SHARE = 0.02
_PRODUCT_SHARE = 0.75
_CACHE_BYTES = 64 * 2**20


class Judge:
    """Test columns on their own, and pairs beyond their two columns.

    Parameters
    ----------
    basis : Basis
        The functions of all columns.
    weights : ndarray of shape (n_samples,)
        Weights of the rows, adding up to 1.
    """

    def __init__(self, basis: Basis, weights: np.ndarray) -> None:
        self.basis, self.weights = basis, weights
        # Finer functions are needed again for every permutation: those of so many columns are kept.
        n_kept = _CACHE_BYTES // (4 * FINER_DEGREE * len(weights))
        self._finer = lru_cache(maxsize=n_kept)(lambda column: finer_functions(basis, column, weights))

    def pairs(self, pairs: np.ndarray, residuals: PairResiduals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Test pairs: project the products of the functions of both columns off those of each alone (of degree 4).

        Parameters
        ----------
        pairs : ndarray of int, shape (n_pairs, 2)
            The pairs.
        residuals : PairResiduals
            Regressed on what is left of the products.

        Returns
        -------
        log_p : ndarray of shape (n_pairs,)
            Natural logarithm of the p value of each pair on its own.
        strength : ndarray of shape (n_pairs,)
            Multiple correlation of the residuals with the products, from 0 to 1.
        component : ndarray of int, shape (n_pairs, 2)
            Functions of the two columns whose product explains most, from 0.
        """
        log_p, strength = np.zeros((2, len(pairs)))
        component = np.zeros((len(pairs), 2), dtype=np.int64)
        degrees = self.basis.degrees
        widest = int(degrees.max(initial=1)) ** 2 + 2 * FINER_DEGREE + 2
        size = max(1, 2**21 // (len(self.weights) * widest))
        for start in range(0, len(pairs), size):
            part = pairs[start : start + size]
            columns, place = np.unique(part, return_inverse=True)
            place = place.reshape(part.shape)
            own = _stack([self.basis.of_column(column).astype(np.float32) for column in columns])
            listed = [self._finer(int(column)) for column in columns]
            finer, n_finer = _stack(listed), np.array([len(functions) for functions in listed])
            shapes = np.stack([degrees[part], n_finer[place]], axis=2).reshape(len(part), 4)
            shapes = np.column_stack([shapes, self.basis.is_polynomial[part].all(axis=1)])
            for shape in np.unique(shapes, axis=0):
                if shape[0] and shape[2]:
                    rows = np.flatnonzero((shapes == shape).all(axis=1))
                    found = _judge_batch(own, finer, place[rows], shape, residuals)
                    log_p[start + rows], strength[start + rows], component[start + rows] = found
        return log_p, strength, component

    def columns(self, residuals: PairResiduals, orders: np.ndarray | None = None) -> np.ndarray:
        """Compute the logarithm of the p value of each column on its own.

        Parameters
        ----------
        residuals : PairResiduals
            The residuals.
        orders : ndarray of int, shape (n_permutations, n_samples), or None, default=None
            Orders of the rows; if given, the smallest value of each is returned in place of that of each column.
        """
        values = residuals.values
        n_targets, n_rows = values.shape
        stacked = values if orders is None else values[:, orders].transpose(1, 0, 2).reshape(-1, n_rows)
        n_orders = 1 if orders is None else len(orders)
        result = np.zeros((self.basis.n_columns, n_orders))
        constant = (residuals.main_scale / np.sqrt(residuals.main_scale @ residuals.main_scale)).astype(np.float32)
        scale = residuals.scale.astype(np.float32)
        size = max(1, 2**21 // len(self.weights))
        for start in range(0, self.basis.n_columns, size):
            columns = np.arange(start, min(start + size, self.basis.n_columns))
            part = self.basis.take(columns)
            degrees = part.degrees
            if not degrees.any():
                continue
            off = np.zeros((len(columns), int(degrees.max()), n_rows), dtype=np.float32)
            off[np.arange(off.shape[1]) < degrees[:, None]] = part.dense() * scale
            off -= (off @ constant)[:, :, None] * constant
            grams = (off @ off.transpose(0, 2, 1)).astype(np.float64)
            total = np.trace(grams, axis1=1, axis2=2) / np.maximum(degrees, 1)
            whiten, rank = _whitener(grams, np.maximum(_SMALLEST_SHARE * total, 1e-9)[:, None])
            white = whiten.astype(np.float32) @ off
            inner = (white @ stacked.T.astype(np.float32)).astype(np.float64)
            explained = (inner**2).sum(axis=1).reshape(len(columns), n_orders, n_targets).sum(axis=2)
            result[columns] = residuals.log_p((explained / n_rows).T, rank, white).T
        return result[:, 0] if orders is None else result.min(axis=0)


def _stack(functions: list[np.ndarray]) -> np.ndarray:
    """Stack the functions of some columns, filled up with zeros to the largest number of them."""
    stacked = np.zeros((len(functions), max(map(len, functions)), functions[0].shape[1]), dtype=np.float32)
    for place, one in enumerate(functions):
        stacked[place, : len(one)] = one
    return stacked


def _whitener(grams: np.ndarray, smallest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the matrices that make functions of these inner products orthonormal, and the number of them that are left."""
    values, vectors = np.linalg.eigh(grams)
    kept = values > smallest
    inverse = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return (vectors * inverse[:, None, :]).transpose(0, 2, 1), kept.sum(axis=1)


def _judge_batch(
    own: np.ndarray, finer: np.ndarray, pairs: np.ndarray, shape: np.ndarray, residuals: PairResiduals
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute log p, strength and the strongest component of pairs of one shape.

    Parameters
    ----------
    own, finer : ndarray of float32, shape (n_columns, n_functions, n_samples)
        Functions of some columns, and those that take their own effects out.
    pairs : ndarray of int, shape (n_pairs, 2)
        Places of the two columns in these arrays.
    shape : ndarray of int, shape (5,)
        Number of functions and of finer functions of the first, then of the second columns, and whether both have an order,
        so that their product is tested on its own too.
    residuals : PairResiduals
        What the pairs are to explain.
    """
    n_targets, n_rows = residuals.values.shape
    n_products = int(shape[0] * shape[2])
    i, j = pairs.T
    products = own[i, : shape[0], None] * own[j, None, : shape[2]]
    products = products.reshape(len(pairs), n_products, n_rows) * residuals.scale.astype(np.float32)
    ones = np.ones((len(pairs), 1, n_rows), dtype=np.float32)
    mains = np.concatenate([ones, finer[i, : shape[1]], finer[j, : shape[3]]], axis=1)
    features = np.concatenate([products, mains * residuals.main_scale.astype(np.float32)], axis=1)
    gram = (features @ features.transpose(0, 2, 1)).astype(np.float64)
    inner = (features @ residuals.values.T.astype(np.float32)).astype(np.float64)
    # Projection off the constant and the functions of both columns, in the scale in which an error of the additive model shows.
    design, cross = gram[:, n_products:, n_products:], gram[:, n_products:, :n_products]
    coefficients = np.linalg.solve(design + 1e-5 * n_rows * np.eye(design.shape[1]), cross)
    crossed = coefficients.transpose(0, 2, 1) @ cross
    total = gram[:, :n_products, :n_products]
    left = total - crossed - crossed.transpose(0, 2, 1) + coefficients.transpose(0, 2, 1) @ design @ coefficients
    inner = inner[:, :n_products] - coefficients.transpose(0, 2, 1) @ inner[:, n_products:]
    smallest = _SMALLEST_SHARE * np.einsum("mdd->m", total)[:, None] / n_products
    whiten, rank = _whitener(left, smallest)
    statistic = ((whiten @ inner) ** 2).sum(axis=(1, 2)) / n_rows
    off = np.concatenate([whiten, -whiten @ coefficients.transpose(0, 2, 1)], axis=2).astype(np.float32)
    log_p = residuals.log_p(statistic, rank, off @ features)
    size = np.einsum("mdd->md", left)
    if shape[4] and n_products > 1:
        # The product of both columns alone, with one degree of freedom: the better of both tests, of which the product, the
        # commonest joint effect, gets three quarters of the error.
        first = np.where(size[:, :1] > smallest, 1 / np.sqrt(np.maximum(size[:, :1], 1e-12)), 0.0)
        own = coefficients[:, :, :1].transpose(0, 2, 1).astype(np.float32)
        product = features[:, :1] - own @ features[:, n_products:]
        explained = (first**2 * inner[:, 0] ** 2).sum(axis=1) / n_rows
        alone = residuals.log_p(explained, (first[:, 0] > 0).astype(int), first[:, :, None] * product)
        log_p = np.minimum(np.minimum(log_p - np.log(1 - _PRODUCT_SHARE), alone - np.log(_PRODUCT_SHARE)), 0.0)
    strongest = ((inner**2).sum(axis=2) / np.where(size > smallest, size, np.inf)).argmax(axis=1)
    component = np.stack([strongest // shape[2], strongest % shape[2]], axis=1)
    return log_p, np.sqrt(np.clip(statistic / max(n_targets, 1), 0.0, 1.0)), component
