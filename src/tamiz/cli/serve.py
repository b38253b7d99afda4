"""``tamiz serve``, ``tamiz datasets`` and ``tamiz warm-up``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tamiz.cli import options as opt
from tamiz.cli.errors import EXIT_INTERRUPTED

FirstTable = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="Table to start with; a sample of a very large one.", show_default=False),
]
Port = Annotated[int, opt.output("--port N", "Port; 0 takes a free one.", min=0, max=65535, show_default=True)]
Limit = Annotated[int, opt.output("--upload-limit MB", "Largest file to upload.", min=1, show_default=True)]
OpenPage = Annotated[bool, opt.output("--open", "Open the page in a browser.")]


def serve(
    file: FirstTable = None,
    target: opt.Target = None,
    task: opt.TaskOption = None,
    ignore: opt.Ignore = None,
    categorical: opt.Categorical = None,
    read: opt.Read = None,
    port: Port = 0,
    upload_limit: Limit = 500,
    open_page: OpenPage = False,
) -> None:
    """Serve a page on this machine only: drop a table, choose the target, drag M, force columns in or out.

    Prints the address, which holds a token: requests without it are refused. Ctrl-C ends the command with code 130.
    """
    from tamiz.serve.server import LiveServer
    from tamiz.tables.passes import file_within_memory

    opt.check_paths(file)
    reading = opt.parse_reading(read, ignore, categorical) | ({} if task is None else {"task": str(task)})
    limits = {"port": port, "upload_limit": upload_limit * 1_000_000}
    with file_within_memory(file, reading, partial(typer.echo, err=True)) as fitting:
        server = LiveServer(fitting, opt.one_target(target, "serve"), reading=reading, **limits)
        # Flushed, so that a program that reads the address from a pipe gets it at once.
        typer.echo(f"Live page: {server.url}")
        typer.echo("Ctrl-C ends it.", err=True)
        try:
            server.run(on_start=partial(typer.launch, server.url) if open_page else lambda: None)  # type: ignore[arg-type]
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None


def datasets(json: opt.Json = False, quiet: opt.Quiet = False) -> None:
    """List the datasets of the paper: which are here, and what a download would fetch."""
    from tamiz.cli.console import Terminal
    from tamiz.cli.show import show_datasets
    from tamiz.paper import describe, find_data_home

    with Terminal(quiet, json) as terminal:
        listings, home = describe(), str(find_data_home())
        terminal.finish({"data_home": home, "datasets": listings}, show_datasets)


def warm_up_engines(quiet: opt.Quiet = False) -> None:
    """Compile the engines for this machine, for container images: later fits start at once.

    Compiled code is kept in numba's cache (NUMBA_CACHE_DIR, or beside the installed package).
    """
    import os

    import numpy as np

    os.environ["TAMIZ_PREBUILT"] = "0"  # code that came with the package is not for this very machine

    from scipy.sparse import csr_matrix

    from tamiz.cli.console import Terminal
    from tamiz.estimators.e2efs import E2EFSClassifier, E2EFSRegressor

    X = np.random.default_rng(0).normal(size=(60, 8))
    with Terminal(quiet) as terminal:
        for done, network in enumerate(networks := ("linear", "additive", "pairs", "mlp")):
            terminal.progress(f"compiling ({network})", done, len(networks))
            for of in (None, [0, 0, *range(1, 7)]):
                E2EFSClassifier(2, network=network, groups=of, random_state=0).fit(X, X[:, 0] > 0)
            E2EFSRegressor(2, network=network, random_state=0).fit(X, X[:, 0])
        E2EFSClassifier(2, random_state=0).fit(csr_matrix(X), X[:, 0] > 0)
        terminal.say("The engines are compiled.")
