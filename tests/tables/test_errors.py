"""Exceptions of the tables."""

import pytest

from tamiz.errors import TableArgumentError, TableError, TableMemoryError, TamizError


@pytest.mark.parametrize("kind", [TableError, TableArgumentError, TableMemoryError])
def test_users_may_catch_them_as_value_errors(kind):
    with pytest.raises(ValueError, match="no such column"):
        raise kind("no such column")
    assert issubclass(kind, (TamizError, TableError))


def test_arguments_and_memory_are_told_apart():
    assert not issubclass(TableArgumentError, TableMemoryError)
    assert not issubclass(TableMemoryError, TableArgumentError)
