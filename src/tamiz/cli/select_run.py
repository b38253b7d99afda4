"""Run ``tamiz select``: read, evaluate inside folds, fit on all rows, write the results."""

from __future__ import annotations

import dataclasses
import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._version import __version__
from tamiz.cli.console import Terminal, json_text
from tamiz.cli.constraints import Constraints, read_constraints
from tamiz.cli.output import free_folder, output_folder
from tamiz.cli.prepare import Prepared, load_table
from tamiz.cli.select import Missing, SelectOptions
from tamiz.cli.select_checks import (
    check_loss,
    find_metric,
    report_selection_risks,
    report_table_risks,
    score_test_file,
)
from tamiz.cli.select_fit import (
    asked_number,
    check_asked,
    check_enough_rows,
    evaluate_final,
    fit_final,
    fit_other_sizes,
    report_choice,
    report_convergence,
)
from tamiz.estimators.networks import find_network
from tamiz.evaluation.results import Evaluation
from tamiz.persistence import SavedModel
from tamiz.report.data import SelectReport
from tamiz.report.evidence import KeptSet
from tamiz.report.gather import make_kept_sets
from tamiz.report.records import to_plain
from tamiz.report.text import csv_text
from tamiz.report.write import report, select_report
from tamiz.selection import Selection
from tamiz.tables.columns import identifier_columns
from tamiz.tables.encode import collect_values
from tamiz.tables.formats import get_format, write_columns

#: Cells that the report looks at; of larger tables it takes a sample of the rows.
_CELLS_IN_REPORT = 8_000_000
_SIZE_OF_WEIGHTS = "size of the weights of the standardised feature over the targets"
#: Files that the command writes.
_RESULTS = ("report.html", "selected.csv", "selected.json", "reduced.*", "model.tamiz")


def run_select(
    options: SelectOptions, terminal: Terminal, command: str | None = None, copies: Sequence[Path] = ()
) -> dict[str, Any]:
    """Run the whole command.

    Parameters
    ----------
    options : SelectOptions
        What the user said.
    terminal : Terminal
        Where messages go.
    command : str or None, default=None
        The command as it was typed, for the report.
    copies : sequence of Path, default=()
        Files to put beside the results.

    Returns
    -------
    dict
        What was found, ready for JSON; the same is in ``selected.json``.
    """
    asked = asked_number(options)
    out = free_folder(options.folder(options.file, "tamiz-"), options.force, terminal.say)
    with output_folder(out, options.force, _RESULTS) as folder:
        data = load_table(
            options,
            terminal,
            lambda n_features: check_asked(asked, n_features) if options.budget is None else None,
            processes=not find_network(options.network).compiled,
        )
        data.impute = options.missing != Missing.indicator
        constraints = read_constraints(options, asked, data.features, list(data.table.names))
        automatic = asked == "auto"
        if automatic:
            check_enough_rows(data)
        metric = find_metric(options.scoring, data.target.task)
        check_loss(options.loss, data.target.task)
        report_table_risks(data, terminal)
        k = "auto" if automatic else constraints.expected_size
        encoder, matrix, estimator = fit_final(data, k, options, constraints, terminal)
        if automatic:
            report_choice(estimator, constraints.n_units, terminal)
        evaluation = evaluate_final(data, metric, options, constraints, estimator, terminal, automatic)
        model = dataclasses.replace(
            SavedModel.from_estimator(estimator, encoder, data.targets, options.missing_words()),
            identifiers=[data.table.names[index] for index in identifier_columns(data.table)],
        )
        report_selection_risks(data, evaluation, estimator.selection_.support, matrix, terminal)
        test = score_test_file(options, data, model, evaluation.metric, terminal)
        sets = make_kept_sets(fit_other_sizes(estimator, matrix, data, sorted(evaluation.folds[0].curve)))
        page = _page(options, command, data, evaluation, estimator, encoder.uncentre(matrix), model, sets, terminal)
        record = _record(options, command, data, evaluation, page, constraints, test)
        record |= _record_of_choices(evaluation, estimator, page, constraints)
        files = _write(folder, options, data, page, model, record)
        for path in copies:
            shutil.copy(path, folder / path.name)
        report_convergence(evaluation, estimator, terminal)
    record["files"] = {name: str(out / file) for name, file in files.items()}
    return record


def _record_of_choices(
    evaluation: Evaluation, estimator: Any, page: SelectReport, constraints: Constraints
) -> dict[str, Any]:
    """Collect what was chosen from the data, joint effects of the model, and the curve of scores against M."""
    return to_plain(
        {
            "choices": estimator.selection_.choices,
            "network_chosen": estimator.network_,
            "pairs": _joint_effects(estimator, page.selection),
            "k_of_folds": [int(fold.support.sum()) for fold in evaluation.folds],
            "curve": page.curve,
        }
    )


def _joint_effects(estimator: Any, selection: Selection) -> list[dict[str, Any]] | None:
    """Return the pairs of kept features in the fitted model, strongest first; None for a network without products."""
    if estimator.network_ != "pairs":
        return None
    names = selection.feature_names if selection.groups is None else selection.group_names
    assert names is not None
    return [
        {"features": [str(names[unit]) for unit in effect.indices], "strength": effect.strength}
        for effect in estimator.pairs_
    ]


