"""Keep columns with a bound on the expected number of false ones: stability selection on halves of the rows."""

from __future__ import annotations

import math
import numbers
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from tamiz._utils.text import counted
from tamiz._utils.validation import Encoded, check_target_length, encoded_columns, finite_number, whole_number


def fit_seeded(estimator: Any, X: Any, y: np.ndarray, seed: int) -> Any:
    """Fit a clone of an estimator with a seed, where it takes one."""
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return model.fit(X, y)


def false_selection_factor(threshold: float, n_resamples: int, assumption: str = "unimodal") -> float:
    r"""Compute C, with which C q² / p bounds the expected number of columns selected by mistake.

    Parameters
    ----------
    threshold : float
        Share of the halves in which a column must be kept, in (1/2, 1].
    n_resamples : int
        Number of pairs of halves, B.
    assumption : {"unimodal", "none"}, default="unimodal"
        See :class:`StabilitySelection`.

    Returns
    -------
    float
        Infinite where the bound says nothing.

    Examples
    --------
    >>> round(false_selection_factor(0.75, 50), 3), round(false_selection_factor(0.9, 50), 3)
    (1.02, 0.431)
    """
    pairs = float(n_resamples)
    if assumption == "none":
        return 1 / (2 * threshold - 1) if threshold > 0.5 else math.inf
    if threshold > 0.75:
        return 4 * (1 - threshold + 1 / (2 * pairs)) / (1 + 1 / pairs)
    room = 2 * threshold - 1 - 1 / (2 * pairs)
    return 1 / (2 * room) if room > 0 and threshold >= 0.5 + 1 / pairs else math.inf


