"""Exit codes of the commands, and errors that are shown as one message, never as a traceback."""

from __future__ import annotations

import functools
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import typer

from tamiz.errors import MissingExtraError, TableArgumentError, TableMemoryError, TamizError, UnknownNameError

#: Exit codes; also in ``tamiz --help``.
EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_DATA, EXIT_OUTPUT, EXIT_MEMORY, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
#: Arguments of ``read_table`` that ``--read`` takes; messages of the library have them in backticks.
READ_ARGUMENTS = (
    *("format", "delimiter", "header", "encoding", "skip_rows", "decimal", "na_values", "max_categories"),
)
_READING = re.compile(f"`({'|'.join(READ_ARGUMENTS)})`")
_OPTION = re.compile("`(target|task|ignore|categorical|groups|time|weights|missing|fdr|keep|drop)`")
#: Signals that end a command as Ctrl-C does: files in the making are removed. Windows has no SIGHUP.
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class CommandError(TamizError):
    """Raised if a command cannot be run as it was typed, or its results cannot be written.

    Parameters
    ----------
    message : str
        What is wrong and what to do.
    exit_code : int, default=EXIT_DATA
        Exit code of the command.
    """

    def __init__(self, message: str, exit_code: int = EXIT_DATA) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def name_options(message: str) -> str:
    """Replace arguments of the library by the options of the command.

    Examples
    --------
    >>> name_options("Name the target with `target`, or raise `max_categories`.")
    'Name the target with --target, or raise --read max_categories=...'
    >>> name_options("k='auto' and network='auto' need more rows.")
    '-k auto and --network auto need more rows.'
    """
    message = re.sub(r"\bk='auto'", "-k auto", message.replace("n_features_to_select=", "-k=")).replace("`k`", "-k")
    message = re.sub(r"\bnetwork='(\w+)'", r"--network \1", message)
    message = _OPTION.sub(r"--\1", message)
    return _READING.sub(r"--read \1=...", message).replace("=....", "=...")


def print_error(message: str) -> None:
    """Print an error to standard error."""
    from rich.console import Console
    from rich.text import Text

    from tamiz.report.text import clean_text

    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    text = clean_text(name_options(message))
    console.print(Text("Error: ", style="bold red").append(text, style="default"), soft_wrap=True)


def _explain(error: BaseException) -> tuple[str, int] | None:
    """Find message and exit code of an error; None for one that is a bug, or none of the user's business."""
    if isinstance(error, CommandError):
        return str(error), error.exit_code
    if isinstance(error, TableMemoryError):
        return str(error), EXIT_MEMORY
    if isinstance(error, (TamizError, ValueError)):
        usage = (TableArgumentError, UnknownNameError, MissingExtraError)
        return str(error), EXIT_USAGE if isinstance(error, usage) or not isinstance(error, TamizError) else EXIT_DATA
    if isinstance(error, MemoryError):
        advice = "Leave columns out with `ignore`, or take fewer rows."
        return f"There is not enough memory for this table. {advice}", EXIT_MEMORY
    during_import = isinstance(error, ImportError) and (error.__cause__ or error.__context__)  # an import in C
    if isinstance(error, KeyboardInterrupt) or isinstance(during_import, KeyboardInterrupt):
        return "Interrupted; nothing was written.", EXIT_INTERRUPTED
    # typer ends a command whose reader is gone
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        about = f"{error.filename}: " if error.filename is not None else "The output cannot be written: "
        return f"{about}{error.strerror or error}.", EXIT_OUTPUT
    return None


def handle_errors(function: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: an error becomes one message and an exit code; an interrupt, also SIGTERM and SIGHUP, cleans up."""

    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> None:
        main_thread = threading.current_thread() is threading.main_thread()
        endings = _ENDING_SIGNALS if main_thread else ()
        before = {name: signal.signal(name, signal.default_int_handler) for name in endings}
        show_warning = warnings.showwarning
        try:
            with warnings.catch_warnings():
                # What matters is in the notes of a run. Filters are not safe in threads, hence both.
                warnings.simplefilter("ignore")
                warnings.showwarning = lambda *_, **__: None
                function(*arguments, **named)
        except (Exception, KeyboardInterrupt) as error:
            explained = _explain(error)
            if explained is None:
                raise
            print_error(explained[0])
            raise typer.Exit(explained[1]) from None
        finally:
            warnings.showwarning = show_warning
            for name, handler in before.items():
                signal.signal(name, handler)

    return run
