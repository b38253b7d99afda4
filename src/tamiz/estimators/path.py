"""Selections for several M in one call, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from tamiz._utils.pictures import Lines, Series, draw
from tamiz._utils.validation import finite_number, resolve_n_features_to_select
from tamiz.estimators import chooser
from tamiz.estimators.base import BaseE2EFS, seed_of
from tamiz.estimators.e2efs import E2EFSClassifier
from tamiz.estimators.training import is_auto
from tamiz.rows.rows import Rows

#: What a path has from the estimator of the chosen M, where that has it.
_OF_THE_BEST = ("predict", "predict_proba", "decision_function", "score", "classes_")


class E2EFSPath(MetaEstimatorMixin, SelectorMixin, BaseEstimator):
    """Fit one estimator for each of several numbers of features, and choose among them on inner folds.

    The fits share one normalised table. ``predict``, ``predict_proba``, ``decision_function``, ``score``, ``classes_`` and
    ``transform`` are those of the chosen one.

    Parameters
    ----------
    n_features_to_select : sequence of int or float, or "auto", default="auto"
        The values of M; floats in (0, 1) are fractions of the columns, or of the groups. "auto": 1, 2, 3, 5, 7, 10,
        15, 20, 30, ..., at most 500.
    estimator : E2EFSClassifier or E2EFSRegressor, default=None
        What is fitted for each M; its own ``n_features_to_select`` is not used. None is ``E2EFSClassifier()``. A network
        that it leaves to the data is chosen once, for an M in the middle of the path.
    cv : int, splitter, iterable or None, default=5
        Inner folds that score each M, as of the estimators. None: no scores, so that there is no best M either.
    scoring : str, callable or None, default=None
        Score on inner folds, as in scikit-learn; None is the balanced accuracy for classes, R2 for numbers.
    rule : {"one_se", "best"} or float, default="one_se"
        The best M is the fewest whose mean score is within one standard error of the best, is the best, or is within that
        number of the best.
    n_jobs : int or None, default=None
        Inner folds that run at a time, as in joblib: None is one (or what a ``joblib.parallel_config`` says), -1 all cores.
        The result does not depend on it. Another joblib backend (processes, Dask, Ray) can be chosen with
        ``joblib.parallel_config``.

    Attributes
    ----------
    n_features_to_select_ : list of int
        The values of M, ascending.
    estimators_ : dict of int to estimator
        The fitted estimator for each M.
    cv_results_ : dict of str to ndarray
        "n_features", "mean_test_score", "std_test_score" and the scores of each inner fold, "split0_test_score", ..., as in
        scikit-learn's RFECV; not with ``cv=None``.
    best_ : int
        The chosen M; not with ``cv=None``.
    best_estimator_ : estimator
        The fitted estimator for it; not with ``cv=None``.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 40))
    >>> y = X[:, 3] - X[:, 7] > 0
    >>> path = E2EFSPath([1, 2, 5], estimator=E2EFSClassifier(random_state=0)).fit(X, y)
    >>> path.n_features_to_select_, path.support_at(2).nonzero()[0].tolist()
    ([1, 2, 5], [3, 7])
    >>> path.best_, path.predict(X).shape
    (2, (80,))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features_to_select": "no_validation",
        "estimator": "no_validation",
        "cv": ["cv_object"],
        "scoring": "no_validation",
        "rule": [StrOptions({"one_se", "best"}), finite_number(0)],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_features_to_select: Sequence[int | float] | str = "auto",
        *,
        estimator: BaseE2EFS | None = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str | float = "one_se",
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select, self.estimator, self.cv = n_features_to_select, estimator, cv
        self.scoring, self.rule, self.n_jobs = scoring, rule, n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, time: Any = None) -> E2EFSPath:
        """Select for every M, and choose one.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            Numbers, finite.
        y : array-like, shape (n_samples,) or (n_samples, n_outputs)
            The target.
        sample_weight : array-like, shape (n_samples,), default=None
            Weights of the samples.
        groups, time : array-like, shape (n_samples,), default=None
            Groups of rows that inner folds keep together; time of the rows, so that inner folds train on earlier ones.

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self._validate_params()
        base, X, names = self._base()._for_table(X)
        data = base.prepare(X, y, sample_weight)
        free = clone(base).set_params(keep=None, drop=None)
        counts = free._possible_counts(data)
        values = self._values(counts[1])
        rows, seed = Rows(X, y, sample_weight=sample_weight, groups=groups, time=time), seed_of(base.random_state)
        chosen = chooser.choose(base, rows, counts, seed, values=values)
        base.set_params(**chosen.parameters)
        choice = None
        if self.cv is not None:
            splits = chooser.inner_folds(rows, base._task, self.cv, seed, "E2EFSPath")
            scored = clone(base).set_params(random_state=seed, verbose=0)
            choice = chooser.choose_n_features(scored, values, rows, splits, self.rule, n_jobs=self.n_jobs)
            chosen.choices["n_features_to_select"] = choice
        found = dict(base._fit_sizes(values, data))
        for one in found.values():
            found_names = one.selection_.feature_names if names is None else names
            one.selection_ = replace(one.selection_, choices=chosen.records(), feature_names=found_names)
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        self.n_features_to_select_ = values
        self.estimators_ = {m: found[m] for m in values}
        if choice is not None:
            self.cv_results_ = chooser.cv_results(choice)
            self.best_ = int(choice.chosen)
            self.best_estimator_ = self.estimators_[self.best_]
        return self

    def _base(self) -> BaseE2EFS:
        """Copy the estimator that is fitted for each M."""
        if self.estimator is not None and not isinstance(self.estimator, BaseE2EFS):
            raise TypeError(f"estimator must be an E2EFSClassifier or E2EFSRegressor, got {self.estimator!r}.")
        base = clone(E2EFSClassifier() if self.estimator is None else self.estimator)
        if base.budget is not None:
            raise ValueError("a path is over numbers of features: its estimator must have budget=None.")
        return base.set_params(n_features_to_select=None, scoring=self.scoring)

    def _values(self, n_features: int) -> list[int]:
        """Check the values of M, each once."""
        wanted = self.n_features_to_select
        if is_auto(wanted):
            return chooser.round_numbers(n_features)
        if isinstance(wanted, str) or not hasattr(wanted, "__len__") or len(wanted) == 0:
            raise ValueError(
                f"n_features_to_select must be 'auto' or a list of one or more numbers of features, got {wanted!r}."
            )
        return sorted({resolve_n_features_to_select(value, n_features) for value in wanted})

    def support_at(self, n_features_to_select: int) -> np.ndarray:
        """Look up the selection for one of the values of M, as a mask over the columns.

        Parameters
        ----------
        n_features_to_select : int
            One of ``n_features_to_select_``.

        Returns
        -------
        ndarray of bool, shape (n_features_in_,)
        """
        check_is_fitted(self, "estimators_")
        if n_features_to_select not in self.estimators_:
            raise ValueError(
                f"There is no selection of {n_features_to_select!r} features; there are {self.n_features_to_select_}."
            )
        return self.estimators_[n_features_to_select].get_support()

    def _best(self) -> BaseE2EFS:
        check_is_fitted(self, "estimators_")
        if not hasattr(self, "best_estimator_"):
            raise ValueError("With cv=None no M is chosen: use estimators_[M], or give cv a number of folds.")
        return self.best_estimator_

    def __getattr__(self, name: str) -> Any:
        """Hand on to the estimator of the chosen M."""
        if name not in _OF_THE_BEST or (name == "classes_" and "estimators_" not in vars(self)):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if "best_estimator_" in vars(self) or getattr(self._base(), name, None) is None:
            return getattr(self._best(), name)

        return lambda *_, **__: self._best()  # which raises

    def _get_support_mask(self) -> np.ndarray:
        return self._best().get_support()

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean score on inner folds against M, with its standard error and the chosen M; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        matplotlib axes
        """
        self._best()
        scores = self.cv_results_
        splits = np.array([value for name, value in scores.items() if name.startswith("split")]).T
        numbers, mean, error = scores["n_features"], scores["mean_test_score"], chooser.standard_errors(splits)
        series = Series("mean and standard error", np.asarray(numbers), mean, mean - error, mean + error)
        labels = ("number of features M", "score on inner folds (mean and standard error)")
        return draw(Lines("", *labels, [series], log_x=True, chosen=(f"chosen: {self.best_}", self.best_)), ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(E2EFSClassifier() if self.estimator is None else self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags
