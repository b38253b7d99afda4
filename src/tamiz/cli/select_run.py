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
from tamiz.report.columns import Columns
from tamiz.report.page import report
from tamiz.report.records import to_plain
from tamiz.report.select_view import Shown
from tamiz.report.text import csv_text
from tamiz.selection import Selection
from tamiz.tables.columns import identifier_columns
from tamiz.tables.encode import TableEncoder
from tamiz.tables.formats import output_suffix, write_columns

#: Cells that the report looks at; of larger tables it takes a sample of the rows.
_CELLS_IN_REPORT = 8_000_000
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
        others = fit_other_sizes(estimator, matrix, data, sorted(evaluation.folds[0].curve))
        page = _page(data, evaluation, estimator, constraints, list(others), terminal)
        about = _about(options, command, data, evaluation, terminal)
        record = _record(options, data, evaluation, page, about, test)
        record |= _record_of_choices(evaluation, estimator, page)
        files = _write(folder, options, data, model, record)
        report(page, path=folder / files["report"], spreadsheet_safe=options.spreadsheet_safe, **about)
        for path in copies:
            shutil.copy(path, folder / path.name)
        report_convergence(evaluation, estimator, terminal)
    record["files"] = {name: str(out / file) for name, file in files.items()}
    return record


def _record_of_choices(evaluation: Evaluation, estimator: Any, page: Shown) -> dict[str, Any]:
    """Collect what was chosen from the data, joint effects of the model, and the curve of scores against M."""
    return to_plain(
        {
            "choices": estimator.selection_.choices,
            "network_chosen": estimator.network_,
            "pairs": _joint_effects(estimator, page.selection),
            "k_of_folds": [int(fold.support.sum()) for fold in evaluation.folds],
            "curve": {"points": [{"n_features": m, "score": score} for m, score in evaluation.curve()]},
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
    data: Prepared,
    evaluation: Evaluation,
    estimator: Any,
    constraints: Constraints,
    others: Sequence[tuple[int, Any]],
    terminal: Terminal,
) -> Shown:
    """Collect everything the report shows."""
    rows = np.arange(data.table.n_rows)
    most = max(1, _CELLS_IN_REPORT // len(data.features))
    if rows.size > most:
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        terminal.say(f"The pictures in the report show a sample of {most:,} rows.")
    encoder = TableEncoder(features=data.features, impute=False).fit(data.table)
    matrix = encoder.uncentre(encoder.transform(data.table, rows=rows))
    selection = estimator.selection_.with_names([feature.name for feature in data.features])
    if constraints.n_units != selection.n_features:
        names = np.array(evaluation.names, dtype=object)
        selection = dataclasses.replace(selection, groups=constraints.units, group_names=names)
    columns = Columns(selection, [feature.column + 1 for feature in data.features])
    sets = []
    for m, model in others:
        order = list(dict.fromkeys(constraints.units[model.selection_.ordered].tolist()))
        sizes = [[evaluation.effects.get(int(i)) for i in columns.members[unit]] for unit in order]
        sets.append((m, order, [max((v for v in s if v is not None), key=abs, default=None) for s in sizes]))
    return Shown(columns, matrix, data.y[rows], estimator, evaluation, sets, (), evaluation.verdict, rows)


def _about(
    options: SelectOptions, command: str | None, data: Prepared, evaluation: Evaluation, terminal: Terminal
) -> dict[str, Any]:
    """Collect what the report says about the table and the run."""
    return {
        "title": data.table.path.name,
        "task": data.target.task,
        "target": data.target.name,
        "targets": data.targets,
        "n_rows": data.table.n_rows,
        "n_features": len(evaluation.names),
        "notes": [*terminal.notes, _interval_note(evaluation)],
        "settings": _settings(options, data, evaluation),
        "seed": options.seed,
        "command": command,
        "created": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }


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
    data: Prepared,
    evaluation: Evaluation,
    page: Shown,
    about: dict[str, Any],
    test: dict[str, Any] | None,
) -> dict[str, Any]:
    """Collect the results for scripts."""
    columns, effects = page.columns, page.effects
    shares = evaluation.fold_share
    kept: list[dict[str, Any]] = []
    for place, unit in enumerate(columns.kept.tolist()):
        levels = [None] if effects is None else effects.levels[place] or [effects.values[place]]
        for feature, effect in zip(columns.members[unit].tolist(), levels, strict=False):
            kept.append(
                {
                    "rank": len(kept) + 1,
                    "feature": data.features[feature].name,
                    "column": data.features[feature].column_name,
                    "category": data.features[feature].category,
                    "weight": effect,
                    "fold_share": float(shares[unit]),
                }
            )
    return to_plain(
        {
            "tamiz": __version__,
            "file": str(options.file),
            "target": data.target.name,
            "targets": data.targets,
            "task": data.target.task,
            "n_rows": data.table.n_rows,
            "n_features": len(columns),
            "k": columns.n_kept,
            "variant": options.variant,
            "network": options.network,
            "seed": options.seed,
            "effect_name": None if effects is None else effects.name,
            "selected": kept,
            "scores": {
                "metric": evaluation.metric.name,
                "kept": evaluation.score,
                "all_features": evaluation.interval("all_features"),
                "random_features": evaluation.interval("random_features"),
                "difference": evaluation.difference("all_features"),
                "difference_random": evaluation.difference("random_features"),
                "n_folds": len(evaluation.folds),
                "higher_is_better": evaluation.metric.greater_is_better,
                "chance": evaluation.chance,
                "p_value": None if evaluation.null is None else evaluation.null.p_value,
            },
            "stability": evaluation.stability,
            "verdict": evaluation.verdict,
            "null": None if evaluation.null is None else evaluation.null.as_record(),
            "test": test,
            "notes": list(about["notes"]),
            "seconds": {
                "reading": data.seconds_reading,
                "selection": float(np.median([fold.seconds for fold in evaluation.folds])),
            },
            "command": about["command"],
        }
    )


def _write(
    folder: Path, options: SelectOptions, data: Prepared, model: SavedModel, record: dict[str, Any]
) -> dict[str, str]:
    """Write all files of the run; return their names."""
    files = {
        "report": "report.html",
        "selected_csv": "selected.csv",
        "selected_json": "selected.json",
        "reduced": "reduced" + output_suffix(data.table),
        "model": "model.tamiz",
    }
    columns = ("rank", "feature", "column", "category", "weight", "fold_share")
    rows = [[kept[column] for column in columns] for kept in record["selected"]]
    text = csv_text(columns, rows, spreadsheet_safe=options.spreadsheet_safe)
    (folder / files["selected_csv"]).write_text(text, encoding="utf-8", newline="")
    (folder / files["selected_json"]).write_text(json_text(record), encoding="utf-8")
    others = {data.table.names.index(name) for name in data.targets[1:]}
    kept = {data.table.names.index(one["column"]) for one in record["selected"]}
    used = sorted({*others, *identifier_columns(data.table), *kept})
    write_columns(data.table, used, folder / files["reduced"])
    (folder / files["model"]).write_bytes(model.to_bytes())
    return files
