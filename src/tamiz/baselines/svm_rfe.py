"""Select by recursive feature elimination with a linear support vector machine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.feature_selection import RFE
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils._param_validation import Interval, RealNotInt

from tamiz.baselines._base import CLASS_WEIGHT, POSITIVE_INTEGER, TASK, BaselineSelector, scores_from_order


class _Recorder:
    """Hand the coefficients to RFE and keep those of each round, to order features that leave in one round."""

    def __init__(self) -> None:
        self.rounds: list[np.ndarray] = []

    def __call__(self, machine: Any) -> np.ndarray:
        coefficients = np.atleast_2d(machine.coef_)
        self.rounds.append((coefficients**2).sum(axis=0))
        return coefficients


def elimination_order(rfe: RFE, rounds: list[np.ndarray], final: np.ndarray) -> np.ndarray:
    """Return all features, the best first: those kept by weight, then round by round from the last, by weight in a round.

    Parameters
    ----------
    rfe : RFE
        Fitted; its ``ranking_`` is 1 for features kept, 2 for the last round, and so on.
    rounds : list of ndarray
        Squared weights of the features alive in each round, first round first.
    final : ndarray
        Squared weights of the features kept.
    """
    order = [np.flatnonzero(rfe.ranking_ == 1)[np.argsort(-final, kind="stable")]]
    for rank in range(2, len(rounds) + 2):
        alive = np.flatnonzero(rfe.ranking_ <= rank)
        left = np.flatnonzero(rfe.ranking_[alive] == rank)
        weights = rounds[len(rounds) + 1 - rank][left]
        order.append(alive[left[np.argsort(-weights, kind="stable")]])
    return np.concatenate(order)


class SVMRFE(BaselineSelector):
    r"""SVM-RFE: train a linear SVM, drop the features of the smallest weights, repeat down to the number wanted.

    scikit-learn's ``RFE`` around ``LinearSVC`` (squared hinge; several classes one against the rest) or, for
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
        What the target is; "auto" decides as :func:`~tamiz.preprocessing.targets.decide_task` does.
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

    method_name = "svm-rfe"
    title = "SVM-RFE"
    accepts_sparse = ("csc",)
    nested = "smallest"  # features that leave in one round are ordered by their weights in that round
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineSelector._parameter_constraints,
        "step": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="neither")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "class_weight": CLASS_WEIGHT,
        "max_iter": POSITIVE_INTEGER,
        "task": TASK,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        step: int | float = 0.1,
        C: float = 1.0,
        class_weight: Any = "balanced",
        max_iter: int = 10_000,
        task: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.task = task
        self.random_state = random_state

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        shared = {"C": self.C, "max_iter": self.max_iter, "random_state": self.random_state, "dual": "auto"}
        if self.task_ == "classification":
            machine = LinearSVC(class_weight=self.class_weight, **shared)
            y = self.classes_[y]  # a dict of class weights uses their names
        else:
            machine = LinearSVR(loss="squared_epsilon_insensitive", **shared)
        if X.shape[1] == 1:  # nothing to eliminate, which RFE refuses
            self.estimator_, self.n_rounds_ = machine.fit(X, y), 0
            self.n_iter_ = int(machine.n_iter_)
            return np.ones(1)
        recorder = _Recorder()
        rfe = RFE(
            machine,
            n_features_to_select=self.n_features_to_select_,
            step=self.step,
            importance_getter=recorder,
        ).fit(X, y)
        self.estimator_ = rfe.estimator_
        self.n_rounds_ = len(recorder.rounds)
        self.n_iter_ = int(rfe.estimator_.n_iter_)
        final = (np.atleast_2d(rfe.estimator_.coef_) ** 2).sum(axis=0)
        return scores_from_order(elimination_order(rfe, recorder.rounds, final))

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": self.n_rounds_}
