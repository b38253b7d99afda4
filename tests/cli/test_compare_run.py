"""Methods and numbers as they are typed for ``compare``."""

import pytest

from tamiz.cli.compare_run import DEFAULT_K, parse_methods, parse_values
from tamiz.errors import TamizError


def test_lists_are_separated_by_commas():
    assert parse_methods("Fisher, SVM_RFE") == ("fisher", "svm-rfe")
    assert parse_values(" 5,10 , 0.5") == [5, 10, 0.5]
    assert parse_values(",".join(map(str, DEFAULT_K))) == list(DEFAULT_K)


@pytest.mark.parametrize("text", ["fischer", ""])
def test_methods_that_are_none(text):
    with pytest.raises(TamizError):
        parse_methods(text)


@pytest.mark.parametrize("text", ["", "five", "5;10"])
def test_numbers_that_are_none(text):
    with pytest.raises(TamizError):
        parse_values(text)
