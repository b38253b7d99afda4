"""Commands from records of options; errors as messages and exit codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tamiz.cli.command import add_command
from tamiz.cli.errors import EXIT_DATA, EXIT_MEMORY, EXIT_OUTPUT, EXIT_USAGE, CommandError
from tamiz.errors import MissingExtraError, TamizError, UnknownNameError
from tamiz.persistence import ModelFileError
from tamiz.tables import TableArgumentError, TableError, TableMemoryError


@dataclass(frozen=True, kw_only=True)
class ToyOptions:
    """Options of a command that is not there."""

    size: Annotated[int, typer.Option("--size", help="How large.")] = 3
    name: Annotated[str, typer.Argument(help="Whose.")]
    quiet: Annotated[bool, typer.Option("--quiet")] = False
    many: Annotated[list[str] | None, typer.Option("--many")] = None

    def __post_init__(self) -> None:
        if self.size < 0:
            raise CommandError("--size must be positive.", EXIT_USAGE)


@pytest.fixture
def run():
    """Adds a command to an application and runs it."""

    def invoke(function, *arguments):
        app = typer.Typer(rich_markup_mode=None)
        add_command(app, function, ToyOptions, first=("name",), epilog="Example: toy")
        return CliRunner().invoke(app, list(arguments))

    return invoke


def test_the_function_gets_the_record(run):
    seen = []

    def toy(options: ToyOptions) -> None:
        """Do nothing."""
        seen.append(options)

    assert run(toy, "me", "--size", "5", "--many", "a", "--many", "b").exit_code == 0
    assert seen == [ToyOptions(name="me", size=5, many=["a", "b"])]
    page = run(toy, "--help").stdout
    assert "Do nothing." in page
    assert "Example: toy" in page
    assert page.index("--size") < page.index("--many") < page.index("--quiet")
    assert run(toy).exit_code == 2
    assert run(toy, "me", "--size", "five").exit_code == 2


def test_a_record_that_does_not_hold_together_is_an_error_of_usage(run):
    result = run(lambda options: None, "me", "--size", "-1")
    assert result.exit_code == EXIT_USAGE
    assert result.stderr.strip() == "Error: --size must be positive."


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("x"), EXIT_DATA),
        (CommandError("x", EXIT_OUTPUT), EXIT_OUTPUT),
        (TableError("x"), EXIT_DATA),
        (TableArgumentError("x"), EXIT_USAGE),
        (TableMemoryError("x"), EXIT_MEMORY),
        (ModelFileError("x"), EXIT_DATA),
        (UnknownNameError("x"), EXIT_USAGE),
        (MissingExtraError("x"), EXIT_USAGE),
        (TamizError("x"), EXIT_DATA),
        (MemoryError(), EXIT_MEMORY),
        (ImportError("pip install 'tamiz[cli]'"), EXIT_USAGE),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_end_with_a_message_and_a_code(run, error, code):
    def toy(options: ToyOptions) -> None:
        raise error

    result = run(toy, "me")
    assert result.exit_code == code
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr


def test_faults_of_ours_are_not_hidden(run):
    def toy(options: ToyOptions) -> None:
        raise ValueError("a fault")

    assert isinstance(run(toy, "me").exception, ValueError)


def test_arguments_of_the_library_are_shown_as_options(run):
    def toy(options: ToyOptions) -> None:
        raise TableError("Set `max_categories`; the column is called 'target'.")

    assert run(toy, "me").stderr.strip() == "Error: Set --max-categories; the column is called 'target'."
