"""``tamiz reproduce``: the paper's tables and figures, in runs that can be killed and started again."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tamiz.cli.console import Terminal
from tamiz.cli.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OUTPUT, EXIT_USAGE, CommandError


@dataclass(frozen=True)
class RunOptions:
    """What all protocols share."""

    out: Path
    jobs: int | None = None
    dask: str | None = None
    command: str | None = None


def words(text: str | None) -> list[str] | None:
    """A list separated by commas; None where nothing was given.

    Examples
    --------
    >>> words("colon, lung"), words(None)
    (['colon', 'lung'], None)
    """
    if text is None:
        return None
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise CommandError(f"{text!r} names nothing; separate names by commas.", EXIT_USAGE)
    return found


def numbers(text: str | None) -> list[int] | None:
    """Whole numbers separated by commas.

    Examples
    --------
    >>> numbers("10,50")
    [10, 50]
    """
    try:
        return None if text is None else [int(word) for word in words(text) or ()]
    except ValueError:
        raise CommandError(f"{text!r} is not a list of whole numbers, such as 10,50.", EXIT_USAGE) from None


def given(**values: Any) -> dict[str, Any]:
    """What was given; the rest keeps its default.

    Examples
    --------
    >>> given(a=1, b=None)
    {'a': 1}
    """
    return {name: value for name, value in values.items() if value is not None}


def run_protocol(name: str, wishes: dict[str, Any], options: RunOptions, talk: Terminal) -> dict[str, Any]:
    """Plan, compute what is missing, write the tables.

    Parameters
    ----------
    name : str
        A module of :mod:`tamiz.benchmark` with ``make_plan``, ``make_cells`` and ``summarise``.
    wishes : dict
        Arguments of its ``make_plan``.
    options : RunOptions
        Where and how.
    talk : Terminal
        How to speak.
    """
    from tamiz._progress import ProgressBar, format_time
    from tamiz.benchmark.dask_runner import ClusterError
    from tamiz.benchmark.runner import run_cells
    from tamiz.benchmark.store import CellStore, StoreError
    from tamiz.benchmark.tables import write_outcome
    from tamiz.datasets import DatasetError, find_data_home

    protocol = import_module(f"tamiz.benchmark.{name}")
    summary = import_module(f"tamiz.benchmark.{name}_table") if name == "microarray" else protocol
    home = str(find_data_home().absolute())
    bar = None if talk.quiet else ProgressBar("cells")
    store: CellStore | None = None
    try:
        plan = protocol.make_plan(**wishes)
        store = CellStore(options.out / "cells", talk.warn)
        cells = protocol.make_cells(plan, home)
        done = run_cells(
            cells,
            store,
            jobs=options.jobs or os.cpu_count() or 1,
            dask=options.dask,
            data_home=home,
            progress=bar.update if bar else (lambda done, total, note: None),
            warn=talk.warn,
        )
        if bar:
            bar.close()
        outcome = summary.summarise(plan, cells, done.results, done.failures)
        files = write_outcome(outcome, options.out)
        files.update(_pictures(name, outcome, done, cells, options, talk))
    except (DatasetError, ClusterError) as error:
        raise CommandError(str(error)) from None
    except StoreError as error:
        raise CommandError(str(error), EXIT_OUTPUT) from None
    except ValueError as error:
        if store is not None:  # a fault of ours, not of what was asked for
            raise
        raise CommandError(str(error), EXIT_USAGE) from None
    except KeyboardInterrupt:
        raise CommandError(
            f"Interrupted. Finished cells are kept in {options.out}; the same command goes on from there.",
            EXIT_INTERRUPTED,
        ) from None
    talk.say(
        f"{done.n_computed} cells computed, {done.n_reused} found finished, {len(done.failures)} failed, "
        f"in {format_time(done.seconds)}."
    )
    return {**outcome.content, "markdown": outcome.markdown, "seconds": done.seconds, "files": files}


def _pictures(
    name: str, outcome: Any, done: Any, cells: Sequence[Any], options: RunOptions, talk: Terminal
) -> dict[str, str]:
    """What a protocol has beside its tables: pages, curves, masks."""
    if name == "microarray":
        return _pages(outcome, cells, done, options)
    try:
        if name == "three_layer" and outcome.records:
            from tamiz.benchmark.three_layer import draw

            draw(outcome.records, str(options.out / "figure.png"))
            return {"figure": str(options.out / "figure.png")}
        if name == "images":
            from tamiz.benchmark.images_table import draw_masks

            return draw_masks(cells, done.results, options.out)
    except ImportError:
        talk.warn("No figure: matplotlib is not installed (pip install 'tamiz[plot]').")
    return {}


def _pages(outcome: Any, cells: Sequence[Any], done: Any, options: RunOptions) -> dict[str, str]:
    """The comparison page of each data set: every row of the table, by the number of features."""
    from tamiz.benchmark.metrics import friedman_ranks, wilcoxon_pairs
    from tamiz.benchmark.microarray import N_FOLDS
    from tamiz.benchmark.microarray_table import ALPHA, display_name
    from tamiz.datasets.registry import find_entry
    from tamiz.report.data import CompareReport, MethodRank, PairTest
    from tamiz.report.write import library_versions, report

    content, files = outcome.content, {}
    for dataset in dict.fromkeys(row["dataset"] for row in content["rows"]):
        rows = [row for row in content["rows"] if row["dataset"] == dataset]
        labels = [f"{row['method']} / {row['learner']}" for row in rows]
        series = {
            label: [math.nan if value is None else value for split in row["scores"] for value in split]
            for label, row in zip(labels, rows)
        }
        ranks = friedman_ranks(series, ALPHA)
        tests = wilcoxon_pairs(series, ALPHA)
        n_rows, n_features = find_entry(dataset).shape
        page = CompareReport(
            title=display_name(dataset),
            task="classification",
            n_rows=n_rows,
            n_features=n_features,
            metric="balanced accuracy",
            methods=tuple(labels),
            m_values=tuple(content["m_values"]),
            scores=tuple(tuple(zip(*row["scores"])) for row in rows),
            seconds=tuple(tuple(values) for values in _seconds(dataset, rows, cells, done.results)),
            ranks=tuple(MethodRank(label, ranks.mean_ranks[label]) for label in labels),
            tests=tuple(PairTest(t.first, t.second, t.difference, t.p_value, t.significant) for t in tests),
            alpha=ALPHA,
            notes=(f"The paper's protocol: 3-fold, {content['n_splits']} splits; method / learner.",),
            settings={"grid of the SVM": content["grid"], "splits": content["n_splits"]},
            versions=library_versions(),
            seed=content["seed"],
            command=options.command,
            test_share=1 / N_FOLDS,
        )
        path = options.out / f"report-{dataset}.html"
        report(page, path)
        files[f"report of {dataset}"] = str(path)
    return files


def _seconds(dataset: str, rows: Any, cells: Any, results: Any) -> list[list[float | None]]:
    """Mean seconds of one selection, for each row and M."""
    found: dict[str, list[list[float]]] = {}
    for cell in cells:
        result = results.get(cell.key)
        if result and cell.settings["dataset"] == dataset:
            found.setdefault(cell.settings["method"], []).append(result["seconds"])
    table: list[list[float | None]] = []
    for row in rows:
        splits = found.get(row["method"])
        if splits:
            table.append([sum(column) / len(column) for column in zip(*splits)])
        else:
            table.append([None] * len(row["scores"][0]))
    return table


def run_surfaces(options: RunOptions, talk: Terminal) -> dict[str, Any]:
    """The paper's first figure: data, table and picture."""
    from tamiz.benchmark.store import StoreError, store_error
    from tamiz.benchmark.surfaces import draw, summarise
    from tamiz.benchmark.tables import write_outcome

    outcome = summarise()
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        files = write_outcome(outcome, options.out)
        draw(outcome.content, str(options.out / "figure.png"))
        files["figure"] = str(options.out / "figure.png")
    except ImportError:
        talk.warn("No figure: matplotlib is not installed (pip install 'tamiz[plot]').")
    except StoreError as error:
        raise CommandError(str(error), EXIT_OUTPUT) from None
    except OSError as fault:
        raise CommandError(str(store_error(fault, options.out)), EXIT_OUTPUT) from None
    return {**outcome.content, "markdown": outcome.markdown, "files": files}


