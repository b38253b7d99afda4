"""Groups, forced columns, progress, contributions and effects around the training of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import erfinv

from tamiz._utils.progress import ProgressBar
from tamiz.core import Rule
from tamiz.core.gates import DROPPED, Gates, possible_counts, read_gates
from tamiz.engines import Problem
from tamiz.engines.additive import AdditiveModel
from tamiz.engines.linear import LinearModel
from tamiz.rows.exact import DEVIATIONS, normalize_exact, uses_erf
from tamiz.rows.scaling import MissingValues
from tamiz.selection import Selection


@contextmanager
def watch_selection(
    verbose: int | bool, rule: Rule, refinement_steps: int
) -> Iterator[Callable[[int, int, int], None] | None]:
    """Yield the ``progress`` argument of an engine: a bar on stderr if ``verbose``, otherwise None.

    Examples
    --------
    >>> with watch_selection(False, Rule(10, 2), 100) as progress:
    ...     progress is None
    True
    """
    if not verbose:
        yield None
        return
    bar = ProgressBar(f"selecting {rule.n_features_to_select} of {rule.n_features}", delay=0.0)

    def progress(step: int, n_alive: int, refined: int) -> None:
        # When the selection will be closed is not known before it is; the end of the ramp is a fair guess.
        before = step - refined if refined else max(step, rule.warmup_steps + rule.ramp_steps)
        bar.update(step, before + refinement_steps, "refining" if refined else f"{n_alive} alive")

    try:
        yield progress
    finally:
        bar.close()


#: Parameters of the estimators that decide what gamma decides over.
OPTIONS = ("groups", "keep", "drop", "costs", "budget")


@dataclass(frozen=True, eq=False)
class Gating:
    """Hold how the columns of the table relate to the features of an engine.

    Parameters
    ----------
    gates : Gates
        Over the columns that the user gave.
    group_names : ndarray of str or None
        Names of the groups, if groups were given.
    indicated : ndarray of int
        Columns whose indicators of missing values stand behind the columns of the user, in this order.
    """

    gates: Gates
    group_names: np.ndarray | None
    indicated: np.ndarray

    @property
    def column_feature(self) -> np.ndarray:
        """Return the feature of each column, the indicators included: they belong to the group of their column."""
        feature = self.gates.column_feature
        return np.concatenate([feature, feature[self.indicated]])

    def restrict(self, problem: Problem) -> Problem:
        """Return the problem without dropped columns, with the features of the others."""
        feature = self.column_feature
        columns = np.flatnonzero(feature != DROPPED)
        groups = feature[columns]
        plain = np.array_equal(groups, np.arange(self.gates.n_features))
        if columns.size < feature.size:
            offset = None if problem.offset is None else problem.offset[columns]
            problem = replace(problem, X=problem.X[:, columns], offset=offset, owned=True)
        return replace(problem, groups=None if plain else groups)

    def read_columns(self, support: np.ndarray) -> np.ndarray:
        """Return the columns that the model reads, indicators included, for a mask over the columns of the user."""
        indicators = self.gates.n_columns + np.flatnonzero(support[self.indicated])
        return np.concatenate([np.flatnonzero(support), indicators])

    def units_of(self, columns: np.ndarray) -> np.ndarray:
        """Return the unit of selection of each of some columns, indicators included, numbered from 0 on without gaps."""
        group = self.gates.group
        return np.unique(np.concatenate([group, group[self.indicated]])[columns], return_inverse=True)[1]

    def selection_of_columns(self, selection: Selection) -> Selection:
        """Return the record of the columns of the user from that of the features."""
        ranking, support = self.gates.rank_columns(selection.ranking, int(selection.support.sum()))
        history = dict(selection.history)
        if "gamma_path_features" in history:
            history["gamma_path_features"] = self.gates.first_columns()[history["gamma_path_features"]]
        return replace(
            selection,
            support=support,
            ranking=ranking,
            history=history,
            groups=None if self.group_names is None else self.gates.group,
            group_names=self.group_names,
        )


def read_gating(
    estimator: Any, n_columns: int, names: np.ndarray | None, missing: MissingValues | None = None
) -> Gating | None:
    """Return what the parameters of an estimator ask for; None if every column is a feature.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters are read.
    n_columns : int
        Columns of the table.
    names : ndarray of str or None
        Names of the columns.
    missing : MissingValues or None, default=None
        How missing values are filled.
    """
    options = {name: getattr(estimator, name) for name in OPTIONS}
    indicated = np.zeros(0, dtype=np.int64) if missing is None else missing.indicated
    if indicated.size == 0 and all(value is None for value in options.values()):
        return None
    gates, group_names = read_gates(n_columns, estimator.n_features_to_select, **options, names=names)
    return Gating(gates, group_names, indicated)


def selectable(estimator: Any, n_columns: int, names: np.ndarray | None) -> tuple[int, int]:
    """Return the least and the largest M that the parameters of an estimator leave possible, whatever its own M is.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Its parameters are read.
    n_columns : int
        Columns of the table.
    names : ndarray of str or None
        Names of the columns.
    """
    options = {name: getattr(estimator, name) for name in OPTIONS}
    if estimator.budget is not None:
        read_gating(estimator, n_columns, names)  # raises unless M is None
    return possible_counts(n_columns, **options, names=names)


#: Points of a curve, and curves that are recorded, those of the best columns.
N_POINTS, MOST_CURVES = 65, 64


def record_effects(model: Any, selection: Selection, statistics: Any, normalize: str | None) -> dict[str, np.ndarray]:
    """Return the curves of the best selected columns.

    Parameters
    ----------
    model : AdditiveModel
        Its first columns are the selected ones, in the order of the table.
    selection : Selection
        Which columns those are.
    statistics : ColumnStatistics or None
        Mean and deviation of the columns that the model reads.
    normalize : {"erf", "erf2", "standard", None}
        Normalisation of the columns.

    Returns
    -------
    dict
        "feature", shape (n_curves,); "grid", shape (n_curves, n_points), in the units of the table; "curve", shape
        (n_curves, n_outputs, n_points), what the column adds to each output.
    """
    features = selection.ordered[:MOST_CURVES]
    grids, curves = [], []
    for place in np.searchsorted(selection.indices, features):
        knots, _ = model.effects(int(place))
        low, high = float(knots[0]), float(knots[-1])
        mean, deviation = (0.0, 1.0) if statistics is None else (statistics.mean[place], statistics.deviation[place])
        ends = _in_units_of_the_table(np.array([low, high]), mean, deviation, normalize)
        grid = np.linspace(ends[0], ends[1], N_POINTS)
        values = normalize_exact(grid, mean, deviation, normalize if statistics is not None else None)
        grids.append(grid)
        curves.append(model.effects(int(place), values)[1])
    return {"feature": features, "grid": np.array(grids), "curve": np.array(curves)}


def _in_units_of_the_table(values: np.ndarray, mean: float, deviation: float, normalize: str | None) -> np.ndarray:
    """Invert the normalisation; values at the ends of erf lie at most six deviations from the mean."""
    if normalize is None:
        return values
    z = values
    if uses_erf(normalize):
        z = np.clip(erfinv(np.clip(values, -1.0, 1.0)) * DEVIATIONS[normalize], -6.0, 6.0)
    return mean + deviation * z


class PairEffect(NamedTuple):
    """Two selected columns, or groups of columns, and what they add to the scores together, beyond their curves."""

    first: str
    second: str
    indices: tuple[int, int]
    """Numbers of the columns or, where ``groups`` were given, of the groups."""
    strength: float
    """Root of the sum of squared weights of their products, which have variance 1 if the columns are independent."""


def joint_effects(estimator: Any) -> list[PairEffect]:
    """Return the joint effects of a fitted estimator, strongest first.

    A group, and a column with its indicator of missing values, is one: the strengths of all its products with another are
    added up, and those of its own columns with each other are left out.

    Parameters
    ----------
    estimator : E2EFSClassifier or E2EFSRegressor
        Fitted, with ``network="pairs"``.

    Examples
    --------
    >>> from tamiz import E2EFSClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 12))
    >>> model = E2EFSClassifier(2, network="pairs", groups={"size": [0, 1]}, random_state=0).fit(X, X[:, 1] * X[:, 7] > 0)
    >>> [effect[:3] for effect in joint_effects(model)]
    [('size', 'x7', (0, 6))]
    """
    selection, model, missing = estimator.selection_, estimator.model_, estimator.missing_
    read = selection.indices
    if missing is not None:
        read = np.concatenate([read, read[missing.indicated]])
    units = read if selection.groups is None else selection.groups[read]
    squares: dict[tuple[int, int], float] = {}
    for first, second, strength in model.pair_strengths():
        one, other = sorted(int(units[model.columns_of_pairs(feature)[0]]) for feature in (first, second))
        if one != other:
            squares[one, other] = squares.get((one, other), 0.0) + strength**2
    names = selection.group_names if selection.groups is not None else getattr(estimator, "feature_names_in_", None)
    effects = []
    for pair, square in squares.items():
        first_name, second_name = (f"x{unit}" if names is None else str(names[unit]) for unit in pair)
        effects.append(PairEffect(first_name, second_name, pair, float(np.sqrt(square))))
    return sorted(effects, key=lambda effect: (-effect.strength, effect.indices))


#: Rows that are looked at, and cells that go through a network for all features together.
MOST_ROWS, MOST_CELLS = 2048, 200_000_000


def contributions(
    model: Any,
    X: Any,
    offset: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    features: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Return the standardised effect of each feature over all outputs of a model.

    It is the root of half the mean squared change of the outputs when the values of a feature are exchanged for those of
    another row, all else left alone. Of a sum over columns this is the standard deviation of what the feature adds, for a
    linear model ``|w_j| std(x_j)``, and is computed as such; other models are asked with rows exchanged.

    Parameters
    ----------
    model : Model
        A trained model; ``scores(X, offset)``.
    X : ndarray or sparse matrix, shape (n_samples, n_columns)
        The columns that the model reads, normalised.
    offset : ndarray, shape (n_columns,), or None, default=None
        Implicit value of each column of a sparse table.
    weights : ndarray, shape (n_samples,), or None, default=None
        Weights of the rows.
    features : ndarray of int, shape (n_columns,), or None, default=None
        Number of the feature of each column, from 0 on without gaps, where a feature has several columns; None: every
        column is one.
    seed : int, default=0
        Decides which rows are exchanged.

    Returns
    -------
    ndarray of float64, shape (n_features,)

    Examples
    --------
    >>> model = LinearModel(np.array([[3.0, -1.0]]), np.zeros(1))
    >>> contributions(model, np.array([[1.0, 1.0], [-1.0, -1.0]])).tolist()
    [3.0, 1.0]
    """
    weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    features = np.arange(X.shape[1]) if features is None else np.asarray(features)
    if isinstance(model, LinearModel):
        return _by_parts(lambda j, values: model.coef[:, j, None] * values, X, offset, weights, features)
    if isinstance(model, AdditiveModel):
        return _by_parts(lambda j, values: model.effects(j, values)[1], X, offset, weights, features)
    return _by_exchange(model, X, offset, weights, features, seed)


