"""``tamiz compare``: compare selectors on the same folds of a table."""

from __future__ import annotations

import datetime
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tamiz._version import __version__
from tamiz.baselines.registry import available, get_method
from tamiz.cli import options as opt
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.options import KEEPING, MODEL, parse_k

if TYPE_CHECKING:
    from tamiz.evaluation.comparison import Comparison

DEFAULT_K = (5, 10, 20)
FILES = {"report": "report.html", "csv": "compare.csv", "json": "compare.json"}


def compare_command(
    file: opt.TablePath,
    k: Annotated[
        str | None,
        opt.option("-k", metavar="LIST", panel=KEEPING, help="Numbers of columns to keep.", show_default="5,10,20"),
    ] = None,
    methods: Annotated[
        str | None,
        opt.option(
            *("--methods", "-m"),
            metavar="LIST",
            panel=MODEL,
            help=f"Separated by commas: {', '.join(available())}.",
            show_default="e2efs-soft and usual filters",
        ),
    ] = None,
    selector: Annotated[
        list[str] | None,
        opt.option(
            *("--selector", "-s"),
            metavar="MODULE:OBJECT",
            panel=MODEL,
            help="A selector or pipeline of your own, an object or a function that makes one. Repeatable.",
        ),
    ] = None,
    target: opt.Target = None,
    task: opt.TaskOption = None,
    ignore: opt.Ignore = None,
    categorical: opt.Categorical = None,
    read: opt.Read = None,
    network: opt.Network = "linear",
    seed: opt.Seed = 0,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 1,
    groups: opt.Groups = None,
    time: opt.Time = None,
    weights: opt.Weights = None,
    scoring: opt.Scoring = None,
    out: opt.Out = None,
    force: opt.Force = False,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Compare several selectors on the same folds of one table.

    What each keeps is scored by the same linear model. Writes a report, and the scores as CSV and JSON; prints the score of each
    method for each k, its stability, time and rank, with marks from corrected resampled t tests.
    """
    values = [parse_k(word.strip()) for word in (k or "").split(",") if word.strip()]
    if k is not None and (not values or "auto" in values):
        raise CommandError("Give -k numbers of columns, such as -k 5,10,20.", EXIT_USAGE)
    opt.check_network(network)
    opt.check_paths(file)
    asked = None if methods is None else _parse_methods(methods)

    import numpy as np

    from tamiz._utils.records import to_plain
    from tamiz._utils.validation import resolve_n_features_to_select
    from tamiz.cli.console import Terminal, command_line, json_text
    from tamiz.cli.output import free_folder, output_folder
    from tamiz.cli.show import show_compare
    from tamiz.evaluation.comparison import compare as compare_selectors
    from tamiz.report.page import report
    from tamiz.report.text import csv_text
    from tamiz.tables.load import load_rows

    with Terminal(quiet, json) as terminal:
        out = free_folder(out or opt.default_folder(file, "tamiz-compare-"), force, terminal.say)
        with output_folder(out, force, tuple(FILES.values())) as folder:
            rows, targets, found_task = load_rows(
                file,
                target[0] if target and len(target) == 1 else target,
                {"groups": groups, "time": time, "sample_weight": weights},
                task=None if task is None else str(task),
                report=terminal.say,
                reading=opt.reading_options(read, ignore, categorical),
            )
            sizes = values or [m for m in DEFAULT_K if m < rows.n_columns] or [max(1, rows.n_columns // 2)]
            names = asked if asked or selector else _default_methods(found_task, rows, terminal.say)
            found = compare_selectors(
                {**{name: name for name in names or ()}, **{text: load_object(text) for text in selector or ()}},
                rows,
                k=sorted({resolve_n_features_to_select(m, rows.n_columns) for m in sizes}),
                cv=folds,
                repeats=repeats,
                scoring=scoring,
                network=network,
                n_jobs=jobs or os.cpu_count() or 1,
                random_state=seed,
                progress=terminal.progress,
            )
            for name, message in found.failures.items():
                scored = np.isfinite(found.scores[found.methods.index(name)]).all(axis=0)
                terminal.say(f"Warning: {name} failed in {(~scored).sum()} of {scored.size} folds: {message}")
            if not found.competitors:
                raise CommandError("Every method failed: " + "; ".join(found.failures.values()))
            about: dict[str, Any] = {
                "title": file.name,
                "task": found_task,
                "n_rows": rows.n_rows,
                "n_features": rows.n_columns,
                "target": ", ".join(targets),
                "notes": (*terminal.notes, f"What each method keeps is scored by {found.judge} on the same folds."),
                "settings": {"folds": found.scores.shape[2], "network of e2efs": network, "seed": seed},
                "seed": seed,
                "command": command_line(),
            }
            record = to_plain({"tamiz": __version__, "file": str(file), **about, **describe_comparison(found)})
            columns = ("method", "k", "score", "low", "high", "seconds", "stability")
            table = [[result[column] for column in columns] for result in record["results"]]
            (folder / FILES["csv"]).write_text(csv_text(columns, table), encoding="utf-8", newline="")
            (folder / FILES["json"]).write_text(json_text(record), encoding="utf-8")
            created = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
            report(found, path=folder / FILES["report"], created=created, **about)
        record["files"] = {name: str(out / path) for name, path in FILES.items()}
        terminal.finish(record, show_compare(record), open_report)


def describe_comparison(found: Comparison) -> dict[str, Any]:
    """Collect the results of a comparison for JSON."""
    return {
        "metric": found.metric.name,
        "judge": found.judge,
        "higher_is_better": found.metric.greater_is_better,
        "results": [
            {
                "method": name,
                "k": m,
                "score": interval.value,
                "low": interval.low,
                "high": interval.high,
                "seconds": None if found.seconds is None else float(found.seconds[i, j]),
                "stability": found.stability(i, j),
                "folds": found.scores[i, j].tolist(),
            }
            for i, name in enumerate(found.methods)
            for j, (m, interval) in enumerate(zip(found.m_values, found.intervals[i], strict=True))
        ],
        "references": list(found.references),
        "ranks": found.ranks,
        "tests": found.tests,
        "test": "corrected resampled t test over folds (mean over k in each), p after Holm, interval of each pair",
        "smallest_visible_difference": found.smallest_visible_difference,
        "friedman_p_value": found.friedman.p_value if found.competitors else None,
        "failures": found.failures,
    }


def load_object(path: str) -> Any:
    """Import an object by ``module:name``, from the working directory too; call it if it is a class or a function.

    Examples
    --------
    >>> load_object("sklearn.feature_selection:SelectKBest")
    SelectKBest()
    """
    module, _, name = path.partition(":")
    if not name:
        raise CommandError(f"--selector takes MODULE:OBJECT, got {path!r}.", EXIT_USAGE)
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise CommandError(f"--selector {path}: {error}.", EXIT_USAGE) from None
    finally:
        sys.path.pop(0)
    return found() if (callable(found) and not hasattr(found, "get_params")) or isinstance(found, type) else found


def _parse_methods(text: str) -> list[str]:
    from tamiz.baselines.registry import canonical_name

    names = list(dict.fromkeys(canonical_name(word.strip()) for word in text.split(",") if word.strip()))
    if not names:
        raise CommandError(f"Name at least one method: {', '.join(available())}.", EXIT_USAGE)
    for name in names:
        get_method(name).load()
    return names


def _default_methods(task: str, rows: Any, say: Any) -> list[str]:
    """List the methods of a comparison for which the user names none; those that refuse a sparse table are left out."""
    from tamiz.evaluation.comparison import DEFAULT_METHODS

    sparse = hasattr(getattr(rows.source, "numbers", rows.source), "tocsr")
    names = [name for name in DEFAULT_METHODS[task] if not sparse or get_method(name).accepts_sparse]
    left_out = [name for name in DEFAULT_METHODS[task] if name not in names]
    if left_out:
        say(f"Left out: {', '.join(left_out)}, which cannot read a sparse table.")
    return names
