"""Work inside one fold: prepare its matrices, select, and score the kept, all, random and further sets of features."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz.evaluation.folds import Fold, Prepare, take_columns
from tamiz.evaluation.metrics import Metric, Parts

if TYPE_CHECKING:
    from tamiz.evaluation.cross_validation import FoldResult


#: Number of features to keep or "auto", seed -> an estimator with ``fit``, ``predict``, ``selection_``.
MakeModel = Callable[[Any, int], Any]


@dataclass(frozen=True)
class FoldTask:
    """Hold what all folds of an evaluation share; the parameters are those of ``evaluate_selection``."""

    prepare: Prepare
    y: np.ndarray
    folds: Sequence[Fold]
    make_model: MakeModel
    n_features_to_select: int
    metric: Metric
    task: str
    sizes: Sequence[int] = ()
    n_random: int = 5
    seed: int = 0
    sample_weight: np.ndarray | None = None
    units: np.ndarray | None = None
    make_plain: MakeModel | None = None
    automatic: bool = False


class FoldWork:
    """Prepare the matrices of one fold and fit models on them.

    Parameters
    ----------
    task : FoldTask
        What all folds share.
    number : int
        Number of the fold.
    rows, targets : ndarray of int or None, default=None
        Orders in which row ``i`` of the fold takes its features from row ``rows[i]`` of the table and its target from row
        ``targets[i]``, for a null by permutation; None: as they are.
    """

    def __init__(
        self, task: FoldTask, number: int, rows: np.ndarray | None = None, targets: np.ndarray | None = None
    ) -> None:
        self.task = task
        self.seed = task.seed + number
        train, test = task.folds[number]
        self.train, self.test = task.prepare(*((train, test) if rows is None else (rows[train], rows[test])))
        if targets is not None:
            train, test = targets[train], targets[test]
        self.y_train, self.y_test = task.y[train], task.y[test]
        weights = task.sample_weight
        self.weights_train: np.ndarray | None = None if weights is None else weights[train]
        self.weights_test: np.ndarray | None = None if weights is None else weights[test]
        self.outputs: dict[str, np.ndarray] = {}

    def keep_output(self, name: str, model: Any, test: Any) -> None:
        """Keep what a model says of the held-out rows, under the name of its columns."""
        output = model_output(model, test, self.task.task)
        if output is not None:
            self.outputs[name] = output

    def _fit(self, model: Any, X: Any) -> Any:
        if self.weights_train is None:
            return model.fit(X, self.y_train)
        return model.fit(X, self.y_train, sample_weight=self.weights_train)

    def _measure(self, response: np.ndarray) -> Parts:
        return self.task.metric.measure(self.y_test, response, self.y_train, self.weights_test)

    def score_columns(self, columns: np.ndarray | None, name: str | None = None) -> Parts:
        """Return the parts of the score of a model of the given columns (None: all); ``name`` keeps its output."""
        train, test = self.train, self.test
        if columns is not None:
            train, test = take_columns(train, columns), take_columns(test, columns)
        model = self._fit((self.task.make_plain or self.task.make_model)(train.shape[1], self.seed), train)
        if name is not None:
            self.keep_output(name, model, test)
        return self._measure(self.task.metric.read(model, test))

    def columns_of(self, units: np.ndarray) -> np.ndarray:
        """Return the columns of some units of selection, in their order."""
        return np.sort(units) if self.task.units is None else np.flatnonzero(np.isin(self.task.units, units))

    def score_sizes(self, sizes: Sequence[int], model: Any) -> dict[int, Parts]:
        """Return the parts of the scores of fits with other M; what ``model`` decided from the data is kept."""
        weights = {} if self.weights_train is None else {"sample_weight": self.weights_train}
        fit_copies = getattr(model, "fit_copies", None)
        if fit_copies is None:
            fits = ((size, self._fit(self.task.make_model(size, self.seed), self.train)) for size in sizes)
        else:
            fits = fit_copies(sizes, self.train, self.y_train, **weights)
        return {size: self._measure(self.task.metric.read(other, self.test)) for size, other in fits}

    def select(self) -> tuple[Parts, Any, float]:
        """Select on the training rows; return the parts of the score, the model and the seconds it took."""
        started = time.perf_counter()
        asked = "auto" if self.task.automatic else self.task.n_features_to_select
        model = self._fit(self.task.make_model(asked, self.seed), self.train)
        seconds = time.perf_counter() - started
        return self._measure(self.task.metric.read(model, self.test)), model, seconds

    def kept(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Select; return the score of the selection and those of the other numbers of features."""
        kept, model, seconds = self.select()
        self.keep_output("kept", model, self.test)
        tick()
        selection = model.selection_
        m = int(selection.group_support.sum())
        scores = self.score_sizes([size for size in self.task.sizes if size != m], model)
        curve = {size: kept if size == m else scores[size] for size in self.task.sizes}
        tick()
        return {
            "kept": kept,
            "support": selection.support,
            "predicted": model.predict(self.test),
            "seconds": seconds,
            "converged": selection.converged,
            "curve": curve,
            "outputs": self.outputs,
            "probabilities": model_probabilities(model, self.test) if self.task.task == "classification" else None,
            "effects": model_effects(model),
        }

    def all_features(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Return the score of all features."""
        found = self.score_columns(None, "all_features")
        tick()
        return {"all_features": found, "outputs": self.outputs}

    def random_features(self, tick: Callable[[], None]) -> dict[str, Any]:
        """Return the mean score of random sets of features."""
        generator = np.random.default_rng([self.seed, len(self.y_test)])
        n_units = self.train.shape[1] if self.task.units is None else int(self.task.units.max()) + 1
        draws = [
            self.columns_of(generator.choice(n_units, self.task.n_features_to_select, replace=False))
            for _ in range(self.task.n_random)
        ]
        # Of several draws the output of the first is kept: one curve, not a mean of curves.
        found = np.mean([self.score_columns(d, None if i else "random_features") for i, d in enumerate(draws)], axis=0)
        tick()
        return {"random_features": tuple(found.tolist()), "outputs": self.outputs}


#: Columns that a model of a fold was trained on.
COLUMN_SETS = ("kept", "all_features", "random_features")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Hold one prediction per row, each by a model that had not seen the row (of the first repeat of the folds).

    Parameters
    ----------
    rows : ndarray of int
        Rows of the table that were held out, rising.
    fold : ndarray of int
        Fold that held each row out.
    truth, predicted : ndarray
        Target, and prediction from the kept columns.
    outputs : mapping of str to ndarray
        By the names of ``COLUMN_SETS``: values of the decision function (numbers: predictions), one column per output
        where there are more than two classes.
    probabilities : ndarray of shape (n_rows, n_classes) or None, default=None
        Probabilities from the kept columns, where the model gives them.
    """

    rows: np.ndarray
    fold: np.ndarray
    truth: np.ndarray
    predicted: np.ndarray
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    probabilities: np.ndarray | None = None


def model_output(model: Any, X: Any, task: str) -> np.ndarray | None:
    """Return the values of a model's decision function (numbers: its predictions); None if it has none.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> model_output(Ridge().fit([[0.0], [1.0]], [1.0, 1.0]), [[5.0]], "regression").tolist()
    [1.0]
    """
    if task == "regression":
        return np.asarray(model.predict(X), dtype=np.float64)
    decide = getattr(model, "decision_function", None)
    return None if decide is None else np.asarray(decide(X), dtype=np.float64)


def model_probabilities(model: Any, X: Any) -> np.ndarray | None:
    """Return probabilities of the classes; None if the model gives none."""
    predict = getattr(model, "predict_proba", None)
    return None if predict is None else np.asarray(predict(X), dtype=np.float64)


def model_effects(model: Any) -> np.ndarray | None:
    """Return the weights of a linear model, shape (n_outputs, M), in the order of its kept columns; None for others.

    The models scale their columns, so the weights are standardised effects.
    """
    weights = getattr(model, "coef_", None)
    if weights is None:
        return None
    weights = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    m = model.selection_.n_features_to_select
    if weights.ndim == 2 and weights.shape[1] == model.selection_.n_features != m:
        weights = weights[:, model.selection_.indices]
    return weights if weights.ndim == 2 and weights.shape[1] == m else None


def gather_held_out(results: Sequence[FoldResult], folds: Sequence[Fold], y: np.ndarray) -> HeldOut:
    """Return the predictions of all folds by row; of repeated folds the first.

    Parameters
    ----------
    results : sequence of FoldResult
        Results of the folds.
    folds : sequence of (train rows, test rows)
        The same folds.
    y : ndarray
        Target of all rows.

    Returns
    -------
    HeldOut
    """
    owner = np.full(len(y), -1, dtype=np.int64)
    place = np.zeros(len(y), dtype=np.int64)
    for number in reversed(range(len(folds))):  # the first repeat overwrites later ones
        test = folds[number][1]
        owner[test] = number
        place[test] = np.arange(len(test))
    rows = np.flatnonzero(owner >= 0)

    def collect(values: list[Any]) -> np.ndarray | None:
        used = [np.asarray(values[number]) for number in np.unique(owner[rows]) if values[number] is not None]
        if len(used) < np.unique(owner[rows]).size or len({entry.shape[1:] for entry in used}) != 1:
            return None
        return np.array([values[owner[row]][place[row]] for row in rows])

    outputs = {name: collect([result.outputs.get(name) for result in results]) for name in COLUMN_SETS}
    predicted = collect([result.predicted for result in results])
    assert predicted is not None
    return HeldOut(
        rows=rows,
        fold=owner[rows],
        truth=np.asarray(y)[rows],
        predicted=predicted,
        outputs={name: values for name, values in outputs.items() if values is not None},
        probabilities=collect([result.probabilities for result in results]),
    )
