"""Judge how large a statistic gets without an effect: exact moments under permutation, and the largest of all tests.

Two steps lead from a statistic to a corrected p value.

1. Each test is a sum of squared projections, ``T = trace(H K)``: H projects on the functions of the test, K is the Gram matrix of
   the residuals. Its mean and variance over all permutations of the residuals are known in closed form (Pitman 1937 for one
   residual; Kazi-Aoual, Hitier, Sabatier and Lebreton 1995 in general), and a beta distribution with these moments gives the
   p value of the single test. Rare classes and rare values change the variance and thereby the p value. Residuals of an
   additive model of classes cannot change places; their moments follow from the expected probabilities of each row.
2. The smallest of all p values is compared with the smallest in each permutation (Westfall and Young 1993). For m independent
   tests it is exponential with mean 1 / m; for dependent ones m is replaced by an effective number that the permutations give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special


def permutation_variance(rank: np.ndarray, leverage: np.ndarray, n_targets: int, target: float, n: int) -> np.ndarray:
    """Return the variance of ``trace(H K)`` over all permutations of the rows of K.

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


def model_variance(rank: np.ndarray, excess: np.ndarray, n_targets: int, n: int) -> np.ndarray:
    """Return the variance of ``trace(H K)`` if the residuals are drawn from a model, row by row.

    Parameters
    ----------
    rank : ndarray
        Rank of the projection H.
    excess : ndarray
        Sum over the rows of the squared diagonal of H times the excess kurtosis of the residual of that row.
    n_targets : int
        Number of residuals, each with variance 1.
    n : int
        Number of rows.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> h, p = np.array([3.0, -1, -1, -1, 0]) / np.sqrt(12), np.array([0.1, 0.2, 0.5, 0.3, 0.9])
    >>> r = ((random.random((200_000, 5)) < p) - p) / np.sqrt(p * (1 - p))
    >>> exact = model_variance(1, (h**4) @ (1 / (p * (1 - p)) - 6), 1, 5)
    >>> bool(np.isclose(np.var((r @ h) ** 2 / 5), exact, rtol=0.02))
    True
    """
    return (2.0 * n_targets * np.asarray(rank, dtype=np.float64) + np.asarray(excess)) / n**2


def log_p_values(statistic: np.ndarray, rank: np.ndarray, variance: np.ndarray, n_targets: int, n: int) -> np.ndarray:
    """Return the natural logarithm of the p value of each statistic ``trace(H K)``, by a beta distribution.

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
    tested = rank > 0
    top = np.minimum(np.where(tested, rank, 1.0), n_targets)
    mean = np.where(tested, rank, 1.0) * n_targets / (n - 1) / top
    variance = np.clip(np.asarray(variance) / top**2, 1e-3 * mean**2, 0.999 * mean * (1 - mean))
    size = np.maximum(mean * (1 - mean) / variance - 1, 1e-6)
    share = np.clip(np.asarray(statistic) / top, 0.0, 1.0)
    return np.where(tested, log_beta_sf(mean * size, (1 - mean) * size, share), 0.0)


def log_beta_sf(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the logarithm of the upper tail of a beta distribution, also where the tail is below the smallest number.

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
        rest = np.maximum(1.0 - x[tiny], 1e-15)
        result[tiny] = (
            b[tiny] * np.log(rest)
            + (a[tiny] - 1) * np.log(x[tiny])
            - np.log(b[tiny])
            - special.betaln(a[tiny], b[tiny])
        )
    return np.minimum(result, 0.0)


@dataclass(frozen=True)
class TailFit:
    """Describe the smallest of many dependent p values: ``P(min p <= p) = 1 - exp(-(n_effective p) ** slope)``.

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
        """Return the logarithm of the corrected p values.

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
    log_smallest = np.asarray(log_smallest, dtype=np.float64)
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
