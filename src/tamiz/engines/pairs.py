"""Fit a second-order model and its mask: screening, curves and functions of the columns, products of pairs for the loop.

Products are formed on the fly from a few functions of each feature, never stored. The coefficients of an output are one
vector: those of the curve columns, then those of the products, row by row (function a of one feature times each function b of
every later feature). The gate is gamma of the feature for a curve column and ``gamma_i * gamma_j`` for a product; by the product
rule the gradient of ``gamma_i`` is the sum of ``w * g`` over its curve columns and of ``gamma_j * w * g`` over its products.
Features that are always read stand behind those that gamma decides over. Their gamma is 1; all else is the same for them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numba.extending import register_jitable
from scipy.linalg import block_diag

from tamiz.core.compiled import FAST_INLINED, INLINED
from tamiz.core.losses import Loss
from tamiz.core.rule import BUDGET_TOLERANCE, Rule, expected_size
from tamiz.engines import loop
from tamiz.engines.additive import N_KNOTS, AdditiveModel, HatBasis, hat_basis
from tamiz.engines.contract import Fit, Problem, Progress, check_dense_size
from tamiz.engines.dense import constant_loss, mean_loss
from tamiz.engines.design import Design, compile_products, gamma_of, in_canonical_order
from tamiz.engines.linear import Run, count_parts, warn_near_chance
from tamiz.engines.schedule import Schedule
from tamiz.pairs.search import screening_scores
from tamiz.selection import Selection


def count_screened(by_evidence: np.ndarray, n_screened: int, rule: Rule, share: float = 1.0) -> int:
    """Count the features to screen: at least M or, with a budget, so many that they cost more than it.

    Parameters
    ----------
    by_evidence : ndarray of int, shape (n_features,)
        Features, most evidence first.
    n_screened : int
        How many are wanted.
    rule : Rule
        With M or a budget.
    share : float, default=1.0
        How many times the budget they shall cost, 1 or more, as far as there are as many.

    Examples
    --------
    >>> rule = Rule(5, 0, costs=[1, 2, 1, 2, 4], budget=4)
    >>> count_screened(np.array([3, 2, 1, 0, 4]), 1, rule), count_screened(np.arange(5), 1, rule, share=3.0)
    (3, 5)
    """
    n = max(n_screened, rule.n_features_to_select)
    if rule.costs is not None:
        # A rule must have something to decide: its costs exceed the budget, in whatever order they are added.
        spent = np.cumsum(rule.costs[by_evidence])
        n = max(n, int(np.searchsorted(spent, share * rule.limit * (1.0 + BUDGET_TOLERANCE), side="right")) + 1)
    return min(n, by_evidence.size)


def screen(
    problem: Problem,
    rule: Rule,
    loss: Loss,
    n_screened: int,
    seed: int = 0,
    n_best: int | None = None,
    share: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the features with the most evidence, by :func:`tamiz.pairs.search.screening_scores`; ties by number.

    Parameters
    ----------
    problem : Problem
        The data; a sparse table is searched as it is.
    rule : Rule
        With M or a budget: enough features stay to select from, see :func:`count_screened`.
    loss : Loss
        Tells classes from numbers.
    n_screened : int
        How many features to keep.
    seed : int, default=0
        Seed of the search of very wide tables.
    n_best : int or None, default=None
        How many of the best must be known, columns that are always read included; None: only which features stay. If there
        are no more, nothing is searched.
    share : float, default=1.0
        How many times the budget the features that stay shall cost.

    Returns
    -------
    features : ndarray of int, shape (n_screened,)
        Numbers of the features that stay, ascending.
    by_evidence : ndarray of int, shape (n_features,)
        All features, most evidence first; those that stay are the first of them.
    best : ndarray of int, shape (n_screened + n_always,)
        The features that stay by their places in ``features`` and, numbered behind them, the columns that are always read; most
        evidence first.
    """
    n_features = rule.n_features
    n_always = 0 if problem.groups is None else int((problem.groups < 0).sum())
    scores = np.zeros(n_features + n_always)
    # The most expensive ones first: if so few of them do not suffice, nothing is left out in any order.
    first = np.arange(n_features) if rule.costs is None else np.argsort(-rule.costs)
    leaves_out = count_screened(first, n_screened, rule, share) < n_features
    if leaves_out or (n_best is not None and scores.size > n_best):
        ordered, _, units, numbers = _in_order(replace(problem, owned=False))
        scores[numbers] = screening_scores(
            ordered.X,
            problem.targets,
            is_classification=loss.task == "classification",
            sample_weight=problem.sample_weight,
            groups=None if problem.groups is None else units,
            seed=seed,
        )
    by_evidence = np.argsort(-scores[:n_features], kind="stable")
    features = np.sort(by_evidence[: count_screened(by_evidence, n_screened, rule, share)])
    return features, by_evidence, np.argsort(-np.append(scores[features], scores[n_features:]), kind="stable")


