"""``tamiz compare``: compare methods on the same folds of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tamiz.baselines.registry import available
from tamiz.cli.command import add_command, command_line, show_results
from tamiz.cli.fold_options import FoldOptions
from tamiz.cli.options import NetworkOption, Open, ResultOptions


@dataclass(frozen=True, kw_only=True)
class CompareArguments(ResultOptions, FoldOptions):
    """Options of ``tamiz compare``."""

    k: Annotated[
        str | None,
        typer.Option(
            "-k", metavar="LIST", help="Numbers of features to keep, separated by commas.", show_default="5,10,20"
        ),
    ] = None
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="LIST",
            help=f"Separated by commas: {', '.join(available())}.",
            show_default=False,
        ),
    ] = None
    network: NetworkOption = "linear"
    open_report: Open = False


def compare(arguments: CompareArguments) -> None:
    """Compare several selection methods on the same folds of one table.

    Writes a report, and the scores as CSV and JSON; prints the score of each method for each k, its stability, time and
    rank, with marks from corrected resampled t tests. All features and random ones are lines to compare with.
    """
    from tamiz.cli.early import check_arguments

    check_arguments(arguments.file, arguments.k, arguments.network)
    from tamiz.cli.compare_run import CompareOptions, run_compare
    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_compare

    terminal = Terminal(arguments.quiet, arguments.json)
    options = CompareOptions(
        table=arguments,
        k_values=arguments.k,
        methods=arguments.methods,
        out=arguments.folder(arguments.file, "tamiz-compare-"),
        network=arguments.network,
        force=arguments.force,
        spreadsheet_safe=arguments.spreadsheet_safe,
        command=command_line(),
    )
    record = run_compare(options, terminal)
    show_results(record, show_compare(record), terminal, arguments.open_report)


def register_compare(app: typer.Typer) -> None:
    """Add the command."""
    add_command(
        app,
        compare,
        CompareArguments,
        first=("file", "k", "methods", "target", "task", "network"),
        epilog="Example: tamiz compare genes.csv -t tumour -k 5,10,20 -m e2efs-soft,fisher",
        short_help="Compare methods on the same folds of a table.",
    )
