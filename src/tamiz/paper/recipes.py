"""Parts of the protocols: data sets and splits, recipes of networks, selections, and the learners that score them."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tamiz.baselines.registry import get_method, make_selector
from tamiz.engines.schedule import PAPER_RAMP_EPOCHS
from tamiz.estimators.e2efs import E2EFSClassifier
from tamiz.estimators.training import Training
from tamiz.evaluation.comparison import fit_size
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper.datasets import Dataset, load_dataset
from tamiz.paper.protocol import seed_from
from tamiz.rows.scaling import ErfScaler

N_FOLDS, N_REPEATS, SPLIT_SEED = 3, 20, 42
#: Data sets of which the paper splits the training rows of the challenge only: its table counts 3,153 of GINA.
TRAINING_ROWS_ONLY = ("gina", "gina_rebuilt")

#: Parameters of E2EFSClassifier that make a recipe, and what a table says of it.
RECIPES: dict[str, tuple[dict[str, Any], str]] = {
    "paper": (
        {"training": Training.paper()},
        "trained by the paper's recipe (rates, weight decay, epochs, T, plain statistics and 2 standard deviations in the "
        "normalisation)",
    ),
    "tamiz": ({}, "trained by the defaults of tamiz, which differ from the paper's"),
}
#: Solvers of liblinear by their numbers there, and values of C, from which the SVM chooses. "full" is the grid of the code
#: which the paper's authors released (the paper names only C): 0 logistic, 1 and 2 squared hinge (dual,
#: primal), 3 hinge. Solvers 1 and 2 solve the same problem. The small grid is a tenth of the work: the squared hinge, by
#: whichever of its two solvers is quicker, and C by orders of size.
GRIDS: dict[str, dict[str, Any]] = {
    "small": {"solvers": (2,), "values": (0.001, 0.1, 1.0, 100.0)},
    "full": {"solvers": (0, 1, 2, 3), "values": (0.001, 0.1, 0.5, 1.0, 1.4, 1.5, 1.6, 2.0, 2.5, 5.0, 100.0)},
}
#: Folds by which C is chosen, and normalisation of the SVM's rows: the one that the paper prints, whatever the networks have.
SVM_FOLDS, SVM_NORMALIZATION = 5, "erf2"


def recipes_of(plan: Any) -> tuple[str, ...]:
    """List the recipes of a plan; raise ValueError for a method that the paper has no recipe for.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> recipes_of(SimpleNamespace(recipe="both", methods=["e2efs-soft", "fisher"]))
    ('paper', 'tamiz')
    >>> recipes_of(SimpleNamespace(recipe="paper", methods=["e2efs-ranking"]))
    Traceback (most recent call last):
    ValueError: The paper has no recipe for the method 'e2efs-ranking': leave it out, or use --recipe tamiz.
    """
    names = tuple(RECIPES) if plan.recipe == "both" else (plan.recipe,)
    for method in plan.methods if "paper" in names else ():
        info = get_method(method)
        if info.trains_model and info.options.get("variant") not in PAPER_RAMP_EPOCHS:
            raise ValueError(
                f"The paper has no recipe for the method {info.name!r}: leave it out, or use --recipe tamiz."
            )
    return names


def recipe_parameters(name: str | None) -> dict[str, Any]:
    """Parameters of :class:`~tamiz.E2EFSClassifier` that make a recipe; none without a recipe."""
    return {} if name is None else dict(RECIPES[name][0])


def recipe_sentence(recipes: Sequence[str]) -> str:
    """Say how the networks of a table were trained.

    Examples
    --------
    >>> recipe_sentence(["tamiz"])
    "Networks: [tamiz]: trained by the defaults of tamiz, which differ from the paper's."
    """
    return f"Networks: {'; '.join(f'[{name}]: {RECIPES[name][1]}' for name in recipes)}."


# ---- data sets and splits --------------------------------------------------------------------------------------------


def checksum(*arrays: Any) -> str:
    """Hash arrays or sparse matrices: values, types and shapes.

    Examples
    --------
    >>> checksum(np.zeros(2)) == checksum(np.zeros(2)) != checksum(np.zeros(2, dtype=np.float32))
    True
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{type(array).__name__}{array.shape}{array.dtype}".encode())
        pieces = (array.data, array.indices, array.indptr) if sp.issparse(array) else (array,)
        for piece in pieces:
            digest.update(np.ascontiguousarray(piece).view(np.uint8).data)
    return digest.hexdigest()[:32]


