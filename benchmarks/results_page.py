"""Write docs/results.md and the pages of single runs from the folders of finished runs of ``tamiz reproduce``.

    python benchmarks/results_page.py RUN... --out docs/results.md

Tables, pictures and every score of a run go into a folder beside the summary, named after the folder of the run. The summary has
one line for each data set and recipe of all runs that have a page there, those of earlier calls too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tamiz._utils.files import write_atomic
from tamiz.paper.protocol import PROTOCOLS, REFERENCES
from tamiz.paper.tables import format_cell, markdown_table

#: Methods with a column of their own.
VARIANTS_SHOWN = {"e2efs": "E2E-FS", "e2efs-soft": "E2E-FS-Soft"}
#: Methods that are not known from elsewhere: not what E2E-FS is compared with.
OWN_METHODS = {*VARIANTS_SHOWN, "e2efs-ranking", "pairs", "pair-search"}

_INTRODUCTION = """# Results

Written by `benchmarks/results_page.py` from finished runs, whose tables stand on pages of their own (links in the first
column). Each number is that of a method's best row (its best learner, where there are several); in brackets the published
number of that row, where it was published: the paper's, or that of another publication where the page of the run says so. The
best method is the best of all that select; random features and all features stand on the pages of the runs. Data sets that are
not the paper's own are labelled: REBUILT (the same construction, other rows) or SUBSET. [paper] and [tamiz] are the recipes of
the networks: the paper's, and the defaults of tamiz in the sources that the run names; runs were made beside other work, so
that their seconds are long. Images: WRN-10-1 on 2,000 images (CIFAR-10: 1,000), three runs, which take an hour of one
core; the paper's network, images and epochs would take about eight days for each variant and data set. CIFAR-100 is not run: its
file is not at hand.

Sources 419efa8ad4f3 are the latest of these pages. Computed again with them, 72 rows of DEXTER (fd99dfdb1cce) are the same to
the last digit. GINA and GISETTE are of 284640ed9516; since then columns are fitted in an order of their contents, and of 36
rows of GINA that were computed again 3 differ, by 0.003 at most.
"""


def headline_rows(scores: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Choose the lines of the summary from (protocol, page, score) of all runs, in their order.

    Runs of one protocol may share a data set: their scores are compared if the basis is the same. Random features and all
    features are no selections and are left out.
    """
    groups: dict[Any, list[tuple[str, Mapping[str, Any]]]] = {}
    for protocol, page, score in scores:
        if score["method"] not in REFERENCES:
            place = (protocol, score["dataset"], score["measure"], score["basis"])
            groups.setdefault(place, []).append((page, score))
    rows = []
    for (protocol, *_), found in groups.items():
        recipes = sorted({score["recipe"] for _, score in found if score["recipe"]}) or [None]
        for recipe in recipes:
            # What trains no network is the same whatever the recipe.
            pool = [(page, score) for page, score in found if score["recipe"] in (recipe, None)]

            def best(wanted: Any, pool: Any = pool) -> Any:
                chosen = [pair for pair in pool if wanted(pair[1]["method"])]
                return max(chosen, key=lambda pair: pair[1]["value"], default=(None, None))

            page, first = best(lambda method: True)
            variants = {name: best(lambda method, name=name: method == name)[1] for name in VARIANTS_SHOWN}
            other = best(lambda method: method not in OWN_METHODS)[1]
            label = first["dataset"] if recipe is None else f"{first['dataset']} [{recipe}]"
            rows.append({"protocol": protocol, "page": page, "label": label, "best": first, **variants, "other": other})
    return rows


def show_score(score: Mapping[str, Any] | None, label: str = "") -> str:
    """Write a score with its published number in brackets."""
    if score is None:
        return "–"
    published = "" if score["published"] is None else f" ({format_cell(score['published'])})"
    return (f"{label}: " if label else "") + format_cell(score["value"]) + published


