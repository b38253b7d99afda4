"""``tamiz pairs``: find columns of a table that act together on its target."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Annotated, Any

from tamiz.cli import options as opt

if TYPE_CHECKING:
    from tamiz.tables import DataTable

DEGREE_HELP = "Degree of the curves of each column: 1 finds products, 2 also rings. The time grows with its square."
SHUFFLES_HELP = (
    "Permutations that correct the p values; each takes one more search. 0 corrects for the number of pairs."
)
METHOD_HELP = "full looks at all pairs, sketch at likely ones; auto: sketch above 20,000 columns."
Count = Annotated[int, opt.keeping("--pairs -n N", "List at most so many pairs.", min=1, show_default=True)]
Degree = Annotated[int, opt.scoring("--degree N", DEGREE_HELP, min=1, max=4, show_default=True)]
Shuffles = Annotated[
    int | None, opt.scoring("--permutations N", SHUFFLES_HELP, min=0, show_default="20 to 100, as needed")
]
Method = Annotated[opt.SearchMethod, opt.scoring("--method", METHOD_HELP, show_default=True)]


def pairs(
    file: opt.TablePath,
    n_pairs: Count = 100,
    target: opt.Target = None,
    task: opt.TaskOption = None,
    ignore: opt.Ignore = None,
    categorical: opt.Categorical = None,
    read: opt.Read = None,
    degree: Degree = 2,
    permutations: Shuffles = None,
    method: Method = opt.SearchMethod.auto,
    seed: opt.Seed = 0,
    out: opt.Out = None,
    force: opt.Force = False,
    jobs: opt.Jobs = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    open_report: opt.Open = False,
) -> None:
    """Find columns that act together: pairs that say more about the target than both columns alone.

    Prints the strongest pairs with p values that are corrected for all pairs;
    writes all pairs and columns (CSV, JSON) and a report with a picture of each
    of the strongest pairs.
    """
    wanted = opt.one_target(target, "pairs")
    opt.check_paths(file)

    from tamiz._utils.text import list_some
    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_pairs
    from tamiz.pairs import find_pairs
    from tamiz.pairs.columns import read_columns
    from tamiz.report.text import csv_text
    from tamiz.tables import read_table

    with Terminal(quiet, json) as terminal:
        with terminal.results(out, file, "tamiz-pairs-", force):
            table = read_table(
                file,
                target=wanted,
                task=task and str(task),
                need_target=True,
                # Text is not encoded one-hot here but searched as categories.
                report=lambda message: None if message.startswith("Encoded: ") else terminal.say(message),
                **opt.parse_reading(read, ignore, categorical),
            )
            matrix, names, level_names = gather_columns(table)
            if level_names:
                terminal.say(f"Searched as categories: {list_some(list(level_names))}.")
            began = time.perf_counter()
            coded = [place for place, name in enumerate(names) if name in level_names] or None
            found = find_pairs(
                dataclasses.replace(read_columns(matrix, categorical=coded), names=names, levels=level_names),
                table.y,
                task=str(table.task),
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
                unused = list_some(list(found.unused))
                terminal.say(f"Not searched (constant, or all values but one too rare): {unused}.")
            about: dict[str, Any] = {
                "title": table.path.name,
                "task": table.task,
                "target": table.target_name,
                "n_rows": found.n_samples,
                "notes": list(terminal.notes),
                "seed": seed,
                "command": terminal.command,
            }
            told = ("method", "n_tests", "n_permutations", "fitted", "summary", "note")
            record = {
                "file": str(file),
                **about,
                "n_columns": len(found.names),
                **{name: getattr(found, name) for name in told},
                "n_significant_pairs": len(found.significant_pairs()),
                "n_significant_columns": len(found.significant_columns()),
                "not_searched": found.unused,
                "seconds": seconds,
            }
            for name, listed in (("pairs", found.pairs_to_dict()), ("columns", found.columns_to_dict())):
                record[name] = [dict(zip(listed, row)) for row in zip(*listed.values())]
                terminal.write(f"{name}_csv", f"{name}.csv", csv_text(list(listed), zip(*listed.values())))
            terminal.write("pairs_json", "pairs.json", record)
            settings = {"method": found.method, "degree": degree, "permutations": found.n_permutations, "seed": seed}
            settings["columns whose own effect was taken out"] = ", ".join(found.fitted) or None
        terminal.report(found, about, settings=settings)
        terminal.finish(record, show_pairs, open_report)


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
