"""``tamiz apply``: predictions and the reduced table for new rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tamiz.cli.console import Talk
from tamiz.cli.container import read_bytes
from tamiz.cli.memory import MemoryBudget
from tamiz.cli.model_file import Model
from tamiz.cli.output import output_folder
from tamiz.cli.read import ReadOptions, read_table
from tamiz.cli.write_table import SUFFIXES, write_reduced
from tamiz.report.records import to_plain
from tamiz.report.text import csv_text


@dataclass(frozen=True)
class ApplyOptions:
    """What the user asked for."""

    model: Path
    file: Path
    out: Path
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    force: bool = False
    spreadsheet_safe: bool = True


def run_apply(options: ApplyOptions, talk: Talk) -> dict[str, Any]:
    """Run the whole command; the record is ready for JSON."""
    model = Model.from_bytes(read_bytes(options.model), options.model.name)
    with output_folder(options.out, options.force) as folder:
        read_options = ReadOptions(
            need_target=False,
            columns=model.columns,
            categorical=model.text_columns,
            format=options.format,
            delimiter=options.delimiter,
            header=options.header,
            run_factor=3,
        )
        table = read_table(options.file, read_options, MemoryBudget(talk.say))
        matrix = model.encode(table, talk.warn)
        predicted = model.predict(matrix)
        reduced = "reduced" + SUFFIXES[table.format]
        header, columns = _columns(model, matrix, predicted)
        text = csv_text(header, zip(*columns, strict=True), spreadsheet_safe=options.spreadsheet_safe)
        (folder / "predictions.csv").write_text(text, encoding="utf-8", newline="")
        positions = [table.names.index(name) for name in model.columns]
        write_reduced(table, positions, folder / reduced)
    record = {
        "model": str(options.model),
        "file": str(options.file),
        "target": model.target,
        "task": model.task,
        "n_rows": table.n_rows,
        "columns": model.columns,
        "counts": _counts(predicted) if model.task == "classification" else None,
        "predictions": predicted.tolist(),
        "files": {"predictions": str(options.out / "predictions.csv"), "reduced": str(options.out / reduced)},
    }
    return to_plain(record)


def _counts(predicted: np.ndarray) -> dict[str, int]:
    labels, counts = np.unique(predicted, return_counts=True)
    return {str(label): int(count) for label, count in zip(labels, counts, strict=True)}


def _columns(model: Model, matrix: np.ndarray, predicted: np.ndarray) -> tuple[list[str], list[list[Any]]]:
    """The columns of ``predictions.csv``: the row, the prediction, and for classes how strongly each is supported."""
    header = ["row", f"predicted {model.target}"]
    columns: list[list[Any]] = [list(range(1, len(predicted) + 1)), predicted.tolist()]
    if model.task == "classification":
        scores = model.scores(matrix)
        labels = [model.classes[1]] if scores.shape[1] == 1 else model.classes
        header += [f"score {label}" for label in labels]
        columns += [scores[:, i].tolist() for i in range(scores.shape[1])]
    return header, columns
