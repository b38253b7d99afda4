"""``tamiz compare``: compare selectors on the same folds of a table."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from tamiz._version import __version__
from tamiz.baselines.registry import available, canonical_name, get_method
from tamiz.cli import options as opt
from tamiz.cli.errors import EXIT_USAGE, CommandError

DEFAULT_K = (5, 10, 20)
METHODS_HELP = f"Separated by commas: {', '.join(available())}."
SELECTOR_HELP = "A selector or pipeline of your own, an object or a function that makes one. Repeatable."
Sizes = Annotated[str | None, opt.keeping("-k LIST", "Numbers of columns to keep.", show_default="5,10,20")]
Methods = Annotated[
    str | None, opt.model("--methods -m LIST", METHODS_HELP, show_default="e2efs-soft, fisher, relieff, lasso")
]
Selector = Annotated[list[str] | None, opt.model("--selector -s MODULE:OBJECT", SELECTOR_HELP)]


def compare_command(
    file: opt.TablePath,
    k: Sizes = None,
    methods: Methods = None,
    selector: Selector = None,
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

    What each keeps is scored by the same linear model. Writes a report, and the
    scores as CSV and JSON; prints the score of each method for each k, its
    stability, time and rank, with marks from corrected resampled t tests.
    """
    words = [word.strip() for word in (k or "").split(",") if word.strip()]
    if k is not None and (not words or any(word[0].isalpha() for word in words)):
        raise CommandError(f"Give -k numbers of columns, such as -k 5,10,20; got {k!r}.", EXIT_USAGE)
    values = [opt.parse_k(word) for word in words]
    opt.check_paths(file)
    network = opt.pick_name(network, opt.NETWORKS, "network")
    names = None if methods is None else [canonical_name(word) for word in methods.split(",") if word.strip()]
    if names == []:
        raise CommandError(f"Name at least one method: {', '.join(available())}.", EXIT_USAGE)
    for name in names or ():
        get_method(name).load()

    import numpy as np

    from tamiz._utils.text import to_plain
    from tamiz._utils.validation import resolve_n_features_to_select
    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_compare
    from tamiz.evaluation.comparison import DEFAULT_METHODS, compare
    from tamiz.evaluation.folds import possible_folds
    from tamiz.report.text import csv_text
    from tamiz.tables.load import load_rows

    with Terminal(quiet, json) as terminal:
        with terminal.results(out, file, "tamiz-compare-", force):
            rows, targets, found_task = load_rows(
                file,
                target[0] if target and len(target) == 1 else target,
                {"groups": groups, "time": time, "sample_weight": weights},
                task=task and str(task),
                report=terminal.say,
                reading=opt.parse_reading(read, ignore, categorical),
            )
            sizes = values or [m for m in DEFAULT_K if m < rows.n_columns] or [max(1, rows.n_columns // 2)]
            if names is None and not selector:
                sparse = hasattr(getattr(rows.source, "numbers", rows.source), "tocsr")
                names = [name for name in DEFAULT_METHODS[found_task] if not sparse or get_method(name).accepts_sparse]
                left_out = ", ".join(name for name in DEFAULT_METHODS[found_task] if name not in names)
                if left_out:
                    terminal.say(f"Left out: {left_out}, which cannot read a sparse table.")
            if groups is None and time is None:
                folds = possible_folds(rows.y[rows.used], found_task, folds, report=terminal.say)
            found = compare(
                {**{name: name for name in names or ()}, **{text: load_object(text) for text in selector or ()}},
                rows,
                k=sorted({resolve_n_features_to_select(m, rows.n_columns, "`k`") for m in sizes}),
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
                "command": terminal.command,
            }
            record = to_plain({"tamiz": __version__, "file": str(file), **about, **found.to_dict()})
            columns = ("method", "k", "score", "low", "high", "seconds", "stability")
            table = csv_text(columns, [[result[column] for column in columns] for result in record["results"]])
            terminal.write("csv", "compare.csv", table)
            terminal.write("json", "compare.json", record)
        terminal.report(found, about)
        terminal.finish(record, show_compare, open_report)


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