def _columns(X: Any, offset: np.ndarray | None) -> Iterator[np.ndarray]:
    """Yield the columns as dense float64 vectors, one at a time."""
    table = X.tocsc() if sp.issparse(X) else X
    for j in range(table.shape[1]):
        values = table[:, [j]].toarray()[:, 0] if sp.issparse(table) else table[:, j]
        yield values.astype(np.float64) + (0.0 if offset is None else offset[j])


def _by_parts(
    part: Callable[[int, np.ndarray], np.ndarray],
    X: Any,
    offset: np.ndarray | None,
    weights: np.ndarray,
    features: np.ndarray,
) -> np.ndarray:
    """Return the standard deviation of what each feature adds to a sum, over all outputs."""
    shares = weights / weights.sum()
    variances = np.zeros(int(features.max(initial=-1)) + 1)
    sums: dict[int, np.ndarray] = {}
    left = np.bincount(features)
    for j, values in enumerate(_columns(X, offset)):
        feature = int(features[j])
        added = part(j, values) + sums.pop(feature, 0.0)
        left[feature] -= 1
        if left[feature]:
            sums[feature] = added
            continue
        centred = added - (added @ shares)[:, None]
        variances[feature] = (centred**2 @ shares).sum()
    return np.sqrt(variances)


def _by_exchange(
    model: Any, X: Any, offset: np.ndarray | None, weights: np.ndarray, features: np.ndarray, seed: int
) -> np.ndarray:
    """Return the root of half the mean squared change of the outputs when the values of a feature are exchanged."""
    n_features = int(features.max(initial=-1)) + 1
    most = min(MOST_ROWS, max(64, MOST_CELLS // max(1, 50 * n_features * X.shape[1])))
    random = np.random.default_rng((seed, X.shape[0]))
    rows = random.permutation(X.shape[0])[:most]
    values = X[rows].toarray() if sp.issparse(X) else np.array(X[rows])
    if offset is not None:
        values = values + offset.astype(values.dtype)
    shares = weights[rows] / weights[rows].sum()
    before = model.scores(values)
    changes = np.zeros(n_features)
    # The rows are in random order, so the next row is a random other one.
    partner = np.roll(np.arange(rows.size), 1)
    for feature in range(n_features):
        columns = np.flatnonzero(features == feature)
        kept = values[:, columns].copy()
        values[:, columns] = kept[partner]
        changes[feature] = shares @ ((model.scores(values) - before) ** 2).sum(axis=1)
        values[:, columns] = kept
    return np.sqrt(changes / 2.0)
