"""What the protocols share: recipes of networks, learners, selections, data sets and splits."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._utils.names import pick, pick_name
from tamiz.baselines.registry import get_method
from tamiz.engines.schedule import DENSE_STARTS, NETWORK_STARTS, PAPER_RAMP_EPOCHS, PAPER_STARTS
from tamiz.estimators import E2EFSClassifier
from tamiz.estimators.networks import find_network
from tamiz.estimators.training import Training
from tamiz.evaluation.comparison import fit_size, make_seeded
from tamiz.evaluation.metrics import balanced_accuracy
from tamiz.paper import load_dataset
from tamiz.paper.dataset_registry import find_entry
from tamiz.paper.parsers import Dataset
from tamiz.paper.protocol import ProtocolOption
from tamiz.paper.store import seed_from
from tamiz.rows.scaling import apply_normalization, column_statistics

N_FOLDS, N_REPEATS, SPLIT_SEED = 3, 20, 42
#: Data sets of which the paper splits the training rows of the challenge only: its table counts 3,153 of GINA.
TRAINING_ROWS_ONLY = ("gina", "gina_rebuilt")


def split_rows(y: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of one split; later repeats do not change earlier ones.

    Examples
    --------
    >>> train, test = split_rows(np.array([0, 0, 0, 1, 1, 1]), 4)
    >>> train.size, test.size
    (4, 2)
    """
    from sklearn.model_selection import RepeatedStratifiedKFold

    splitter = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=split // N_FOLDS + 1, random_state=SPLIT_SEED)
    return list(splitter.split(np.zeros((y.size, 1)), y))[split]


@dataclass(frozen=True, eq=False)
class SplitParts:
    """Hold the two parts of a data set in one split, without the columns that are zero in the training part.

    ``columns`` are the numbers of the columns that are left, out of ``n_features``.
    """

    train: Any
    y_train: np.ndarray
    test: Any
    y_test: np.ndarray
    columns: np.ndarray
    n_features: int


def load_split(name: str, data_home: str | None, checksum: str, split: int) -> SplitParts:
    """Load a data set, check that it is the one of the plan, and split it."""
    dataset, _ = load_checked(name, data_home, checksum)
    rows = np.arange(dataset.target.size)
    if name in TRAINING_ROWS_ONLY and dataset.train is not None:
        rows = dataset.train
    train, test = (rows[part] for part in split_rows(dataset.target[rows], split))
    alive = nonzero_columns(dataset.data[train])
    return SplitParts(
        dataset.data[train][:, alive],
        dataset.target[train],
        dataset.data[test][:, alive],
        dataset.target[test],
        alive,
        int(dataset.data.shape[1]),
    )


