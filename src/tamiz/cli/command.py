"""Make commands from records of options, and turn errors into messages and exit codes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import typer

from tamiz.cli.errors import EXIT_INTERRUPTED, EXIT_MEMORY, EXIT_OUTPUT, EXIT_USAGE, exit_code_of, name_options
from tamiz.errors import TamizError

if TYPE_CHECKING:
    from tamiz.cli.console import Terminal

Options = TypeVar("Options")
#: Fields that are listed last in the help of every command, in this order.
_LAST = (
    *("format", "delimiter", "header", "encoding", "skip_rows", "decimal", "na_values", "keep_na"),
    *("out", "force", "spreadsheet_safe", "json", "quiet", "open_report"),
)


#: Signals that end a command as Ctrl-C does: files in the making are removed. Windows has no SIGHUP.
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def print_error(message: str) -> None:
    """Print an error to standard error."""
    from rich.console import Console
    from rich.text import Text

    from tamiz.report.text import clean_text

    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    text = clean_text(name_options(message))
    console.print(Text("Error: ", style="bold red").append(text, style="default"), soft_wrap=True)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def handle_errors(function: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: an error becomes one message and an exit code; an interrupt, also SIGTERM and SIGHUP, cleans up.

    Parameters
    ----------
    function : callable
        The command.
    """

    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> None:
        main_thread = threading.current_thread() is threading.main_thread()
        before = {name: signal.signal(name, _interrupt) for name in _ENDING_SIGNALS} if main_thread else {}
        show_warning = warnings.showwarning
        try:
            with warnings.catch_warnings():
                # Reported where it matters (see the notes of a run); elsewhere it would only tear the tables apart.
                # Filters are not safe in threads, hence both.
                warnings.simplefilter("ignore")
                warnings.showwarning = lambda *_, **__: None
                function(*arguments, **named)
        except TamizError as error:
            print_error(str(error))
            raise typer.Exit(exit_code_of(error)) from None
        except MemoryError:
            print_error(
                "There is not enough memory for this table. Leave columns out with `ignore`, or take fewer rows."
            )
            raise typer.Exit(EXIT_MEMORY) from None
        except ImportError as error:
            if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):  # during an import in C
                print_error("Interrupted; nothing was written.")
                raise typer.Exit(EXIT_INTERRUPTED) from None
            if "pip install" not in str(error):  # only an extra that is missing is for the user to install
                raise
            print_error(str(error))
            raise typer.Exit(EXIT_USAGE) from None
        except KeyboardInterrupt:
            print_error("Interrupted; nothing was written.")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            raise  # who reads has had enough; typer ends the command
        except OSError as error:
            about = f"{error.filename}: " if error.filename is not None else "The output cannot be written: "
            print_error(f"{about}{error.strerror or error}.")
            raise typer.Exit(EXIT_OUTPUT) from None
        finally:
            warnings.showwarning = show_warning
            for name, handler in before.items():
                signal.signal(name, handler)

    return run


def add_command(
    app: typer.Typer,
    function: Callable[[Options], None],
    options: type[Options],
    *,
    first: Sequence[str] = (),
    **more: Any,
) -> None:
    """Add a command whose options are the fields of a record.

    Parameters
    ----------
    app : typer.Typer
        Where to add it.
    function : callable
        What the command does; its name and docstring become name and help of the command.
    options : dataclass
        The record that ``function`` takes; its fields are annotated with typer's arguments and options.
    first : sequence of str, default=()
        Fields to list first in the help.
    **more : object
        Passed to ``typer.Typer.command``.
    """

    @handle_errors
    def command(**values: Any) -> None:
        function(options(**values))

    hints = get_type_hints(options, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    parameters = []
    names = [*first, *(name for name in fields if name not in (*first, *_LAST))]
    for name in [*names, *(name for name in _LAST if name in fields and name not in first)]:
        default = fields[name].default
        missing = default is dataclasses.MISSING
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if missing else default,
                annotation=hints[name],
            )
        )
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = hints
    command.__doc__ = function.__doc__
    app.command(function.__name__, **more)(command)


def command_line() -> str:
    """Return the command as it was typed, for the record."""
    return shlex.join(["tamiz", *sys.argv[1:]])


def show_results(record: dict[str, Any], shown: Any, terminal: Terminal, open_report: bool) -> None:
    """Print the results of a command, and open its report if asked for."""
    terminal.result(record)
    terminal.show(shown)
    if open_report:
        typer.launch(str(Path(record["files"]["report"]).absolute()))
