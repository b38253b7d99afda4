"""``tamiz serve``: a live page on this machine to try a selection on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tamiz.cli.command import add_command
from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_USAGE, CommandError
from tamiz.cli.options import TargetOptions


@dataclass(frozen=True, kw_only=True)
class ServeOptions(TargetOptions):
    """Options of ``tamiz serve``; how files are read holds for the file of the command line."""

    file: Annotated[Path | None, typer.Argument(help="Table to start with.", show_default=False)] = None  # type: ignore[assignment]
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="Port to listen at; 0 takes a free one.", min=0, max=65535)
    ] = 0
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False
    upload_limit: Annotated[
        int, typer.Option("--upload-limit", metavar="MB", help="Largest file that the page takes.", min=1)
    ] = 500

    def table_options(self) -> dict[str, Any]:
        """Return the options of reading that were given."""
        given = {
            **self.reading(),
            "task": None if self.task is None else str(self.task),
            "ignore": self.ignore or (),
            "categorical": self.categorical or (),
            "max_categories": self.max_categories,
        }
        usual: dict[str, Any] = {"skip_rows": 0, "decimal": ".", "ignore": (), "categorical": (), "max_categories": 50}
        return {name: value for name, value in given.items() if value is not None and value != usual.get(name)}


def serve(options: ServeOptions) -> None:
    """Serve a page on this machine only: drop a table, choose the target, drag M, force columns in or out.

    Prints the address, which holds a token: who does not know it is not answered. Ctrl-C ends the command with code 130.
    """
    from tamiz.serve.server import LiveServer, PortError

    target = options.only_target("serve")
    if options.file is not None:
        from tamiz.tables.formats import check_file

        check_file(options.file)
    try:
        server = LiveServer(
            options.file,
            target,
            reading=options.table_options(),
            port=options.port,
            upload_limit=options.upload_limit * 1_000_000,
        )
    except PortError as error:
        raise CommandError(str(error), EXIT_USAGE) from None
    # Flushed: who reads the address from a pipe must not wait for the end.
    typer.echo(f"Live page: {server.url}")
    typer.echo("Ctrl-C ends it.", err=True)
    try:
        server.run(on_start=(lambda: _launch(server.url)) if options.open_page else lambda: None)
    except KeyboardInterrupt:
        typer.echo("Stopped.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _launch(url: str) -> None:
    typer.launch(url)


def register_serve(app: typer.Typer) -> None:
    """Add the command."""
    add_command(
        app,
        serve,
        ServeOptions,
        first=("file", "target", "port", "open_page", "upload_limit"),
        epilog="Example: tamiz serve genes.csv --target tumour --open",
        short_help="Open a live page: drop a table, drag M, watch what is kept.",
    )