@lru_cache(maxsize=4)
def load_checked(name: str, data_home: str | None, expected: str | None = None) -> tuple[Dataset, str]:
    """Load a data set with its checksum; raise ValueError if a worker has other files than the plan (``expected``)."""
    dataset = load_dataset(name, data_home)
    found = checksum(dataset.data, dataset.target)
    if expected is not None and found != expected:
        raise ValueError(f"{name} in this data home is not the one that the run was planned with; use the same files.")
    return dataset, found


def split_rows(y: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows for training and testing; later repeats do not change earlier ones.

    Examples
    --------
    >>> train, test = split_rows(np.array([0, 0, 0, 1, 1, 1]), 4)
    >>> train.size, test.size
    (4, 2)
    """
    from sklearn.model_selection import RepeatedStratifiedKFold

    splitter = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=split // N_FOLDS + 1, random_state=SPLIT_SEED)
    return list(splitter.split(np.zeros((y.size, 1)), y))[split]


def nonzero_columns(X: Any) -> np.ndarray:
    """Find the columns that are not all zero; the authors keep only these.

    Examples
    --------
    >>> nonzero_columns(np.array([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [1]
    """
    return np.flatnonzero(np.asarray((X != 0).sum(axis=0)).ravel())


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows of a data set for training and testing.

    ``shape`` is that of a row, before any column was left out; ``columns`` are the numbers of those that are left, None for all.
    """

    train: Any
    y_train: np.ndarray
    test: Any
    y_test: np.ndarray
    shape: tuple[int, ...]
    columns: Any = None

    @property
    def n_features(self) -> int:
        """Number of columns, before any was left out."""
        return math.prod(self.shape)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.y_train.max()) + 1


def load_split(name: str, data_home: str | None, checksum: str, split: int) -> Parts:
    """Load a data set, check that it is the one of the plan, and split it, without columns that are zero in training."""
    dataset, _ = load_checked(name, data_home, checksum)
    rows = np.arange(dataset.target.size)
    if name in TRAINING_ROWS_ONLY and dataset.train is not None:
        rows = dataset.train
    train, test = (rows[part] for part in split_rows(dataset.target[rows], split))
    alive = nonzero_columns(dataset.data[train])
    parts = (dataset.data[train][:, alive], dataset.target[train], dataset.data[test][:, alive], dataset.target[test])
    return Parts(*parts, (int(dataset.data.shape[1]),), alive)


# ---- selections ------------------------------------------------------------------------------------------------------


def parameters_of(estimator: Any) -> dict[str, str]:
    """Write every parameter that decides a result as text: a changed default is another setting.

    Examples
    --------
    >>> parameters_of(make_selector("relieff", 1))
    {'n_neighbors': '10', 'task': "'auto'"}
    """
    elsewhere = ("n_features_to_select", "random_state", "n_jobs", "verbose")
    found = estimator.get_params(deep=False)
    return {name: repr(value) for name, value in sorted(found.items()) if name not in elsewhere}


def unit_range(train: Any) -> Any:
    """Scale each column to [0, 1], as the filters of the paper see the training part; sparse ones by their maximum.

    Examples
    --------
    >>> unit_range(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

    return (MaxAbsScaler() if sp.issparse(train) else MinMaxScaler()).fit_transform(train)


class Picked(NamedTuple):
    """Selection of a method for one M: columns, seconds, whether it converged, and the fitted selector."""

    columns: np.ndarray
    seconds: float
    converged: bool
    model: Any


def select_for_all(
    method: str,
    train: Any,
    y: np.ndarray,
    m_values: Sequence[int],
    identity: Sequence[Any],
    network: str = "linear",
    parameters: Mapping[str, Any] | None = None,
) -> list[Picked]:
    """Select for every M: by one ranking, or by one fit for each M, as the description of the method says.

    Parameters
    ----------
    method : str
        As the registry spells it.
    train, y : matrix, array
        Training rows; a baseline sees them scaled to [0, 1].
    m_values : sequence of int
        Numbers of features.
    identity : sequence
        What the seeds depend on: data set, split and so on.
    network : {"linear", "mlp"}, default="linear"
        Network that is trained.
    parameters : mapping or None, default=None
        Further parameters of the class of the method.
    """
    info = get_method(method)
    if not info.trains_model:
        train = unit_range(train.toarray() if sp.issparse(train) and not info.accepts_sparse else train)

    def select(m: int, *more: Any) -> Picked:
        seed = seed_from(*identity, method, *more)
        options = {**(parameters or {}), "network": network}
        selector = make_selector(method, m, task="classification", random_state=seed, **options)
        started = time.perf_counter()
        selector.fit(train, y)
        seconds = time.perf_counter() - started
        return Picked(selector.get_support(indices=True), seconds, bool(selector.selection_.converged), selector)

    if info.nested == "each":
        return [select(m, m) for m in m_values]
    whole = select(train.shape[1] if info.keeps_all else fit_size(info.nested, m_values[0], m_values))
    if info.keeps_all:
        return [whole] * len(m_values)
    return [whole._replace(columns=np.flatnonzero(whole.model.ranking_ <= m)) for m in m_values]


# ---- learners --------------------------------------------------------------------------------------------------------


def network_for(n_features: int, recipe: str | None, seed: int, network: str = "linear") -> E2EFSClassifier:
    """Make a network for columns that were selected before, by a recipe, not trained yet."""
    # With all columns kept the paper trains for the epochs of the refinement only.
    training = Training.paper(warmup_steps=0) if recipe == "paper" else None
    return E2EFSClassifier(n_features, network=network, training=training, random_state=seed)


def erf_pair(train: Any, test: Any, kind: str = "erf") -> tuple[np.ndarray, np.ndarray]:
    """Normalise both parts by the error function, with the statistics of the first.

    Examples
    --------
    >>> erf_pair(np.array([[1.0], [3.0], [5.0]]), np.array([[3.0]]))[1].tolist()
    [[0.0]]
    """
    dense = [np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float32) for part in (train, test)]
    scaler = ErfScaler(kind=kind).fit(dense[0])
    return scaler.transform(dense[0]), scaler.transform(dense[1])


def make_svm(solver: int, C: float, seed: int) -> Any:
    """Make a linear machine by the number that its solver has in liblinear."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    if solver == 0:
        return LogisticRegression(C=C, solver="liblinear", random_state=seed)
    if solver == 3:
        return LinearSVC(C=C, loss="hinge", dual=True, random_state=seed)
    # The primal problem grows with the columns, the dual one with the rows; "auto" takes the smaller. The full grid
    # names the dual by its number.
    return LinearSVC(C=C, loss="squared_hinge", dual=True if solver == 1 else "auto", random_state=seed)


def fit_svm(train: np.ndarray, y: np.ndarray, grid: Mapping[str, Any], seed: int) -> Any:
    """Fit a linear SVM with the solver and C of the best 5-fold accuracy on the training part (the first of equals).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> fit_svm(X, (X[:, 0] > 0).astype(int), GRIDS["small"], seed=0).C in GRIDS["small"]["values"]
    True
    """
    from sklearn import config_context
    from sklearn.model_selection import StratifiedKFold

    n_folds = min(SVM_FOLDS, int(np.unique(y, return_counts=True)[1].min()))
    choices = [(solver, C) for solver in grid["solvers"] for C in grid["values"]]
    with config_context(assume_finite=True, skip_parameter_validation=True):
        if n_folds < 2:
            return make_svm(grid["solvers"][0], 1.0, seed).fit(train, y)
        hits = np.zeros(len(choices), dtype=np.int64)
        for fit_rows, check_rows in StratifiedKFold(n_folds).split(train, y):
            part, y_part, check, y_check = train[fit_rows], y[fit_rows], train[check_rows], y[check_rows]
            for number, (solver, C) in enumerate(choices):
                hits[number] += np.sum(make_svm(solver, C, seed).fit(part, y_part).predict(check) == y_check)
        return make_svm(*choices[int(hits.argmax())], seed).fit(train, y)


def score_fitted(model: Any, test: Any, y_test: np.ndarray) -> tuple[float, bool]:
    """Score a fitted network by its balanced accuracy, and tell whether it gives one output for all rows."""
    outputs = np.asarray(model.decision_function(test))
    dead = bool(np.ptp(outputs, axis=0).max() <= 1e-6 * max(1.0, float(np.abs(outputs).max())))
    return balanced_accuracy(y_test, model.predict(test)), dead


def score_svm(parts: Parts, columns: np.ndarray, grid: str, seed: int) -> float:
    """Score the SVM of the protocol on some columns by its balanced accuracy."""
    train, test = erf_pair(parts.train[:, columns], parts.test[:, columns], SVM_NORMALIZATION)
    return balanced_accuracy(parts.y_test, fit_svm(train, parts.y_train, GRIDS[grid], seed).predict(test))
