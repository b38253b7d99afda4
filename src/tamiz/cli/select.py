"""``tamiz select``: keep the features of a table that predict its target best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tamiz.cli.command import add_command, command_line, show_results
from tamiz.cli.options import NetworkOption, Open, ResultOptions, TableOptions, VariantOption


@dataclass(frozen=True, kw_only=True)
class SelectOptions(ResultOptions, TableOptions):
    """Options of ``tamiz select``."""

    k: Annotated[
        str, typer.Option("-k", metavar="M", help="How many features to keep: a number, or a fraction such as 0.1.")
    ] = "10"
    variant: VariantOption = "soft"
    network: NetworkOption = "linear"
    open_report: Open = False


def select(options: SelectOptions) -> None:
    """Keep the k features of a table that predict its target best, and say how sure that is.

    Writes the kept columns (CSV, JSON), the reduced table, the fitted model and a report; prints the score with all
    features, with k and with k random ones, from cross-validation with the selection inside each fold.
    """
    from tamiz.cli.early import check_arguments

    check_arguments(options.file, options.k, options.network)
    from tamiz.cli.console import Terminal
    from tamiz.cli.select_run import run_select
    from tamiz.cli.show import show_select

    terminal = Terminal(options.quiet, options.json)
    record = run_select(options, terminal, command=command_line())
    show_results(record, show_select(record), terminal, options.open_report)


def register_select(app: typer.Typer) -> None:
    """Add the command."""
    add_command(
        app,
        select,
        SelectOptions,
        first=("file", "k", "target", "task", "variant", "network"),
        epilog="Example: tamiz select genes.csv --target tumour -k 20",
        short_help="Keep the k best features of a table, with a report.",
    )
