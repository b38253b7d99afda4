"""Exit codes of the commands, and errors that are shown as one message, never as a traceback."""

from __future__ import annotations

import re

from tamiz.errors import MissingExtraError, TableArgumentError, TableMemoryError, TamizError, UnknownNameError

#: Exit codes; also in ``tamiz --help``.
EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_DATA, EXIT_OUTPUT, EXIT_MEMORY, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

#: Arguments of the library that are options of the commands. Messages of the library have them in backticks.
_ARGUMENTS = (
    *("target", "task", "ignore", "categorical", "max_categories"),
    *("format", "delimiter", "header", "encoding", "skip_rows", "decimal", "na_values", "keep_na"),
)
_ARGUMENT = re.compile(f"`({'|'.join(_ARGUMENTS)})`")


class CommandError(TamizError):
    """Raise if a command cannot be run as it was typed, or its results cannot be written.

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


def exit_code_of(error: TamizError) -> int:
    """Return the exit code for an error of the library or of a command.

    Examples
    --------
    >>> exit_code_of(TableMemoryError("too large")), exit_code_of(CommandError("no folder", EXIT_OUTPUT))
    (5, 4)
    """
    if isinstance(error, CommandError):
        return error.exit_code
    if isinstance(error, TableMemoryError):
        return EXIT_MEMORY
    if isinstance(error, (TableArgumentError, UnknownNameError, MissingExtraError)):
        return EXIT_USAGE
    return EXIT_DATA


def name_options(message: str) -> str:
    """Replace arguments of the library by the options of the command.

    Examples
    --------
    >>> name_options("Say which column is the target with `target`; see `max_categories`.")
    'Say which column is the target with --target; see --max-categories.'
    """
    return _ARGUMENT.sub(lambda match: "--" + match[1].replace("_", "-"), message)
