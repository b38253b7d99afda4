"""Keep columns with a bound on the false discovery rate, the expected share of false ones: knockoffs."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from scipy import special, stats
from scipy.linalg import blas
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.covariance import ledoit_wolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import LassoCV, MultiTaskLassoCV
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from tamiz._utils.validation import check_target_length, encoded_columns, whole_number
from tamiz.core.gates import read_gates
from tamiz.estimators.stability import fit_seeded
from tamiz.selection import Selection

MIN_ROWS = 20
#: What to do about two columns that are the same.
COPY_ADVICE = "drop one of them, or put both into one group"
# Correlation of two columns from which they are the same column.
_SAME = 1 - 1e-9
# Mean distance of the correlations of squares from those of a Gaussian copula, beyond chance, that is worth a warning.
_FAR = 0.05


def normal_scores(X: np.ndarray) -> np.ndarray:
    """Map the mean ranks of each column to a normal distribution, with mean 0 and variance 1; constant columns to 0.

    Examples
    --------
    >>> normal_scores(np.array([[1.0, 5], [9, 5], [10, 5], [50, 5]])).round(2).tolist()
    [[-1.36, 0.0], [-0.38, 0.0], [0.38, 0.0], [1.36, 0.0]]
    """
    scores = special.ndtri((stats.rankdata(X, axis=0) - 0.5) / len(X))
    scores -= scores.mean(axis=0)
    spread = scores.std(axis=0)
    return scores / np.where(spread > 1e-9, spread, 1.0)


def knockoff_variances(correlation: np.ndarray) -> np.ndarray:
    """Compute the variances s that knockoffs do not share with their columns, ``cov(x_j, knockoff_j) = 1 - s_j``.

    They make columns as hard as possible to rebuild from all others and all knockoffs: they minimise the trace of the inverse
    covariance of both (Spector and Janson 2022), for a correlation matrix that is positive definite.

    Examples
    --------
    >>> correlation = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> knockoff_variances(correlation).round(2).tolist()
    [0.23, 0.23, 1.0]
    """
    s = np.full(len(correlation), min(0.5, float(np.linalg.eigvalsh(correlation)[0])))
    inverse = np.asfortranarray(np.linalg.inv(2 * correlation - np.diag(s)))
    for _ in range(50):
        largest_step = 0.0
        for j in range(len(s)):
            # Minimum of 1 / s_j + trace((2 C - S)^-1) in s_j, in closed form.
            column = inverse[:, j].copy()
            length = np.sqrt(column @ column)
            step = (1 - length * s[j]) / (column[j] + length)
            s[j] += step
            inverse = blas.dger(step / (1 - step * column[j]), column, column, a=inverse, overwrite_a=1)
            largest_step = max(largest_step, abs(step))
        if largest_step < 1e-4:
            break
    return s


def knockoff_sampler(
    X: np.ndarray, construction: str = "mvr", groups: np.ndarray | None = None
) -> Callable[[np.random.RandomState], np.ndarray]:
    """Fit a Gaussian copula to a table and return a function that draws knockoffs of it.

    Columns are mapped to normal scores, whose correlations are shrunk by Ledoit and Wolf's rule; knockoffs are drawn there and
    mapped back, so that each has the distribution of its column.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        Table.
    construction : {"mvr", "equicorrelated"}, default="mvr"
        Variances of :func:`knockoff_variances`, or the same share of the variance for all columns, as always for groups.
    groups : ndarray of int, shape (n_columns,), or None, default=None
        Number of the group of each column; a group is exchanged with its knockoffs as a whole.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) @ np.array([[1.0, 0.6, 0], [0, 0.8, 0], [0, 0, 1.0]])
    >>> draw = knockoff_sampler(X)
    >>> both = np.corrcoef(X.T, draw(np.random.RandomState(0)).T)
    >>> bool(np.abs(both[:3, :3] - both[3:, 3:]).max() < 0.15), bool(abs(both[0, 4] - both[0, 1]) < 0.15)
    (True, True)
    """
    n_rows, n_columns = X.shape
    scores = normal_scores(X)
    covariance = ledoit_wolf(scores, assume_centered=True)[0]
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    groups = np.arange(n_columns) if groups is None else groups
    if construction == "mvr" and len(np.unique(groups)) == n_columns:
        shared = np.diag(knockoff_variances(correlation))
    else:
        shared = np.where(groups[:, None] == groups, correlation, 0.0)
        values, vectors = np.linalg.eigh(shared)
        root = (vectors / np.sqrt(np.maximum(values, 1e-12))) @ vectors.T
        shared *= 0.999 * min(1.0, 2 * float(np.linalg.eigvalsh(root @ correlation @ root)[0]))
    coefficients = np.linalg.solve(correlation, shared)
    values, vectors = np.linalg.eigh(2 * shared - shared @ coefficients)
    noise = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    mean = scores - scores @ coefficients
    ordered = np.sort(X, axis=0)

    def draw(random: np.random.RandomState) -> np.ndarray:
        drawn = mean + random.normal(size=X.shape) @ noise
        places = np.clip((special.ndtr(drawn) * n_rows).astype(int), 0, n_rows - 1)
        return np.take_along_axis(ordered, places, axis=0)

    return draw


def knockoff_e_values(statistics: np.ndarray, level: float) -> np.ndarray:
    """Compute the e-values of one draw of knockoffs, which may be averaged over draws (Ren and Barber 2024).

    The threshold stops where knockoff+ does, or where no knockoff exceeds its column any more: with few true columns
    the share of false ones cannot be estimated to be small.

    Parameters
    ----------
    statistics : ndarray of shape (n_features,)
        Importance of each feature minus that of its knockoff.
    level : float
        Level of knockoff+ at which the threshold stops.

    Examples
    --------
    >>> knockoff_e_values(np.array([5.0, 4, 3, 2, -1, 0.5]), 0.2).tolist()
    [6.0, 6.0, 6.0, 6.0, 0.0, 0.0]
    """
    for threshold in np.sort(np.abs(statistics[statistics != 0])):
        above = statistics >= threshold
        n_false = 1 + int((statistics <= -threshold).sum())
        if n_false <= level * above.sum() or n_false == 1:
            return above * len(statistics) / n_false
    return np.zeros(len(statistics))


def e_bh_q_values(e_values: np.ndarray) -> np.ndarray:
    """Compute the smallest level at which e-BH rejects each hypothesis (Wang and Ramdas 2022).

    Examples
    --------
    >>> e_bh_q_values(np.array([8.0, 10.0, 0.0, 1.0])).tolist()
    [0.25, 0.25, 1.0, 1.0]
    """
    order = np.argsort(-e_values, kind="stable")
    with np.errstate(divide="ignore"):
        levels = len(e_values) / (np.arange(1, len(e_values) + 1) * e_values[order])
    q_values = np.empty(len(e_values))
    q_values[order] = np.minimum(np.minimum.accumulate(levels[::-1])[::-1], 1.0)
    return q_values


class KnockoffSelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Keep columns with a bound on the false discovery rate: the expected share of false ones among those kept.

    Every column gets a knockoff, an artificial column that is related to the other columns as the column itself is, but not to
    the target. One model is fitted on both; a column whose importance exceeds that of its knockoff by more than a threshold
    is kept, where the share of false columns is estimated by the knockoffs that exceed their columns by as much (knockoff+,
    Candes et al. 2018). This is done ``n_draws`` times; the draws are averaged as e-values and the e-BH procedure decides
    (Ren and Barber 2024), so that the result depends little on the random numbers.

    A false column is one that says nothing about the target beyond what the other columns say. The bound holds for any model and
    any relation of target and columns, if the columns follow a Gaussian copula whose correlations are well estimated.
    Measured rates where that fails: docs, "False discoveries". The number of columns is what the data give; it may be 0,
    and it is 0 or at least ``1 / fdr``.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Model that tells how important columns are: anything that has after ``fit`` a ``selection_`` (such as
        :class:`E2EFSClassifier`, for effects that are not linear with its ``network``), ``coef_`` or ``feature_importances_``.
        None is the lasso, its penalty chosen by cross-validation; for classes on their indicators.
    fdr : float in (0, 1), default=0.2
        Bound on the false discovery rate.
    n_draws : int, default=10
        Draws of knockoffs, one fit each. 1 is knockoff+ itself: it finds more, but another seed gives another set.
    construction : {"mvr", "equicorrelated"}, default="mvr"
        How much knockoffs differ from their columns: as much as makes columns hardest to rebuild from the others and from
        knockoffs (:func:`~tamiz.estimators.knockoffs.knockoff_variances`), or all the same, as groups do always.
    n_screened : int, default=1000
        With more columns than this, half of the rows choose so many by their correlation with the target; knockoffs are drawn
        for these columns on the other rows.
    groups : array-like of shape (n_features,) or None, default=None
        Label of the group of each column; groups are kept or left out as a whole, and the rate is that of groups. None: the
        levels of a column that :class:`~tamiz.TableEncoder` encoded are one.
    n_jobs : int or None, default=None
        Fits side by side.
    random_state : int, RandomState instance or None, default=0
        Seed of the knockoffs; the default makes every call give the same result.

    Attributes
    ----------
    q_values_ : ndarray of float, shape (n_features_in_,)
        Smallest ``fdr`` of the e-BH procedure at which a column would be kept; 1 for columns that were screened out.
    e_values_ : ndarray of float, shape (n_features_in_,)
        Mean e-value of each column.
    statistics_ : ndarray of float, shape (n_features_in_,)
        Importance of a column minus that of its knockoff, mean over the draws.
    ranking_ : ndarray of int, shape (n_features_in_,)
        A permutation of 1 .. n_features_in_ by falling e-value, then by statistic.
    selection_ : Selection
        Record of the selection.
    screened_ : ndarray of int
        Columns that knockoffs were drawn for.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns, if they had any.

    References
    ----------
    E. Candes, Y. Fan, L. Janson, J. Lv: Panning for gold: model-X knockoffs for high dimensional controlled variable selection.
    Journal of the Royal Statistical Society B 80, 2018.
    Z. Ren, R. F. Barber: Derandomised knockoffs: leveraging e-values for false discovery rate control. Journal of the Royal
    Statistical Society B 86, 2024.
    R. F. Barber, E. Candes: A knockoff filter for high-dimensional selective inference. Annals of Statistics 47, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz import KnockoffSelection
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(300, 50))
    >>> y = X[:, :12].sum(axis=1) + random.normal(size=300)
    >>> found = KnockoffSelection(fdr=0.2).fit(X, y)
    >>> found.get_support(indices=True).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    >>> bool(found.q_values_[:12].max() <= 0.2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"]), None],
        "fdr": [Interval(numbers.Real, 0, 1, closed="neither")],
        "n_draws": [whole_number(1)],
        "construction": [StrOptions({"mvr", "equicorrelated"})],
        "n_screened": [whole_number(2)],
        "groups": ["array-like", None],
        "n_jobs": [Interval(numbers.Integral, None, None, closed="neither"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        fdr: float = 0.2,
        n_draws: int = 10,
        construction: str = "mvr",
        n_screened: int = 1000,
        groups: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator, self.fdr, self.n_draws, self.construction = estimator, fdr, n_draws, construction
        self.n_screened, self.groups, self.n_jobs, self.random_state = n_screened, groups, n_jobs, random_state

    def fit(self, X: Any, y: Any) -> KnockoffSelection:
        """Draw knockoffs, fit the model on columns and knockoffs, and keep the columns that stand out.

        Parameters
        ----------
        X : array-like or data frame, shape (n_samples, n_features)
            Table of numbers without missing values.
        y : array-like, shape (n_samples,)
            Classes or numbers.

        Returns
        -------
        self
        """
        self._validate_params()
        table = validate_data(self, X, dtype=np.float64, ensure_min_features=2)
        check_target_length(table, y)
        target = np.asarray(y)
        names, groups, encoded = getattr(self, "feature_names_in_", None), self.groups, encoded_columns(X)
        if encoded is not None and groups is None:  # a column of the user's table is the unit
            names, groups = np.array(encoded[0], dtype=object), encoded[1]
        gates, labels = read_gates(table.shape[1], groups=groups, names=names)
        codes, titles = gates.group, [f"x{j}" for j in range(table.shape[1])] if names is None else names.tolist()
        titles = titles if labels is None else labels[codes].tolist()
        if len(table) < MIN_ROWS:
            raise ValueError(f"Knockoffs need at least {MIN_ROWS} rows, got {len(table)} sample(s).")
        constant = np.flatnonzero(np.ptp(table, axis=0) == 0)
        if constant.size:
            more = f" and {constant.size - 1} more columns are" if constant.size > 1 else " is"
            raise ValueError(f"Column {titles[constant[0]]!r}{more} constant: drop constant columns.")
        outputs = _standardised_target(target)
        random = check_random_state(self.random_state)
        n_rows, n_columns = table.shape
        kept, rows = np.arange(n_columns), np.arange(n_rows)
        if n_columns > self.n_screened:
            order = random.permutation(n_rows)
            first, rows = order[: n_rows // 2], np.sort(order[n_rows // 2 :])
            kept = _screen(table[first], outputs[first], codes, self.n_screened)
        values, groups = table[:, kept], np.unique(codes[kept], return_inverse=True)[1]
        self._check_columns(values[rows], groups, [titles[column] for column in kept])
        draw = knockoff_sampler(values[rows], self.construction, groups)
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_draws)
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(_draw_statistics)(self.estimator, draw, values, rows, target, outputs, groups, int(seed))
            for seed in seeds
        )
        level = self.fdr if self.n_draws == 1 else self.fdr / 2
        e_values = np.mean([knockoff_e_values(one, level) for one in found], axis=0)
        self.screened_ = kept
        self.e_values_, self.q_values_, self.statistics_ = np.zeros(n_columns), np.ones(n_columns), np.zeros(n_columns)
        self.e_values_[kept], self.q_values_[kept] = e_values[groups], e_bh_q_values(e_values)[groups]
        self.statistics_[kept] = np.mean(found, axis=0)[groups]
        support = self.q_values_ <= self.fdr * (1 + 1e-9)
        self.ranking_ = np.argsort(np.lexsort((-self.statistics_, -self.e_values_, ~support))) + 1
        groups_of = {} if labels is None else {"groups": codes, "group_names": labels}
        record: dict[str, Any] = {"variant": "knockoffs", "engine": "knockoffs", "feature_names": names, **groups_of}
        self.selection_ = Selection(support, self.ranking_, **record)
        return self

    def _check_columns(self, values: np.ndarray, groups: np.ndarray, titles: list[str]) -> None:
        """Refuse copies of columns, and warn where knockoffs are less exact."""
        n_rows, n_columns = values.shape
        scores = normal_scores(values)
        correlation = scores.T @ scores / n_rows
        same = np.argwhere(np.triu((np.abs(correlation) > _SAME) & (groups[:, None] != groups), 1))
        if len(same):
            first, second = (titles[column] for column in same[0])
            raise ValueError(f"Columns {first!r} and {second!r} are perfectly correlated: {COPY_ADVICE}.")
        squares = scores**2 - 1.0
        squares /= np.maximum(np.sqrt((squares**2).mean(axis=0)), 1e-12)
        gap = (squares.T @ squares / n_rows - correlation**2)[np.triu_indices(n_columns, 1)]
        rate = "the false discovery rate may exceed fdr, see the measured rates in the documentation."
        doubts, n_groups = [], groups.max() + 1
        if n_groups * self.fdr < 1:
            least = f"at least {int(np.ceil(1 / self.fdr))} are: {n_groups} are too few, and nothing will be kept."
            doubts.append(f"With fdr={self.fdr:g} columns are kept only if {least}")
        if n_rows < n_columns:
            doubts.append(f"There are fewer rows ({n_rows}) than columns ({n_columns}) to draw knockoffs from: {rate}")
        if gap.size and (gap**2).mean() > 1.5 / n_rows + _FAR**2:
            doubts.append(f"The columns are far from Gaussian (squares correlate otherwise than in a copula): {rate}")
        for doubt in doubts:
            warnings.warn(doubt, UserWarning, stacklevel=3)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.selection_.support

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _standardised_target(target: np.ndarray) -> np.ndarray:
    """Encode numbers as one column, classes as indicators (two classes: one), with mean 0 and variance 1."""
    if target.ndim > 1 and target.shape[1] == 1:
        target = target.ravel()
    if target.dtype.kind not in "fiub" or type_of_target(target) in ("binary", "multiclass"):
        columns = LabelBinarizer().fit_transform(target.astype(str) if target.dtype.kind == "O" else target)
    else:
        columns = target.reshape(len(target), -1)
    columns = columns.astype(np.float64)
    spread = columns.std(axis=0)
    if (spread == 0).any() or not np.isfinite(columns).all():
        raise ValueError("y must hold two classes or more, or finite numbers that are not all the same.")
    return (columns - columns.mean(axis=0)) / spread


def _screen(X: np.ndarray, outputs: np.ndarray, groups: np.ndarray, limit: int) -> np.ndarray:
    """List the columns of the groups that correlate most with the target, at most ``limit`` columns."""
    centred = X - X.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    correlation = np.abs(centred.T @ outputs).max(axis=1) / np.where(length > 0, length, np.inf)
    best = np.zeros(groups.max() + 1)
    np.maximum.at(best, groups, correlation)
    order = np.argsort(-best, kind="stable")
    sizes = np.bincount(groups)[order].cumsum()
    return np.flatnonzero(np.isin(groups, order[: max(1, int((sizes <= limit).sum()))]))


def _draw_statistics(
    estimator: Any,
    draw: Callable[[np.random.RandomState], np.ndarray],
    values: np.ndarray,
    rows: np.ndarray,
    target: np.ndarray,
    outputs: np.ndarray,
    groups: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Draw knockoffs, fit the model, and compute the importance of each group minus that of its knockoffs."""
    random = np.random.RandomState(seed)
    # Rows that screened the columns may still be fitted, with columns as their own knockoffs (Barber and Candes 2019).
    knockoffs = values.copy()
    knockoffs[rows] = draw(random)
    both = np.hstack([values, knockoffs])
    both = (both - both.mean(axis=0)) / np.maximum(both.std(axis=0), 1e-12)
    # Ties and the order of columns must not favour columns over knockoffs.
    order = random.permutation(both.shape[1])
    importance = np.empty(both.shape[1])
    importance[order] = _importance(estimator, both[:, order], target, outputs, seed)
    difference = importance[: len(groups)] - importance[len(groups) :]
    return np.bincount(groups, weights=difference)


def _importance(estimator: Any, X: np.ndarray, target: np.ndarray, outputs: np.ndarray, seed: int) -> np.ndarray:
    """Fit a model and measure the importance of each column, 0 or more."""
    if estimator is None:
        lasso = LassoCV(alphas=20, cv=5) if outputs.shape[1] == 1 else MultiTaskLassoCV(alphas=20, cv=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = lasso.fit(X, outputs.ravel() if outputs.shape[1] == 1 else outputs)
    else:
        model = fit_seeded(estimator, X, target, seed)
    if hasattr(model, "selection_") and model.selection_.contribution is not None:
        return np.asarray(model.selection_.contribution)
    for name in ("coef_", "feature_importances_"):
        if hasattr(model, name):
            return np.abs(np.atleast_2d(getattr(model, name))).sum(axis=0)
    raise ValueError(
        f"{type(model).__name__} tells no importance of columns: it needs selection_, coef_ or feature_importances_."
    )
