"""Run ``tamiz compare``: read the table, compare the methods, write record and report."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tamiz._utils.extras import require
from tamiz._version import __version__
from tamiz.baselines.registry import available, get_method
from tamiz.cli.console import Terminal, json_text
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.fold_options import FoldOptions
from tamiz.cli.output import free_folder, output_folder
from tamiz.cli.prepare import Prepared, load_table, parse_k, resolve_k
from tamiz.cli.select_checks import find_metric, report_table_risks
from tamiz.errors import UnknownNameError
from tamiz.evaluation.comparison import (
    DEFAULT_METHODS,
    Candidate,
    Comparison,
    compare_methods,
    make_candidates,
    pick_methods,
    warm_up,
)
from tamiz.report.page import report
from tamiz.report.records import to_plain
from tamiz.report.text import csv_text

DEFAULT_K = (5, 10, 20)


@dataclass(frozen=True)
class CompareOptions:
    """Hold the options of the command."""

    table: FoldOptions
    k_values: str | None
    methods: str | None
    out: Path
    network: str = "linear"
    force: bool = False
    spreadsheet_safe: bool = True
    command: str | None = None


def parse_methods(text: str) -> tuple[str, ...]:
    """Return the methods of a list separated by commas, none twice.

    Examples
    --------
    >>> parse_methods("e2efs, Fisher,svm_rfe,fisher")
    ('e2efs', 'fisher', 'svm-rfe')
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise CommandError(f"Name at least one method: {', '.join(available())}.", EXIT_USAGE)
    try:
        return pick_methods(words)
    except UnknownNameError as error:
        raise CommandError(str(error), EXIT_USAGE) from None


def parse_values(text: str) -> list[int | float]:
    """Return the numbers of features of a list separated by commas.

    Examples
    --------
    >>> parse_values("5, 10,0.5")
    [5, 10, 0.5]
    """
    values = [parse_k(word.strip()) for word in text.split(",") if word.strip()]
    if not values:
        raise CommandError("Say how many features to keep, such as -k 5,10,20.", EXIT_USAGE)
    return values