def finish(record: dict[str, Any], talk: Terminal) -> None:
    """Print the table and where the files are; an exit code of 1 says that cells failed."""
    from rich.markdown import Markdown
    from rich.text import Text

    talk.result(record)
    talk.show(Markdown(record["markdown"]))
    for kind, path in record["files"].items():
        talk.show(Text(f"{kind}: {path}", style="dim"))
    failures = record.get("failures")
    if failures:
        name, text = next(iter(failures.items()))
        raise CommandError(
            f"{len(failures)} cell(s) failed, the first: {name}: {text}\nAll are listed in {record['files']['md']}; the "
            "same command tries them again.",
            EXIT_FAILED,
        )


def build_page(folders: Sequence[Path], target: Path, talk: Terminal) -> dict[str, Any]:
    """``docs/results.md`` from the folders of finished runs, their pictures in a folder beside it."""
    from tamiz.benchmark.results_page import PageError, all_pictures, build
    from tamiz.benchmark.store import store_error, write_whole

    try:
        text = build(folders)
        target.parent.mkdir(parents=True, exist_ok=True)
        for name, picture in all_pictures(folders).items():
            (target.parent / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(picture, target.parent / name)
        write_whole(target, text)
    except PageError as error:
        raise CommandError(str(error)) from None
    except OSError as fault:
        raise CommandError(str(store_error(fault, target)), EXIT_OUTPUT) from None
    talk.say(f"Wrote {target}.")
    return {"file": str(target), "runs": [str(folder) for folder in folders]}
