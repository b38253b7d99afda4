"""Write a fitted estimator, a selection or a ready record as an HTML file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._files import write_atomic
from tamiz.evaluation.comparison import Comparison
from tamiz.evaluation.null import Null
from tamiz.evaluation.versions import library_versions
from tamiz.report.data import CompareReport, Confusion, Curve, Residuals, Scalar, Scores, SelectReport
from tamiz.report.describe import (
    check_report_table,
    describe_kept,
    find_task,
    mean_image,
    measure_effects,
    read_coefficients,
)
from tamiz.report.pages import render
from tamiz.report.pairs_data import PairsReport
from tamiz.selection import Selection


def report(
    source: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    spreadsheet_safe: bool = True,
    **details: Any,
) -> Path:
    """Write a report as one HTML file that needs nothing else.

    Parameters
    ----------
    source : Selection, fitted estimator, SelectReport, CompareReport or PairsReport
        What to show. An estimator is read through its ``selection_``.
    path : path-like
        Where to write; a file of that name is replaced.
    X, y : table and target, default=None
        What the selector was fitted on, as numbers. With them the page shows distributions, effects and stand-ins.
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
    ...     written = report(selection, pathlib.Path(folder) / "report.html")
    ...     written.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    if isinstance(source, (SelectReport, CompareReport, PairsReport)):
        if X is not None or y is not None or details:
            raise ValueError("A ready record holds all the page shows: leave out X, y and further details.")
        data: SelectReport | CompareReport | PairsReport = source
    else:
        data = select_report(source, X, y, **details)
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file, such as {target / 'report.html'}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write the report to; create it first.")
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
    title: str | None = None,
    task: str | None = None,
    target: str | None = None,
    scores: Scores | None = None,
    curve: Curve | None = None,
    confusion: Confusion | None = None,
    residuals: Residuals | None = None,
    verdict: str | None = None,
    null: Null | None = None,
    fold_share: Mapping[int, float] | Sequence[float] | np.ndarray | None = None,
    effects: Sequence[float | None] | None = None,
    effect_name: str | None = None,
    notes: Sequence[str] = (),
    settings: Mapping[str, Scalar] | None = None,
    command: str | None = None,
    created: str | None = None,
) -> SelectReport:
    """Gather what the page of one selection shows.

    Parameters
    ----------
    source : Selection or fitted estimator
        What was kept. A linear model's ``coef_`` gives the effects, unless ``effects`` are handed in.
    X, y : table and target, default=None
        What the selector was fitted on, as numbers.
    title, target : str, default=None
        Name of the table and of the target.
    task : str, default=None
        "classification" or "regression"; found from the estimator or y if it is not given.
    scores, curve, confusion, residuals : records, default=None
        Measured parts; the page leaves out what is missing.
    verdict, null : str and Null, default=None
        One sentence on the evaluation, and what shuffled targets give.
    fold_share : mapping or sequence, default=None
        For each feature of the table, the share of folds that kept it.
    effects, effect_name : default=None
        The signed effect of each kept feature, best first, and what it is.
    notes, settings, command, created : default=None
        Shown as they are; settings default to the estimator's parameters.

    Examples
    --------
    >>> selection = Selection(support=np.array([False, True]), ranking=np.array([2, 1]))
    >>> page = select_report(selection, [[0.0, 1.0], [1.0, 3.0], [0.0, 9.0]], ["a", "b", "b"])
    >>> page.task, page.n_rows, page.kept[0].name
    ('classification', 3, 'x1')
    """
    selection = find_selection(source)
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
    if effects is None and estimator is not None:
        effects = read_coefficients(estimator, selection)
        effect_name = effect_name or _name_of_weights(estimator)
    if effects is None and table is not None and y is not None:
        effects, effect_name = measure_effects(table, y, selection, task or find_task(y))
    if settings is None and estimator is not None and hasattr(estimator, "get_params"):
        settings = {key: _as_scalar(value) for key, value in sorted(estimator.get_params(deep=False).items())}
    return SelectReport(
        title=title or (type(estimator).__name__ if estimator is not None else "Selection"),
        task=task or "selection",
        n_rows=0 if table is None else table.shape[0],
        n_features=selection.n_features,
        selection=selection,
        kept=describe_kept(selection, table, y, task=task, effects=effects, fold_share=fold_share),
        scores=scores,
        curve=curve,
        confusion=confusion,
        residuals=residuals,
        verdict=verdict,
        null=null,
        image=None if table is None else mean_image(table, selection),
        target=target,
        effect_name=effect_name or "effect",
        notes=tuple(notes),
        settings=dict(settings or {}),
        versions=library_versions(),
        seed=selection.seed,
        command=command,
        created=created,
    )


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
    return "largest weight in the model over the classes" if len(classes) > 2 else "weight in the model"


def _as_scalar(value: Any) -> Scalar:
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)
