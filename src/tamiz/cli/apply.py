"""``tamiz apply``: predict new rows with a model that ``tamiz select`` wrote."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from tamiz.cli import options as opt

#: Copies of the table that a prediction holds, for the check of the memory.
_COPIES = 3


ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="The model.tamiz that select wrote.", show_default=False)
]
NEW_HELP = "A table with at least the columns the model reads."
NewRows = Annotated[Path, typer.Argument(metavar="FILE", help=NEW_HELP, show_default=False)]


def apply(
    model: ModelPath,
    file: NewRows,
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
    from tamiz.cli.show import show_apply
    from tamiz.persistence import load_model
    from tamiz.report.text import csv_text
    from tamiz.tables import TableError, read_table, write_columns
    from tamiz.tables.formats import output_suffix

    saved = load_model(model)
    reading = {"na_values": saved.na_values, **opt.parse_reading(read)}
    with Terminal(quiet, json) as terminal:
        more: dict[str, Any] = {"report": terminal.say, **reading}
        with terminal.results(out, file, "tamiz-apply-", force):
            # Columns that name the rows are written back if the table has all of them.
            for identifiers in (saved.identifiers, []):
                try:
                    columns, texts = [*identifiers, *saved.columns], [*identifiers, *saved.text_columns]
                    table = read_table(file, columns=columns, categorical=texts, copies=_COPIES, **more)
                    break
                except TableError:
                    if not identifiers:
                        raise
            matrix = saved.encode(table, terminal.say)
            predicted, outputs = saved.predict(matrix), {}
            if saved.task == "classification" and saved.gives_probabilities:
                found = zip(saved.classes, saved.probabilities(matrix).T)
                outputs = {f"probability of {label}": column.tolist() for label, column in found}
            listed: dict[str, Any] = {"row": range(1, len(predicted) + 1)}
            for name in identifiers:
                cells = table.texts.get(table.names.index(name))
                listed[name] = [None] * len(predicted) if cells is None else cells.values()
            for name, column in zip(saved.targets, predicted.reshape(len(predicted), -1).T):
                listed[f"predicted {name}"] = column.tolist()
            listed |= outputs
            terminal.write("predictions", "predictions.csv", csv_text(listed, zip(*listed.values(), strict=True)))
            reduced = terminal.write("reduced", "reduced" + output_suffix(table))
            write_columns(table, [table.names.index(name) for name in columns], reduced)
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
            "outputs": outputs,
        }
        terminal.finish(record, show_apply)