def _rank_all(selection: Selection, features: np.ndarray, by_evidence: np.ndarray) -> Selection:
    """Number the features of a screened fit as in the table; those that were left out rank behind, by their evidence."""
    ranking = np.empty(by_evidence.size, dtype=np.int64)
    ranking[by_evidence] = np.arange(1, by_evidence.size + 1)
    ranking[features] = selection.ranking
    history = dict(selection.history)
    if "gamma_path_features" in history:
        history["gamma_path_features"] = features[history["gamma_path_features"]]
    return replace(selection, support=ranking <= selection.n_features_to_select, ranking=ranking, history=history)


@dataclass(frozen=True)
class ScreenedEngine:
    """Train another engine on the features with the most evidence, ``n_screened`` or at least M of them."""

    engine: Any
    n_screened: int

    def fit(
        self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, *, seed: int = 0, progress: Progress = None
    ) -> Fit:
        """Screen, select and train; parameters are those of every :class:`~tamiz.engines.contract.Engine`."""
        features, by_evidence, _ = screen(problem, rule, loss, self.n_screened, seed)
        costs = None if rule.costs is None else rule.costs[features]
        small_rule = replace(rule, n_features=features.size, costs=costs)
        screened = problem.part(np.isin(np.arange(rule.n_features), features))
        fit = self.engine.fit(screened, small_rule, loss, schedule, seed=seed, progress=progress)
        return Fit(_rank_all(fit.selection, features, by_evidence), fit.model)


def _in_order(problem: Problem) -> tuple[Problem, np.ndarray, np.ndarray, np.ndarray]:
    """Sort the columns canonically; columns that are always read count as features behind the others.

    Returns the problem, the old numbers of its columns, the feature of each column, and the old numbers of the features.
    """
    problem, order, _, features = in_canonical_order(problem)
    units = np.arange(problem.n_columns) if problem.groups is None else problem.groups.copy()
    always = np.flatnonzero(units < 0)
    units[always] = features.size + np.arange(always.size)
    old = np.argsort(np.argsort(order[always], kind="stable"), kind="stable")
    return problem, order, units, np.concatenate([features, features.size + old])


#: Functions of a group of columns, at most.
MOST_GROUP_FUNCTIONS = 11
#: A function that rests on fewer rows says more about these rows than about the feature.
FEWEST_ROWS = 5


@dataclass(frozen=True, eq=False)
class PairBasis:
    """Hold curves and functions of a few features; see :func:`pair_basis`.

    Parameters
    ----------
    hats : HatBasis
        Curves of the standardised columns.
    mean, deviation : ndarray of float64, shape (n_columns,)
        What the columns are standardised by; a deviation of 1 for a constant column.
    column_features : ndarray of int, shape (n_columns,)
        Feature of each column, ascending.
    heights : ndarray of float64, shape (n_functions, n_all_knots)
        Values of each function at the knots of all columns, one column after the other; 0 at those of other features. A
        function is the sum of the curves through them.
    function_features : ndarray of int, shape (n_functions,)
        Feature of each function, ascending.
    table : ndarray of float32, shape (n_samples, n_curve_columns + n_functions)
        Columns of the curves, then the functions, for the rows that the basis was made of.

    Examples
    --------
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> basis = pair_basis(np.hstack([X, X[::-1] ** 2]), np.ones(50), np.arange(2), np.array([0, 1]))
    >>> basis.function_features.tolist(), basis.table.shape
    ([0, 0, 1, 1], (50, 18))
    """

    hats: HatBasis
    mean: np.ndarray
    deviation: np.ndarray
    column_features: np.ndarray
    heights: np.ndarray
    function_features: np.ndarray
    table: np.ndarray