def run_compare(options: CompareOptions, terminal: Terminal) -> dict[str, Any]:
    """Run the command; return the record that is also written to ``compare.json``."""
    asked = parse_methods(options.methods) if options.methods else None
    values = parse_values(options.k_values) if options.k_values is not None else []
    for name in asked or ():
        if get_method(name).engine == "torch":  # told before the table is read
            require("torch", "torch", f"The method {name}")
    out = free_folder(options.out, options.force, terminal.say)
    with output_folder(out, options.force, ("report.html", "compare.csv", "compare.json")) as folder:
        data = load_table(options.table, terminal, lambda n_features: _check_all(values, n_features))
        rows, task = data.as_rows(), data.target.task
        n_features = rows.n_columns
        values = values or [m for m in DEFAULT_K if m < n_features] or [max(1, n_features // 2)]
        m_values = sorted({resolve_k(value, n_features) for value in values})
        metric = find_metric(options.table.scoring, task)
        report_table_risks(data, terminal)
        sparse = hasattr(data.table.numbers, "tocsr")
        candidates = _candidates(asked or _default_methods(task, sparse, terminal), task, options.network)
        warm_up(candidates, task, np.unique(data.y).size if task == "classification" else 2, sparse)
        with terminal.progress("comparing", len(candidates) * len(m_values) * len(data.folds)) as tick:
            found = compare_methods(
                rows,
                candidates,
                m_values,
                data.folds,
                metric,
                n_folds=len(data.folds) // options.table.n_repeats,
                seed=options.table.seed,
                n_jobs=data.n_jobs,
                tick=tick,
            )
        _report_failures(found, terminal)
        about = _about(options, data, found, terminal)
        record = _record(options, found, about)
        _write(folder, options, record)
        report(found, path=folder / "report.html", spreadsheet_safe=options.spreadsheet_safe, **about)
    record["files"] = {
        name: str(out / file)
        for name, file in {"report": "report.html", "csv": "compare.csv", "json": "compare.json"}.items()
    }
    return record


def _default_methods(task: str, sparse: bool, terminal: Terminal) -> list[str]:
    """Return the methods of a comparison for which the user names none; those that refuse a sparse table are left out."""
    names = [name for name in DEFAULT_METHODS[task] if not sparse or get_method(name).accepts_sparse]
    left_out = [name for name in DEFAULT_METHODS[task] if name not in names]
    if left_out:
        terminal.say(f"Left out: {', '.join(left_out)}, which cannot read a sparse table.")
    return names


def _report_failures(found: Comparison, terminal: Terminal) -> None:
    """Report methods that failed; raise if all did."""
    for name, message in found.failures.items():
        failed = int(np.isnan(found.scores[found.methods.index(name)]).any(axis=0).sum())
        terminal.warn(f"{name} failed in {failed} of {found.scores.shape[2]} folds: {message}")
    if np.isnan(found.scores).all():
        raise CommandError(
            "Every method failed; see above."
            if not terminal.quiet
            else "Every method failed: " + "; ".join(f"{name}: {text}" for name, text in found.failures.items())
        )


def _candidates(names: Sequence[str], task: str, network: str) -> dict[str, Candidate]:
    try:
        return make_candidates(names, task, network)
    except (ImportError, ValueError) as error:
        raise CommandError(str(error), EXIT_USAGE) from None


def _check_all(values: Sequence[int | float], n_features: int) -> None:
    for value in values:
        resolve_k(value, n_features)


def _about(options: CompareOptions, data: Prepared, found: Comparison, terminal: Terminal) -> dict[str, Any]:
    """Collect what the page says about the table and the run."""
    return {
        "title": data.table.path.name,
        "task": data.target.task,
        "n_rows": data.table.n_rows,
        "n_features": len(data.features),
        "target": data.target.name,
        "notes": (
            *terminal.notes,
            "The same folds for all methods; imputing, encoding and selecting happen inside each fold; every selection is "
            "scored by the same linear model on the kept features (logistic or ridge regression, standardised).",
        ),
        "settings": {"folds": found.scores.shape[2], "network of e2efs": options.network, "seed": options.table.seed},
        "seed": options.table.seed,
        "command": options.command,
        "created": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def _record(options: CompareOptions, found: Comparison, about: dict[str, Any]) -> dict[str, Any]:
    assert found.seconds is not None
    results = [
        {
            "method": name,
            "k": m,
            "score": interval.value,
            "low": interval.low,
            "high": interval.high,
            "seconds": found.seconds[i, j],
            "stability": found.stability(i, j),
            "folds": found.scores[i, j],
        }
        for i, name in enumerate(found.methods)
        for j, (m, interval) in enumerate(zip(found.m_values, found.intervals[i], strict=True))
    ]
    return to_plain(
        {
            "tamiz": __version__,
            "file": str(options.table.file),
            "task": about["task"],
            "n_rows": about["n_rows"],
            "n_features": about["n_features"],
            "target": about["target"],
            "metric": found.metric.name,
            "higher_is_better": found.metric.greater_is_better,
            "results": results,
            "references": found.references,
            "ranks": found.ranks,
            "tests": found.tests,
            "test": "corrected resampled t test over folds (mean over k in each), p after Holm, interval of each pair",
            "smallest_visible_difference": found.smallest_visible_difference,
            "friedman_p_value": found.friedman.p_value if found.competitors else None,
            "failures": found.failures,
            "seed": options.table.seed,
            "notes": list(about["notes"]),
            "command": options.command,
        }
    )


def _write(folder: Path, options: CompareOptions, record: dict[str, Any]) -> None:
    columns = ("method", "k", "score", "low", "high", "seconds", "stability")
    rows = [[result[column] for column in columns] for result in record["results"]]
    text = csv_text(columns, rows, spreadsheet_safe=options.spreadsheet_safe)
    (folder / "compare.csv").write_text(text, encoding="utf-8", newline="")
    (folder / "compare.json").write_text(json_text(record), encoding="utf-8")
