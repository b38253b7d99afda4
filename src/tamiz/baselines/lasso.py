"""Select by the Lasso with exactly M features alive: the path is searched for the penalty that keeps M."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.fixes import parse_version

from tamiz.baselines.base import BaselineSelector

# The path goes down by this factor a step until M features are alive, and to this share of its start at most.
_RATIO = 0.8
_SMALLEST_SHARE = 1e-4
_BISECTIONS = 40
# liblinear penalises the intercept as if it were the weight of a constant column of this value: make it cheap.
_INTERCEPT_SCALING = 10.0
# scikit-learn 1.8 renamed what asks for the L1 penalty.
_L1 = {"l1_ratio": 1.0} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "l1"}


class PathPoint(NamedTuple):
    """Solution at one penalty: which features are alive, and |gradient| of the loss, for those alive the penalty itself."""

    penalty: float
    alive: np.ndarray
    gradient: np.ndarray
    n_sweeps: int


#: Fits the given columns only: penalty, indices of columns -> alive among them, gradient of all, sweeps.
Fit = Callable[[float, np.ndarray], tuple[np.ndarray, np.ndarray, int]]


def solve(fit: Fit, penalty: float, n_features: int, above: PathPoint | None = None) -> PathPoint:
    """Fit at one penalty the columns that can be alive, by the strong rule of Tibshirani et al. (2012).

    Between two penalties a gradient hardly ever grows by more than they differ, so columns of a gradient below
    2 new - old are left out; that none of them should have come in is checked, and corrected, afterwards.
    """
    candidates = np.ones(n_features, dtype=bool)
    if above is not None:
        candidates = above.alive | (above.gradient >= 2.0 * penalty - above.penalty)
    while True:
        columns = np.flatnonzero(candidates)
        alive = np.zeros(n_features, dtype=bool)
        alive[columns], gradient, n_sweeps = fit(penalty, columns)
        missed = ~candidates & (gradient > penalty * (1.0 + 1e-3))
        if not missed.any():
            return PathPoint(penalty, alive, gradient, n_sweeps)
        candidates |= missed


def search_path(fit: Fit, largest: float, n_features: int, wanted: int) -> list[PathPoint]:
    """Solve points of the path in falling order of penalty; the last one has ``wanted`` alive, or the most below that."""
    points = [solve(fit, largest, n_features)]
    while points[-1].alive.sum() < wanted:
        if points[-1].penalty < _SMALLEST_SHARE * largest:
            return points
        points.append(solve(fit, points[-1].penalty * _RATIO, n_features, points[-1]))
    if points[-1].alive.sum() == wanted or len(points) == 1:
        return points
    too_many = points.pop()
    for _ in range(_BISECTIONS):
        middle = solve(fit, float(np.sqrt(points[-1].penalty * too_many.penalty)), n_features, points[-1])
        if middle.alive.sum() > wanted:
            too_many = middle
        else:
            points.append(middle)
            if middle.alive.sum() == wanted:
                break
    return points


def entry_penalties(points: list[PathPoint]) -> np.ndarray:
    """Find the penalty at which each feature entered for good; for those outside, how near they are to entering.

    A feature is outside as long as its gradient is below the penalty, so its gradient at the last point at which it
    was outside tells where, before the next point, it came in. Those outside at the end get their gradient there,
    which is below the last penalty: one scale for both.
    """
    scores = np.full(points[0].alive.size, points[0].penalty)
    for here, below in zip(points, [*points[1:], None], strict=True):
        lowest = 0.0 if below is None else below.penalty
        outside = ~here.alive
        highest = np.nextafter(here.penalty, 0.0)
        scores[outside] = np.clip(here.gradient[outside], lowest, max(highest, lowest))
    return scores


def _without_offset(X: Any) -> Any:
    """Centre the columns, so that none replaces the intercept, which liblinear penalises.

    Dense columns are centred, which changes nothing else; sparse ones stay, but for constant ones, which become 0.
    """
    if not sp.issparse(X):
        centre = X.mean(axis=0, dtype=np.float64)
        return np.where(np.ptp(X, axis=0) > 0, X - centre, 0.0)
    constant = np.asarray(X.max(axis=0).todense()).ravel() == np.asarray(X.min(axis=0).todense()).ravel()
    return X @ sp.diags_array((~constant).astype(X.dtype)).tocsc()


def _regression_fit(X: Any, y: np.ndarray, max_iter: int) -> tuple[Fit, float]:
    """Make a fit of 1/(2N) |y - Xw - b|^2 + penalty |w|_1, and the penalty from which on nothing is alive."""
    X = _without_offset(X)

    def gradient(residual: np.ndarray) -> np.ndarray:
        return np.abs(X.T @ residual) / y.size

    def fit(penalty: float, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        if columns.size == 0:
            return np.zeros(0, dtype=bool), gradient(y - y.mean()), 1
        model = linear_model.Lasso(alpha=penalty, max_iter=max_iter).fit(X[:, columns], y)
        return model.coef_ != 0, gradient(y - model.predict(X[:, columns])), int(model.n_iter_)

    return fit, float(gradient(y - y.mean()).max())


def _classification_fit(X: Any, codes: np.ndarray, max_iter: int, seed: Any) -> tuple[Fit, float]:
    """Make a fit of the mean logistic loss + penalty |w|_1; several classes one against the rest."""
    X = _without_offset(X)
    n_classes = int(codes.max()) + 1
    targets = [codes == c for c in (range(n_classes) if n_classes > 2 else [1])]

    def gradient(probabilities: list[np.ndarray]) -> np.ndarray:
        pulls = [np.abs(X.T @ (p - t)) for p, t in zip(probabilities, targets, strict=True)]
        return np.max(pulls, axis=0) / codes.size

    def fit(penalty: float, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        alive, probabilities, n_sweeps = np.zeros(columns.size, dtype=bool), [], 1
        # One column at least, so that there is something to fit; if it is not a candidate it stays out.
        part = X[:, columns] if columns.size else X[:, :1]
        for target in targets:
            model = linear_model.LogisticRegression(
                **_L1,
                solver="liblinear",
                C=1.0 / (penalty * codes.size),
                intercept_scaling=_INTERCEPT_SCALING,
                max_iter=max_iter,
                random_state=seed,
            ).fit(part, target)
            alive |= model.coef_[0, : columns.size] != 0
            probabilities.append(model.predict_proba(part)[:, 1])
            n_sweeps = max(n_sweeps, int(model.n_iter_.max()))
        return alive, gradient(probabilities), n_sweeps

    # liblinear penalises the intercept too: nothing is alive beyond the largest gradient with the intercept at zero
    # or where it would be without penalty, whichever is larger.
    even = gradient([np.full(codes.size, 0.5) for _ in targets]).max()
    settled = gradient([np.full(codes.size, target.mean()) for target in targets]).max()
    return fit, float(max(even, settled))


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
        if self.task_ == "classification":
            fit, largest = _classification_fit(X, y, self.max_iter, self.random_state)
        else:
            fit, largest = _regression_fit(X, y, self.max_iter)
        if largest <= 0:  # no column varies with the target at all
            self.penalty_, self.n_alive_, self.n_solves_, self.n_iter_ = 0.0, 0, 0, 1
            return np.zeros(X.shape[1])
        points = search_path(fit, largest, X.shape[1], self.n_features_to_select_)
        self.penalty_ = points[-1].penalty
        self.n_alive_ = int(np.count_nonzero(points[-1].alive))
        self.n_solves_ = len(points)
        self.n_iter_ = points[-1].n_sweeps
        if self.n_alive_ != self.n_features_to_select_:
            warnings.warn(
                f"No penalty keeps exactly {self.n_features_to_select_} features alive; {self.n_alive_} are, and the "
                "next to enter complete the selection. Ask for fewer features, or scale the columns first.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return entry_penalties(points)

    def _selection_facts(self) -> dict[str, Any]:
        return {"n_steps": self.n_solves_, "converged": self.n_alive_ == self.n_features_to_select_}
