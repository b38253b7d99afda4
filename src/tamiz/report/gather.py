"""Turn an evaluation and a table into the records that the page shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tamiz.evaluation.folds import Fold
from tamiz.evaluation.results import Evaluation, HeldOut, linear_weights
from tamiz.report.data import Confusion, Curve, Residuals, Scores
from tamiz.report.describe import group_rows
from tamiz.report.effects import effect_of_weights, order_by_contribution
from tamiz.report.evidence import KeptSet, Stability
from tamiz.report.together import (
    find_partners,
    make_correlations,
    make_fold_grid,
    make_heat_map,
    make_projections,
)
from tamiz.selection import Selection

_RESIDUALS_SHOWN = 2000


def evaluated_parts(
    evaluation: Evaluation,
    folds: Sequence[Fold],
    y: np.ndarray,
    task: str,
    selection: Selection,
    targets: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the parts of the page that come from held-out rows, by the names of the fields of ``SelectReport``.

    Parameters
    ----------
    evaluation : Evaluation
        Scores of the folds.
    folds : sequence of (train rows, test rows)
        The same folds.
    y : ndarray
        Target of all rows; a column for each of several targets.
    task : {"classification", "regression"}
        Task.
    selection : Selection
        Selection of all rows.
    targets : sequence of str, default=()
        Names of several targets; without, they are counted.
    """
    held = evaluation.held_out if y.ndim == 1 else None
    chance = evaluation.metric.chance(y) if evaluation.metric.chance is not None else None
    found: dict[str, Any] = {
        "scores": Scores.of(evaluation, chance),
        "curve": Curve.of(evaluation, int(selection.group_support.sum())),
        "stability": stability_of(evaluation),
        "held_out": held,
        "verdict": getattr(evaluation, "verdict", None),
    }
    if held is None:
        found["residuals_by_target"] = make_residuals_by_target(evaluation.held_out, targets)
        return found
    if task == "classification":
        found["confusion"] = make_confusion(held)
    else:
        found["residuals"] = make_residuals(held)
    return found


def stability_of(evaluation: Evaluation) -> Stability:
    """Return the stability of an evaluation, with that of shuffled targets where they were tried."""
    null = getattr(evaluation, "null", None)
    return Stability(
        evaluation.stability, None if null is None else null.highest_stability, n_folds=len(evaluation.folds)
    )


def make_confusion(held: HeldOut) -> Confusion:
    """Return how often each class was predicted as each.

    Examples
    --------
    >>> make_confusion(HeldOut(np.arange(3), np.zeros(3), np.array(list("aab")), np.array(list("abb")))).counts
    ((1, 1), (0, 1))
    """
    labels = np.unique(np.concatenate([held.truth, held.predicted]))
    places = np.searchsorted(labels, held.truth), np.searchsorted(labels, held.predicted)
    counts = np.zeros((labels.size, labels.size), dtype=int)
    np.add.at(counts, places, 1)
    return Confusion(tuple(map(str, labels)), tuple(tuple(row) for row in counts.tolist()))


def make_residuals(held: HeldOut) -> Residuals:
    """Return actual and predicted values, of many rows a sample."""
    rows = np.arange(held.truth.size)
    if rows.size > _RESIDUALS_SHOWN:
        rows = np.sort(np.random.default_rng(0).choice(rows, _RESIDUALS_SHOWN, replace=False))
    return Residuals(tuple(held.truth[rows].astype(float).tolist()), tuple(held.predicted[rows].astype(float).tolist()))


def make_residuals_by_target(held: HeldOut, targets: Sequence[str] = ()) -> tuple[tuple[str, Residuals], ...]:
    """Return the name of each of several targets with its actual and predicted values.

    Examples
    --------
    >>> values = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> found = make_residuals_by_target(HeldOut(np.arange(2), np.zeros(2), values, values), ["height", "mass"])
    >>> [(name, residuals.actual) for name, residuals in found]
    [('height', (1.0, 3.0)), ('mass', (2.0, 4.0))]
    """
    names = list(targets) or [f"target {number}" for number in range(1, held.truth.shape[1] + 1)]
    return tuple(
        (name, make_residuals(replace(held, truth=held.truth[:, i], predicted=held.predicted[:, i])))
        for i, name in enumerate(names)
    )


def fold_effects(evaluation: Evaluation, order: Sequence[int]) -> list[list[float]] | None:
    """Return for each kept column its effects in the models of the folds that kept it; None without linear models."""
    found: list[list[float]] = [[] for _ in order]
    for fold in evaluation.folds:
        if fold.weights is None:
            return None
        place = {int(column): i for i, column in enumerate(fold.features)}
        for position, column in enumerate(order):
            if int(column) in place:
                found[position].append(effect_of_weights(fold.weights[:, place[int(column)]]))
    return found


def table_parts(
    X: Any,
    y: Any,
    task: str,
    selection: Selection,
    order: np.ndarray,
    held: HeldOut | None,
    folds: Sequence[Fold],
    supports: Sequence[np.ndarray],
    rows: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the parts of the page that need the table: heat map, correlations, pairs, folds, projections.

    Parameters
    ----------
    X, y : table and target
        Rows to show.
    task : {"classification", "regression"}
        Task.
    selection : Selection
        Selection of all rows.
    order : ndarray of int
        Kept columns, by contribution.
    held : HeldOut or None
        Held-out predictions, of which the heat map marks the wrong ones.
    folds, supports : sequences
        Folds, and the columns that each kept.
    rows : ndarray of int or None, default=None
        Which rows of the evaluated table X holds; None: all.
    """
    groups = group_rows(y, task)
    names = [selection.name_of(int(i)) for i in order]
    rows = np.arange(X.shape[0]) if rows is None else rows
    wrong = None
    if held is not None and task == "classification":
        every = np.zeros(int(max(rows.max(), held.rows.max())) + 1, dtype=bool)
        every[held.rows] = held.predicted != held.truth
        wrong = every[rows]
    heat = make_heat_map(X, order.tolist(), names, groups, wrong)
    found: dict[str, Any] = {"heat_map": heat}
    if heat is not None and len(set(names)) == len(names):
        found["correlations"] = make_correlations(X, order.tolist(), names, heat.names)
    all_names = [selection.name_of(i) for i in range(selection.n_features)]
    found["pairs"] = find_partners(X, y, task, selection, order.tolist(), all_names)
    if supports:
        found["fold_grid"] = make_fold_grid(selection, order.tolist(), supports)
        place = np.full(int(max(rows.max(), *(max(map(np.max, fold)) for fold in folds))) + 1, -1)
        place[rows] = np.arange(rows.size)
        train, test = (place[part][place[part] >= 0] for part in folds[0])
        if task == "classification":
            found["projections"] = make_projections(X, groups, (train, test), supports[0])
    return found


def make_kept_sets(fits: Iterable[tuple[int, Any]]) -> tuple[KeptSet, ...]:
    """Return what is kept with every M of a curve, with the effects of its model.

    Parameters
    ----------
    fits : iterable of (int, estimator)
        Values of M and the estimators fitted for them on all rows, in any order.
    """
    found = []
    for size, model in fits:
        kept = model.selection_
        weights = linear_weights(model, kept.indices)
        order = order_by_contribution(weights, kept)
        effects: tuple[float | None, ...] = (None,) * len(order)
        if weights is not None:
            effects = tuple(effect_of_weights(weights[:, i]) for i in np.searchsorted(kept.indices, order))
        found.append(KeptSet(size, tuple(order.tolist()), effects))
    return tuple(sorted(found, key=lambda one: one.n_features))
