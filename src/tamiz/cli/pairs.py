"""``tamiz pairs``: find columns of a table that act together on its target."""

from __future__ import annotations

import dataclasses
import datetime
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from tamiz.cli import options as opt
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.options import KEEPING, SCORING

if TYPE_CHECKING:
    from tamiz.tables import DataTable

FILES = {"report": "report.html", "pairs_csv": "pairs.csv", "columns_csv": "columns.csv", "pairs_json": "pairs.json"}


class SearchMethod(StrEnum):
    """Ways to search."""

    auto = "auto"
    full = "full"
    sketch = "sketch"


def pairs(
    file: opt.TablePath,
    n_pairs: Annotated[
        int,
        opt.option(
            "--pairs", "-n", metavar="N", panel=KEEPING, min=1, show_default=True, help="List at most so many pairs."
        ),
    ] = 100,
    target: opt.Target = None,
    task: opt.TaskOption = None,
    ignore: opt.Ignore = None,
    categorical: opt.Categorical = None,
    read: opt.Read = None,
    degree: Annotated[
        int,
        opt.option(
            *("--degree",),
            metavar="N",
            panel=SCORING,
            min=1,
            max=4,
            show_default=True,
            help="Degree of the curves of each column: 1 finds products, 2 also rings. The time grows with its square.",
        ),
    ] = 2,
    permutations: Annotated[
        int | None,
        opt.option(
            *("--permutations",),
            metavar="N",
            panel=SCORING,
            min=0,
            show_default="20 to 100, as needed",
            help="Permutations that correct the p values; each takes one more search. 0 corrects for the number of pairs.",
        ),
    ] = None,
    method: Annotated[
        SearchMethod,
        opt.option(
            *("--method",),
            panel=SCORING,
            show_default=True,
            help="full looks at all pairs, sketch at likely ones; auto: sketch above 20,000 columns.",
        ),
    ] = SearchMethod.auto,
    seed: opt.Seed = 0,
    out: opt.Out = None,
    force: opt.Force = False,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Find columns that act together: pairs that say more about the target than both columns alone.

    Prints the strongest pairs with p values that are corrected for all pairs; writes all pairs and columns (CSV, JSON) and
    a report with a picture of each of the strongest pairs.
    """
    if target and len(target) > 1:
        raise CommandError("pairs takes one target; run it once for each of them.", EXIT_USAGE)
    opt.check_paths(file)

    from tamiz.cli.console import Terminal, command_line, json_text
    from tamiz.cli.output import free_folder, output_folder
    from tamiz.cli.show import show_pairs
    from tamiz.pairs import find_pairs
    from tamiz.pairs.columns import read_columns
    from tamiz.report.page import report
    from tamiz.report.text import csv_text
    from tamiz.tables import read_table

    with Terminal(quiet, json) as terminal:
        out = free_folder(out or opt.default_folder(file, "tamiz-pairs-"), force, terminal.say)
        with output_folder(out, force, tuple(FILES.values())) as folder:
            table = read_table(
                file,
                target=target[0] if target else None,
                task=None if task is None else str(task),
                need_target=True,
                # Text is not encoded one-hot here but searched as categories.
                report=lambda message: None if message.startswith("Encoded: ") else terminal.say(message),
                **opt.reading_options(read, ignore, categorical),
            )
            assert table.target is not None
            matrix, names, level_names = gather_columns(table)
            if level_names:
                terminal.say(f"Searched as categories: {_list(level_names)}.")
            began = time.perf_counter()
            coded = [place for place, name in enumerate(names) if name in level_names] or None
            found = find_pairs(
                dataclasses.replace(read_columns(matrix, categorical=coded), names=names, levels=level_names),
                table.target.y,
                task=table.target.task,
                degree=degree,
                method=str(method),
                n_permutations="auto" if permutations is None else permutations,
                n_pairs=n_pairs,
                n_jobs=jobs,
                random_state=seed,
                verbose=int(not quiet and terminal.err.is_terminal),
            )
            seconds = time.perf_counter() - began
            if found.note:
                terminal.say(found.note)
            if found.unused:
                terminal.say(f"Not searched (constant, or all values but one too rare): {_list(found.unused)}.")
            listed = {"pairs": found.pairs_to_dict(), "columns": found.columns_to_dict()}
            about: dict[str, Any] = {
                "title": table.path.name,
                "task": table.target.task,
                "target": table.target.name,
                "n_rows": found.n_samples,
                "notes": list(terminal.notes),
                "seed": seed,
                "command": command_line(),
            }
            record = {
                "file": str(file),
                **about,
                "n_columns": len(found.names),
                "method": found.method,
                "n_tests": found.n_tests,
                "n_permutations": found.n_permutations,
                "n_significant_pairs": len(found.significant_pairs()),
                "n_significant_columns": len(found.significant_columns()),
                **{name: [dict(zip(one, row)) for row in zip(*one.values())] for name, one in listed.items()},
                "fitted": found.fitted,
                "not_searched": found.unused,
                "summary": found.summary,
                "note": found.note,
                "seconds": seconds,
            }
            for name, one in listed.items():
                text = csv_text(list(one), zip(*one.values()))
                (folder / FILES[f"{name}_csv"]).write_text(text, encoding="utf-8", newline="")
            (folder / FILES["pairs_json"]).write_text(json_text(record), encoding="utf-8")
            settings = {
                "method": found.method,
                "degree": degree,
                "permutations": found.n_permutations,
                "columns whose own effect was taken out": ", ".join(found.fitted) or None,
                "seed": seed,
            }
            created = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
            report(
                found,
                path=folder / FILES["report"],
                settings=settings,
                created=created,
                **about,
            )
        record["files"] = {name: str(out / path) for name, path in FILES.items()}
        terminal.finish(record, show_pairs(record), open_report)


def gather_columns(table: DataTable) -> tuple[Any, list[str], dict[str, dict[float, str]]]:
    """Collect the columns of a table as numbers, their names, and the names of the categories of columns of text.

    Gaps in numbers are filled by the median; a missing text is a category of its own.
    """
    import numpy as np
    import scipy.sparse as sp

    from tamiz.tables import TableEncoder, list_features

    numeric = [feature for feature in list_features(table) if feature.category is None]
    matrix = TableEncoder(features=numeric).fit(table).transform(table)
    names = [feature.name for feature in numeric]
    level_names, codes = {}, []
    for index, column in sorted(table.texts.items()):
        names.append(table.names[index])
        codes.append(column.codes.astype(np.float32))
        categories = {float(code): category for code, category in enumerate(column.categories)}
        level_names[table.names[index]] = {-1.0: "(missing)", **categories}
    if codes and not sp.issparse(matrix):
        matrix = np.column_stack([matrix, *codes])
    return matrix, names, level_names


def _list(names: Any, limit: int = 5) -> str:
    from tamiz.report.text import shorten

    names = list(names)
    more = len(names) - limit
    return ", ".join(shorten(name, 40) for name in names[:limit]) + (f" and {more:,} more" if more > 0 else "")
