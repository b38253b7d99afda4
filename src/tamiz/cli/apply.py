"""``tamiz apply``: predict new rows with a model that ``tamiz select`` wrote."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamiz.cli import options as opt

if TYPE_CHECKING:
    import numpy as np

    from tamiz.persistence import SavedModel

#: Copies of the table that a prediction holds, for the check of the memory.
_COPIES = 3


def apply(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The model.tamiz that select wrote.", show_default=False)
    ],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table with at least the columns the model reads.", show_default=False),
    ],
    read: opt.Read = None,
    out: opt.Out = None,
    force: opt.Force = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Predict new rows with a model that select wrote, and cut the table down to the columns it reads.

    The model is JSON and arrays: loading one from a stranger runs nothing.
    """
    from tamiz.cli.console import Terminal
    from tamiz.cli.output import free_folder, output_folder
    from tamiz.cli.show import show_apply
    from tamiz.persistence import load_model
    from tamiz.report.text import csv_text
    from tamiz.tables import TableError, read_table, write_columns
    from tamiz.tables.formats import output_suffix

    saved = load_model(model)
    reading = {"na_values": saved.na_values, **opt.reading_options(read)}
    with Terminal(quiet, json) as terminal:
        out = free_folder(out or opt.default_folder(file, "tamiz-apply-"), force, terminal.say)
        with output_folder(out, force, ("predictions.csv", "reduced.*")) as folder:
            # Columns that name the rows are written back if the table has all of them.
            for identifiers in (saved.identifiers, []):
                try:
                    table = read_table(
                        file,
                        columns=[*identifiers, *saved.columns],
                        categorical=[*identifiers, *saved.text_columns],
                        copies=_COPIES,
                        report=terminal.say,
                        **reading,
                    )
                    break
                except TableError:
                    if not identifiers:
                        raise
            matrix = saved.encode(table, terminal.say)
            predicted = saved.predict(matrix)
            outputs = _class_outputs(saved, matrix, terminal.say)
            header = ["row", *identifiers, *(f"predicted {name}" for name in saved.targets), *outputs]
            texts = [table.texts.get(table.names.index(name)) for name in identifiers]
            columns: list[Any] = [
                list(range(1, len(predicted) + 1)),
                *([None] * len(predicted) if text is None else text.values() for text in texts),
                *predicted.reshape(len(predicted), -1).T.tolist(),
                *(values.tolist() for values in outputs.values()),
            ]
            text = csv_text(header, zip(*columns, strict=True))
            (folder / "predictions.csv").write_text(text, encoding="utf-8", newline="")
            reduced = "reduced" + output_suffix(table)
            used = [table.names.index(name) for name in (*identifiers, *saved.columns)]
            write_columns(table, used, folder / reduced)
        record = {
            "model": str(model),
            "file": str(file),
            "targets": saved.targets,
            "task": saved.task,
            "loss": saved.loss,
            "n_rows": table.n_rows,
            "columns": saved.columns,
            "counts": dict(sorted(Counter(predicted.tolist()).items())) if saved.task == "classification" else None,
            "predictions": predicted.tolist(),
            "outputs": {name: values.tolist() for name, values in outputs.items()},
            "files": {"predictions": str(out / "predictions.csv"), "reduced": str(out / reduced)},
        }
        terminal.finish(record, show_apply(record))


def _class_outputs(model: SavedModel, matrix: np.ndarray, say: Any) -> dict[str, np.ndarray]:
    """Compute the probability of each class, or its score where the loss gives no probabilities; none for numbers."""
    from tamiz._utils.text import quote

    if model.task == "regression":
        return {}
    if model.gives_probabilities:
        found = model.probabilities(matrix)
        return {f"probability of {label}": found[:, i] for i, label in enumerate(model.classes)}
    scores = model.scores(matrix)
    two = scores.shape[1] == 1
    rule = f"above 0 it predicts {quote(model.classes[1])}" if two else "the largest is predicted"
    say(
        f"The loss {model.loss} gives no probabilities: predictions.csv has scores ({rule}). "
        "tamiz select --loss logistic makes a model with probabilities."
    )
    return {f"score of {label}": scores[:, i] for i, label in enumerate(model.classes[1:] if two else model.classes)}
