"""``tamiz select``: read, evaluate inside folds, fit on all rows, write the results."""

from __future__ import annotations

import dataclasses
import datetime
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._version import __version__
from tamiz.cli.console import Talk
from tamiz.cli.estimator import ModelOptions, fit_model, model_maker
from tamiz.cli.model_file import Model
from tamiz.cli.output import output_folder
from tamiz.cli.prepare import Prepared, TableOptions, load_table, resolve_k
from tamiz.cli.write_table import SUFFIXES, write_reduced
from tamiz.evaluation.cross_validation import TICKS_PER_FOLD, Evaluation, curve_sizes, evaluate_selection
from tamiz.report.data import Confusion, Curve, Residuals, Scores, SelectReport
from tamiz.report.records import to_plain
from tamiz.report.text import csv_text
from tamiz.report.write import report, select_report

#: The page looks at no more cells than this; of larger tables it takes a sample of the rows.
_CELLS_IN_REPORT = 8_000_000
_RESIDUALS_SHOWN = 2000


@dataclass(frozen=True)
class SelectOptions:
    """What the user asked for."""

    table: TableOptions
    model: ModelOptions
    k: int | float
    out: Path
    force: bool = False
    spreadsheet_safe: bool = True
    command: str | None = None
    copies: tuple[Path, ...] = ()
    """Files to put beside the results."""


def run_select(options: SelectOptions, talk: Talk) -> dict[str, Any]:
    """Run the whole command.

    Returns
    -------
    dict
        What was found, ready for JSON; the same is in ``selected.json``.
    """
    with output_folder(options.out, options.force) as folder:
        data = load_table(
            options.table,
            talk,
            lambda n_features: _check_k(options.k, n_features),
            processes=options.model.network != "linear",
        )
        k = resolve_k(options.k, len(data.features))
        evaluation = _evaluate(data, k, options, talk)
        with talk.progress("final model on all rows", 1) as tick:
            encoder, matrix = data.whole()
            estimator = fit_model(options.model, data.target.task, k, options.table.seed, matrix, data.y)
            tick()
        model = Model.from_estimator(estimator, encoder, data.target)
        page = _page(options, data, evaluation, estimator, matrix, model, talk)
        record = _record(options, data, evaluation, page, model)
        files = _write(folder, options, data, page, model, record)
        _say_convergence(evaluation, estimator, talk)
    record["files"] = {name: str(options.out / file) for name, file in files.items()}
    return record


def _check_k(k: int | float, n_features: int) -> None:
    resolve_k(k, n_features)


def _evaluate(data: Prepared, k: int, options: SelectOptions, talk: Talk) -> Evaluation:
    linear = options.model.network == "linear"
    if not linear:
        n_fits = 3 * len(data.folds) + 1
        talk.say(
            f"Network {options.model.network}: {n_fits} trainings of seconds each (longer with wide tables), "
            f"{data.n_jobs} side by side; --network linear takes a fraction of that."
        )
    total = len(data.folds) * TICKS_PER_FOLD
    with talk.progress("cross-validation", total) as tick:
        return evaluate_selection(
            data.prepare,
            data.y,
            model_maker(options.model, data.target.task),
            k,
            data.folds,
            task=data.target.task,
            # A network takes seconds where the linear engine takes milliseconds: no curve, one random draw.
            sizes=curve_sizes(len(data.features), k) if linear else (),
            n_random=5 if linear else 1,
            seed=options.table.seed,
            n_jobs=data.n_jobs,
            processes=not linear,
            tick=tick,
        )


def _say_convergence(evaluation: Evaluation, estimator: Any, talk: Talk) -> None:
    late = sum(not fold.converged for fold in evaluation.folds) + (not estimator.selection_.converged)
    if late:
        talk.warn(f"In {late} of {len(evaluation.folds) + 1} fits the step limit had to decide which features to keep.")


