"""Selections for several M in one call, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from tamiz._utils.extras import require
from tamiz._utils.validation import resolve_n_features_to_select
from tamiz.estimators.base import BaseE2EFS, PreparedData, seed_of, strength_ranges, training_loss
from tamiz.estimators.chooser import (
    TrainingRows,
    choose_n_features,
    cv_results,
    decide,
    inner_splits,
    is_auto,
    round_numbers,
    standard_errors,
)
from tamiz.estimators.classifier import E2EFSClassifier
from tamiz.estimators.networks import find_network
from tamiz.estimators.training import selectable


class E2EFSPath(MetaEstimatorMixin, BaseEstimator):
    """Fit one estimator for each of several numbers of features, and choose among them on inner folds.

    The fits share one normalised table. ``predict`` and ``transform`` are those of the chosen one.

    Parameters
    ----------
    n_features_to_select : sequence of int or float, or "auto", default="auto"
        The values of M; floats in (0, 1) are fractions of the columns, or of the groups. "auto": 1, 2, 3, 5, 10, 20, 50,
        ..., at most 500.
    estimator : E2EFSClassifier or E2EFSRegressor, default=None
        What is fitted for each M; its own ``n_features_to_select`` is not used. None is ``E2EFSClassifier()``. A weight
        decay or network that it leaves to the data is chosen once, for an M in the middle of the path.
    cv : int, splitter, iterable or None, default=5
        Inner folds that score each M, as of the estimators. None: no scores, so that there is no best M either.
    scoring : str, callable or None, default=None
        Score on inner folds, as in scikit-learn; None is the balanced accuracy for classes, R2 for numbers.
    selection_rule : {"one_se", "best"} or float, default="one_se"
        The best M is the fewest whose mean score is within one standard error of the best, is the best, or is within that
        number of the best.
    n_jobs : int or None, default=None
        How many fits run at a time, as in joblib: None is one (or what a ``joblib.parallel_config`` says), -1 all cores.
        The result does not depend on it. The linear engine lets go of Python's lock, so threads are enough and the table
        is not copied, and its fits on all rows share most of their steps: only the inner folds run side by side. Another
        joblib backend (processes, Dask, Ray) can be chosen with ``joblib.parallel_config``.

    Attributes
    ----------
    n_features_to_select_ : list of int
        The values of M, ascending.
    estimators_ : dict of int to estimator
        The fitted estimator for each M.
    losses_ : dict of int to float
        Training loss of each, without weight decay.
    strength_ranges_ : dict of int to (float, float)
        For which strengths each M minimises loss + strength * M; only those that do for some.
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
    >>> path.at_strength(0.1).n_features_to_select_
    2
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features_to_select": "no_validation",
        "estimator": "no_validation",
        "cv": ["cv_object"],
        "scoring": "no_validation",
        "selection_rule": BaseE2EFS._parameter_constraints["selection_rule"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_features_to_select: Sequence[int | float] | str = "auto",
        *,
        estimator: BaseE2EFS | None = None,
        cv: Any = 5,
        scoring: Any = None,
        selection_rule: str | float = "one_se",
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.selection_rule = selection_rule
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> E2EFSPath:
        """Select for every M, and choose one.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            Numbers, finite.
        y : array-like, shape (n_samples,) or (n_samples, n_outputs)
            The target.
        sample_weight : array-like, shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self._validate_params()
        if self.estimator is not None and not isinstance(self.estimator, BaseE2EFS):
            raise TypeError(f"estimator must be an E2EFSClassifier or E2EFSRegressor, got {self.estimator!r}.")
        base = clone(E2EFSClassifier() if self.estimator is None else self.estimator)
        # A value of M is checked against the table with the others, below.
        if base.budget is not None:
            raise ValueError("a path is over numbers of features: its estimator must have budget=None.")
        base.set_params(
            n_features_to_select=None, strength=None, scoring=self.scoring, selection_rule=self.selection_rule
        )
        prepared = base._prepare(X, y, sample_weight, check_size=False)
        free = clone(base).set_params(keep=None, drop=None)
        counts = selectable(free, prepared.n_features, prepared.feature_names)
        values = self._values(counts[1])
        seed = seed_of(base.random_state)
        decided = decide(base, X, y, sample_weight, counts, prepared.n_outputs, seed, values)
        base.set_params(**decided.parameters)
        choice = None
        if self.cv is not None:
            rows = TrainingRows(X, y, sample_weight)
            splits = inner_splits(rows, base._task, self.cv, seed, "E2EFSPath")
            scored = clone(base).set_params(random_state=seed, verbose=0)
            choice = decided.choices["n_features_to_select"] = choose_n_features(
                scored, values, rows, splits, self.n_jobs
            )
        # Fits that share their steps are one piece of work, which takes little longer than one of them.
        parts = [values] if base._shares_steps(values[-1], prepared) else [[m] for m in values]
        jobs = [delayed(_fit_sizes)(base, part, prepared) for part in parts]
        # torch has one random state per process, which fits in threads would take from each other.
        prefer = "threads" if find_network(base.network).compiled else "processes"
        found = dict(pair for part in Parallel(n_jobs=self.n_jobs, prefer=prefer)(jobs) for pair in part)
        for one in found.values():
            one.selection_ = replace(one.selection_, choices=decided.records())
        self.n_features_in_ = prepared.n_features
        if prepared.feature_names is not None:
            self.feature_names_in_ = prepared.feature_names
        self.n_features_to_select_ = values
        self.estimators_ = {m: found[m] for m in values}
        self.losses_ = {m: training_loss(estimator, prepared) for m, estimator in self.estimators_.items()}
        self.strength_ranges_ = strength_ranges(self.losses_)
        if choice is not None:
            self.cv_results_ = cv_results(choice)
            self.best_ = int(choice.chosen)
            self.best_estimator_ = self.estimators_[self.best_]
        return self

    def _values(self, n_features: int) -> list[int]:
        """Return the values of M, checked, each once."""
        wanted = self.n_features_to_select
        if is_auto(wanted):
            return round_numbers(n_features)
        if isinstance(wanted, str) or not hasattr(wanted, "__len__") or len(wanted) == 0:
            raise ValueError(
                f"n_features_to_select must be 'auto' or a list of one or more numbers of features, got {wanted!r}."
            )
        return sorted({resolve_n_features_to_select(value, n_features) for value in wanted})

    def support_at(self, n_features_to_select: int) -> np.ndarray:
        """Return the selection for one of the values of M, as a mask over the columns.

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

    def at_strength(self, strength: float) -> BaseE2EFS:
        """Return the fitted estimator that minimises training loss + strength * M: M is left to the loss and one price.

        Parameters
        ----------
        strength : float
            Price of a feature, above 0 and finite.

        Returns
        -------
        E2EFSClassifier or E2EFSRegressor
        """
        check_is_fitted(self, "estimators_")
        if not 0 < strength < np.inf:
            raise ValueError(f"strength must be a finite number above 0, got {strength!r}.")
        return self.estimators_[next(m for m, (low, _) in self.strength_ranges_.items() if strength >= low)]

    def _best(self) -> BaseE2EFS:
        """Return the estimator of the chosen M."""
        check_is_fitted(self, "estimators_")
        if not hasattr(self, "best_estimator_"):
            raise ValueError("With cv=None no M is chosen: use estimators_[M], or give cv a number of folds.")
        return self.best_estimator_

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions of the estimator with the chosen M.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table; only the selected columns matter.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._best().predict(X)

    def transform(self, X: Any) -> Any:
        """Return the columns that the estimator with the chosen M selected.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            The table.

        Returns
        -------
        ndarray or sparse matrix, shape (n_samples, best_)
        """
        return self._best().transform(X)

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
        pyplot = require("matplotlib.pyplot", "plot", "E2EFSPath.plot()")
        if ax is None:
            ax = pyplot.figure(figsize=(6, 4), layout="constrained").add_subplot()
        scores = self.cv_results_
        splits = np.array([value for name, value in scores.items() if name.startswith("split")]).T
        numbers, mean, error = scores["n_features"], scores["mean_test_score"], standard_errors(splits)
        ax.errorbar(numbers, mean, np.nan_to_num(error), marker="o", capsize=3)
        ax.axvline(self.best_, color="0.5", linestyle="--", label=f"chosen: {self.best_}")
        ax.set_xscale("log")
        ax.set_xlabel("number of features M")
        ax.set_ylabel("score on inner folds (mean and standard error)")
        ax.legend()
        return ax

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _fit_sizes(base: BaseE2EFS, sizes: Sequence[int], prepared: PreparedData) -> list[tuple[int, Any]]:
    return list(base._fit_sizes(sizes, prepared))
