"""Residuals of the target after an additive model of the strong columns, and exact tests of columns and chosen pairs.

A test compares the share of the residuals that the functions of a column, or the products of two, explain with its distribution
without effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge

from tamiz._utils.validation import check_numeric_target
from tamiz.pairs.basis import FINER_DEGREE, Basis, finer_functions
from tamiz.rows.targets import check_no_missing, decide_task, encode_classes


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


# A probability nearer to 0 or 1 would give one row a residual that outweighs all others.
_SMALLEST_PROBABILITY = 0.02
# Rows that each coefficient of the additive model needs.
_ROWS_PER_COEFFICIENT = 10
# Columns that the additive model has room for at least: with few rows each gets fewer functions.
_COLUMNS_WITH_ROOM = 4
# Range of the expected spread of the residuals of a regression, as a multiple of their median spread.
_SPREAD_LIMITS = (0.25, 4.0)


@dataclass(frozen=True, eq=False)
class PairTarget:
    """Checked target.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Codes of the classes, or numbers.
    classes : ndarray or None
        The classes; None for a regression.
    weights : ndarray of shape (n_samples,)
        Weights of the rows, adding up to 1.
    """

    values: np.ndarray
    classes: np.ndarray | None
    weights: np.ndarray


def read_target(y: Any, sample_weight: Any, n_samples: int, task: str = "auto") -> PairTarget:
    """Check a target and its weights, and find out its task.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Classes (text, booleans, integers) or numbers.
    sample_weight : array-like of shape (n_samples,) or None
        Weights of the rows.
    n_samples : int
        Rows of the table.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto": as :func:`tamiz.rows.targets.decide_task` says.

    Examples
    --------
    >>> read_target(["a", "b", "a", "b"], None, 4).classes.tolist(), read_target([0.5, 1.2, 3.4], None, 3).classes
    (['a', 'b'], None)
    """
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    if y.shape != (n_samples,):
        raise ValueError(f"y must hold one entry for each of the {n_samples} rows of X, got shape {y.shape}.")
    weights = np.ones(n_samples) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,) or not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
        raise ValueError(f"sample_weight must hold {n_samples} finite numbers from 0, not all of them 0.")
    weights = weights / weights.sum()
    check_no_missing(y)
    if decide_task(y, task) == "regression":
        numbers = check_numeric_target(y)
        if np.ptp(numbers[weights > 0]) == 0.0:
            raise ValueError("y is constant: there is nothing that columns could explain.")
        return PairTarget(numbers, None, weights)
    classes, codes = encode_classes(y)
    present = np.unique(codes[weights > 0])
    if len(present) < 2:
        raise ValueError(f"the rows with a weight hold one class only ({classes.tolist()[present[0]]!r}): give two.")
    if len(classes) > n_samples // 2:
        raise ValueError(
            f"y holds {len(classes)} classes on {n_samples} rows. Pass task='regression' if these are numbers, or merge classes."
        )
    classes, codes = classes[present], np.searchsorted(present, codes).clip(0, len(present) - 1)
    return PairTarget(codes.astype(np.float64), classes, weights)


@dataclass(frozen=True, eq=False)
class PairResiduals:
    """Standardised residuals.

    Parameters
    ----------
    values : ndarray of shape (n_targets, n_samples)
        Variance 1, uncorrelated; one row less than there are classes.
    scale : ndarray of shape (n_samples,)
        What products of functions are multiplied by: weight of the row times the square root of its information on an
        additive model (the expected standard deviation of a class, the inverse of it for numbers); mean square 1.
    main_scale : ndarray of shape (n_samples,)
        The square root of the information alone.
    probabilities : ndarray of shape (n_samples, n_classes) or None, default=None
        What the additive model expects; None without one, and for a regression.
    design : ndarray of shape (n_samples, n_functions) or None, default=None
        Functions of the columns in the model.
    log_likelihood : float, default=0.0
        Of the model, up to a constant.
    """

    values: np.ndarray
    scale: np.ndarray
    main_scale: np.ndarray
    probabilities: np.ndarray | None = None
    design: np.ndarray | None = None
    log_likelihood: float = 0.0

    def log_p(self, statistic: np.ndarray, rank: np.ndarray, white: np.ndarray) -> np.ndarray:
        """Compute the natural logarithm of the p value of tests.

        Parameters
        ----------
        statistic : ndarray of shape (..., n_tests)
            What each test explains, from 0 to the smaller of its rank and the number of residuals.
        rank : ndarray of int, shape (n_tests,)
            Number of its functions.
        white : ndarray of shape (n_tests, n_functions, n_samples)
            These functions, orthonormal.
        """
        n_targets, n_rows = self.values.shape
        leverages = np.einsum("tkn,tkn->tn", white, white) ** 2
        if self.probabilities is None:  # rows may be permuted
            target = float((((self.values**2).sum(axis=0) / n_rows) ** 2).sum())
            leverage = leverages @ np.ones(n_rows, dtype=np.float32)
            variance = permutation_variance(rank, leverage, n_targets, target, n_rows)
        else:
            # Residuals are drawn from the model, row by row. A leverage counts with the excess kurtosis of its row: the squared
            # length of the standardised error of a row in class c is 1 / p_c - 1.
            shares, n_errors = self.probabilities, self.probabilities.shape[1] - 1
            excess = ((1 - shares) ** 2 / shares).sum(axis=1) - n_errors**2 - 2 * n_errors
            variance = (2.0 * n_targets * rank + leverages @ excess.astype(np.float32)) / n_rows**2
        return log_p_values(statistic, rank, variance, n_targets, n_rows)

    def sizes(self) -> PairResiduals:
        """Turn the sizes of the residuals of a regression into residuals, to test the spread."""
        values = _whitened(_normal_scores(np.abs(self.values[0])))
        return PairResiduals(values, self.scale / self.main_scale, np.ones(values.shape[1]))

    def replicate(self, random: np.random.Generator) -> PairResiduals:
        """Draw residuals as they would be without any pair.

        Without an additive model, and for a regression, these are the residuals in another order of the rows. Residuals of an
        additive model of classes cannot change places, as rows differ in their expected variance: there, classes are drawn
        from the model.
        """
        if self.probabilities is None:
            return replace(self, values=self.values[:, random.permutation(self.values.shape[1])])
        bounds = np.cumsum(self.probabilities, axis=1)[:, :-1]
        codes = (random.random(len(bounds))[:, None] > bounds).sum(axis=1)
        values = _whitened(_class_errors(codes, self.probabilities), self.scale)
        if len(values) < len(self.values):  # a rare class was not drawn
            return self.replicate(random)
        return replace(self, values=values)


def _whitened(raw: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """Whiten residuals; those of a model of classes are given with the scale of their rows.

    The mean of standardised residuals of a logistic model is not 0 where the model misses something: it is evidence and stays.
    Their variance is measured with the square of the scale, as it counts in the evidence of a pair: rows whose class is nearly
    certain have residuals near 0 and would otherwise make those of all other rows look large.
    """
    centred = raw - raw.mean(axis=1, keepdims=True) if scale is None else raw
    weights = np.ones(raw.shape[1]) if scale is None else scale**2
    values, vectors = np.linalg.eigh((centred * weights) @ centred.T / weights.sum())
    kept = values > 1e-9 * values.max()
    if scale is not None and len(raw) > 1:
        kept[0] = False  # errors of C classes have C - 1 directions; a model turns the last one from row to row
    return (vectors[:, kept] / np.sqrt(values[kept])).T @ centred


def _class_errors(codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Errors of class probabilities, standardised row by row, shape (n_errors, n_samples)."""
    n_classes = shares.shape[1]
    errors = (codes[:, None] == np.arange(n_classes)) - shares
    if n_classes == 2:
        return (errors[:, 1] / np.sqrt(shares[:, 1] * shares[:, 0]))[None]
    # Whiten row by row with the covariance of a multinomial variable, diag(p) - p p'.
    covariance = shares[:, :, None] * np.eye(n_classes) - shares[:, :, None] * shares[:, None, :]
    values, vectors = np.linalg.eigh(covariance)
    roots = np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0.0)
    return np.einsum("nab,nb->an", vectors, np.einsum("nab,na->nb", vectors, errors) * roots)