def checksum(*arrays: Any) -> str:
    """Return a hash of arrays or sparse matrices: values, types and shapes.

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
    """Load a data set; return it with its checksum.

    Parameters
    ----------
    name : str
        As in :func:`tamiz.paper.load_dataset`.
    data_home : str or None
        As there.
    expected : str or None, default=None
        Checksum that the run was planned with.

    Raises
    ------
    ValueError
        If the checksum is another one: a worker with other files.
    """
    dataset = load_dataset(find_entry(name).name, data_home)
    found = checksum(dataset.data, dataset.target)
    if expected is not None and found != expected:
        raise ValueError(f"{name} in this data home is not the one that the run was planned with; use the same files.")
    return dataset, found


def nonzero_columns(X: Any) -> np.ndarray:
    """Return the columns that are not all zero; the authors keep only these.

    Examples
    --------
    >>> nonzero_columns(np.array([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [1]
    """
    if sp.issparse(X):
        return np.flatnonzero(np.asarray((X != 0).sum(axis=0)).ravel())
    return np.flatnonzero((X != 0).any(axis=0))


def pick_datasets(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of data sets as the registry spells them, none twice.

    Examples
    --------
    >>> pick_datasets(["COLON", "colon"])
    ('colon',)
    """
    return tuple(dict.fromkeys(find_entry(name).name for name in names))


def display_name(dataset: str) -> str:
    """Return the title of a data set with its label: a stand-in is always called one.

    Examples
    --------
    >>> display_name("gina_rebuilt"), display_name("leukemia_3571")
    ('GINA (REBUILT)', 'LEUKEMIA (3571 genes)')
    """
    entry = find_entry(dataset)
    if dataset == "leukemia_3571":
        return "LEUKEMIA (3571 genes)"
    return f"{entry.title} ({entry.label})" if entry.label else entry.title


@dataclass(frozen=True)
class NetworkRecipe:
    """Describe how the networks of a protocol are trained.

    Parameters
    ----------
    name : str
        Name in tables, in brackets.
    sentence : str
        What a table says of it.
    parameters : dict, default={}
        Parameters of :class:`~tamiz.E2EFSClassifier` that make it.
    """

    name: str
    sentence: str
    parameters: dict[str, Any] = field(default_factory=dict)


RECIPES = {
    "paper": NetworkRecipe(
        "paper",
        "[paper]: trained by the paper's recipe (rates, weight decay, epochs, T, 2 standard deviations in the normalisation)",
        {"training": Training.paper()},
    ),
    "tamiz": NetworkRecipe("tamiz", "[tamiz]: trained by the defaults of tamiz, which differ from the paper's"),
}
BOTH = "both"

RECIPE_OPTION = ProtocolOption(
    "recipe",
    ("--recipe",),
    "How networks are trained: paper (as the paper says), tamiz (the defaults of the estimators), or both.",
    default="paper",
)


def pick_recipes(name: str, methods: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the recipes of a run.

    Parameters
    ----------
    name : str
        A name in :data:`RECIPES`, or "both".
    methods : sequence of str
        Methods of the run, as the registry spells them.

    Raises
    ------
    ValueError
        If the name is unknown, or if the paper has no recipe for a method that trains a network.

    Examples
    --------
    >>> pick_recipes("both", ["e2efs-soft", "fisher"])
    ('paper', 'tamiz')
    >>> pick_recipes("paper", ["e2efs-ranking"])
    Traceback (most recent call last):
    ValueError: The paper has no recipe for the method 'e2efs-ranking': leave it out, or use --recipe tamiz.
    """
    chosen = pick_name(name, (*RECIPES, BOTH), "recipe")
    names = tuple(RECIPES) if chosen == BOTH else (chosen,)
    for method in methods if "paper" in names else ():
        info = get_method(method)
        if info.trains_model and info.options.get("variant") not in PAPER_RAMP_EPOCHS:
            raise ValueError(
                f"The paper has no recipe for the method {info.name!r}: leave it out, or use --recipe tamiz."
            )
    return names


def recipe_parameters(name: str | None) -> dict[str, Any]:
    """Return the parameters of :class:`~tamiz.E2EFSClassifier` that make a recipe; none without a recipe.

    Examples
    --------
    >>> recipe_parameters("paper"), recipe_parameters(None)
    ({'training': Training(recipe='paper')}, {})
    """
    return {} if name is None else dict(pick(name, RECIPES, "recipe").parameters)


def with_recipe(text: str, recipe: str | None) -> str:
    """Return a name with its recipe in brackets, if it has one.

    Examples
    --------
    >>> with_recipe("E2E-FS", "paper"), with_recipe("Fisher", None)
    ('E2E-FS [paper]', 'Fisher')
    """
    return text if recipe is None else f"{text} [{recipe}]"


def recipe_sentence(recipes: Sequence[str]) -> str:
    """Return what a table says of the recipes of its rows.

    Examples
    --------
    >>> recipe_sentence(["tamiz"])
    "Networks: [tamiz]: trained by the defaults of tamiz, which differ from the paper's."
    """
    return f"Networks: {'; '.join(RECIPES[name].sentence for name in recipes)}."


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
    >>> naive_network(5, "paper", seed=0).training
    Training(recipe='paper', warmup_steps=0)
    """
    # With all columns kept the paper trains for the epochs of the refinement only.
    more = {"training": Training.paper(warmup_steps=0)} if recipe == "paper" else recipe_parameters(recipe)
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
    training = network.training or Training()
    decided = asdict(find_network(network.network).schedule(training, 1000, 100, "classification"))
    return {"decided": decided, "training": repr(training)}


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
        Recipe of the naive network, a name in :data:`~tamiz.paper.recipes.RECIPES`; None: the defaults.
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


#: Parameters that a cell keeps elsewhere, or that do not decide its result.
_LEFT_OUT = ("n_features_to_select", "random_state", "n_jobs", "verbose")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def method_settings(method: str, network: str = "linear", **parameters: Any) -> dict[str, Any]:
    """Return every parameter of a method with its present default: a changed default is another setting.

    Examples
    --------
    >>> method_settings("relieff")
    {'n_neighbors': 10, 'task': 'auto'}
    """
    estimator = make_seeded(method, 1, 0, network=network, **parameters)
    found = {name: _plain(value) for name, value in estimator.get_params(deep=False).items() if name not in _LEFT_OUT}
    info = get_method(method)
    if info.trains_model:
        kind = find_network(info.options.get("network", network))
        automatic = DENSE_STARTS if kind.compiled else NETWORK_STARTS
        training = estimator.training or Training()
        found["decided"] = asdict(
            kind.schedule(training, 1000, 100, "classification", l2=estimator.l2, variant=estimator.variant)
        )
        found["starts"] = PAPER_STARTS if kind.convex or training.is_paper else automatic
    elif info.nested == "smallest":
        found["fitted"] = info.nested  # a cell without this entry was fitted at the largest M or at each
    return dict(sorted(found.items()))


def unit_range(train: Any) -> Any:
    """Scale each column to [0, 1], as the filters of the paper see the training part; sparse ones by their maximum.

    Examples
    --------
    >>> unit_range(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

    return (MaxAbsScaler() if sp.issparse(train) else MinMaxScaler()).fit_transform(train)


@dataclass(frozen=True)
class Picked:
    """Hold the selection of a method for one M: columns, seconds, and the fitted selector where it predicts."""

    columns: np.ndarray
    seconds: float
    model: Any = None
    converged: bool = True


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
        As :func:`~tamiz.baselines.registry.canonical_name` spells it.
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
    options = {"network": network, **(parameters or {})}
    if not info.trains_model:
        train = unit_range(_as_accepted(method, train))
    if info.nested == "each":
        return [_select_one(method, train, y, m, seed_from(*identity, method, m), options) for m in m_values]
    size = train.shape[1] if info.keeps_all else fit_size(info.nested, m_values[0], m_values)
    whole = _select_one(method, train, y, size, seed_from(*identity, method), options)
    if info.keeps_all:
        return [whole for _ in m_values]
    ranking = whole.model.ranking_
    return [Picked(np.flatnonzero(ranking <= m), whole.seconds, converged=whole.converged) for m in m_values]


def _as_accepted(method: str, train: Any) -> Any:
    """Return a sparse table as an array where the method does not take it."""
    from sklearn.utils import get_tags

    if sp.issparse(train) and not get_tags(make_seeded(method, 1, 0)).input_tags.sparse:
        return train.toarray()
    return train


def _select_one(method: str, train: Any, y: np.ndarray, m: int, seed: int, options: Mapping[str, Any]) -> Picked:
    selector = make_seeded(method, m, seed, task="classification", **options)
    started = time.perf_counter()
    selector.fit(train, y)
    seconds = time.perf_counter() - started
    return Picked(np.flatnonzero(selector.get_support()), seconds, selector, bool(selector.selection_.converged))
