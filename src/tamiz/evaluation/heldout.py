"""Outputs of the models of the folds on rows that they had not seen: what curves, errors and whiskers are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tamiz.evaluation.folds import Fold

if TYPE_CHECKING:
    from tamiz.evaluation.cross_validation import FoldResult

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
