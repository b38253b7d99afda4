"""Run ``tamiz pairs``: read the table, search it, write tables and report."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tamiz._version import __version__
from tamiz.cli.console import Terminal
from tamiz.cli.errors import CommandError
from tamiz.cli.output import free_folder, output_folder
from tamiz.cli.pairs import PairsOptions
from tamiz.cli.prepare import in_percent
from tamiz.pairs import PairSearch, find_pairs
from tamiz.report.page import report
from tamiz.report.records import to_plain
from tamiz.report.text import csv_text, shorten
from tamiz.tables.encode import TableEncoder, list_features
from tamiz.tables.read import read_table
from tamiz.tables.table import DataTable

#: Copies of the table that a run holds: the table, without its gaps, and the curves of its columns (two for each).
_COPIES = 4
_FILES = {"report": "report.html", "pairs_csv": "pairs.csv", "columns_csv": "columns.csv", "pairs_json": "pairs.json"}


def run_pair_search(options: PairsOptions, terminal: Terminal, command: str | None = None) -> dict[str, Any]:
    """Run the whole command.

    Parameters
    ----------
    options : PairsOptions
        What the user said.
    terminal : Terminal
        Where messages go.
    command : str or None, default=None
        The command as it was typed, for the report.

    Returns
    -------
    dict
        What was found, ready for JSON; the same is in ``pairs.json``.
    """
    out = free_folder(options.folder(options.file, "tamiz-pairs-"), options.force, terminal.say)
    with output_folder(out, options.force, tuple(_FILES.values())) as folder:
        table = _read(options, terminal)
        matrix, names, level_names = gather_columns(table)
        if level_names:
            terminal.say(f"Searched as categories: {_listed(list(level_names))}.")
        began = time.perf_counter()
        found = _search(options, terminal, table, matrix, names, set(level_names))
        seconds = time.perf_counter() - began
        if found.note:
            terminal.say(found.note)
        if found.unused:
            terminal.say(f"Not searched (constant, or all values but one too rare): {_listed(list(found.unused))}.")
        assert table.target is not None
        record = _record(options, table, found, terminal, seconds, command)
        _write(folder, options, found, record)
        report(
            found,
            path=folder / _FILES["report"],
            spreadsheet_safe=options.spreadsheet_safe,
            title=table.path.name,
            task=table.target.task,
            target=table.target.name,
            level_names=level_names,
            notes=terminal.notes,
            settings={
                "method": found.method,
                "degree": options.degree,
                "permutations": found.n_permutations,
                "columns whose own effect was taken out": ", ".join(found.fitted) or None,
                "seed": options.seed,
            },
            seed=options.seed,
            command=command,
            created=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        )
    record["files"] = {name: str(out / file) for name, file in _FILES.items()}
    return record


def _read(options: PairsOptions, terminal: Terminal) -> DataTable:
    target = options.only_target("pairs")
    with terminal.progress("reading", 100) as tick:
        return read_table(
            options.file,
            target=target,
            task=options.task,
            need_target=True,
            ignore=options.ignore or (),
            categorical=options.categorical or (),
            max_categories=options.max_categories,
            format=options.format,
            delimiter=options.delimiter,
            header=options.header,
            copies=_COPIES,
            # Text is not encoded one-hot here but searched as categories.
            report=lambda message: None if message.startswith("Encoded: ") else terminal.say(message),
            on_rows=in_percent(tick),
        )


def gather_columns(table: DataTable) -> tuple[Any, list[str], dict[str, dict[float, str]]]:
    """Return the columns of a table as numbers, their names, and the names of the categories of columns of text.

    Gaps in numbers are filled by the median; a missing text is a category of its own.

    Parameters
    ----------
    table : DataTable
        The table.
    """
    numeric = [feature for feature in list_features(table) if feature.category is None]
    encoder = TableEncoder(features=numeric).fit(table)
    matrix = encoder.transform(table)
    names = [feature.name for feature in numeric]
    level_names = {}
    codes = []
    for index, column in sorted(table.texts.items()):
        names.append(table.names[index])
        codes.append(column.codes.astype(np.float32))
        level_names[table.names[index]] = {
            -1.0: "(missing)",
            **{float(code): category for code, category in enumerate(column.categories)},
        }
    if codes and not sp.issparse(matrix):
        matrix = np.column_stack([matrix, *codes])
    return matrix, names, level_names


def _search(
    options: PairsOptions, terminal: Terminal, table: DataTable, matrix: Any, names: list[str], text_columns: set[str]
) -> PairSearch:
    assert table.target is not None
    shown = not options.quiet and terminal.err.is_terminal
    try:
        found = find_pairs(
            matrix,
            table.target.y,
            task=table.target.task,
            degree=options.degree,
            categorical=[place for place, name in enumerate(names) if name in text_columns] or None,
            method=options.method,
            n_permutations="auto" if options.n_permutations is None else options.n_permutations,
            n_pairs=options.n_pairs,
            n_jobs=options.n_jobs,
            random_state=options.seed,
            verbose=int(shown),
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    return found.with_names(names)


def _listed(names: list[str], limit: int = 5) -> str:
    more = len(names) - limit
    return ", ".join(shorten(name, 40) for name in names[:limit]) + (f" and {more:,} more" if more > 0 else "")


def _record(
    options: PairsOptions,
    table: DataTable,
    found: PairSearch,
    terminal: Terminal,
    seconds: float,
    command: str | None,
) -> dict[str, Any]:
    """Collect the results for scripts."""
    assert table.target is not None
    pairs, columns = found.pairs_to_dict(), found.columns_to_dict()
    return to_plain(
        {
            "tamiz": __version__,
            "file": str(options.file),
            "target": table.target.name,
            "task": table.target.task,
            "n_rows": found.n_samples,
            "n_columns": len(found.names),
            "method": found.method,
            "n_tests": found.n_tests,
            "n_permutations": found.n_permutations,
            "n_significant_pairs": len(found.significant_pairs()),
            "n_significant_columns": len(found.significant_columns()),
            "pairs": [dict(zip(pairs, row)) for row in zip(*pairs.values())],
            "columns": [dict(zip(columns, row)) for row in zip(*columns.values())],
            "fitted": found.fitted,
            "not_searched": found.unused,
            "summary": found.summary,
            "note": found.note,
            "notes": list(terminal.notes),
            "seed": options.seed,
            "seconds": seconds,
            "command": command,
        }
    )


def _write(folder: Path, options: PairsOptions, found: PairSearch, record: dict[str, Any]) -> None:
    for name, table in (("pairs_csv", found.pairs_to_dict()), ("columns_csv", found.columns_to_dict())):
        text = csv_text(list(table), zip(*table.values()), spreadsheet_safe=options.spreadsheet_safe)
        (folder / _FILES[name]).write_text(text, encoding="utf-8", newline="")
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=2)
    (folder / _FILES["pairs_json"]).write_text(text + "\n", encoding="utf-8")
