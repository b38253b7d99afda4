"""Show results as tables that fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tamiz.report.text import format_column, format_p_value, format_seconds, shorten

_MOST_ROWS = 20


def _number(value: float | None, signed: bool = False) -> str:
    if value is None:
        return "–"
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def _range(score: Mapping[str, Any], signed: bool = False) -> str:
    if score["low"] is None:
        return ""
    return f"{_number(score['low'], signed)} to {_number(score['high'], signed)}"


def _table(*columns: tuple[str, str], title: str | None = None) -> Table:
    table = Table(
        box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False, padding=(0, 1, 0, 0)
    )
    for name, justify in columns:
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    return table


def scores_table(record: Mapping[str, Any]) -> RenderableType:
    """Return the scores of all features, of M and of M random ones, with differences and intervals."""
    scores = record["scores"]
    table = _table(
        ("columns", "left"),
        ("score", "right"),
        ("95 % interval", "left"),
        ("kept minus these", "right"),
        ("95 % interval", "left"),
        title=f"{scores['metric'].capitalize()} over {scores['n_folds']} held-out folds, the selection inside each",
    )
    lines = (
        (f"all {record['n_features']:,}", "all_features", "difference"),
        (f"{record['k']:,} kept", "kept", None),
        (f"{record['k']:,} random", "random_features", "difference_random"),
    )
    for label, key, difference in lines:
        gap = scores[difference] if difference else None
        table.add_row(
            label,
            _number(scores[key]["value"]),
            _range(scores[key]),
            _number(gap["value"], signed=True) if gap else "",
            _range(gap, signed=True) if gap else "",
            style="bold" if key == "kept" else None,
        )
    return table


def alert_lines(record: Mapping[str, Any]) -> RenderableType:
    """List the alerts, which come first: what to look at before the result is believed."""
    lines = [Text("! ", style="bold yellow").append(alert["message"], style="yellow") for alert in record["alerts"]]
    return Group(*lines)


def kept_table(record: Mapping[str, Any]) -> RenderableType:
    """Show the kept columns, best first; levels of a category are counted, the report lists them."""
    table = _table(("rank", "right"), ("column", "left"), ("weight", "right"), ("kept in folds", "left"))
    n_folds = record["scores"]["n_folds"]
    shown = record["selected"][:_MOST_ROWS]
    weights = format_column([kept["weight"] for kept in shown], signed=True)
    for kept, weight in zip(shown, weights, strict=True):
        share, levels = kept["fold_share"], len(kept["levels"])
        filled = round(share * 10)
        table.add_row(
            str(kept["rank"]),
            Text(shorten(kept["column"], 36)),
            f"{levels} levels" if levels else weight,
            Text(f"{'━' * filled}{'╌' * (10 - filled)} {round(share * n_folds)} of {n_folds}"),
        )
    parts: list[RenderableType] = [table]
    more = len(record["selected"]) - _MOST_ROWS
    if more > 0:
        parts.append(Text(f"and {more:,} more in selected.csv\n", style="dim"))
    return Group(*parts)


def stability_line(record: Mapping[str, Any]) -> RenderableType:
    """Return a sentence on how alike the selections of the folds are, beside what shuffled targets give."""
    value, null = record["stability"], record["null"]
    if value is None:
        return Text("")
    said = f"Stability {value:.2f} (1 is the same set in every fold)"
    if null is None or null["stability"] is None:
        return Text(f"{said}; what shuffled targets give was not computed.")
    said += f"; shuffled targets give {null['stability']:.2f}, up to {null['highest_stability']:.2f}"
    words = "more alike than chance" if value > null["highest_stability"] else "no more alike than chance"
    always = sum(kept["fold_share"] == 1 for kept in record["selected"])
    return Text(
        f"{said}: the sets are {words}. Every fold kept {always} of these columns; with shuffled targets every fold "
        f"keeps {null['always_kept']:.1f} on average."
    )


def verdict_line(record: Mapping[str, Any]) -> RenderableType:
    """Return the verdict, and the score on a test file if there was one."""
    lines: list[RenderableType] = [Text(record["verdict"], style="bold")]
    test = record["test"]
    if test is not None:
        lines.append(
            Text(f"On the {test['n_rows']:,} rows of {test['file']}: {_number(test['value'])} ({_range(test)}).")
        )
    return Group(*lines)


def show_select(record: Mapping[str, Any]) -> Group:
    """Return everything ``tamiz select`` prints."""
    return Group(
        alert_lines(record),
        Text(""),
        scores_table(record),
        kept_table(record),
        verdict_line(record),
        stability_line(record),
        files_lines(record),
    )


def files_lines(record: Mapping[str, Any]) -> Group:
    """Return where the results are; the report on a line of its own."""
    from pathlib import Path

    files = dict(record["files"])
    first = files.pop("report", None)
    rest = ", ".join(Path(path).name for path in files.values())
    folder = Path(next(iter(record["files"].values()))).parent
    lines: list[RenderableType] = [Text(f"Written to {folder}: {rest}")]
    if first is not None:
        lines.append(Text(f"Report: {first}", style="bold"))
    return Group(*lines)


def show_compare(record: Mapping[str, Any]) -> Group:
    """Return the score of every method for every M, with stability, time, rank and mark; references come last."""
    sizes = sorted({result["k"] for result in record["results"]})
    shown = sizes if len(sizes) <= 4 else [*sizes[:3], sizes[-1]]
    table = _table(
        ("method", "left"),
        *((f"k={size}", "right") for size in shown),
        ("stable", "right"),
        ("time", "right"),
        ("rank", "right"),
        ("", "left"),
        title=f"Mean {record['metric']}, the same folds for all",
    )
    ranks = {rank["method"]: rank for rank in record["ranks"]}
    methods = list(dict.fromkeys(result["method"] for result in record["results"]))
    ordered = sorted(ranks, key=lambda name: ranks[name]["mean_rank"])
    others = [name for name in methods if name not in ranks and name not in record["references"]]
    for position, name in enumerate(ordered + others):
        rank = ranks.get(name)
        mark = "" if rank is None else "best" if position == 0 else "worse *" if rank["significant"] else ""
        mean = "–" if rank is None else f"{rank['mean_rank']:.1f}"
        table.add_row(*_compare_cells(record, name, shown, mean, mark), style="bold" if mark == "best" else None)
    references = [name for name in methods if name in record["references"]]
    for position, name in enumerate(references):
        if position == 0:
            table.add_section()
        table.add_row(*_compare_cells(record, name, shown, "", ""), style="dim")
    return Group(Text(""), table, Text(compare_note(record), style="dim"), files_lines(record))


def _compare_cells(
    record: Mapping[str, Any], name: str, sizes: list[int], rank: str, mark: str
) -> list[RenderableType]:
    results = [result for result in record["results"] if result["method"] == name]
    by_size = {result["k"]: result for result in results}
    seconds = [result["seconds"] for result in results if result["seconds"] is not None]
    stable = [result["stability"] for result in results if result["stability"] is not None]
    return [
        name,
        *(_number(by_size[size]["score"]) for size in sizes),
        f"{sum(stable) / len(stable):.2f}" if stable and seconds else "–",
        format_seconds(sum(seconds) / len(seconds)) if seconds else "failed",
        rank,
        mark,
    ]


def compare_note(record: Mapping[str, Any]) -> str:
    """Return what the tests of a comparison tell."""
    n_pairs, visible = len(record["tests"]), record["smallest_visible_difference"]
    if n_pairs == 0:
        return "Nothing was tested: fewer than two methods could be compared."
    test = f"corrected t test over folds, Holm over {n_pairs} pairs" if n_pairs > 1 else "corrected t test over folds"
    limit = "" if visible is None else f" With these folds differences below about {visible:.3f} cannot be told."
    if any(rank["significant"] for rank in record["ranks"]):
        return f"* worse than the best, p < 0.05 ({test}).{limit}"
    return f"No method is significantly worse than the best ({test}).{limit}"


def show_pairs(record: Mapping[str, Any]) -> Group:
    """Return the strongest pairs, and how much of the table matters."""
    table = _table(
        ("first", "left"),
        ("second", "left"),
        ("strength", "right"),
        ("corrected p", "right"),
        ("shape", "left"),
        title="Strongest pairs, beyond what both columns say alone",
    )
    found = record["n_significant_pairs"]
    # Beyond the significant pairs a few others show where chance begins.
    shown = record["pairs"][: min(_MOST_ROWS, max(found + 3, 5))]
    for pair in shown:
        star = " *" if pair["p_value"] < 0.05 else "  "
        table.add_row(
            Text(shorten(pair["first"], 18)),
            Text(shorten(pair["second"], 18)),
            f"{pair['strength']:.2f}",
            format_p_value(pair["p_value"]) + star,
            pair["shape"],
            style=None if pair["p_value"] < 0.05 else "dim",
        )
    parts: list[RenderableType] = [Text(""), table] if shown else []
    more = len(record["pairs"]) - len(shown)
    if more > 0:
        parts.append(Text(f"and {more:,} more in pairs.csv", style="dim"))
    parts.append(Text(record["summary"] if shown else record["note"]))
    return Group(*parts, files_lines(record))


def show_apply(record: Mapping[str, Any]) -> Group:
    """Return the first predictions, and how many of each class."""
    shown_targets = record["targets"][:4]  # as many as a terminal of 80 columns has room for
    table = _table(("row", "right"), *((f"predicted {shorten(name, 30)}", "left") for name in shown_targets))
    for number, found in enumerate(record["predictions"][:10], start=1):
        values = found[: len(shown_targets)] if isinstance(found, list) else [found]
        cells = [shorten(value, 40) if isinstance(value, str) else f"{value:.6g}" for value in values]
        table.add_row(str(number), *(Text(cell) for cell in cells))
    lines: list[RenderableType] = [table]
    if record["n_rows"] > 10:
        lines.append(Text(f"and {record['n_rows'] - 10:,} more rows", style="dim"))
    if record["counts"]:
        shown = list(record["counts"].items())
        words = ", ".join(f"{shorten(label, 20)}: {count:,}" for label, count in shown[:8])
        lines.append(Text(words + (f" and {len(shown) - 8} more classes" if len(shown) > 8 else "")))
    return Group(*lines, files_lines(record))


def show_datasets(listings: list[Any], home: str) -> RenderableType:
    """Return the datasets of the paper: what is there, what a download would fetch."""
    from tamiz._utils.progress import format_size

    table = _table(
        ("name", "left"), ("rows", "right"), ("columns", "right"), ("classes", "right"), ("", "left"), ("size", "right")
    )
    for item in listings:
        place = "here" if item.in_data_home else "to download" if "(" in item.origin else "not here"
        table.add_row(
            f"{item.name}{' *' if item.label else ''}",
            f"{item.shape[0]:,}",
            f"{item.shape[1]:,}",
            "" if item.n_classes is None else str(item.n_classes),
            Text(place, style="green" if item.in_data_home else "dim"),
            "" if item.size is None else format_size(item.size),
        )
    note = "* a stand-in for the genuine set (rebuilt, or a part); --json tells where each would come from."
    return Group(table, Text(note, style="dim"), Text(f"Data home: {home} (set TAMIZ_DATA_HOME to change it)"))
