"""``tamiz datasets``: list the datasets of the paper."""

from __future__ import annotations

import typer

from tamiz.cli.command import add_command
from tamiz.cli.options import TerminalOptions


def datasets(options: TerminalOptions) -> None:
    """List the datasets of the paper: which are here, and where a download would come from."""
    from rich.text import Text

    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_datasets
    from tamiz.paper import describe, find_data_home

    terminal = Terminal(options.quiet, options.json)
    listings = describe()
    terminal.result({"data_home": str(find_data_home()), "datasets": listings})
    terminal.show(show_datasets(listings), Text(f"Data home: {find_data_home()} (set TAMIZ_DATA_HOME to change it)"))


def register_datasets(app: typer.Typer) -> None:
    """Add the command."""
    add_command(
        app,
        datasets,
        TerminalOptions,
        epilog="Example: tamiz datasets --json",
        short_help="List the datasets of the paper.",
    )