def _page(
    options: SelectOptions,
    command: str | None,
    data: Prepared,
    evaluation: Evaluation,
    estimator: Any,
    matrix: Any,
    model: SavedModel,
    sets: Sequence[KeptSet],
    terminal: Terminal,
) -> SelectReport:
    """Collect everything the report shows."""
    rows = np.arange(matrix.shape[0])
    most = max(1, _CELLS_IN_REPORT // matrix.shape[1])
    if rows.size > most and not hasattr(matrix, "tocsr"):
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        matrix = matrix[rows]
        terminal.say(f"The pictures in the report show a sample of {most:,} rows.")
    names = [feature.name for feature in data.features]
    kept = [data.features[i] for i in estimator.selection_.indices]
    several = len(data.targets) > 1
    notes = [*terminal.notes, _interval_note(evaluation)]
    if several:
        notes.append(
            "Several targets: the score is over all of them; the pictures of the columns, which show one, are left out."
        )
    weights = model.layers[0].weights[:, : len(kept)] if model.is_linear else None
    page = select_report(
        estimator.selection_.with_names(names),
        matrix,
        None if several else data.y[rows],
        title=data.table.path.name,
        task=data.target.task,
        target=data.target.name,
        targets=data.targets if several else (),
        evaluation=evaluation,
        folds=data.folds,
        y_evaluated=data.y,
        rows=rows,
        weights=None if several else weights,
        effects=_size_over_targets(weights, data.y, estimator.selection_) if several and weights is not None else None,
        effect_name=None if weights is None else _SIZE_OF_WEIGHTS if several else "weight of the standardised feature",
        values=collect_values(data.table, kept, rows),
        columns=[feature.column + 1 for feature in data.features],
        kept_sets=sets,
        notes=notes,
        settings=_settings(options, data, evaluation),
        command=command,
        created=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    return dataclasses.replace(page, n_rows=data.table.n_rows, seed=options.seed)


def _size_over_targets(weights: np.ndarray, y: np.ndarray, selection: Selection) -> list[float]:
    """Return the size of the weights over several targets, each in its standard deviations, in the order of the ranks."""
    size = np.linalg.norm(weights / y.std(axis=0)[:, None], axis=0)
    return size[np.searchsorted(selection.indices, selection.ordered)].tolist()


def _interval_note(evaluation: Evaluation) -> str:
    pooled = "pooled over" if evaluation.metric.combine_parts is not None else "mean over"
    return (
        f"Scores: {evaluation.metric.name}, {pooled} {len(evaluation.folds)} held-out folds; imputing, encoding and "
        "selecting happen inside each fold. 95 % intervals after Nadeau and Bengio, which allow for the overlap of the folds; "
        "where few rows are wrong, the ends of a binomial share of the rows."
    )


def _settings(options: SelectOptions, data: Prepared, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "variant": options.variant,
        "network": options.network,
        "features to keep": asked_number(options) if options.budget is None else None,
        "budget": options.budget,
        "always kept": ", ".join(options.keep or ()) or None,
        "never kept": ", ".join(options.drop or ()) or None,
        "folds": len(evaluation.folds),
        "stability of the selection (Nogueira)": round(evaluation.stability, 3),
        "seed": options.seed,
        "ignored columns": ", ".join(options.ignore or ()) or None,
        "rows": data.table.n_rows,
    }


def _record(
    options: SelectOptions,
    command: str | None,
    data: Prepared,
    evaluation: Evaluation,
    page: SelectReport,
    constraints: Constraints,
    test: dict[str, Any] | None,
) -> dict[str, Any]:
    """Collect the results for scripts."""
    kept = [
        {
            "rank": feature.rank,
            "feature": feature.name,
            "column": data.features[feature.index].column_name,
            "category": data.features[feature.index].category,
            "weight": feature.effect,
            "fold_share": feature.fold_share,
        }
        for feature in page.kept
    ]
    return to_plain(
        {
            "tamiz": __version__,
            "file": str(options.file),
            "target": data.target.name,
            "targets": data.targets,
            "task": data.target.task,
            "n_rows": data.table.n_rows,
            "n_features": constraints.n_units,
            "k": len({constraints.units[feature.index] for feature in page.kept}),
            "variant": options.variant,
            "network": options.network,
            "seed": options.seed,
            "effect_name": page.effect_name,
            "selected": kept,
            "scores": page.scores,
            "stability": evaluation.stability,
            "verdict": evaluation.verdict,
            "null": None if evaluation.null is None else evaluation.null.as_record(),
            "test": test,
            "notes": list(page.notes),
            "seconds": {
                "reading": data.seconds_reading,
                "selection": float(np.median([fold.seconds for fold in evaluation.folds])),
            },
            "command": command,
        }
    )


def _write(
    folder: Path, options: SelectOptions, data: Prepared, page: SelectReport, model: SavedModel, record: dict[str, Any]
) -> dict[str, str]:
    """Write all files of the run; return their names."""
    files = {
        "report": "report.html",
        "selected_csv": "selected.csv",
        "selected_json": "selected.json",
        "reduced": "reduced" + get_format(data.table.format).suffixes[0],
        "model": "model.tamiz",
    }
    columns = ("rank", "feature", "column", "category", "weight", "fold_share")
    rows = [[kept[column] for column in columns] for kept in record["selected"]]
    text = csv_text(columns, rows, spreadsheet_safe=options.spreadsheet_safe)
    (folder / files["selected_csv"]).write_text(text, encoding="utf-8", newline="")
    (folder / files["selected_json"]).write_text(json_text(record), encoding="utf-8")
    others = {data.table.names.index(name) for name in data.targets[1:]}
    used = sorted({*others, *identifier_columns(data.table), *(data.features[kept.index].column for kept in page.kept)})
    write_columns(data.table, used, folder / files["reduced"])
    (folder / files["model"]).write_bytes(model.to_bytes())
    report(page, path=folder / files["report"], spreadsheet_safe=options.spreadsheet_safe)
    return files
