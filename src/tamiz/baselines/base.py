"""Provide the base of all baselines: checked input, scores to ranks, exactly M features, one record."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, dataclass_transform

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from tamiz._utils.validation import check_numeric_target, check_table, check_target_length, resolve_n_features_to_select
from tamiz.baselines.registry import by_class
from tamiz.errors import DivergenceError
from tamiz.rows.targets import TASKS, decide_task, encode_classes
from tamiz.selection import Selection


def ranking_from_scores(scores: np.ndarray) -> np.ndarray:
    """Rank scores 1 .. F, the largest first; of equal scores the column further left comes first.

    Examples
    --------
    >>> ranking_from_scores(np.array([0.5, 2.0, 0.5, 3.0])).tolist()
    [3, 2, 4, 1]
    """
    return stats.rankdata(-scores, method="ordinal").astype(np.int64)


def scores_from_order(order: np.ndarray) -> np.ndarray:
    """Score features F .. 1 by their order, best first.

    Examples
    --------
    >>> scores_from_order(np.array([2, 0, 1])).tolist()
    [2.0, 1.0, 3.0]
    """
    return order.size - np.argsort(order).astype(np.float64)


_POSITIVE_INTEGER = [Interval(Integral, 1, None, closed="left")]


@dataclass_transform(eq_default=False, kw_only_default=True)
@dataclass(eq=False, repr=False)
class BaselineSelector(SelectorMixin, BaseEstimator):
    """Base of all baselines. A method lists its parameters as annotated class attributes and writes ``_score_features``.

    ``__init__`` is made from the parameters, as for a dataclass; all but ``n_features_to_select`` are given by name. Other
    class attributes describe the method:

    ``tasks``
        Tasks it is made for, of "classification" and "regression"; with both it has a parameter ``task``.
    ``uses_target``
        Whether ``fit`` reads ``y``.
    ``nested``
        M of the one fit whose ranking selects the same features as a fit at every other M: "any", "largest" or "smallest";
        "each" if there is none, so that each M needs a fit of its own.
    ``keeps_all``
        Whether it keeps every feature, whatever ``n_features_to_select`` is.
    ``accepts_sparse``
        Formats of sparse tables, the first is converted to; empty: none.
    ``allows_nan``
        Whether NaN stands for a missing value.
    ``engine``
        What computes: "baseline" (NumPy, scikit-learn, compiled loops) or "torch".

    When ``_score_features(X, y)`` is called, X is a checked float array or sparse matrix, y is one of class codes
    0 .. C-1 (int64), numbers (float64) or None, and ``n_features_to_select_``, ``task_`` and, for classes, ``classes_`` are
    set. It returns one score per feature, larger is better; infinities are allowed.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        Score of each feature, larger is better; the method says what it is.
    ranking_ : ndarray of shape (n_features_in_,)
        Permutation of 1 .. F; 1 is the best; of equal scores the column further left comes first.
    n_features_to_select_ : int
        Number M of features that are kept.
    selection_ : Selection
        Record of the run.
    task_ : {"classification", "regression"}
        Task of the target; only if the method uses the target.
    classes_ : ndarray of shape (n_classes,)
        Classes of the target; only for classification.
    n_features_in_ : int
        Number of columns seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are strings.
    """

    tasks: ClassVar[tuple[Literal["classification", "regression"], ...]] = ("classification", "regression")
    uses_target: ClassVar[bool] = True
    nested: ClassVar[Literal["any", "largest", "smallest", "each"]] = "any"
    keeps_all: ClassVar[bool] = False
    accepts_sparse: ClassVar[tuple[str, ...]] = ()
    allows_nan: ClassVar[bool] = False
    engine: ClassVar[str] = "baseline"
    _min_samples: ClassVar[int] = 2
    #: Also of parameters that several methods have; a method adds its own. The number of features is checked against the table.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features_to_select": "no_validation",
        "class_weight": [StrOptions({"balanced"}), dict, None],
        **dict.fromkeys(("max_iter", "n_estimators", "n_neighbors", "n_rounds"), _POSITIVE_INTEGER),
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "task": [StrOptions(set(TASKS))],
    }

    n_features_to_select: int | float | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherited = super(cls, cls)._parameter_constraints
        cls._parameter_constraints = {**inherited, **cls._parameter_constraints}
        dataclass(eq=False, repr=False, kw_only=True)(cls)

    @abstractmethod
    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        """Compute one score per feature, larger is better."""

    def _selection_facts(self) -> dict[str, Any]:
        """Further fields of the :class:`~tamiz.selection.Selection`: ``n_steps``, ``converged``, ``history``."""
        return {}

    def fit(self, X: Any, y: Any = None) -> BaselineSelector:
        """Score the features and keep the best.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Table; sparse if the method accepts it.
        y : array-like of shape (n_samples,), default=None
            Classes or numbers; ignored by methods that use no target.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._validate_params()
        accepted = list(self.accepts_sparse) or False
        X = check_table(
            self, X, reset=True, accept_sparse=accepted, allow_nan=self.allows_nan, min_samples=self._min_samples
        )
        codes_or_numbers = self._check_target(X, y)
        wanted = X.shape[1] if self.keeps_all else self.n_features_to_select
        self.n_features_to_select_ = resolve_n_features_to_select(wanted, X.shape[1])
        scores = np.asarray(self._score_features(X, codes_or_numbers), dtype=np.float64)
        if scores.shape != (X.shape[1],) or np.isnan(scores).any():
            raise DivergenceError(
                f"{type(self).__name__} could not score every feature: X holds numbers too large or too small. "
                "Scale the columns first (for example with StandardScaler)."
            )
        self.scores_ = scores
        self.ranking_ = ranking_from_scores(scores)
        name, seed = type(self).__name__, getattr(self, "random_state", None)
        self.selection_ = Selection(
            support=self.ranking_ <= self.n_features_to_select_,
            ranking=self.ranking_,
            variant=by_class().get(name, name),
            seed=int(seed) if isinstance(seed, Integral) else None,
            seconds=time.perf_counter() - started,
            feature_names=getattr(self, "feature_names_in_", None),
            engine=self.engine,
            **self._selection_facts(),
        )
        return self

    def _check_target(self, X: Any, y: Any) -> np.ndarray | None:
        if not self.uses_target:
            return None
        if y is not None and not hasattr(y, "shape"):
            y = np.asarray(y)
        check_target_length(X, y)
        self.task_ = decide_task(y, getattr(self, "task", self.tasks[0]))
        if self.task_ == "classification":
            self.classes_, codes = encode_classes(y)
            return codes
        numbers_ = check_numeric_target(column_or_1d(y, warn=True))
        if np.ptp(numbers_) == 0:
            raise ValueError(f"y is {numbers_[0]} in every row; there is nothing to select features for.")
        return numbers_

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "ranking_")
        return self.ranking_ <= self.n_features_to_select_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.uses_target
        tags.input_tags.sparse = bool(self.accepts_sparse)
        tags.input_tags.allow_nan = self.allows_nan
        return tags
