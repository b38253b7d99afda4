"""Work inside one fold: prepare its matrices, select, and score the kept, all, random and further sets of features."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamiz.evaluation.folds import Fold, Prepare, take_columns
from tamiz.evaluation.heldout import model_effects, model_output, model_probabilities
from tamiz.evaluation.metrics import Metric, Parts

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
