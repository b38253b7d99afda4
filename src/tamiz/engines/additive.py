"""Fit an additive model, one curve for each column, and its mask: the linear engine on columns that share a gate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.compiling import njit
from tamiz.core.losses import Loss
from tamiz.core.rule import Rule
from tamiz.core.step import writeable_view
from tamiz.engines.contract import Fit, Problem, check_dense_size
from tamiz.engines.linear import LinearEngine
from tamiz.engines.schedule import Schedule

#: Knots of a curve.
N_KNOTS = 8
#: Cells of a dense table whose columns are sorted at a time.
_CHUNK = 1 << 22
#: Hats are divided by their standard deviation, or by this where it is smaller: a value that few rows hold (an indicator
#: of less than 1 % of them) does not become a column of huge entries.
SMALLEST_DEVIATION = 0.1


@njit(nogil=True)
def _knots_of_column(values, counts, n_distinct, knots):
    """Write the knots of a column with known distinct values; return how many there are."""
    most = knots.shape[0]
    if n_distinct <= most:
        for i in range(n_distinct):
            knots[i] = values[i]
        return n_distinct
    # Knots divide the rows evenly. A value that many rows share counts as no more than one part of them: the knots that it
    # would take in all divide the other rows. Such a limit depends on itself, so it is approached in a few rounds.
    total, limit = 0.0, np.inf
    for _ in range(20):
        total = 0.0
        for i in range(n_distinct):
            total += min(counts[i], limit)
        limit = total / (most - 1)
    knots[0] = values[0]
    n, last, left = 1, 0, total - min(counts[0], limit)
    while n < most and last < n_distinct - 1:
        last += 1
        passed = min(counts[last], limit)
        while last < n_distinct - 1:
            more = min(counts[last + 1], limit)
            # Up to the value that comes nearest; the last knot is the largest value.
            if n < most - 1 and passed + more / 2 >= left / (most - n):
                break
            last += 1
            passed += more
        knots[n] = values[last]
        n += 1
        left -= passed
    return n


@njit(nogil=True)
def _choose_knots(sorted_columns, values, counts, knots, n_knots):
    """Choose the knots of each column from its sorted values."""
    for j in range(sorted_columns.shape[0]):
        n = 0
        for value in sorted_columns[j]:
            if n > 0 and values[n - 1] == value:
                counts[n - 1] += 1
            else:
                values[n], counts[n] = value, 1
                n += 1
        n_knots[j] = _knots_of_column(values, counts, n, knots[j])


@njit(nogil=True, error_model="numpy")
def _locate(x, knots, n):
    """Knot to the left of x and how far x is on the way to the next one, from 0 to 1."""
    if n == 1 or x <= knots[0]:
        return 0, np.float32(0.0)
    left = 0
    while left < n - 2 and x >= knots[left + 1]:
        left += 1
    share = (x - knots[left]) / (knots[left + 1] - knots[left])
    return left, min(share, np.float32(1.0))


@njit(nogil=True)
def _sum_hats(X, weights, knots, n_knots, total, squares):
    """Add up the hats of each column and their squares, weighted; the first place is that of ``x - knots[0]``."""
    for i in range(X.shape[0]):
        weight = weights[i]
        for j in range(X.shape[1]):
            left, share = _locate(X[i, j], knots[j], n_knots[j])
            distance = np.float64(X[i, j]) - knots[j, 0]
            total[j, 0] += weight * distance
            squares[j, 0] += weight * distance * distance
            if left > 0:
                total[j, left] += weight * (1.0 - share)
                squares[j, left] += weight * (1.0 - share) * (1.0 - share)
            if left + 1 < n_knots[j] - 1:
                total[j, left + 1] += weight * share
                squares[j, left + 1] += weight * share * share


@njit(nogil=True)
def _write_hats(X, knots, n_knots, starts, base, factor, out):
    """Write each column itself and its standardised hats; ``base`` is what a hat of 0 becomes."""
    for i in range(X.shape[0]):
        row = out[i]
        for c in range(base.shape[0]):
            row[c] = base[c]
        for j in range(X.shape[1]):
            n, start = n_knots[j], starts[j]
            if n > 1:
                row[start] = X[i, j]
                left, share = _locate(X[i, j], knots[j], n)
                if left > 0:
                    row[start + left] += (np.float32(1.0) - share) * factor[j, left]
                if left + 1 < n - 1:
                    row[start + left + 1] += share * factor[j, left + 1]


@dataclass(frozen=True, eq=False)
class HatBasis:
    """Knots of every column of a table, and the standardisation of its hats; see :func:`hat_basis`.

    Parameters
    ----------
    knots : ndarray of float32, shape (n_features, most)
        Knots of each column, ascending; only the first ``n_knots[j]`` of a row count.
    n_knots : ndarray of int64, shape (n_features,)
        Number of knots: 1 for a constant column.
    mean : ndarray of float64, shape (n_features,)
        Mean of each column.
    centre : ndarray of float64, shape (n_features, most)
        Mean of the hat of each knot.
    factor : ndarray of float32, shape (n_features, most)
        A hat h of an inner knot enters the table as ``(h - centre) * factor``; 0 for the two outer knots, which have no hat.

    Examples
    --------
    >>> X = np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]], dtype=np.float32)
    >>> basis = hat_basis(X, np.ones(3, np.float32), n_knots=6)
    >>> basis.n_knots.tolist(), basis.groups.tolist()
    ([3, 1], [0, 0, 1])
    >>> (basis.table(X).astype(float).round(2) + 0).tolist()
    [[0.0, -0.58, 0.0], [1.0, 1.15, 0.0], [2.0, -0.58, 0.0]]
    """

    knots: np.ndarray
    n_knots: np.ndarray
    mean: np.ndarray
    centre: np.ndarray
    factor: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Count the columns of the new table that each column becomes: itself, and a hat for each inner knot."""
        return np.maximum(1, self.n_knots - 1)

    @property
    def starts(self) -> np.ndarray:
        """Place of each column in the new table, and the number of columns of that."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def groups(self) -> np.ndarray:
        """Column that each column of the new table comes from."""
        return np.repeat(np.arange(self.n_knots.size), self.sizes)

    def table(self, X: np.ndarray) -> np.ndarray:
        """Expand a table of float32, shape (n_samples, n_features)."""
        base = (-self.centre * self.factor).astype(np.float32)[np.arange(self.knots.shape[1]) < self.sizes[:, None]]
        out = np.empty((X.shape[0], self.starts[-1]), dtype=np.float32)
        _write_hats(X, self.knots, self.n_knots, self.starts, base, self.factor, out)
        return out

    def heights(self, coef: np.ndarray, columns: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the curves that belong to weights in the new table, for some columns.

        Parameters
        ----------
        coef : ndarray, shape (n_outputs, n_weights)
            Weights of what these columns have become, side by side.
        columns : ndarray of int
            The columns.

        Yields
        ------
        knots : ndarray, shape (n_knots,)
        heights : ndarray, shape (n_outputs, n_knots)
            Value of the curve at each knot; its mean over the samples is 0.
        constant : ndarray, shape (n_outputs,)
            What was taken off to make it so.
        """
        begin = 0
        for j in columns:
            n, size = int(self.n_knots[j]), int(self.sizes[j])
            knots, line = self.knots[j, :n].astype(np.float64), coef[:, begin]
            weights = coef[:, begin + 1 : begin + size] * self.factor[j, 1:size]
            heights = line[:, None] * (knots - self.mean[j]) - weights @ self.centre[j, 1:size, None]
            heights[:, 1:size] += weights
            # A constant column became zeros, whatever its value.
            yield knots, heights * (n > 1), line * self.mean[j] * (n > 1)
            begin += size