def residuals_of(
    target: PairTarget,
    design: np.ndarray | None = None,
    spread: np.ndarray | None = None,
    any_scale: bool = False,
) -> PairResiduals:
    """Compute the residuals of an additive model.

    Parameters
    ----------
    target : PairTarget
        The target.
    design : ndarray of shape (n_samples, n_functions) or None, default=None
        Functions of the columns in the model; None is a model without columns.
    spread : ndarray of shape (n_samples, n_spread_functions) or None, default=None
        Functions of further columns, which change the spread of a numeric target only.
    any_scale : bool, default=False
        Whether the model is additive on the best monotone scale of the target in place of the log odds, or of the numbers.

    Examples
    --------
    >>> found = residuals_of(read_target([0, 0, 1, 1], None, 4))
    >>> np.round(np.abs(found.values), 6).tolist(), found.scale.tolist()
    ([[1.0, 1.0, 1.0, 1.0]], [1.0, 1.0, 1.0, 1.0])
    """
    weights, n_rows = target.weights, len(target.values)
    probabilities = None
    if target.classes is None:
        values, deviation = _number_errors(target, design, spread, any_scale)
        # Normal scores of the residuals, so that a few far values do not decide; the model itself is fitted to the numbers.
        errors = _normal_scores(values)
    else:
        codes, n_classes = target.values.astype(int), len(target.classes)
        if design is None:
            shares = np.bincount(codes, weights=weights, minlength=n_classes)
            expected = np.broadcast_to(shares, (n_rows, n_classes))
        else:
            expected = probabilities = _class_probabilities(design, codes, weights * n_rows, any_scale)
        errors = _class_errors(codes, expected)
        deviation = np.sqrt((expected * (1 - expected)).sum(axis=1) / 2)
    scale = weights * n_rows * deviation
    main_scale = deviation / np.sqrt(np.mean(deviation**2))
    fit = probabilities if target.classes is not None else values * main_scale / deviation
    likelihood = 0.0 if fit is None else _log_likelihood(target, fit)
    white = _whitened(errors, None if probabilities is None else scale)
    scale = scale / np.sqrt(np.mean(scale**2))
    return PairResiduals(white, scale, main_scale, probabilities, design, likelihood)


