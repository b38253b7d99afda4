"""What all selectors of this room share: checked input, scores to ranks, exactly M features, one record."""

from __future__ import annotations

import numbers
import time
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tamiz._validation import (
    check_numeric_target,
    check_table,
    check_target_length,
    resolve_n_features_to_select,
)
from tamiz.selection import Selection

TASKS = ("auto", "classification", "regression")


def ranking_from_scores(scores: np.ndarray) -> np.ndarray:
    """Ranks 1 .. F of scores, the largest first; of equal scores the column further left comes first.

    Examples
    --------
    >>> ranking_from_scores(np.array([0.5, 2.0, 0.5, 3.0])).tolist()
    [3, 2, 4, 1]
    """
    order = np.argsort(-scores, kind="stable")
    ranking = np.empty(order.size, dtype=np.int64)
    ranking[order] = np.arange(1, order.size + 1)
    return ranking


def scores_from_order(order: np.ndarray) -> np.ndarray:
    """Scores F .. 1 for methods that only put features in an order (given best first).

    Examples
    --------
    >>> scores_from_order(np.array([2, 0, 1])).tolist()
    [2.0, 1.0, 3.0]
    """
    scores = np.empty(order.size)
    scores[order] = np.arange(order.size, 0, -1)
    return scores


def decide_task(y: np.ndarray, task: str) -> Literal["classification", "regression"]:
    """Whether a target names classes or measures something.

    With ``task="auto"``, numbers with a fractional part mean regression; integers, booleans and text mean
    classes.

    Examples
    --------
    >>> decide_task(np.array([0.5, 1.25]), "auto"), decide_task(np.array(["a", "b"]), "auto")
    ('regression', 'classification')
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}, got {task!r}.")
    if task == "classification":
        return "classification"
    if task == "regression":
        return "regression"
    if y.dtype.kind != "f":
        return "classification"
    finite = y[np.isfinite(y)]
    return "regression" if np.any(finite != np.rint(finite)) else "classification"


def encode_classes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes of a target, and each row's class as a number 0 .. C-1.

    Examples
    --------
    >>> classes, codes = encode_classes(["b", "a", "b"])
    >>> classes.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        check_numeric_target(y)
        if np.any(y != np.rint(y)):
            raise ValueError(
                "Unknown label type: continuous. The target has numbers with a fractional part, but this "
                "selection needs classes. "
                "Bin the target, or use a method for regression (such as MIM, ReliefF, Lasso or MRMR)."
            )
    elif y.dtype.kind == "O":
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y holds one class only ({classes[0]!r}); at least two are needed to tell them apart.")
    return classes, codes.reshape(-1).astype(np.int64)


def check_integer(name: str, value: Any, *, least: int) -> None:
    """Refuse a parameter that is no whole number, or too small.

    Examples
    --------
    >>> check_integer("n_neighbors", 0, least=1)
    Traceback (most recent call last):
    ValueError: n_neighbors must be an integer of at least 1, got 0.
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")


