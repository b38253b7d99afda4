"""Select by the Lasso with exactly M features alive: the path is searched for the penalty that keeps M."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.fixes import parse_version
from sklearn.utils.sparsefuncs import min_max_axis

from tamiz.baselines.base import BaselineSelector

# The path goes down by this factor a step until M features are alive, and to this share of its start at most.
_RATIO = 0.8
_SMALLEST_SHARE = 1e-4
_BISECTIONS = 40
# liblinear penalises the intercept as if it were the weight of a constant column of this value: make it cheap.
_INTERCEPT_SCALING = 10.0
# scikit-learn 1.8 renamed what asks for the L1 penalty.
_L1 = {"l1_ratio": 1.0} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "l1"}


def _without_offset(X: Any) -> Any:
    """Centre the columns, so that none replaces the intercept, which liblinear penalises.

    Dense columns are centred, which changes nothing else; sparse ones stay, but for constant ones, which become 0.
    """
    if not sp.issparse(X):
        centre = X.mean(axis=0, dtype=np.float64)
        return np.where(np.ptp(X, axis=0) > 0, X - centre, 0.0)
    low, high = min_max_axis(X, axis=0)
    return X @ sp.diags_array((low < high).astype(X.dtype)).tocsc()


def _gradient(X: Any, residuals: list[np.ndarray]) -> np.ndarray:
    """Compute the largest |gradient| of the loss by the weight of each feature, given the residuals of each model."""
    return np.max([np.abs(X.T @ residual) for residual in residuals], axis=0) / X.shape[0]


class Lasso(BaselineSelector):
    r"""Follow the path of the Lasso to exactly M features alive.

    Least squares for regression, logistic loss for classes (several: one against the rest, a feature being alive if
    it is for any), :math:`\frac{1}{N}\sum_i \ell(y_i, w^\top x_i + b) + \lambda \lVert w \rVert_1`. The path is
    followed from the :math:`\lambda` that kills all features down until M are alive, then bisected until exactly M
    are.

    The score of a feature is the :math:`\lambda` at which it entered (for good), as read off the gradient
    :math:`|\partial \ell / \partial w_f|` at the last point of the path at which it was out; a feature that is out at
    the end scores that gradient, which says how far below :math:`\lambda` it would come in. A path that cannot have
    exactly M alive (more than there are rows; features that only enter together) is completed by the largest gradients,
    with a ``ConvergenceWarning``.

    Weights depend on the units of the columns: scale them first. Sparse X stays sparse.

    Cost: some tens of Lasso fits, O(N F) for each sweep.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1), or None for half.
    max_iter : int, default=10000
        Limit of sweeps in one fit.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is; "auto" decides as :func:`~tamiz.rows.targets.decide_task` does.
    random_state : int, RandomState instance or None, default=None
        Seed of liblinear's order of coordinates; for classes only.

    Attributes
    ----------
    penalty_ : float
        :math:`\lambda` at the end of the path.
    n_alive_ : int
        Number of features alive there.
    n_solves_ : int
        Number of points of the path that were solved.
    n_iter_ : int
        Sweeps of the last fit.

    References
    ----------
    R. Tibshirani: Regression shrinkage and selection via the lasso. Journal of the Royal Statistical Society B 58,
    1996.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = Lasso(n_features_to_select=3, task="regression").fit(X, y)
    >>> selector.n_alive_, selector.get_support(indices=True).tolist()
    (3, [2, 3, 8])
    """

    max_iter: int = 10000
    task: str = "auto"
    random_state: Any = None

    accepts_sparse = ("csc",)
    nested = "each"

    def _score_features(self, X: Any, y: Any) -> np.ndarray:
        X, wanted = _without_offset(X), self.n_features_to_select_
        targets = [y]
        if self.task_ == "classification":
            n_classes = self.classes_.size
            targets = [(y == c).astype(np.float64) for c in (range(n_classes) if n_classes > 2 else [1])]
        largest = _gradient(X, [target - target.mean() for target in targets]).max()
        if self.task_ == "classification":
            # liblinear penalises the intercept too: nothing is alive beyond the largest gradient with the intercept at zero
            # or where it would be without penalty, whichever is larger.
            largest = max(largest, _gradient(X, [target - 0.5 for target in targets]).max())
        self.penalty_, self.n_alive_, self.n_solves_, self.n_iter_ = 0.0, 0, 0, 1
        if largest <= 0:  # no column varies with the target at all
            return np.zeros(X.shape[1])
        scores, alive = np.full(X.shape[1], largest), np.ones(X.shape[1], dtype=bool)
        gradient, penalty, too_small, n_left = scores, float(largest), 0.0, _BISECTIONS
        while True:
            # By the strong rule of Tibshirani et al. (2012): a gradient hardly ever grows by more than the penalties differ.
            candidates = alive | (gradient >= 2.0 * penalty - self.penalty_)
            candidates[gradient.argmax()] = True  # so that there is something to fit
            found, pulls, n_sweeps = self._fit_at(penalty, X, targets, candidates)
            if found.sum() > wanted and self.n_solves_:
                too_small = penalty
            else:
                alive, gradient = found, pulls
                # A feature is out as long as its gradient is below the penalty: the one that it had when it was last out tells
                # where, before this point, it came in.
                scores = np.where(alive, np.maximum(scores, penalty), np.minimum(gradient, np.nextafter(penalty, 0.0)))
                self.penalty_, self.n_alive_, self.n_iter_ = penalty, int(alive.sum()), n_sweeps
                self.n_solves_ += 1
            ended = n_left == 0 if too_small else penalty < _SMALLEST_SHARE * largest
            if self.n_alive_ >= wanted or ended:
                break
            n_left -= too_small > 0
            penalty = float(np.sqrt(self.penalty_ * too_small)) if too_small else penalty * _RATIO
        if self.n_alive_ != wanted:
            warnings.warn(
                f"No penalty keeps exactly {wanted} features alive; {self.n_alive_} are, and the "
                "next to enter complete the selection. Ask for fewer features, or scale the columns first.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return scores

    def _fit_at(
        self, penalty: float, X: Any, targets: list[np.ndarray], candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Fit a model to each target on the candidates; return what is alive in any, the gradient of all, and the sweeps."""
        alive, residuals, n_sweeps = np.zeros(X.shape[1], dtype=bool), [], 1
        columns = np.flatnonzero(candidates)
        part = X[:, columns]
        for target in targets:
            if self.task_ == "regression":
                model = linear_model.Lasso(alpha=penalty, max_iter=self.max_iter).fit(part, target)
                expected = model.predict(part)
            else:
                model = linear_model.LogisticRegression(
                    **_L1,
                    solver="liblinear",
                    C=1.0 / (penalty * target.size),
                    intercept_scaling=_INTERCEPT_SCALING,
                    max_iter=self.max_iter,
                    random_state=self.random_state,
                ).fit(part, target)
                expected = model.predict_proba(part)[:, 1]
            alive[columns] |= model.coef_.ravel() != 0
            residuals.append(target - expected)
            n_sweeps = max(n_sweeps, int(np.max(model.n_iter_)))
        gradient = _gradient(X, residuals)
        missed = ~candidates & (gradient > penalty * (1.0 + 1e-3))
        return self._fit_at(penalty, X, targets, candidates | missed) if missed.any() else (alive, gradient, n_sweeps)

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": self.n_solves_, "converged": self.n_alive_ == self.n_features_to_select_}
