"""Write a fitted estimator, a selection or a ready record as an HTML file."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.files import write_atomic
from tamiz._utils.validation import check_target_length
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.folds import Fold
from tamiz.evaluation.results import Evaluation
from tamiz.evaluation.stability import library_versions
from tamiz.report.data import CompareReport, Confusion, Curve, ImageMask, Residuals, Scalar, Scores, SelectReport
from tamiz.report.describe import (
    check_report_table,
    describe_kept,
    find_task,
    group_rows,
    mean_image,
)
from tamiz.report.effects import effect_of_weights, measure_effects, order_by_contribution, read_weights
from tamiz.report.evaluate import evaluate_estimator
from tamiz.report.evidence import KeptSet
from tamiz.report.gather import evaluated_parts, fold_effects, table_parts
from tamiz.report.heat_sets import make_heat_sets
from tamiz.report.pages import render
from tamiz.report.pairs_data import PairsReport
from tamiz.selection import Selection

#: Classes whose mean image is shown.
N_CLASS_IMAGES = 12


def report(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    path: str | os.PathLike[str] = "report.html",
    cv: Any = None,
    image_shape: tuple[int, ...] | None = None,
    spreadsheet_safe: bool = True,
    **details: Any,
) -> Path:
    """Write a report as one HTML file that needs nothing else.

    Parameters
    ----------
    source : Selection, fitted estimator, SelectReport, CompareReport or PairsReport
        What to show. An estimator is read through its ``selection_``.
    X, y : table and target, default=None
        What the selector was fitted on, as numbers. With them the page shows distributions, effects and stand-ins.
    path : path-like, default="report.html"
        Where to write; a file of that name is replaced.
    cv : int, cross-validation splitter or None, default=None
        Folds in which the estimator selects anew, for scores on held-out rows; None measures none.
    image_shape : tuple of int or None, default=None
        Shape of the inputs where they are images, such as (28, 28): the page shows the mask over the mean image.
    spreadsheet_safe : bool, default=True
        Whether CSV downloads from the page start out with cells such as ``=1+1`` made harmless; the page has a switch.
    **details
        Passed to :func:`select_report`: ``title``, ``scores``, ``curve``, ``confusion`` and so on.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]), feature_names=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = report(selection, path=pathlib.Path(folder) / "report.html")
    ...     written.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file, such as {target / 'report.html'}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write the report to; create it first.")
    if isinstance(source, (SelectReport, CompareReport, PairsReport)):
        if X is not None or y is not None or cv is not None or image_shape is not None or details:
            raise ValueError("A ready record holds all the page shows: leave out X, y and further details.")
        data: SelectReport | CompareReport | PairsReport = source
    else:
        data = select_report(source, X, y, cv=cv, image_shape=image_shape, **details)
    write_atomic(target, render(data, spreadsheet_safe=spreadsheet_safe))
    return target


def find_selection(source: Any) -> Selection:
    """Return the selection of a source: itself, or its ``selection_``."""
    if isinstance(source, Selection):
        return source
    selection = getattr(source, "selection_", None)
    if isinstance(selection, Selection):
        return selection
    hint = " Call fit first." if hasattr(source, "fit") else ""
    raise TypeError(f"report needs a Selection or an estimator with selection_, got {type(source).__name__}.{hint}")


