"""Final linear models of the selected columns: exchange of columns, ridge and logistic regression, calibrated scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tamiz._utils.memory import one_blas_thread
from tamiz.core.losses import get_loss
from tamiz.engines.contract import Fit, Problem
from tamiz.engines.linear import LinearModel

#: Rounds of exchange; rows that they, the calibration and the choice of a normalisation look at; rows that are read at once.
MOST_ROUNDS, MOST_ROWS, BLOCK = 30, 20_000, 100_000
#: Rows of the final logistic regression.
MOST_LOGISTIC_ROWS = 500_000
#: Penalties of the refit, for columns with variance 1.
PENALTIES = np.logspace(-1, 4, 26)


def exchange_columns(fit: Fit, problem: Problem, l2: float, seed: int = 0) -> Fit:
    """Exchange selected columns for others while that lowers the penalised squared error of the selection.

    A mask that only closes cannot take a column back, so its columns need not be a local optimum. In each round the 1, 2, 4,
    ... columns whose removal costs least change places with those that lower the error most, as in best-subset selection by
    splicing (Zhu et al. 2020), and the best of these exchanges is taken. A column comes in only if the residuals depend on it
    more than on the best of F columns of noise: else the exchange would trade one column of noise for another that fits the
    training rows better.

    Parameters
    ----------
    fit : Fit
        A linear fit; the model is not changed.
    problem : Problem
        Its data, without groups; of many rows a sample is read.
    l2 : float
        Weight decay of the selection, which is applied to columns of variance 1.
    seed : int, default=0
        Seed of the sample.

    Examples
    --------
    >>> from tamiz.selection import Selection
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> start = Fit(Selection(np.array([True, False, False, False]), np.array([1, 2, 3, 4])), None)
    >>> exchange_columns(start, Problem(X, X[:, [2]]), 0.1).selection.indices.tolist()
    [2]
    """
    X, Y, weights = problem.X, problem.targets, problem.unit_weights()
    if problem.n_samples > MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(problem.n_samples, MOST_ROWS, replace=False))
        X, Y, weights = X[rows], Y[rows], weights[rows]
    weights = weights.astype(np.float64) / weights.sum()
    Y = Y - weights @ Y
    # Moments of the stored values: a constant offset of a column changes neither its deviation nor its covariances.
    scale = X.multiply(X).T @ weights if sp.issparse(X) else np.einsum("ij,ij,i->j", X, X, weights)
    mean = np.asarray(X.T @ weights)
    least = 1e-12 * scale
    scale -= mean**2
    scale[scale <= least] = np.inf  # constant columns gain nothing
    del least
    np.sqrt(scale, out=scale)
    penalty, n_columns = l2 * Y.shape[1], max(2, int(np.isfinite(scale).sum()))
    # Squared correlation by chance: the largest of F squared standard normal variables, over the effective number of rows.
    by_chance = (2 * np.log(n_columns) - np.log(np.pi * np.log(n_columns))) * (weights @ weights)

    def solve(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        part = X[:, columns].toarray() if sp.issparse(X) else X[:, columns]
        part = (part - mean[columns]) / scale[columns]
        weighted = part.T * weights
        coef = np.linalg.solve(weighted @ part + penalty * np.eye(columns.size), weighted @ Y)
        residual = Y - part @ coef
        return coef, residual, float(weights @ (residual**2).sum(axis=1) + penalty * (coef**2).sum())

    kept = fit.selection.indices
    coef, residual, loss = solve(kept)
    for _ in range(MOST_ROUNDS):
        pull = (X.T @ (residual * weights[:, None])) / scale[:, None]
        gain = np.einsum("ij,ij->i", pull, pull)
        del pull
        gain[kept] = 0.0
        gain[gain <= by_chance * (weights @ np.square(residual).sum(axis=1))] = 0.0
        most = min(max(1, kept.size // 2), int(np.count_nonzero(gain)))
        into = np.argpartition(-gain, most - 1)[:most] if most else np.empty(0, dtype=np.int64)
        into = into[np.lexsort((into, -gain[into]))]
        out = np.argsort((coef**2).sum(axis=1), kind="stable")
        sizes = [2**power for power in range(most.bit_length())]
        tried = [np.sort(np.concatenate([np.delete(kept, out[:size]), into[:size]])) for size in sizes]
        found = [solve(columns) for columns in tried]
        best = min(range(len(found)), key=lambda number: found[number][2], default=None)
        if best is None or found[best][2] >= loss * (1 - 1e-9):
            break
        kept, (coef, residual, loss) = tried[best], found[best]
    selection = fit.selection
    support = np.zeros(selection.support.size, dtype=bool)
    support[kept] = True
    ranking = np.empty(support.size, dtype=np.int64)
    ranking[np.lexsort((selection.ranking, ~support))] = np.arange(1, support.size + 1)
    return Fit(replace(selection, support=support, ranking=ranking), fit.model)


def fit_ridge(
    table: Any, targets: np.ndarray, sample_weight: np.ndarray, n_features: int, fit_intercept: bool = True
) -> LinearModel:
    """Fit a ridge regression on the selected columns, its penalty chosen by generalised cross-validation.

    Columns that were chosen by the same rows have used them up more than columns that were given. As in multivariate adaptive
    regression splines (Friedman 1991) each counts as several degrees of freedom: 1 + log(F / M) / 2 for M columns of F.

    Parameters
    ----------
    table : ScaledTable
        The selected columns, normalised.
    targets : ndarray of shape (n_samples, n_outputs)
        Targets.
    sample_weight : ndarray of shape (n_samples,)
        Weights of the rows.
    n_features : int
        Columns that were selected from.
    fit_intercept : bool, default=True
        Whether there is a constant term.
    """
    values, share, n_rows = table.dense(), sample_weight / sample_weight.sum(), len(targets)
    mean = share @ values if fit_intercept else np.zeros(values.shape[1])
    constant = share @ targets if fit_intercept else np.zeros(targets.shape[1])
    gram, cross = np.zeros((values.shape[1],) * 2), np.zeros((values.shape[1], targets.shape[1]))
    for start in range(0, n_rows, BLOCK):
        rows = slice(start, start + BLOCK)
        part = values[rows].astype(np.float64) - mean
        gram += (part.T * share[rows]) @ part
        cross += (part.T * share[rows]) @ (targets[rows] - constant)
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-18))
    spectrum, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    spectrum, pull = np.maximum(spectrum, 0.0), vectors.T @ (cross / scale[:, None])
    total, best = share @ ((targets - constant) ** 2).sum(axis=1), (np.inf, 0.0)
    each = 1 + np.log(n_features / spectrum.size) / 2
    for penalty in PENALTIES / n_rows:
        explained = (pull**2).sum(axis=1) @ ((spectrum + 2 * penalty) / (spectrum + penalty) ** 2)
        left = 1 - (fit_intercept + each * (spectrum / (spectrum + penalty)).sum()) / n_rows
        if left > 0:
            best = min(best, ((total - explained) / left**2, penalty))
    coef = (vectors @ (pull / (spectrum + best[1])[:, None]) / scale[:, None]).T
    return LinearModel(coef, constant - coef @ mean)


def calibrate(
    model: LinearModel, table: Any, targets: np.ndarray, weights: np.ndarray, l2: float, n_features: int
) -> LinearModel:
    """Scale the scores of a squared hinge so that its probabilities hold on rows that it has not seen.

    A row that is left out loses its pull on the weights: where its margin is below 1, the gap 1 - margin grows by 1 / (1 - h),
    with the leverage h of a ridge regression on the rows with such gaps. The factor has the largest likelihood of these
    margins, with the targets of Platt (1999), which keep it finite where no row is wrong. It is then reduced by what the choice
    of the columns explains (:func:`_believed`).

    Parameters
    ----------
    model : LinearModel
        The trained model.
    table : ScaledTable
        Its columns, normalised.
    targets : ndarray of shape (n_samples, n_outputs)
        -1 and +1.
    weights : ndarray of shape (n_samples,)
        Weights of the rows.
    l2 : float
        Weight decay of the refinement.
    n_features : int
        Columns that were selected from.
    """
    n_outputs, loss = targets.shape[1], get_loss("squared_hinge")
    rows = slice(None, None, -(-len(targets) // MOST_ROWS))  # evenly, whatever the table is sorted by
    values, signs, share = table.dense()[rows], targets[rows], weights[rows] / weights[rows].mean()
    margins = signs * (values @ model.coef.T.astype(values.dtype) + model.intercept)
    # Next to nothing for the constant, and for all weights without decay: the Gram matrices below are then never singular.
    penalty, of_constant = max(len(values) * n_outputs * l2, 1e-6), 1e-6
    for margin in margins.T:
        active = margin < 1
        part, constant = values[active], np.sqrt(share[active] / of_constant)
        root = (part - part.mean(axis=0)) * np.sqrt(share[active])[:, None]  # centred, which the constant makes up for
        if root.shape[0] < root.shape[1]:  # the same from a matrix of rows by rows
            root = root.astype(np.float32, copy=False)
            gram = (root @ root.T).astype(np.float64) / penalty + np.outer(constant, constant)
            gram.flat[:: len(root) + 1] += 1.0
            leverage = 1 - np.diag(np.linalg.inv(gram))
        else:
            root = np.column_stack([root.astype(np.float64) / np.sqrt(penalty), constant])
            inverse = np.linalg.inv(np.eye(root.shape[1]) + root.T @ root)
            leverage = np.einsum("ij,ij->i", root @ inverse, root)
        margin[active] = 1 - (1 - margin[active]) / np.maximum(1 - leverage, 0.05)
    one_class = n_outputs > 1 and bool(((signs > 0).sum(axis=1) == 1).all())
    n_of_class = len(values) / (n_outputs if one_class else 2)
    certainty, true = (n_of_class + 1) / (n_of_class + 2), signs.argmax(axis=1)[:, None]

    def cost(log_slope: float) -> float:
        scaled = np.exp(log_slope) * margins
        if one_class:
            right = np.take_along_axis(loss.class_probabilities(signs * scaled), true, axis=1)
        else:
            right = expit(loss.slope * scaled)
        right = np.clip(right, 1e-12, 1 - 1e-12)
        return -float(share @ (certainty * np.log(right) + (1 - certainty) * np.log1p(-right)).mean(axis=1))

    slope = np.exp(minimize_scalar(cost, bounds=(-5.0, 3.0), method="bounded").x)
    slope *= _believed(model, values, signs, share, n_features)
    return model.rescaled(np.zeros(n_outputs), np.full(n_outputs, slope))


def _believed(model: LinearModel, values: np.ndarray, signs: np.ndarray, share: np.ndarray, n_features: int) -> float:
    """Share of the scores that is left without what the choice of the columns explains.

    Of F columns of noise the M best have squared correlations of about 2 log(F / M) / N; half of that is not counted.
    """
    if n_features == values.shape[1]:
        return 1.0  # nothing was chosen
    share = (share / share.sum()).astype(values.dtype)
    values, constant = values - share @ values, share @ signs
    spread = np.sqrt(np.maximum(np.einsum("ij,ij,i->j", values, values, share), 1e-18))
    squares = ((values.T * share) @ (signs - constant) / spread[:, None]) ** 2 / np.maximum(1 - constant**2, 1e-18)
    excess = 1 - np.log(n_features / len(spread)) / np.maximum(len(values) * squares.max(axis=1), 1e-9)
    return float(np.average(np.clip(excess, 0.02, 1.0), weights=np.abs(model.coef).sum(axis=0) * spread + 1e-18))


def fit_logistic(
    tables: Sequence[Any], targets: np.ndarray, weights: np.ndarray, n_features: int
) -> tuple[LinearModel, int]:
    """Fit a logistic regression on the selected columns, as the likeliest of some tables has them; return also which.

    Scores are reduced by what the choice of the columns explains.

    Parameters
    ----------
    tables : sequence of ScaledTable
        The selected columns, normalised in several ways.
    targets : ndarray of shape (n_samples, n_outputs)
        -1 and +1, one column for two classes, else one for each class.
    weights : ndarray of shape (n_samples,)
        Weights of the rows.
    n_features : int
        Columns that were selected from.
    """
    codes = targets.argmax(axis=1) if targets.shape[1] > 1 else (targets[:, 0] > 0).astype(np.int64)

    def fit(table: Any, most: int) -> tuple[float, LogisticRegression, np.ndarray, slice]:
        rows = slice(None, None, -(-len(codes) // most))
        values, labels, share = table.dense()[rows], codes[rows], weights[rows] / weights.mean()
        fitted = LogisticRegression(max_iter=1000).fit(values, labels, share)
        scores = fitted.decision_function(values)
        scores = np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores
        losses = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(labels)), labels]
        return float(share @ losses), fitted, values, rows

    with one_blas_thread():
        found = [fit(table, MOST_ROWS if len(tables) > 1 else MOST_LOGISTIC_ROWS) for table in tables]
        best = int(np.argmin([cost for cost, *_ in found]))
        if len(tables) > 1 and len(codes) > MOST_ROWS:
            found[best] = fit(tables[best], MOST_LOGISTIC_ROWS)
        _, fitted, values, rows = found[best]
        model = LinearModel(fitted.coef_.astype(np.float64), fitted.intercept_.astype(np.float64))
        slope = _believed(model, values, targets[rows], weights[rows], n_features)
    return model.rescaled(np.zeros(len(model.coef)), np.full(len(model.coef), slope)), best
