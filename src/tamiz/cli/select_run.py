"""Run ``tamiz select``: read, evaluate inside folds, fit on all rows, write the results."""

from __future__ import annotations

import dataclasses
import datetime
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._version import __version__
from tamiz.cli.console import Terminal
from tamiz.cli.estimator import ModelOptions, fit_model, model_maker
from tamiz.cli.output import free_folder, output_folder
from tamiz.cli.prepare import Prepared, load_table, parse_k, resolve_k
from tamiz.cli.select import SelectOptions
from tamiz.estimators.networks import find_network
from tamiz.evaluation.cross_validation import TICKS_PER_FOLD, Evaluation, curve_sizes, evaluate_selection
from tamiz.persistence import SavedModel
from tamiz.report.data import SelectReport
from tamiz.report.gather import make_kept_sets
from tamiz.report.records import to_plain
from tamiz.report.text import csv_text
from tamiz.report.write import report, select_report
from tamiz.tables.columns import identifier_columns
from tamiz.tables.encode import collect_values
from tamiz.tables.formats import get_format, write_columns

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
    asked = parse_k(options.k)
    out = free_folder(options.folder(options.file, "tamiz-"), options.force, terminal.say)
    with output_folder(out, options.force, _RESULTS) as folder:
        data = load_table(
            options,
            terminal,
            lambda n_features: _check_k(asked, n_features),
            processes=not find_network(options.network).compiled,
        )
        k = resolve_k(asked, len(data.features))
        evaluation = _evaluate(data, k, options, terminal)
        with terminal.progress("final model on all rows", 1) as tick:
            encoder, matrix = data.whole()
            estimator = fit_model(_model_options(options), data.target.task, k, options.seed, matrix, data.y)
            tick()
        model = dataclasses.replace(
            SavedModel.from_estimator(estimator, encoder, data.target.name),
            identifiers=[data.table.names[index] for index in identifier_columns(data.table)],
        )
        page = _page(options, command, data, evaluation, estimator, matrix, model, terminal)
        record = _record(options, command, data, evaluation, page)
        files = _write(folder, options, data, page, model, record)
        for path in copies:
            shutil.copy(path, folder / path.name)
        _report_convergence(evaluation, estimator, terminal)
    record["files"] = {name: str(out / file) for name, file in files.items()}
    return record


def _model_options(options: SelectOptions) -> ModelOptions:
    return ModelOptions(options.variant, options.network)


def _check_k(k: int | float, n_features: int) -> None:
    resolve_k(k, n_features)


def _evaluate(data: Prepared, k: int, options: SelectOptions, terminal: Terminal) -> Evaluation:
    network = find_network(options.network)
    if not network.convex:
        n_fits = 3 * len(data.folds) + 1
        terminal.say(
            f"Network {options.network}: {n_fits} trainings of seconds each (longer with wide tables), "
            f"{data.n_jobs} side by side; --network linear takes a fraction of that."
        )
    total = len(data.folds) * TICKS_PER_FOLD
    with terminal.progress("cross-validation", total) as tick:
        return evaluate_selection(
            data.prepare,
            data.y,
            model_maker(_model_options(options), data.target.task),
            k,
            data.folds,
            task=data.target.task,
            # A network with hidden layers takes seconds where a convex one takes milliseconds: no curve, one random draw.
            sizes=curve_sizes(len(data.features), k) if network.convex else (),
            n_random=5 if network.convex else 1,
            seed=options.seed,
            n_jobs=data.n_jobs,
            processes=not network.compiled,
            tick=tick,
        )


def _report_convergence(evaluation: Evaluation, estimator: Any, terminal: Terminal) -> None:
    late = sum(not fold.converged for fold in evaluation.folds) + (not estimator.selection_.converged)
    if late:
        terminal.warn(
            f"In {late} of {len(evaluation.folds) + 1} fits the step limit had to decide which features to keep."
        )


def _page(
    options: SelectOptions,
    command: str | None,
    data: Prepared,
    evaluation: Evaluation,
    estimator: Any,
    matrix: Any,
    model: SavedModel,
    terminal: Terminal,
) -> SelectReport:
    """Collect everything the report shows."""
    rows = np.arange(matrix.shape[0])
    sets = make_kept_sets(
        model_maker(_model_options(options), data.target.task),
        matrix,
        data.y,
        estimator.selection_,
        sorted(evaluation.folds[0].curve),
        options.seed,
    )
    most = max(1, _CELLS_IN_REPORT // matrix.shape[1])
    if rows.size > most and not hasattr(matrix, "tocsr"):
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        matrix = matrix[rows]
        terminal.say(f"The pictures in the report show a sample of {most:,} rows.")
    names = [feature.name for feature in data.features]
    kept = [data.features[i] for i in estimator.selection_.indices]
    page = select_report(
        estimator.selection_.with_names(names),
        matrix,
        data.y[rows],
        title=data.table.path.name,
        task=data.target.task,
        target=data.target.name,
        evaluation=evaluation,
        folds=data.folds,
        y_evaluated=data.y,
        rows=rows,
        weights=model.layers[0].weights if model.is_linear else None,
        effect_name="weight of the standardised feature" if model.is_linear else None,
        values=collect_values(data.table, kept, rows),
        columns=[feature.column + 1 for feature in data.features],
        kept_sets=sets,
        notes=[*terminal.notes, _interval_note(evaluation)],
        settings=_settings(options, data, evaluation),
        command=command,
        created=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    return dataclasses.replace(page, n_rows=data.table.n_rows, seed=options.seed)


def _interval_note(evaluation: Evaluation) -> str:
    return (
        f"Scores: mean {evaluation.metric.name} over {len(evaluation.folds)} held-out folds; imputing, encoding and selecting "
        "happen inside each fold. 95 % intervals after Nadeau and Bengio, which allow for the overlap of the folds."
    )


def _settings(options: SelectOptions, data: Prepared, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "variant": options.variant,
        "network": options.network,
        "features to keep": parse_k(options.k),
        "folds": len(evaluation.folds),
        "stability of the selection (Nogueira)": round(evaluation.stability, 3),
        "seed": options.seed,
        "ignored columns": ", ".join(options.ignore or ()) or None,
        "rows": data.table.n_rows,
    }


def _record(
    options: SelectOptions, command: str | None, data: Prepared, evaluation: Evaluation, page: SelectReport
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
            "task": data.target.task,
            "n_rows": data.table.n_rows,
            "n_features": len(data.features),
            "k": len(kept),
            "variant": options.variant,
            "network": options.network,
            "seed": options.seed,
            "effect_name": page.effect_name,
            "selected": kept,
            "scores": page.scores,
            "stability": evaluation.stability,
            "notes": list(page.notes),
            "seconds": {
                "reading": data.seconds_reading,
                "selection": float(np.mean([fold.seconds for fold in evaluation.folds])),
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
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=2)
    (folder / files["selected_json"]).write_text(text + "\n", encoding="utf-8")
    used = sorted({*identifier_columns(data.table), *(data.features[kept.index].column for kept in page.kept)})
    write_columns(data.table, used, folder / files["reduced"])
    (folder / files["model"]).write_bytes(model.to_bytes())
    report(page, path=folder / files["report"], spreadsheet_safe=options.spreadsheet_safe)
    return files
