"""What an evaluation judges: a selector, a model that selects, or a pipeline with either, as fits on parts of the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import has_fit_parameter

from tamiz.core.gates import column_number, read_gates
from tamiz.estimators.networks import find_network
from tamiz.evaluation.folds import take_columns
from tamiz.rows.rows import Part, Rows
from tamiz.rows.targets import decide_task
from tamiz.tables import TableEncoder

#: Parameters of a selector that restrict what it may keep.
CONSTRAINTS = ("groups", "keep", "drop", "costs", "budget")
#: Parameters that a fit may choose from the data; attributes of what selects.
_CHOSEN, _OF_SELECTORS = ("network", "l2"), ("get_support", "support_at", "selection_")


def default_judge(task: str, sparse: bool = False) -> Any:
    """Make the model that scores sets of columns: logistic or ridge regression on standardised columns.

    Examples
    --------
    >>> default_judge("regression").steps[-1][0]
    'ridge'
    """
    from sklearn.linear_model import LogisticRegression, Ridge

    scaler = StandardScaler(with_mean=not sparse)  # subtracting the mean would make a sparse table dense
    if task == "regression":
        return make_pipeline(scaler, Ridge())
    return make_pipeline(scaler, LogisticRegression(class_weight="balanced", max_iter=2000, tol=1e-3))


def rank_for_targets(make: Callable[[], Any], X: Any, y: np.ndarray) -> np.ndarray:
    """Rank the features for several targets with a selector that takes one at a time.

    The selector is fitted to each target. Features are ordered by their best rank over the targets, ties by the mean rank.

    Parameters
    ----------
    make : callable
        Returns a selector with ``fit`` and ``ranking_``, not fitted.
    X : array or sparse matrix
        Table.
    y : ndarray of shape (n_samples, n_targets)
        Targets.

    Examples
    --------
    >>> from tamiz.baselines import ReliefF
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> rank_for_targets(lambda: ReliefF(n_features_to_select=1), X, X[:, [3, 1]])[[3, 1]].tolist() in ([1, 2], [2, 1])
    True
    """
    rankings = np.array([make().fit(X, target).ranking_ for target in y.T])
    ranking = np.empty(rankings.shape[1], dtype=np.int64)
    ranking[np.lexsort((rankings.mean(axis=0), rankings.min(axis=0)))] = np.arange(1, ranking.size + 1)
    return ranking


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit on the rows of a part.

    Parameters
    ----------
    model : estimator
        Predicts from the encoded matrix.
    selector : estimator or None
        The fitted selector; None for a model of given columns.
    features : ndarray of int
        Columns of the encoded matrix that were kept.
    support : ndarray of bool
        Columns of the table (or groups of the user) that were kept.
    seconds : float
        Time of the fit.
    """

    model: Any
    selector: Any
    features: np.ndarray
    support: np.ndarray
    seconds: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether the selector ended before its step limit."""
        return bool(getattr(getattr(_inner(self.selector), "selection_", None), "converged", True))


class Subject:
    """Fit a selector, a model that selects, or a pipeline with either, on parts of the rows.

    A pipeline is cut into steps before the selector, the selector and steps behind it. A selector without a model behind it
    and without ``predict`` is judged by :func:`default_judge` on the columns that it keeps.

    Parameters
    ----------
    estimator : estimator
        Cloned for each fit; one that is fitted tells nothing but its parameters.
    rows : Rows
        The rows that it will be fitted on.
    task : {"classification", "regression"} or None, default=None
        What the target is; None finds it from the estimator and the target.
    check : callable or None, default=None
        Called before each fit; what it raises ends the evaluation.

    Attributes
    ----------
    units : ndarray of int
        The unit of selection of each column of the encoded matrix: the column of the table, or the group of the user.
    unit_names : list of str
        Their names.
    allowed : ndarray of int
        Units that the selector may keep, all but those of its ``drop``.
    predicts : bool
        Whether the estimator predicts by itself.
    """

    def __init__(
        self, estimator: Any, rows: Rows, task: str | None = None, check: Callable[[], None] | None = None
    ) -> None:
        self.before, selector, self.after = _cut(estimator)
        self.task = task or task_of(estimator, rows.y)
        self.rows, self._check = rows, check or (lambda: None)
        self.units, self.unit_names = rows.columns, list(rows.names)
        parameters = selector.get_params(deep=False) if hasattr(selector, "get_params") else {}
        self._options = set(parameters)
        if "groups" in parameters:
            selector = self._read_constraints(selector, parameters)
        self.selector = selector
        dropped = getattr(selector, "drop", None) or [] if "groups" in parameters else []
        self.allowed = np.setdiff1d(np.arange(len(self.unit_names)), self.units[np.asarray(dropped, dtype=np.intp)])
        self.predicts = not self.after and hasattr(selector, "predict")
        if self.after and not hasattr(self.after[-1][1], "predict"):
            self.after = [*self.after, *default_judge(self.task).steps]
        network = getattr(getattr(selector, "estimator", selector) or selector, "network", None)
        self.in_threads = network is None or find_network(network).compiled

    @property
    def model_name(self) -> str:
        """Name of the model whose predictions are scored."""
        steps = self.after or default_judge(self.task).steps
        return type(self.selector if self.predicts else steps[-1][1]).__name__

    def _read_constraints(self, selector: Any, parameters: dict[str, Any]) -> Any:
        """Make a selector whose constraints number the columns of the encoded matrix, all of a column in one group."""
        rows, changed = self.rows, dict[str, Any]()
        known = {name: number for number, name in enumerate(rows.names)}
        if parameters["groups"] is not None:
            gates, labels = read_gates(rows.n_columns, 1, groups=parameters["groups"], names=rows.names)
            self.units = gates.group[rows.columns]
            self.unit_names = [str(label) for label in labels] if labels is not None else self.unit_names
            changed["groups"] = [self.unit_names[unit] for unit in self.units]
        elif not rows.is_plain:
            changed["groups"] = [rows.names[column] for column in rows.columns]
        for option in ("keep", "drop"):
            value = parameters.get(option)
            if value is None or (rows.is_plain and not any(isinstance(one, str) for one in value)):
                continue
            numbers = [column_number(one, rows.n_columns, known, option) for one in value]
            changed[option] = np.flatnonzero(np.isin(rows.columns, numbers)).tolist()
        costs = parameters.get("costs")
        if costs is not None and (not rows.is_plain or hasattr(costs, "keys")):
            given = np.ones(rows.n_columns)
            for one, cost in costs.items() if hasattr(costs, "keys") else enumerate(costs):
                given[column_number(one, rows.n_columns, known, "costs")] = cost
            changed["costs"] = (given / np.bincount(rows.columns))[rows.columns].tolist()
        return clone(selector).set_params(**changed) if changed else selector

    def fit(self, part: Part, seed: int, selector: Any = None) -> Fitted:
        """Select on the rows of a part and fit the model; ``selector`` takes the place of the subject's own."""
        self._check()
        started = time.perf_counter()
        chosen = clone(self.selector if selector is None else selector)
        if "random_state" in self._options:
            chosen.set_params(random_state=seed)
        steps, X, origin = self._transform(part, part.X)
        features = origin[self._fit_selector(chosen, X, part, origin)]
        kept = np.zeros(len(self.unit_names), dtype=bool)
        kept[self.units[features]] = True
        model = _behind(steps, chosen)
        if not self.predicts:
            model = self._fit_model(steps, X, part, np.searchsorted(origin, features), seed)
        return Fitted(model, chosen, features, kept, time.perf_counter() - started)

    def fit_columns(self, part: Part, units: np.ndarray | None, seed: int, fitted: Fitted) -> tuple[Any, np.ndarray]:
        """Fit the model on the columns of units (None: all allowed ones) without selecting; return it and these columns.

        What ``fitted`` chose from the data (network, weight decay) is kept.
        """
        self._check()
        columns = np.flatnonzero(np.isin(self.units, self.allowed if units is None else units))
        X = part.X if columns.size == self.units.size else take_columns(part.X, columns)
        steps, X, origin = self._transform(part, X, select=False) if columns.size else ([], X, columns)
        if not self.predicts or not columns.size:
            return self._fit_model(steps, X, part, np.arange(origin.size), seed), columns
        plain = self._plain(fitted.selector, X.shape[1], seed)
        fit_model(plain, X, part)
        return _behind(steps, plain), columns

    def fit_sizes(self, part: Part, sizes: Sequence[int], seed: int, fitted: Fitted) -> Iterator[tuple[int, Any]]:
        """Yield (M, model) of fits with other M; what ``fitted`` chose from the data is kept."""
        inner = _inner(fitted.selector)
        if self.predicts and hasattr(inner, "fit_copies"):
            steps, X, _ = self._transform(part, part.X)
            weights = {} if part.sample_weight is None else {"sample_weight": part.sample_weight}
            for m, other in inner.fit_copies(sizes, X, part.y, **weights):
                yield m, _behind(steps, other)
            return
        names = self._options & {"n_features_to_select", "k"}
        if sizes and not names:
            raise ValueError(f"{type(self.selector).__name__} has no number of features to set: leave sizes empty.")
        for m in sizes:
            yield m, self.fit(part, seed, clone(self.selector).set_params(**{max(names): m})).model

    def without_choices(self, fitted: Fitted) -> Any:
        """Copy the selector with what a fit chose from the data as fixed parameters, for fits that repeat it."""
        inner = _inner(fitted.selector)
        if not hasattr(inner, "copy_for"):
            return self.selector
        m = int(fitted.support.sum())
        copy = inner.copy_for(m).get_params(deep=False)
        chosen = {name: copy[name] for name in _CHOSEN if name in copy}
        if inner.get_params(deep=False).get("budget") is None:
            chosen["n_features_to_select"] = m
        return clone(inner).set_params(**chosen)

    def _transform(self, part: Part, X: Any, select: bool = True) -> tuple[list[tuple[str, Any]], Any, np.ndarray]:
        """Fit the steps before the selector; return them, what they make of X, and the column of X each column comes from."""
        steps, origin = [], np.arange(X.shape[1])
        for name, step in self.before:
            if not select and hasattr(step, "get_support"):
                continue
            step = clone(step)
            X = step.fit_transform(X, part.y)
            steps.append((name, step))
            if hasattr(step, "get_support"):
                origin = origin[step.get_support()]
            elif X.shape[1] != origin.size:
                unclear = f"The step {name!r} makes {X.shape[1]} columns of {origin.size}, so that what is kept cannot be told"
                raise ValueError(f"{unclear}: put the selector before it, or use TableEncoder.")
        return steps, X, origin

    def _fit_selector(self, selector: Any, X: Any, part: Part, origin: np.ndarray) -> np.ndarray:
        """Fit a selector; return the columns that it keeps."""
        joint = hasattr(selector, "predict") or not hasattr(selector, "nested")
        if part.y is not None and np.ndim(part.y) > 1 and not joint:
            ranking = rank_for_targets(lambda: clone(selector), X, part.y)
            return np.flatnonzero(ranking <= selector.n_features_to_select)
        roles = {"groups": self.rows.groups, "time": self.rows.time}
        more = {k: v[part.rows] for k, v in roles.items() if v is not None and has_fit_parameter(selector, k)}
        if origin.size < self.units.size and getattr(selector, "groups", None) is not None:
            selector.set_params(groups=[selector.groups[column] for column in origin])
        fit_model(selector, X, part, **more)
        selection = getattr(_inner(selector), "selection_", None)
        support = selection.support if selection is not None else selector.get_support()
        if len(support) != origin.size:
            raise ValueError(f"{type(selector).__name__} tells of {len(support)} columns, there are {origin.size}.")
        return np.flatnonzero(support)

    def _fit_model(self, steps: list[tuple[str, Any]], X: Any, part: Part, features: np.ndarray, seed: int) -> Any:
        """Fit the model behind the selector on the kept columns; without any, one that knows the target alone."""
        if not features.size:
            from sklearn.dummy import DummyClassifier, DummyRegressor

            dummy: Any = DummyRegressor() if self.task == "regression" else DummyClassifier(strategy="prior")
            return dummy.fit(np.zeros((len(part.y), 1)), part.y, sample_weight=part.sample_weight)
        behind = self.after or default_judge(self.task, sp.issparse(X)).steps
        model = Pipeline([(name, clone(step)) for name, step in behind])
        for _, step in model.steps:
            # Nothing is left to select behind the selector.
            given = {"random_state": seed, "n_features_to_select": features.size}
            step.set_params(**{key: value for key, value in given.items() if key in step.get_params(deep=False)})
        fit_model(model, take_columns(X, features), part)
        taken = FunctionTransformer(take_columns, kw_args={"columns": features})
        return Pipeline([*steps, ("columns", taken), *model.steps])

    def _plain(self, selector: Any, n_columns: int, seed: int) -> Any:
        """Make the model of a selector that predicts, unfitted, for given columns among which nothing is selected."""
        inner = _inner(selector)
        if hasattr(inner, "copy_for"):
            plain = inner.copy_for(n_columns)
            names = plain.get_params(deep=False)
            plain.set_params(**{name: None for name in CONSTRAINTS if name in names})
        elif hasattr(inner, "estimator"):
            plain = clone(inner.estimator)
        elif "n_features_to_select" in self._options:
            plain = clone(inner).set_params(n_features_to_select=n_columns)
        else:
            raise ValueError(f"{type(inner).__name__} predicts, but its model cannot be fitted on given columns.")
        if "random_state" in plain.get_params(deep=False):
            plain.set_params(random_state=seed)
        return plain


