"""Numbers of features as they are asked for, and rows that are too few."""

from types import SimpleNamespace

import numpy as np
import pytest

from tamiz.cli.errors import CommandError
from tamiz.cli.select_fit import asked_number, check_asked, check_enough_rows


@pytest.mark.parametrize(
    ("k", "budget", "wanted"),
    [(None, None, "auto"), ("auto", None, "auto"), ("5", None, 5), ("0.5", None, 0.5), (None, 3.0, 1)],
)
def test_m_as_it_was_typed(k, budget, wanted):
    assert asked_number(SimpleNamespace(k=k, budget=budget)) == wanted


def test_more_than_there_are_columns():
    check_asked("auto", 1)
    check_asked(3, 3)
    with pytest.raises(CommandError):
        check_asked(4, 3)


@pytest.mark.parametrize(
    ("task", "y", "enough"),
    [
        ("classification", ["a"] * 50 + ["b"] * 50, True),
        ("classification", ["a"] * 50 + ["b"] * 2, False),
        ("regression", np.arange(100.0), True),
        ("regression", np.arange(3.0), False),
    ],
)
def test_a_number_is_chosen_only_from_enough_rows(task, y, enough):
    data = SimpleNamespace(target=SimpleNamespace(task=task), y=np.asarray(y))
    if enough:
        check_enough_rows(data)
    else:
        with pytest.raises(CommandError, match="give -k a number"):
            check_enough_rows(data)