def _page(
    options: SelectOptions,
    data: Prepared,
    evaluation: Evaluation,
    estimator: Any,
    matrix: Any,
    model: Model,
    talk: Talk,
) -> SelectReport:
    """Everything the report shows."""
    rows = np.arange(matrix.shape[0])
    most = max(1, _CELLS_IN_REPORT // matrix.shape[1])
    if rows.size > most and not hasattr(matrix, "tocsr"):
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        matrix = matrix[rows]
        talk.say(f"The pictures in the report show a sample of {most:,} rows.")
    names = [feature.name for feature in data.features]
    page = select_report(
        estimator.selection_.with_names(names),
        matrix,
        data.y[rows],
        title=data.table.path.name,
        task=data.target.task,
        target=data.target.name,
        scores=Scores.of(evaluation),
        curve=Curve.of(evaluation, estimator.selection_.n_features_to_select),
        confusion=_confusion(data, evaluation) if data.target.task == "classification" else None,
        residuals=_residuals(data, evaluation) if data.target.task == "regression" else None,
        fold_share=evaluation.fold_share,
        effects=model.effects()[_positions(estimator)].tolist() if model.is_linear else None,
        effect_name="weight of the normalised feature" if model.is_linear else None,
        notes=[*talk.notes, _interval_note(evaluation)],
        settings=_settings(options, data, evaluation),
        command=options.command,
        created=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    return dataclasses.replace(page, n_rows=data.table.n_rows, seed=options.table.seed)


def _positions(estimator: Any) -> np.ndarray:
    """Where each kept feature, best first, stands among the kept ones in the order of the columns."""
    selection = estimator.selection_
    return np.searchsorted(selection.indices, selection.ordered)


def _interval_note(evaluation: Evaluation) -> str:
    return (
        f"Scores: mean {evaluation.metric.name} over {len(evaluation.folds)} held-out folds; imputing, encoding and selecting "
        "happen inside each fold. 95 % intervals after Nadeau and Bengio, which allow for the overlap of the folds."
    )


def _confusion(data: Prepared, evaluation: Evaluation) -> Confusion:
    labels = np.unique(data.y)
    places = np.searchsorted(labels, data.y), np.searchsorted(labels, evaluation.predicted)
    counts = np.zeros((labels.size, labels.size), dtype=int)
    np.add.at(counts, places, 1)
    return Confusion(tuple(map(str, labels)), tuple(tuple(row) for row in counts.tolist()))


def _residuals(data: Prepared, evaluation: Evaluation) -> Residuals:
    rows = np.arange(data.y.size)
    if rows.size > _RESIDUALS_SHOWN:
        rows = np.sort(np.random.default_rng(0).choice(rows, _RESIDUALS_SHOWN, replace=False))
    return Residuals(tuple(data.y[rows].tolist()), tuple(evaluation.predicted[rows].astype(float).tolist()))


def _settings(options: SelectOptions, data: Prepared, evaluation: Evaluation) -> dict[str, Any]:
    table = options.table
    return {
        "variant": options.model.variant,
        "network": options.model.network,
        "features to keep": options.k,
        "folds": len(evaluation.folds),
        "stability of the selection (Nogueira)": round(evaluation.stability, 3),
        "seed": table.seed,
        "ignored columns": ", ".join(table.ignore) or None,
        "rows": data.table.n_rows,
    }


def _record(
    options: SelectOptions, data: Prepared, evaluation: Evaluation, page: SelectReport, model: Model
) -> dict[str, Any]:
    """The results for scripts."""
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
            "file": str(options.table.file),
            "target": data.target.name,
            "task": data.target.task,
            "n_rows": data.table.n_rows,
            "n_features": len(data.features),
            "k": len(kept),
            "variant": options.model.variant,
            "network": options.model.network,
            "seed": options.table.seed,
            "selected": kept,
            "scores": page.scores,
            "stability": evaluation.stability,
            "notes": list(page.notes),
            "seconds": {
                "reading": data.seconds_reading,
                "selection": float(np.mean([fold.seconds for fold in evaluation.folds])),
            },
            "command": options.command,
        }
    )


def _write(
    folder: Path, options: SelectOptions, data: Prepared, page: SelectReport, model: Model, record: dict[str, Any]
) -> dict[str, str]:
    """All files of the run; which is which."""
    files = {
        "report": "report.html",
        "selected_csv": "selected.csv",
        "selected_json": "selected.json",
        "reduced": "reduced" + SUFFIXES[data.table.format],
        "model": "model.tamiz",
    }
    columns = ("rank", "feature", "column", "category", "weight", "fold_share")
    rows = [[kept[column] for column in columns] for kept in record["selected"]]
    text = csv_text(columns, rows, spreadsheet_safe=options.spreadsheet_safe)
    (folder / files["selected_csv"]).write_text(text, encoding="utf-8", newline="")
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=2)
    (folder / files["selected_json"]).write_text(text + "\n", encoding="utf-8")
    used = sorted({data.features[feature.index].column for feature in page.kept})
    write_reduced(data.table, used, folder / files["reduced"])
    (folder / files["model"]).write_bytes(model.to_bytes())
    report(page, folder / files["report"], spreadsheet_safe=options.spreadsheet_safe)
    for path in options.copies:
        shutil.copy(path, folder / path.name)
    return files
