"""Select by the importances of a random forest."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.utils._param_validation import StrOptions

from tamiz.baselines._base import N_JOBS, POSITIVE_INTEGER, TASK, BaselineSelector


class RandomForestImportance(BaselineSelector):
    r"""Score by the mean decrease in impurity over the trees of a random forest (Breiman 2001).

    The score of a feature is the sum, over the nodes that split on it, of the impurity they take away, weighted by
    the share of the samples that reach the node, averaged over the trees; scores sum to 1. A feature that no tree
    split on scores 0. The scale of a column does not matter. NaN is taken for missing, as scikit-learn's trees do
    (dense X only).

    Cost: O(T sqrt(F) N log N) time for T trees on classes, O(T F N log N) for regression.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    n_estimators : int, default=500
        Number of trees. Wide tables need many, or most features are never tried.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        As in scikit-learn's forest; for classes only.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.preprocessing.targets.decide_task` does.
    n_jobs : int or None, default=None
        Trees grown side by side.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest.

    Attributes
    ----------
    estimator_ : RandomForestClassifier or RandomForestRegressor
        Fitted forest.

    References
    ----------
    L. Breiman: Random forests. Machine Learning 45, 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = RandomForestImportance(n_features_to_select=2, n_estimators=50, random_state=0)
    >>> selector.fit(X, y).get_support(indices=True).tolist()
    [2, 3]
    """

    method_name = "random-forest"
    title = "random forest"
    accepts_sparse = ("csc",)
    allows_nan = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "n_estimators": POSITIVE_INTEGER,
        "class_weight": [StrOptions({"balanced", "balanced_subsample"}), dict, None],
        "task": TASK,
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        n_estimators: int = 500,
        class_weight: Any = None,
        task: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_estimators = n_estimators
        self.class_weight = class_weight
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        shared = {
            "n_estimators": self.n_estimators,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        }
        if self.task_ == "classification":
            # Trained on the classes themselves, so that a dict of class weights may use their names.
            forest = RandomForestClassifier(class_weight=self.class_weight, **shared)
            y = self.classes_[y]
        else:
            forest = RandomForestRegressor(**shared)
        self.estimator_ = forest.fit(X, y)
        return forest.feature_importances_