class BaselineSelector(SelectorMixin, BaseEstimator):
    """Base of all selectors here. A method writes ``__init__`` (which only stores) and ``_score_features``.

    Class attributes say what the method takes: ``method_name`` (its name in the registry), ``_accept_sparse``
    (formats, the first is converted to), ``_allow_nan`` (NaN means missing), ``_min_samples``, ``_engine``,
    ``_finds_bad_numbers`` (see ``_check_table``) and ``_target``: "classes", "either" (the method then has a
    parameter ``task``) or "none" (y is ignored).

    When ``_score_features(X, y)`` is called, X is a checked float array or sparse matrix, y is one of class
    codes 0 .. C-1 (int64), numbers (float64) or None, and ``n_features_to_select_``, ``task_`` and, for
    classes, ``classes_`` are set. It returns one score a feature, larger is better; infinities are allowed.

    Attributes
    ----------
    scores_ : ndarray of float, shape (n_features_in_,)
        Larger is better; what exactly it is, the method says.
    ranking_ : ndarray of int, shape (n_features_in_,)
        A permutation of 1 .. F; 1 is the best; of equal scores the column further left comes first.
    n_features_to_select_ : int
        How many features are kept.
    selection_ : Selection
        The record of the run.
    n_features_in_ : int
        How many columns ``fit`` saw.
    feature_names_in_ : ndarray of str
        Their names, if they had any.
    """

    method_name: ClassVar[str]
    _accept_sparse: ClassVar[tuple[str, ...] | bool] = False
    _allow_nan: ClassVar[bool] = False
    _min_samples: ClassVar[int] = 2
    _target: ClassVar[Literal["classes", "either", "none"]] = "either"
    _engine: ClassVar[str] = "baseline"
    _finds_bad_numbers: ClassVar[bool] = False

    n_features_to_select: int | float | None

    @abstractmethod
    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        """One score a feature, larger is better."""

    def _selection_facts(self) -> dict[str, Any]:
        """More fields of the :class:`~tamiz.selection.Selection`: ``n_steps``, ``converged``, ``history``."""
        return {}

    def fit(self, X: Any, y: Any = None) -> BaselineSelector:
        """Score the features and keep the best.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The table; sparse where the method takes it.
        y : array-like of shape (n_samples,)
            Classes or numbers; not looked at by methods that need no target.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        X = self._check_table(X)
        codes_or_numbers = self._check_target(X, y)
        self.n_features_to_select_ = self._resolve_n_features_to_select(X.shape[1])
        scores = np.asarray(self._score_features(X, codes_or_numbers), dtype=np.float64)
        if scores.shape != (X.shape[1],) or np.isnan(scores).any():
            raise FloatingPointError(
                f"{type(self).__name__} could not score every feature: X holds numbers too large or too small. "
                "Scale the columns first (for example with StandardScaler)."
            )
        self.scores_ = scores
        self.ranking_ = ranking_from_scores(scores)
        self.selection_ = self._make_selection(time.perf_counter() - started)
        return self

    def _check_table(self, X: Any) -> Any:
        """The table, checked; only a method that finds NaN and infinity itself gets plain floats unread.

        Such a method calls ``check_finite`` where its results are not finite, which saves reading X once more.
        """
        if self._finds_bad_numbers and type(X) is np.ndarray and X.dtype in (np.float32, np.float64):
            return validate_data(self, X, ensure_all_finite=False, ensure_min_samples=self._min_samples)
        return check_table(
            self,
            X,
            reset=True,
            accept_sparse=list(self._accept_sparse) if isinstance(self._accept_sparse, tuple) else False,
            allow_nan=self._allow_nan,
            min_samples=self._min_samples,
        )

    def _resolve_n_features_to_select(self, n_features: int) -> int:
        return resolve_n_features_to_select(self.n_features_to_select, n_features)

    def _check_target(self, X: Any, y: Any) -> np.ndarray | None:
        if self._target == "none":
            return None
        if y is not None and not hasattr(y, "shape"):
            y = np.asarray(y)
        check_target_length(X, y)
        if self._target == "classes":
            self.task_ = "classification"
        else:
            self.task_ = decide_task(np.asarray(y), getattr(self, "task", "auto"))
        if self.task_ == "classification":
            self.classes_, codes = encode_classes(y)
            return codes
        numbers_ = check_numeric_target(column_or_1d(y, warn=True))
        if np.ptp(numbers_) == 0:
            raise ValueError(f"y is {numbers_[0]} in every row; there is nothing to select features for.")
        return numbers_

    def _make_selection(self, seconds: float) -> Selection:
        seed = getattr(self, "random_state", None)
        return Selection(
            support=self.ranking_ <= self.n_features_to_select_,
            ranking=self.ranking_,
            variant=self.method_name,
            seed=int(seed) if isinstance(seed, numbers.Integral) else None,
            seconds=seconds,
            feature_names=getattr(self, "feature_names_in_", None),
            engine=self._engine,
            **self._selection_facts(),
        )

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "ranking_")
        return self.ranking_ <= self.n_features_to_select_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._target != "none"
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.input_tags.allow_nan = self._allow_nan
        return tags