def summary_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the table of the summary; the name of a protocol is a link to the page of the run."""
    lines = []
    for row in rows:
        line = [f"[{row['protocol']}]({row['page']})", row["label"], show_score(row["best"], row["best"]["label"])]
        line += [
            show_score(row[name], "" if row[name] is None else row[name]["label"].partition(", ")[2])
            for name in VARIANTS_SHOWN
        ]
        lines.append([*line, show_score(row["other"], "" if row["other"] is None else row["other"]["label"])])
    header = ["run", "data set", "best method", *VARIANTS_SHOWN.values(), "best other method"]
    return markdown_table(header, lines, 2)


def basis_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say what is measured in each protocol; data sets are named where they differ in it."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in rows:
        place = (row["protocol"], row["best"]["measure"], row["best"]["basis"])
        found.setdefault(place, {})[row["best"]["dataset"]] = None
    protocols = [protocol for protocol, _, _ in found]
    lines = []
    for (protocol, measure, basis), names in found.items():
        where = f" ({', '.join(names)})" if protocols.count(protocol) > 1 else ""
        link = " " if basis.startswith("of ") else ", "
        lines.append(f"- {protocol}{where}: {measure}{link}{basis}.")
    return "\n".join(lines)


def timing(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Write the seconds of a run (data set -> method -> seconds) as a table, methods down and data sets across."""
    if not seconds:
        return ""
    methods = dict.fromkeys(method for found in seconds.values() for method in found)
    lines = [
        [method, *(f"{found[method]:.3g}" if method in found else "–" for found in seconds.values())]
        for method in methods
    ]
    return "## Seconds\n\nMedian seconds of one selection.\n\n" + markdown_table(["method", *seconds], lines)


def made_by(record: Mapping[str, Any]) -> str:
    """Say how a run was made: command, date, sources, versions and processor."""
    versions = ", ".join(f"{package} {version}" for package, version in record["versions"].items())
    how = f"{' and '.join(record['sources'])}; {versions}; {record['processor']}"
    return f"Made by `{record['command']}` on {record['date']} ({how})."


def write_run(folder: Path, pages: Path) -> None:
    """Write the page of a run, named after its folder, every score beside it, and its pictures."""
    content, record = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("results", "run"))
    name = folder.name
    heading, _, text = (folder / "results.md").read_text(encoding="utf-8").strip().partition("\n")
    pictures = {f"{name}-{path.name}": path for path in sorted(folder.glob("*.png"))}
    shown = [f"![{path.stem} of the run](../images/{picture})" for picture, path in pictures.items()]
    # The tables were written as a section of a page; here they are all of it.
    text = re.sub(r"^#(?=##)", "", text, flags=re.MULTILINE)
    link = f"Every score: [{name}.json.gz]({name}.json.gz)."
    parts = [f"# {heading.lstrip('# ')}", f"{made_by(record)} {link}", text, *shown, timing(record["seconds"])]
    page = without_breaks("\n\n".join(part.strip() for part in parts if part.strip()) + "\n")
    raw = json.dumps({"run": record, **content}, ensure_ascii=False, separators=(",", ":"))
    contents = {pages / f"{name}.md": page, pages / f"{name}.json.gz": gzip.compress(raw.encode(), mtime=0)}
    contents |= {pages.parent / "images" / picture: path.read_bytes() for picture, path in pictures.items()}
    for place, content in contents.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, content)


def write_page(folders: Sequence[Path], target: Path) -> None:
    """Write the pages of some runs, then the summary of all runs that have a page."""
    pages = target.with_suffix("")
    for folder in folders:
        write_run(folder, pages)
    order, found = list(PROTOCOLS), []
    for path in sorted(pages.glob("*.json.gz"), key=lambda path: path.name.removesuffix(".json.gz")):
        content, page = json.loads(gzip.decompress(path.read_bytes())), path.with_suffix("").with_suffix(".md")
        found.append((order.index(content["protocol"]), f"{pages.name}/{page.name}", page, content))
    found.sort(key=lambda run: run[0])
    rows = headline_rows(
        [(content["protocol"], link, score) for _, link, _, content in found for score in content.get("scores", ())]
    )
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for _, _, page, _ in found]
    links = [
        f"- [{title}]({link}). {made_by(content['run'])}"
        for title, (_, link, _, content) in zip(titles, found, strict=True)
    ]
    parts = [
        _INTRODUCTION.strip(),
        *([summary_table(rows), basis_lines(rows)] if rows else []),
        "## Runs",
        "\n".join(links),
    ]
    write_atomic(target, without_breaks("\n\n".join(parts) + "\n"))


def without_breaks(text: str) -> str:
    """Keep deviations with their numbers: a narrow cell would break before the sign."""
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, default=Path("docs/results.md"))
    given = parser.parse_args()
    write_page(given.folders, given.out)
