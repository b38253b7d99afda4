"""Target of a search for pairs, and its residuals after an additive model of the strong columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, special, stats
from scipy.optimize import isotonic_regression
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

from tamiz._utils.validation import check_numeric_target
from tamiz.pairs.basis import Basis, finer_functions
from tamiz.pairs.evidence import Judge, log_p_values, permutation_variance
from tamiz.rows.targets import check_no_missing, decide_task, encode_classes

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
    target: PairTarget, design: np.ndarray | None = None, spread: np.ndarray | None = None, any_scale: bool = False
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
        fitted = _fit_ridge(design, target.values, weights * rescaled.main_scale**2)
        fit = (target.values - fitted) * rescaled.main_scale
    else:
        fit = _class_probabilities(design, target.values.astype(int), weights, any_scale=False)
    return _log_likelihood(target, fit) - rescaled.log_likelihood > products.shape[1]


def _normal_scores(values: np.ndarray) -> np.ndarray:
    return special.ndtri((stats.rankdata(values) - 0.5) / len(values))[None]


def _fit_ridge(design: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Fit a ridge regression with penalty 1; scikit-learn's takes ten times as long to check tables as small as these."""
    offset, mean = np.average(design, axis=0, weights=weights), np.average(values, weights=weights)
    root = np.sqrt(weights)
    part = (design - offset) * root[:, None]
    coef = linalg.solve(part.T @ part + np.eye(part.shape[1]), part.T @ ((values - mean) * root), assume_a="pos")
    return design @ coef + (mean - offset @ coef)


def _monotone(predictor: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Fit a monotone function of a predictor to the target."""
    _, place = np.unique(predictor, return_inverse=True)
    weights = np.maximum(weights, 1e-12)
    sums = np.bincount(place, weights)
    return isotonic_regression(np.bincount(place, weights * target) / sums, weights=sums).x[place]


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
    both, design = np.concatenate(parts, axis=1), np.empty((n_rows, 0)) if design is None else design
    values, weights = target.values, target.weights * n_rows
    fit = np.zeros(n_rows)
    if any_scale:
        # Turns of fitting the columns to the target and the target, by a monotone function, to the fit (Breiman, Friedman 1985).
        scaled = _normal_scores(values)[0]
        for _ in range(5):
            fit = _fit_ridge(design, scaled, weights)
            scaled = stats.zscore(_monotone(values, fit, weights))
    spread = np.ones(n_rows)
    for _ in range(3):
        precision = weights / spread**2
        if any_scale:
            errors = values - _monotone(fit, values, precision)
        else:
            errors = values - _fit_ridge(design, values, precision)
        size = np.log(np.abs(errors) + 0.1 * np.median(np.abs(errors)) + 1e-300)
        # Relative to its median, and within limits before the exponential: it may underflow where the fit is perfect.
        size = _fit_ridge(both, size, weights)
        spread = np.exp(np.clip(size - np.median(size), *np.log(_SPREAD_LIMITS)))
    return errors / spread, 1.0 / spread


def _class_probabilities(design: np.ndarray, codes: np.ndarray, weights: np.ndarray, any_scale: bool) -> np.ndarray:
    """Predict by an additive logistic model with a weak ridge."""
    model = LogisticRegression(C=1.0, solver="newton-cholesky", max_iter=100, tol=1e-5)
    with config_context(assume_finite=True, skip_parameter_validation=True):  # checks take longer than small fits
        shares = model.fit(design, codes, sample_weight=weights).predict_proba(design)
    if any_scale:
        shares = np.stack([_monotone(shares[:, c], codes == c, weights) for c in range(shares.shape[1])], axis=1)
    shares = np.clip(shares, _SMALLEST_PROBABILITY, 1.0)
    return shares / shares.sum(axis=1, keepdims=True)


def additive_residuals(
    judge: Judge, target: PairTarget, log_p: np.ndarray, n_tests: int
) -> tuple[PairResiduals, Callable[[], PairResiduals], np.ndarray]:
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
    rescale : callable
        Computes those on the best monotone scale, which takes two columns in the model.
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
    part, design, spread = "mean", None, None
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
    return residuals, partial(residuals_of, target, design, spread, any_scale=True), fitted


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
