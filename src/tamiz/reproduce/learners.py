"""Models that score a set of features in the paper's table: its naive network, and a linear SVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz.estimators import E2EFSClassifier
from tamiz.estimators.networks import find_schedule
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.preprocessing.scaling import apply_normalization, column_statistics
from tamiz.reproduce.recipes import recipe_parameters

#: NaiveF: the network that selected. Naive: the same, trained anew on what was selected. SVM: a linear SVM on that.
LEARNERS = ("naivef", "naive", "svm")
LEARNER_TITLES = {"naivef": "NaiveF", "naive": "Naive", "svm": "SVM"}
#: Normalisation of the SVM: the one that the paper prints, whatever recipe the networks have.
SVM_NORMALIZATION = "erf2"


@dataclass(frozen=True)
class SVMGrid:
    """Hold what the SVM chooses from: liblinear's solvers by their numbers there, and values of C."""

    solvers: tuple[int, ...]
    values: tuple[float, ...]


#: That of the code which the paper's authors released (the paper names only C): 0 logistic, 1 and 2 squared hinge (dual,
#: primal), 3 hinge. Solvers 1 and 2 solve the same problem.
FULL_GRID = SVMGrid((0, 1, 2, 3), (0.001, 0.1, 0.5, 1.0, 1.4, 1.5, 1.6, 2.0, 2.5, 5.0, 100.0))
#: A tenth of the work: the squared hinge, by whichever of its two solvers is quicker, and C by orders of size.
SMALL_GRID = SVMGrid((2,), (0.001, 0.1, 1.0, 100.0))
GRIDS = {"small": SMALL_GRID, "full": FULL_GRID}


def naive_network(n_features: int, recipe: str | None, seed: int) -> E2EFSClassifier:
    """Return the naive network for columns that were selected before, by a recipe, not trained yet.

    Examples
    --------
    >>> naive_network(5, "paper", seed=0).schedule
    'paper'
    """
    # With all columns kept the paper trains for the epochs of the refinement only.
    more = {**recipe_parameters(recipe), **({"warmup_steps": 0} if recipe == "paper" else {})}
    return E2EFSClassifier(n_features, random_state=seed, **more)


def learner_settings(learner: str, grid: str, recipe: str | None) -> dict[str, Any]:
    """Return everything that decides the numbers of a learner.

    Examples
    --------
    >>> learner_settings("svm", "small", None)
    {'solvers': [2], 'values': [0.001, 0.1, 1.0, 100.0], 'folds': 5, 'normalize': 'erf2'}
    """
    if learner == "svm":
        chosen = GRIDS[grid]
        values = {"solvers": list(chosen.solvers), "values": list(chosen.values)}
        return {**values, "folds": 5, "normalize": SVM_NORMALIZATION}
    network = naive_network(100, recipe, 0)
    decided = asdict(find_schedule(network)(1000, 100, "classification"))
    return {"decided": decided, "normalize": network.normalize}


def erf_pair(train: Any, test: Any, kind: str = "erf") -> tuple[np.ndarray, np.ndarray]:
    """Normalise both parts by the error function, with the statistics of the first; return dense arrays.

    Examples
    --------
    >>> erf_pair(np.array([[1.0], [3.0], [5.0]]), np.array([[3.0]]))[1].tolist()
    [[0.0]]
    """
    if sp.issparse(train):
        train, test = train.toarray(), test.toarray()
    train, test = np.asarray(train, dtype=np.float32), np.asarray(test, dtype=np.float32)
    statistics = column_statistics(train)
    return apply_normalization(train, statistics, kind).dense(), apply_normalization(test, statistics, kind).dense()


def _machine(solver: int, C: float, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    if solver == 0:
        return LogisticRegression(C=C, solver="liblinear", random_state=seed)
    if solver == 3:
        return LinearSVC(C=C, loss="hinge", dual=True, random_state=seed)
    # The primal problem grows with the columns, the dual one with the rows; "auto" takes the smaller. The full grid
    # asks for the dual by its number.
    return LinearSVC(C=C, loss="squared_hinge", dual=True if solver == 1 else "auto", random_state=seed)


def fit_svm(train: np.ndarray, y: np.ndarray, grid: SVMGrid, seed: int) -> Any:
    """Fit a linear SVM with the solver and C of the best 5-fold accuracy on the training part (the first of equals).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> machine = fit_svm(X, (X[:, 0] > 0).astype(int), SMALL_GRID, seed=0)
    >>> machine.C in SMALL_GRID.values
    True
    """
    from sklearn import config_context
    from sklearn.model_selection import StratifiedKFold

    n_folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    choices = [(solver, C) for solver in grid.solvers for C in grid.values]
    with config_context(assume_finite=True, skip_parameter_validation=True):
        if n_folds < 2:
            return _machine(grid.solvers[0], 1.0, seed).fit(train, y)
        hits = np.zeros(len(choices), dtype=np.int64)
        for fit_rows, check_rows in StratifiedKFold(n_folds).split(train, y):
            part, y_part, check, y_check = train[fit_rows], y[fit_rows], train[check_rows], y[check_rows]
            for number, (solver, C) in enumerate(choices):
                hits[number] += np.sum(_machine(solver, C, seed).fit(part, y_part).predict(check) == y_check)
        return _machine(*choices[int(hits.argmax())], seed).fit(train, y)


def score_learner(
    learner: str,
    picked: Any,
    train: Any,
    y_train: np.ndarray,
    test: Any,
    y_test: np.ndarray,
    grid: str,
    seed: int,
    recipe: str | None = None,
) -> float:
    """Return the balanced accuracy on the test rows of one learner on the columns that a method picked.

    Parameters
    ----------
    learner : str
        One of :data:`LEARNERS`.
    picked : Picked
        Selection of a method.
    train, y_train, test, y_test : matrices and arrays
        All columns.
    grid : str
        One of :data:`GRIDS`.
    seed : int
        Seed of the learner.
    recipe : str or None, default=None
        Recipe of the naive network, a name in :data:`~tamiz.reproduce.recipes.RECIPES`; None: the defaults.
    """
    if learner == "naivef":
        return balanced_accuracy(y_test, picked.model.predict(test))
    part, rest = train[:, picked.columns], test[:, picked.columns]
    if learner == "naive":
        model = naive_network(picked.columns.size, recipe, seed).fit(part, y_train)
        return balanced_accuracy(y_test, model.predict(rest))
    part, rest = erf_pair(part, rest, SVM_NORMALIZATION)
    return balanced_accuracy(y_test, fit_svm(part, y_train, GRIDS[grid], seed).predict(rest))


def learners_of(trains_model: bool, wanted: Sequence[str]) -> list[str]:
    """Return the learners of a method: only those that train a model along with the selection have NaiveF.

    Examples
    --------
    >>> learners_of(False, LEARNERS)
    ['naive', 'svm']
    """
    return [learner for learner in wanted if trains_model or learner != "naivef"]