def select_report(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    cv: Any = None,
    image_shape: tuple[int, ...] | None = None,
    title: str | None = None,
    task: str | None = None,
    target: str | None = None,
    targets: Sequence[str] = (),
    scores: Scores | None = None,
    curve: Curve | None = None,
    confusion: Confusion | None = None,
    residuals: Residuals | None = None,
    fold_share: Mapping[int, float] | Sequence[float] | np.ndarray | None = None,
    effects: Sequence[float | None] | None = None,
    effect_name: str | None = None,
    weights: np.ndarray | None = None,
    evaluation: Evaluation | None = None,
    folds: Sequence[Fold] = (),
    y_evaluated: np.ndarray | None = None,
    rows: np.ndarray | None = None,
    values: np.ndarray | None = None,
    columns: Sequence[int] = (),
    kept_sets: Sequence[KeptSet] = (),
    verdict: str | None = None,
    notes: Sequence[str] = (),
    settings: Mapping[str, Scalar] | None = None,
    command: str | None = None,
    created: str | None = None,
) -> SelectReport:
    """Gather what the page of one selection shows.

    Parameters
    ----------
    source : Selection or fitted estimator
        What was kept. A linear model's ``coef_`` gives the effects, unless ``effects`` or ``weights`` are handed in.
    X, y : table and target, default=None
        What the selector was fitted on, as numbers.
    cv, image_shape : default=None
        As for :func:`report`.
    title, target : str, default=None
        Name of the table and of the target.
    targets : sequence of str, default=()
        Names of several targets, whose predictions are drawn one by one.
    task : str, default=None
        "classification" or "regression"; found from the estimator or y if it is not given.
    scores, curve, confusion, residuals : records, default=None
        Measured parts; the page leaves out what is missing. They are read from ``evaluation`` where that is given.
    fold_share : mapping or sequence, default=None
        For each feature of the table, the share of folds that kept it.
    effects, effect_name : default=None
        The signed effect of each kept feature, in the order of the ranking, and what it is.
    weights : ndarray of shape (n_outputs, M), default=None
        Weights of the kept features, in the order of the columns; the list is ordered by their size.
    evaluation, folds : Evaluation and sequence of folds, default=None and ()
        Cross-validation of the selection, for all that comes from held-out rows.
    y_evaluated, rows : ndarray, default=None
        Target of all evaluated rows, and which of these X holds, where X is a sample of the rows.
    values : ndarray of shape (n_rows, M), default=None
        Values of the kept features as they stand in the file; see :func:`~tamiz.report.describe.describe_kept`.
    columns : sequence of int, default=()
        For each feature the number of its column in the file.
    kept_sets : sequence of KeptSet, default=()
        What is kept with every M of the curve.
    verdict : str, default=None
        Sentence on the top; made from the scores if it is not given.
    notes, settings, command, created : default=None
        Shown as they are; settings default to the estimator's parameters.

    Examples
    --------
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]))
    >>> page = select_report(selection, [[0.0, 1.0], [1.0, 3.0], [0.0, 9.0]], ["a", "b", "b"])
    >>> page.task, page.n_rows, page.kept[0].name
    ('classification', 3, 'x1')
    """
    selection = _with_shape(find_selection(source), image_shape)
    estimator = None if isinstance(source, Selection) else source
    table = None if X is None else check_report_table(X, selection)
    if y is not None and X is None:
        raise ValueError("y was given without X; hand in both, or neither.")
    if task not in (None, "classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    if task is None and y is not None:
        task = find_task(y, estimator)
    if effects is not None and len(effects) != selection.n_features_to_select:
        raise ValueError(f"there are {len(effects)} effects for {selection.n_features_to_select} kept features")
    if y is not None:
        check_target_length(table, y)
    if cv is not None:
        if table is None or y is None:
            raise ValueError("cv needs X and y: the folds are made of their rows.")
        evaluation, folds, kept_sets = evaluate_estimator(estimator, table, np.asarray(y), task or find_task(y), cv)
    if weights is None and effects is None and estimator is not None:
        weights = read_weights(estimator, selection)
        if weights is not None:
            effect_name = effect_name or _name_of_weights(estimator)
    order = order_by_contribution(weights if effects is None else None, selection)
    class_effects = None
    if weights is not None and effects is None:
        ordered = weights[:, np.searchsorted(selection.indices, order)]
        effects = [effect_of_weights(column) for column in ordered.T]
        if len(ordered) > 2:
            class_effects = ordered.T
            effect_name = "size of the weights of the standardised feature over the classes"
    if effects is None and table is not None and y is not None:
        effects, effect_name = measure_effects(table, y, selection, task or find_task(y))
    if settings is None and estimator is not None and hasattr(estimator, "get_params"):
        settings = {key: _as_scalar(value) for key, value in sorted(estimator.get_params(deep=False).items())}
    parts: dict[str, Any] = {
        "scores": scores,
        "curve": curve,
        "confusion": confusion,
        "residuals": residuals,
        "verdict": verdict,
    }
    by_fold = None
    if evaluation is not None:
        all_rows = np.asarray(y) if y_evaluated is None else y_evaluated
        found = evaluated_parts(evaluation, folds, all_rows, task or "classification", selection, targets)
        parts = {**found, **{key: value for key, value in parts.items() if value is not None}}
        by_fold = fold_effects(evaluation, order.tolist()) if weights is not None and class_effects is None else None
        fold_share = evaluation.fold_share[evaluation.units] if fold_share is None else fold_share
    if table is not None and y is not None and task is not None and selection.n_features_to_select:
        supports = [] if evaluation is None else list(evaluation.feature_supports)
        parts.update(table_parts(table, y, task, selection, order, parts.get("held_out"), folds, supports, rows))
        if kept_sets and parts.get("heat_map") is not None:
            parts["heat_sets"] = make_heat_sets(table, parts["heat_map"], kept_sets, selection.name_of)
    image = None if table is None else mean_image(table, selection)
    return SelectReport(
        title=title or (type(estimator).__name__ if estimator is not None else "Selection"),
        task=task or "selection",
        n_rows=0 if table is None else table.shape[0],
        n_features=selection.n_features,
        selection=selection,
        kept=describe_kept(
            selection,
            table,
            y,
            task=task,
            order=order,
            effects=effects,
            class_effects=class_effects,
            fold_effects=by_fold,
            fold_share=fold_share,
            values=values,
        ),
        image=image,
        class_images=()
        if image is None or y is None or task != "classification"
        else _class_images(table, y, selection),
        target=target,
        effect_name=effect_name or "effect",
        notes=tuple(notes),
        settings=dict(settings or {}),
        versions=library_versions(),
        seed=selection.seed,
        command=command,
        created=created,
        classes=() if y is None or task != "classification" else tuple(label for label, _ in group_rows(y, task)),
        kept_sets=tuple(kept_sets),
        columns=tuple(columns),
        **parts,
    )


def _with_shape(selection: Selection, shape: tuple[int, ...] | None) -> Selection:
    """Return the selection with the shape of its inputs."""
    if shape is None:
        return selection
    if math.prod(shape) != selection.n_features:
        raise ValueError(f"image_shape {shape} holds {math.prod(shape)} pixels, the selection {selection.n_features}.")
    return dataclasses.replace(selection, shape=tuple(shape))


def _class_images(table: Any, y: Any, selection: Selection) -> tuple[tuple[str, ImageMask], ...]:
    """Return the mean image of each class."""
    found = []
    for label, rows in group_rows(y, "classification")[:N_CLASS_IMAGES]:
        image = mean_image(table[np.flatnonzero(rows)], selection)
        if image is not None:
            found.append((label, image))
    return tuple(found)


def compare_report(
    comparison: Comparison,
    *,
    title: str,
    task: str,
    n_rows: int,
    n_features: int,
    target: str | None = None,
    notes: Sequence[str] = (),
    settings: Mapping[str, Scalar] | None = None,
    seed: int | None = None,
    command: str | None = None,
    created: str | None = None,
) -> CompareReport:
    """Gather what the page of a comparison shows.

    Parameters
    ----------
    comparison : Comparison
        Scores of several methods on the same splits.
    title : str
        Name of the table.
    task : {"classification", "regression"}
        Task.
    n_rows, n_features : int
        Shape of the table.
    target : str or None, default=None
        Name of the target.
    notes, settings, seed, command, created : default=None
        Shown as they are.

    Returns
    -------
    CompareReport

    Examples
    --------
    >>> from tamiz.evaluation.metrics import BALANCED_ACCURACY
    >>> found = Comparison(BALANCED_ACCURACY, ("a", "b"), (2,), np.array([[[0.9, 1.0]], [[0.5, 0.6]]]))
    >>> compare_report(found, title="toy", task="classification", n_rows=10, n_features=5).ranks[0].mean_rank
    1.0
    """
    middle = len(comparison.m_values) // 2
    agreement = comparison.agreement(middle)
    return CompareReport(
        title=title,
        task=task,
        n_rows=n_rows,
        n_features=n_features,
        comparison=comparison,
        agreement=agreement,
        agreement_at=None if agreement is None else comparison.m_values[middle],
        ranks=comparison.ranks,
        tests=comparison.tests,
        target=target,
        notes=tuple(notes),
        settings=dict(settings or {}),
        versions=library_versions(),
        seed=seed,
        command=command,
        created=created,
    )


def _name_of_weights(estimator: Any) -> str:
    """Return what the weights of a model mean, and which way they point."""
    classes: Any = getattr(estimator, "classes_", ())
    if len(classes) == 2:
        return f"weight in the model; above zero it speaks for {classes[1]}"
    return "weight in the model"


def _as_scalar(value: Any) -> Scalar:
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)
