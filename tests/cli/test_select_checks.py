"""Checks of ``select`` before anything is fitted."""

import pytest

from tamiz.cli.console import Terminal
from tamiz.cli.errors import EXIT_USAGE, CommandError
from tamiz.cli.select_checks import check_loss, choose_permutations, find_metric
from tamiz.errors import TamizError


def test_metrics_have_short_names_and_defaults():
    assert find_metric(None, "classification").name == "balanced accuracy"
    assert find_metric(None, "regression").name != find_metric(None, "classification").name
    with pytest.raises(TamizError):
        find_metric("r2", "classification")


def test_a_loss_must_be_one_of_the_task():
    assert check_loss("LOGISTIC", "classification") == "logistic"
    with pytest.raises(TamizError) as caught:
        check_loss("huber", "classification")
    assert "huber" in str(caught.value)
    if isinstance(caught.value, CommandError):
        assert caught.value.exit_code == EXIT_USAGE


@pytest.mark.parametrize("asked", [0, 7])
def test_permutations_that_were_asked_for_are_taken(asked):
    for quick in (True, False):
        assert choose_permutations(asked, quick, Terminal(quiet=True)) == asked


def test_a_slow_network_has_fewer_by_default():
    terminal = Terminal(quiet=True)
    assert choose_permutations(None, True, terminal) > choose_permutations(None, False, terminal)
