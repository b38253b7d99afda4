"""Exit codes, and messages of the library in the words of the command line."""

import pytest

from tamiz.cli import errors
from tamiz.cli.errors import CommandError, exit_code_of, name_options
from tamiz.errors import (
    MissingExtraError,
    TableArgumentError,
    TableError,
    TableMemoryError,
    TamizError,
    UnknownNameError,
)


def test_exit_codes_differ():
    codes = [getattr(errors, name) for name in dir(errors) if name.startswith("EXIT_")]
    assert len(codes) == len(set(codes)) == 7


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (TableMemoryError, errors.EXIT_MEMORY),
        (TableArgumentError, errors.EXIT_USAGE),
        (UnknownNameError, errors.EXIT_USAGE),
        (MissingExtraError, errors.EXIT_USAGE),
        (TableError, errors.EXIT_DATA),
        (TamizError, errors.EXIT_DATA),
    ],
)
def test_each_error_has_its_code(kind, code):
    assert exit_code_of(kind.__new__(kind)) == code


def test_a_command_brings_its_own_code():
    assert exit_code_of(CommandError("no")) == errors.EXIT_DATA
    assert exit_code_of(CommandError("no", errors.EXIT_OUTPUT)) == errors.EXIT_OUTPUT


def test_only_known_arguments_become_options():
    assert name_options("See `keep_na` and `na_values`.") == "See --keep-na and --na-values."
    assert name_options("A column `other`, target.") == "A column `other`, target."
