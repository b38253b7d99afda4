"""``tamiz serve``: a live page on this machine to try a selection on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tamiz.cli.command import handle_errors
from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_USAGE, CommandError


def register_serve(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog="Example: tamiz serve genes.csv --target tumour --open",
        short_help="Open a live page: drop a table, drag M, watch what is kept.",
    )
    @handle_errors
    def serve(
        file: Annotated[Path | None, typer.Argument(help="Table to start with.", show_default=False)] = None,
        target: Annotated[
            str | None, typer.Option("--target", "-t", metavar="COLUMN", help="Column to predict, by name or number.")
        ] = None,
        port: Annotated[
            int, typer.Option("--port", metavar="N", help="Port to listen at; 0 takes a free one.", min=0, max=65535)
        ] = 0,
        open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
        upload_limit: Annotated[
            int, typer.Option("--upload-limit", metavar="MB", help="Largest file that the page takes.", min=1)
        ] = 500,
    ) -> None:
        """Serve a page on this machine only: drop a table, choose the target, drag M, force columns in or out.

        Prints the address, which holds a token: who does not know it is not answered. Ctrl-C ends the command with code 130.
        """
        from tamiz.serve.server import LiveServer, PortError

        if file is not None:
            from tamiz.tables.formats import check_file

            check_file(file)
        try:
            server = LiveServer(file, target, port=port, upload_limit=upload_limit * 1_000_000)
        except PortError as error:
            raise CommandError(str(error), EXIT_USAGE) from None
        # Flushed: who reads the address from a pipe must not wait for the end.
        typer.echo(f"Live page: {server.url}")
        typer.echo("Ctrl-C ends it.", err=True)
        try:
            server.run(on_start=(lambda: _launch(server.url)) if open_page else lambda: None)
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None


def _launch(url: str) -> None:
    typer.launch(url)
