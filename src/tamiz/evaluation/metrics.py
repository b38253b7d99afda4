"""Metrics of predictions: records that carry their limits, and the functions behind them.

A metric measures one fold by *parts*, a tuple of numbers, and combines the parts of all folds into one value per fold whose
mean is the score. For most metrics the part is the score of the fold. R² has two, the squared error and that of the mean of
the training rows: a fold of four rows has no R² worth averaging, the folds together have one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tamiz._utils.text import pick_name

#: What a metric measures on one fold.
Parts = tuple[float, ...]


@dataclass(frozen=True)
class Metric:
    """A metric: its name, its function and the values it can have.

    Parameters
    ----------
    name : str
        Name that tables and pages show.
    function : callable or None, default=None
        ``function(y_true, response, sample_weight)`` returns a float; None: the score is that of the parts.
    low, high : float, default=-inf and inf
        Smallest and largest value the metric can have; intervals are cut there.
    chance : callable or None, default=None
        ``chance(y_true)`` returns the expected value of a prediction that knows nothing of the features.
    greater_is_better : bool, default=True
        Whether a larger value is better.
    tasks : tuple of str, default=("classification", "regression")
        Tasks it is made for.
    response : {"predict", "scores"}, default="predict"
        What it reads of a model: predictions, or the scores of the classes.
    measure_parts : callable or None, default=None
        ``measure_parts(y_true, response, y_train, sample_weight)`` returns the parts of a fold; None: the score alone.
    combine_parts : callable or None, default=None
        Function of all parts, shape (n_folds, n_parts), that returns one value per fold; None: the first part.
    shares : {"classes", "rows"} or None, default=None
        What the metric is a mean share of: of the rows of each class (recalls), or of all rows. Parts then hold the hits and
        the number of rows of each, for intervals of binomial shares; None where there is no such interval.

    Examples
    --------
    >>> BALANCED_ACCURACY([0, 0, 0, 1], [0, 0, 1, 1]), BALANCED_ACCURACY.limits
    (0.8333333333333333, (0.0, 1.0))
    >>> BALANCED_ACCURACY.chance(["a", "b", "b", "c", "c"])
    0.3333333333333333
    """

    name: str
    function: Callable[..., float] | None = None
    low: float = -math.inf
    high: float = math.inf
    chance: Callable[[Any], float] | None = None
    greater_is_better: bool = True
    tasks: tuple[str, ...] = ("classification", "regression")
    response: str = "predict"
    measure_parts: Callable[..., Parts] | None = None
    combine_parts: Callable[[np.ndarray], np.ndarray] | None = None
    shares: str | None = None

    def __call__(self, y_true: Any, response: Any, sample_weight: Any = None) -> float:
        """Score a prediction."""
        if self.function is None:
            return float(self.combine([self.measure(y_true, response, y_true, sample_weight)])[0])
        weight = () if sample_weight is None else (sample_weight,)
        return self.function(y_true, response, *weight)

    @property
    def limits(self) -> tuple[float, float]:
        """Smallest and largest value the metric can have."""
        return self.low, self.high

    @property
    def sign(self) -> float:
        """1 if a larger value is better, else -1."""
        return 1.0 if self.greater_is_better else -1.0

    @property
    def counts_hits(self) -> bool:
        """Whether its shares are those of rows that are predicted right; otherwise the score stands for them."""
        return self.response == "predict" and self.function is not _f1

    def read(self, model: Any, X: Any) -> np.ndarray:
        """Predict what the metric reads of a fitted model."""
        if self.response == "predict":
            return model.predict(X)
        if hasattr(model, "decision_function"):
            return model.decision_function(X)
        scores = model.predict_proba(X)
        return scores[:, 1] if scores.shape[1] == 2 else scores

    def measure(
        self, y_true: Any, response: Any, y_train: Any, sample_weight: Any = None, classes: np.ndarray | None = None
    ) -> Parts:
        """Measure one fold: its parts, with hits and rows of each of ``classes`` behind the score where they are given."""
        if self.measure_parts is not None:
            return self.measure_parts(y_true, response, y_train, sample_weight)
        score = float(self(y_true, response, sample_weight))
        if self.shares is None or classes is None:
            return (score,)
        truth = np.asarray(y_true)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        hit = np.asarray(response) == truth if self.counts_hits else None
        parts = [score]
        for label in classes if self.shares == "classes" else [None]:
            own = np.ones(len(truth), dtype=bool) if label is None else truth == label
            # Weighted rows count as many as would vary as much (Kish).
            rows = float(weight[own].sum() ** 2 / np.square(weight[own]).sum()) if weight[own].any() else 0.0
            share = score if hit is None else float(np.average(hit[own], weights=weight[own])) if rows else 0.0
            parts += [share * rows, rows]
        return tuple(parts)

    def combine(self, parts: Sequence[Parts] | np.ndarray) -> np.ndarray:
        """Combine the parts of folds: one value per fold, whose mean is the score; NaN for folds that have none.

        Examples
        --------
        >>> float(R_SQUARED.combine([(1.0, 4.0), (3.0, 4.0)]).mean())
        0.5
        """
        table = np.atleast_2d(np.asarray(parts, dtype=np.float64))
        return table[:, 0] if self.combine_parts is None else self.combine_parts(table)


def balanced_accuracy(y_true: Any, y_predicted: Any, sample_weight: Any = None) -> float:
    """Compute the mean recall over the classes that occur in ``y_true``.

    Computed here because scikit-learn's function warns when a class is predicted that the test fold lacks, which is an
    ordinary event in small folds, and warnings cannot be silenced safely while folds run in threads.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 1, 1])
    0.8333333333333333
    """
    y_true, y_predicted = np.asarray(y_true), np.asarray(y_predicted)
    if y_true.size == 0:
        raise ValueError("There are no rows to score.")
    weight = np.ones(y_true.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    _, codes = np.unique(y_true, return_inverse=True)
    hits = np.bincount(codes, weights=weight * (y_true == y_predicted))
    total = np.bincount(codes, weights=weight)
    known = total > 0
    return float(np.mean(hits[known] / total[known])) if known.any() else math.nan


def squared_errors(y_true: Any, y_predicted: Any, y_train: Any, sample_weight: Any = None) -> Parts:
    """Compute the squared error of a prediction and that of the mean of the training rows.

    Several targets are each divided by their variance over the training rows.

    Examples
    --------
    >>> squared_errors([1.0, 3.0], [1.0, 2.0], [0.0, 2.0, 4.0])
    (1.0, 2.0)
    """
    truth = np.asarray(y_true, dtype=np.float64)
    truth = truth.reshape(truth.shape[0], -1)
    guess, train = (np.asarray(v, dtype=np.float64).reshape(len(v), -1) for v in (y_predicted, y_train))
    scale = train.var(axis=0) if truth.shape[1] > 1 else np.ones(1)
    scale = np.where(scale > 0, scale, 1.0)
    weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    error = weight @ (truth - guess) ** 2
    around = weight @ (truth - train.mean(axis=0)) ** 2
    return float(np.mean(error / scale)), float(np.mean(around / scale))


def combine_squared_errors(parts: np.ndarray) -> np.ndarray:
    """Compute one value per fold whose mean is the pooled R², 1 - sum of errors / sum of errors of the training means.

    The deviation of a fold is that of the linearised ratio, so that the spread over the folds is the spread of the pooled
    R² and not that of R² of single folds, whose mean is far too low in small folds.

    Examples
    --------
    >>> combine_squared_errors(np.array([[1.0, 2.0], [1.0, 2.0]])).tolist()
    [0.5, 0.5]
    """
    error, around = parts[:, 0], parts[:, 1]
    known = np.isfinite(error) & np.isfinite(around)
    values = np.full(len(parts), math.nan)
    base = float(around[known].mean()) if known.any() else 0.0
    if base > 0:
        share = float(error[known].mean()) / base
        values[known] = 1 - share + (share * around[known] - error[known]) / base
    return values


def area_under_curve(y_true: Any, scores: Any, sample_weight: Any = None) -> float:
    """Compute the area under the ROC curve; of several classes the mean of each against the rest.

    NaN where only one class occurs in ``y_true``.

    Examples
    --------
    >>> area_under_curve(["a", "a", "b", "b"], [0.1, 0.6, 0.4, 0.8])
    0.75
    """
    y_true, scores = np.asarray(y_true), np.asarray(scores, dtype=np.float64)
    labels = np.unique(y_true)
    if labels.size < 2:
        return math.nan
    from sklearn.metrics import roc_auc_score

    if scores.ndim == 1:
        scores, labels = scores[:, None], labels[-1:]
    if scores.shape[1] != labels.size:
        return math.nan  # a class is missing among the rows, and its column of scores cannot be told
    areas = [roc_auc_score(y_true == label, one, sample_weight=sample_weight) for label, one in zip(labels, scores.T)]
    return float(np.mean(areas))


def _of_sklearn(name: str, y_true: Any, response: Any, sample_weight: Any = None, **options: Any) -> float:
    from sklearn import metrics  # when it is used: wrong arguments are told before scikit-learn is loaded

    return float(getattr(metrics, name)(y_true, response, sample_weight=sample_weight, **options))


def _chance(level: float | None, y_true: Any) -> float:
    return 1.0 / np.unique(y_true).size if level is None else level


# Functions of the module, no lambdas: metrics are pickled.
_CLASSES: dict[str, Any] = {"low": 0.0, "high": 1.0, "tasks": ("classification",), "shares": "classes"}
_ERRORS: dict[str, Any] = {"low": 0.0, "greater_is_better": False, "tasks": ("regression",)}
_f1 = partial(_of_sklearn, "f1_score", average="macro", zero_division=0.0)
BALANCED_ACCURACY = Metric("balanced accuracy", balanced_accuracy, chance=partial(_chance, None), **_CLASSES)
R_SQUARED = Metric(
    "R²", high=1.0, chance=partial(_chance, 0.0), tasks=("regression",),
    measure_parts=squared_errors, combine_parts=combine_squared_errors,
)  # fmt: skip
#: Metric of each task, where the user names none.
METRICS = {"classification": BALANCED_ACCURACY, "regression": R_SQUARED}
#: Metrics by the name that users type (that of scikit-learn, where it has one).
SCORINGS: dict[str, Metric] = {
    "balanced_accuracy": BALANCED_ACCURACY,
    "accuracy": Metric("accuracy", partial(_of_sklearn, "accuracy_score"), **{**_CLASSES, "shares": "rows"}),
    "roc_auc": Metric("AUC", area_under_curve, chance=partial(_chance, 0.5), response="scores", **_CLASSES),
    "f1": Metric("F1 (mean over classes)", _f1, **_CLASSES),
    "r2": R_SQUARED,
    "mae": Metric("mean absolute error", partial(_of_sklearn, "mean_absolute_error"), **_ERRORS),
    "mse": Metric("mean squared error", partial(_of_sklearn, "mean_squared_error"), **_ERRORS),
}
_OTHER_NAMES = {"auc": "roc_auc", "f1_macro": "f1", "neg_mean_absolute_error": "mae", "neg_mean_squared_error": "mse"}


def get_metric(scoring: str | Metric | None, task: str) -> Metric:
    """Find a metric by name; None gives that of the task.

    Parameters
    ----------
    scoring : str, Metric or None
        A name of :data:`SCORINGS`, or a metric of your own.
    task : {"classification", "regression"}
        Task.

    Raises
    ------
    UnknownNameError
        If there is no metric of that name.
    ValueError
        If it is not made for the task.

    Examples
    --------
    >>> get_metric(None, "regression").name, get_metric("auc", "classification").name
    ('R²', 'AUC')
    >>> get_metric("mae", "classification")
    Traceback (most recent call last):
    ValueError: scoring='mae' is not for classification; use balanced_accuracy, accuracy, roc_auc or f1.
    """
    if scoring is None:
        return METRICS[task]
    if isinstance(scoring, Metric):
        return scoring
    if not isinstance(scoring, str):
        raise ValueError(f"scoring must be one of {', '.join(SCORINGS)}, a Metric or None; got {scoring!r}.")
    name = pick_name(_OTHER_NAMES.get(scoring.strip().lower(), scoring), SCORINGS, "scoring")
    if task not in SCORINGS[name].tasks:
        fitting = [key for key, metric in SCORINGS.items() if task in metric.tasks]
        raise ValueError(f"scoring={name!r} is not for {task}; use {', '.join(fitting[:-1])} or {fitting[-1]}.")
    return SCORINGS[name]
