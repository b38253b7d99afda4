"""Show results as tables that fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tamiz._utils.text import WARNING, counted
from tamiz.cli.errors import name_options
from tamiz.report.text import clean_text, format_column, format_p_value, format_score, shorten

_MOST_ROWS = 20
Record = Mapping[str, Any]


def _table(columns: Sequence[str], rows: Iterable[tuple[Sequence[Any], str | None]], title: str | None = None) -> Table:
    """Make a table from cells and the style of each row; a column whose name begins with ">" is set to the right."""
    table = Table(
        box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False, padding=(0, 1, 0, 0)
    )
    for name in columns:
        table.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", no_wrap=True)
    for cells, style in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), style=style)
    return table


def _range(score: Record, signed: bool = False) -> str:
    if score["low"] is None:
        return ""
    return f"{format_score(score['low'], signed)} to {format_score(score['high'], signed)}"


def _files(record: Record) -> Group:
    """Tell where the results are; the report on a line of its own."""
    paths = {kind: Path(path) for kind, path in record["files"].items()}
    names = ", ".join(path.name for kind, path in paths.items() if kind != "report")
    lines = [Text(f"Written to {next(iter(paths.values())).parent}: {names}")]
    return Group(*lines, *([Text(f"Report: {paths['report']}", style="bold")] if "report" in paths else []))


def show_select(record: Record, said: Sequence[str] = ()) -> Group:
    """Show a study: alerts first, unless said before, then scores, kept columns, verdict, stability and files.

    Levels of a category are counted; the report lists them.
    """
    before = {message.removeprefix(WARNING) for message in said}
    messages = [clean_text(name_options(alert["message"])) for alert in record["alerts"]]
    parts: list[RenderableType] = [
        Text("! ", style="bold yellow").append(text, style="yellow") for text in messages if text not in before
    ]
    scores, k, n_folds = record["scores"], record["k"], record["scores"]["n_folds"]
    rows: list[tuple[Sequence[Any], str | None]] = []
    for label, key, difference in (
        (f"all {record['n_features']:,}", "all_features", "difference"),
        (f"{k:,} kept", "kept", None),
        (f"{k:,} random", "random_features", "difference_random"),
    ):
        gap = scores[difference] if difference else None
        cells = [label, format_score(scores[key]["value"]), _range(scores[key])]
        cells += ["", ""] if gap is None else [format_score(gap["value"], signed=True), _range(gap, signed=True)]
        rows.append((cells, "bold" if key == "kept" else None))
    title = f"{scores['metric'].capitalize()} over {n_folds} held-out folds, the selection inside each"
    columns = ("columns", ">score", "95 % interval", ">kept minus these", "95 % interval")
    parts += [Text(""), _table(columns, rows, title)]

    rows, shown = [], record["selected"][:_MOST_ROWS]
    for kept, weight in zip(shown, format_column([kept["weight"] for kept in shown], signed=True), strict=True):
        share, levels = kept["fold_share"], len(kept["levels"])
        bar = "━" * round(share * 10) + "╌" * (10 - round(share * 10))
        name, weight = shorten(kept["column"], 36), counted(levels, "level") if levels else weight
        rows.append(((str(kept["rank"]), name, weight, f"{bar} {round(share * n_folds)} of {n_folds}"), None))
    parts.append(_table((">rank", "column", ">weight", "kept in folds"), rows))
    if len(record["selected"]) > _MOST_ROWS:
        parts.append(Text(f"and {len(record['selected']) - _MOST_ROWS:,} more in selected.csv\n", style="dim"))

    parts.append(Text(record["verdict"], style="bold"))
    test, stability, null = record["test"], record["stability"], record["null"]
    if test is not None:
        score = f"{format_score(test['value'])} ({_range(test)})"
        parts.append(Text(f"On the {counted(test['n_rows'], 'row')} of {test['file']}: {score}."))
    if stability is not None:
        words = f"Stability {stability:.2f} (1 is the same set in every fold); "
        if len({*record["k_of_folds"]}) > 1:
            words = f"The folds chose {', '.join(map(str, record['k_of_folds']))} columns for themselves. {words}"
        if null is None or null["stability"] is None:
            words += "what shuffled targets give was not computed."
        else:
            always = sum(kept["fold_share"] == 1 for kept in record["selected"])
            words += (
                f"shuffled targets give {null['stability']:.2f}, up to {null['highest_stability']:.2f}: the sets are "
                f"{'' if stability > null['highest_stability'] else 'no '}more alike than chance. Every fold kept {always} of "
                "these columns."
            )
        parts.append(Text(words))
    return Group(*parts, _files(record))


def show_compare(record: Record) -> Group:
    """Show the score of every method for every M, with stability, time, rank and mark; references come last."""
    sizes = sorted({result["k"] for result in record["results"]})
    shown = sizes if len(sizes) <= 4 else [*sizes[:3], sizes[-1]]
    ranks = {rank["method"]: rank for rank in record["ranks"]}
    methods = list(dict.fromkeys(result["method"] for result in record["results"]))
    ordered = sorted(ranks, key=lambda name: ranks[name]["mean_rank"])
    best = ranks[ordered[0]]["mean_rank"] if ordered else None
    rest = [name for name in methods if name not in ranks]
    rows = []
    for name in [*ordered, *sorted(rest, key=lambda name: name in record["references"])]:
        results = [result for result in record["results"] if result["method"] == name]
        scores = {result["k"]: format_score(result["score"]) for result in results}
        seconds = [result["seconds"] for result in results if result["seconds"] is not None]
        stable = [result["stability"] for result in results if result["stability"] is not None]
        rank = ranks.get(name)
        mark = "best" if rank and rank["mean_rank"] == best else "worse *" if rank and rank["significant"] else ""
        cells = [name, *(scores[size] for size in shown)]
        cells.append(f"{sum(stable) / len(stable):.2f}" if stable and seconds else "–")
        cells.append(f"{sum(seconds) / len(seconds):.3f}" if seconds else "failed")
        cells += ["–" if rank is None else f"{rank['mean_rank']:.1f}", mark]
        rows.append((cells, "dim" if name in record["references"] else "bold" if mark == "best" else None))
    columns = ("method", *(f">k={size}" for size in shown), ">stable", ">seconds", ">rank", "")
    table = _table(columns, rows, f"Mean {record['metric']}, the same folds for all")
    n_pairs, visible = len(record["tests"]), record["smallest_visible_difference"]
    test = f"corrected t test over folds, Holm over {n_pairs} pairs" if n_pairs > 1 else "corrected t test over folds"
    note = f"No method is significantly worse than the best ({test})."
    if n_pairs == 0:
        note = "Nothing was tested: fewer than two methods could be compared."
    elif any(rank["significant"] for rank in record["ranks"]):
        note = f"* worse than the best, p < 0.05 ({test})."
    if n_pairs and visible is not None:
        note += f" With these folds differences below about {visible:.3f} cannot be told."
    return Group(Text(""), table, Text(note, style="dim"), _files(record))


def show_pairs(record: Record) -> Group:
    """Show the strongest pairs, and how much of the table matters."""
    # Beyond the significant pairs a few others show where chance begins.
    shown, rows = record["pairs"][: min(_MOST_ROWS, max(record["n_significant_pairs"] + 3, 5))], []
    for pair in shown:
        clear = pair["p_value"] < 0.05
        cells = [shorten(pair["first"], 18), shorten(pair["second"], 18), f"{pair['strength']:.2f}"]
        cells += [format_p_value(pair["p_value"]) + (" *" if clear else "  "), pair["shape"]]
        rows.append((cells, None if clear else "dim"))
    columns = ("first", "second", ">strength", ">corrected p", "shape")
    table = _table(columns, rows, "Strongest pairs, beyond what both columns say alone")
    more = len(record["pairs"]) - len(shown)
    parts: list[RenderableType] = [Text(""), table] if shown else []
    parts += [Text(f"and {more:,} more in pairs.csv", style="dim")] if more > 0 else []
    return Group(*parts, Text(record["summary"] if shown else record["note"]), _files(record))


def show_apply(record: Record) -> Group:
    """Show the first predictions, and how many of each class."""
    targets, rows = record["targets"][:4], []  # as many as a terminal of 80 columns has room for
    for number, found in enumerate(record["predictions"][:10], start=1):
        values = found[: len(targets)] if isinstance(found, list) else [found]
        cells = [shorten(value, 40) if isinstance(value, str) else f"{value:.6g}" for value in values]
        rows.append(((str(number), *cells), None))
    lines: list[RenderableType] = [_table((">row", *(f"predicted {shorten(name, 30)}" for name in targets)), rows)]
    if record["n_rows"] > 10:
        lines.append(Text(f"and {counted(record['n_rows'] - 10, 'more row')}", style="dim"))
    counts = list((record["counts"] or {}).items())
    if counts:
        words = ", ".join(f"{shorten(label, 20)}: {count:,}" for label, count in counts[:8])
        lines.append(Text(words + (f" and {len(counts) - 8} more classes" if len(counts) > 8 else "")))
    return Group(*lines, _files(record))


def show_datasets(record: Record) -> Group:
    """Show the datasets of the paper: what is there, what a download would fetch."""
    from tamiz._utils.progress import format_size

    rows = []
    for item in record["datasets"]:
        place = "here" if item["in_data_home"] else "to download" if "(" in item["origin"] else "not here"
        cells = [f"{item['name']}{' *' if item['label'] else ''}", *(f"{size:,}" for size in item["shape"][:2])]
        cells += ["" if item["n_classes"] is None else str(item["n_classes"]), place]
        cells.append("" if item["size"] is None else format_size(item["size"]))
        rows.append((cells, None if place == "here" else "dim"))
    table = _table(("name", ">rows", ">columns", ">classes", "", ">size"), rows)
    note = "* a stand-in for the genuine set (rebuilt, or a part); --json tells where each would come from."
    home = f"Data home: {record['data_home']} (set TAMIZ_DATA_HOME to change it)"
    return Group(table, Text(note, style="dim"), Text(home))
