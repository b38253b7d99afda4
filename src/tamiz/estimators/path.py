"""Selections for several M in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from tamiz._validation import resolve_n_features_to_select
from tamiz.estimators._base import BaseE2EFS, PreparedData
from tamiz.estimators._gating import read_gating
from tamiz.estimators.classifier import E2EFSClassifier
from tamiz.estimators.networks import find_network
from tamiz.estimators.strength import strength_ranges, training_loss


class E2EFSPath(MetaEstimatorMixin, BaseEstimator):
    """Fit one estimator for each of several numbers of features, side by side on one normalised table.

    Parameters
    ----------
    n_features_to_select : sequence of int or float
        The values of M; floats in (0, 1) are fractions of the columns, or of the groups.
    estimator : E2EFSClassifier or E2EFSRegressor, default=None
        What is fitted for each M; its own ``n_features_to_select`` is not used. None is ``E2EFSClassifier()``.
    n_jobs : int or None, default=None
        How many fits run at a time, as in joblib: None is one (or what a ``joblib.parallel_config`` says), -1 all cores.
        The result does not depend on it. The linear engine lets go of Python's lock, so threads are enough and the table
        is not copied; another joblib backend (processes, Dask, Ray) can be chosen with ``joblib.parallel_config``.

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
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 40))
    >>> y = X[:, 3] - X[:, 7] > 0
    >>> path = E2EFSPath([2, 5, 10], estimator=E2EFSClassifier(random_state=0)).fit(X, y)
    >>> path.n_features_to_select_, path.support_at(2).nonzero()[0].tolist()
    ([2, 5, 10], [3, 7])
    >>> {m: estimator.score(X, y) > 0.9 for m, estimator in path.estimators_.items()}
    {2: True, 5: True, 10: True}
    >>> path.at_strength(0.1).n_features_to_select_
    2
    """

    def __init__(
        self,
        n_features_to_select: Sequence[int | float],
        *,
        estimator: BaseE2EFS | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.estimator = estimator
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> E2EFSPath:
        """Select for every M.

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
        if self.estimator is not None and not isinstance(self.estimator, BaseE2EFS):
            raise TypeError(f"estimator must be an E2EFSClassifier or E2EFSRegressor, got {self.estimator!r}.")
        base = clone(E2EFSClassifier() if self.estimator is None else self.estimator)
        # A value of M is checked against the table with the others, below.
        if base.budget is not None:
            raise ValueError("a path is over numbers of features: its estimator must have budget=None.")
        base.set_params(n_features_to_select=None, strength=None)
        prepared = base._prepare(X, y, sample_weight, check_size=False)
        gating = read_gating(clone(base).set_params(keep=None, drop=None), prepared.n_features, prepared.feature_names)
        values = self._values(prepared.n_features if gating is None else gating.gates.n_groups)
        jobs = [delayed(_fit_one)(base, m, prepared) for m in values]
        # torch has one random state per process, which fits in threads would take from each other.
        prefer = "threads" if find_network(base.network).compiled else "processes"
        fitted = Parallel(n_jobs=self.n_jobs, prefer=prefer)(jobs)
        self.n_features_in_ = prepared.n_features
        if prepared.feature_names is not None:
            self.feature_names_in_ = prepared.feature_names
        self.n_features_to_select_ = values
        self.estimators_ = dict(zip(values, fitted))
        self.losses_ = {m: training_loss(estimator, prepared) for m, estimator in self.estimators_.items()}
        self.strength_ranges_ = strength_ranges(self.losses_)
        return self

    def _values(self, n_features: int) -> list[int]:
        """Return the values of M, checked, each once."""
        wanted = self.n_features_to_select
        if isinstance(wanted, str) or not hasattr(wanted, "__len__") or len(wanted) == 0:
            raise ValueError(f"n_features_to_select must be a list of one or more numbers of features, got {wanted!r}.")
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _fit_one(base: BaseE2EFS, m: int, prepared: PreparedData) -> BaseE2EFS:
    # The table is shared by all fits: none may write to it.
    return clone(base).set_params(n_features_to_select=m)._fit_prepared(prepared, owned=False)