def pair_basis(X: np.ndarray, weights: np.ndarray, column_features: np.ndarray, paired: np.ndarray) -> PairBasis:
    """Make the curves of all columns, and the functions of some features.

    Parameters
    ----------
    X : ndarray, shape (n_samples, n_columns)
        The columns, those of one feature side by side.
    weights : ndarray, shape (n_samples,)
        Weights of the rows.
    column_features : ndarray of int, shape (n_columns,)
        Feature of each column, ascending.
    paired : ndarray of int
        Features that have functions.

    Returns
    -------
    PairBasis
    """
    share = np.asarray(weights, dtype=np.float64) / np.sum(weights, dtype=np.float64)
    values = X.astype(np.float64)
    mean = share @ values
    deviation = np.sqrt(share @ (values - mean) ** 2)
    deviation = np.where(deviation > 1e-7 * np.maximum(np.abs(mean), 1e-30), deviation, 1.0)
    # As a group has a limited number of functions, so its curves have a limited variance: noise gains or loses no more by size.
    sizes = np.bincount(column_features)[column_features]
    deviation *= np.sqrt(np.maximum(sizes / MOST_GROUP_FUNCTIONS, 1.0))
    standard = np.ascontiguousarray((values - mean) / deviation, dtype=np.float32)
    hats = hat_basis(standard, np.asarray(weights, dtype=np.float32))
    curves = hats.table(standard)
    starts = np.concatenate([[0], np.cumsum(hats.n_knots)])
    heights, functions, features = [], [], []
    for feature in np.sort(paired):
        columns = np.arange(*np.searchsorted(column_features, [feature, feature + 1]))
        knots = [hats.knots[j, : hats.n_knots[j]].astype(np.float64) for j in columns]
        parts = [_column_functions(standard[:, j], part, share) for j, part in zip(columns, knots)]
        found, combined = parts[0] if columns.size == 1 else _group_functions(parts, share)
        rows = np.zeros((combined.shape[0], starts[-1]))
        rows[:, starts[columns[0]] : starts[columns[-1] + 1]] = combined
        heights.append(rows)
        functions.append(found)
        features += [feature] * combined.shape[0]
    table = np.hstack([curves, *functions], dtype=np.float32, casting="same_kind")
    return PairBasis(
        hats,
        mean,
        deviation,
        np.asarray(column_features),
        np.concatenate(heights) if heights else np.zeros((0, starts[-1])),
        np.array(features, dtype=np.int64),
        np.ascontiguousarray(table),
    )