def _log_likelihood(target: PairTarget, fit: np.ndarray) -> float:
    """Log likelihood of weighted errors, or of probabilities of the classes."""
    weights, n_rows = target.weights, len(target.values)
    if target.classes is None:
        return float(-n_rows / 2 * np.log(max(weights @ fit**2, 1e-300)))
    return float(n_rows * weights @ np.log(fit[np.arange(n_rows), target.values.astype(int)]))


def explains_more(target: PairTarget, products: np.ndarray, rescaled: PairResiduals) -> bool:
    """Whether products of two columns improve the additive model by more than the best monotone scale does.

    Both log likelihoods are those of the fitted rows. The products pay one for each degree of freedom (Akaike), the monotone
    function nothing, so that the scale is preferred in doubt.
    """
    design = np.concatenate([rescaled.design, products], axis=1)
    weights = target.weights * len(design)
    if target.classes is None:
        model = Ridge(alpha=1.0).fit(design, target.values, sample_weight=weights * rescaled.main_scale**2)
        fit = (target.values - model.predict(design)) * rescaled.main_scale
    else:
        fit = _class_probabilities(design, target.values.astype(int), weights, any_scale=False)
    return _log_likelihood(target, fit) - rescaled.log_likelihood > products.shape[1]


def _normal_scores(values: np.ndarray) -> np.ndarray:
    return special.ndtri((stats.rankdata(values) - 0.5) / len(values))[None]


