"""``tamiz pairs``: find columns of a table that act together on its target."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from tamiz.cli.command import add_command, command_line, show_results
from tamiz.cli.options import Open, ResultOptions, Seed, TargetOptions


class SearchMethod(StrEnum):
    """Name the ways to search."""

    auto = "auto"
    full = "full"
    sketch = "sketch"


@dataclass(frozen=True, kw_only=True)
class PairsOptions(ResultOptions, TargetOptions):
    """Options of ``tamiz pairs``."""

    n_pairs: Annotated[int, typer.Option("--pairs", "-n", metavar="N", help="List at most so many pairs.", min=1)] = 100
    degree: Annotated[
        int,
        typer.Option(
            "--degree",
            metavar="N",
            help="Degree of the curves of each column: 1 finds products, 2 also other shapes. The time grows with its square.",
            min=1,
            max=4,
        ),
    ] = 2
    n_permutations: Annotated[
        int | None,
        typer.Option(
            "--permutations",
            metavar="N",
            help="Permutations that correct the p values; each takes one more search. 0 corrects for the number of pairs.",
            min=0,
            show_default="20 to 100, as needed",
        ),
    ] = None
    method: Annotated[
        SearchMethod,
        typer.Option(
            "--method", help="full looks at all pairs, sketch at likely ones; auto: sketch above 20,000 columns."
        ),
    ] = SearchMethod.auto
    seed: Seed = 0
    n_jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", help="Threads. Default: all cores.", min=1, show_default=False),
    ] = None
    open_report: Open = False


def pairs(options: PairsOptions) -> None:
    """Find columns that act together: pairs that say more about the target than both columns alone.

    Prints the strongest pairs with p values that are corrected for all pairs; writes all pairs and columns (CSV, JSON) and
    a report with a picture of each of the strongest pairs.
    """
    from tamiz.cli.console import Terminal
    from tamiz.cli.pairs_run import run_pair_search
    from tamiz.cli.show import show_pairs

    terminal = Terminal(options.quiet, options.json)
    record = run_pair_search(options, terminal, command=command_line())
    show_results(record, show_pairs(record), terminal, options.open_report)


def register_pairs(app: typer.Typer) -> None:
    """Add the command."""
    add_command(
        app,
        pairs,
        PairsOptions,
        first=("file", "target", "task", "n_pairs"),
        epilog="Example: tamiz pairs genes.csv --target tumour",
        short_help="Find columns that act together.",
    )
