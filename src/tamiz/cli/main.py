"""Entry point of the ``tamiz`` command; each command is in a module of its own name."""

from __future__ import annotations

import gc
import os
import sys
import threading
from typing import Annotated

try:
    import typer

    from tamiz._version import __version__
    from tamiz.cli.apply import register_apply
    from tamiz.cli.command import handle_errors, print_error
    from tamiz.cli.compare import register_compare
    from tamiz.cli.datasets import register_datasets
    from tamiz.cli.demo import register_demo
    from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_OUTPUT
    from tamiz.cli.pairs import register_pairs
    from tamiz.cli.reproduce import add_commands as add_reproduce_commands
    from tamiz.cli.select import register_select
    from tamiz.cli.serve import register_serve
except KeyboardInterrupt:  # nothing has begun yet: no traceback
    raise SystemExit(130) from None

app = typer.Typer(
    name="tamiz",
    help="End-to-end feature selection: train a model and sieve its inputs down to exactly M, in one run.",
    epilog="Exit codes: 0 done, 2 wrong usage, 3 the table cannot be used, 4 the results cannot be written, "
    "5 not enough memory, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tamiz {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """End-to-end feature selection: train a model and sieve its inputs down to exactly M, in one run."""


# A new command is one module and one name here.
for _register in (
    register_select,
    register_compare,
    register_pairs,
    register_apply,
    register_demo,
    register_datasets,
    register_serve,
):
    _register(app)
add_reproduce_commands(app, handle_errors)


def _flush_output(end: SystemExit) -> None:
    """Write what waits for standard output; end with a message and a code if it cannot be written (a full disk)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try again, and complain
        print_error(f"The output cannot be written: {error.strerror}.")
        raise SystemExit(end.code or EXIT_OUTPUT) from None


def main() -> None:
    """Run the command. After an interrupt the process ends at once, whatever its threads are doing."""
    main_thread = threading.main_thread()
    # Loading the libraries makes objects that stay: looking for garbage among them takes a twentieth of a short command.
    gc.set_threshold(100_000, 20, 20)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter shows a question mark
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="tamiz")
    except KeyboardInterrupt:  # outside of a command
        raise SystemExit(EXIT_INTERRUPTED) from None
    except SystemExit as end:
        _flush_output(end)
        waits = any(thread is not main_thread and not thread.daemon for thread in threading.enumerate())
        if end.code == EXIT_INTERRUPTED and waits:  # all is cleaned up, but Python would wait for threads that compile
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)
        raise


if __name__ == "__main__":
    main()