def _monotone(predictor: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Fit a monotone function of a predictor to the target."""
    model = IsotonicRegression(out_of_bounds="clip")
    return model.fit_transform(predictor, target, sample_weight=np.maximum(weights, 1e-12))


def _number_errors(
    target: PairTarget, design: np.ndarray | None, spread_design: np.ndarray | None, any_scale: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Divide the errors of an additive model of numbers by their expected spread; return also the inverse of this spread.

    Where a column changes the spread of the target, or where its curve cannot be followed (far values), errors are larger, and
    products of that column with any other would have a larger variance than permutations of the errors have.
    """
    n_rows = len(target.values)
    parts = [part for part in (design, spread_design) if part is not None]
    if not parts:
        return target.values, np.ones(n_rows)
    both = np.concatenate(parts, axis=1)
    values, weights = target.values, target.weights * n_rows
    fit = np.zeros(n_rows)
    if any_scale:
        # Turns of fitting the columns to the target and the target, by a monotone function, to the fit (Breiman, Friedman 1985).
        scaled = _normal_scores(values)[0]
        for _ in range(5):
            fit = Ridge(alpha=1.0).fit(design, scaled, sample_weight=weights).predict(design)
            scaled = stats.zscore(_monotone(values, fit, weights))
    spread = np.ones(n_rows)
    for _ in range(3):
        precision = weights / spread**2
        if design is None:
            errors = values - np.average(values, weights=precision)
        elif any_scale:
            errors = values - _monotone(fit, values, precision)
        else:
            errors = values - Ridge(alpha=1.0).fit(design, values, sample_weight=precision).predict(design)
        size = np.log(np.abs(errors) + 0.1 * np.median(np.abs(errors)) + 1e-300)
        # Relative to its median, and within limits before the exponential: it may underflow where the fit is perfect.
        size = Ridge(alpha=1.0).fit(both, size, sample_weight=weights).predict(both)
        spread = np.exp(np.clip(size - np.median(size), *np.log(_SPREAD_LIMITS)))
    return errors / spread, 1.0 / spread


def _class_probabilities(design: np.ndarray, codes: np.ndarray, weights: np.ndarray, any_scale: bool) -> np.ndarray:
    """Predict by an additive logistic model with a weak ridge."""
    model = LogisticRegression(C=1.0, solver="newton-cholesky", max_iter=100, tol=1e-5)
    model.fit(design, codes, sample_weight=weights)
    shares = model.predict_proba(design)
    if any_scale:
        shares = np.stack([_monotone(shares[:, c], codes == c, weights) for c in range(shares.shape[1])], axis=1)
    shares = np.clip(shares, _SMALLEST_PROBABILITY, 1.0)
    return shares / shares.sum(axis=1, keepdims=True)


def additive_residuals(
    judge: Judge, target: PairTarget, log_p: np.ndarray, n_tests: int
) -> tuple[PairResiduals, PairResiduals | None, np.ndarray]:
    """Fit an additive model by forward selection; compute its residuals, on the given and on the best monotone scale.

    Columns whose own evidence, given those in the model, is significant after a correction for the number of columns come in,
    strongest first, as long as there are ten rows for each coefficient; then, for a numeric target, columns that change
    its spread (the size of the residuals is tested as the residuals are; Glejser 1969). A column gets up to four functions, fewer
    if rows are few.

    Parameters
    ----------
    judge : Judge
        The tests of the columns.
    target : PairTarget
        The target.
    log_p : ndarray of shape (n_columns,)
        Logarithm of the p value of each column without a model.
    n_tests : int
        Number of columns to correct for.

    Returns
    -------
    residuals : PairResiduals
        On the given scale.
    rescaled : PairResiduals or None
        On the best monotone scale; None where fewer than two columns are in the model.
    fitted : ndarray of int
        Columns in the model.
    """
    residuals = residuals_of(target)
    n_informative, n_errors = float(len(target.values)), 1
    if target.classes is not None:  # number of rows of balanced classes that are as informative as these
        shares = np.bincount(target.values.astype(int), weights=target.weights, minlength=len(target.classes))
        n_informative, n_errors = n_informative * min(1.0, len(shares) * shares.min()), len(shares) - 1
    room = n_informative / (_ROWS_PER_COEFFICIENT * n_errors)
    degree = max(1, int(room / _COLUMNS_WITH_ROOM))
    limit = np.log(0.05 / max(1, n_tests))
    columns: dict[str, list[int]] = {"mean": [], "spread": []}
    functions: dict[str, list[np.ndarray]] = {"mean": [], "spread": []}
    part = "mean"
    while True:
        taken = columns["mean"] + (columns["spread"] if part == "spread" else [])
        free = room - len(functions[part])
        chosen, added = _choose(judge.basis, target.weights, log_p, taken, limit, free, degree)
        if chosen:
            columns[part] += chosen
            functions[part] += added
        elif part == "spread" or target.classes is not None:
            break
        design, spread = (np.stack(listed, axis=1) if listed else None for listed in functions.values())
        if chosen:
            residuals = residuals_of(target, design, spread)
        # After a column of the spread the mean is looked at again; without any candidate for the mean, the spread.
        part = "mean" if chosen else "spread"
        log_p = judge.columns(residuals if part == "mean" else residuals.sizes())
    fitted = np.array(columns["mean"], dtype=np.int64)
    return residuals, residuals_of(target, design, spread, any_scale=True) if fitted.size > 1 else None, fitted


def _choose(
    basis: Basis, weights: np.ndarray, log_p: np.ndarray, taken: list[int], limit: float, room: float, degree: int
) -> tuple[list[int], list[np.ndarray]]:
    """Choose up to four of the strongest columns; return them with their functions."""
    log_p = log_p.copy()
    log_p[taken] = 0.0
    chosen: list[int] = []
    added: list[np.ndarray] = []
    for column in np.argsort(log_p, kind="stable")[:10]:
        if log_p[column] > limit or len(chosen) == 4:
            break
        functions = finer_functions(basis, int(column), weights)[:degree]
        # Of columns that say nearly the same, the first one of this round will do.
        close = [abs(basis.of_column(other)[0] @ (weights * functions[0])) > 0.7 for other in chosen]
        if any(close) or len(added) + len(functions) > room:
            continue
        chosen.append(int(column))
        added.extend(functions)
    return chosen, added


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
        product = (
            features[:, :1] - coefficients[:, :, :1].transpose(0, 2, 1).astype(np.float32) @ features[:, n_products:]
        )
        explained = (first**2 * inner[:, 0] ** 2).sum(axis=1) / n_rows
        alone = residuals.log_p(explained, (first[:, 0] > 0).astype(int), first[:, :, None] * product)
        log_p = np.minimum(np.minimum(log_p - np.log(1 - _PRODUCT_SHARE), alone - np.log(_PRODUCT_SHARE)), 0.0)
    strongest = ((inner**2).sum(axis=2) / np.where(size > smallest, size, np.inf)).argmax(axis=1)
    component = np.stack([strongest // shape[2], strongest % shape[2]], axis=1)
    return log_p, np.sqrt(np.clip(statistic / max(n_targets, 1), 0.0, 1.0)), component