def task_of(estimator: Any, y: Any) -> str:
    """Find whether an estimator classifies; of one that says nothing, from the target.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> task_of(SelectKBest(), np.array([1.5, 2.5, 3.7]))
    'regression'
    """
    if y is None:
        raise ValueError("There is no target: hand in y.")
    if estimator is not None:
        _check_estimator(estimator)
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    for one in (last, getattr(last, "estimator", None)):
        task = getattr(one, "task", "auto")
        if task in ("classification", "regression"):
            return task
        if hasattr(one, "fit") and is_regressor(one):
            return "regression"
        if hasattr(one, "fit") and (is_classifier(one) or getattr(one, "tasks", ()) == ("classification",)):
            return "classification"
    return decide_task(np.asarray(y))


def _behind(steps: list[tuple[str, Any]], model: Any) -> Any:
    return Pipeline([*steps, ("model", model)]) if steps else model


def _inner(selector: Any) -> Any:
    """Find the estimator that a path chose, or the selector itself."""
    return getattr(selector, "best_estimator_", selector)


def _check_estimator(estimator: Any) -> None:
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise ValueError(f"A selector or a pipeline with one is needed, got {estimator!r:.60}.")


def _cut(estimator: Any) -> tuple[list[tuple[str, Any]], Any, list[tuple[str, Any]]]:
    """Cut a pipeline into the steps before its last selector, the selector, and the steps behind it."""
    _check_estimator(estimator)
    piped = isinstance(estimator, Pipeline)
    steps = [one for one in estimator.steps if one[1] not in (None, "passthrough")] if piped else [("", estimator)]
    places = [place for place, (_, step) in enumerate(steps) if any(hasattr(step, name) for name in _OF_SELECTORS)]
    if not places and piped:
        need = "put a selector such as E2EFSClassifier or SelectKBest into it"
        raise ValueError(f"The pipeline has no step that selects features: {need}.")
    if not places:
        need = "give a selector (with get_support) or a pipeline with one"
        raise ValueError(f"{type(estimator).__name__} selects no features: {need}.")
    first = int(isinstance(steps[0][1], TableEncoder))  # the rows are encoded by it
    return steps[first : places[-1]], steps[places[-1]][1], steps[places[-1] + 1 :]


def fit_model(model: Any, X: Any, part: Part, **more: Any) -> None:
    """Fit a model, with the weights of the rows where it takes them."""
    name, last = model.steps[-1] if isinstance(model, Pipeline) else ("", model)
    if part.sample_weight is not None and has_fit_parameter(last, "sample_weight"):
        more[f"{name}__sample_weight" if name else "sample_weight"] = part.sample_weight
    model.fit(X, part.y, **more)
