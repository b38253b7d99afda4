"""``tamiz select``: keep the features of a table that predict its target best."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from tamiz.cli.command import add_command, command_line, show_results
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.fold_options import SelectionFoldOptions
from tamiz.cli.options import NetworkOption, Open, ResultOptions, VariantOption


class Missing(StrEnum):
    """Name what is done about missing numbers."""

    median = "median"
    indicator = "indicator"


@dataclass(frozen=True, kw_only=True)
class SelectOptions(ResultOptions, SelectionFoldOptions):
    """Options of ``tamiz select``."""

    k: Annotated[
        str | None,
        typer.Option(
            "-k",
            metavar="M",
            help="How many columns to keep: a number, a fraction such as 0.1, or auto: the fewest that score as well as the "
            "best number, within one standard error on folds inside the training rows.",
            show_default="auto",
        ),
    ] = None
    variant: VariantOption = "soft"
    network: NetworkOption = "linear"
    split_categories: Annotated[
        bool,
        typer.Option("--split-categories", help="Keep single categories of a column of text, each counted in -k."),
    ] = False
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="A column that is always kept, and counts towards -k: a name, a number, a range or a pattern, as for "
            "--ignore. May be repeated.",
            show_default=False,
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop",
            metavar="COLUMN",
            help="A column that is never kept, but listed, last. May be repeated.",
            show_default=False,
        ),
    ] = None
    costs: Annotated[
        list[str] | None,
        typer.Option(
            "--costs",
            metavar="NAME=COST",
            help="What a column costs, or a CSV file of names and costs; others cost 1. May be repeated.",
            show_default=False,
        ),
    ] = None
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SUM",
            help="Instead of -k: the kept columns together cost at most this, and nothing left out would still fit.",
            show_default=False,
        ),
    ] = None
    missing: Annotated[
        Missing,
        typer.Option("--missing", help="Missing numbers: the median, or also an indicator that the model reads."),
    ] = Missing.median
    open_report: Open = False

    def __post_init__(self) -> None:
        """Raise if both -k and --budget are given, or costs without a budget."""
        super().__post_init__()
        if self.budget is not None and self.k is not None:
            raise CommandError("--budget takes the place of -k: give one of them.", EXIT_USAGE)
        if self.costs and self.budget is None:
            raise CommandError("--costs need a --budget: say what the kept columns may cost together.", EXIT_USAGE)


def select(options: SelectOptions) -> None:
    """Keep the k columns of a table that predict its target best, and say how sure that is.

    Without -k the number is chosen too, and scored on rows that did not choose it. Writes the kept columns (CSV, JSON), the
    reduced table, the fitted model and a report; prints the score with all features, with k and with k random ones, from
    cross-validation with the selection inside each fold.
    """
    from tamiz.cli.early import check_arguments

    check_arguments(options.file, options.k, options.network, options.test)
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