class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Keep the columns that a selector keeps on most halves of the rows, with a bound on the expected number of false ones.

    The rows are divided into two halves ``n_resamples`` times; the selector is fitted on each half. A column is selected if
    the share of the halves that kept it reaches a threshold, the smallest one for which

    .. math:: E[\text{false}] \le C(\tau, B) \, q^2 / p \le \text{max\_false}

    with the threshold :math:`\tau`, B pairs of halves, p columns, of which the selector keeps q on a half. The number of
    selected columns is what the data give; it may be 0.

    "False" are columns that the selector keeps on a half with probability q / p or less, as a random choice of q columns
    would. That is true of every column without a relation to the target if those are exchangeable and the selector does no
    worse than chance. With ``assumption="unimodal"`` the distribution of the share of pairs in which both halves keep such a
    column is taken to have one mode, which holds in most applications; ``"none"`` takes nothing for granted, and the bound
    is about twice as large.

    Fits run side by side with joblib; ``with joblib.parallel_config("dask"):`` sends them to a Dask cluster.

    Parameters
    ----------
    estimator : estimator
        Selector with ``get_support``, such as :class:`E2EFSClassifier` with its ``n_features_to_select`` as q. It is cloned.
    n_resamples : int, default=50
        Pairs of halves, B: there are twice as many fits.
    max_false : float, default=1.0
        Bound on the expected number of false columns.
    assumption : {"unimodal", "none"}, default="unimodal"
        What is taken for granted, see above.
    n_jobs : int or None, default=None
        Fits side by side; None is 1, or what ``joblib.parallel_config`` says.
    random_state : int, RandomState instance or None, default=None
        An integer makes the fit repeatable.

    Attributes
    ----------
    probabilities_ : ndarray of float, shape (n_features_in_,)
        Share of the halves that kept each column; of a column that :class:`~tamiz.TableEncoder` encoded, any of its levels.
    threshold_ : float
        Share from which a column is selected.
    max_false_ : float
        Bound on the expected number of false columns at that threshold, at most ``max_false``.
    n_selected_per_half_ : float
        Mean number of columns that the selector kept, q.
    ranking_ : ndarray of int, shape (n_features_in_,)
        A permutation of 1 .. p by falling share; 1 is the best.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns, if they had any.

    References
    ----------
    R. D. Shah, R. J. Samworth: Variable selection with error control: another look at stability selection. Journal of the
    Royal Statistical Society B 75, 2013.
    N. Meinshausen, P. Bühlmann: Stability selection. Journal of the Royal Statistical Society B 72, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from tamiz.baselines import FisherScore
    >>> X = np.random.default_rng(0).normal(size=(100, 50))
    >>> y = np.where(X[:, 3] - X[:, 7] > 0, "ill", "well")
    >>> found = StabilitySelection(FisherScore(n_features_to_select=5), random_state=0).fit(X, y)
    >>> found.get_support(indices=True).tolist(), found.max_false_ <= 1, found.probabilities_[[3, 7]].tolist()
    ([3, 7], True, [1.0, 1.0])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"])],
        "n_resamples": [whole_number(2)],
        "max_false": [finite_number(0, or_equal=False)],
        "assumption": [StrOptions({"unimodal", "none"})],
        "n_jobs": [Interval(numbers.Integral, None, None, closed="neither"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        n_resamples: int = 50,
        max_false: float = 1.0,
        assumption: str = "unimodal",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator, self.n_resamples, self.max_false = estimator, n_resamples, max_false
        self.assumption, self.n_jobs, self.random_state = assumption, n_jobs, random_state

    def fit(self, X: Any, y: Any) -> StabilitySelection:
        """Select on halves of the rows, and keep what most of them kept.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            Table.
        y : array-like, shape (n_samples,) or (n_samples, n_outputs)
            Target; classes are divided evenly between the halves.

        Returns
        -------
        self
        """
        self._validate_params()
        table: Any = validate_data(
            self, X, accept_sparse=["csr", "csc"], dtype=None, ensure_min_samples=4, ensure_all_finite=False
        )
        check_target_length(table, y)
        target = np.asarray(y)
        if hasattr(table, "tocsr"):
            table = table.tocsr()
        encoded, units = encoded_columns(X), np.arange(table.shape[1])
        if encoded is not None:  # a column of the user's table is the unit
            units = np.unique(encoded[1], return_inverse=True)[1]
            if isinstance(table, np.ndarray):
                table = table.view(Encoded)
                table.feature_names, table.column_of = encoded
        random = check_random_state(self.random_state)
        halves = [half for _ in range(self.n_resamples) for half in _draw_halves(target, random)]
        seeds = random.randint(np.iinfo(np.int32).max, size=len(halves))
        fits = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_seeded)(self.estimator, table[rows], target[rows], int(seed))
            for rows, seed in zip(halves, seeds, strict=True)
        )
        supports = np.array([np.bincount(units, fit.get_support()) > 0 for fit in fits])
        self.probabilities_ = supports.mean(axis=0)[units]
        self.n_selected_per_half_ = float(supports.sum(axis=1).mean())
        self.threshold_, self.max_false_ = self._find_threshold(supports.shape[1])
        self.ranking_ = np.argsort(np.argsort(-self.probabilities_, kind="stable")) + 1
        return self

    def _find_threshold(self, n_features: int) -> tuple[float, float]:
        """Find the smallest threshold whose bound is small enough, and the bound."""
        share = self.n_selected_per_half_ / n_features
        if self.assumption == "unimodal" and share > 1 / math.sqrt(3):
            raise ValueError(
                f"The selector keeps {self.n_selected_per_half_:g} of {counted(n_features, 'feature')} on a half, too many "
                "for a bound on the false ones. Let it keep fewer."
            )
        steps = 2 * self.n_resamples
        for kept in range(self.n_resamples + 1, steps + 1):
            threshold = kept / steps
            bound = false_selection_factor(threshold, self.n_resamples, self.assumption)
            bound *= share * self.n_selected_per_half_
            if bound <= self.max_false:
                return threshold, bound
        most = math.floor(
            math.sqrt(self.max_false * n_features / false_selection_factor(1.0, self.n_resamples, self.assumption))
        )
        raise ValueError(
            f"With {self.n_selected_per_half_:g} of {n_features} columns kept on a half, no threshold bounds the expected "
            f"number of false columns by max_false={self.max_false:g}. Let the selector keep {most} columns or fewer, or "
            "raise max_false or n_resamples."
        )

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        # Shares are multiples of 1 / (2 B): half a step below the threshold leaves nothing to rounding.
        return self.probabilities_ >= self.threshold_ - 0.25 / self.n_resamples

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags.required = True
        return tags


def _draw_halves(target: np.ndarray, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Divide the rows into two halves of the same size (an odd row is left out), classes evenly."""
    order = random.permutation(len(target))
    if target.ndim == 1 and type_of_target(target) in ("binary", "multiclass"):
        codes = np.unique(target, return_inverse=True)[1]
        counts = np.bincount(codes)
        if counts.min() < 2:
            raise ValueError("Every class needs at least two rows, one for each half.")
        if len(order) % 2:
            odd = order[counts[codes[order]] % 2 == 1]
            order = order[order != odd[0]]
        order = order[np.argsort(codes[order], kind="stable")]
    size = len(order) // 2
    return np.sort(order[0 : 2 * size : 2]), np.sort(order[1 : 2 * size : 2])
