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
    from tamiz.cli.apply import apply
    from tamiz.cli.compare import compare_command
    from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_OUTPUT, handle_errors, print_error
    from tamiz.cli.pairs import pairs
    from tamiz.cli.reproduce import reproduce
    from tamiz.cli.select import demo, select_command
    from tamiz.cli.serve import datasets, serve, warm_up_engines
except KeyboardInterrupt:  # nothing has begun yet: no traceback
    raise SystemExit(130) from None

app = typer.Typer(
    name="tamiz",
    help="End-to-end feature selection: train a model and cut its inputs down to exactly M, in one run.",
    epilog="Exit codes: 0 done, 2 wrong usage, 3 the table cannot be used, 4 the results cannot be written, "
    "5 not enough memory, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """End-to-end feature selection: train a model and cut its inputs down to exactly M, in one run."""
    if version:
        typer.echo(f"tamiz {__version__}")
        raise typer.Exit


# A new command is one function and one line here: name, function, one line of help, example.
for _name, _function, _short, _example in (
    ("select", select_command, "Keep the k best columns of a table, with a report.", "genes.csv --target tumour -k 20"),
    ("compare", compare_command, "Compare selectors on the same folds.", "genes.csv -t tumour -k 5,10 -m e2efs,fisher"),
    ("pairs", pairs, "Find columns that act together.", "genes.csv --target tumour"),
    ("apply", apply, "Predict new rows with a model that select wrote.", "tamiz-genes/model.tamiz new-patients.csv"),
    ("demo", demo, "Show it at work on a table that comes with scikit-learn.", "--open"),
    ("serve", serve, "Open a live page: drop a table, drag M.", "genes.csv --target tumour --open"),
    ("reproduce", reproduce, "Run the paper's tables and figures again.", "microarray -d colon,lung -m e2efs,fisher"),
    ("datasets", datasets, "List the datasets of the paper.", ""),
    ("warm-up", warm_up_engines, "Compile the engines, for container images.", ""),
):
    _epilog = f"Example: tamiz {_name} {_example}".rstrip()
    app.command(_name, short_help=_short, epilog=_epilog)(handle_errors(_function))


def main() -> None:
    """Run the command. After an interrupt the process ends at once, whatever its threads are doing."""
    main_thread = threading.main_thread()
    # Loading the libraries makes objects that stay: looking for garbage among them takes a twentieth of a short command.
    gc.set_threshold(100_000, 20, 20)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the shell closed it: tamiz select ... >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        if hasattr(getattr(sys, name), "reconfigure"):  # a terminal that lacks a letter shows a question mark
            getattr(sys, name).reconfigure(errors="replace")
    try:
        app(prog_name="tamiz")
    except KeyboardInterrupt:  # outside of a command
        raise SystemExit(EXIT_INTERRUPTED) from None
    except SystemExit as end:
        try:
            sys.stdout.flush()
        except OSError as error:  # a full disk, or nobody reads any more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try again, and complain
            if not isinstance(error, BrokenPipeError):
                print_error(f"The output cannot be written: {error.strerror}.")
                raise SystemExit(end.code or EXIT_OUTPUT) from None
        waits = any(thread is not main_thread and not thread.daemon for thread in threading.enumerate())
        if end.code == EXIT_INTERRUPTED and waits:  # all is cleaned up, but Python would wait for threads that compile
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)
        raise


if __name__ == "__main__":
    main()
