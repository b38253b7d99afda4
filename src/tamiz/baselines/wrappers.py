"""Select by a trained model or at random: SVM-RFE, random forest, pair search, random and all features."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from tamiz.baselines.base import BaselineSelector, scores_from_order
from tamiz.pairs import find_pairs


class SVMRFE(BaselineSelector):
    r"""SVM-RFE: train a linear SVM, drop the features of the smallest weights, repeat down to the number wanted.

    The elimination of scikit-learn's ``RFE``, with ``LinearSVC`` (squared hinge; several classes one against the rest) or, for
    regression, ``LinearSVR`` (squared epsilon-insensitive). The criterion of a feature is :math:`\sum_c w_{cf}^2`.
    The score is its place in the order of elimination, F for the best: features that stay are ordered by their weight
    in the last machine, features that leave in one round by their weight in that round.

    Weights depend on the units of the columns: scale them first. Sparse X stays sparse.

    Cost: one SVM per round, O(N F) each times its iterations; about (1 - M / F) / step rounds for a fraction.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    step : int or float, default=0.1
        How many features leave in a round: a number, or a fraction in (0, 1) of all features.
    C : float, default=1.0
        Inverse strength of the SVM's regularisation. The authors of E2E-FS used N / 100.
    class_weight : dict, "balanced" or None, default="balanced"
        As in ``LinearSVC``; for classes only.
    max_iter : int, default=10000
        Limit of the SVM's iterations.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.rows.targets.decide_task` does.
    random_state : int, RandomState instance or None, default=None
        Seed of the SVM's coordinate descent.

    Attributes
    ----------
    estimator_ : LinearSVC or LinearSVR
        SVM fitted on the features that are kept.
    n_rounds_ : int
        Number of rounds of elimination.
    n_iter_ : int
        Iterations of the last SVM.

    References
    ----------
    I. Guyon, J. Weston, S. Barnhill, V. Vapnik: Gene selection for cancer classification using support vector
    machines. Machine Learning 46, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> SVMRFE(n_features_to_select=2, step=1, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [2, 3]
    """

    step: int | float = 0.1
    C: float = 1.0
    class_weight: Any = "balanced"
    max_iter: int = 10000
    task: str = "auto"
    random_state: Any = None

    accepts_sparse = ("csc",)
    nested = "smallest"  # features that leave in one round are ordered by their weights in that round
    _parameter_constraints: ClassVar = {
        "step": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="neither")],
        "C": [Interval(Real, 0, None, closed="neither")],
    }

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        shared = {"C": self.C, "max_iter": self.max_iter, "random_state": self.random_state, "dual": "auto"}
        if self.task_ == "classification":
            machine = LinearSVC(class_weight=self.class_weight, **shared)
            y = self.classes_[y]  # a dict of class weights uses their names
        else:
            machine = LinearSVR(loss="squared_epsilon_insensitive", **shared)
        step = int(self.step if self.step >= 1 else max(1, self.step * X.shape[1]))
        alive, rounds = np.arange(X.shape[1]), []  # features that left, round by round, the best first
        while True:
            machine.fit(X[:, alive], y)
            weights = (np.atleast_2d(machine.coef_) ** 2).sum(axis=0)
            n_leave = min(step, alive.size - self.n_features_to_select_)
            if n_leave == 0:
                break
            leave = np.sort(np.argsort(weights)[:n_leave])
            rounds.append(alive[leave[np.argsort(-weights[leave], kind="stable")]])
            alive = np.delete(alive, leave)
        self.estimator_, self.n_rounds_, self.n_iter_ = machine, len(rounds), int(machine.n_iter_)
        kept = alive[np.argsort(-weights, kind="stable")]
        return scores_from_order(np.concatenate([kept, *reversed(rounds)]))

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": self.n_rounds_}


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
        What the target is; "auto" decides as :func:`~tamiz.rows.targets.decide_task` does.
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

    n_estimators: int = 500
    class_weight: Any = None
    task: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None

    accepts_sparse = ("csc",)
    allows_nan = True
    _parameter_constraints: ClassVar = {"class_weight": [StrOptions({"balanced", "balanced_subsample"}), dict, None]}

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        shared = {"n_estimators": self.n_estimators, "n_jobs": self.n_jobs, "random_state": self.random_state}
        if self.task_ == "classification":
            # Trained on the classes themselves, so that a dict of class weights may use their names.
            forest = RandomForestClassifier(class_weight=self.class_weight, **shared)
            y = self.classes_[y]
        else:
            forest = RandomForestRegressor(**shared)
        self.estimator_ = forest.fit(X, y)
        return forest.feature_importances_


class PairSearchScore(BaselineSelector):
    r"""Score columns by their own evidence or that of their best pair, whichever is larger.

    The score is that of :func:`tamiz.find_pairs`, :math:`-\log p - \log m` with m the number of tests: marginal tests of the
    columns, and tests of all pairs beyond what both columns say alone. A column that matters only together with another one,
    as in an exclusive or, is found as well as one that matters alone; columns that only act in threes are not. Below 20 rows
    nothing can be judged, and all scores are equal.

    Cost: :math:`2 N F^2 d^2` floating-point operations for degree d, by matrix products; O(N F d) memory. Above 20,000 columns a
    sketch looks at likely pairs only.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    degree : int, default=2
        Degree of the curves of each column, from 1 to 4.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.rows.targets.decide_task` does.
    n_jobs : int or None, default=None
        Threads; None is all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the sketch.

    Attributes
    ----------
    search_ : PairSearch
        Result of the search: the pairs, the best partner of each column.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 30))
    >>> PairSearchScore(n_features_to_select=2).fit(X, X[:, 3] * X[:, 7] > 0).get_support(indices=True).tolist()
    [3, 7]
    """

    degree: int = 2
    task: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None

    accepts_sparse = ("csc",)
    _parameter_constraints: ClassVar = {"degree": [Interval(Integral, 1, 4, closed="both")]}

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        # Permutations correct p values and do not change the order of the columns.
        shared = {"task": self.task_, "n_jobs": self.n_jobs, "random_state": self.random_state}
        self.search_ = find_pairs(X, y, degree=self.degree, n_permutations=0, **shared)
        return self.search_.scores


class RandomSelection(BaselineSelector):
    """Keep features drawn at random. A method that is no better selects nothing of use.

    The score of a feature is its place in a random order (F for the first). Neither X nor y is used.
    Cost: O(F).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> RandomSelection(n_features_to_select=2, random_state=0).fit(np.ones((3, 5))).transform(np.ones((3, 5))).shape
    (3, 2)
    """

    random_state: Any = None

    accepts_sparse = ("csr", "csc")
    allows_nan = True
    _min_samples = 1
    uses_target = False

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        return scores_from_order(check_random_state(self.random_state).permutation(X.shape[1]))


class AllFeatures(BaselineSelector):
    """Keep every feature: what a model does without selection. Every score is 1. Cost: O(F).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Not used; there so that this selector can stand in a table next to the others.

    Examples
    --------
    >>> import numpy as np
    >>> AllFeatures(n_features_to_select=2).fit(np.ones((3, 5))).get_support().tolist()
    [True, True, True, True, True]
    """

    accepts_sparse = ("csr", "csc")
    allows_nan = True
    _min_samples = 1
    uses_target = False
    keeps_all = True

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        return np.ones(X.shape[1])