def hat_basis(X: np.ndarray, weights: np.ndarray, n_knots: int = N_KNOTS) -> HatBasis:
    """Choose the knots of each column, and how its hats are standardised: together they have the variance of the column.

    Parameters
    ----------
    X : ndarray of float32 in C order, shape (n_samples, n_features)
        The table.
    weights : ndarray of float32, shape (n_samples,)
        Weights of the samples in means and deviations.
    n_knots : int, default=8
        Knots of a column, at most; 2 or more.

    Returns
    -------
    HatBasis
    """
    n, f = X.shape
    knots, counts = np.zeros((f, n_knots), dtype=np.float32), np.zeros(f, dtype=np.int64)
    buffers = np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.int64)
    width = max(1, _CHUNK // max(1, n))
    for left in range(0, f, width):
        place = slice(left, left + width)
        _choose_knots(np.sort(X[:, place].T, axis=1), *buffers, knots[place], counts[place])
    total, squares = np.zeros((f, n_knots)), np.zeros((f, n_knots))
    _sum_hats(X, weights, knots, counts, total, squares)
    centre = total / weights.sum(dtype=np.float64)
    deviation = np.sqrt(np.maximum(squares / weights.sum(dtype=np.float64) - centre * centre, 0.0))
    mean = knots[:, 0] + centre[:, 0]
    share = deviation[:, 0] / np.sqrt(np.maximum(1, counts - 2))
    factor = share[:, None] / np.maximum(deviation, SMALLEST_DEVIATION)
    inner = (np.arange(n_knots) > 0) & (np.arange(n_knots) < counts[:, None] - 1)
    return HatBasis(knots, counts, mean, np.where(inner, centre, 0.0), np.where(inner, factor, 0.0).astype(np.float32))


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """A sum of curves, one for each selected column: linear between their knots, constant beyond them.

    Parameters
    ----------
    knots : ndarray, shape (n_all_knots,)
        Knots of the selected columns, one column after the other.
    starts : ndarray of int, shape (n_features_to_select + 1,)
        Place of the first knot of each column, and the end.
    heights : ndarray, shape (n_outputs, n_all_knots)
        Value of the curve at each knot; the weighted mean of a curve over the training samples is 0.
    intercept : ndarray, shape (n_outputs,)
        Constant terms.

    Examples
    --------
    >>> tent = AdditiveModel(np.array([-1.0, 0.0, 1.0]), np.array([0, 3]), np.array([[0.0, 1.0, 0.0]]), np.array([5.0]))
    >>> tent.scores(np.array([[-2.0], [-0.5], [0.0]]))[:, 0].tolist()
    [5.0, 5.5, 6.0]
    """

    knots: np.ndarray
    starts: np.ndarray
    heights: np.ndarray
    intercept: np.ndarray

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Outputs for each row, shape (n_samples, n_outputs)."""
        if sp.issparse(X):
            X = X.toarray()
        if offset is not None:
            X = X + offset
        out = np.tile(self.intercept, (X.shape[0], 1))
        for column in range(self.starts.size - 1):
            out += self.effects(column, X[:, column])[1].T
        return out

    def effects(self, column: int, values: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Curve of a selected column: what it adds to each output.

        Parameters
        ----------
        column : int
            Position of the column among the selected ones.
        values : array-like, shape (n_values,), default=None
            Where to evaluate the curve, in the units that the model reads (after the normalisation of an estimator);
            None: at its knots, which between them determine it.

        Returns
        -------
        grid : ndarray, shape (n_values,)
        curve : ndarray, shape (n_outputs, n_values)

        Examples
        --------
        >>> line = AdditiveModel(np.array([0.0, 1.0]), np.array([0, 2]), np.array([[0.0, 4.0]]), np.zeros(1))
        >>> line.effects(0, [0.25, 0.5])[1].tolist()
        [[1.0, 2.0]]
        """
        n_columns = self.starts.size - 1
        if not -n_columns <= column < n_columns:
            raise IndexError(f"column must be one of the {n_columns} selected columns, got {column}")
        part = slice(*self.starts[column % n_columns :][:2])
        knots, heights = self.knots[part], self.heights[:, part]
        if values is None:
            return knots.copy(), heights.copy()
        grid = np.asarray(values, dtype=np.float64)
        return grid, np.stack([np.interp(grid, knots, curve) for curve in heights])

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Model as two layers with ReLU between: one unit per knot, whose weight is the change of slope there.

        Examples
        --------
        >>> tent = AdditiveModel(np.array([-1.0, 0.0, 1.0]), np.array([0, 3]), np.array([[0.0, 1.0, 0.0]]), np.array([5.0]))
        >>> tent.affine_layers()[1][0].tolist(), tent.affine_layers()[1][1].tolist()
        ([[1.0, -2.0, 1.0]], [5.0])
        """
        n_columns = self.starts.size - 1
        column = np.repeat(np.arange(n_columns), np.diff(self.starts))
        bends = np.zeros_like(self.heights, dtype=np.float64)
        constant = self.intercept.astype(np.float64)
        for first, end in zip(self.starts[:-1], self.starts[1:]):
            part = slice(first, end)
            slopes = np.diff(self.heights[:, part]) / np.diff(self.knots[part])
            bends[:, part] = np.diff(slopes, prepend=0.0, append=0.0)
            constant = constant + self.heights[:, first]
        return [((column[:, None] == np.arange(n_columns)).astype(np.float64), -self.knots), (bends, constant)]

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> AdditiveModel:
        """Model whose outputs are ``scores * scale + mean``."""
        return replace(self, heights=self.heights * scale[:, None], intercept=self.intercept * scale + mean)


@dataclass(frozen=True)
class AdditiveEngine:
    """Train a sum of curves, one for each column, and select the columns, compiled.

    Each column becomes itself and a few hats (:mod:`tamiz.engines.additive`) that share one entry of gamma, and the linear
    engine does the rest. So the problem is convex, has no bad starts, and takes as long as a linear fit on as many columns.
    The expanded table takes up to ``N_KNOTS - 1`` times the memory of the table in float32; a sparse one is made dense.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is a constant term; l2 leaves it free.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.core.rule import Rule
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines.contract import Problem
    >>> from tamiz.engines.schedule import additive_schedule
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 30)).astype(np.float32)
    >>> y = np.where(np.abs(X[:, 3]) > 0.5, 1.0, -1.0)[:, None]
    >>> schedule = additive_schedule(200, 1, "classification")
    >>> rule = Rule(30, 1, ramp_steps=schedule.ramp_steps, warmup_steps=schedule.warmup_steps)
    >>> fit = AdditiveEngine().fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> grid, curve = fit.model.effects(0)
    >>> fit.selection.indices.tolist(), bool(curve[0, 0] > 0 > curve[0, 2])
    ([3], True)
    """

    fit_intercept: bool = True

    def fit(self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, **run: Any) -> Fit:
        """Select exactly M columns and train a sum of curves on them; ``schedule.average`` must be 0.

        With groups, M groups are selected, and every column of them has its curve. Parameters are those of every
        :class:`~tamiz.engines.contract.Engine`.
        """
        started = time.perf_counter()
        problem.check_groups(rule.n_features)
        check_dense_size(problem, problem.n_columns)
        X = writeable_view(np.ascontiguousarray(problem.dense()))
        basis = hat_basis(X, problem.unit_weights())
        check_dense_size(problem, int(basis.starts[-1]))
        columns = np.arange(problem.n_columns) if problem.groups is None else np.asarray(problem.groups)
        expanded = replace(problem, X=basis.table(X), offset=None, owned=True, groups=columns[basis.groups])
        del X
        fit = LinearEngine(self.fit_intercept).fit(expanded, rule, loss, schedule, **run)
        kept = np.flatnonzero(problem.columns_of(fit.selection.support))
        knots, heights, constants = zip(*basis.heights(fit.model.coef, kept), strict=True)
        starts = np.concatenate([[0], np.cumsum([part.size for part in knots])])
        intercept = fit.model.intercept + np.sum(constants, axis=0)
        model = AdditiveModel(np.concatenate(knots), starts, np.concatenate(heights, axis=1), intercept)
        seconds = time.perf_counter() - started
        return Fit(replace(fit.selection, engine="additive", seconds=seconds), model)
