"""``tamiz apply``: predict new rows with a model that ``tamiz select`` wrote."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamiz.cli.command import add_command
from tamiz.cli.options import FileOptions, ResultOptions

if TYPE_CHECKING:
    import numpy as np

    from tamiz.cli.console import Terminal
    from tamiz.persistence import SavedModel
    from tamiz.tables import DataTable

#: Copies of the table that a prediction holds, for the check of the memory.
_COPIES = 3


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(ResultOptions, FileOptions):
    """Options of ``tamiz apply``."""

    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The model.tamiz that select wrote.", show_default=False)
    ]
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table with at least the columns the model reads.", show_default=False),
    ]


def apply(options: ApplyOptions) -> None:
    """Predict new rows with a model that select wrote, and cut the table down to the columns it reads.

    The model is JSON and arrays: loading one from a stranger runs nothing.
    """
    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_apply

    terminal = Terminal(options.quiet, options.json)
    record = run_apply(options, terminal)
    terminal.result(record)
    terminal.show(show_apply(record))


def run_apply(options: ApplyOptions, terminal: Terminal) -> dict[str, Any]:
    """Predict, and write the predictions and the reduced table; return the record for JSON."""
    from tamiz.cli.output import free_folder, output_folder
    from tamiz.persistence import load_model
    from tamiz.report.records import to_plain
    from tamiz.report.text import csv_text
    from tamiz.tables import write_columns
    from tamiz.tables.formats import output_suffix

    model = load_model(options.model)
    out = free_folder(options.folder(options.file, "tamiz-apply-"), options.force, terminal.say)
    with output_folder(out, options.force, ("predictions.csv", "reduced.*")) as folder:
        table, identifiers = _read(options, model, terminal)
        matrix = model.encode(table, terminal.warn)
        predicted = model.predict(matrix)
        outputs = _class_outputs(model, matrix, terminal)
        header, columns = _prediction_columns(model, table, identifiers, predicted, outputs)
        text = csv_text(header, zip(*columns, strict=True), spreadsheet_safe=options.spreadsheet_safe)
        (folder / "predictions.csv").write_text(text, encoding="utf-8", newline="")
        reduced = "reduced" + output_suffix(table)
        read = [*identifiers, *model.columns]
        write_columns(table, [table.names.index(name) for name in read], folder / reduced)
    record = {
        "model": str(options.model),
        "file": str(options.file),
        "targets": model.targets,
        "task": model.task,
        "loss": model.loss,
        "n_rows": table.n_rows,
        "columns": model.columns,
        "counts": dict(sorted(Counter(predicted.tolist()).items())) if model.task == "classification" else None,
        "predictions": predicted.tolist(),
        "outputs": {name: values.tolist() for name, values in outputs.items()},
        "files": {"predictions": str(out / "predictions.csv"), "reduced": str(out / reduced)},
    }
    return to_plain(record)


def _reading(options: ApplyOptions, model: SavedModel) -> dict[str, Any]:
    """Return how to read the file: missing values are spelt as in the file the model was made from, if nothing else is said."""
    reading = options.reading()
    if reading["na_values"] is None:
        reading["na_values"] = model.na_values
    return reading


def _read(options: ApplyOptions, model: SavedModel, terminal: Terminal) -> tuple[DataTable, list[str]]:
    """Read the columns of the model, and those that name the rows if the table has all of them; also return their names."""
    from tamiz.tables import TableError, read_table

    for identifiers in (model.identifiers, []):
        try:
            table = read_table(
                options.file,
                columns=[*identifiers, *model.columns],
                categorical=[*identifiers, *model.text_columns],
                **_reading(options, model),
                copies=_COPIES,
                report=terminal.say,
            )
            break
        except TableError:
            if not identifiers:
                raise
    return table, identifiers


def _class_outputs(model: SavedModel, matrix: np.ndarray, terminal: Terminal) -> dict[str, np.ndarray]:
    """Return the probability of each class, or its score where the loss gives no probabilities; none for numbers."""
    from tamiz._utils.text import quote

    if model.task == "regression":
        return {}
    if model.gives_probabilities:
        found = model.probabilities(matrix)
        return {f"probability of {label}": found[:, i] for i, label in enumerate(model.classes)}
    scores = model.scores(matrix)
    two = scores.shape[1] == 1
    rule = f"above 0 it predicts {quote(model.classes[1])}" if two else "the largest is predicted"
    terminal.say(
        f"The loss {model.loss} gives no probabilities: predictions.csv has scores ({rule}). "
        "tamiz select --loss logistic makes a model with probabilities."
    )
    return {f"score of {label}": scores[:, i] for i, label in enumerate(model.classes[1:] if two else model.classes)}


def _prediction_columns(
    model: SavedModel,
    table: DataTable,
    identifiers: list[str],
    predicted: np.ndarray,
    outputs: dict[str, np.ndarray],
) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of ``predictions.csv``: row, identifiers, a prediction for each target, ``outputs``."""
    header = ["row", *identifiers, *(f"predicted {name}" for name in model.targets), *outputs]
    columns: list[list[Any]] = [list(range(1, len(predicted) + 1))]
    for name in identifiers:
        text = table.texts.get(table.names.index(name))
        columns.append([None] * len(predicted) if text is None else text.values())
    columns += predicted.reshape(len(predicted), -1).T.tolist()
    columns += [values.tolist() for values in outputs.values()]
    return header, columns


def register_apply(app: typer.Typer) -> None:
    """Add the command."""
    add_command(
        app,
        apply,
        ApplyOptions,
        first=("model", "file"),
        epilog="Example: tamiz apply tamiz-genes/model.tamiz new-patients.csv",
        short_help="Predict new rows with a model that select wrote.",
    )