def _rank_polynomials(values: np.ndarray, knots: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Mean ranks of the knots, from -1 to 1, and their squares: one row for each, as far as there are knots."""
    order = np.argsort(values, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(share[order])])
    sorted_values = values[order]
    first, last = (np.searchsorted(sorted_values, knots.astype(np.float32), side) for side in ("left", "right"))
    rank = below[first] + below[last] - 1.0
    return np.stack([rank, rank**2])[: max(0, knots.size - 1)]


def curve_values(X: np.ndarray, knots: list[np.ndarray], heights: np.ndarray) -> np.ndarray:
    """Sums of curves, shape (n_samples, n_functions).

    Parameters
    ----------
    X : ndarray, shape (n_samples, n_columns)
        The columns.
    knots : list of ndarray
        Knots of each column.
    heights : ndarray, shape (n_functions, n_all_knots)
        Values of each function at the knots.

    Examples
    --------
    >>> curve_values(np.array([[0.5, 2.0]]), [np.array([0.0, 1.0]), np.array([0.0])], np.array([[0.0, 4.0, 1.0]])).tolist()
    [[3.0]]
    """
    out = np.zeros((X.shape[0], heights.shape[0]))
    begin = 0
    for column, part in zip(X.T, knots):
        own = heights[:, begin : begin + part.size]
        for k in np.flatnonzero(own.any(axis=1)):
            out[:, k] += np.interp(column, part, own[k])
        begin += part.size
    return out


def _column_functions(column: np.ndarray, knots: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Line and U-shape of a column, of mean 0 and variance 1 without correlation, and their heights."""
    raw = _rank_polynomials(column, knots, share)
    values = curve_values(column[:, None], [knots], raw)
    mean = share @ values
    values, raw = values - mean, raw - mean[:, None]
    corner: np.ndarray = np.linalg.qr(np.sqrt(share)[:, None] * values)[1]
    size = np.abs(np.diag(corner))
    n_kept = int(np.cumprod(size > 1e-4 * np.sqrt(np.square(corner).sum(axis=0))).sum())
    mix = np.zeros((n_kept, raw.shape[0]))
    mix[:, :n_kept] = np.linalg.inv(corner[:n_kept, :n_kept]).T
    return _well_supported(values @ mix.T, mix @ raw)


def _group_functions(parts: list[tuple[np.ndarray, np.ndarray]], share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Functions of a group from those of its columns, none of which rests on few rows, and their heights.

    The order of the columns does not matter: few functions are changed as little as it takes to free them of correlation; of
    many, or where one is a sum of others, the leading principal components are taken.
    """
    if sum(heights.shape[0] for _, heights in parts) > MOST_GROUP_FUNCTIONS:
        parts = [(values[:, :1], heights[:1]) for values, heights in parts]
    values, raw = np.hstack([values for values, _ in parts]), block_diag(*(heights for _, heights in parts))
    _, singular, right = np.linalg.svd(np.sqrt(share)[:, None] * values, full_matrices=False)
    is_free = singular > 1e-4 * singular.max(initial=1e-30)
    if right.shape[0] == raw.shape[0] <= MOST_GROUP_FUNCTIONS and is_free.all():
        mix = (right.T / singular) @ right
    else:
        mix = (right / np.where(is_free, singular, 1.0)[:, None])[is_free][:MOST_GROUP_FUNCTIONS]
    return _well_supported(values @ mix.T, mix @ raw)


def _well_supported(values: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Functions, of mean 0 and variance 1, that rest on enough rows, and their heights."""
    kept = values.shape[0] / np.maximum(np.mean(values**4, axis=0), 1e-30) >= FEWEST_ROWS
    return values[:, kept], heights[kept]


@dataclass(frozen=True, eq=False)
class PairModel:
    """A sum of curves, one for each selected column, and of joint effects, one for each pair of selected features.

    A joint effect is a weighted sum of products of functions, one of each feature. Functions have mean 0 and variance 1 over
    the training samples, and are sums of curves that are linear between the knots of their columns.

    Parameters
    ----------
    curves : AdditiveModel
        Curves and constant terms.
    functions : ndarray, shape (n_functions, n_all_knots)
        Values of each function at the knots of ``curves``; 0 at those of other features.
    function_features : ndarray of int, shape (n_functions,)
        Which of the selected features a function belongs to, ascending; columns that are always read are numbered behind
        the selected features.
    weights : ndarray, shape (n_outputs, n_functions, n_functions)
        Weights of the products of two functions; 0 unless the feature of the first comes before that of the second.

    Examples
    --------
    >>> flat = AdditiveModel(np.array([-1.0, 1, -1, 1]), np.array([0, 2, 4]), np.zeros((1, 4)), np.array([0.5]))
    >>> model = PairModel(flat, np.array([[-1.0, 1, 0, 0], [0, 0, -1, 1]]), np.arange(2), np.array([[[0.0, 3], [0, 0]]]))
    >>> model.scores(np.array([[1.0, 1.0], [1.0, -0.5]]))[:, 0].tolist()
    [3.5, -1.0]
    >>> model.pair_strengths()
    [(0, 1, 3.0)]
    """

    curves: AdditiveModel
    functions: np.ndarray
    function_features: np.ndarray
    weights: np.ndarray

    #: What follows each layer of :meth:`affine_layers` but the last.
    activations: ClassVar[tuple[str, ...]] = ("relu", "square")

    def scores(self, X: Any, offset: np.ndarray | None = None) -> np.ndarray:
        """Outputs for each row, shape (n_samples, n_outputs).

        Parameters
        ----------
        X : ndarray or sparse matrix, shape (n_samples, n_selected_columns)
            The selected columns, in the order of the table.
        offset : ndarray, shape (n_selected_columns,), or None, default=None
            Implicit value of each column of a sparse table.
        """
        if sp.issparse(X):
            X = X.toarray()
        if offset is not None:
            X = X + offset
        functions = self._function_values(X)
        products = [np.einsum("na,na->n", functions @ own, functions) for own in self.weights]
        return self.curves.scores(X) + np.stack(products, axis=1)

    def _function_values(self, X: np.ndarray) -> np.ndarray:
        knots = np.split(self.curves.knots, self.curves.starts[1:-1])
        return curve_values(np.asarray(X, dtype=np.float64), knots, self.functions)

    def effects(self, column: int, values: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Curve of a selected column, see :meth:`AdditiveModel.effects`."""
        return self.curves.effects(column, values)

    def pair_effects(self, first: int, second: int, X: Any) -> np.ndarray:
        """Evaluate the joint effect of two selected features on each output, beyond their curves.

        Parameters
        ----------
        first, second : int
            Positions of the features among the selected ones.
        X : array-like, shape (n_samples, n_selected_columns)
            Where to evaluate it, in the units that the model reads; only the columns of the two features matter.

        Returns
        -------
        ndarray, shape (n_samples, n_outputs)
        """
        first, second = sorted((first, second))
        functions = self._function_values(np.asarray(X, dtype=np.float64))
        of_first, of_second = (np.flatnonzero(self.function_features == feature) for feature in (first, second))
        weights = self.weights[:, of_first][:, :, of_second]
        return np.einsum("na,cab,nb->nc", functions[:, of_first], weights, functions[:, of_second])

    def columns_of_pairs(self, feature: int) -> np.ndarray:
        """Which of the columns that the model reads the joint effects of a feature depend on.

        Parameters
        ----------
        feature : int
            Its number in ``function_features``.

        Examples
        --------
        >>> flat = AdditiveModel(np.array([0.0, 1, 0, 1]), np.array([0, 2, 4]), np.zeros((1, 4)), np.array([0.5]))
        >>> model = PairModel(flat, np.array([[0.0, 0, 0, 1], [0, 1, 0, 0]]), np.arange(2), np.array([[[0.0, 3], [0, 0]]]))
        >>> model.columns_of_pairs(0).tolist()
        [1]
        """
        knots = np.flatnonzero(self.functions[self.function_features == feature].any(axis=0))
        return np.unique(np.searchsorted(self.curves.starts, knots, side="right") - 1)

    def pair_strengths(self) -> list[tuple[int, int, float]]:
        """Pairs of features with a joint effect and its strength, strongest first.

        The strength is the root of the sum of squared weights over all products and outputs: the standard deviation of the
        joint effect if the two features are independent of each other.
        """
        found = []
        features = np.unique(self.function_features)
        squares = np.square(self.weights).sum(axis=0)
        for place, first in enumerate(features):
            rows = squares[self.function_features == first]
            for second in features[place + 1 :]:
                strength = float(np.sqrt(rows[:, self.function_features == second].sum()))
                if strength > 0:
                    found.append((int(first), int(second), strength))
        return sorted(found, key=lambda pair: (-pair[2], pair[:2]))

    def rescaled(self, mean: np.ndarray, scale: np.ndarray) -> PairModel:
        """Model whose outputs are ``scores * scale + mean``."""
        return replace(self, curves=self.curves.rescaled(mean, scale), weights=self.weights * scale[:, None, None])

    def affine_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Model as three layers, with ReLU after the first and squares after the second.

        The first has a unit for each knot. A sum of products is a sum of squares, by the eigenvectors of its symmetric matrix
        of weights, and a curve c is ``((c + 1)^2 - (c - 1)^2) / 4``.

        Examples
        --------
        >>> flat = AdditiveModel(np.array([0.0, 1, 0, 1]), np.array([0, 2, 4]), np.zeros((1, 4)), np.array([0.5]))
        >>> model = PairModel(flat, np.array([[0.0, 1, 0, 0], [0, 0, 0, 1]]), np.arange(2), np.array([[[0.0, 3], [0, 0]]]))
        >>> (bends, places), (mix, shift), (out, constant) = model.affine_layers()
        >>> units = np.maximum(np.array([0.5, 1.0]) @ bends.T + places, 0) @ mix.T + shift
        >>> float((units**2 @ out.T + constant).round(6)[0])  # 0.5 + 3 * 0.5 * 1
        2.0
        """
        knots, curves = self.curves.affine_layers()
        functions = replace(self.curves, heights=self.functions, intercept=np.zeros(self.functions.shape[0]))
        function_weights, function_constants = functions.affine_layers()[1]
        mixes, constants, outputs = [], [], []
        for number, own in enumerate(self.weights):
            values, vectors = np.linalg.eigh((own + own.T) / 2)
            kept = np.abs(values) > 1e-9 * np.abs(values).max(initial=0.0)
            curve, constant = curves[0][number : number + 1], curves[1][number]
            mixes.append(np.concatenate([vectors[:, kept].T @ function_weights, curve, curve]))
            constants.append(np.concatenate([vectors[:, kept].T @ function_constants, [constant + 1, constant - 1]]))
            out = np.zeros((self.weights.shape[0], int(kept.sum()) + 2))
            out[number] = [*values[kept], 0.25, -0.25]
            outputs.append(out)
        output = (np.concatenate(outputs, axis=1), np.zeros(self.weights.shape[0]))
        return [knots, (np.concatenate(mixes), np.concatenate(constants)), output]


@register_jitable(**FAST_INLINED)
def _dot(a, b):
    total = np.float32(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@register_jitable(**FAST_INLINED)
def _add_multiple(out, factor, row):
    for j in range(out.shape[0]):
        out[j] += factor * row[j]


def pair_scores(matrix, rows, folded, width, intercept, scores):
    """Compute the scores of some rows: curve columns and products, times their folded coefficients."""
    starts, n_functions = matrix.functions, matrix.functions[-1]
    n_curves = matrix.values.shape[1] - n_functions
    for i in range(rows.shape[0]):
        row = matrix.values[rows[i]]
        curves, functions = row[:n_curves], row[n_curves:]
        for c in range(folded.shape[0]):
            v = folded[c]
            total = intercept[c] + _dot(v[:n_curves], curves)
            place = n_curves
            for feature in range(starts.shape[0] - 1):
                later = starts[feature + 1]
                for a in range(starts[feature], later):
                    end = place + n_functions - later
                    total += functions[a] * _dot(v[place:end], functions[later:])
                    place = end
            scores[i, c] = total


def pair_gradient(matrix, rows, score_gradient, gradient, width):
    """Compute the gradient with respect to the folded coefficients."""
    starts, n_functions = matrix.functions, matrix.functions[-1]
    n_curves = matrix.values.shape[1] - n_functions
    for c in range(gradient.shape[0]):
        g = gradient[c][:width]
        for j in range(width):
            g[j] = np.float32(0.0)
        for i in range(rows.shape[0]):
            d = score_gradient[i, c]
            if d == 0:
                continue
            row = matrix.values[rows[i]]
            functions = row[n_curves:]
            _add_multiple(g[:n_curves], d, row[:n_curves])
            place = n_curves
            for feature in range(starts.shape[0] - 1):
                later = starts[feature + 1]
                for a in range(starts[feature], later):
                    end = place + n_functions - later
                    _add_multiple(g[place:end], d * functions[a], functions[later:])
                    place = end


@register_jitable(**INLINED)
def _add_to_feature(matrix, feature, a, b, held_out, out):
    """Add ``a * b`` to the gradient of a feature's gamma; ``held_out``: divided by the fourth root of its weights."""
    if feature >= out.shape[0]:
        return
    starts, functions = matrix.starts, matrix.functions
    factor = np.float32(1.0)
    if held_out:
        own = functions[feature + 1] - functions[feature]
        curves = starts[feature + 1] - starts[feature]
        factor = np.float32(1.0) / np.float32(np.sqrt(np.sqrt(curves + own * (functions[-1] - own))))
    out[feature] += factor * a * b


def pair_gamma_gradient(matrix, weights, gradient, scratch, gamma, held_out, add, out):
    """Compute the gradient with respect to gamma by the product rule, or add it to ``out``."""
    starts, functions = matrix.starts, matrix.functions
    n = functions.shape[0] - 1
    if not add:
        for i in range(out.shape[0]):
            out[i] = np.float32(0.0)
    for c in range(weights.shape[0]):
        w, g = weights[c], gradient[c]
        for i in range(n):
            for j in range(starts[i], starts[i + 1]):
                _add_to_feature(matrix, i, w[j], g[j], held_out, out)
        place = starts[n]
        for i in range(n):
            for _a in range(functions[i], functions[i + 1]):
                for other in range(i + 1, n):
                    both = np.float32(0.0)
                    for _b in range(functions[other], functions[other + 1]):
                        both += w[place] * g[place]
                        place += 1
                    _add_to_feature(matrix, i, gamma_of(gamma, other), both, held_out, out)
                    _add_to_feature(matrix, other, gamma_of(gamma, i), both, held_out, out)


class PairDesign(Design):
    """Curve columns and functions of a few features, and the products of pairs of them.

    Parameters
    ----------
    table : ndarray of float32, shape (n_samples, n_curve_columns + n_functions)
        The curve columns of each feature, then its functions.
    starts, functions : ndarray of int, shape (n_all_features + 1,)
        First curve column and first function of each feature, and the ends; features that are always read come last.

    Examples
    --------
    >>> design = PairDesign(np.zeros((5, 18)), np.array([0, 7, 14]), np.array([0, 2, 4]))
    >>> design.n_coefficients  # two features: seven each, and four products
    18
    """

    def __init__(self, table: np.ndarray, starts: np.ndarray, functions: np.ndarray) -> None:
        super().__init__(table, None, True, starts)
        self._lay_out(starts, functions)

    def _lay_out(self, starts: np.ndarray, functions: np.ndarray) -> None:
        starts, functions = starts.astype(np.int64), functions.astype(np.int64)
        self.matrix = self.matrix._replace(starts=starts, functions=functions)
        self.n_coefficients = int(starts[-1] + np.sum(np.diff(functions) * (functions[-1] - functions[1:])))

    @property
    def products(self) -> tuple[Any, ...]:
        """Compiled functions of the linear loop."""
        return compile_products(pair_scores, pair_gradient, pair_gamma_gradient, fastmath=frozenset())

    def find_living(self, rank: np.ndarray, m: int, order: np.ndarray) -> int:
        """Write the positions of the coefficients that stay to ``order`` and count them; keep their columns of the table."""
        starts, functions = self.matrix.starts, self.matrix.functions
        stays = np.concatenate([rank <= m, np.ones(starts.size - 1 - rank.size, dtype=bool)])
        curves, of_functions = np.repeat(stays, np.diff(starts)), np.repeat(stays, np.diff(functions))
        later = np.repeat(functions[1:], np.diff(functions))
        products = [own & of_functions[first:] for own, first in zip(of_functions, later)]
        coefficients = np.flatnonzero(np.concatenate([curves, *products]))
        order[: coefficients.size] = coefficients
        values = self.matrix.values[:, np.concatenate([curves, of_functions])]
        self.matrix = self.matrix._replace(values=np.ascontiguousarray(values))
        self._lay_out(*(np.concatenate([[0], np.cumsum(np.diff(ends)[stays])]) for ends in (starts, functions)))
        return coefficients.size

    def keep(self, order: np.ndarray, width: int) -> None:
        """Nothing to do: :meth:`find_living` has dropped the columns."""


#: Features that are screened: for each one that is selected, one for so many rows up to a limit, and at the least.
SCREENED_PER_SELECTED, ROWS_PER_SCREENED, MOST_BY_ROWS, FEWEST_SCREENED = 2, 25, 40, 8
#: Features, those with the most evidence, whose products are in the model: with all of them a wide model would have many
#: more products than there are rows.
MOST_PAIRED = 64
#: A model is near chance if it removes less than this share of the loss of the best constant scores on its training rows.
NEAR_CHANCE = 0.1


def automatic_n_screened(n_samples: int, n_features_to_select: int) -> int:
    """Count the features to screen where the user does not say: max(8, 2 M, min(40, N / 25)).

    More of them give a weak effect that the search ranks low another chance, but bring four products for each pair: with few
    rows these drown it.

    Examples
    --------
    >>> automatic_n_screened(1000, 2), automatic_n_screened(500, 2), automatic_n_screened(100, 50)
    (40, 20, 100)
    """
    by_rows = min(MOST_BY_ROWS, n_samples // ROWS_PER_SCREENED)
    return max(FEWEST_SCREENED, SCREENED_PER_SELECTED * n_features_to_select, by_rows)


@dataclass(frozen=True)
class PairEngine:
    """Screen the columns, train curves and products of pairs of them, and select the columns, compiled.

    Each screened column has a curve, as in the additive model, and two functions of its ranks, a line and a U-shape; the
    products of the functions of two columns are their joint effect. The coefficients of a curve are multiplied by the gamma of
    its column, those of a joint effect by the product of the gammas of both columns. All columns of a group share
    one gamma. Columns that are always read are not screened, have a gamma of 1, and each has joint effects of its own. Of a
    sparse table only the columns that are left are made dense.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is a constant term; l2 leaves it free.
    n_screened : int or None, default=None
        How many features are screened, at least M; None: :func:`automatic_n_screened`. With a budget there are so many
        that they cost more than it and, if None, twice as much. Of the 64 with the most evidence, columns that are always
        read among them, the products are in the model, of the others the curves.

    Examples
    --------
    >>> from tamiz.core.losses import get_loss
    >>> from tamiz.engines.schedule import pair_schedule
    >>> X = np.random.default_rng(0).normal(size=(300, 60)).astype(np.float32)
    >>> y = np.where(X[:, [3]] * X[:, [7]] > 0, 1.0, -1.0)
    >>> schedule = pair_schedule(300, 2, "classification")
    >>> rule = Rule(60, 2, ramp_steps=schedule.ramp_steps, warmup_steps=schedule.warmup_steps)
    >>> fit = PairEngine().fit(Problem(X, y), rule, get_loss("squared_hinge"), schedule)
    >>> fit.selection.indices.tolist(), [pair[:2] for pair in fit.model.pair_strengths()]
    ([3, 7], [(0, 1)])
    """

    fit_intercept: bool = True
    n_screened: int | None = None

    def fit(
        self, problem: Problem, rule: Rule, loss: Loss, schedule: Schedule, *, seed: int = 0, progress: Progress = None
    ) -> Fit:
        """Select exactly M columns, or M groups of columns, and train curves and joint effects of them, in one run.

        Parameters are those of every :class:`~tamiz.engines.contract.Engine`; ``schedule.average`` must be 0.
        """
        if problem.n_samples < 2:
            raise ValueError(f"joint effects need at least 2 rows to train on, got {problem.n_samples}")
        problem.check_groups(rule.n_features)
        started = time.perf_counter()
        n_screened = self.n_screened or automatic_n_screened(problem.n_samples, expected_size(rule))
        share = 1.0 if self.n_screened else float(SCREENED_PER_SELECTED)
        features, by_evidence, best = screen(problem, rule, loss, n_screened, seed, MOST_PAIRED, share)
        costs = None if rule.costs is None else rule.costs[features]
        small_rule = replace(rule, n_features=features.size, costs=costs)
        screened = problem.part(np.isin(np.arange(rule.n_features), features))
        check_dense_size(screened, (N_KNOTS - 1) * screened.n_columns)
        small, order, units, numbers = _in_order(screened.densified())
        basis = pair_basis(small.X, small.unit_weights(), units, np.flatnonzero(np.isin(numbers, best[:MOST_PAIRED])))
        ends = np.arange(numbers.size + 1)
        starts = np.searchsorted(units[basis.hats.groups], ends), np.searchsorted(basis.function_features, ends)
        design = PairDesign(basis.table, *starts)
        design.features = numbers[: features.size]
        n_parts = count_parts(schedule, small_rule, small.n_samples, overfits=True)
        memory = loop.new_memory(design, small_rule, small.targets, schedule.batch_size, seed, n_parts)
        run = Run(small, small_rule, loss, schedule, design, memory, self.fit_intercept)
        run.train(progress)
        coefficients = run.coefficients()
        selection = run.selection(seed, started, "pairs")
        kept = np.append(selection.support, np.ones(numbers.size - features.size, dtype=bool))[numbers]
        model = _trained_model(basis, *coefficients, order, numbers, kept)
        _report_chance(model, small, np.argsort(order, kind="stable")[screened.columns_of(selection.support)], loss)
        selection = _rank_all(selection, features, by_evidence)
        return Fit(replace(selection, seconds=time.perf_counter() - started), model)


def _trained_model(
    basis: PairBasis, coef: np.ndarray, intercept: np.ndarray, order: np.ndarray, numbers: np.ndarray, kept: np.ndarray
) -> PairModel:
    """Model of a finished run, which reads the columns of the kept features in the order of the table."""
    columns = np.flatnonzero(kept[basis.column_features])  # side by side, not in the order of the table
    n_curves = int(basis.hats.sizes[columns].sum())
    knots, heights, constants = zip(*basis.hats.heights(coef[:, :n_curves], columns), strict=True)
    knots = [part * basis.deviation[j] + basis.mean[j] for part, j in zip(knots, columns)]
    in_table = np.argsort(order[columns], kind="stable")
    curves = AdditiveModel(
        np.concatenate([knots[j] for j in in_table]),
        np.concatenate([[0], np.cumsum([knots[j].size for j in in_table])]),
        np.concatenate([heights[j] for j in in_table], axis=1),
        intercept + np.sum(constants, axis=0),
    )
    starts = np.concatenate([[0], np.cumsum(basis.hats.n_knots)])
    places = np.concatenate([np.arange(starts[j], starts[j + 1]) for j in columns[in_table]])
    rows = np.flatnonzero(kept[basis.function_features])
    features = basis.function_features[rows]
    weights = np.zeros((coef.shape[0], rows.size, rows.size))
    first, second = np.nonzero(features[:, None] < features)
    weights[:, first, second] = weights[:, second, first] = coef[:, n_curves:]
    # Features by their old numbers, which order the weights anew.
    features = np.searchsorted(np.sort(numbers[kept]), numbers[features])
    by_number = np.argsort(features, kind="stable")
    features, rows = features[by_number], rows[by_number]
    weights = weights[:, by_number][:, :, by_number] * (features[:, None] < features)
    return PairModel(curves, basis.heights[np.ix_(rows, places)], features, weights)


def _report_chance(model: PairModel, problem: Problem, columns: np.ndarray, loss: Loss) -> None:
    """Warn if the model tells hardly more than a constant does on its own training rows."""
    rows = np.arange(problem.n_samples)
    scores: Any = model.scores(problem.X[:, columns])
    if scores.shape[1] < problem.n_outputs:  # two competing outputs were reduced to their difference
        scores = np.column_stack([-scores / 2, scores / 2])
    reference = constant_loss(loss, problem, rows)
    removed = 1.0 - mean_loss(loss, problem, scores, rows)[0] / reference if reference > 0 else 1.0
    if removed < NEAR_CHANCE:
        warn_near_chance(
            removed,
            "its own training rows",
            "Raise n_screened or n_features_to_select, or look for pairs with tamiz.find_pairs first.",
        )
