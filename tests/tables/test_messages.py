"""Values of the data in messages."""

import pytest

from tamiz._utils.text import discard, list_some, quote


@pytest.mark.parametrize("value", ["a\nb", "\x1b[31m", "\ud800", "x" * 500, 3.5, None])
def test_a_quoted_value_is_short_printable_and_on_one_line(value):
    text = quote(value)
    assert "\n" not in text
    assert "\x1b" not in text
    text.encode("utf-8")
    assert len(text) < 80


def test_the_width_counts_the_sign_that_it_was_cut():
    assert quote("abcdef", width=6) == "'abcdef'"
    assert quote("abcdefg", width=6) == "'abcde…'"


def test_lists_say_how_many_more_there_are():
    assert list_some([]) == ""
    assert list_some(range(5)) == "'0', '1', '2', '3', '4'"
    assert list_some(range(2005)).endswith("'4' and 2,000 more")


def test_discard_says_nothing(capsys):
    assert discard("a message") is None
    assert capsys.readouterr() == ("", "")
