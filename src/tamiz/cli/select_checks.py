"""Warnings, metric, null and test file of a run: what ``select`` and ``compare`` ask of the evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamiz._utils.names import pick_name
from tamiz.cli.console import Terminal
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.fold_options import SelectionFoldOptions
from tamiz.cli.prepare import Prepared
from tamiz.cli.several_targets import read_with_targets
from tamiz.core.losses import names_of
from tamiz.errors import TableArgumentError, TableError, UnknownNameError
from tamiz.evaluation.alerts import find_row_alerts, find_selection_alerts
from tamiz.evaluation.cross_validation import check_test_target, choose_permutations, score_held_out
from tamiz.evaluation.metrics import Metric, get_metric
from tamiz.evaluation.results import Evaluation
from tamiz.persistence import SavedModel
from tamiz.tables.read import read_table


def find_metric(scoring: str | None, task: str) -> Metric:
    """Return the metric that the user named, or that of the task.

    Examples
    --------
    >>> find_metric("auc", "classification").name
    'AUC'
    """
    try:
        return get_metric(scoring, task)
    except (UnknownNameError, ValueError) as error:
        raise CommandError(str(error).replace("scoring=", "--scoring "), EXIT_USAGE) from None


def check_loss(loss: str | None, task: str) -> str:
    """Return the name of the loss; raise if the task has none of that name.

    Examples
    --------
    >>> check_loss(None, "regression"), check_loss("Huber", "regression")
    ('auto', 'huber')
    """
    try:
        return "auto" if loss is None else pick_name(loss, ["auto", *names_of(task)], "loss")
    except UnknownNameError as error:
        raise CommandError(f"--loss: {error}", EXIT_USAGE) from None


def report_table_risks(data: Prepared, terminal: Terminal) -> None:
    """Warn of duplicate rows, and of columns that look like a running number or an identifier."""
    for alert in find_row_alerts(data.as_rows()):
        terminal.warn(alert.message.replace("with groups", "with --groups").replace("leave it out", "--ignore it"))


def report_selection_risks(
    data: Prepared, evaluation: Evaluation, support: np.ndarray, X: Any, terminal: Terminal
) -> None:
    """Warn of kept columns that few folds kept or that are constant, and of folds without a score."""
    kept = np.isin(np.arange(evaluation.n_features), evaluation.units[support])
    for alert in find_selection_alerts(evaluation, kept, X, evaluation.units):
        terminal.warn(alert.message)


def count_permutations(asked: int | None, quick: bool, data: Prepared, terminal: Terminal) -> int:
    """Return the number of permutations; networks that take seconds for each fit have none by default."""
    if asked is not None:
        return asked
    if quick:
        return choose_permutations(data.as_rows())
    terminal.say("Not compared with shuffled targets, which would take many trainings; --permutations 20 does it.")
    return 0


def score_test_file(
    options: SelectionFoldOptions, data: Prepared, model: SavedModel, metric: Metric, terminal: Terminal
) -> dict[str, Any] | None:
    """Score the final model on the rows of another file; None if none was named."""
    if options.test is None:
        return None
    shared = options.reading()
    try:
        found, _ = read_with_targets(
            options.test, options.target, task=data.target.task,
            categorical=options.categorical or (), max_categories=options.max_categories, **shared,
        )  # fmt: skip
    except TableArgumentError as error:
        raise CommandError(f"{options.test.name}: {error}", EXIT_USAGE) from None
    assert found.target is not None
    try:
        check_test_target(found.target.y, data.y, data.target.task)
    except ValueError as error:
        raise TableError(f"{options.test.name}: {error}") from None
    columns = read_table(options.test, columns=model.columns, categorical=model.text_columns, **shared)
    matrix = model.encode(columns.take(found.target.rows), terminal.warn)
    if metric.response == "predict":
        response = model.predict(matrix)
    else:
        scores = model.scores(matrix)
        response = scores[:, 0] if scores.shape[1] == 1 else scores
    score = score_held_out(metric, found.target.y, response, data.y, seed=options.seed)
    return {
        "file": str(options.test),
        "n_rows": len(found.target.y),
        "value": score.value,
        "low": score.low,
        "high": score.high,
    }
